//! One run of the engine: from its first check until it says that it is over. A process may see many of them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_resource::Urn;
use bindery_sandbox::{DeleteReason, Run};
use tokio_util::sync::CancellationToken;

use crate::mask::Secrets;

/// What is known of a run.
#[derive(Debug, Default)]
pub struct EngineRun {
    /// Who claims what.
    pub claims: Run,
    /// Ends what is under way.
    pub cancel: CancellationToken,
    /// What no message may show.
    pub secrets: Secrets,
    /// Resources that the engine is about to make: it has checked them as new ones.
    to_make: Mutex<HashSet<Urn>>,
}

impl EngineRun {
    fn to_make(&self) -> MutexGuard<'_, HashSet<Urn>> {
        self.to_make.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A resource was checked, as a new one or against what it was.
    pub fn checked(&self, urn: &Urn, is_new: bool) {
        if is_new {
            self.to_make().insert(urn.clone());
        } else {
            self.to_make().remove(urn);
        }
    }

    /// A resource was made, or could not be: no delete makes room for it any more.
    pub fn made(&self, urn: &Urn) {
        self.to_make().remove(urn);
    }

    /// Why the engine deletes a resource, which it does not say. One that is still to be made is deleted to make room for it; one
    /// that was made in this run, or is there, has taken the deleted one's place.
    pub fn why_deleted(&self, urn: &Urn) -> DeleteReason {
        if self.to_make().contains(urn) {
            DeleteReason::BeforeReplacement
        } else {
            DeleteReason::NotDeclared
        }
    }
}

/// The run of this moment.
#[derive(Debug, Default, Clone)]
pub struct Runs(Arc<Mutex<Moment>>);

#[derive(Debug, Default)]
struct Moment {
    current: Arc<EngineRun>,
    /// The run before, until it is certain that another has begun.
    ended: Option<Arc<EngineRun>>,
    /// No engine is connected, and none has said that the run is over.
    is_left: bool,
    /// A run has ended, and nothing of another has come yet.
    is_between: bool,
}

impl Runs {
    fn moment(&self) -> MutexGuard<'_, Moment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run that calls belong to now.
    pub fn current(&self) -> Arc<EngineRun> {
        Arc::clone(&self.moment().current)
    }

    /// The run that a delete belongs to. One that comes just after the end of its run is that one's, and cancelled: without the
    /// run's claims it could take away what another resource declares.
    pub fn of_delete(&self) -> Arc<EngineRun> {
        let moment = self.moment();
        Arc::clone(moment.ended.as_ref().unwrap_or(&moment.current))
    }

    /// Ends the run: what is under way stops as soon as its end is known, and its claims are gone. The next call begins another.
    pub fn end(&self) {
        let mut moment = self.moment();
        let ended = std::mem::take(&mut moment.current);
        ended.cancel.cancel();
        moment.ended = Some(ended);
        moment.is_between = true;
    }

    /// Whether this is the first of another run that comes after the end of one.
    pub fn is_first(&self) -> bool {
        std::mem::take(&mut self.moment().is_between)
    }

    /// The last connection of an engine has ended. That alone ends no run: one that has nothing to ask for half an hour
    /// disconnects, and comes back.
    pub fn left(&self) {
        self.moment().is_left = true;
    }

    /// An engine introduces itself. What one that has left did not end, ends.
    pub fn greet(&self) {
        let was_left = std::mem::take(&mut self.moment().is_left);
        if was_left {
            self.end();
        }
    }

    /// An engine configures a provider: there is another run.
    pub fn begin(&self) {
        self.moment().ended = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_makes_room_for_what_is_still_to_be_made() {
        let urn = Urn::new("s", "p", "t", "n");
        let run = EngineRun::default();
        assert_eq!(run.why_deleted(&urn), DeleteReason::NotDeclared);
        run.checked(&urn, false);
        run.checked(&urn, true);
        assert_eq!(run.why_deleted(&urn), DeleteReason::BeforeReplacement);
        run.made(&urn);
        assert_eq!(run.why_deleted(&urn), DeleteReason::NotDeclared);
    }

    #[test]
    fn what_an_earlier_run_left_to_delete_is_not_in_the_way_of_what_is_there() {
        let urn = Urn::new("s", "p", "t", "n");
        let run = EngineRun::default();
        run.checked(&urn, true);
        run.checked(&urn, false);
        assert_eq!(run.why_deleted(&urn), DeleteReason::NotDeclared);
    }

    #[test]
    fn the_end_of_a_run_is_not_the_end_of_the_next() {
        let runs = Runs::default();
        let first = runs.current();
        runs.end();
        assert!(first.cancel.is_cancelled());
        assert!(!runs.current().cancel.is_cancelled());
        assert!(Arc::ptr_eq(&first, &runs.of_delete()), "one that was on its way");
        runs.begin();
        assert!(Arc::ptr_eq(&runs.current(), &runs.of_delete()));
    }

    #[test]
    fn an_engine_that_comes_back_goes_on_and_another_one_begins_anew() {
        let runs = Runs::default();
        runs.greet();
        let first = runs.current();
        runs.left();
        assert!(Arc::ptr_eq(&first, &runs.current()), "it may come back");
        runs.greet();
        assert!(first.cancel.is_cancelled());
        let second = runs.current();
        runs.greet();
        assert!(Arc::ptr_eq(&second, &runs.current()), "its second provider resource");
    }
}

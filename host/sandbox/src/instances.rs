//! The instances of a process, lent to its tenants' calls. A tenant may hold as many as are still free, and no more; some are kept
//! for those that hold none. So however many of them hold all they can get, another finds one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// What is free, and who waits for it.
#[derive(Debug)]
pub struct Instances(Mutex<State>);

#[derive(Debug)]
struct State {
    free: usize,
    /// Of these, those for tenants that hold none.
    reserve: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    held: Arc<AtomicUsize>,
    lend: oneshot::Sender<Lent>,
}

/// The right to one instance, until it is dropped.
#[derive(Debug)]
pub struct Lent {
    instances: Arc<Instances>,
    /// How many its tenant holds; changed under the lock only.
    held: Arc<AtomicUsize>,
    is_in_force: bool,
}

impl Instances {
    /// So many, and how many of them are for tenants that hold none.
    pub fn new(count: usize, reserve: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            free: count,
            reserve,
            waiting: VecDeque::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends one to a tenant that holds so many, as soon as it may have another.
    pub async fn lend(self: &Arc<Self>, held: &Arc<AtomicUsize>) -> Lent {
        loop {
            let lent = {
                let mut state = self.state();
                if state.may_lend(held) {
                    return self.lent(&mut state, Arc::clone(held));
                }
                let (lend, lent) = oneshot::channel();
                state.waiting.push_back(Waiting {
                    held: Arc::clone(held),
                    lend,
                });
                lent
            };
            // The other end is kept until it has sent.
            if let Ok(lent) = lent.await {
                return lent;
            }
        }
    }

    fn lent(self: &Arc<Self>, state: &mut State, held: Arc<AtomicUsize>) -> Lent {
        state.free -= 1;
        held.fetch_add(1, Ordering::Relaxed);
        Lent {
            instances: Arc::clone(self),
            held,
            is_in_force: true,
        }
    }
}

impl State {
    fn may_lend(&self, held: &AtomicUsize) -> bool {
        match held.load(Ordering::Relaxed) {
            0 => self.free > 0,
            held => held < self.free.saturating_sub(self.reserve),
        }
    }

    fn take_back(&mut self, held: &AtomicUsize) {
        self.free += 1;
        held.fetch_sub(1, Ordering::Relaxed);
    }

    /// Who has waited longest of those that may have one.
    fn next(&mut self) -> Option<Waiting> {
        let position = self
            .waiting
            .iter()
            .position(|waiting| self.may_lend(&waiting.held) || waiting.lend.is_closed())?;
        self.waiting.remove(position)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.is_in_force {
            return;
        }
        let mut state = self.instances.state();
        state.take_back(&self.held);
        while let Some(Waiting { held, lend }) = state.next() {
            if lend.is_closed() {
                continue;
            }
            let lent = self.instances.lent(&mut state, held);
            // One that has gone away meanwhile leaves its instance to the next.
            if let Err(mut lent) = lend.send(lent) {
                lent.is_in_force = false;
                state.take_back(&lent.held);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn soon(instances: &Arc<Instances>, tenant: &Arc<AtomicUsize>) -> Option<Lent> {
        tokio::time::timeout(Duration::from_millis(20), instances.lend(tenant))
            .await
            .ok()
    }

    async fn all_it_gets(instances: &Arc<Instances>) -> Vec<Lent> {
        let tenant = Arc::default();
        let mut all = Vec::new();
        while let Some(lent) = soon(instances, &tenant).await {
            all.push(lent);
        }
        all
    }

    #[tokio::test]
    async fn tenants_that_take_what_they_can_get_leave_some_to_the_next() {
        let instances = Instances::new(64, 0);
        let first = all_it_gets(&instances).await;
        assert_eq!(first.len(), 32);
        let second = all_it_gets(&instances).await;
        assert_eq!(second.len(), 16);
        let third = all_it_gets(&instances).await;
        assert_eq!(third.len(), 8);
        assert!(soon(&instances, &Arc::default()).await.is_some());
        drop((first, second, third));
        assert_eq!(instances.state().free, 64);
    }

    #[tokio::test]
    async fn those_that_hold_some_keep_off_the_reserve() {
        let instances = Instances::new(16, 4);
        let mut all = Vec::new();
        for _ in 0..8 {
            all.push(all_it_gets(&instances).await);
        }
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [6, 3, 2, 1, 1, 1, 1, 1]);
    }

    #[tokio::test]
    async fn who_waits_gets_what_is_given_back_and_who_has_gone_does_not() {
        let instances = Instances::new(2, 0);
        let (one, other) = (Arc::default(), Arc::default());
        let first = instances.lend(&one).await;
        assert!(soon(&instances, &one).await.is_none(), "it waited, and has gone");
        let last = instances.lend(&other).await;
        let waiting = tokio::spawn({
            let (instances, one) = (Arc::clone(&instances), Arc::clone(&one));
            async move { instances.lend(&one).await }
        });
        tokio::task::yield_now().await;
        drop(last);
        assert!(
            !waiting.is_finished(),
            "one held and one free: it would leave none to others"
        );
        drop(first);
        drop(waiting.await.unwrap());
        assert_eq!(instances.state().free, 2);
        assert!(instances.state().waiting.is_empty());
    }
}

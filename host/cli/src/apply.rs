//! Carries a plan out: what is declared first, what is no longer declared last, so that there is no moment without a grant
//! that is to stay.

mod operation;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_resource::{PropertyMap, Urn};
use bindery_stack::plan::outputs;
use bindery_stack::step::exists;
use bindery_stack::{Action, Diagnostic, Plan, Provider, Scope, StackFile, Step};

use crate::report::Report;
use crate::schedule::{self, End};
use crate::session::Session;
use crate::store::Store;

/// What carrying out needs.
#[derive(Debug)]
pub struct Apply {
    session: Arc<Session>,
    store: Arc<Store>,
    report: Report,
    /// What is declared; empty where everything is removed.
    file: Arc<StackFile>,
    /// The names of every resource type's outputs.
    types: HashMap<String, Arc<[String]>>,
    progress: Mutex<Progress>,
    /// Resources whose last operation could not be settled: they are left alone.
    unsettled: HashSet<Urn>,
}

/// What has become of the steps so far.
#[derive(Debug)]
struct Progress {
    /// What others can refer to by now.
    scope: Scope,
    /// Resources that are as the state has them: this run made them so, or found that they are.
    done: HashSet<Urn>,
    /// Resources that were to be made or changed, and were not.
    failed: HashSet<Urn>,
    /// Resources that were replaced: that their old selves go is part of it.
    replaced: HashSet<Urn>,
}

/// Carries a plan out. True if all of it was done.
pub async fn apply(context: &Arc<Apply>, plan: Plan, parallel: usize) -> bool {
    let is_removal = |step: &Step| matches!(step.action, Action::Delete | Action::Forget);
    let (mut removals, others): (Vec<Step>, Vec<Step>) = plan.steps.into_iter().partition(is_removal);
    let (same, others): (Vec<Step>, Vec<Step>) = others.into_iter().partition(|step| context.stays(step));
    context.progress().done.extend(same.iter().map(|step| step.urn.clone()));
    for step in &same {
        context.report.nothing(step);
        step.old.iter().for_each(|old| context.report.became(old));
    }
    let to_do = removals.len() + others.iter().filter(|step| step.action != Action::Same).count();
    context.report.expect(to_do);
    let after = positions(&others);
    let made = run(context, others, &after, parallel).await;
    // What was replaced is in the state by now, to be deleted.
    let known: HashSet<(Urn, Option<String>)> = removals
        .iter()
        .map(|step| (step.urn.clone(), step.id.clone()))
        .collect();
    let is_new = |step: &Step| !known.contains(&(step.urn.clone(), step.id.clone()));
    let replaced = context.store.look(|deployment| {
        let was_replaced = |urn: &Urn| context.progress().replaced.contains(urn);
        let replaced = deployment
            .replaced
            .values()
            .filter(|resource| was_replaced(&resource.urn));
        replaced.map(Step::removal).collect::<Vec<_>>()
    });
    let replaced: Vec<Step> = replaced.into_iter().filter(is_new).collect();
    context.report.expect(replaced.len());
    removals.extend(replaced);
    let needed = context.needed_by_failed();
    let (kept, removals): (Vec<Step>, Vec<Step>) = removals.into_iter().partition(|step| needed.contains(&step.urn));
    for step in &kept {
        context.report.skipped(step, "what depends on it failed");
    }
    let after = dependents(&removals);
    let removed = run(context, removals, &after, parallel).await;
    made && removed && kept.is_empty()
}

async fn run(context: &Arc<Apply>, steps: Vec<Step>, after: &[Vec<usize>], parallel: usize) -> bool {
    let steps: Arc<[Step]> = steps.into();
    let ends = schedule::run(after, parallel, |index| {
        let (context, steps) = (Arc::clone(context), Arc::clone(&steps));
        async move {
            match steps.get(index) {
                Some(step) => context.step(step).await,
                None => End::Done,
            }
        }
    })
    .await;
    for (step, end) in steps.iter().zip(&ends).filter(|(_, end)| **end != End::Done) {
        context.fail(step);
        if *end == End::Skipped {
            context.report.skipped(step, "what it depends on failed");
        }
    }
    ends.iter().all(|end| *end == End::Done)
}

/// For each step, where those are that it waits for.
fn positions(steps: &[Step]) -> Vec<Vec<usize>> {
    let at: HashMap<&Urn, usize> = steps
        .iter()
        .enumerate()
        .map(|(index, step)| (&step.urn, index))
        .collect();
    let needed = |step: &Step| {
        step.dependencies
            .iter()
            .filter_map(|urn| at.get(urn).copied())
            .collect()
    };
    steps.iter().map(needed).collect()
}

/// For each removal, those of the resources that depend on it.
fn dependents(steps: &[Step]) -> Vec<Vec<usize>> {
    let mut of: HashMap<&Urn, Vec<usize>> = HashMap::new();
    for (index, step) in steps.iter().enumerate() {
        for urn in step.dependencies.iter().filter(|urn| **urn != step.urn) {
            of.entry(urn).or_default().push(index);
        }
    }
    steps
        .iter()
        .map(|step| of.get(&step.urn).cloned().unwrap_or_default())
        .collect()
}

impl Apply {
    /// What carrying out needs, before anything was done. `config` are the values of the file's keys.
    pub fn new(
        session: Arc<Session>,
        store: Arc<Store>,
        report: Report,
        unsettled: HashSet<Urn>,
        declared: Option<(Arc<StackFile>, &str, PropertyMap)>,
    ) -> Self {
        let types: HashMap<String, Arc<[String]>> = session.types().into_iter().collect();
        let (file, stack, config) = match declared {
            Some(declared) => declared,
            None => (Arc::default(), "", PropertyMap::new()),
        };
        let mut scope = Scope::new(&file, stack, config);
        // Also what is no target of this run can be referred to.
        store.look(|deployment| {
            for declaration in file.resources.values() {
                let known = deployment.resource(&bindery_stack::plan::urn(&file, stack, declaration));
                if let (Some(known), Some(properties)) = (known, types.get(&declaration.token)) {
                    scope.export(&declaration.name, exists(known, Arc::clone(properties)));
                }
            }
        });
        Self {
            session,
            store,
            report,
            file,
            types,
            progress: Mutex::new(Progress {
                scope,
                done: HashSet::new(),
                failed: unsettled.clone(),
                replaced: HashSet::new(),
            }),
            unsettled,
        }
    }

    /// Whether nothing is to be done or noted for a step, and others can refer to its resource as it is.
    fn stays(&self, step: &Step) -> bool {
        let is_noted = step.old.as_ref().is_some_and(|old| step.keeps(old));
        step.action == Action::Same && is_noted && !self.unsettled.contains(&step.urn)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the stack gives to others, as far as it is known.
    ///
    /// # Errors
    /// References that lead nowhere.
    pub fn outputs(&self) -> Result<PropertyMap, Vec<Diagnostic>> {
        outputs(&self.file, &mut self.progress().scope)
    }

    /// What the resources depend on that failed and stay as they were, and what that depends on in its turn.
    fn needed_by_failed(&self) -> HashSet<Urn> {
        let mut open: Vec<Urn> = self.progress().failed.iter().cloned().collect();
        let mut needed = HashSet::new();
        self.store.look(|deployment| {
            while let Some(urn) = open.pop() {
                let dependencies = deployment.resource(&urn).map(|state| state.dependencies.as_slice());
                for dependency in dependencies.unwrap_or_default() {
                    if needed.insert(dependency.clone()) {
                        open.push(dependency.clone());
                    }
                }
            }
        });
        needed
    }

    /// Notes what was to be made or changed, and was not. A removal that failed says nothing of what is there.
    fn fail(&self, step: &Step) {
        if !matches!(step.action, Action::Delete | Action::Forget) {
            self.progress().failed.insert(step.urn.clone());
        }
    }

    /// Carries one step out. What fails is reported, and leaves the state as it says.
    async fn step(&self, step: &Step) -> End {
        if self.unsettled.contains(&step.urn) {
            self.report
                .skipped(step, "what became of its last operation is not known");
            return End::Failed;
        }
        if step.action != Action::Same {
            if self.session.cancel.is_cancelled() {
                self.report.skipped(step, "interrupted");
                self.fail(step);
                return End::Failed;
            }
            self.report.begin(step);
        }
        match self.carry_out(step).await {
            Ok(None) => {
                self.report.nothing(step);
                End::Done
            }
            Ok(Some(what)) => {
                self.report.done(step, what);
                End::Done
            }
            Err(problems) if problems.is_empty() => {
                self.fail(step);
                self.report.skipped(step, "interrupted");
                End::Failed
            }
            Err(problems) => {
                self.fail(step);
                self.report.failed(step, problems);
                End::Failed
            }
        }
    }
}

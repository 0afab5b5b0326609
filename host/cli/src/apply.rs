//! Carries a plan out: what is declared first, what is no longer declared last, so that there is no moment without a grant
//! that is to stay.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use bindery_resource::Urn;
use bindery_sandbox::operation::Resource;
use bindery_sandbox::{DeleteReason, Deleted, OperationError};
use bindery_stack::{Action, Deployment, OperationType, PendingOperation, Plan, ResourceState, Step};

use crate::report::Report;
use crate::schedule::{self, End};
use crate::session::Session;
use crate::store::Store;

/// What carrying out needs.
#[derive(Debug)]
pub struct Apply {
    /// The provider.
    pub session: Arc<Session>,
    /// The state.
    pub store: Store,
    /// What a person sees.
    pub report: Report,
    /// Resources that were to be made or changed, and were not.
    failed: Mutex<HashSet<Urn>>,
    /// Resources that were replaced: that their old selves go is part of it.
    replaced: Mutex<HashSet<Urn>>,
    /// Resources whose last operation could not be settled: they are left alone.
    unsettled: HashSet<Urn>,
}

/// Carries a plan out. True if all of it was done.
pub async fn apply(context: &Arc<Apply>, plan: Plan, parallel: usize) -> bool {
    let (deletions, others): (Vec<Step>, Vec<Step>) =
        plan.steps.into_iter().partition(|step| step.action == Action::Delete);
    let after = positions(&others, |step| step.dependencies.clone());
    let made = run(context, others, &after, parallel).await;
    // What was replaced is in the state by now, to be deleted.
    let replaced = context
        .store
        .deployment()
        .resources
        .into_iter()
        .filter(|resource| resource.delete);
    let mut deletions = deletions;
    for resource in replaced {
        if !deletions
            .iter()
            .any(|step| step.old.as_ref().is_some_and(|old| same(old, &resource)))
        {
            deletions.push(deletion(resource));
        }
    }
    let (kept, deletions): (Vec<Step>, Vec<Step>) =
        deletions.into_iter().partition(|step| context.is_needed(&step.urn));
    for step in &kept {
        context.report.skipped(&step.urn);
    }
    let after = dependents(&deletions);
    let deleted = run(context, deletions, &after, parallel).await;
    made && deleted && kept.is_empty()
}

fn deletion(resource: ResourceState) -> Step {
    Step {
        urn: resource.urn.clone(),
        action: Action::Delete,
        inputs: resource.inputs.clone(),
        id: Some(resource.id.clone()),
        dependencies: resource.dependencies.clone(),
        position: None,
        old: Some(resource),
    }
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
            context.report.skipped(&step.urn);
        }
    }
    ends.iter().all(|end| *end == End::Done)
}

/// For each step, where those are that it waits for.
fn positions(steps: &[Step], needed: impl Fn(&Step) -> Vec<Urn>) -> Vec<Vec<usize>> {
    let position = |urn: &Urn| steps.iter().position(|step| step.urn == *urn);
    steps
        .iter()
        .map(|step| needed(step).iter().filter_map(position).collect())
        .collect()
}

/// For each deletion, those of the resources that depend on it.
fn dependents(steps: &[Step]) -> Vec<Vec<usize>> {
    let depends = |one: &Step, on: &Step| one.urn != on.urn && one.dependencies.contains(&on.urn);
    let after = |on: &Step| {
        steps
            .iter()
            .enumerate()
            .filter(|(_, one)| depends(one, on))
            .map(|(index, _)| index)
            .collect()
    };
    steps.iter().map(after).collect()
}

fn existing(state: &ResourceState) -> Resource {
    Resource {
        id: state.id.clone(),
        outputs: state.outputs.clone(),
    }
}

fn same(one: &ResourceState, other: &ResourceState) -> bool {
    one.urn == other.urn && one.id == other.id && one.delete == other.delete
}

impl Apply {
    /// What carrying out needs, before anything was done.
    pub fn new(session: Arc<Session>, store: Store, report: Report, unsettled: HashSet<Urn>) -> Self {
        Self {
            session,
            store,
            report,
            failed: Mutex::new(unsettled.clone()),
            replaced: Mutex::default(),
            unsettled,
        }
    }

    /// Whether a resource that failed, and stays as it was, depends on this one.
    fn is_needed(&self, urn: &Urn) -> bool {
        let resources = self.store.deployment().resources;
        resources
            .iter()
            .any(|resource| resource.dependencies.contains(urn) && self.has_failed(&resource.urn))
    }

    /// Notes what was to be made or changed, and was not. A deletion that failed says nothing of what is there.
    fn fail(&self, step: &Step) {
        if step.action == Action::Delete {
            return;
        }
        let urn = &step.urn;
        self.failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(urn.clone());
    }

    fn has_failed(&self, urn: &Urn) -> bool {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).contains(urn)
    }

    /// Carries one step out. What fails is reported, and leaves the state as it says.
    async fn step(&self, step: &Step) -> End {
        if self.unsettled.contains(&step.urn) {
            self.report.left_alone(&step.urn);
            return End::Failed;
        }
        let ended = match &step.action {
            Action::Same => self.note(step).await,
            Action::Create => self.create(step).await,
            Action::Update(_) => self.update(step).await,
            Action::Replace(diff) if diff.delete_before_replace => {
                match self.delete(step, DeleteReason::BeforeReplacement).await {
                    Ok(_) => self.create(step).await,
                    Err(error) => Err(error),
                }
            }
            Action::Replace(_) => self.create(step).await,
            Action::Delete => self.delete(step, DeleteReason::NotDeclared).await,
        };
        match ended {
            Ok(None) => End::Done,
            Ok(Some(what)) => {
                self.report.done(
                    &step.urn,
                    if matches!(step.action, Action::Replace(_)) {
                        "replaced"
                    } else {
                        what
                    },
                );
                End::Done
            }
            Err(message) => {
                self.fail(step);
                self.report.failed(step, &message);
                End::Failed
            }
        }
    }

    /// Keeps the inputs of a resource that stays as it is, where they are written in another way now.
    async fn note(&self, step: &Step) -> Result<Option<&'static str>, String> {
        let is_same = step
            .old
            .as_ref()
            .is_some_and(|old| old.inputs == step.inputs && old.dependencies == step.dependencies);
        if !is_same {
            self.store
                .commit(|deployment| {
                    for resource in deployment
                        .resources
                        .iter_mut()
                        .filter(|resource| resource.urn == step.urn && !resource.delete)
                    {
                        resource.inputs.clone_from(&step.inputs);
                        resource.dependencies.clone_from(&step.dependencies);
                    }
                })
                .await
                .map_err(unwritten)?;
        }
        Ok(None)
    }

    async fn create(&self, step: &Step) -> Result<Option<&'static str>, String> {
        let meant = ResourceState {
            urn: step.urn.clone(),
            id: step.id.clone().unwrap_or_default(),
            inputs: step.inputs.clone(),
            outputs: Default::default(),
            dependencies: step.dependencies.clone(),
            delete: false,
        };
        let begun = self.begin(OperationType::Creating, &meant).await?;
        let context = self.context(&step.urn);
        let created = self
            .session
            .tenant
            .create(&context, step.urn.token(), &step.inputs)
            .await;
        match created {
            Ok(Resource { id, outputs }) => {
                let made = ResourceState { id, outputs, ..meant };
                if matches!(step.action, Action::Replace(_)) {
                    self.replaced
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .insert(step.urn.clone());
                }
                self.store
                    .end(&begun, |deployment| put(deployment, made))
                    .await
                    .map_err(unwritten)?;
                Ok(Some("created"))
            }
            Err(error) => Err(self.ended(&begun, error).await),
        }
    }

    async fn update(&self, step: &Step) -> Result<Option<&'static str>, String> {
        let old = step.old.clone().ok_or("there is nothing to update")?;
        let begun = self.begin(OperationType::Updating, &old).await?;
        let context = self.context(&step.urn);
        let updated = self
            .session
            .tenant
            .update(&context, step.urn.token(), &existing(&old), &step.inputs)
            .await;
        match updated {
            Ok(Resource { id, outputs }) => {
                let changed = ResourceState {
                    id,
                    outputs,
                    inputs: step.inputs.clone(),
                    dependencies: step.dependencies.clone(),
                    ..old
                };
                self.store
                    .end(&begun, |deployment| {
                        for resource in deployment
                            .resources
                            .iter_mut()
                            .filter(|resource| resource.urn == changed.urn && !resource.delete)
                        {
                            *resource = changed.clone();
                        }
                    })
                    .await
                    .map_err(unwritten)?;
                Ok(Some("updated"))
            }
            Err(error) => Err(self.ended(&begun, error).await),
        }
    }

    async fn delete(&self, step: &Step, reason: DeleteReason) -> Result<Option<&'static str>, String> {
        let old = step.old.clone().ok_or("there is nothing to delete")?;
        let begun = self.begin(OperationType::Deleting, &old).await?;
        let context = self.context(&step.urn);
        let (session, token) = (&self.session, step.urn.token());
        let deleted = session
            .tenant
            .delete(&session.run, &context, &step.urn, token, &existing(&old), reason)
            .await;
        let what = match deleted {
            Ok(Deleted::Removed) => "deleted",
            Ok(Deleted::KeptFor(owner)) if self.has_failed(&owner) => {
                self.store.end(&begun, |_| {}).await.map_err(unwritten)?;
                return Err(format!(
                    "its grant is declared by `{}` now, which failed; it stays in the state",
                    owner.name()
                ));
            }
            Ok(Deleted::KeptFor(owner)) if owner != step.urn => {
                println!(
                    "   {}: its grant stays, declared by `{}` now",
                    step.urn.name(),
                    owner.name()
                );
                "handed over"
            }
            Ok(Deleted::KeptFor(_)) => "deleted",
            Err(error) => return Err(self.ended(&begun, error).await),
        };
        self.store
            .end(&begun, |deployment| {
                deployment.resources.retain(|resource| !same(resource, &old))
            })
            .await
            .map_err(unwritten)?;
        let replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((!old.delete || !replaced.contains(&step.urn)).then_some(what))
    }

    /// Notes that an operation is begun, before its first request.
    async fn begin(&self, kind: OperationType, resource: &ResourceState) -> Result<PendingOperation, String> {
        let begun = PendingOperation {
            kind,
            resource: resource.clone(),
        };
        self.store.begin(&begun).await.map_err(unwritten)?;
        Ok(begun)
    }

    /// Notes that an operation failed. One whose effect is not known stays pending: the next run finds out.
    async fn ended(&self, begun: &PendingOperation, error: OperationError) -> String {
        if error.may_have_effect {
            return format!("{error}; whether it took effect is not known, and the next run will find out");
        }
        match self.store.end(begun, |_| {}).await {
            Ok(()) => error.to_string(),
            Err(unwritable) => format!("{error}; {}", unwritten(unwritable)),
        }
    }

    fn context(&self, urn: &Urn) -> bindery_sandbox::Context {
        let urn = urn.clone();
        self.session.context(move |event| Report::on_event(&urn, &event))
    }
}

/// Puts a resource into its place: after what it depends on, and before what it replaces, which is then to be deleted.
pub fn put(deployment: &mut Deployment, made: ResourceState) {
    let place = deployment
        .resources
        .iter()
        .position(|resource| resource.urn == made.urn && !resource.delete);
    match place {
        Some(place) => {
            if let Some(old) = deployment.resources.get_mut(place) {
                old.delete = true;
            }
            deployment.resources.insert(place, made);
        }
        None => deployment.resources.push(made),
    }
}

fn unwritten(error: std::io::Error) -> String {
    format!("the state cannot be written: {error}")
}

//! What is done for one step: each operation stands in the journal before its first request, and its outcome after.

use std::sync::Arc;

use bindery_resource::{PropertyMap, Urn};
use bindery_sandbox::operation::Resource;
use bindery_sandbox::{Context, DeleteReason, Deleted, ErrorCode, OperationError};
use bindery_stack::step::{exists, inputs, keep_ignored, step as plan_step};
use bindery_stack::{
    Action, Change, Diagnostic, OperationType, Outcome, PendingOperation, Provider, ResourceState, Step,
};

use super::Apply;
use crate::session::Session;

/// How an operation ended: what was done, if a person wants to hear of it; or what is wrong.
pub(super) type Ended = Result<Option<&'static str>, Vec<Diagnostic>>;

/// What became of a removal.
enum Removed {
    /// It was removed.
    Gone,
    /// It stays, because this resource has it now.
    HandedOver(Urn),
    /// It stays, because this resource is to have it, and does not yet.
    Awaited(Urn),
}

fn existing(state: &ResourceState) -> Resource {
    Resource {
        id: state.id.clone(),
        outputs: state.outputs.clone(),
    }
}

impl Apply {
    /// Carries one step out, by then with all of its inputs known.
    pub(super) async fn carry_out(&self, step: &Step) -> Ended {
        let resolved;
        let step = if step.is_known() {
            step
        } else {
            resolved = self.resolved(step).await?;
            &resolved
        };
        match &step.action {
            Action::Same => self.note(step).await,
            Action::Create => {
                let context = self.session.context(self.report.listener(&step.urn));
                self.create(step, context).await
            }
            Action::Import(id) => self.adopt(step, id).await,
            Action::Update(_) => self.update(step).await,
            Action::Replace(diff) => {
                if diff.delete_before_replace && !step.kept.retain_on_delete {
                    self.delete_first(step).await?;
                    // The old one is gone: not even an interrupt ends this before the new one is there.
                    let context = self.session.context_to_its_end(self.report.listener(&step.urn));
                    self.create(step, context).await.map(|_| Some("replaced"))
                } else {
                    let context = self.session.context(self.report.listener(&step.urn));
                    self.create(step, context).await.map(|_| Some("replaced"))
                }
            }
            Action::Delete => self.delete(step).await,
            Action::Forget => self.forget(step).await,
        }
    }

    /// The step as it is now that what it refers to exists.
    async fn resolved(&self, step: &Step) -> Result<Step, Vec<Diagnostic>> {
        let declaration = self.file.resources.get(step.urn.name());
        let declaration = declaration.ok_or_else(|| vec![problem(step, "it is not declared")])?;
        let inputs = inputs(declaration, &self.file, &mut self.progress().scope)?;
        let (urn, dependencies) = (step.urn.clone(), step.dependencies.clone());
        let session: &Session = &self.session;
        plan_step(declaration, urn, inputs, dependencies, step.old.as_ref(), session).await
    }

    /// What others can refer to from now on.
    fn export(&self, state: &ResourceState) {
        self.progress().done.insert(state.urn.clone());
        self.report.became(state);
        if let Some(properties) = self.types.get(state.urn.token()) {
            let exported = exists(state, Arc::clone(properties));
            self.progress().scope.export(state.urn.name(), exported);
        }
    }

    /// Keeps what is written in another way now of a resource that stays as it is.
    async fn note(&self, step: &Step) -> Ended {
        let Some(old) = &step.old else { return Ok(None) };
        let now = step.becomes(old.id.clone(), old.outputs.clone());
        self.export(&now);
        if now != *old {
            self.store
                .commit(vec![Change::Note(now)])
                .await
                .map_err(|error| unwritten(step, &error))?;
        }
        Ok(None)
    }

    async fn create(&self, step: &Step, context: Context) -> Ended {
        let meant = step.becomes(step.id.clone().unwrap_or_default(), PropertyMap::new());
        let begun = self.begin(step, OperationType::Creating, &meant).await?;
        let created = self
            .session
            .tenant
            .create(&context, step.urn.token(), &step.inputs)
            .await;
        match created {
            Ok(Resource { id, outputs }) => {
                let made = step.becomes(id, outputs);
                if matches!(step.action, Action::Replace(_)) {
                    self.progress().replaced.insert(step.urn.clone());
                }
                self.end(step, &begun, Outcome::Made(made.clone())).await?;
                self.export(&made);
                Ok(Some("created"))
            }
            Err(error) => Err(self.failed(step, &begun, error).await),
        }
    }

    /// Takes over what exists, if it is as declared. Nothing is written anywhere but to the state.
    async fn adopt(&self, step: &Step, id: &str) -> Ended {
        let context = self.session.context(self.report.listener(&step.urn));
        let found = self.session.tenant.read(&context, step.urn.token(), id, None).await;
        let found = found.map_err(|error| vec![problem(step, error)])?;
        let Some(Resource { id: found_id, outputs }) = found else {
            let hint = "remove `import` to create it".to_string();
            let wrong = problem(
                step,
                format!("nothing exists under `{id}`, so there is nothing to adopt"),
            );
            return Err(vec![Diagnostic {
                hint: Some(hint),
                ..wrong
            }]);
        };
        let mut step = step.clone();
        if let Some(declaration) = self.file.resources.get(step.urn.name()) {
            keep_ignored(declaration, &mut step.inputs, &PropertyMap::new(), &outputs);
        }
        // What is adopted may be another grant than the one that is declared: it is the one that is claimed.
        let checked = self.session.check(&step.urn, &step.inputs).await;
        step.inputs = checked.map_err(|error| vec![problem(&step, error)])?.inputs;
        let step = &step;
        let found = step.becomes(found_id, outputs);
        let diff = self
            .session
            .diff(&found, &step.inputs)
            .await
            .map_err(|error| vec![problem(step, error)])?;
        if !diff.changes.is_empty() {
            let differs = diff.changes.iter().map(|change| {
                let shown = |properties| {
                    change
                        .path
                        .get(properties)
                        .map_or("none".to_string(), ToString::to_string)
                };
                format!(
                    "`{}` is {}, not {}",
                    change.path,
                    shown(&found.outputs),
                    shown(&step.inputs)
                )
            });
            let differs: Vec<String> = differs.collect();
            let wrong = problem(step, format!("what exists is not as declared: {}", differs.join("; ")));
            return Err(vec![Diagnostic {
                hint: Some("declare it as it is, run `up`, and change it after that".to_string()),
                ..wrong
            }]);
        }
        self.store
            .commit(vec![Change::Note(found.clone())])
            .await
            .map_err(|error| unwritten(step, &error))?;
        self.export(&found);
        Ok(Some("adopted"))
    }

    async fn update(&self, step: &Step) -> Ended {
        let old = old(step)?;
        let begun = self.begin(step, OperationType::Updating, &old).await?;
        let context = self.session.context(self.report.listener(&step.urn));
        let (token, tenant) = (step.urn.token(), &self.session.tenant);
        match tenant.update(&context, token, &existing(&old), &step.inputs).await {
            Ok(Resource { id, outputs }) => {
                let changed = step.becomes(id, outputs);
                self.end(step, &begun, Outcome::Changed(changed.clone())).await?;
                self.export(&changed);
                Ok(Some("updated"))
            }
            Err(error) => Err(self.failed(step, &begun, error).await),
        }
    }

    /// Removes a resource, unless another has what it granted.
    async fn delete(&self, step: &Step) -> Ended {
        let old = old(step)?;
        let what = match self.remove(step, &old, DeleteReason::NotDeclared).await? {
            Removed::Gone => "deleted",
            Removed::HandedOver(owner) if owner == step.urn => "deleted",
            Removed::HandedOver(owner) => {
                let name = step.urn.name();
                self.report.line(format!(
                    "   {name}: its grant stays, declared by `{}` now",
                    owner.name()
                ));
                "handed over"
            }
            Removed::Awaited(owner) => {
                let message = format!(
                    "its grant is declared by `{}` now, which does not have it yet; it stays in the state",
                    owner.name()
                );
                return Err(vec![problem(step, message)]);
            }
        };
        let is_told_of = old.delete && self.progress().replaced.contains(&step.urn);
        Ok((!is_told_of).then_some(what))
    }

    /// Removes the old self of a resource that is deleted before it is replaced. What another is to have instead is left
    /// for later, when it is known whether that has it.
    async fn delete_first(&self, step: &Step) -> Result<(), Vec<Diagnostic>> {
        let old = old(step)?;
        self.remove(step, &old, DeleteReason::BeforeReplacement)
            .await
            .map(|_| ())
    }

    async fn remove(&self, step: &Step, old: &ResourceState, reason: DeleteReason) -> Result<Removed, Vec<Diagnostic>> {
        let begun = self.begin(step, OperationType::Deleting, old).await?;
        let context = self.session.context(self.report.listener(&step.urn));
        let (session, token) = (&self.session, step.urn.token());
        let tenant = &session.tenant;
        let deleted = tenant
            .delete(&session.run, &context, &step.urn, token, &existing(old), reason)
            .await;
        let removed = match deleted {
            Ok(Deleted::Removed) => Removed::Gone,
            Ok(Deleted::KeptFor(owner)) if self.has(&owner, old).await => Removed::HandedOver(owner),
            Ok(Deleted::KeptFor(owner)) => Removed::Awaited(owner),
            Err(error) => return Err(self.failed(step, &begun, error).await),
        };
        let outcome = match removed {
            Removed::Gone | Removed::HandedOver(_) => Outcome::Gone,
            Removed::Awaited(_) => Outcome::Nothing,
        };
        self.end(step, &begun, outcome).await?;
        Ok(removed)
    }

    /// Whether a resource is known to exist that occupies what another does.
    async fn has(&self, owner: &Urn, other: &ResourceState) -> bool {
        let known = self.store.look(|deployment| deployment.resource(owner).cloned());
        let Some(known) = known else { return false };
        let footprint = |state: ResourceState| async move {
            let tenant = &self.session.tenant;
            tenant
                .footprint(state.urn.token(), &state.id, &state.outputs)
                .await
                .ok()
        };
        let (known_footprint, other_footprint) = (footprint(known.clone()).await, footprint(other.clone()).await);
        let is_same_claim =
            known_footprint.is_some_and(|known| other_footprint.is_some_and(|other| known.claim == other.claim));
        // One that this run has no step for may have been overwritten by the other.
        let is_certain = *owner == other.urn || self.progress().done.contains(owner);
        is_same_claim && (is_certain || self.session.is_alike(&known, other).await)
    }

    /// Lets go of a resource, which stays as it is.
    async fn forget(&self, step: &Step) -> Ended {
        let old = old(step)?;
        let is_told_of = old.delete && self.progress().replaced.contains(&step.urn);
        self.store
            .commit(vec![Change::Forget(old)])
            .await
            .map_err(|error| unwritten(step, &error))?;
        Ok((!is_told_of).then_some("let go"))
    }

    /// Notes that an operation is begun, before its first request.
    async fn begin(
        &self,
        step: &Step,
        kind: OperationType,
        resource: &ResourceState,
    ) -> Result<PendingOperation, Vec<Diagnostic>> {
        let begun = PendingOperation {
            kind,
            resource: resource.clone(),
        };
        self.store
            .begin(&begun)
            .await
            .map_err(|error| unwritten(step, &error))?;
        Ok(begun)
    }

    /// Notes an operation's outcome.
    async fn end(&self, step: &Step, begun: &PendingOperation, outcome: Outcome) -> Result<(), Vec<Diagnostic>> {
        self.store
            .end(begun, outcome)
            .await
            .map_err(|error| unwritten(step, &error))
    }

    /// Notes that an operation failed. One whose effect is not known stays pending: the next run finds out.
    async fn failed(&self, step: &Step, begun: &PendingOperation, error: OperationError) -> Vec<Diagnostic> {
        if error.code == ErrorCode::Cancelled && !error.may_have_effect {
            // Nothing was done, and nothing is wrong with it: it is skipped.
            return match self.store.end(begun, Outcome::Nothing).await {
                Ok(()) => Vec::new(),
                Err(unwritable) => unwritten(step, &unwritable),
            };
        }
        if error.may_have_effect {
            let message = format!("{error}; whether it took effect is not known, and the next run will find out");
            return vec![problem(step, message)];
        }
        let mut problems = vec![problem(step, &error)];
        if let Err(unwritable) = self.store.end(begun, Outcome::Nothing).await {
            problems.extend(unwritten(step, &unwritable));
        }
        problems
    }
}

fn old(step: &Step) -> Result<ResourceState, Vec<Diagnostic>> {
    step.old
        .clone()
        .ok_or_else(|| vec![problem(step, "nothing is known to exist")])
}

fn problem(step: &Step, message: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::of_urn(&step.urn, step.position, message)
}

fn unwritten(step: &Step, error: &std::io::Error) -> Vec<Diagnostic> {
    vec![problem(step, format!("the state cannot be written: {error}"))]
}

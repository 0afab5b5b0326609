//! Create, read, update and delete: committed together with others on the same target, repeated while that is worth it, and
//! its end is known when each returns, or said to be unknown.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bindery_resource::{CheckFailure, Footprint, PropertyMap, Urn, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmtime::component::Val;

use crate::answer;
use crate::commit::{Act, Lifecycle, Operation, Outcome, contract};
use crate::component::{LifecycleFunctions, ResourceType};
use crate::convert;
use crate::error::{CallError, ErrorCode, OperationError};
use crate::retry;
use crate::schema::RecordType;
use crate::tenant::{DeleteReason, Deleted, Run, Tenant};

/// How long the read may take that settles an operation whose deadline has passed. A service that answers at all does so
/// well within this.
const SETTLE_TIME: Duration = Duration::from_secs(10);

/// How long an attempt that is under way may take once its operation is cancelled. A service that answers at all does so well
/// within this, and a person who waits for the end of a run is not kept for longer.
pub(crate) const CANCEL_TIME: Duration = Duration::from_secs(5);

/// Which operations are committed together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    token: String,
    target: String,
    lane: Lane,
}

/// Reads do not wait for writes, which wait for one another, nor fail with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Lane {
    Reads,
    Changes,
    /// Reads that find out what became of changes: they are short of time, and wait for nothing else.
    Settling,
}

/// What happens while an operation runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An attempt failed, and is repeated.
    Waiting {
        /// How many attempts have failed.
        attempt: u32,
        /// How long until the next.
        wait: Duration,
        /// Why it failed.
        reason: String,
        /// How many operations failed and wait together, this one among them.
        together: usize,
        /// Which of them this one is: the first is 0.
        place: usize,
    },
    /// The provider says something that a person should know.
    Warning(String),
    /// The provider says something that helps to find a fault.
    Debug(String),
}

/// Until when an operation may run, what ends it earlier, and who hears of it.
#[derive(Clone)]
pub struct Context {
    /// No attempt is made after this.
    pub deadline: Instant,
    /// Ends the operation before its next attempt. One that is under way has a few seconds to come to its end.
    pub cancel: CancellationToken,
    /// Hears what happens. It must not block.
    pub on_event: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Context {
    /// Tells of what a guest said. After an attempt that may have had an effect, what it warns of may be its own doing.
    pub(crate) fn tell(&self, events: impl IntoIterator<Item = Event>, unsure: bool) {
        let is_told = |event: &Event| !(unsure && matches!(event, Event::Warning(_)));
        events
            .into_iter()
            .filter(is_told)
            .for_each(|event| (self.on_event)(event));
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// A resource as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its id.
    pub id: String,
    /// Its outputs, without the id.
    pub outputs: PropertyMap,
}

impl Tenant {
    /// Makes a resource from checked inputs.
    ///
    /// # Errors
    /// When it was not made; `may_have_effect` where that is not known.
    pub async fn create(
        &self,
        context: &Context,
        token: &str,
        inputs: &PropertyMap,
    ) -> Result<Resource, OperationError> {
        let ty = self.resource_type(token)?;
        let args = lower_known(&ty.args, inputs)?;
        let (footprint, id) = self.occupied_by(ty, inputs).await?;
        let target = footprint.as_ref().map(|footprint| footprint.target.as_str());
        let made = self
            .carry_out(context, ty, target, Lane::Changes, Act::Create(args))
            .await
            .and_then(|state| made(self, ty, "create", state));
        let error = match made {
            Ok(resource) => return Ok(resource),
            Err(error) => error,
        };
        let Some(id) = id.filter(|_| error.may_have_effect) else {
            return Err(error);
        };
        // One read settles whether it was made after all. What is there and is not as declared was there before.
        let found = self.settled(context, ty, target, &id, None).await;
        if let Ok(Some(resource)) = &found
            && self.is_as_declared(token, resource, inputs).await
        {
            // Equal by the rules, and spelled as it was declared.
            let declared = inputs.iter().filter(|(name, _)| ty.state.property(name).is_some());
            let mut resource = resource.clone();
            let declared = declared.map(|(name, value)| (name.clone(), value.clone()));
            resource.outputs.extend(declared);
            return Ok(resource);
        }
        Err(settled_error(error, matches!(found, Ok(None))))
    }

    async fn is_as_declared(&self, token: &str, resource: &Resource, inputs: &PropertyMap) -> bool {
        let diff = self.diff(token, &resource.id, &resource.outputs, inputs).await;
        diff.is_ok_and(|diff| diff.changes.is_empty())
    }

    /// The resource as it is now; none where it is gone. `last` is absent on import, where `id` may be what a person knows.
    ///
    /// # Errors
    /// When that could not be found out.
    pub async fn read(
        &self,
        context: &Context,
        token: &str,
        id: &str,
        last: Option<&PropertyMap>,
    ) -> Result<Option<Resource>, OperationError> {
        let ty = self.resource_type(token)?;
        // What is imported is not known yet, nor what it is a part of.
        let mut target = None;
        let mut state = None;
        if let Some(outputs) = last {
            let last = lower_state(ty, id, outputs)?;
            // Without `commit` there is nothing to share.
            if lifecycle(ty)?.commit.is_some() {
                target = Some(self.footprint_of(ty, &last).await?.target);
            }
            state = Some(Box::new(last));
        }
        let read = Act::Read(id.to_string(), state);
        self.look(context, ty, target.as_deref(), Lane::Reads, read).await
    }

    /// The resource that checked inputs make, under the id that they give it; none where it is not there.
    ///
    /// # Errors
    /// When that could not be found out.
    pub async fn find(
        &self,
        context: &Context,
        token: &str,
        id: &str,
        inputs: &PropertyMap,
    ) -> Result<Option<Resource>, OperationError> {
        let ty = self.resource_type(token)?;
        // Inputs that are no longer accepted were made under another configuration: the id says enough.
        let footprint = self.occupied_by(ty, inputs).await.unwrap_or_default().0;
        let footprint = footprint.filter(|_| {
            ty.lifecycle
                .as_ref()
                .is_some_and(|functions| functions.commit.is_some())
        });
        let target = footprint.map(|footprint| footprint.target);
        let read = Act::Read(id.to_string(), None);
        self.look(context, ty, target.as_deref(), Lane::Reads, read).await
    }

    async fn look(
        &self,
        context: &Context,
        ty: &ResourceType,
        target: Option<&str>,
        lane: Lane,
        read: Act,
    ) -> Result<Option<Resource>, OperationError> {
        let found = self.carry_out(context, ty, target, lane, read).await;
        let found = found.map_err(|error| OperationError {
            may_have_effect: false,
            ..error
        })?;
        found.map(|state| self.resource(ty, "read", state)).transpose()
    }

    /// Changes a resource in place.
    ///
    /// # Errors
    /// When it was not changed; `may_have_effect` where that is not known.
    pub async fn update(
        &self,
        context: &Context,
        token: &str,
        old: &Resource,
        inputs: &PropertyMap,
    ) -> Result<Resource, OperationError> {
        let ty = self.resource_type(token)?;
        let state = lower_state(ty, &old.id, &old.outputs)?;
        let args = lower_known(&ty.args, inputs)?;
        let target = Some(self.footprint_of(ty, &state).await?.target);
        let target = target.as_deref();
        let updated = self
            .carry_out(context, ty, target, Lane::Changes, Act::Update(state, args))
            .await
            .and_then(|state| made(self, ty, "update", state));
        let error = match updated {
            Ok(resource) => return Ok(resource),
            Err(error) => error,
        };
        if error.may_have_effect
            && let Ok(Some(resource)) = self.settled(context, ty, target, &old.id, Some(&old.outputs)).await
            && self.is_as_declared(token, &resource, inputs).await
        {
            return Ok(resource);
        }
        Err(error)
    }

    /// Removes a resource, unless a resource of this run owns what it occupies.
    ///
    /// # Errors
    /// When it was not removed; `may_have_effect` where that is not known.
    pub async fn delete(
        &self,
        run: &Run,
        context: &Context,
        urn: &Urn,
        token: &str,
        old: &Resource,
        reason: DeleteReason,
    ) -> Result<Deleted, OperationError> {
        let ty = self.resource_type(token)?;
        let state = lower_state(ty, &old.id, &old.outputs)?;
        let Footprint { target, claim } = self.footprint_of(ty, &state).await?;
        let (run, urn) = (run.clone(), urn.clone());
        let delete = Operation {
            act: Act::Delete(state),
            keeper: Some(Arc::new(move || run.keeps(&claim, &urn, reason))),
        };
        let deleted = self.commit(context, ty, Some(&target), Lane::Changes, delete).await;
        let deleted = deleted.and_then(|outcome| match outcome {
            Outcome::Done(Some(_)) => Err(contract("delete", "a resource that is still there".to_string())),
            outcome => Ok(outcome),
        });
        match deleted {
            Ok(Outcome::Done(_)) => Ok(Deleted::Removed),
            Ok(Outcome::KeptFor(owner)) => Ok(Deleted::KeptFor(owner)),
            Err(error) if error.may_have_effect => {
                let found = self
                    .settled(context, ty, Some(&target), &old.id, Some(&old.outputs))
                    .await;
                match found {
                    Ok(None) => Ok(Deleted::Removed),
                    found => Err(settled_error(error, matches!(found, Ok(Some(_))))),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Carries out what no other resource can stand against. Gives the state, if the resource exists.
    async fn carry_out(
        &self,
        context: &Context,
        ty: &ResourceType,
        target: Option<&str>,
        lane: Lane,
        act: Act,
    ) -> Result<Option<Val>, OperationError> {
        match self.commit(context, ty, target, lane, act.into()).await? {
            Outcome::Done(state) => Ok(state),
            Outcome::KeptFor(owner) => Err(OperationError::new(
                ErrorCode::Internal,
                format!("kept for `{owner}`, and not asked to be"),
            )),
        }
    }

    /// Commits an operation with others on its target, or alone where that is not known.
    async fn commit(
        &self,
        context: &Context,
        ty: &ResourceType,
        target: Option<&str>,
        lane: Lane,
        operation: Operation,
    ) -> Result<Outcome, OperationError> {
        // The end of the tenant cancels what it has under way.
        let cancel = context.cancel.child_token();
        let context = &Context {
            cancel: cancel.clone(),
            ..context.clone()
        };
        let committing = self.commit_until_cancelled(context, ty, target, lane, operation);
        tokio::pin!(committing);
        tokio::select! {
            outcome = &mut committing => outcome,
            () = self.guest.ended.cancelled() => {
                cancel.cancel();
                committing.await
            }
        }
    }

    async fn commit_until_cancelled(
        &self,
        context: &Context,
        ty: &ResourceType,
        target: Option<&str>,
        lane: Lane,
        operation: Operation,
    ) -> Result<Outcome, OperationError> {
        let functions = lifecycle(ty)?;
        let lifecycle = || Lifecycle {
            guest: Arc::clone(&self.guest),
            functions: functions.clone(),
        };
        let Some(target) = target else {
            let lifecycle = lifecycle();
            return retry::until_done(context, |unsure| {
                alone(&lifecycle, context, operation.act.clone(), unsure)
            })
            .await;
        };
        let key = Key {
            token: ty.token.to_string(),
            target: target.to_string(),
            lane,
        };
        retry::until_done(context, |unsure| {
            self.queues.commit(&key, lifecycle, context, operation.clone(), unsure)
        })
        .await
    }

    /// What became of an operation whose end is not known: a read, past the deadline if need be.
    async fn settled(
        &self,
        context: &Context,
        ty: &ResourceType,
        target: Option<&str>,
        id: &str,
        last: Option<&PropertyMap>,
    ) -> Result<Option<Resource>, OperationError> {
        let last = match last {
            Some(outputs) => Some(Box::new(lower_state(ty, id, outputs)?)),
            None => None,
        };
        let context = Context {
            deadline: Instant::now() + SETTLE_TIME,
            cancel: CancellationToken::new(),
            on_event: Arc::clone(&context.on_event),
        };
        let read = Act::Read(id.to_string(), last);
        self.look(&context, ty, target, Lane::Settling, read).await
    }

    /// Takes the id out of a state.
    #[expect(clippy::unused_self, reason = "reads as what the tenant's component gave")]
    fn resource(&self, ty: &ResourceType, name: &str, state: Val) -> Result<Resource, OperationError> {
        let mut outputs = convert::lift(&ty.state, state).map_err(|what| contract(name, what))?;
        match outputs.shift_remove("id") {
            Some(Value::String(id)) if !id.is_empty() => Ok(Resource { id, outputs }),
            _ => Err(contract(name, "a state without an id".to_string())),
        }
    }
}

/// One attempt outside of any queue.
async fn alone(lifecycle: &Lifecycle, context: &Context, act: Act, unsure: bool) -> Result<Outcome, OperationError> {
    let is_read = matches!(act, Act::Read(..));
    let too_long_after_cancelling = async {
        context.cancel.cancelled().await;
        tokio::time::sleep(CANCEL_TIME).await;
    };
    let answer = tokio::select! {
        answer = lifecycle.attempt(act, context.deadline) => answer,
        () = too_long_after_cancelling => {
            return Err(OperationError {
                may_have_effect: !is_read,
                ..OperationError::new(ErrorCode::Cancelled, "cancelled while there was no answer")
            });
        }
    };
    context.tell(answer.events, unsure);
    answer.outcome
}

/// The error of an operation that may have had an effect in an earlier attempt. Where it ended in a refusal, and a read finds
/// that the resource is not there which was to be made, or is there which was to go, it had none.
fn settled_error(error: OperationError, is_without_effect: bool) -> OperationError {
    let is_refusal = match error.code {
        ErrorCode::NotFound
        | ErrorCode::InvalidArgument
        | ErrorCode::PermissionDenied
        | ErrorCode::Unauthenticated
        | ErrorCode::FailedPrecondition => true,
        ErrorCode::Conflict
        | ErrorCode::ResourceExhausted
        | ErrorCode::Unavailable
        | ErrorCode::DeadlineExceeded
        | ErrorCode::Cancelled
        | ErrorCode::Internal => false,
    };
    OperationError {
        may_have_effect: !(is_refusal && is_without_effect),
        ..error
    }
}

/// What a create or an update gave, which always has a state.
fn made(tenant: &Tenant, ty: &ResourceType, name: &str, state: Option<Val>) -> Result<Resource, OperationError> {
    let state = answer::payload(state).map_err(|what| contract(name, what))?;
    tenant.resource(ty, name, state)
}

fn lifecycle(ty: &ResourceType) -> Result<&LifecycleFunctions, CallError> {
    ty.lifecycle
        .as_ref()
        .ok_or_else(|| CallError::PlannerOnly(ty.token.to_string()))
}

/// Puts the id into a state.
pub(crate) fn lower_state(ty: &ResourceType, id: &str, outputs: &PropertyMap) -> Result<Val, CallError> {
    let mut state = outputs.clone();
    state.insert("id".to_string(), Value::String(id.to_string()));
    lower_known(&ty.state, &state)
}

/// A record in which nothing is a placeholder: what is carried out, or exists.
fn lower_known(ty: &RecordType, properties: &PropertyMap) -> Result<Val, CallError> {
    let lowered = convert::lower(ty, properties).map_err(CallError::Properties)?;
    if lowered.unknown.is_empty() {
        return Ok(lowered.record);
    }
    let unknown = lowered
        .unknown
        .into_iter()
        .map(|path| CheckFailure::new(path, "is not known yet"));
    Err(CallError::Properties(unknown.collect()))
}

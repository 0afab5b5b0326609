//! Create, read, update and delete: each is repeated while that is worth it, one at a time for each target, and its end is
//! known when it returns, or said to be unknown.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bindery_resource::{CheckFailure, Footprint, PropertyMap, Urn, Value};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use wasmtime::component::{ComponentExportIndex, Val};

use crate::answer;
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
const CANCEL_TIME: Duration = Duration::from_secs(5);

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
        let functions = lifecycle(ty)?;
        let args = lower_known(&ty.args, inputs)?;
        let (footprint, id) = self.occupied_by(ty, inputs).await?;
        let _turn = match &footprint {
            Some(footprint) => Some(self.turn(context, token, footprint).await?),
            None => None,
        };
        let params = [self.config.clone(), args];
        let made = retry::until_done(context, |unsure| {
            self.attempt(context, &functions.create, "create", &params, unsure)
        })
        .await;
        let error = match made {
            Ok(state) => return self.resource(ty, "create", state),
            Err(error) => error,
        };
        // One read settles whether it was made after all. What is there and is not as declared was there before.
        if let Some(id) = id.filter(|_| error.may_have_effect)
            && let Ok(Some(mut resource)) = self.settled(context, ty, &id, None).await
            && self.is_as_declared(token, &resource, inputs).await
        {
            // Equal by the rules, and spelled as it was declared.
            let declared = inputs.iter().filter(|(name, _)| ty.state.property(name).is_some());
            let declared = declared.map(|(name, value)| (name.clone(), value.clone()));
            resource.outputs.extend(declared);
            return Ok(resource);
        }
        Err(error)
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
        let functions = lifecycle(ty)?;
        let last = match last {
            Some(outputs) => Val::Option(Some(Box::new(lower_state(ty, id, outputs)?))),
            None => Val::Option(None),
        };
        let params = [self.config.clone(), Val::String(id.to_string()), last];
        let found = retry::until_done(context, |unsure| {
            self.attempt(context, &functions.read, "read", &params, unsure)
        })
        .await?;
        self.found(ty, found)
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
        let functions = lifecycle(ty)?;
        let state = lower_state(ty, &old.id, &old.outputs)?;
        let args = lower_known(&ty.args, inputs)?;
        let footprint = self.footprint_of(ty, &state).await?;
        let _turn = self.turn(context, token, &footprint).await?;
        let params = [self.config.clone(), state, args];
        let updated = retry::until_done(context, |unsure| {
            self.attempt(context, &functions.update, "update", &params, unsure)
        })
        .await;
        let error = match updated {
            Ok(state) => return self.resource(ty, "update", state),
            Err(error) => error,
        };
        if error.may_have_effect
            && let Ok(Some(resource)) = self.settled(context, ty, &old.id, Some(&old.outputs)).await
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
        let functions = lifecycle(ty)?;
        let state = lower_state(ty, &old.id, &old.outputs)?;
        let footprint = self.footprint_of(ty, &state).await?;
        let _turn = self.turn(context, token, &footprint).await?;
        if let Some(owner) = run.keeps(&footprint.claim, urn, reason) {
            return Ok(Deleted::KeptFor(owner));
        }
        let params = [self.config.clone(), state];
        let deleted = retry::until_done(context, |unsure| {
            self.attempt(context, &functions.delete, "delete", &params, unsure)
        })
        .await;
        match deleted {
            Ok(_) => Ok(Deleted::Removed),
            Err(error) if error.may_have_effect => match self.settled(context, ty, &old.id, Some(&old.outputs)).await {
                Ok(None) => Ok(Deleted::Removed),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// The turn of a target. Nothing has been done while it is waited for.
    async fn turn(
        &self,
        context: &Context,
        token: &str,
        footprint: &Footprint,
    ) -> Result<OwnedMutexGuard<()>, OperationError> {
        let waiting = |what: &str| format!("{what} while another operation on `{}` was under way", footprint.target);
        tokio::select! {
            turn = self.queues.turn(token, &footprint.target) => Ok(turn),
            () = context.cancel.cancelled() => Err(OperationError::new(ErrorCode::Cancelled, waiting("cancelled"))),
            () = sleep_until(context.deadline) => {
                Err(OperationError::new(ErrorCode::DeadlineExceeded, waiting("the deadline passed")))
            }
        }
    }

    /// One attempt. What the provider says is passed on, and what was denied is added to its error.
    async fn attempt(
        &self,
        context: &Context,
        function: &ComponentExportIndex,
        name: &'static str,
        params: &[Val],
        unsure: bool,
    ) -> Result<Option<Val>, OperationError> {
        let _call = self
            .in_flight
            .acquire()
            .await
            .map_err(|error| OperationError::new(ErrorCode::Internal, error.to_string()))?;
        let call = self
            .caller
            .call(&self.component, function, name, params, context.deadline);
        let answer = tokio::select! {
            answer = call => answer?,
            () = too_long_after_cancelling(context) => {
                let message = format!("cancelled while `{name}` had no answer");
                return Err(OperationError {
                    may_have_effect: name != "read",
                    ..OperationError::new(ErrorCode::Cancelled, message)
                });
            }
        };
        // After an attempt that may have had an effect, what the guest warns of may be its own doing.
        for line in answer.warnings.into_iter().filter(|_| !unsure) {
            (context.on_event)(Event::Warning(line));
        }
        for line in answer.debug {
            (context.on_event)(Event::Debug(line));
        }
        match answer::result(answer.value).map_err(|what| contract(name, what))? {
            Ok(value) => Ok(value),
            Err(error) => {
                let mut error = error
                    .ok_or_else(|| "an error without its value".to_string())
                    .and_then(answer::error)
                    .map_err(|what| contract(name, what))?;
                for denial in answer.denials {
                    error.message = format!("{}; {denial}", error.message);
                }
                Err(error)
            }
        }
    }

    /// What became of an operation whose end is not known: one read, past the deadline if need be.
    async fn settled(
        &self,
        context: &Context,
        ty: &ResourceType,
        id: &str,
        last: Option<&PropertyMap>,
    ) -> Result<Option<Resource>, OperationError> {
        let functions = lifecycle(ty)?;
        let last = match last {
            Some(outputs) => Some(Box::new(lower_state(ty, id, outputs)?)),
            None => None,
        };
        let params = [self.config.clone(), Val::String(id.to_string()), Val::Option(last)];
        let context = Context {
            deadline: Instant::now() + SETTLE_TIME,
            cancel: CancellationToken::new(),
            on_event: Arc::clone(&context.on_event),
        };
        let found = self.attempt(&context, &functions.read, "read", &params, false).await?;
        self.found(ty, found)
    }

    fn found(&self, ty: &ResourceType, found: Option<Val>) -> Result<Option<Resource>, OperationError> {
        let found = answer::payload(found)
            .and_then(answer::option)
            .map_err(|what| contract("read", what))?;
        found.map(|state| self.resource(ty, "read", Some(state))).transpose()
    }

    /// Takes the id out of a state.
    #[expect(clippy::unused_self, reason = "reads as what the tenant's component gave")]
    fn resource(&self, ty: &ResourceType, name: &str, state: Option<Val>) -> Result<Resource, OperationError> {
        let state = answer::payload(state).map_err(|what| contract(name, what))?;
        let mut outputs = convert::lift(&ty.state, state).map_err(|what| contract(name, what))?;
        match outputs.shift_remove("id") {
            Some(Value::String(id)) if !id.is_empty() => Ok(Resource { id, outputs }),
            _ => Err(contract(name, "a state without an id".to_string())),
        }
    }
}

/// Returns once an operation is cancelled and has had its time to end.
async fn too_long_after_cancelling(context: &Context) {
    context.cancel.cancelled().await;
    tokio::time::sleep(CANCEL_TIME).await;
}

fn contract(function: &str, what: String) -> OperationError {
    CallError::Contract {
        function: function.to_string(),
        what,
    }
    .into()
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

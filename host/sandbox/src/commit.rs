//! What a queue runs: the operations on one target in one call, where the component has `commit`; one after the other where
//! it has not.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bindery_resource::Urn;
use tokio::time::Instant;
use wasmtime::component::Val;

use crate::answer::{self, Malformed, Record};
use crate::call;
use crate::component::LifecycleFunctions;
use crate::egress::Denial;
use crate::error::{CallError, ErrorCode, OperationError};
use crate::guest::Guest;
use crate::limits;
use crate::operation::Event;
use crate::output;
use crate::queue::{Answer, Committed, Committer, Refused};

/// How many operations a commit takes at most. A policy holds 1,500 identities, and what runs out of a limit takes no more
/// than these with it.
const MOST: usize = 256;

/// What is asked of a component for one resource.
#[derive(Debug, Clone)]
pub enum Act {
    /// With the args.
    Create(Val),
    /// With the id, and the state that was last known.
    Read(String, Option<Box<Val>>),
    /// With the state, and the args.
    Update(Val, Val),
    /// With the state.
    Delete(Val),
}

impl Act {
    const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Read(..) => "read",
            Self::Update(..) => "update",
            Self::Delete(_) => "delete",
        }
    }

    fn params(self) -> Vec<Val> {
        match self {
            Self::Create(args) => vec![args],
            Self::Read(id, last) => vec![Val::String(id), Val::Option(last)],
            Self::Update(old, new) => vec![old, new],
            Self::Delete(old) => vec![old],
        }
    }

    /// The case of the contract's `operation`.
    fn case(self) -> Val {
        let name = self.name().to_string();
        let mut params = self.params();
        let payload = match params.len() {
            1 => params.pop(),
            _ => Some(Val::Tuple(params)),
        };
        Val::Variant(name, payload.map(Box::new))
    }
}

/// Who owns by now what a delete would take away, if anybody does.
pub type Keeper = Arc<dyn Fn() -> Option<Urn> + Send + Sync>;

/// An operation in a queue.
#[derive(Clone)]
pub struct Operation {
    /// What is asked.
    pub act: Act,
    /// For a delete.
    pub keeper: Option<Keeper>,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.act.fmt(f)
    }
}

impl From<Act> for Operation {
    fn from(act: Act) -> Self {
        Self { act, keeper: None }
    }
}

/// What an operation came to.
#[derive(Debug)]
pub enum Outcome {
    /// It was carried out; the state, if the resource exists.
    Done(Option<Val>),
    /// It was not, because this resource owns what it would have removed.
    KeptFor(Urn),
}

/// The functions of a resource type.
#[derive(Debug)]
pub struct Lifecycle {
    pub guest: Arc<Guest>,
    pub functions: LifecycleFunctions,
}

impl Committer for Lifecycle {
    type Operation = Operation;
    type Outcome = Outcome;

    fn most(&self) -> usize {
        if self.functions.commit.is_some() { MOST } else { 1 }
    }

    fn outcome_without(&self, operation: &Operation) -> Option<Outcome> {
        let keeper = operation.keeper.as_ref()?;
        keeper().map(Outcome::KeptFor)
    }

    async fn commit(&self, operations: Vec<Operation>, deadline: Instant) -> Committed<Outcome> {
        let Some(commit) = &self.functions.commit else {
            return self.one_by_one(operations, deadline).await;
        };
        let count = operations.len();
        let operations = operations.into_iter().map(|operation| operation.act.case()).collect();
        let params = vec![self.guest.config.clone(), Val::List(operations)];
        let called = match self.guest.call(commit, "commit", params, deadline).await {
            Ok(called) => called,
            // What has written may not be done a second time for the sake of one operation: nobody has promised that it can be.
            Err(failed) => {
                let may_be_of_one = !failed.has_written && may_be_of_one_call(&failed.error);
                return refused(may_be_of_one, failed.into(), Vec::new());
            }
        };
        let has_written = called.has_written;
        let (value, events, denials) = taken_apart(called);
        match answers(value, count) {
            Ok(Ok(mut answers)) => {
                for error in answers.iter_mut().filter_map(|answer| answer.outcome.as_mut().err()) {
                    add(&self.guest.caller.tenant, &denials, error);
                }
                Committed {
                    answers: Ok(answers),
                    events,
                }
            }
            Ok(Err(mut error)) => {
                add(&self.guest.caller.tenant, &denials, &mut error);
                let is_of_content = matches!(error.code, ErrorCode::InvalidArgument | ErrorCode::FailedPrecondition);
                refused(is_of_content && !error.may_have_effect, error, events)
            }
            Err(what) => {
                let error = OperationError {
                    may_have_effect: has_written,
                    ..contract("commit", what)
                };
                refused(!has_written, error, events)
            }
        }
    }
}

impl Lifecycle {
    /// One attempt of one operation, by its own function.
    pub async fn attempt(&self, act: Act, deadline: Instant) -> Answer<Outcome> {
        let name = act.name();
        let function = match act {
            Act::Create(_) => &self.functions.create,
            Act::Read(..) => &self.functions.read,
            Act::Update(..) => &self.functions.update,
            Act::Delete(_) => &self.functions.delete,
        };
        let mut params = vec![self.guest.config.clone()];
        params.extend(act.params());
        let called = match self.guest.call(function, name, params, deadline).await {
            Ok(called) => called,
            Err(error) => {
                return Answer {
                    outcome: Err(error.into()),
                    events: Vec::new(),
                };
            }
        };
        let (value, events, denials) = taken_apart(called);
        let outcome = state(name, value).map_err(|what| contract(name, what));
        let outcome = outcome.and_then(|outcome| {
            outcome.map(Outcome::Done).map_err(|mut error| {
                add(&self.guest.caller.tenant, &denials, &mut error);
                error
            })
        });
        Answer { outcome, events }
    }

    async fn one_by_one(&self, operations: Vec<Operation>, deadline: Instant) -> Committed<Outcome> {
        let mut answers = Vec::with_capacity(operations.len());
        for operation in operations {
            answers.push(self.attempt(operation.act, deadline).await);
        }
        Committed {
            answers: Ok(answers),
            events: Vec::new(),
        }
    }
}

fn refused(may_be_of_one: bool, error: OperationError, events: Vec<Event>) -> Committed<Outcome> {
    Committed {
        answers: Err(Refused { error, may_be_of_one }),
        events,
    }
}

/// Whether a call may have failed for what one operation of many asks, or for how many there are.
fn may_be_of_one_call(error: &CallError) -> bool {
    match error {
        CallError::Limit { setting, .. } => *setting != "wall_time",
        CallError::Trap { .. } | CallError::Contract { .. } => true,
        CallError::Deadline(_)
        | CallError::TenantGone(_)
        | CallError::UnknownType(_)
        | CallError::PlannerOnly(_)
        | CallError::Properties(_) => false,
    }
}

/// The value of a call, what was said, and what was denied.
fn taken_apart(called: call::Answer) -> (Val, Vec<Event>, Vec<Denial>) {
    let warnings = called.warnings.into_iter().map(Event::Warning);
    let events = warnings.chain(called.debug.into_iter().map(Event::Debug)).collect();
    (called.value, events, called.denials)
}

/// Says with an error what was denied. What a guest makes of a request without a credential, or of a limit, is not what went wrong.
fn add(tenant: &str, denials: &[Denial], error: &mut OperationError) {
    if let Some(credential) = denials.iter().find_map(Denial::of_credential) {
        error.message = output::cut(&credential.message).into_owned();
        (error.code, error.retry_after) = if credential.is_transient {
            (ErrorCode::Unavailable, Some(Duration::ZERO))
        } else {
            (ErrorCode::Unauthenticated, None)
        };
    } else if let Some(limit) = denials.iter().find(|denial| denial.is_limit()) {
        error.message = output::cut(&format!("`{tenant}`: {limit} ({})", error.message)).into_owned();
        (error.code, error.retry_after) = (ErrorCode::ResourceExhausted, None);
    } else if !denials.is_empty() {
        let denials: Vec<String> = denials.iter().map(ToString::to_string).collect();
        error.message = format!("{}; {}", error.message, output::cut(&denials.join("; ")));
    }
}

/// What a single function gave: the state, if the resource exists.
fn state(name: &str, value: Val) -> Result<Result<Option<Val>, OperationError>, Malformed> {
    Ok(match answer::result(value)? {
        Ok(value) if name == "read" => Ok(answer::option(answer::payload(value)?)?),
        Ok(value) => Ok(value),
        Err(error) => Err(answer::error(answer::payload(error)?)?),
    })
}

/// What `commit` gave for so many operations.
fn answers(value: Val, count: usize) -> Result<Result<Vec<Answer<Outcome>>, OperationError>, Malformed> {
    let answers = match answer::result(value)? {
        Ok(answers) => answer::list(answer::payload(answers)?)?,
        Err(error) => return Ok(Err(answer::error(answer::payload(error)?)?)),
    };
    if answers.len() != count {
        return Err(format!("{} answers to {count} operations", answers.len()));
    }
    let answers: Result<Vec<_>, Malformed> = answers.into_iter().map(of_one).collect();
    answers.map(Ok)
}

fn of_one(value: Val) -> Result<Answer<Outcome>, Malformed> {
    let mut record = Record::of(value)?;
    let mut events = Vec::new();
    let mut room = limits::OUTPUT;
    for line in answer::list(record.take("warnings")?)? {
        let line = output::message(&answer::text(line)?);
        // Each line counts, an empty one too.
        room = room.saturating_sub(line.len() + 1);
        if room == 0 {
            break;
        }
        events.push(Event::Warning(line));
    }
    Ok(Answer {
        events,
        outcome: match answer::result(record.take("outcome")?)? {
            Ok(state) => Ok(Outcome::Done(answer::option(answer::payload(state)?)?)),
            Err(error) => Err(answer::error(answer::payload(error)?)?),
        },
    })
}

/// An answer of another form than the contract says.
pub fn contract(function: &str, what: Malformed) -> OperationError {
    CallError::Contract {
        function: function.to_string(),
        what,
    }
    .into()
}

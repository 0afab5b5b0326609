//! Group commit: operations on one target wait a moment for each other, and are committed together. A commit that fails for
//! now is repeated whole, with what has come meanwhile; one that is refused for what it holds is halved until the bad
//! operation stands alone. Each operation keeps its own deadline and cancellation.

mod driver;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::driver::Driver;
use crate::error::{ErrorCode, OperationError};
use crate::operation::{CANCEL_TIME, Context, Event};

/// What commits the operations on one target.
pub trait Committer: Send + Sync + 'static {
    /// One operation.
    type Operation: fmt::Debug + Clone + Send + 'static;
    /// What an operation came to.
    type Outcome: fmt::Debug + Send + 'static;

    /// How many operations a commit takes at most.
    fn most(&self) -> usize;

    /// What an operation comes to without being run, because of what is known by now.
    fn outcome_without(&self, operation: &Self::Operation) -> Option<Self::Outcome>;

    /// One attempt, which begins no call after `deadline`. There is an answer for each operation, in their order.
    fn commit(
        &self,
        operations: Vec<Self::Operation>,
        deadline: Instant,
    ) -> impl Future<Output = Committed<Self::Outcome>> + Send;
}

/// What an attempt gave.
#[derive(Debug)]
pub struct Committed<T> {
    /// The answers in the order of the operations, or why there are none.
    pub answers: Result<Vec<Answer<T>>, Refused>,
    /// What all of them should hear.
    pub events: Vec<Event>,
}

/// What became of one operation.
#[derive(Debug)]
pub struct Answer<T> {
    /// What it came to.
    pub outcome: Result<T, OperationError>,
    /// What it alone should hear.
    pub events: Vec<Event>,
}

/// A commit that failed whole.
#[derive(Debug, Clone)]
pub struct Refused {
    /// Why.
    pub error: OperationError,
    /// Whether one operation may be the reason, so that others would pass without it.
    pub may_be_of_one: bool,
}

/// The queues of a tenant. What is under way ends when this is dropped.
#[derive(Debug)]
pub struct Queues<K, C: Committer> {
    shared: Arc<Shared<K, C>>,
    _ended: DropGuard,
}

#[derive(Debug)]
struct Shared<K, C: Committer> {
    queues: Mutex<HashMap<K, Queue<C>>>,
    /// How many operations have come.
    tickets: AtomicU64,
    ended: CancellationToken,
}

/// What waits for one target.
#[derive(Debug)]
struct Queue<C: Committer> {
    waiting: VecDeque<Ticket<C>>,
    /// When the last one came.
    last_came: Instant,
    /// Until when nothing is tried, because a commit failed for now.
    rests_until: Option<Instant>,
    /// Ends the rest, for one that cannot wait for so long.
    hurry: Arc<Notify>,
    /// Why the last commit failed, if it did.
    last_failure: Option<String>,
}

/// One operation on its way.
#[derive(Debug)]
struct Ticket<C: Committer> {
    number: u64,
    operation: C::Operation,
    context: Context,
    reply: oneshot::Sender<Result<C::Outcome, OperationError>>,
    /// How many operations its next commit takes at most: fewer, after each that was refused.
    most: usize,
    attempts: u32,
    may_have_effect: bool,
}

impl<C: Committer> Ticket<C> {
    fn end(self, code: ErrorCode, message: String) {
        let may_have_effect = self.may_have_effect;
        self.reply(Err(OperationError {
            may_have_effect,
            ..OperationError::new(code, message)
        }));
    }

    fn reply(self, outcome: Result<C::Outcome, OperationError>) {
        // Nobody waits any more: it has given up, and will look for itself.
        let _ = self.reply.send(outcome);
    }
}

impl<K, C> Queues<K, C>
where
    K: Clone + Eq + std::hash::Hash + Send + 'static,
    C: Committer,
{
    /// No queue yet.
    pub fn new() -> Self {
        let ended = CancellationToken::new();
        Self {
            shared: Arc::new(Shared {
                queues: Mutex::new(HashMap::new()),
                tickets: AtomicU64::new(0),
                ended: ended.clone(),
            }),
            _ended: ended.drop_guard(),
        }
    }

    /// Commits an operation with others of its key. Its end is known when this returns, or said to be unknown. An error that
    /// is worth repeating is this operation's own: repeated, it says whether it may have had an effect before.
    pub async fn commit(
        &self,
        key: &K,
        committer: impl FnOnce() -> C,
        context: &Context,
        operation: C::Operation,
        may_have_effect: bool,
    ) -> Result<C::Outcome, OperationError> {
        if let Some((code, why)) = ended(context) {
            return Err(OperationError::new(code, why));
        }
        let (number, mut reply) = self.enter(key, committer, context, operation, may_have_effect);
        let (code, why) = tokio::select! {
            biased;
            reply = &mut reply => return received(reply),
            () = context.cancel.cancelled() => (ErrorCode::Cancelled, "cancelled"),
            () = sleep_until(context.deadline) => (ErrorCode::DeadlineExceeded, "the deadline passed"),
        };
        if let Some(error) = self.shared.withdraw(key, number, code, why) {
            return Err(error);
        }
        // It is in a commit that is under way.
        if code == ErrorCode::Cancelled {
            let in_time = (Instant::now() + CANCEL_TIME).min(context.deadline);
            if let Ok(reply) = tokio::time::timeout_at(in_time, &mut reply).await {
                return received(reply);
            }
            if let Some(error) = self.shared.withdraw(key, number, code, why) {
                return Err(error);
            }
        }
        Err(OperationError {
            may_have_effect: true,
            ..OperationError::new(code, format!("{why} while its commit had no answer"))
        })
    }

    fn enter(
        &self,
        key: &K,
        committer: impl FnOnce() -> C,
        context: &Context,
        operation: C::Operation,
        may_have_effect: bool,
    ) -> (u64, oneshot::Receiver<Result<C::Outcome, OperationError>>) {
        let (reply, receiver) = oneshot::channel();
        let number = self.shared.tickets.fetch_add(1, Ordering::Relaxed);
        let mut driver = None;
        let mut queues = self.shared.queues();
        let queue = queues.entry(key.clone()).or_insert_with(|| {
            let hurry = Arc::new(Notify::new());
            let of = (Arc::clone(&self.shared), key.clone());
            driver = Some(Driver::new(of, committer(), Arc::clone(&hurry)));
            Queue {
                waiting: VecDeque::new(),
                last_came: Instant::now(),
                rests_until: None,
                hurry,
                last_failure: None,
            }
        });
        queue.last_came = Instant::now();
        // One that cannot wait for the end of a rest ends it, and comes first.
        let is_hasty = queue.rests_until.take_if(|until| context.deadline <= *until).is_some();
        if is_hasty {
            queue.hurry.notify_one();
        }
        let ticket = Ticket {
            number,
            operation,
            context: context.clone(),
            reply,
            most: usize::MAX,
            attempts: 0,
            may_have_effect,
        };
        if is_hasty {
            queue.waiting.push_front(ticket);
        } else {
            queue.waiting.push_back(ticket);
        }
        drop(queues);
        // A runtime that is ending drops the driver at once, which takes the queue away.
        if let Some(driver) = driver {
            let ended = self.shared.ended.clone();
            tokio::spawn(async move { ended.run_until_cancelled(driver.run()).await });
        }
        (number, receiver)
    }
}

/// Why an operation need not be begun.
fn ended(context: &Context) -> Option<(ErrorCode, &'static str)> {
    if context.cancel.is_cancelled() {
        return Some((ErrorCode::Cancelled, "cancelled"));
    }
    (context.deadline <= Instant::now()).then_some((ErrorCode::DeadlineExceeded, "the deadline passed"))
}

fn received<T>(reply: Result<Result<T, OperationError>, oneshot::error::RecvError>) -> Result<T, OperationError> {
    reply.unwrap_or_else(|_| {
        Err(OperationError {
            may_have_effect: true,
            ..OperationError::new(ErrorCode::Internal, "the commit ended without an answer")
        })
    })
}

impl<K: Eq + std::hash::Hash, C: Committer> Shared<K, C> {
    fn queues(&self) -> MutexGuard<'_, HashMap<K, Queue<C>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back an operation that is in no commit yet, or between two. Gives what that comes to.
    fn withdraw(&self, key: &K, number: u64, code: ErrorCode, why: &str) -> Option<OperationError> {
        let mut queues = self.queues();
        let queue = queues.get_mut(key)?;
        let position = queue.waiting.iter().position(|ticket| ticket.number == number)?;
        let ticket = queue.waiting.remove(position)?;
        let message = match &queue.last_failure {
            Some(failure) => format!("{why} before it was its turn; the commit before it failed: {failure}"),
            None => format!("{why} before it was its turn"),
        };
        Some(OperationError {
            may_have_effect: ticket.may_have_effect,
            ..OperationError::new(code, message)
        })
    }
}

#[cfg(test)]
mod tests;

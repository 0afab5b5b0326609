//! Group commit: operations on one target wait a moment for each other, and are committed together. A commit that fails for
//! now is repeated whole, with what has come meanwhile; one that is refused for what it holds is halved until the bad
//! operation stands alone. Each operation keeps its own deadline and cancellation.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::{ErrorCode, OperationError};
use crate::operation::{CANCEL_TIME, Context, Event};
use crate::retry::Backoff;

/// A commit starts once nothing more has come for this long. Without the pause, operations that are made 64 at a time
/// settle into commits of 1 and of 63.
const PAUSE: Duration = Duration::from_millis(2);

/// It starts after this long in any case: a fraction of what the service takes.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

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
    ended: CancellationToken,
}

/// What waits for one target.
#[derive(Debug)]
struct Queue<C: Committer> {
    waiting: VecDeque<Ticket<C>>,
    /// When the last one came.
    last_came: Instant,
    /// How many have come.
    tickets: u64,
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
        if let Some(ticket) = self.shared.withdraw(key, number) {
            return Err(OperationError {
                may_have_effect: ticket.may_have_effect,
                ..OperationError::new(code, format!("{why} before it was its turn"))
            });
        }
        // It is in a commit that is under way.
        if code == ErrorCode::Cancelled {
            let in_time = (Instant::now() + CANCEL_TIME).min(context.deadline);
            if let Ok(reply) = tokio::time::timeout_at(in_time, &mut reply).await {
                return received(reply);
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
        let mut queues = self.shared.queues();
        let queue = queues.entry(key.clone()).or_insert_with(|| {
            let driver = Driver {
                shared: Arc::clone(&self.shared),
                key: key.clone(),
                committer: committer(),
                backoff: Backoff::new(),
                has_ended: false,
            };
            let ended = self.shared.ended.clone();
            tokio::spawn(async move { ended.run_until_cancelled(driver.run()).await });
            Queue {
                waiting: VecDeque::new(),
                last_came: Instant::now(),
                tickets: 0,
            }
        });
        queue.last_came = Instant::now();
        queue.tickets += 1;
        let number = queue.tickets;
        queue.waiting.push_back(Ticket {
            number,
            operation,
            context: context.clone(),
            reply,
            most: usize::MAX,
            attempts: 0,
            may_have_effect,
        });
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

    /// Takes back an operation that is in no commit yet, or between two.
    fn withdraw(&self, key: &K, number: u64) -> Option<Ticket<C>> {
        let mut queues = self.queues();
        let waiting = &mut queues.get_mut(key)?.waiting;
        let position = waiting.iter().position(|ticket| ticket.number == number)?;
        waiting.remove(position)
    }
}

/// Commits what waits in one queue, until nothing does.
struct Driver<K: Eq + std::hash::Hash, C: Committer> {
    shared: Arc<Shared<K, C>>,
    key: K,
    committer: C,
    backoff: Backoff,
    /// Its queue is gone; another of the same key may be there.
    has_ended: bool,
}

impl<K: Eq + std::hash::Hash, C: Committer> Drop for Driver<K, C> {
    /// Whoever comes next starts anew. What still waits, after a panic, learns of it.
    fn drop(&mut self) {
        if !self.has_ended {
            self.shared.queues().remove(&self.key);
        }
    }
}

impl<K: Eq + std::hash::Hash, C: Committer> Driver<K, C> {
    async fn run(mut self) {
        loop {
            self.gather().await;
            let Some(mut batch) = self.take() else { return };
            if batch.is_empty() {
                continue;
            }
            let operations = batch.iter().map(|ticket| ticket.operation.clone()).collect();
            let latest = batch.iter().map(|ticket| ticket.context.deadline).max();
            let deadline = latest.unwrap_or_else(Instant::now);
            let committed = tokio::select! {
                committed = self.committer.commit(operations, deadline) => committed,
                // Each of them has given up: nobody waits for the answer.
                _ = join_all(batch.iter_mut().map(|ticket| ticket.reply.closed())) => continue,
            };
            for ticket in &batch {
                ticket
                    .context
                    .tell(committed.events.iter().cloned(), ticket.may_have_effect);
            }
            match committed.answers {
                Ok(answers) => {
                    self.backoff = Backoff::new();
                    for (ticket, answer) in batch.into_iter().zip(answers) {
                        ticket.context.tell(answer.events, ticket.may_have_effect);
                        let may_have_effect = ticket.may_have_effect;
                        ticket.reply(answer.outcome.map_err(|mut error| {
                            error.may_have_effect |= may_have_effect;
                            error
                        }));
                    }
                }
                Err(refused) => self.refused(batch, refused).await,
            }
        }
    }

    /// Waits for others to join.
    async fn gather(&mut self) {
        if self.committer.most() == 1 {
            return;
        }
        let began = Instant::now();
        loop {
            let start = match self.shared.queues().get(&self.key) {
                Some(queue) if queue.waiting.len() < self.committer.most() => {
                    (queue.last_came.max(began) + PAUSE).min(began + LONGEST_PAUSE)
                }
                _ => return,
            };
            if start <= Instant::now() {
                return;
            }
            sleep_until(start).await;
        }
    }

    /// The next batch; none once nothing waits. It is empty where all that waited needs no run.
    fn take(&mut self) -> Option<Vec<Ticket<C>>> {
        let mut queues = self.shared.queues();
        let queue = queues.get_mut(&self.key)?;
        if queue.waiting.is_empty() {
            queues.remove(&self.key);
            self.has_ended = true;
            return None;
        }
        let mut batch = Vec::new();
        let mut most = self.committer.most();
        while let Some(ticket) = queue.waiting.pop_front() {
            if ticket.reply.is_closed() {
                continue;
            }
            // What may have been done already has to be seen to its end.
            if !ticket.may_have_effect
                && let Some(outcome) = self.committer.outcome_without(&ticket.operation)
            {
                ticket.reply(Ok(outcome));
                continue;
            }
            if batch.len() >= most.min(ticket.most) {
                queue.waiting.push_front(ticket);
                break;
            }
            most = most.min(ticket.most);
            batch.push(ticket);
        }
        Some(batch)
    }

    /// Puts back in front what is worth another attempt, and ends the rest.
    async fn refused(&mut self, mut batch: Vec<Ticket<C>>, refused: Refused) {
        let Refused { error, may_be_of_one } = refused;
        for ticket in &mut batch {
            ticket.attempts += 1;
            ticket.may_have_effect |= error.may_have_effect;
        }
        let wait = error.retry_after.map(|at_least| self.backoff.next(at_least));
        let (now, count) = (Instant::now(), batch.len());
        let mut again = VecDeque::with_capacity(count);
        for mut ticket in batch {
            let Some(wait) = wait else {
                if may_be_of_one && count > 1 {
                    ticket.most = count.div_ceil(2);
                    again.push_back(ticket);
                } else {
                    let may_have_effect = ticket.may_have_effect;
                    ticket.reply(Err(OperationError {
                        may_have_effect,
                        ..error.clone()
                    }));
                }
                continue;
            };
            if ticket.context.cancel.is_cancelled() {
                let message = format!("cancelled while waiting to try again: {}", error.message);
                ticket.end(ErrorCode::Cancelled, message);
            } else if now + wait >= ticket.context.deadline {
                let message = format!("gave up after {} attempts: {}", ticket.attempts, error.message);
                ticket.end(ErrorCode::DeadlineExceeded, message);
            } else {
                (ticket.context.on_event)(Event::Waiting {
                    attempt: ticket.attempts,
                    wait,
                    reason: error.message.clone(),
                });
                again.push_back(ticket);
            }
        }
        let has_more = {
            let mut queues = self.shared.queues();
            let Some(queue) = queues.get_mut(&self.key) else { return };
            again.append(&mut queue.waiting);
            mem::swap(&mut queue.waiting, &mut again);
            !queue.waiting.is_empty()
        };
        if let Some(wait) = wait.filter(|_| has_more) {
            sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests;

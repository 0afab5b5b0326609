//! What empties a queue: gathers, commits, and puts back what is to be repeated or halved.

use std::collections::VecDeque;
use std::hash::Hash;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::{Committer, Refused, Shared, Ticket, ended};
use crate::error::{ErrorCode, OperationError};
use crate::operation::Event;
use crate::retry::Backoff;

/// A commit starts once nothing more has come for this long. Without the pause, operations that are made 64 at a time
/// settle into commits of 1 and of 63.
pub const PAUSE: Duration = Duration::from_millis(2);

/// It starts after this long in any case: a fraction of what the service takes.
pub const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Commits what waits in one queue, until nothing does.
pub struct Driver<K: Eq + Hash, C: Committer> {
    shared: Arc<Shared<K, C>>,
    key: K,
    committer: C,
    hurry: Arc<Notify>,
    backoff: Backoff,
    /// Its queue is gone; another of the same key may be there.
    has_ended: bool,
}

impl<K: Eq + Hash, C: Committer> Drop for Driver<K, C> {
    /// Whoever comes next starts anew. What still waits, after a panic, learns of it.
    fn drop(&mut self) {
        if !self.has_ended {
            self.shared.queues().remove(&self.key);
        }
    }
}

impl<K: Eq + Hash, C: Committer> Driver<K, C> {
    pub fn new((shared, key): (Arc<Shared<K, C>>, K), committer: C, hurry: Arc<Notify>) -> Self {
        Self {
            shared,
            key,
            committer,
            hurry,
            backoff: Backoff::new(),
            has_ended: false,
        }
    }

    pub async fn run(mut self) {
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
                    if let Some(queue) = self.shared.queues().get_mut(&self.key) {
                        queue.last_failure = None;
                    }
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
            if let Some((code, why)) = ended(&ticket.context) {
                ticket.end(code, format!("{why} before it was its turn"));
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
        let wait = self.backoff.after(&error);
        let (now, count) = (Instant::now(), batch.len());
        let mut again = VecDeque::with_capacity(count);
        for mut ticket in batch {
            let Some(wait) = wait else {
                if let Some((code, why)) = ended(&ticket.context).filter(|_| count > 1) {
                    ticket.end(code, format!("{why}: {}", error.message));
                } else if may_be_of_one && count > 1 {
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
                again.push_back(ticket);
            }
        }
        for (place, ticket) in again.iter().enumerate().filter(|_| wait.is_some()) {
            (ticket.context.on_event)(Event::Waiting {
                attempt: ticket.attempts,
                wait: wait.unwrap_or_default(),
                reason: error.message.clone(),
                place,
                together: again.len(),
            });
        }
        let until = wait.map(|wait| now + wait);
        {
            let mut queues = self.shared.queues();
            let Some(queue) = queues.get_mut(&self.key) else { return };
            again.append(&mut queue.waiting);
            mem::swap(&mut queue.waiting, &mut again);
            queue.last_failure = Some(error.message);
            queue.waiting.retain(|ticket| !ticket.reply.is_closed());
            let Some(until) = until.filter(|_| !queue.waiting.is_empty()) else {
                return;
            };
            // Those that cannot wait for so long have an attempt at once, and before the others: it is their last.
            let can_wait = |ticket: &Ticket<C>| ticket.context.deadline > until;
            if !queue.waiting.iter().all(can_wait) {
                queue.waiting.make_contiguous().sort_by_key(can_wait);
                return;
            }
            queue.rests_until = Some(until);
            // Of an earlier rest.
            let _ = self.hurry.notified().now_or_never();
        }
        if let Some(until) = until {
            tokio::select! {
                () = sleep_until(until) => {}
                () = self.hurry.notified() => {}
            }
        }
        if let Some(queue) = self.shared.queues().get_mut(&self.key) {
            queue.rests_until = None;
        }
    }
}

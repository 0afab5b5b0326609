//! Repeats what is worth repeating: jittered truncated backoff, until the operation's deadline or its cancellation. This
//! is safe because an attempt is a whole read, modify, set, which writes nothing when nothing would change.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep_until};

use crate::error::{ErrorCode, OperationError};
use crate::operation::{Context, Event};

/// The first wait for a service to be well again.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The longest wait: a minute's quota is back within a few of these.
const LONGEST_WAIT: Duration = Duration::from_secs(16);

/// The same for a conflict, which is over as soon as the other write is: that takes two requests. Who waits for long would
/// only come too late again and again.
const FIRST_CONFLICT_WAIT: Duration = Duration::from_millis(50);
const LONGEST_CONFLICT_WAIT: Duration = Duration::from_secs(2);

/// How long to wait after each attempt that failed.
#[derive(Debug)]
pub struct Backoff {
    conflicts: ExponentialBackoff,
    others: ExponentialBackoff,
}

impl Backoff {
    /// Before the first.
    pub fn new() -> Self {
        let waits = |first, longest| {
            ExponentialBuilder::new()
                .with_min_delay(first)
                .with_max_delay(longest)
                .with_factor(2.0)
                .without_max_times()
                .with_jitter()
                .build()
        };
        Self {
            conflicts: waits(FIRST_CONFLICT_WAIT, LONGEST_CONFLICT_WAIT),
            others: waits(FIRST_WAIT, LONGEST_WAIT),
        }
    }

    /// The wait after this error: not shorter than the service asks for. None where the attempt is not worth repeating.
    pub fn after(&mut self, error: &OperationError) -> Option<Duration> {
        let at_least = error.retry_after?;
        let waits = match error.code {
            ErrorCode::Conflict => &mut self.conflicts,
            _ => &mut self.others,
        };
        Some(waits.next().unwrap_or(LONGEST_WAIT).max(at_least))
    }
}

/// Runs an attempt until it succeeds or is not worth repeating. Each is told whether one before it may have had an effect,
/// and so does the error.
pub async fn until_done<T, F>(context: &Context, mut attempt: impl FnMut(bool) -> F) -> Result<T, OperationError>
where
    F: Future<Output = Result<T, OperationError>>,
{
    let mut backoff = Backoff::new();
    let mut may_have_effect = false;
    for number in 1_u32.. {
        if context.cancel.is_cancelled() {
            return Err(ended(ErrorCode::Cancelled, "cancelled", None, may_have_effect));
        }
        if Instant::now() >= context.deadline {
            return Err(ended(
                ErrorCode::DeadlineExceeded,
                "the deadline passed",
                None,
                may_have_effect,
            ));
        }
        let error = match attempt(may_have_effect).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        may_have_effect |= error.may_have_effect;
        let Some(wait) = backoff.after(&error) else {
            return Err(OperationError {
                may_have_effect,
                ..error
            });
        };
        let until = Instant::now() + wait;
        if until >= context.deadline {
            return Err(ended(
                ErrorCode::DeadlineExceeded,
                &format!("gave up after {number} attempts"),
                Some(&error),
                may_have_effect,
            ));
        }
        (context.on_event)(Event::Waiting {
            attempt: number,
            wait,
            reason: error.message.clone(),
            together: 1,
            place: 0,
        });
        tokio::select! {
            () = sleep_until(until) => {}
            () = context.cancel.cancelled() => {
                return Err(ended(ErrorCode::Cancelled, "cancelled while waiting to try again", Some(&error), may_have_effect));
            }
        }
    }
    Err(ended(ErrorCode::DeadlineExceeded, "gave up", None, may_have_effect))
}

fn ended(code: ErrorCode, what: &str, last: Option<&OperationError>, may_have_effect: bool) -> OperationError {
    OperationError {
        code,
        message: match last {
            Some(error) => format!("{what}: {}", error.message),
            None => what.to_string(),
        },
        may_have_effect,
        retry_after: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::Arc;
    use tokio_util::sync::CancellationToken;

    fn context(deadline: Duration) -> Context {
        Context {
            deadline: Instant::now() + deadline,
            cancel: CancellationToken::new(),
            on_event: Arc::new(|_| {}),
        }
    }

    fn failing(retry_after: Option<u64>, may_have_effect: bool) -> OperationError {
        OperationError {
            retry_after: retry_after.map(Duration::from_millis),
            may_have_effect,
            ..OperationError::new(ErrorCode::Unavailable, "no answer")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_worth_repeating_is_repeated_and_nothing_else() {
        let attempts = Cell::new(0);
        let result = until_done(&context(Duration::from_secs(60)), |_| {
            attempts.set(attempts.get() + 1);
            let result = if attempts.get() < 4 {
                Err(failing(Some(0), false))
            } else {
                Ok("done")
            };
            async { result }
        })
        .await;
        assert_eq!((result, attempts.get()), (Ok("done"), 4));
        let attempts = Cell::new(0);
        let result: Result<(), _> = until_done(&context(Duration::from_secs(60)), |_| {
            attempts.set(attempts.get() + 1);
            async { Err(failing(None, false)) }
        })
        .await;
        assert_eq!((result.unwrap_err().code, attempts.get()), (ErrorCode::Unavailable, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_ends_it_and_an_unknown_effect_is_remembered() {
        let started = Instant::now();
        let first = Cell::new(true);
        let error = until_done(&context(Duration::from_secs(30)), |_| {
            let error: Result<(), _> = Err(failing(Some(0), first.replace(false)));
            async { error }
        })
        .await
        .unwrap_err();
        assert_eq!(error.code, ErrorCode::DeadlineExceeded);
        assert!(error.may_have_effect);
        assert!(error.message.contains("no answer"), "{}", error.message);
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn the_service_says_how_long_to_wait_at_least() {
        let started = Instant::now();
        let first = Cell::new(true);
        until_done(&context(Duration::from_secs(600)), |_| {
            let result = if first.replace(false) {
                Err(failing(Some(90_000), false))
            } else {
                Ok(())
            };
            async { result }
        })
        .await
        .unwrap();
        assert!(started.elapsed() >= Duration::from_secs(90));
    }

    #[test]
    fn a_conflict_is_waited_for_less_than_a_service_that_is_down() {
        let mut backoff = Backoff::new();
        let conflict = || OperationError {
            code: ErrorCode::Conflict,
            ..failing(Some(0), false)
        };
        let mut conflicts = (0..20).map(|_| backoff.after(&conflict()).unwrap()).collect::<Vec<_>>();
        assert!(conflicts.remove(0) <= FIRST_CONFLICT_WAIT * 2);
        assert!(conflicts.iter().all(|wait| *wait <= LONGEST_CONFLICT_WAIT * 2));
        // Each kind has its own count.
        let other = backoff.after(&failing(Some(0), false)).unwrap();
        assert!((FIRST_WAIT..=FIRST_WAIT * 2).contains(&other));
        assert_eq!(backoff.after(&failing(None, false)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn cancelling_ends_a_wait() {
        let context = context(Duration::from_secs(600));
        let cancel = context.cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            cancel.cancel();
        });
        let error = until_done(&context, |_| async { Err::<(), _>(failing(Some(60_000), false)) })
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::Cancelled);
    }
}

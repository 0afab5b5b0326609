//! The queue over a service that is made up, with a clock that runs by itself.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use tokio::task::JoinSet;

use std::time::Duration;

use tokio::time::sleep;

use super::driver::{LONGEST_PAUSE, PAUSE};
use super::*;

/// How long a commit takes.
const LATENCY: Duration = Duration::from_millis(100);

/// Decides what becomes of the commit of this number, counted from 0.
type Script = dyn Fn(usize, &[u32]) -> Result<(), Refused> + Send + Sync;

/// A service that takes numbers.
#[derive(Clone)]
struct Service {
    most: usize,
    script: Arc<Script>,
    seen: Arc<Mutex<Seen>>,
    /// Whether what waits is taken as done.
    is_done: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Seen {
    begun: Vec<Vec<u32>>,
    applied: Vec<u32>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seen.fmt(f)
    }
}

impl Committer for Service {
    type Operation = u32;
    type Outcome = &'static str;

    fn most(&self) -> usize {
        self.most
    }

    fn outcome_without(&self, _: &u32) -> Option<&'static str> {
        self.is_done.load(Ordering::Relaxed).then_some("kept")
    }

    async fn commit(&self, operations: Vec<u32>, _: Instant) -> Committed<&'static str> {
        let number = {
            let mut seen = self.seen.lock().unwrap();
            seen.begun.push(operations.clone());
            seen.begun.len() - 1
        };
        sleep(LATENCY).await;
        let answers = (self.script)(number, &operations).map(|()| {
            let done = |_| Answer {
                outcome: Ok("done"),
                events: Vec::new(),
            };
            operations.iter().map(done).collect()
        });
        if answers.is_ok() {
            self.seen.lock().unwrap().applied.extend(operations);
        }
        Committed {
            answers,
            events: vec![Event::Warning("heard".to_string())],
        }
    }
}

/// A queue before such a service.
struct Fixture {
    service: Service,
    queues: Arc<Queues<&'static str, Service>>,
}

impl Fixture {
    fn new(script: impl Fn(usize, &[u32]) -> Result<(), Refused> + Send + Sync + 'static) -> Self {
        Self {
            service: Service {
                most: 256,
                script: Arc::new(script),
                seen: Arc::default(),
                is_done: Arc::default(),
            },
            queues: Arc::new(Queues::new()),
        }
    }

    fn commit(
        &self,
        operation: u32,
        context: Context,
    ) -> impl Future<Output = Result<&'static str, OperationError>> + Send + 'static {
        let (queues, service) = (Arc::clone(&self.queues), self.service.clone());
        async move { queues.commit(&"target", || service, &context, operation, false).await }
    }

    /// Commits all of them, so many at a time. Gives those that failed.
    async fn commit_all(&self, operations: impl IntoIterator<Item = u32>, parallel: usize) -> BTreeSet<u32> {
        let mut tasks = JoinSet::new();
        let mut failed = BTreeSet::new();
        for operation in operations {
            if tasks.len() == parallel {
                failed.extend(tasks.join_next().await.unwrap().unwrap());
            }
            let commit = self.commit(operation, context());
            tasks.spawn(async move { commit.await.err().map(|_| operation) });
        }
        failed.extend(tasks.join_all().await.into_iter().flatten());
        failed
    }

    /// Commits all of them at once, for as long as this is waited for.
    fn commit_all_in(&self, operations: std::ops::Range<u32>) -> impl Future<Output = ()> + Send + 'static {
        let commits: Vec<_> = operations.map(|operation| self.commit(operation, context())).collect();
        async move {
            futures_util::future::join_all(commits).await;
        }
    }

    fn begun(&self) -> Vec<Vec<u32>> {
        self.service.seen.lock().unwrap().begun.clone()
    }

    fn sizes(&self) -> Vec<usize> {
        self.begun().iter().map(Vec::len).collect()
    }

    fn applied(&self) -> Vec<u32> {
        let mut applied = self.service.seen.lock().unwrap().applied.clone();
        applied.sort_unstable();
        applied
    }
}

fn context() -> Context {
    Context {
        deadline: Instant::now() + Duration::from_secs(60),
        cancel: CancellationToken::new(),
        on_event: Arc::new(|_| {}),
    }
}

fn always(_: usize, _: &[u32]) -> Result<(), Refused> {
    Ok(())
}

fn for_now(may_have_effect: bool) -> Refused {
    Refused {
        error: OperationError {
            may_have_effect,
            retry_after: Some(Duration::ZERO),
            ..OperationError::new(ErrorCode::Unavailable, "it is down")
        },
        may_be_of_one: false,
    }
}

fn for_good(may_be_of_one: bool) -> Refused {
    Refused {
        error: OperationError::new(ErrorCode::InvalidArgument, "no such identity"),
        may_be_of_one,
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_together_is_committed_together_and_what_comes_meanwhile_next() {
    let fixture = Fixture::new(always);
    let early = fixture.commit_all(0..10, 64);
    let late = async {
        sleep(LATENCY / 2).await;
        fixture.commit_all(10..15, 64).await
    };
    let (early, late) = tokio::join!(early, late);
    assert!(early.is_empty() && late.is_empty());
    assert_eq!(fixture.begun(), [(0..10).collect::<Vec<_>>(), (10..15).collect()]);
}

#[tokio::test(start_paused = true)]
async fn many_at_a_time_stay_together_however_they_begin() {
    let fixture = Fixture::new(always);
    // The first comes long before the others.
    let first = tokio::spawn(fixture.commit(1_000, context()));
    sleep(LATENCY / 2).await;
    let failed = fixture.commit_all(0..1_000, 64).await;
    assert!(failed.is_empty());
    assert_eq!(first.await.unwrap(), Ok("done"));
    assert!(fixture.begun().len() <= 18, "{:?}", fixture.sizes());
}

#[tokio::test(start_paused = true)]
async fn a_commit_takes_so_many_at_most_and_waits_so_long_at_most() {
    let fixture = Fixture::new(always);
    fixture.commit_all(0..600, 600).await;
    assert_eq!(fixture.sizes(), [256, 256, 88]);
    let trickle = Fixture::new(always);
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for operation in 0..100 {
        tasks.spawn(trickle.commit(operation, context()));
        sleep(Duration::from_millis(1)).await;
    }
    tasks.join_all().await;
    assert!(
        began.elapsed() < LATENCY * 2 + LONGEST_PAUSE * 2 + PAUSE * 2,
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn what_fails_for_now_is_repeated_with_what_has_come_meanwhile() {
    let fixture = Fixture::new(|number, _| if number == 0 { Err(for_now(false)) } else { Ok(()) });
    let late = async {
        sleep(LATENCY + Duration::from_millis(50)).await;
        fixture.commit_all([3], 1).await
    };
    let (early, late) = tokio::join!(fixture.commit_all([1, 2], 2), late);
    assert!(early.is_empty() && late.is_empty());
    assert_eq!(fixture.begun(), [vec![1, 2], vec![1, 2, 3]]);
}

#[tokio::test(start_paused = true)]
async fn what_is_of_all_fails_all_at_once() {
    let fixture = Fixture::new(|_, _| Err(for_good(false)));
    assert_eq!(fixture.commit_all(0..5, 5).await.len(), 5);
    assert_eq!(fixture.sizes(), [5]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However many are bad, and whatever fails for now beside.
    #[test]
    fn the_bad_fail_alone_and_the_good_are_applied_once(
        count in 1_u32..300,
        bad in prop::collection::btree_set(0_u32..300, 0..12),
        failing in prop::collection::btree_set(0_usize..40, 0..6),
        parallel in 1_usize..300,
    ) {
        let bad: BTreeSet<u32> = bad.into_iter().filter(|operation| *operation < count).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let is_bad = bad.clone();
            let fixture = Fixture::new(move |number, operations| {
                if failing.contains(&number) {
                    Err(for_now(false))
                } else if operations.iter().any(|operation| is_bad.contains(operation)) {
                    Err(for_good(true))
                } else {
                    Ok(())
                }
            });
            let failed = fixture.commit_all(0..count, parallel).await;
            assert_eq!(failed, bad);
            let good: Vec<u32> = (0..count).filter(|operation| !bad.contains(operation)).collect();
            assert_eq!(fixture.applied(), good);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn one_bad_among_many_costs_a_commit_or_two_for_each_halving() {
    let fixture = Fixture::new(|_, operations| {
        if operations.contains(&77) {
            Err(for_good(true))
        } else {
            Ok(())
        }
    });
    assert_eq!(fixture.commit_all(0..256, 256).await, [77].into());
    assert!(fixture.begun().len() <= 17, "{:?}", fixture.sizes());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_cancelled_before_its_turn_never_runs_and_the_others_go_on() {
    let fixture = Fixture::new(always);
    let first = tokio::spawn(fixture.commit(1, context()));
    sleep(LATENCY / 2).await;
    let cancelled = context();
    let cancel = cancelled.cancel.clone();
    let second = tokio::spawn(fixture.commit(2, cancelled));
    let third = tokio::spawn(fixture.commit(3, context()));
    sleep(LATENCY / 10).await;
    cancel.cancel();
    let error = second.await.unwrap().unwrap_err();
    assert_eq!((error.code, error.may_have_effect), (ErrorCode::Cancelled, false));
    assert_eq!((first.await.unwrap(), third.await.unwrap()), (Ok("done"), Ok("done")));
    assert_eq!(fixture.applied(), [1, 3]);
    let before = context();
    before.cancel.cancel();
    assert!(fixture.commit(4, before).await.is_err());
    assert_eq!(fixture.applied(), [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_cancelled_under_way_is_awaited_to_a_known_end() {
    let fixture = Fixture::new(always);
    let cancelled = context();
    let cancel = cancelled.cancel.clone();
    let under_way = tokio::spawn(fixture.commit(1, cancelled));
    sleep(LATENCY / 2).await;
    cancel.cancel();
    assert_eq!(under_way.await.unwrap(), Ok("done"));
    // One that is repeated is not, once it is cancelled.
    let failing = Fixture::new(|_, _| Err(for_now(true)));
    let cancelled = context();
    let cancel = cancelled.cancel.clone();
    let under_way = tokio::spawn(failing.commit(1, cancelled));
    sleep(LATENCY / 2).await;
    cancel.cancel();
    let error = under_way.await.unwrap().unwrap_err();
    assert_eq!((error.code, error.may_have_effect), (ErrorCode::Cancelled, true));
    assert_eq!(failing.begun().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_has_its_own_deadline() {
    let fixture = Fixture::new(|number, _| if number < 3 { Err(for_now(number == 0)) } else { Ok(()) });
    let soon = Context {
        deadline: Instant::now() + LATENCY / 2,
        ..context()
    };
    let later = Context {
        deadline: Instant::now() + LATENCY + Duration::from_millis(200),
        ..context()
    };
    let under_way = fixture.commit(1, soon);
    let between = fixture.commit(2, later);
    let (under_way, between, last) = tokio::join!(under_way, between, fixture.commit(3, context()));
    let (under_way, between) = (under_way.unwrap_err(), between.unwrap_err());
    assert_eq!(
        (under_way.code, under_way.may_have_effect),
        (ErrorCode::DeadlineExceeded, true)
    );
    assert_eq!(
        (between.code, between.may_have_effect),
        (ErrorCode::DeadlineExceeded, true)
    );
    assert!(between.message.contains("it is down"), "{between}");
    assert_eq!(last, Ok("done"));
    assert_eq!(fixture.begun(), [vec![1, 2, 3], vec![3], vec![3], vec![3]]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_nobody_waits_for_is_given_up() {
    let fixture = Fixture::new(always);
    let commit = fixture.commit(1, context());
    assert!(tokio::time::timeout(LATENCY / 2, commit).await.is_err());
    sleep(LATENCY * 2).await;
    assert_eq!((fixture.begun().len(), fixture.applied().len()), (1, 0));
    assert_eq!(fixture.commit(2, context()).await, Ok("done"));
}

#[tokio::test(start_paused = true)]
async fn what_needs_no_run_any_more_is_answered_when_its_turn_comes() {
    let fixture = Fixture::new(always);
    let first = tokio::spawn(fixture.commit(1, context()));
    sleep(LATENCY / 2).await;
    let second = tokio::spawn(fixture.commit(2, context()));
    sleep(LATENCY / 10).await;
    fixture.service.is_done.store(true, Ordering::Relaxed);
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok("done"), Ok("kept")));
    assert_eq!(fixture.applied(), [1]);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_seen_to_its_end_and_no_one_is_warned_of_it() {
    let fixture = Fixture::new(|number, _| if number == 0 { Err(for_now(true)) } else { Ok(()) });
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&heard);
    let context = Context {
        on_event: Arc::new(move |event| events.lock().unwrap().push(event)),
        ..context()
    };
    let commit = tokio::spawn(fixture.commit(1, context));
    sleep(LATENCY + Duration::from_millis(1)).await;
    fixture.service.is_done.store(true, Ordering::Relaxed);
    assert_eq!(commit.await.unwrap(), Ok("done"));
    let heard = heard.lock().unwrap();
    assert!(
        matches!(heard.as_slice(), [Event::Warning(_), Event::Waiting { attempt: 1, .. }]),
        "{heard:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_what_it_took_with_it_and_nothing_else() {
    let fixture = Fixture::new(|number, _| {
        assert!(number > 0, "as it was told to");
        Ok(())
    });
    let error = fixture.commit(1, context()).await.unwrap_err();
    assert!(error.may_have_effect, "{error}");
    assert_eq!(fixture.commit(2, context()).await, Ok("done"));
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_ends_with_its_queues() {
    let fixture = Fixture::new(always);
    let commit = fixture.commit(1, context());
    let _ = tokio::time::timeout(LATENCY / 2, commit).await;
    let service = fixture.service.clone();
    drop(fixture);
    sleep(LATENCY * 2).await;
    assert!(service.seen.lock().unwrap().applied.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_wait_for_so_long_has_its_own_attempt_and_hears_why_it_failed() {
    let hour = |retry_after| Refused {
        error: OperationError {
            retry_after: Some(Duration::from_secs(retry_after)),
            ..for_now(false).error
        },
        may_be_of_one: false,
    };
    let fixture = Fixture::new(move |number, _| if number < 2 { Err(hour(3_600)) } else { Ok(()) });
    let patient = Context {
        deadline: Instant::now() + Duration::from_secs(7_200),
        ..context()
    };
    let patient = tokio::spawn(fixture.commit(1, patient));
    sleep(LATENCY * 2).await;
    // It is tried at once, and fails with the service's reason.
    let error = fixture.commit(2, context()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::DeadlineExceeded);
    assert!(error.message.contains("it is down"), "{error}");
    // The next one finds the service well again, and takes along who waits.
    assert_eq!(fixture.commit(3, context()).await, Ok("done"));
    assert_eq!(patient.await.unwrap(), Ok("done"));
    assert_eq!(fixture.begun(), [vec![1], vec![2, 1], vec![3, 1]]);
}

#[tokio::test(start_paused = true)]
async fn those_that_come_while_a_commit_fails_for_longer_than_they_can_wait_are_tried_once_too() {
    let hour = Refused {
        error: OperationError {
            retry_after: Some(Duration::from_secs(3_600)),
            ..for_now(false).error
        },
        may_be_of_one: false,
    };
    let fixture = Fixture::new(move |number, _| if number == 0 { Err(hour.clone()) } else { Ok(()) });
    let first = tokio::spawn(fixture.commit(1, context()));
    sleep(LATENCY / 2).await;
    assert_eq!(fixture.commit(2, context()).await, Ok("done"));
    assert!(first.await.unwrap().unwrap_err().message.contains("it is down"));
}

#[tokio::test(start_paused = true)]
async fn those_that_are_cancelled_while_a_commit_is_halved_are_not_committed_again() {
    let fixture = Fixture::new(|_, operations| {
        if operations.contains(&7) {
            Err(for_good(true))
        } else {
            Ok(())
        }
    });
    let cancelled = context();
    let tasks: Vec<_> = (0..16)
        .map(|operation| tokio::spawn(fixture.commit(operation, cancelled.clone())))
        .collect();
    // In the midst of the first commit, which is refused.
    sleep(LATENCY / 2).await;
    cancelled.cancel.cancel();
    for task in tasks {
        let error = task.await.unwrap().unwrap_err();
        assert_eq!((error.code, error.may_have_effect), (ErrorCode::Cancelled, false));
    }
    assert_eq!(fixture.begun().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_wait_does_not_keep_the_others_from_resting() {
    // The first is refused with others until it stands alone, and then all of them fail for now.
    let fixture = Fixture::new(|number, _| {
        if number == 0 {
            Err(for_good(true))
        } else {
            Err(for_now(false))
        }
    });
    let patient = tokio::spawn(fixture.commit_all_in(0..2));
    sleep(LATENCY / 2).await;
    let hasty = Context {
        deadline: Instant::now() + LATENCY * 3,
        ..context()
    };
    let error = fixture.commit(9, hasty).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::DeadlineExceeded);
    sleep(Duration::from_secs(5)).await;
    assert!(
        fixture.begun().iter().any(|batch| batch.contains(&9)),
        "{:?}",
        fixture.begun()
    );
    assert!(fixture.begun().len() <= 12, "{:?}", fixture.begun());
    patient.abort();
}

//! Whose turn it is to compute. Guests share the process's threads with everything else in it: a call that computes for long
//! waits for its tenant's turn, and all tenants' long calls together leave a thread to the short ones.

use std::num::NonZero;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;

use crate::limits;

/// What all tenants' long calls share.
#[derive(Debug, Clone)]
pub struct LongTurns(Arc<Semaphore>);

/// A tenant's turns.
#[derive(Debug)]
pub struct Turns {
    /// For calls that have not computed for long: as many as there are threads.
    short: Arc<Semaphore>,
    /// For those that have: one, which then waits among the other tenants' for one of [`LongTurns`].
    long: Arc<Semaphore>,
    all: LongTurns,
}

/// How many threads guests may compute on.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

impl LongTurns {
    /// One for each thread, less one.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(threads().saturating_sub(1).max(1))))
    }
}

impl Turns {
    /// Those of a further tenant.
    pub fn of(all: &LongTurns) -> Self {
        Self {
            short: Arc::new(Semaphore::new(threads())),
            long: Arc::new(Semaphore::new(1)),
            all: all.clone(),
        }
    }

    /// Runs a call whenever it has its turn, and meters it.
    pub fn take<F: Future>(&self, meter: Arc<CpuMeter>, call: F) -> Taking<F> {
        Taking {
            call: Box::pin(call),
            meter,
            short: PollSemaphore::new(Arc::clone(&self.short)),
            long: PollSemaphore::new(Arc::clone(&self.long)),
            all: PollSemaphore::new(Arc::clone(&self.all.0)),
            tenants: None,
        }
    }
}

/// A call that takes turns. It gives each back at every tick of the epoch, and when it waits for the host.
pub struct Taking<F> {
    call: Pin<Box<F>>,
    meter: Arc<CpuMeter>,
    short: PollSemaphore,
    long: PollSemaphore,
    all: PollSemaphore,
    /// The tenant's long turn: kept until the call ends or waits for the host, so that its other calls do not come in between and
    /// take more of what all tenants share.
    tenants: Option<OwnedSemaphorePermit>,
}

impl<F: Future> Future for Taking<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        // No semaphore is ever closed: each gives a permit.
        let _turn = if this.meter.is_long() {
            if this.tenants.is_none() {
                this.tenants = ready!(this.long.poll_acquire(context));
            }
            ready!(this.all.poll_acquire(context))
        } else {
            ready!(this.short.poll_acquire(context))
        };
        this.meter.begin();
        let polled = this.call.as_mut().poll(context);
        this.meter.end();
        if !this.meter.took_a_break() {
            this.tenants = None;
        }
        polled
    }
}

/// The CPU time of a call against its limit: the thread's own time while the call is polled. What passes while it waits, for the
/// host or for its turn, is not in it; what the host does for it at once is.
#[derive(Debug)]
pub struct CpuMeter {
    limit: Duration,
    /// Nanoseconds of the turns before.
    used: AtomicU64,
    /// The thread's time when this turn began.
    since: AtomicU64,
    is_exceeded: AtomicBool,
    /// The turn ended for others' sake, and the call would go on.
    is_break: AtomicBool,
}

impl CpuMeter {
    /// A meter that stands at nothing.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            used: AtomicU64::new(0),
            since: AtomicU64::new(0),
            is_exceeded: AtomicBool::new(false),
            is_break: AtomicBool::new(false),
        }
    }

    fn begin(&self) {
        self.since.store(thread_time(), Ordering::Relaxed);
    }

    fn end(&self) {
        self.used.fetch_add(self.turn(), Ordering::Relaxed);
    }

    fn turn(&self) -> u64 {
        thread_time().saturating_sub(self.since.load(Ordering::Relaxed))
    }

    fn is_long(&self) -> bool {
        Duration::from_nanos(self.used.load(Ordering::Relaxed)) >= limits::TICK
    }

    /// Whether the guest, which has its turn, may go on.
    pub fn has_time(&self) -> bool {
        let used = self.used.load(Ordering::Relaxed) + self.turn();
        let has_time = Duration::from_nanos(used) <= self.limit;
        self.is_exceeded.store(!has_time, Ordering::Relaxed);
        has_time
    }

    /// The turn ends for others' sake.
    pub fn take_a_break(&self) {
        self.is_break.store(true, Ordering::Relaxed);
    }

    fn took_a_break(&self) -> bool {
        self.is_break.swap(false, Ordering::Relaxed)
    }

    /// Whether the limit was hit.
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }
}

/// The CPU time of this thread, in nanoseconds.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanoseconds
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::Mutex;

    use tokio::task::JoinSet;

    use super::*;

    /// Computes for so long between yields.
    async fn computes(meter: Arc<CpuMeter>, times: usize, on_turn: impl Fn()) {
        for _ in 0..times {
            let start = thread_time();
            while thread_time() - start < 11_000_000 {
                black_box(0);
            }
            on_turn();
            meter.take_a_break();
            yields().await;
        }
    }

    /// As the runtime does it: the task is ready again at once.
    async fn yields() {
        let mut has_yielded = false;
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    #[tokio::test]
    async fn long_calls_of_two_tenants_take_turns_however_many_one_of_them_has() {
        let all = LongTurns(Arc::new(Semaphore::new(1)));
        let (many, one) = (Turns::of(&all), Turns::of(&all));
        let order = Arc::new(Mutex::new(Vec::new()));
        let call = |turns: &Turns, tenant: &'static str| {
            let order = Arc::clone(&order);
            let meter = Arc::new(CpuMeter::new(Duration::from_secs(1)));
            let on_turn = move || order.lock().unwrap().push(tenant);
            turns.take(Arc::clone(&meter), computes(meter, 3, on_turn))
        };
        let calls: JoinSet<()> = (0..5).map(|_| call(&many, "many")).chain([call(&one, "one")]).collect();
        calls.join_all().await;
        let order = order.lock().unwrap();
        let last_of_one = order.iter().rposition(|tenant| *tenant == "one").unwrap();
        // All five have their first, short turn; from then on it is one turn for each tenant.
        assert!(last_of_one < 12, "{order:?}");
        assert_eq!(order.len(), 18);
    }

    #[tokio::test]
    async fn waiting_is_not_cpu_time_and_computing_is() {
        let turns = Turns::of(&LongTurns::new());
        let meter = Arc::new(CpuMeter::new(Duration::from_millis(5)));
        turns
            .take(Arc::clone(&meter), tokio::time::sleep(Duration::from_millis(50)))
            .await;
        assert!(!meter.is_long());
        let computing = computes(Arc::clone(&meter), 1, || ());
        turns.take(Arc::clone(&meter), computing).await;
        assert!(meter.is_long());
        meter.begin();
        assert!(!meter.has_time() && meter.is_exceeded());
    }
}

//! One call into a fresh instance, within its limits. Nothing of it survives but its answer and what it printed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use wasmtime::component::{ComponentExportIndex, ResourceTableError, Val};
use wasmtime::{Store, Trap};

use crate::component::Component;
use crate::egress::{Denial, Egress};
use crate::error::{CallError, OperationError};
use crate::limits::{self, Limits};
use crate::output::{self, Output};
use crate::runtime::Runtime;
use crate::store::{CallState, new_store};
use crate::turns::{CpuMeter, Turns};
use crate::usage::Counters;

/// Where calls of one tenant run.
#[derive(Debug)]
pub struct Caller {
    pub runtime: Runtime,
    pub tenant: String,
    pub limits: Limits,
    pub egress: Egress,
    pub turns: Turns,
    pub in_flight: Semaphore,
    pub counters: Arc<Counters>,
}

/// What is called, with what, and until when.
#[derive(Debug)]
pub struct Call {
    pub component: Arc<Component>,
    pub function: ComponentExportIndex,
    pub name: &'static str,
    pub params: Vec<Val>,
    /// The operation's; a call that has none touches nothing.
    pub deadline: Option<Instant>,
    /// The tenant is gone, or nobody waits for the call any more.
    pub ended: CancellationToken,
}

/// What a call gave, and what was seen of it.
#[derive(Debug)]
pub struct Answer {
    /// The function's result.
    pub value: Val,
    /// What the guest said on stderr.
    pub warnings: Vec<String>,
    /// What it said on stdout.
    pub debug: Vec<String>,
    /// Requests that were not let out.
    pub denials: Vec<Denial>,
    /// Whether it sent a request that may change something.
    pub has_written: bool,
}

/// A call that gave no answer.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub error: CallError,
    /// Whether it sent a request that may have changed something.
    pub has_written: bool,
}

impl From<Failed> for OperationError {
    fn from(failed: Failed) -> Self {
        Self {
            may_have_effect: failed.has_written,
            ..failed.error.into()
        }
    }
}

impl Caller {
    /// Calls one function of a component.
    pub async fn call(&self, call: Call) -> Result<Answer, Failed> {
        let Call {
            component,
            function,
            name,
            params,
            deadline,
            ended: gone,
        } = call;
        let without_effect = |error| Failed {
            error,
            has_written: false,
        };
        // Past the pool wasmtime errs instead of waiting.
        let admitting = async {
            // It is never closed.
            let call = self.in_flight.acquire().await;
            (call, self.runtime.instances.lend(&self.counters.instances).await)
        };
        let waits_until = deadline.unwrap_or_else(|| Instant::now() + self.limits.wall_time);
        let _admitted = tokio::select! {
            biased;
            () = gone.cancelled() => return Err(without_effect(self.gone())),
            () = tokio::time::sleep_until(waits_until) => return Err(without_effect(match deadline {
                Some(_) => CallError::Deadline(name.to_string()),
                None => {
                    let value = self.limits.calls_in_flight.to_string();
                    self.limit("a call waited too long for others of its tenant", "calls_in_flight", value)
                }
            })),
            admitted = admitting => admitted,
        };
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        let (stdout, stderr) = (Output::default(), Output::default());
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wall_time = remaining.map_or(self.limits.wall_time, |remaining| remaining.min(self.limits.wall_time));
        let door = self.egress.door(Instant::now() + wall_time, deadline.is_none());
        let guest_ended = door.guest_ended.clone();
        let (denials, in_flight) = (door.denials.clone(), door.in_flight.clone());
        let has_written = Arc::clone(&door.has_written);
        let cpu = Arc::new(CpuMeter::new(self.limits.cpu_time));
        let mut store = new_store(
            &self.runtime.engine,
            &self.limits,
            &self.counters,
            Arc::clone(&cpu),
            door,
            &stdout,
            &stderr,
        );
        let mut results = [Val::Bool(false)];
        let running = async {
            let instance = component.instance.instantiate_async(&mut store).await?;
            let function = instance
                .get_func(&mut store, function)
                .ok_or_else(|| wasmtime::Error::msg("the function is not exported"))?;
            function.call_async(&mut store, &params, &mut results).await
        };
        // Epochs never interrupt a wait in the host, so a timer does. The store is thrown away in any case.
        let running = timeout(wall_time, self.turns.take(cpu, running));
        let ended = tokio::select! {
            biased;
            () = gone.cancelled() => None,
            ended = running => Some(ended),
        };
        guest_ended.cancel();
        // A request that is still under way may yet take effect: its end is awaited before anybody asks what became of it.
        in_flight.close();
        in_flight.wait().await;
        let [value] = results;
        let has_written = has_written.load(Ordering::Relaxed);
        let error = match ended {
            Some(Ok(Ok(()))) => {
                return Ok(Answer {
                    value,
                    warnings: stderr.lines(),
                    debug: stdout.lines(),
                    denials: denials.take(),
                    has_written,
                });
            }
            Some(Ok(Err(error))) => self.exceeded(&store, &error).unwrap_or_else(|| CallError::Trap {
                function: name.to_string(),
                reason: reason(&error, &stderr.lines(), &denials.take()),
            }),
            Some(Err(_)) if remaining.is_some_and(|remaining| remaining <= self.limits.wall_time) => {
                CallError::Deadline(name.to_string())
            }
            Some(Err(_)) => {
                let value = format!("{:?}", self.limits.wall_time);
                self.limit("a call took too long", "wall_time", value)
            }
            None => self.gone(),
        };
        Err(Failed { error, has_written })
    }

    fn gone(&self) -> CallError {
        CallError::TenantGone(self.tenant.clone())
    }

    fn limit(&self, what: &'static str, setting: &'static str, value: String) -> CallError {
        self.counters.hit(setting);
        CallError::Limit {
            tenant: self.tenant.clone(),
            what,
            setting,
            value,
        }
    }

    /// The limit that a call ended at, if that is what ended it.
    fn exceeded(&self, store: &Store<CallState>, error: &wasmtime::Error) -> Option<CallError> {
        let state = store.data();
        let (what, setting, value) =
            if state.cpu.is_exceeded() && error.downcast_ref::<Trap>() == Some(&Trap::Interrupt) {
                let value = format!("{:?}", self.limits.cpu_time);
                ("a call used too much CPU time", "cpu_time", value)
            } else if state.memory.is_exceeded {
                // A guest that is refused memory stops itself.
                let value = format!("{} bytes", self.limits.memory);
                ("a call used too much memory", "memory", value)
            } else if error.downcast_ref::<Trap>() == Some(&Trap::StackOverflow) {
                let value = format!("{} bytes", limits::STACK);
                ("a call used too much of its stack", "stack", value)
            } else if state.is_table_exceeded {
                let value = limits::TABLE_ELEMENTS.to_string();
                ("a call used too large a table", "table elements", value)
            } else if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
                let value = limits::RESOURCES.to_string();
                ("a call held too many handles", "handles", value)
            } else if error.root_cause().to_string().contains(OUT_OF_HOSTCALL_FUEL) {
                let value = format!("{} bytes", limits::LIFTED_BYTES);
                ("a call handed out too much", "bytes handed out", value)
            } else {
                return None;
            };
        Some(self.limit(what, setting, value))
    }
}

/// How the runtime says, in words only, that a guest handed out more than it may.
const OUT_OF_HOSTCALL_FUEL: &str = "fuel allocated for hostcalls";

/// Why a guest stopped: what it said last, what was denied to it, and what the runtime says, without the backtrace.
fn reason(error: &wasmtime::Error, said: &[String], denials: &[Denial]) -> String {
    let root = output::clean(&error.root_cause().to_string());
    let said = match said {
        [] => root,
        lines => format!("{root} ({})", lines.join(" ")),
    };
    denials.iter().fold(said, |said, denial| format!("{said}; {denial}"))
}

//! One call into a fresh instance, within its limits. Nothing of it survives but its answer and what it printed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::{Instant, timeout};
use wasmtime::component::{ComponentExportIndex, Val};
use wasmtime::{Store, Trap};

use crate::component::Component;
use crate::egress::{Denial, Egress};
use crate::error::{CallError, OperationError};
use crate::limits::Limits;
use crate::output::{self, Output};
use crate::runtime::Runtime;
use crate::store::{CallState, new_store};

/// Where calls of one tenant run.
#[derive(Debug)]
pub struct Caller {
    pub runtime: Runtime,
    pub tenant: String,
    pub limits: Limits,
    pub egress: Egress,
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
    pub async fn call(
        &self,
        component: &Component,
        function: &ComponentExportIndex,
        name: &str,
        params: &[Val],
        deadline: Instant,
    ) -> Result<Answer, Failed> {
        let trap = |reason: String| CallError::Trap {
            function: name.to_string(),
            reason,
        };
        // Past the pool wasmtime errs instead of waiting. The semaphore is never closed.
        let _instance = self.runtime.instances.acquire().await.map_err(|error| Failed {
            error: trap(error.to_string()),
            has_written: false,
        })?;
        let (stdout, stderr) = (Output::default(), Output::default());
        let remaining = deadline.saturating_duration_since(Instant::now());
        let wall_time = self.limits.wall_time.min(remaining);
        let door = self.egress.door(Instant::now() + wall_time);
        let guest_ended = door.guest_ended.clone();
        let (denials, in_flight) = (door.denials.clone(), door.in_flight.clone());
        let has_written = Arc::clone(&door.has_written);
        let mut store = new_store(
            &self.runtime.engine,
            &self.runtime.clock,
            &self.limits,
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
            function.call_async(&mut store, params, &mut results).await
        };
        // Epochs never interrupt a wait in the host, so a timer does. The store is thrown away in any case.
        let ended = timeout(wall_time, running).await;
        guest_ended.cancel();
        // A request that is still under way may yet take effect: its end is awaited before anybody asks what became of it.
        in_flight.close();
        in_flight.wait().await;
        let [value] = results;
        let has_written = has_written.load(Ordering::Relaxed);
        let error = match ended {
            Ok(Ok(())) => {
                return Ok(Answer {
                    value,
                    warnings: stderr.lines(),
                    debug: stdout.lines(),
                    denials: denials.take(),
                    has_written,
                });
            }
            Ok(Err(error)) => self
                .exceeded(&store, &error)
                .unwrap_or_else(|| trap(reason(&error, &stderr.lines()))),
            Err(_) if remaining <= self.limits.wall_time => CallError::Deadline(name.to_string()),
            Err(_) => self.limit(
                "a call took too long",
                "wall_time",
                format!("{:?}", self.limits.wall_time),
            ),
        };
        Err(Failed { error, has_written })
    }

    fn limit(&self, what: &'static str, setting: &'static str, value: String) -> CallError {
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
        if state.cpu.is_exceeded && error.downcast_ref::<Trap>() == Some(&Trap::Interrupt) {
            let value = format!("{:?}", self.limits.cpu_time);
            return Some(self.limit("a call used too much CPU time", "cpu_time", value));
        }
        // A guest that is refused memory stops itself.
        state.memory.is_exceeded.then(|| {
            self.limit(
                "a call used too much memory",
                "memory",
                format!("{} bytes", self.limits.memory),
            )
        })
    }
}

/// Why a guest stopped: what it said last, and what the runtime says, without the backtrace.
fn reason(error: &wasmtime::Error, said: &[String]) -> String {
    let root = output::clean(&error.root_cause().to_string());
    match said {
        [] => root,
        lines => format!("{root} ({})", lines.join(" ")),
    }
}

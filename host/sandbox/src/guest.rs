//! A component under its configuration, and single calls into it.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use wasmtime::component::{ComponentExportIndex, Val};

use crate::call::{Answer, Caller, Failed};
use crate::component::Component;
use crate::error::CallError;

/// A configured component.
#[derive(Debug)]
pub struct Guest {
    pub caller: Caller,
    pub component: Arc<Component>,
    /// Its configuration's record.
    pub config: Val,
    in_flight: Semaphore,
}

impl Guest {
    pub fn new(caller: Caller, component: Arc<Component>, config: Val) -> Self {
        Self {
            in_flight: Semaphore::new(caller.limits.calls_in_flight),
            caller,
            component,
            config,
        }
    }

    /// Calls a function, as soon as fewer calls than the limit are in flight.
    pub async fn call(
        &self,
        function: &ComponentExportIndex,
        name: &str,
        params: &[Val],
        deadline: Instant,
    ) -> Result<Answer, Failed> {
        let _call = self.in_flight.acquire().await.map_err(|error| Failed {
            error: CallError::Trap {
                function: name.to_string(),
                reason: error.to_string(),
            },
            has_written: false,
        })?;
        self.caller
            .call(&self.component, function, name, params, deadline)
            .await
    }

    /// Calls a function that touches nothing.
    pub async fn pure(&self, function: &ComponentExportIndex, name: &str, params: &[Val]) -> Result<Val, CallError> {
        let deadline = Instant::now() + self.caller.limits.wall_time;
        let called = self.call(function, name, params, deadline).await;
        Ok(called.map_err(|failed| failed.error)?.value)
    }
}

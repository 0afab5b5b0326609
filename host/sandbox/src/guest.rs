//! A component under its configuration, and single calls into it.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmtime::component::{ComponentExportIndex, Val};

use crate::call::{Answer, Call, Caller, Failed};
use crate::component::Component;
use crate::error::CallError;

/// A configured component.
#[derive(Debug)]
pub struct Guest {
    pub caller: Arc<Caller>,
    pub component: Arc<Component>,
    /// Its configuration's record.
    pub config: Val,
    /// Its tenant is gone.
    pub ended: CancellationToken,
}

impl Guest {
    /// Calls a function.
    pub async fn call(
        &self,
        function: &ComponentExportIndex,
        name: &'static str,
        params: Vec<Val>,
        deadline: Instant,
    ) -> Result<Answer, Failed> {
        let call = Call {
            component: Arc::clone(&self.component),
            function: *function,
            name,
            params,
            deadline,
            ended: self.ended.clone(),
        };
        let caller = Arc::clone(&self.caller);
        // In a task of its own: a call that is not polled for a while would keep its turn from others. It ends with this future.
        let mut task = JoinSet::new();
        task.spawn(async move { caller.call(call).await });
        match task.join_next().await {
            Some(Ok(called)) => called,
            ended => Err(Failed {
                error: CallError::Trap {
                    function: name.to_string(),
                    reason: format!("a fault in its host: {ended:?}"),
                },
                // It may have been in the midst of a request.
                has_written: true,
            }),
        }
    }

    /// Calls a function that touches nothing.
    pub async fn pure(
        &self,
        function: &ComponentExportIndex,
        name: &'static str,
        params: Vec<Val>,
    ) -> Result<Val, CallError> {
        let deadline = Instant::now() + self.caller.limits.wall_time;
        let called = self.call(function, name, params, deadline).await;
        Ok(called.map_err(|failed| failed.error)?.value)
    }
}

//! A component under its configuration, and single calls into it.

use std::sync::Arc;

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
    /// Calls a function, until a deadline.
    pub async fn call(
        &self,
        function: &ComponentExportIndex,
        name: &'static str,
        params: Vec<Val>,
        deadline: Instant,
    ) -> Result<Answer, Failed> {
        self.run(function, name, params, Some(deadline)).await
    }

    /// Calls a function that touches nothing: no request of it is let out.
    pub async fn pure(
        &self,
        function: &ComponentExportIndex,
        name: &'static str,
        params: Vec<Val>,
    ) -> Result<Val, CallError> {
        let called = self.run(function, name, params, None).await;
        Ok(called.map_err(|failed| failed.error)?.value)
    }

    async fn run(
        &self,
        function: &ComponentExportIndex,
        name: &'static str,
        params: Vec<Val>,
        deadline: Option<Instant>,
    ) -> Result<Answer, Failed> {
        let ended = self.ended.child_token();
        let call = Call {
            component: Arc::clone(&self.component),
            function: *function,
            name,
            params,
            deadline,
            ended: ended.clone(),
        };
        let caller = Arc::clone(&self.caller);
        // It ends when nobody waits for it any more, and gives back what it holds once its requests have ended.
        let _ends = ended.drop_guard();
        // In a task of its own: a call that is not polled for a while would keep its turn from others.
        let task = tokio::spawn(async move { caller.call(call).await });
        task.await.unwrap_or_else(|fault| {
            Err(Failed {
                error: CallError::Trap {
                    function: name.to_string(),
                    reason: format!("a fault in its host: {fault}"),
                },
                // It may have been in the midst of a request.
                has_written: true,
            })
        })
    }
}

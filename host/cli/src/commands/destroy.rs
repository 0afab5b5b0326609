//! `destroy`: removes what the stack has made.

use std::sync::Arc;

use bindery_stack::Plan;

use super::{Changing, Kept, Opened, settled};
use crate::args::Run;
use crate::failure::{Failure, unwritten};
use crate::report::Report;

/// Removes everything that the stack has made, or the targets among it.
pub async fn destroy(run: &Run, report: &Report) -> Result<(), Failure> {
    let (opened, store) = Opened::to_change(run, Kept::State, "destroy", report).await?;
    report.heading("Destroying");
    let unsettled = settled(&opened, &store, report).await?;
    let plan = match store.look(|deployment| Plan::destroy(deployment, &run.selection.targets())) {
        Ok(plan) => plan,
        Err(wrong) => {
            store.close().await.map_err(unwritten)?;
            return Err(Failure::diagnostics(wrong));
        }
    };
    let changing = Changing {
        run,
        report,
        stack: &opened.stack,
        session: Arc::new(opened.session),
        store: Arc::new(store),
        unsettled,
        declared: None,
    };
    changing.carry_out(plan).await
}

//! `destroy`: removes what the stack has made.

use std::sync::Arc;

use bindery_stack::{CheckError, Deployment, Plan, Provider};

use super::{Changing, Kept, Opened, settled};
use crate::args::Run;
use crate::failure::{Failure, unwritten};
use crate::report::Report;

/// Removes everything that the stack has made, or the targets among it.
pub async fn destroy(run: &Run, report: &Report) -> Result<(), Failure> {
    let (opened, store) = Opened::to_change(run, Kept::State, "destroy", report).await?;
    report.heading("Destroying");
    let unsettled = settled(&opened, run, &store, report).await?;
    let targets = run.selection.targets();
    // What stays keeps what it has, also where one that goes is known to have it too.
    let staying = |deployment: &Deployment| {
        let staying = deployment
            .resources
            .values()
            .filter(|resource| !targets.include(&resource.urn));
        staying.cloned().collect::<Vec<_>>()
    };
    for resource in store.look(staying) {
        match opened.session.claim(&resource).await {
            // Two that stay may be known to have the same: each is left alone.
            Ok(()) | Err(CheckError::Claim(_)) => {}
            Err(error) => return Err(Failure::run(error)),
        }
    }
    let plan = match store.look(|deployment| Plan::destroy(deployment, &targets)) {
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
        found: Vec::new(),
        is_read: true,
        declared: None,
    };
    changing.carry_out(plan).await
}

//! `preview`: shows what `up` would do.

use super::Opened;
use crate::args::Preview;
use crate::failure::Failure;
use crate::report::Report;
use bindery_stack::Diagnostic;

/// Shows what `up` would do. No service is asked, and nothing is written.
pub async fn preview(options: &Preview, report: &Report) -> Result<(), Failure> {
    let opened = Opened::to_look(&options.place, &options.services, report).await?;
    let deployment = opened.stack.paths.load(&opened.owner)?;
    let plan = opened.plan(&deployment, &options.selection.targets()).await?;
    report.heading("Previewing");
    let holder = opened.stack.paths.holder();
    if let Some(holder) = &holder {
        report.warn(&Diagnostic::new(format!("{holder} works on this stack at this moment")));
    }
    for pending in deployment.pending_operations.iter().filter(|_| holder.is_none()) {
        let message = "an earlier run was interrupted while it worked on this: `up` finds out first what became of it";
        report.warn(&Diagnostic::of_urn(&pending.resource.urn, None, message));
    }
    report.plan(&plan, options.selection.detail());
    report.outputs(&plan.outputs);
    Ok(())
}

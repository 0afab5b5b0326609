//! `preview`: shows what `up` would do.

use super::Opened;
use crate::args::Preview;
use crate::failure::Failure;
use crate::report::Report;
use bindery_stack::Diagnostic;
use bindery_stack::plan::unsettled;

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
    if holder.is_none() {
        unsettled(&deployment).iter().for_each(|warning| report.warn(warning));
    }
    report.plan(&plan, options.selection.detail());
    report.outputs(&plan.outputs);
    Ok(())
}

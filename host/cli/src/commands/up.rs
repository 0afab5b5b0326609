//! `up`: makes what the stack file declares so.

use std::collections::HashSet;
use std::sync::Arc;

use bindery_resource::Urn;
use bindery_stack::plan::{Request, plan};
use bindery_stack::{Action, Change, Deployment, Diagnostic, Plan, ResourceState, Targets};

use super::refresh::read_all;
use super::{Changing, Kept, Opened, settled};
use crate::args::Run;
use crate::failure::{Ending, Failure, unwritten};
use crate::report::Report;
use crate::session::Session;

impl Opened {
    /// What is to be done about the difference.
    pub(super) async fn plan(&self, deployment: &Deployment, targets: &Targets) -> Result<Plan, Failure> {
        let request = Request {
            file: &self.stack.file,
            stack: &self.stack.name,
            config: &self.config,
            deployment,
            targets,
        };
        plan(request, &self.session).await.map_err(Failure::diagnostics)
    }
}

/// Makes what the stack file declares so.
pub async fn up(run: &Run, report: &Report) -> Result<(), Failure> {
    let (mut opened, store) = Opened::to_change(run, Kept::File, "up", report).await?;
    let targets = run.selection.targets();
    let is_interrupted = store.look(|deployment| !deployment.pending_operations.is_empty());
    let is_reconfigured = store.look(|deployment| {
        let exists = !deployment.resources.is_empty();
        exists && deployment.config != opened.session.config
    });
    if is_interrupted || is_reconfigured {
        // What is wrong with the file is said before anything is asked of a service.
        opened.plan(&store.deployment(), &targets).await?;
        // That was no more than a look: what it claimed may be another's by the next.
        opened.session.run = bindery_sandbox::Run::new();
    }
    let unsettled = settled(&opened, run, &store, report).await?;
    let mut found = Vec::new();
    let mut is_read = true;
    if is_reconfigured {
        report.line("the configuration has changed since the last run: reading what exists");
        let resources = store.look(|deployment| deployment.all().cloned().collect::<Vec<_>>());
        (found, is_read) = read_again(&opened, run, &resources, report).await?;
    }
    let mut deployment = store.deployment();
    found.iter().for_each(|change| deployment.apply(change.clone()));
    let planned = opened.plan(&deployment, &targets).await;
    let overwritten = match &planned {
        Ok(plan) => overwritten(&opened.session, plan, &deployment).await,
        Err(_) => Vec::new(),
    };
    let planned = if overwritten.is_empty() {
        planned
    } else {
        let (more, is_whole) = read_again(&opened, run, &overwritten, report).await?;
        is_read &= is_whole;
        more.iter().for_each(|change| deployment.apply(change.clone()));
        found.extend(more);
        opened.session.run = bindery_sandbox::Run::new();
        opened.plan(&deployment, &targets).await
    };
    let plan = match planned {
        Ok(plan) => {
            report.heading("Updating");
            plan
        }
        Err(failure) => {
            store.close().await.map_err(unwritten)?;
            return Err(failure);
        }
    };
    let Opened {
        stack, session, config, ..
    } = opened;
    let changing = Changing {
        run,
        report,
        stack: &stack,
        session: Arc::new(session),
        store: Arc::new(store),
        unsettled,
        found,
        is_read,
        declared: Some(config),
    };
    changing.carry_out(plan).await
}

/// Resources that stay as the state has them, though one that goes was made in their place: what they granted may have
/// been overwritten.
async fn overwritten(session: &Session, plan: &Plan, deployment: &Deployment) -> Vec<ResourceState> {
    let same = plan.steps.iter().filter(|step| step.action == Action::Same);
    let mut same: HashSet<&Urn> = same.map(|step| &step.urn).collect();
    let mut found = Vec::new();
    let removed = plan.steps.iter().filter(|step| step.action == Action::Delete);
    for old in removed.filter_map(|step| step.old.as_ref()) {
        // What cannot be found out here is said when it is removed.
        let owner = session.claimed_by(old).await.ok().flatten();
        let known = owner.filter(|owner| *owner != old.urn && same.contains(owner));
        if let Some(known) = known.and_then(|owner| deployment.resource(&owner))
            && !session.is_alike(known, old).await
        {
            same.remove(&known.urn);
            found.push(known.clone());
        }
    }
    found
}

/// Reads resources whose state may no longer say what is there. False where not all of them could be read.
async fn read_again(
    opened: &Opened,
    run: &Run,
    resources: &[ResourceState],
    report: &Report,
) -> Result<(Vec<Change>, bool), Failure> {
    let found = read_all(&opened.session, report, resources, opened.stack.parallel(run.parallel)).await;
    if opened.session.cancel.is_cancelled() {
        return Err(Failure::reported(Ending::Interrupted));
    }
    let mut changes = Vec::new();
    let mut is_read = true;
    for (resource, found) in resources.iter().zip(found) {
        match found {
            Ok(Some(found)) if found == *resource => {}
            Ok(Some(found)) => changes.push(Change::Note(found)),
            Ok(None) => changes.push(Change::Forget(resource.clone())),
            Err(error) => {
                is_read = false;
                report.problem(&Diagnostic::of_urn(
                    &resource.urn,
                    None,
                    format!("it cannot be read: {error}"),
                ));
            }
        }
    }
    Ok((changes, is_read))
}

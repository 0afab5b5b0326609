//! `up`: makes what the stack file declares so.

use std::sync::Arc;

use bindery_stack::plan::{Request, plan};
use bindery_stack::{Change, Deployment, Plan, Targets};

use super::refresh::read_all;
use super::{Changing, Kept, Opened, settled};
use crate::args::Run;
use crate::failure::{Failure, Problem, unwritten};
use crate::report::Report;
use crate::session::Session;
use crate::store::Store;

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
    let found = if is_reconfigured {
        read_again(&opened.session, &store, opened.stack.parallel(run.parallel), report).await?
    } else {
        Vec::new()
    };
    let mut deployment = store.deployment();
    found.iter().for_each(|change| deployment.apply(change.clone()));
    let plan = match opened.plan(&deployment, &targets).await {
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
        declared: Some(config),
    };
    changing.carry_out(plan).await
}

/// Under another configuration what exists may mean something else: it is read before it is compared.
async fn read_again(
    session: &Session,
    store: &Store,
    parallel: usize,
    report: &Report,
) -> Result<Vec<Change>, Failure> {
    report.line("the configuration has changed since the last run: reading what exists");
    let resources = store.look(|deployment| deployment.all().cloned().collect::<Vec<_>>());
    let found = read_all(session, report, &resources, parallel).await;
    let mut changes = Vec::new();
    for (resource, found) in resources.into_iter().zip(found) {
        match found {
            Ok(Some(found)) if found == resource => {}
            Ok(Some(found)) => changes.push(Change::Note(found)),
            Ok(None) => changes.push(Change::Forget(resource)),
            Err(error) => report.warn(&Problem::of(&resource.urn, None, format!("it cannot be read: {error}"))),
        }
    }
    Ok(changes)
}

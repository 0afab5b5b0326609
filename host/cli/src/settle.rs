//! What an interrupted run left: operations that were begun, and whose end nobody saw. One read each tells.

use std::collections::HashSet;

use bindery_resource::Urn;
use bindery_stack::{OperationType, Outcome, PendingOperation, Provider, ResourceState};

use crate::failure::{Failure, Problem, unwritten};
use crate::report::Report;
use crate::session::Session;
use crate::store::Store;

/// Settles every pending operation, and writes what was found. Gives the resources of those that could not be: they stay
/// pending, and are left alone by this run.
pub async fn settle(session: &Session, store: &Store, report: &Report) -> Result<HashSet<Urn>, Failure> {
    let mut unsettled = HashSet::new();
    for pending in store.look(|deployment| deployment.pending_operations.clone()) {
        let PendingOperation { kind, resource } = &pending;
        let urn = resource.urn.clone();
        if *kind == OperationType::Creating && resource.id.is_empty() {
            let message =
                "an earlier run was stopped while it created this, and cannot say whether it exists; check by hand";
            report.warn(&Problem::of(&urn, None, message));
            store.end(&pending, Outcome::Nothing).await.map_err(unwritten)?;
            continue;
        }
        let found = match read(session, report, *kind, resource).await {
            // What is there and is not as this was declared, was there before, and is not this resource's.
            Ok(Some(found)) if *kind == OperationType::Creating && !is_as_declared(session, &found).await => None,
            Ok(found) => found,
            Err(error) => {
                let message = format!(
                    "an earlier run was stopped while it worked on this, and what became of it cannot be found out: {error}"
                );
                report.problem(&Problem::of(&urn, None, message));
                unsettled.insert(urn);
                continue;
            }
        };
        let what = if found.is_some() { "there" } else { "not there" };
        report.line(format!("   {}: settled after an interrupted run: {what}", urn.name()));
        let outcome = match (kind, found) {
            (OperationType::Creating, Some(found)) => Outcome::Made(found),
            (OperationType::Creating, None) => Outcome::Nothing,
            (_, Some(found)) => Outcome::Changed(found),
            (_, None) => Outcome::Gone,
        };
        store.end(&pending, outcome).await.map_err(unwritten)?;
    }
    Ok(unsettled)
}

async fn is_as_declared(session: &Session, found: &ResourceState) -> bool {
    session
        .diff(found, &found.inputs)
        .await
        .is_ok_and(|diff| diff.changes.is_empty())
}

async fn read(
    session: &Session,
    report: &Report,
    kind: OperationType,
    resource: &ResourceState,
) -> Result<Option<ResourceState>, String> {
    let context = session.context(report.listener(&resource.urn));
    let last = (kind != OperationType::Creating).then_some(&resource.outputs);
    let token = resource.urn.token();
    let found = session.tenant.read(&context, token, &resource.id, last).await;
    let found = found.map_err(|error| error.to_string())?;
    Ok(found.map(|found| ResourceState {
        id: found.id,
        outputs: found.outputs,
        ..resource.clone()
    }))
}

//! What an interrupted run left: operations that were begun, and whose end nobody saw. One read each tells.

use std::collections::HashSet;

use bindery_resource::Urn;
use bindery_stack::{Deployment, OperationType, PendingOperation, Provider, ResourceState};

use crate::apply::put;
use crate::failure::Failure;
use crate::report::Report;
use crate::session::Session;
use crate::store::Store;

/// Settles every pending operation, and writes what was found. Gives the resources of those that could not be: they stay
/// pending, and are left alone by this run.
pub async fn settle(session: &Session, store: &Store) -> Result<HashSet<Urn>, Failure> {
    let mut unsettled = HashSet::new();
    for pending in store.deployment().pending_operations {
        let PendingOperation { kind, resource } = pending.clone();
        let urn = resource.urn.clone();
        if kind == OperationType::Creating && resource.id.is_empty() {
            let message =
                "an earlier run was stopped while it created this, and cannot say whether it exists; check by hand";
            Report::warn(&urn, message);
            store.end(&pending, |_| {}).await.map_err(unwritten)?;
            continue;
        }
        let found = match read(session, kind, &resource).await {
            // What is there and is not as this was declared, was there before, and is not this resource's.
            Ok(Some(found)) if kind == OperationType::Creating && !is_as_declared(session, &found).await => None,
            Ok(found) => found,
            Err(error) => {
                let message = format!(
                    "resource `{}`: an earlier run was stopped while it worked on this, and what became of it cannot be \
                     found out: {error}",
                    urn.name()
                );
                Failure::run(message).report();
                unsettled.insert(urn);
                continue;
            }
        };
        let what = if found.is_some() { "there" } else { "not there" };
        println!("   {}: settled after an interrupted run: {what}", urn.name());
        store
            .end(&pending, |deployment| note(deployment, kind, &urn, &resource, found))
            .await
            .map_err(unwritten)?;
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
    kind: OperationType,
    resource: &ResourceState,
) -> Result<Option<ResourceState>, String> {
    let urn = resource.urn.clone();
    let context = session.context(move |event| Report::on_event(&urn, &event));
    let last = (kind != OperationType::Creating).then_some(&resource.outputs);
    let found = session
        .tenant
        .read(&context, resource.urn.token(), &resource.id, last)
        .await;
    let found = found.map_err(|error| error.to_string())?;
    Ok(found.map(|found| ResourceState {
        id: found.id,
        outputs: found.outputs,
        ..resource.clone()
    }))
}

fn note(
    deployment: &mut Deployment,
    kind: OperationType,
    urn: &Urn,
    before: &ResourceState,
    found: Option<ResourceState>,
) {
    let is_it =
        |resource: &ResourceState| resource.urn == *urn && resource.id == before.id && resource.delete == before.delete;
    match (kind, found) {
        (OperationType::Creating, Some(found)) => put(deployment, found),
        (OperationType::Creating, None) => {}
        (_, None) => deployment.resources.retain(|resource| !is_it(resource)),
        (_, Some(found)) => {
            for resource in deployment.resources.iter_mut().filter(|resource| is_it(resource)) {
                *resource = found.clone();
            }
        }
    }
}

fn unwritten(error: std::io::Error) -> Failure {
    Failure::run(format!("the state cannot be written: {error}"))
}

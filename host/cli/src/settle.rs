//! What an interrupted run left: operations that were begun, and whose end nobody saw. One read each tells.

use std::collections::HashSet;

use bindery_resource::Urn;
use bindery_stack::{Diagnostic, OperationType, Outcome, PendingOperation, Provider, ResourceState};
use futures_util::stream::{self, StreamExt};

use crate::failure::{Ending, Failure, unwritten};
use crate::report::Report;
use crate::session::Session;
use crate::store::Store;

/// What a read says of an operation that was under way.
enum Found {
    /// The resource is there, as the operation meant or left it.
    There(Box<ResourceState>),
    /// Something is there that is not as this was declared.
    Other,
    /// It is not there.
    Gone,
    /// Its provider does not know an id by which to look.
    Nameless,
}

/// Settles every pending operation, and writes what was found. Gives the resources of those that could not be: they stay
/// pending, and are left alone by this run.
pub async fn settle(
    session: &Session,
    store: &Store,
    report: &Report,
    parallel: usize,
) -> Result<HashSet<Urn>, Failure> {
    let mut unsettled = HashSet::new();
    let pending = store.look(|deployment| deployment.pending_operations.clone());
    let looks = pending.iter().cloned().map(|pending| look(session, report, pending));
    let found: Vec<Result<Found, String>> = stream::iter(looks).buffered(parallel).collect().await;
    if session.cancel.is_cancelled() {
        return Err(Failure::reported(Ending::Interrupted));
    }
    for (pending, found) in pending.into_iter().zip(found) {
        let urn = &pending.resource.urn;
        let told = |what: &str| report.line(format!("   {}: settled after an interrupted run: {what}", urn.name()));
        let warn = |what: &str| report.warn(&Diagnostic::of_urn(urn, None, what));
        let outcome = match found {
            Ok(Found::There(found)) => {
                told("there");
                match pending.kind {
                    OperationType::Creating => Outcome::Made(*found),
                    OperationType::Updating | OperationType::Deleting => Outcome::Changed(*found),
                }
            }
            Ok(Found::Gone) => {
                told("not there");
                match pending.kind {
                    OperationType::Creating => Outcome::Nothing,
                    OperationType::Updating | OperationType::Deleting => Outcome::Gone,
                }
            }
            Ok(Found::Other) => {
                warn(
                    "an earlier run was stopped while it created this. What is there now is not as it was declared, and \
                     may be the work of others: it is left as it is, and is this stack's only if it is still declared",
                );
                Outcome::Nothing
            }
            Ok(Found::Nameless) => {
                warn(
                    "an earlier run was stopped while it created this, and cannot say whether it exists; check by hand",
                );
                Outcome::Nothing
            }
            Err(error) => {
                let message = format!(
                    "an earlier run was stopped while it worked on this, and what became of it cannot be found out: {error}"
                );
                report.problem(&Diagnostic::of_urn(urn, None, message));
                unsettled.insert(urn.clone());
                continue;
            }
        };
        store.end(&pending, outcome).await.map_err(unwritten)?;
    }
    Ok(unsettled)
}

async fn look(session: &Session, report: &Report, pending: PendingOperation) -> Result<Found, String> {
    let PendingOperation { kind, resource } = pending;
    if kind != OperationType::Creating {
        return Ok(read(session, report, kind, &resource)
            .await?
            .map_or(Found::Gone, |found| Found::There(Box::new(found))));
    }
    if resource.id.is_empty() {
        return Ok(Found::Nameless);
    }
    let Some(found) = read(session, report, kind, &resource).await? else {
        return Ok(Found::Gone);
    };
    // What is there and is not as this was declared, was there before, and is not this resource's; or somebody has changed
    // it since.
    let diff = session.diff(&found, &found.inputs).await?;
    Ok(if diff.changes.is_empty() {
        Found::There(Box::new(found))
    } else {
        Found::Other
    })
}

async fn read(
    session: &Session,
    report: &Report,
    kind: OperationType,
    resource: &ResourceState,
) -> Result<Option<ResourceState>, String> {
    let context = session.context(report.listener(&resource.urn));
    let (tenant, token, id) = (&session.tenant, resource.urn.token(), &resource.id);
    let found = match kind {
        OperationType::Creating => tenant.find(&context, token, id, &resource.inputs).await,
        OperationType::Updating | OperationType::Deleting => {
            tenant.read(&context, token, id, Some(&resource.outputs)).await
        }
    };
    let found = found.map_err(|error| error.to_string())?;
    Ok(found.map(|found| ResourceState {
        id: found.id,
        outputs: found.outputs,
        ..resource.clone()
    }))
}

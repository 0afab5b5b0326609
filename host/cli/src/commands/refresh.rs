//! `refresh`: reads what exists, and notes what has changed.

use std::sync::Arc;

use bindery_resource::Diff;
use bindery_stack::{Change, Diagnostic, Provider, ResourceState};
use futures_util::stream::{self, StreamExt};

use super::{Kept, Opened, settled};
use crate::args::Run;
use crate::failure::{Ending, Failure, unwritten};
use crate::prompt::agreed;
use crate::report::Report;
use crate::session::Session;
use crate::show;
use crate::style::{CHANGE, REMOVED};
use bindery_stack::json;

/// What a read found; none where the resource is gone.
type Found = Result<Option<ResourceState>, String>;

/// Reads what exists, and notes what has changed.
pub async fn refresh(run: &Run, report: &Report) -> Result<(), Failure> {
    let (opened, store) = Opened::to_change(run, Kept::State, "refresh", report).await?;
    report.heading("Refreshing");
    let mut is_done = settled(&opened, run, &store, report).await?.is_empty();
    let session = Arc::new(opened.session);
    let targets = run.selection.targets();
    report.list();
    store
        .look(|deployment| targets.are_known(None, deployment))
        .map_err(Failure::diagnostics)?;
    let resources = store.look(|deployment| {
        let chosen = deployment
            .in_order()
            .into_iter()
            .filter(|resource| targets.include(&resource.urn));
        chosen.cloned().collect::<Vec<_>>()
    });
    let found = read_all(&session, report, &resources, opened.stack.parallel(run.parallel)).await;
    if session.cancel.is_cancelled() {
        store.close().await.map_err(unwritten)?;
        return Err(Failure::reported(Ending::Interrupted));
    }
    let mut drifted = 0;
    let mut changes = Vec::new();
    for (resource, found) in resources.into_iter().zip(found) {
        match found {
            Ok(Some(found)) => {
                let diff = drift(&session, report, &resource, &found).await;
                drifted += usize::from(!diff.changes.is_empty());
                tell(run, report, &resource, &found, &diff);
                if found != resource {
                    changes.push(Change::Note(found));
                }
            }
            Ok(None) => {
                let urn = &resource.urn;
                report.line(format!(
                    "{REMOVED} - {}{REMOVED:#}  {} is gone",
                    urn.name(),
                    urn.token()
                ));
                report.resource(json::Resource::known(&resource, "gone"));
                drifted += 1;
                changes.push(Change::Forget(resource));
            }
            Err(message) => {
                report.problem(&Diagnostic::of_urn(&resource.urn, None, message));
                report.resource(json::Resource::known(&resource, "failed"));
                is_done = false;
            }
        }
    }
    match drifted {
        0 if !is_done => {}
        0 => report.line("nothing has changed"),
        1 => report.line("1 resource has changed; `up` mends it"),
        count => report.line(format!("{count} resources have changed; `up` mends them")),
    }
    // What a person would not call a change, a new etag or another spelling, is noted without a word.
    let is_agreed = if drifted == 0 {
        Ok(true)
    } else {
        agreed(run, &session.cancel).await
    };
    if !changes.is_empty() && matches!(is_agreed, Ok(true)) {
        store.commit(changes).await.map_err(unwritten)?;
    }
    store.close().await.map_err(unwritten)?;
    is_agreed?;
    match is_done {
        true => Ok(()),
        false if session.cancel.is_cancelled() => Err(Failure::reported(Ending::Interrupted)),
        false => Err(Failure::reported(Ending::Failed)),
    }
}

/// Reads resources at the same time; what was found stands in their order.
pub async fn read_all(session: &Session, report: &Report, resources: &[ResourceState], parallel: usize) -> Vec<Found> {
    let read = |resource: &ResourceState| {
        let resource = resource.clone();
        let context = session.context(report.listener(&resource.urn));
        async move {
            let token = resource.urn.token();
            let last = Some(&resource.outputs);
            let found = session.tenant.read(&context, token, &resource.id, last).await;
            let found = found.map_err(|error| error.to_string())?;
            Ok(found.map(|found| ResourceState {
                id: found.id,
                outputs: found.outputs,
                ..resource
            }))
        }
    };
    stream::iter(resources.iter().map(read))
        .buffered(parallel)
        .collect()
        .await
}

/// What is no longer as it was declared.
async fn drift(session: &Session, report: &Report, old: &ResourceState, found: &ResourceState) -> Diff {
    // What is read in the same words has not changed, whatever the configuration's defaults are by now.
    if old.outputs == found.outputs {
        return Diff::default();
    }
    session.diff(found, &old.inputs).await.unwrap_or_else(|message| {
        report.warn(&Diagnostic::of_urn(&old.urn, None, message));
        Diff::default()
    })
}

fn tell(run: &Run, report: &Report, old: &ResourceState, found: &ResourceState, diff: &Diff) {
    if diff.changes.is_empty() {
        report.resource(json::Resource::known(found, "unchanged"));
        return;
    }
    let urn = &old.urn;
    report.line(format!("{CHANGE} ~ {}{CHANGE:#}  {}", urn.name(), urn.token()));
    for line in show::changes(diff, &old.outputs, &found.outputs, run.selection.detail()) {
        report.line(line);
    }
    let changed = |change| json::Change::of(change, Some(&old.outputs), Some(&found.outputs));
    report.resource(json::Resource {
        changes: diff.changes.iter().map(changed).collect(),
        ..json::Resource::known(found, "changed")
    });
}

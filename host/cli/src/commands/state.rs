//! `state show` and `state export`: what a stack is known to have made. Nothing is asked, and nothing is changed.

use bindery_resource::Value;
use bindery_stack::{Deployment, Owner, ResourceState};
use serde_json::json;

use crate::args::Place;
use crate::component;
use crate::failure::Failure;
use crate::report::Report;
use crate::stack::Stack;
use crate::style::{FAINT, HEADING, WARNING};
use bindery_stack::json;

fn load(place: &Place, report: &Report) -> Result<(Deployment, Owner), Failure> {
    let stack = Stack::open(place, report)?;
    let component = component::compile(&component::runtime(report)?, place.of.component.as_ref())?;
    let owner = stack.owner(&component);
    Ok((stack.paths.load(&owner)?, owner))
}

/// Lists the resources, or shows one whole.
pub fn show(place: &Place, resource: Option<&str>, report: &Report) -> Result<(), Failure> {
    let (deployment, _) = load(place, report)?;
    let is_chosen =
        |state: &&ResourceState| resource.is_none_or(|name| [state.urn.name(), state.urn.as_str()].contains(&name));
    let order = deployment.in_order();
    let chosen: Vec<&ResourceState> = order.into_iter().filter(is_chosen).collect();
    if let (Some(name), true) = (resource, chosen.is_empty()) {
        let failure = Failure::input(format!("the state has no resource `{name}`"));
        let names = deployment.all().map(|state| state.urn.name());
        return Err(match bindery_resource::nearest(name, names) {
            Some(near) => failure.with_hint(format!("did you mean `{near}`?")),
            None => failure,
        });
    }
    report.heading("State of");
    report.list();
    let width = chosen
        .iter()
        .map(|state| state.urn.name().chars().count())
        .max()
        .unwrap_or_default();
    for state in &chosen {
        let status = if state.delete { "replaced" } else { "exists" };
        report.resource(json::Resource::known(state, status));
        let notes = [
            (state.delete, "replaced, still to be deleted"),
            (state.protect, "protected"),
            (state.retain_on_delete, "stays on delete"),
        ];
        let notes: Vec<&str> = notes
            .into_iter()
            .filter(|(holds, _)| *holds)
            .map(|(_, note)| note)
            .collect();
        let notes = if notes.is_empty() {
            String::new()
        } else {
            format!("  ({})", notes.join(", "))
        };
        let name = state.urn.name();
        let token = state.urn.token();
        report.line(format!(
            " {HEADING}{name:width$}{HEADING:#}  {FAINT}{token}{FAINT:#}{notes}"
        ));
        report.line(format!("     {}", state.id));
        if resource.is_some() {
            whole(state, report);
        }
    }
    for pending in &deployment.pending_operations {
        let kind = json!(pending.kind);
        let kind = kind.as_str().unwrap_or_default();
        let name = pending.resource.urn.name();
        report.line(format!(
            " {WARNING}{name}{WARNING:#}  {kind}, and its end is not known: `up` finds out"
        ));
    }
    let pending = deployment.pending_operations.iter();
    let pending = pending.map(|operation| json!({"urn": operation.resource.urn.as_str(), "kind": operation.kind}));
    report.field("pendingOperations", pending.collect());
    if resource.is_none() {
        report.outputs(&deployment.outputs);
        let count = chosen.len();
        report.line(format!("{count} resource{}", if count == 1 { "" } else { "s" }));
    }
    Ok(())
}

fn whole(state: &ResourceState, report: &Report) {
    let width = state
        .outputs
        .keys()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or_default();
    for (name, value) in state.outputs.iter().filter(|(_, value)| **value != Value::Null) {
        report.line(format!("     {name:width$}  {value}"));
    }
    for dependency in &state.dependencies {
        report.line(format!("     after `{}`", dependency.name()));
    }
}

/// Prints the state as a deployment document.
pub fn export(place: &Place, report: &Report) -> Result<(), Failure> {
    let (deployment, owner) = load(place, report)?;
    let text = deployment.to_text(&owner).map_err(Failure::run)?;
    let document = serde_json::from_str(&text).map_err(Failure::run)?;
    report.answer(&text, "deployment", document);
    Ok(())
}

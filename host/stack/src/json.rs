//! Plans, resources and what is wrong as JSON: the same in the command line's `--json` (`docs/cli.md`) and in a page.

use std::collections::HashMap;

use bindery_resource::{PropertyMap, PropertyPath, Urn, Value};
use serde::Serialize;
use serde_json::{Map, json};

use crate::diagnostic::Diagnostic;
use crate::document::to_json;
use crate::plan::Plan;
use crate::state::ResourceState;
use crate::step::{Action, Step};

/// One resource.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it; docs/cli.md says the rest")]
pub struct Resource {
    pub name: String,
    pub urn: String,
    #[serde(rename = "type")]
    pub token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<&'static str>,
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub outputs: Map<String, serde_json::Value>,
    /// The paths of inputs that are not known yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Of a replacement: how the old one goes. None where it is deleted after the new one is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_one: Option<&'static str>,
    /// The name that it had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protect: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// One property that differs.
#[derive(Debug, Clone, Serialize)]
#[expect(missing_docs, reason = "the names say it; docs/cli.md says the rest")]
pub struct Change {
    pub path: String,
    pub old: serde_json::Value,
    pub new: serde_json::Value,
    pub replaces: bool,
}

/// A warning or an error.
#[derive(Debug, Clone, Serialize)]
#[expect(missing_docs, reason = "the names say it; docs/cli.md says the rest")]
pub struct Message {
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl Resource {
    /// The resources of a plan.
    pub fn all_planned(plan: &Plan) -> Vec<Self> {
        let before: HashMap<&Urn, &Urn> = plan.renamed.iter().map(|(old, new)| (new, old)).collect();
        let steps = plan.steps.iter();
        steps
            .map(|step| Self::planned(step, before.get(&step.urn).copied()))
            .collect()
    }

    fn planned(step: &Step, before: Option<&Urn>) -> Self {
        let diff = match &step.action {
            Action::Update(diff) | Action::Replace(diff) => Some(diff),
            _ => None,
        };
        let old = step.old.as_ref().map(|old| &old.outputs);
        let changes = diff.into_iter().flat_map(|diff| &diff.changes);
        Self {
            name: step.urn.name().to_string(),
            urn: step.urn.to_string(),
            token: step.urn.token().to_string(),
            action: Some(action(&step.action)),
            status: "planned",
            id: step.id.clone(),
            inputs: known(&step.inputs),
            unknown: unknown_in(&step.inputs),
            changes: changes
                .map(|change| Change::of(change, old, Some(&step.inputs)))
                .collect(),
            old_one: match &step.action {
                Action::Replace(_) if step.kept.retain_on_delete => Some("stays"),
                Action::Replace(diff) if diff.delete_before_replace => Some("deletedFirst"),
                _ => None,
            },
            was: before.map(|old| old.name().to_string()),
            dependencies: step.dependencies.iter().map(ToString::to_string).collect(),
            ..Self::default()
        }
    }

    /// Notes what the resource has become.
    pub fn became(&mut self, state: &ResourceState) {
        self.id = Some(state.id.clone());
        self.inputs = to_json(&state.inputs);
        self.outputs = to_json(&state.outputs);
        self.unknown.clear();
    }

    /// A resource as it is known to be.
    pub fn known(state: &ResourceState, status: &'static str) -> Self {
        Self {
            name: state.urn.name().to_string(),
            urn: state.urn.to_string(),
            token: state.urn.token().to_string(),
            status,
            id: Some(state.id.clone()),
            inputs: to_json(&state.inputs),
            outputs: to_json(&state.outputs),
            dependencies: state.dependencies.iter().map(ToString::to_string).collect(),
            protect: Some(state.protect),
            ..Self::default()
        }
    }
}

impl Change {
    /// How a property differs.
    pub fn of(change: &bindery_resource::Change, old: Option<&PropertyMap>, new: Option<&PropertyMap>) -> Self {
        let value = |properties: Option<&PropertyMap>| {
            properties
                .and_then(|properties| change.path.get(properties))
                .map_or(serde_json::Value::Null, json_of)
        };
        Self {
            path: change.path.to_string(),
            old: value(old),
            new: value(new),
            replaces: change.replaces,
        }
    }
}

impl Message {
    /// What is wrong, with its place in the stack file.
    pub fn of(diagnostic: &Diagnostic, file: Option<&str>) -> Self {
        Self {
            message: diagnostic.message.clone(),
            hint: diagnostic.hint.clone(),
            resource: diagnostic.resource.clone(),
            path: diagnostic
                .path
                .as_ref()
                .filter(|path| path.first().is_some())
                .map(ToString::to_string),
            file: diagnostic.position.and(file).map(String::from),
            line: diagnostic.position.map(|position| position.line),
            column: diagnostic.position.map(|position| position.column),
        }
    }
}

/// What is done with a resource, in one word.
pub const fn action(action: &Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Import(_) => "import",
        Action::Update(_) => "update",
        Action::Replace(_) => "replace",
        Action::Same => "same",
        Action::Delete => "delete",
        Action::Forget => "forget",
    }
}

/// A value with null for what is not known.
fn json_of(value: &Value) -> serde_json::Value {
    match value {
        Value::Unknown => serde_json::Value::Null,
        Value::List(items) => items.iter().map(json_of).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), json_of(value)))
            .collect(),
        value => value.to_json().unwrap_or_else(|| json!(null)),
    }
}

/// What is known of properties; null for the rest.
pub fn known(properties: &PropertyMap) -> Map<String, serde_json::Value> {
    properties
        .iter()
        .map(|(name, value)| (name.clone(), json_of(value)))
        .collect()
}

/// The paths of what is not known yet.
pub fn unknown_in(properties: &PropertyMap) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in properties {
        unknown_paths(&PropertyPath::property(name), value, &mut found);
    }
    found
}

fn unknown_paths(path: &PropertyPath, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Unknown => found.push(path.to_string()),
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                unknown_paths(&path.index(index), item, found);
            }
        }
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, field)| unknown_paths(&path.key(name), field, found)),
        _ => {}
    }
}

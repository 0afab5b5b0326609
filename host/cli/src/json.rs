//! The document that `--json` prints: one for every command, described in `docs/cli.md`.

use bindery_resource::PropertyMap;
use bindery_stack::Plan;
use bindery_stack::json::{Message, Resource, known, unknown_in};
use serde::Serialize;
use serde_json::Map;

/// The version of the document's form. Fields may be added to it; none changes its meaning.
const FORMAT: u32 = 1;

/// What a command did.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    pub format: u32,
    pub command: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    pub outcome: &'static str,
    pub seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<Resource>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Map<String, serde_json::Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_outputs: Vec<String>,
    /// What only this command gives.
    #[serde(flatten)]
    pub more: Map<String, serde_json::Value>,
    pub warnings: Vec<Message>,
    pub errors: Vec<Message>,
}

impl Document {
    /// The document of a command that begins.
    pub fn new(command: &'static str) -> Self {
        Self {
            format: FORMAT,
            command,
            ..Self::default()
        }
    }

    /// What is planned.
    pub fn plan(&mut self, plan: &Plan) {
        self.resources = Some(Resource::all_planned(plan));
        self.outputs(&plan.outputs);
    }

    /// What the stack gives to others, as far as it is known.
    pub fn outputs(&mut self, outputs: &PropertyMap) {
        self.outputs = Some(known(outputs));
        self.unknown_outputs = unknown_in(outputs);
    }
}

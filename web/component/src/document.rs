//! The document of a plan, and the way to it: the same steps as the command line's `preview`.

use bindery_resource::PropertyMap;
use bindery_resource::schema::ProviderTypes;
use bindery_stack::configuration::{Needs, ProviderKeys, given_value, in_file, refused};
use bindery_stack::json::{Message, Resource, known, unknown_in};
use bindery_stack::plan::{Request, plan as plan_stack, unsettled};
use bindery_stack::state::Deployment;
use bindery_stack::{Diagnostic, Owner, StackFile, Targets};
use serde::Serialize;
use serde_json::Map;

use crate::planner::{Planner, ready};

/// The types of the planner that is loaded beside this component; a test compares them with the planner itself.
const TYPES: &str = include_str!("../types.json");

/// A plan, or what is wrong.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<Resource>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Map<String, serde_json::Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown_outputs: Vec<String>,
    warnings: Vec<Message>,
    errors: Vec<Message>,
}

/// The plan of a stack file's text, as JSON.
pub fn plan(stack: &str, state: Option<&str>, config: &[(String, String)]) -> String {
    let mut document = Document::default();
    if let Err(wrong) = fill(&mut document, stack, state, config) {
        document.errors = wrong.iter().map(|wrong| Message::of(wrong, None)).collect();
    }
    serde_json::to_string(&document).unwrap_or_default()
}

fn fill(
    document: &mut Document,
    text: &str,
    state: Option<&str>,
    given: &[(String, String)],
) -> Result<(), Vec<Diagnostic>> {
    let file = StackFile::parse(text)?;
    let stack = file.stack();
    document.project = Some(file.name.clone());
    document.stack = Some(stack.to_string());
    let types: ProviderTypes = serde_json::from_str(TYPES).map_err(|error| vec![Diagnostic::new(error)])?;
    let keys = types.config.properties.iter().map(|property| property.name.as_str());
    let keys = ProviderKeys {
        name: &types.name,
        known: keys.chain(types.host_keys.iter().map(String::as_str)).collect(),
    };
    let values = keys.sort(&file, given, Needs::Values)?;
    let mut config = values.settings;
    for (key, value) in &values.given {
        let value = given_value(&types.config, key, value).map_err(|wrong| vec![wrong])?;
        config.insert(key.clone(), value);
    }
    // Who makes the requests is not asked here: none is made.
    config.retain(|key, _| !types.host_keys.contains(key));
    let owner = Owner {
        project: file.name.clone(),
        stack: stack.to_string(),
        provider: types.name.clone(),
        version: types.version.clone(),
    };
    let planner = configured(types, &config).map_err(|mut wrong| {
        in_file(&file, given, &mut wrong);
        wrong
    })?;
    let deployment = match state {
        Some(text) => Deployment::parse(text, &owner)
            .map_err(|error| vec![Diagnostic::new(format!("the state cannot be used: {error}"))])?,
        None => Deployment::default(),
    };
    let request = Request {
        file: &file,
        stack,
        config: &values.keys,
        deployment: &deployment,
        targets: &Targets::default(),
    };
    let plan = ready(plan_stack(request, &planner))?;
    document.warnings = unsettled(&deployment)
        .iter()
        .map(|warning| Message::of(warning, None))
        .collect();
    document.resources = Some(Resource::all_planned(&plan));
    document.outputs = Some(known(&plan.outputs));
    document.unknown_outputs = unknown_in(&plan.outputs);
    Ok(())
}

fn configured(types: ProviderTypes, config: &PropertyMap) -> Result<Planner, Vec<Diagnostic>> {
    Planner::configured(types, config).map_err(refused)
}

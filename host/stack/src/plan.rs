//! What to do about the difference between what is declared and what exists.

use std::collections::HashSet;

use bindery_resource::{CheckFailure, Checked, ClaimTaken, Diff, PropertyMap, PropertyPath, Urn, nearest};
use thiserror::Error;

use crate::diagnostic::{Diagnostic, Position};
use crate::file::{ResourceDeclaration, StackFile, in_order};
use crate::state::{Deployment, ResourceState};

/// Says what declarations mean. Nothing is touched.
pub trait Provider {
    /// The tokens of its resource types.
    fn tokens(&self) -> Vec<String>;

    /// Checks a resource's inputs, and takes its claim for the run.
    fn check(&self, urn: &Urn, inputs: &PropertyMap) -> impl Future<Output = Result<Checked, CheckError>> + Send;

    /// What would change between a resource and checked inputs.
    fn diff(&self, old: &ResourceState, inputs: &PropertyMap) -> impl Future<Output = Result<Diff, String>> + Send;
}

/// A check that found something wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckError {
    /// Inputs that cannot be accepted.
    #[error("inputs that cannot be accepted")]
    Failures(Vec<CheckFailure>),
    /// Another resource owns what this one declares.
    #[error(transparent)]
    Claim(#[from] ClaimTaken),
    /// The check did not come to an end.
    #[error("{0}")]
    Other(String),
}

/// What is done with one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// It is made.
    Create,
    /// It is changed in place.
    Update(Diff),
    /// Another is made in its place: created first and deleted last, unless the diff asks for the other order.
    Replace(Diff),
    /// It is as declared.
    Same,
    /// It is removed.
    Delete,
}

/// One resource's part of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Which resource.
    pub urn: Urn,
    /// What is done.
    pub action: Action,
    /// Its checked inputs; its last ones where it is deleted.
    pub inputs: PropertyMap,
    /// The id that it will have, where that is known.
    pub id: Option<String>,
    /// As it is known to be. None where it is created.
    pub old: Option<ResourceState>,
    /// What comes before it.
    pub dependencies: Vec<Urn>,
    /// Where it is declared. None where it is not any more.
    pub position: Option<Position>,
}

/// What is to be done, each step after those that it depends on; deletions last, each before what it depends on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Plan {
    /// Whether anything is to be done.
    pub fn is_empty(&self) -> bool {
        self.steps.iter().all(|step| step.action == Action::Same)
    }

    /// The plan that removes everything.
    pub fn destroy(deployment: &Deployment) -> Self {
        Self {
            steps: deployment.resources.iter().rev().map(delete).collect(),
        }
    }
}

/// Plans a stack.
///
/// # Errors
/// Everything that is wrong with the declarations.
pub async fn plan(
    file: &StackFile,
    stack: &str,
    deployment: &Deployment,
    provider: &impl Provider,
) -> Result<Plan, Vec<Diagnostic>> {
    let resources = in_order(&file.resources).map_err(|_| Vec::new())?;
    let urn = |declaration: &ResourceDeclaration| Urn::new(stack, &file.name, &declaration.token, &declaration.name);
    let tokens = provider.tokens();
    let mut diagnostics = Vec::new();
    let mut steps = Vec::new();
    for declaration in resources {
        if !tokens.contains(&declaration.token) {
            diagnostics.push(unknown_type(declaration, &tokens));
            continue;
        }
        let dependencies = declaration.depends_on.iter().filter_map(|dependency| {
            file.resources
                .iter()
                .find(|other| other.name == dependency.name)
                .map(urn)
        });
        let dependencies = dependencies.collect();
        match step(declaration, urn(declaration), dependencies, deployment, provider).await {
            Ok(step) => steps.push(step),
            Err(found) => diagnostics.extend(found),
        }
    }
    if !diagnostics.is_empty() {
        diagnostics.sort_by_key(|diagnostic| diagnostic.position);
        return Err(diagnostics);
    }
    let declared: HashSet<Urn> = steps.iter().map(|step| step.urn.clone()).collect();
    let gone = |resource: &&ResourceState| resource.delete || !declared.contains(&resource.urn);
    steps.extend(deployment.resources.iter().rev().filter(gone).map(delete));
    Ok(Plan { steps })
}

fn delete(resource: &ResourceState) -> Step {
    Step {
        urn: resource.urn.clone(),
        action: Action::Delete,
        inputs: resource.inputs.clone(),
        id: Some(resource.id.clone()),
        old: Some(resource.clone()),
        dependencies: resource.dependencies.clone(),
        position: None,
    }
}

async fn step(
    declaration: &ResourceDeclaration,
    urn: Urn,
    dependencies: Vec<Urn>,
    deployment: &Deployment,
    provider: &impl Provider,
) -> Result<Step, Vec<Diagnostic>> {
    let checked = provider
        .check(&urn, &declaration.inputs())
        .await
        .map_err(|error| check_diagnostics(declaration, error))?;
    let old = deployment.resource(&urn).cloned();
    let action = match &old {
        None => Action::Create,
        Some(old) => {
            let diff = provider.diff(old, &checked.inputs).await.map_err(|message| {
                vec![Diagnostic::at(declaration.position, message).of_resource(&declaration.name)]
            })?;
            match diff {
                diff if diff.changes.is_empty() => Action::Same,
                diff if diff.replaces() => Action::Replace(diff),
                diff => Action::Update(diff),
            }
        }
    };
    Ok(Step {
        urn,
        action,
        inputs: checked.inputs,
        id: checked.id,
        old,
        dependencies,
        position: Some(declaration.position),
    })
}

fn check_diagnostics(declaration: &ResourceDeclaration, error: CheckError) -> Vec<Diagnostic> {
    let at = |path: &PropertyPath, message: String| Diagnostic {
        path: Some(path.clone()),
        ..Diagnostic::at(declaration.locate(path), message).of_resource(&declaration.name)
    };
    match error {
        CheckError::Failures(failures) => failures
            .into_iter()
            .map(|failure| at(&failure.path, failure.reason))
            .collect(),
        CheckError::Claim(taken) => vec![at(&PropertyPath::default(), taken.to_string())],
        CheckError::Other(message) => vec![at(&PropertyPath::default(), message)],
    }
}

fn unknown_type(declaration: &ResourceDeclaration, tokens: &[String]) -> Diagnostic {
    let message = format!("the provider has no resource type `{}`", declaration.token);
    let diagnostic = Diagnostic::at(declaration.token_position, message).of_resource(&declaration.name);
    match nearest(&declaration.token, tokens.iter().map(String::as_str)) {
        Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
        None => diagnostic.with_hint(format!("it has `{}`", tokens.join("`, `"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_resource::{Change, ChangeKind, Claims, Footprint, Value};
    use std::sync::Mutex;

    /// Resources with `x`, which updates, and `key`, which replaces and is claimed.
    #[derive(Default)]
    struct Fake {
        claims: Mutex<Claims>,
    }

    impl Provider for Fake {
        fn tokens(&self) -> Vec<String> {
            vec!["fake:test/v1:Thing".to_string()]
        }

        async fn check(&self, urn: &Urn, inputs: &PropertyMap) -> Result<Checked, CheckError> {
            let Some(Value::String(key)) = inputs.get("key") else {
                return Err(CheckError::Failures(vec![CheckFailure::new(
                    PropertyPath::property("key"),
                    "must be a string",
                )]));
            };
            self.claims.lock().unwrap().take(key, urn)?;
            Ok(Checked {
                inputs: inputs.clone(),
                footprint: Some(Footprint {
                    target: key.clone(),
                    claim: key.clone(),
                }),
                id: Some(key.clone()),
            })
        }

        async fn diff(&self, old: &ResourceState, inputs: &PropertyMap) -> Result<Diff, String> {
            let changed = |name: &str| old.outputs.get(name) != inputs.get(name);
            let changes = [("key", true), ("x", false)]
                .into_iter()
                .filter(|(name, _)| changed(name))
                .map(|(name, replaces)| Change {
                    path: PropertyPath::property(name),
                    kind: ChangeKind::Update,
                    replaces,
                });
            Ok(Diff {
                changes: changes.collect(),
                delete_before_replace: false,
            })
        }
    }

    fn state(name: &str, key: &str, x: f64) -> ResourceState {
        let properties = PropertyMap::from_iter([
            ("key".to_string(), Value::from(key)),
            ("x".to_string(), Value::Number(x)),
        ]);
        ResourceState {
            urn: Urn::new("dev", "p", "fake:test/v1:Thing", name),
            id: key.to_string(),
            inputs: properties.clone(),
            outputs: properties,
            dependencies: Vec::new(),
            delete: false,
        }
    }

    fn declare(resources: &[(&str, &str, u8)]) -> StackFile {
        let mut text = "name: p\nruntime: yaml\nresources:\n".to_string();
        for (name, key, x) in resources {
            text += &format!("  {name}:\n    type: fake:test/v1:Thing\n    properties: {{key: {key}, x: {x}}}\n");
        }
        StackFile::parse(&text).unwrap()
    }

    #[tokio::test]
    async fn a_plan_is_the_difference() {
        let deployment = Deployment {
            resources: vec![
                state("same", "a", 1.0),
                state("update", "b", 1.0),
                state("replace", "c", 1.0),
                state("gone", "d", 1.0),
            ],
            ..Deployment::default()
        };
        let file = declare(&[
            ("same", "a", 1),
            ("update", "b", 2),
            ("replace", "e", 1),
            ("new", "f", 1),
        ]);
        let plan = plan(&file, "dev", &deployment, &Fake::default()).await.unwrap();
        let shown: Vec<(&str, &str)> = plan
            .steps
            .iter()
            .map(|step| {
                let action = match step.action {
                    Action::Create => "create",
                    Action::Update(_) => "update",
                    Action::Replace(_) => "replace",
                    Action::Same => "same",
                    Action::Delete => "delete",
                };
                (step.urn.name(), action)
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("same", "same"),
                ("update", "update"),
                ("replace", "replace"),
                ("new", "create"),
                ("gone", "delete")
            ]
        );
    }

    #[tokio::test]
    async fn what_is_wrong_has_the_place_of_the_property() {
        let text = "name: p\nruntime: yaml\nresources:\n  a:\n    type: fake:test/v1:Thing\n    properties:\n      x: 1\n      key: 7\n  b:\n    type: fake:test/v1:Thign\n";
        let file = StackFile::parse(text).unwrap();
        let diagnostics = plan(&file, "dev", &Deployment::default(), &Fake::default())
            .await
            .unwrap_err();
        assert_eq!(
            diagnostics[0].to_string(),
            "8:7: resource `a`, property `key`: must be a string"
        );
        assert_eq!(
            diagnostics[1].hint.as_deref(),
            Some("did you mean `fake:test/v1:Thing`?")
        );
    }

    #[tokio::test]
    async fn two_owners_of_one_claim_are_both_named() {
        let file = declare(&[("one", "a", 1), ("two", "a", 1)]);
        let diagnostics = plan(&file, "dev", &Deployment::default(), &Fake::default())
            .await
            .unwrap_err();
        assert!(
            diagnostics[0].message.contains("`one` and `two` both declare `a`"),
            "{}",
            diagnostics[0]
        );
        assert_eq!(diagnostics[0].position.unwrap().to_string(), "7:3");
    }

    #[tokio::test]
    async fn destroying_goes_backwards() {
        let deployment = Deployment {
            resources: vec![state("a", "a", 1.0), state("b", "b", 1.0)],
            ..Deployment::default()
        };
        let names: Vec<String> = Plan::destroy(&deployment)
            .steps
            .iter()
            .map(|step| step.urn.name().to_string())
            .collect();
        assert_eq!(names, ["b", "a"]);
    }
}

//! What is done with one resource: from its declaration and what is known of it.

use std::sync::Arc;

use bindery_resource::path::Segment;
use bindery_resource::{Diff, PropertyMap, PropertyPath, Urn, Value};

use crate::declaration::ResourceDeclaration;
use crate::diagnostic::{Diagnostic, Position};
use crate::evaluate::{Exported, Scope};
use crate::file::StackFile;
use crate::provider::{CheckError, Provider};
use crate::state::ResourceState;

/// What is done with one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// It is made.
    Create,
    /// What exists under this id becomes the stack's, if it is as declared.
    Import(String),
    /// It is changed in place.
    Update(Diff),
    /// Another is made in its place: created first and deleted last, unless the diff asks for the other order.
    Replace(Diff),
    /// It is as declared.
    Same,
    /// It is removed.
    Delete,
    /// It is no longer the stack's, and stays as it is.
    Forget,
}

/// One resource's part of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Which resource.
    pub urn: Urn,
    /// What is done.
    pub action: Action,
    /// Its checked inputs; its last ones where it is deleted. What is not known before others are made is unknown.
    pub inputs: PropertyMap,
    /// The id that it will have, where that is known.
    pub id: Option<String>,
    /// As it is known to be. None where it is created.
    pub old: Option<ResourceState>,
    /// What comes before it.
    pub dependencies: Vec<Urn>,
    /// Where it is declared. None where it is not any more.
    pub position: Option<Position>,
    /// What the state keeps of its options.
    pub kept: KeptOptions,
}

/// The options that outlive a declaration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptOptions {
    /// It is neither deleted nor replaced.
    pub protect: bool,
    /// It stays where it is no longer declared.
    pub retain_on_delete: bool,
    /// The id by which it was adopted.
    pub import_id: Option<String>,
}

impl Step {
    /// Whether all of its inputs are known.
    pub fn is_known(&self) -> bool {
        !self.inputs.values().any(Value::has_unknown)
    }

    /// Whether a state has all of the declaration's that outlives it.
    pub fn keeps(&self, state: &ResourceState) -> bool {
        let KeptOptions {
            protect,
            retain_on_delete,
            import_id,
        } = &self.kept;
        state.inputs == self.inputs
            && state.dependencies == self.dependencies
            && state.protect == *protect
            && state.retain_on_delete == *retain_on_delete
            && state.import_id == *import_id
    }

    /// The state of the resource once this is done.
    pub fn becomes(&self, id: String, outputs: PropertyMap) -> ResourceState {
        ResourceState {
            urn: self.urn.clone(),
            id,
            inputs: self.inputs.clone(),
            outputs,
            dependencies: self.dependencies.clone(),
            delete: false,
            protect: self.kept.protect,
            retain_on_delete: self.kept.retain_on_delete,
            import_id: self.kept.import_id.clone(),
        }
    }

    /// The step that removes a resource.
    pub fn removal(resource: &ResourceState) -> Self {
        Self {
            urn: resource.urn.clone(),
            action: if resource.retain_on_delete {
                Action::Forget
            } else {
                Action::Delete
            },
            inputs: resource.inputs.clone(),
            id: Some(resource.id.clone()),
            old: Some(resource.clone()),
            dependencies: resource.dependencies.clone(),
            position: None,
            kept: KeptOptions::default(),
        }
    }
}

/// Something wrong with a declared resource.
pub(crate) fn at(declaration: &ResourceDeclaration, message: String) -> Diagnostic {
    Diagnostic::at(declaration.position, message).of_resource(&declaration.name)
}

/// A declared resource's inputs, as far as they are known.
///
/// # Errors
/// References that lead nowhere.
pub fn inputs(
    declaration: &ResourceDeclaration,
    file: &StackFile,
    scope: &mut Scope,
) -> Result<PropertyMap, Vec<Diagnostic>> {
    match scope.evaluate(file, &declaration.properties) {
        Ok(Value::Object(inputs)) => Ok(inputs),
        Ok(_) => Ok(PropertyMap::new()),
        Err(diagnostic) => Err(vec![diagnostic.of_resource(&declaration.name)]),
    }
}

/// What others see of a resource before its step is done.
pub(crate) fn exported(step: &Step, properties: Arc<[String]>, provider: &impl Provider) -> Result<Exported, String> {
    let old = match (&step.action, &step.old) {
        (Action::Same, Some(old)) => return Ok(exists(old, properties)),
        (Action::Update(_), Some(old)) => Some(old.id.clone()),
        _ => None,
    };
    Ok(Exported {
        urn: step.urn.clone(),
        id: old.or_else(|| step.id.clone()).map_or(Value::Unknown, Value::String),
        outputs: provider.preview(step.urn.token(), &step.inputs)?,
        properties,
    })
}

/// What others see of a resource that exists.
pub fn exists(state: &ResourceState, properties: Arc<[String]>) -> Exported {
    Exported {
        urn: state.urn.clone(),
        id: Value::String(state.id.clone()),
        outputs: state.outputs.clone(),
        properties,
    }
}

/// What is to be done with one declared resource, whose inputs are known as far as they are given here.
///
/// # Errors
/// Everything that is wrong with it.
pub async fn step(
    declaration: &ResourceDeclaration,
    urn: Urn,
    mut inputs: PropertyMap,
    dependencies: Vec<Urn>,
    old: Option<&ResourceState>,
    provider: &impl Provider,
) -> Result<Step, Vec<Diagnostic>> {
    let options = &declaration.options;
    if let Some(old) = old {
        keep_ignored(declaration, &mut inputs, &old.inputs, &old.outputs);
    }
    let checked = provider.check(&urn, &inputs).await;
    let checked = checked.map_err(|error| check_diagnostics(declaration, error))?;
    let action = match (old, &options.import) {
        (None, Some(id)) => Action::Import(id.clone()),
        (None, None) => Action::Create,
        (Some(old), import) => {
            if let Some(import) = import
                .as_ref()
                .filter(|id| **id != old.id && old.import_id.as_ref() != Some(*id))
            {
                let message = format!(
                    "`import` names `{import}`, but the stack has this resource already, as `{}`",
                    old.id
                );
                return Err(vec![at(declaration, message).with_hint("remove `import`")]);
            }
            let diff = provider.diff(old, &checked.inputs).await;
            let mut diff = diff.map_err(|message| vec![at(declaration, message)])?;
            for change in &mut diff.changes {
                let is_listed = |path: &PropertyPath| {
                    // A change of the whole may leave the part as it was.
                    let is_part = path.segments().len() > change.path.segments().len();
                    touch(path, &change.path) && !(is_part && path.get(&old.outputs) == path.get(&checked.inputs))
                };
                change.replaces |= options.replace_on_changes.iter().any(is_listed);
            }
            diff.delete_before_replace |= options.delete_before_replace;
            match diff {
                diff if diff.changes.is_empty() => Action::Same,
                diff if diff.replaces() && options.protect => return Err(vec![keeps(declaration, &diff)]),
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
        old: old.cloned(),
        dependencies,
        position: Some(declaration.position),
        kept: KeptOptions {
            protect: options.protect,
            retain_on_delete: options.retain_on_delete,
            import_id: options.import.clone(),
        },
    })
}

/// Puts what exists in the place of what is declared, where changes are ignored.
pub fn keep_ignored(
    declaration: &ResourceDeclaration,
    inputs: &mut PropertyMap,
    old_inputs: &PropertyMap,
    outputs: &PropertyMap,
) {
    for path in &declaration.options.ignore_changes {
        // Only what is an input can keep its value.
        let is_input = |property: &str| inputs.contains_key(property) || old_inputs.contains_key(property);
        if !path.first().is_some_and(is_input) {
            continue;
        }
        let is_output = path.first().is_some_and(|property| outputs.contains_key(property));
        let old = path.get(if is_output { outputs } else { old_inputs });
        keep(inputs, path.segments(), old.filter(|value| **value != Value::Null));
    }
}

fn keeps(declaration: &ResourceDeclaration, diff: &Diff) -> Diagnostic {
    let path = diff
        .changes
        .iter()
        .find(|change| change.replaces)
        .map(|change| change.path.clone());
    let position = path
        .as_ref()
        .map_or(declaration.position, |path| declaration.locate(path));
    Diagnostic {
        path,
        ..Diagnostic::at(position, "a change of this replaces the resource, which is protected")
            .of_resource(&declaration.name)
            .with_hint("set `protect: false` to let it be replaced")
    }
}

/// Whether one path leads to the other, or to something inside it.
fn touch(one: &PropertyPath, other: &PropertyPath) -> bool {
    one.segments()
        .iter()
        .zip(other.segments())
        .all(|(one, other)| one == other)
}

/// Puts a value at a path, or removes what is there. A path that leads through something else leads nowhere.
fn keep(properties: &mut PropertyMap, path: &[Segment], value: Option<&Value>) {
    let Some((Segment::Key(key), rest)) = path.split_first() else {
        return;
    };
    match (rest, value) {
        ([], Some(value)) => {
            properties.insert(key.clone(), value.clone());
        }
        ([], None) => {
            properties.shift_remove(key);
        }
        (rest, value) => match properties.get_mut(key) {
            Some(inner) => keep_inside(inner, rest, value),
            None => {
                if let Some(value) = value {
                    let mut fields = PropertyMap::new();
                    keep(&mut fields, rest, Some(value));
                    if !fields.is_empty() {
                        properties.insert(key.clone(), Value::Object(fields));
                    }
                }
            }
        },
    }
}

fn keep_inside(here: &mut Value, path: &[Segment], value: Option<&Value>) {
    match (here, path) {
        (Value::Object(fields), [Segment::Key(_), ..]) => keep(fields, path, value),
        (Value::List(items), [Segment::Index(index), rest @ ..]) => match (items.get_mut(*index), rest, value) {
            (Some(item), [], Some(value)) => *item = value.clone(),
            (Some(_), [], None) => {
                items.remove(*index);
            }
            (Some(item), rest, value) => keep_inside(item, rest, value),
            (None, _, _) => {}
        },
        _ => {}
    }
}

/// What a failed check says, at the places of the properties.
pub fn check_diagnostics(declaration: &ResourceDeclaration, error: CheckError) -> Vec<Diagnostic> {
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

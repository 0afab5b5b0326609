//! What to do about the difference between what is declared and what exists.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bindery_resource::path::Segment;
use bindery_resource::{CheckFailure, Checked, ClaimTaken, Diff, PropertyMap, PropertyPath, Urn, Value, nearest};
use thiserror::Error;

use crate::declaration::ResourceDeclaration;
use crate::diagnostic::{Diagnostic, Position};
use crate::evaluate::{Exported, Scope};
use crate::file::StackFile;
use crate::state::{Deployment, ResourceState};
use crate::target::Targets;

/// Says what declarations mean. Nothing is touched.
pub trait Provider {
    /// Its resource types by token, each with the names of its outputs.
    fn types(&self) -> BTreeMap<String, Arc<[String]>>;

    /// Checks a resource's inputs, and takes its claim for the run.
    fn check(&self, urn: &Urn, inputs: &PropertyMap) -> impl Future<Output = Result<Checked, CheckError>> + Send;

    /// What would change between a resource and checked inputs.
    fn diff(&self, old: &ResourceState, inputs: &PropertyMap) -> impl Future<Output = Result<Diff, String>> + Send;

    /// Takes the claim of a resource that stays as it is.
    ///
    /// # Errors
    /// When another resource has it.
    fn claim(&self, state: &ResourceState) -> impl Future<Output = Result<(), CheckError>> + Send;

    /// The outputs that a resource will have that is made from checked inputs, as far as they are known beforehand.
    ///
    /// # Errors
    /// When there is no such resource type.
    fn preview(&self, token: &str, inputs: &PropertyMap) -> Result<PropertyMap, String>;
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

/// What is to be done, each step after those that it depends on; removals last, each before what it depends on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Resources that have another URN now: from the first of each pair to the second.
    pub renamed: Vec<(Urn, Urn)>,
    /// What the stack will give to others, as far as it is known.
    pub outputs: PropertyMap,
}

/// What is planned.
#[derive(Debug, Clone)]
pub struct Request<'r> {
    /// What is declared.
    pub file: &'r StackFile,
    /// The stack.
    pub stack: &'r str,
    /// The values of the file's configuration keys.
    pub config: &'r PropertyMap,
    /// What exists.
    pub deployment: &'r Deployment,
    /// What may be changed.
    pub targets: &'r Targets,
}

impl Plan {
    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.steps.iter().all(|step| step.action == Action::Same)
    }

    /// The plan that removes what may be changed.
    ///
    /// # Errors
    /// What is protected, and what others depend on that stay.
    pub fn destroy(deployment: &Deployment, targets: &Targets) -> Result<Self, Vec<Diagnostic>> {
        targets.are_known(None, deployment)?;
        let mut wrong = Vec::new();
        let order = deployment.in_order();
        let is_removed = |resource: &ResourceState| targets.include(&resource.urn);
        for resource in order.iter().filter(|resource| is_removed(resource)) {
            if resource.protect && !resource.delete {
                wrong.push(protected(&resource.urn, "destroyed"));
            }
        }
        let removed: HashSet<&Urn> = order
            .iter()
            .filter(|state| is_removed(state))
            .map(|state| &state.urn)
            .collect();
        wrong.extend(needed_by_others(deployment, targets, &removed));
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let removed = order.into_iter().rev().filter(|resource| is_removed(resource));
        Ok(Self {
            steps: removed.map(Step::removal).collect(),
            ..Self::default()
        })
    }
}

/// Plans a stack.
///
/// # Errors
/// Everything that is wrong with the declarations.
pub async fn plan(request: Request<'_>, provider: &impl Provider) -> Result<Plan, Vec<Diagnostic>> {
    let Request {
        file,
        stack,
        config,
        deployment,
        targets,
    } = request;
    targets.are_known(Some((file, stack)), deployment)?;
    let renamed = renamed(file, stack, deployment)?;
    let targets = &targets.renamed(&renamed);
    let new_deployment;
    let deployment = if renamed.is_empty() {
        deployment
    } else {
        let mut changed = deployment.clone();
        changed.apply(crate::state::Change::Rename(renamed.clone()));
        new_deployment = changed;
        &new_deployment
    };
    // What stays as it is keeps what it has: a target must not take it.
    for resource in deployment
        .resources
        .values()
        .filter(|resource| !targets.include(&resource.urn))
    {
        let taken = provider.claim(resource).await;
        taken.map_err(|error| vec![Diagnostic::of(resource.urn.name(), error.to_string())])?;
    }
    let mut planner = Planner {
        file,
        stack,
        deployment,
        targets,
        types: provider.types(),
        scope: Scope::new(file, stack, config.clone()),
        failed: HashSet::new(),
        diagnostics: Vec::new(),
    };
    let mut plan = Plan {
        renamed,
        ..Plan::default()
    };
    for declaration in file.in_order() {
        plan.steps.extend(planner.declared(declaration, provider).await);
    }
    let declared: HashSet<Urn> = file
        .resources
        .values()
        .map(|declaration| urn(file, stack, declaration))
        .collect();
    let mut removed: HashSet<&Urn> = HashSet::new();
    for resource in deployment.in_order().into_iter().rev() {
        let is_gone = resource.delete || !declared.contains(&resource.urn);
        if is_gone && targets.include(&resource.urn) {
            if resource.protect && !resource.delete {
                planner
                    .diagnostics
                    .push(protected(&resource.urn, "deleted, and is no longer declared"));
            }
            if !resource.delete {
                removed.insert(&resource.urn);
            }
            plan.steps.push(Step::removal(resource));
        }
    }
    planner
        .diagnostics
        .extend(needed_by_others(deployment, targets, &removed));
    // What is no target is renamed another time.
    plan.renamed.retain(|(_, new)| targets.include(new));
    if planner.diagnostics.is_empty() {
        plan.outputs = outputs(file, &mut planner.scope)?;
        return Ok(plan);
    }
    planner.diagnostics.sort_by_key(|diagnostic| diagnostic.position);
    Err(planner.diagnostics)
}

/// What the stack gives to others, as far as it is known.
///
/// # Errors
/// References that lead nowhere.
pub fn outputs(file: &StackFile, scope: &mut Scope) -> Result<PropertyMap, Vec<Diagnostic>> {
    let mut values = PropertyMap::new();
    let mut wrong = Vec::new();
    for output in &file.outputs {
        match scope.evaluate(file, &output.value) {
            Ok(value) => {
                values.insert(output.key.clone(), value);
            }
            Err(diagnostic) => wrong.push(Diagnostic {
                message: format!("output `{}`: {}", output.key, diagnostic.message),
                ..diagnostic
            }),
        }
    }
    if wrong.is_empty() { Ok(values) } else { Err(wrong) }
}

/// What would go though a resource that is no target depends on it.
fn needed_by_others(deployment: &Deployment, targets: &Targets, removed: &HashSet<&Urn>) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for resource in deployment
        .resources
        .values()
        .filter(|resource| !targets.include(&resource.urn))
    {
        for needed in resource.dependencies.iter().filter(|urn| removed.contains(urn)) {
            let message = format!("`{}` depends on it, and would stay", resource.urn.name());
            let hint = format!("pass `--target {}` too", resource.urn.name());
            wrong.push(Diagnostic::of(needed.name(), message).with_hint(hint));
        }
    }
    wrong
}

/// The URN of a declared resource.
pub fn urn(file: &StackFile, stack: &str, declaration: &ResourceDeclaration) -> Urn {
    Urn::new(stack, &file.name, &declaration.token, &declaration.name)
}

fn protected(urn: &Urn, what: &str) -> Diagnostic {
    Diagnostic::of(urn.name(), format!("it is protected, so it cannot be {what}"))
        .with_hint("declare it with `protect: false` and run `up` first")
}

/// Resources that the state knows under an alias.
fn renamed(file: &StackFile, stack: &str, deployment: &Deployment) -> Result<Vec<(Urn, Urn)>, Vec<Diagnostic>> {
    let mut renamed: Vec<(Urn, Urn)> = Vec::new();
    let mut taken: BTreeMap<Urn, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    let declared = file
        .resources
        .values()
        .map(|other| (urn(file, stack, other), &other.name));
    let declared: HashMap<Urn, &String> = declared.collect();
    let with_aliases = file
        .resources
        .values()
        .filter(|declaration| !declaration.options.aliases.is_empty());
    for declaration in with_aliases {
        let new = urn(file, stack, declaration);
        if deployment.resource(&new).is_some() {
            continue;
        }
        let aliases = declaration
            .options
            .aliases
            .iter()
            .map(|alias| declaration.alias(alias, &new));
        let Some(old) = aliases.into_iter().find(|alias| deployment.resource(alias).is_some()) else {
            continue;
        };
        let at = |message: String| Diagnostic::at(declaration.position, message).of_resource(&declaration.name);
        if let Some(other) = declared.get(&old) {
            wrong.push(at(format!("its alias `{old}` is the declared resource `{other}`")));
        } else if let Some(other) = taken.insert(old.clone(), declaration.name.clone()) {
            wrong.push(at(format!("its alias `{old}` is one of `{other}` too")));
        } else if old.token() != new.token() {
            wrong.push(at(format!(
                "its alias `{old}` is of another type, and so another resource"
            )));
        } else {
            renamed.push((old, new));
        }
    }
    if wrong.is_empty() { Ok(renamed) } else { Err(wrong) }
}

struct Planner<'p> {
    file: &'p StackFile,
    stack: &'p str,
    deployment: &'p Deployment,
    targets: &'p Targets,
    types: BTreeMap<String, Arc<[String]>>,
    scope: Scope,
    /// What has no step, because something is wrong with it: what depends on it is not judged.
    failed: HashSet<String>,
    diagnostics: Vec<Diagnostic>,
}

impl Planner<'_> {
    /// The step of a declared resource. None where it is not to be touched, or where something is wrong with it, which is
    /// said.
    async fn declared(&mut self, declaration: &ResourceDeclaration, provider: &impl Provider) -> Option<Step> {
        if declaration.dependencies.iter().any(|name| self.failed.contains(name)) {
            self.failed.insert(declaration.name.clone());
            return None;
        }
        match self.try_declared(declaration, provider).await {
            Ok(step) => step,
            Err(found) => {
                self.failed.insert(declaration.name.clone());
                self.diagnostics.extend(found);
                None
            }
        }
    }

    async fn try_declared(
        &mut self,
        declaration: &ResourceDeclaration,
        provider: &impl Provider,
    ) -> Result<Option<Step>, Vec<Diagnostic>> {
        let Some(properties) = self.types.get(&declaration.token).cloned() else {
            return Err(vec![unknown_type(declaration, &self.types)]);
        };
        let urn = urn(self.file, self.stack, declaration);
        let old = self.deployment.resource(&urn);
        if !self.targets.include(&urn) {
            if let Some(old) = old {
                self.scope.export(&declaration.name, exists(old, properties));
            }
            return Ok(None);
        }
        paths_exist(declaration, &properties)?;
        let inputs = inputs(declaration, self.file, &mut self.scope)?;
        let dependency = |name: &String| Some(self::urn(self.file, self.stack, self.file.resources.get(name)?));
        let dependencies: Vec<Urn> = declaration.dependencies.iter().filter_map(dependency).collect();
        let step = step(declaration, urn, inputs, dependencies, old, provider).await?;
        self.needs_exist(declaration, &step)?;
        let exported = exported(&step, properties, provider).map_err(|message| vec![at(declaration, message)])?;
        self.scope.export(&declaration.name, exported);
        Ok(Some(step))
    }

    /// What a resource depends on exists, or is made in the same run.
    fn needs_exist(&self, declaration: &ResourceDeclaration, step: &Step) -> Result<(), Vec<Diagnostic>> {
        let is_missing = |urn: &&Urn| !self.targets.include(urn) && self.deployment.resource(urn).is_none();
        match step.dependencies.iter().find(is_missing) {
            None => Ok(()),
            Some(urn) => {
                let message = format!("it depends on `{}`, which does not exist and is no target", urn.name());
                Err(vec![
                    at(declaration, message).with_hint(format!("pass `--target {}` too", urn.name())),
                ])
            }
        }
    }
}

/// The paths of the options lead to properties that there are.
fn paths_exist(declaration: &ResourceDeclaration, properties: &[String]) -> Result<(), Vec<Diagnostic>> {
    let options = &declaration.options;
    let named = options.ignore_changes.iter().map(|path| ("ignoreChanges", path));
    let named = named.chain(options.replace_on_changes.iter().map(|path| ("replaceOnChanges", path)));
    let is_unknown = |path: &PropertyPath| {
        !properties
            .iter()
            .any(|property| Some(property.as_str()) == path.first())
    };
    let wrong = named.filter(|(_, path)| is_unknown(path)).map(|(option, path)| {
        let diagnostic = at(
            declaration,
            format!("`{option}`: the resource has no property `{path}`"),
        );
        match nearest(path.first().unwrap_or_default(), properties.iter().map(String::as_str)) {
            Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
            None => diagnostic.with_hint(format!("it has `{}`", properties.join("`, `"))),
        }
    });
    let wrong: Vec<Diagnostic> = wrong.collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn at(declaration: &ResourceDeclaration, message: String) -> Diagnostic {
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
fn exported(step: &Step, properties: Arc<[String]>, provider: &impl Provider) -> Result<Exported, String> {
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

fn unknown_type(declaration: &ResourceDeclaration, types: &BTreeMap<String, Arc<[String]>>) -> Diagnostic {
    let message = format!("the provider has no resource type `{}`", declaration.token);
    let diagnostic = Diagnostic::at(declaration.token_position, message).of_resource(&declaration.name);
    let tokens: Vec<&str> = types.keys().map(String::as_str).collect();
    match nearest(&declaration.token, tokens.iter().copied()) {
        Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
        None => diagnostic.with_hint(format!("it has `{}`", tokens.join("`, `"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_resource::{Change, ChangeKind, Claims, Footprint};
    use std::sync::Mutex;

    /// Resources with `x`, which updates, and `key`, which replaces and is claimed. Their output `made` is known only
    /// once they are.
    #[derive(Default)]
    struct Fake {
        claims: Mutex<Claims>,
    }

    const TOKEN: &str = "fake:test/v1:Thing";

    impl Provider for Fake {
        fn types(&self) -> BTreeMap<String, Arc<[String]>> {
            let outputs = ["key", "x", "made"].map(String::from);
            BTreeMap::from([(TOKEN.to_string(), Arc::from(outputs))])
        }

        async fn check(&self, urn: &Urn, inputs: &PropertyMap) -> Result<Checked, CheckError> {
            let key = match inputs.get("key") {
                Some(Value::String(key)) => Some(key.clone()),
                Some(Value::Unknown) => None,
                _ => {
                    let path = PropertyPath::property("key");
                    return Err(CheckError::Failures(vec![CheckFailure::new(path, "must be a string")]));
                }
            };
            if let Some(key) = &key {
                self.claims.lock().unwrap().take(key, urn)?;
            }
            Ok(Checked {
                inputs: inputs.clone(),
                footprint: key.clone().map(|key| Footprint {
                    target: key.clone(),
                    claim: key,
                }),
                id: key,
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

        async fn claim(&self, state: &ResourceState) -> Result<(), CheckError> {
            Ok(self.claims.lock().unwrap().take(&state.id, &state.urn)?)
        }

        fn preview(&self, _: &str, inputs: &PropertyMap) -> Result<PropertyMap, String> {
            let mut outputs = inputs.clone();
            outputs.insert("made".to_string(), Value::Unknown);
            Ok(outputs)
        }
    }

    fn state(name: &str, key: &str, x: f64) -> ResourceState {
        let properties = PropertyMap::from_iter([
            ("key".to_string(), Value::from(key)),
            ("x".to_string(), Value::Number(x)),
        ]);
        let mut outputs = properties.clone();
        outputs.insert("made".to_string(), Value::from("then"));
        ResourceState {
            urn: Urn::new("dev", "p", TOKEN, name),
            id: key.to_string(),
            inputs: properties,
            outputs,
            dependencies: Vec::new(),
            delete: false,
            protect: false,
            retain_on_delete: false,
            import_id: None,
        }
    }

    fn deployment(resources: impl IntoIterator<Item = ResourceState>) -> Deployment {
        let mut deployment = Deployment::default();
        resources.into_iter().for_each(|resource| deployment.put(resource));
        deployment
    }

    /// One resource to a line: `NAME: PROPERTIES` and, after a `|`, its options.
    fn declare(lines: &[&str]) -> StackFile {
        let mut text = "name: p\nruntime: yaml\nresources: # each on a line\n".to_string();
        for line in lines {
            let (name, rest) = line.split_once(": ").unwrap();
            let (properties, options) = rest.split_once(" | ").unwrap_or((rest, ""));
            text += &format!("  {name}: {{type: '{TOKEN}', properties: {{{properties}}}, options: {{{options}}}}}\n");
        }
        StackFile::parse(&text).unwrap()
    }

    async fn planned(file: &StackFile, deployment: &Deployment, targets: &[&str]) -> Result<Plan, Vec<Diagnostic>> {
        let request = Request {
            file,
            stack: "dev",
            config: &PropertyMap::new(),
            deployment,
            targets: &Targets::new(targets.iter().map(ToString::to_string)),
        };
        plan(request, &Fake::default()).await
    }

    fn shown(plan: &Plan) -> Vec<String> {
        let action = |step: &Step| match &step.action {
            Action::Create => "create",
            Action::Import(_) => "import",
            Action::Update(_) => "update",
            Action::Replace(diff) if diff.delete_before_replace => "replace, deleted first",
            Action::Replace(_) => "replace",
            Action::Same => "same",
            Action::Delete => "delete",
            Action::Forget => "forget",
        };
        plan.steps
            .iter()
            .map(|step| format!("{} {}", action(step), step.urn.name()))
            .collect()
    }

    async fn wrong(file: &StackFile, deployment: &Deployment, targets: &[&str]) -> Vec<String> {
        let wrong = planned(file, deployment, targets).await.unwrap_err();
        wrong.iter().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn a_plan_is_the_difference() {
        let deployment = deployment([
            state("same", "a", 1.0),
            state("update", "b", 1.0),
            state("replace", "c", 1.0),
            state("gone", "d", 1.0),
            ResourceState {
                retain_on_delete: true,
                ..state("kept", "g", 1.0)
            },
        ]);
        let file = declare(&[
            "same: key: a, x: 1",
            "update: key: b, x: 2",
            "replace: key: e, x: 1",
            "new: key: f, x: 1",
        ]);
        let plan = planned(&file, &deployment, &[]).await.unwrap();
        assert_eq!(
            shown(&plan),
            [
                "same same",
                "update update",
                "replace replace",
                "create new",
                "forget kept",
                "delete gone"
            ]
        );
        let plan = planned(&file, &deployment, &["update", "gone"]).await.unwrap();
        assert_eq!(shown(&plan), ["update update", "delete gone"]);
    }

    #[tokio::test]
    async fn what_a_resource_refers_to_is_known_where_that_stays_and_unknown_where_it_is_made() {
        let file = declare(&[
            "b: key: 'b-${a.made}', x: 1",
            "a: key: a, x: 1",
            "c: key: 'c-${a.id}', x: 1",
        ]);
        let plan = planned(&file, &deployment([state("a", "a", 1.0)]), &[]).await.unwrap();
        assert_eq!(shown(&plan), ["same a", "create b", "create c"]);
        assert_eq!(plan.steps[1].inputs["key"], Value::from("b-then"));
        assert_eq!(plan.steps[1].dependencies, [state("a", "a", 1.0).urn]);
        let plan = planned(&file, &Deployment::default(), &[]).await.unwrap();
        assert_eq!(plan.steps[1].inputs["key"], Value::Unknown);
        assert_eq!(plan.steps[2].inputs["key"], Value::from("c-a"));
        assert!(!plan.steps[1].is_known() && plan.steps[2].is_known());
    }

    #[tokio::test]
    async fn options_change_what_is_done() {
        let old = [state("a", "a", 1.0)];
        for (line, expected) in [
            ("a: key: a, x: 2 | ignoreChanges: [x]", "same a"),
            ("a: key: b, x: 1 | ignoreChanges: [key]", "same a"),
            ("a: key: a | ignoreChanges: [x]", "same a"),
            ("a: key: a, x: 2 | replaceOnChanges: [x]", "replace a"),
            ("a: key: a, x: 2 | replaceOnChanges: [x.deeper]", "update a"),
            (
                "a: key: b, x: 1 | deleteBeforeReplace: true",
                "replace, deleted first a",
            ),
            ("a: key: a, x: 2 | protect: true", "update a"),
            ("a: key: a, x: 1 | import: a", "same a"),
        ] {
            let plan = planned(&declare(&[line]), &deployment(old.clone()), &[]).await.unwrap();
            assert_eq!(shown(&plan), [expected], "{line}");
        }
        let plan = planned(&declare(&["n: key: n | import: the id"]), &Deployment::default(), &[])
            .await
            .unwrap();
        assert_eq!(plan.steps[0].action, Action::Import("the id".to_string()));
        let error = wrong(
            &declare(&["a: key: a, x: 1 | import: b"]),
            &deployment(old.clone()),
            &[],
        )
        .await;
        assert!(
            error[0].contains("`import` names `b`, but the stack has this resource already, as `a`"),
            "{error:?}"
        );
        let error = wrong(&declare(&["a: key: b, x: 1 | protect: true"]), &deployment(old), &[]).await;
        assert!(
            error[0].contains("property `key`: a change of this replaces the resource, which is protected"),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn options_name_properties_that_there_are() {
        let error = wrong(
            &declare(&["a: key: a | ignoreChanges: [kye]"]),
            &Deployment::default(),
            &[],
        )
        .await;
        assert_eq!(
            error,
            ["4:3: resource `a`: `ignoreChanges`: the resource has no property `kye`"]
        );
    }

    #[tokio::test]
    async fn what_is_ignored_stays_as_it_was_found() {
        let found = ResourceState {
            outputs: state("a", "a", 7.0).outputs,
            ..state("a", "a", 1.0)
        };
        let plan = planned(
            &declare(&["a: key: a, x: 1 | ignoreChanges: [x]"]),
            &deployment([found]),
            &[],
        )
        .await
        .unwrap();
        assert_eq!(shown(&plan), ["same a"]);
    }

    #[tokio::test]
    async fn a_target_takes_nothing_from_what_stays() {
        let file = declare(&["b: key: a, x: 1", "a: key: new, x: 1"]);
        let deployment = deployment([state("a", "a", 1.0)]);
        let error = wrong(&file, &deployment, &["b"]).await;
        assert!(error[0].contains("`a` and `b` both declare `a`"), "{error:?}");
        assert_eq!(
            shown(&planned(&file, &deployment, &[]).await.unwrap()),
            ["create b", "replace a"]
        );
        // What it depends on does not go without it, and its own new name waits.
        let needs = ResourceState {
            dependencies: vec![state("a", "a", 1.0).urn],
            ..state("n", "n", 1.0)
        };
        let with = self::deployment([state("a", "a", 1.0), needs]);
        let error = wrong(&declare(&[]), &with, &["a"]).await;
        assert_eq!(error, ["resource `a`: `n` depends on it, and would stay"]);
        let renaming = declare(&["m: key: n, x: 1 | aliases: [{name: n}]", "a: key: a, x: 1"]);
        assert_eq!(planned(&renaming, &with, &["a"]).await.unwrap().renamed, []);
        assert_eq!(planned(&renaming, &with, &["n"]).await.unwrap().renamed.len(), 1);
    }

    #[tokio::test]
    async fn what_is_protected_is_neither_deleted_nor_destroyed() {
        let protected = ResourceState {
            protect: true,
            ..state("a", "a", 1.0)
        };
        let deployment = deployment([protected, state("b", "b", 1.0)]);
        let error = wrong(&declare(&["b: key: b, x: 1"]), &deployment, &[]).await;
        assert_eq!(
            error,
            ["resource `a`: it is protected, so it cannot be deleted, and is no longer declared"]
        );
        assert!(
            planned(&declare(&["b: key: b, x: 1"]), &deployment, &["b"])
                .await
                .is_ok()
        );
        assert_eq!(Plan::destroy(&deployment, &Targets::default()).unwrap_err().len(), 1);
        let only_b = Plan::destroy(&deployment, &Targets::new(["b".to_string()])).unwrap();
        assert_eq!(shown(&only_b), ["delete b"]);
    }

    #[tokio::test]
    async fn an_alias_finds_a_resource_under_the_name_that_it_had() {
        let old = state("old", "a", 1.0);
        let after = ResourceState {
            dependencies: vec![old.urn.clone()],
            ..state("after", "b", 1.0)
        };
        let deployment = deployment([old, after]);
        let file = declare(&[
            "new: key: a, x: 1 | aliases: [{name: old}]",
            "after: key: b, x: 1 | dependsOn: ['${new}']",
        ]);
        let plan = planned(&file, &deployment, &[]).await.unwrap();
        assert_eq!(shown(&plan), ["same new", "same after"]);
        assert_eq!(plan.renamed.len(), 1);
        let both = declare(&["new: key: a, x: 1 | aliases: [{name: old}]", "old: key: c, x: 1"]);
        assert!(wrong(&both, &deployment, &[]).await[0].contains("is the declared resource `old`"));
    }

    #[tokio::test]
    async fn targets_must_exist_and_so_must_what_they_need() {
        let file = declare(&["a: key: a", "b: key: b | dependsOn: ['${a}']"]);
        let error = planned(&file, &Deployment::default(), &["bb"]).await.unwrap_err();
        assert_eq!(error[0].to_string(), "--target: no resource is named `bb`");
        let error = wrong(&file, &Deployment::default(), &["b"]).await;
        assert!(
            error[0].contains("it depends on `a`, which does not exist and is no target"),
            "{error:?}"
        );
        let b = ResourceState {
            dependencies: vec![state("a", "a", 1.0).urn],
            ..state("b", "b", 1.0)
        };
        let deployment = deployment([state("a", "a", 1.0), b]);
        let error = Plan::destroy(&deployment, &Targets::new(["a".to_string()])).unwrap_err();
        assert_eq!(error[0].to_string(), "resource `a`: `b` depends on it, and would stay");
    }

    #[tokio::test]
    async fn what_is_wrong_has_the_place_of_the_property_and_what_depends_on_it_is_not_judged() {
        let text = "name: p\nruntime: yaml\nresources:\n  a:\n    type: fake:test/v1:Thing\n    properties:\n      x: 1\n      key: 7\n  b:\n    type: fake:test/v1:Thign\n  c:\n    type: fake:test/v1:Thing\n    properties: {key: '${a.made}', y: '${a.nothing}'}\n";
        let file = StackFile::parse(text).unwrap();
        let diagnostics = planned(&file, &Deployment::default(), &[]).await.unwrap_err();
        assert_eq!(
            diagnostics[0].to_string(),
            "8:7: resource `a`, property `key`: must be a string"
        );
        assert_eq!(
            diagnostics[1].hint.as_deref(),
            Some("did you mean `fake:test/v1:Thing`?")
        );
        assert_eq!(diagnostics.len(), 2);
    }

    #[tokio::test]
    async fn two_owners_of_one_claim_are_both_named() {
        let file = declare(&["one: key: a", "two: key: a"]);
        let error = wrong(&file, &Deployment::default(), &[]).await;
        assert!(error[0].starts_with("5:3: resource `two`: ") && error[0].contains("`one` and `two` both declare `a`"));
    }

    #[tokio::test]
    async fn outputs_are_evaluated_last() {
        let text = format!(
            "name: p\nruntime: yaml\nresources: {{a: {{type: '{TOKEN}', properties: {{key: a}}}}}}\noutputs: {{id: '${{a.id}}', made: '${{a.made}}'}}\n"
        );
        let file = StackFile::parse(&text).unwrap();
        let plan = planned(&file, &Deployment::default(), &[]).await.unwrap();
        assert_eq!(
            Value::Object(plan.outputs).to_string(),
            r#"{"id": "a", "made": [unknown]}"#
        );
        let file = StackFile::parse(&text.replace("a.made", "a.maid")).unwrap();
        assert!(wrong(&file, &Deployment::default(), &[]).await[0].contains("output `made`: `${a.maid}`"));
    }

    #[tokio::test]
    async fn destroying_goes_backwards() {
        let b = ResourceState {
            dependencies: vec![state("z", "a", 1.0).urn],
            ..state("b", "b", 1.0)
        };
        let plan = Plan::destroy(&deployment([state("z", "a", 1.0), b]), &Targets::default()).unwrap();
        assert_eq!(shown(&plan), ["delete b", "delete z"]);
    }
}

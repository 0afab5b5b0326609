//! What to do about the difference between what is declared and what exists.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bindery_resource::{PropertyMap, PropertyPath, Urn, nearest};

use crate::declaration::ResourceDeclaration;
use crate::diagnostic::Diagnostic;
use crate::evaluate::Scope;
use crate::file::StackFile;
use crate::provider::{CheckError, Provider};
use crate::state::{Deployment, ResourceState};
use crate::step::{Action, Step, at, exists, exported, inputs, step};
use crate::target::Targets;

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
        match provider.claim(resource).await {
            // Two that stay may be known to have the same: each is left alone.
            Ok(()) | Err(CheckError::Claim(_)) => {}
            Err(error) => return Err(vec![Diagnostic::of(resource.urn.name(), error.to_string())]),
        }
    }
    let mut planner = Planner {
        file,
        stack,
        deployment,
        targets,
        waiting: renamed
            .iter()
            .map(|(_, new)| new.clone())
            .filter(|new| !targets.include(new))
            .collect(),
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

/// What a plan cannot know: how operations ended that an earlier run had begun.
pub fn unsettled(deployment: &Deployment) -> Vec<Diagnostic> {
    let message = "an earlier run was interrupted while it worked on this: `up` finds out first what became of it";
    let pending = deployment.pending_operations.iter();
    pending
        .map(|pending| Diagnostic::of_urn(&pending.resource.urn, None, message))
        .collect()
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
    /// What has another URN now, and keeps the old one because it is no target.
    waiting: HashSet<Urn>,
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
        let is_begun = |urn: &Urn| {
            let pending = &self.deployment.pending_operations;
            pending.iter().any(|pending| pending.resource.urn == *urn)
        };
        let is_missing = |urn: &&Urn| {
            let exists = self.deployment.resource(urn).is_some() && !self.waiting.contains(*urn);
            !self.targets.include(urn) && !exists && !is_begun(urn)
        };
        match step.dependencies.iter().find(is_missing) {
            None => Ok(()),
            Some(urn) => {
                let message = format!(
                    "it depends on `{}`, which is not there under this name and is no target",
                    urn.name()
                );
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
mod tests;

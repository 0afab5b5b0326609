use super::*;
use crate::provider::CheckError;
use bindery_resource::{Change, ChangeKind, CheckFailure, Checked, Claims, Diff, Footprint, Value};
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
        error[0].contains("it depends on `a`, which is not there under this name and is no target"),
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

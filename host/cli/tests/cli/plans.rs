//! The table of plans that every engine has to give: this one's are recorded, and the npm package and the page are compared with
//! them (`web/test`). `BLESS=1` records them anew.
//!
//! A case is `web/cases/NAME.yaml`, with `NAME.state.json` and `NAME.config.json` where it has a state and keys beside the file; every
//! stack file of `golden/bad` is one too. What is expected stands in `NAME.plan.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bindery_resource::schema::{InputsAndOutputs, ProviderTypes};
use bindery_sandbox::Runtime;
use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::harness::CACHE;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// What is wrong with these is not their plan: where a host lets requests go, and how a file is stored.
const NO_PLANS: [&str; 2] = ["config-endpoint-elsewhere", "latin-1"];

/// Every case: its stack file, and what its other files' names start with.
fn cases() -> Vec<(PathBuf, PathBuf)> {
    let web = root().join("web/cases");
    let mut cases = Vec::new();
    for (from, to) in [
        (web.clone(), web.clone()),
        (root().join("host/cli/tests/golden/bad"), web.join("bad")),
    ] {
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let is_plan = !NO_PLANS.iter().any(|name| path.file_stem().unwrap() == *name);
            if is_plan && path.extension().is_some_and(|extension| extension == "yaml") {
                cases.push((path.clone(), to.join(path.file_stem().unwrap())));
            }
        }
    }
    cases.sort();
    cases
}

/// What `preview --json` says of a case's plan.
fn preview(stack: &Path, case: &Path) -> Value {
    let folder = TempDir::new().unwrap();
    let beside = |what: &str| fs::read_to_string(format!("{}.{what}.json", case.display())).ok();
    if let Some(state) = beside("state") {
        let deployment: Value = serde_json::from_str(&state).unwrap();
        let of = deployment["deployment"]["resources"][0]["urn"].as_str();
        let mut of = of
            .unwrap_or("urn:pulumi:dev::cases::")
            .split(':')
            .skip(2)
            .filter(|part| !part.is_empty());
        let (stack, project) = (of.next().unwrap(), of.next().unwrap());
        let to = folder.path().join(project).join(stack);
        fs::create_dir_all(&to).unwrap();
        fs::write(to.join("state.json"), state).unwrap();
    }
    let config: BTreeMap<String, String> =
        beside("config").map_or_else(BTreeMap::new, |text| serde_json::from_str(&text).unwrap());
    let mut bindery = Command::new(env!("CARGO_BIN_EXE_bindery"));
    bindery
        .env_clear()
        .env("BINDERY_CACHE_DIR", CACHE)
        .arg("preview")
        .arg(stack)
        .arg("--json")
        .arg("--state-dir")
        .arg(folder.path());
    for (key, value) in config {
        bindery.arg("--config").arg(format!("{key}={value}"));
    }
    let output = bindery.output().unwrap();
    let printed: Map<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    let kept = [
        "project",
        "stack",
        "resources",
        "outputs",
        "unknownOutputs",
        "warnings",
        "errors",
    ];
    let mut plan: Map<String, Value> = printed
        .into_iter()
        .filter(|(key, _)| kept.contains(&key.as_str()))
        .collect();
    let messages = ["warnings", "errors"]
        .into_iter()
        .filter_map(|key| plan.remove(key).map(|list| (key, list)));
    let messages: Vec<(&str, Value)> = messages.collect();
    for (key, mut list) in messages {
        list.as_array_mut().unwrap().iter_mut().for_each(without_paths);
        plan.insert(key.to_string(), list);
    }
    Value::Object(plan)
}

/// A page has no files: what is said of theirs is this command line's alone.
fn without_paths(message: &mut Value) {
    let message = message.as_object_mut().unwrap();
    message.remove("file");
    let text = message["message"].as_str().unwrap();
    if let Some((_, reason)) = text
        .strip_prefix("the state ")
        .and_then(|rest| rest.split_once(" cannot be used: "))
    {
        let text = format!("the state cannot be used: {reason}");
        message.insert("message".to_string(), Value::String(text));
        message.remove("hint");
    }
}

fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

#[test]
fn every_plan_is_as_recorded() {
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() > 100);
    for (stack, case) in cases {
        let path = format!("{}.plan.json", case.display());
        let plan = preview(&stack, &case);
        let recorded = fs::read_to_string(&path)
            .ok()
            .and_then(|text| serde_json::from_str::<Value>(&text).ok());
        if recorded.as_ref() == Some(&plan) {
            continue;
        }
        if is_blessed() {
            fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
            fs::write(&path, format!("{plan:#}\n")).unwrap();
        } else {
            wrong.push(format!("{path}\nis not\n{plan:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_page_knows_the_planners_types() {
    let planner = Runtime::new().unwrap().load(bindery_components::PLANNER).unwrap();
    let types = planner.types.into_iter().map(|(token, ty)| {
        let (args, state) = (ty.args, ty.state);
        (token.to_string(), InputsAndOutputs { args, state })
    });
    let types = ProviderTypes {
        name: planner.name,
        version: planner.version,
        config: planner.config,
        host_keys: bindery_credentials::KEYS
            .iter()
            .map(|key| key.name.to_string())
            .collect(),
        types: types.collect(),
    };
    let path = root().join("web/component/types.json");
    let recorded = fs::read_to_string(&path).unwrap();
    let text = serde_json::to_string_pretty(&types).unwrap() + "\n";
    if recorded != text && is_blessed() {
        fs::write(&path, &text).unwrap();
    } else {
        assert_eq!(recorded, text, "`just bless` records them anew");
    }
}

//! The examples: a program in YAML, and two that use the published SDKs of google-native 0.32.0, unchanged.

use std::os::unix::fs::symlink;
use std::path::Path;

use bindery_emulator::Settings;
use serde_json::json;

use crate::harness::*;

/// A stack with an example's files.
fn example(name: &str) -> Stack {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/pulumi")
        .join(name);
    let project = std::fs::read_to_string(folder.join("Pulumi.yaml")).unwrap();
    let stack = Stack::new(project.split_once('\n').unwrap().1);
    for file in folder.read_dir().unwrap() {
        let file = file.unwrap();
        if file.file_name() != "Pulumi.yaml" && file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), stack.project().join(file.file_name())).unwrap();
        }
    }
    stack
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn yaml() {
    runs(&example("yaml"), "bindery");
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn typescript() {
    let stack = example("typescript");
    symlink(ENGINE.join("node/node_modules"), stack.project().join("node_modules")).unwrap();
    runs(&stack, "google-native");
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn python() {
    let mut stack = example("python");
    let path = format!("{}:{}", ENGINE.join("venv/bin").display(), stack.path());
    stack.variable("PATH", &path);
    runs(&stack, "google-native");
}

/// Puts another text into the program.
fn edit(stack: &Stack, from: &str, to: &str) {
    let names = ["Pulumi.yaml", "index.ts", "__main__.py"];
    let programs = names.map(|name| stack.project().join(name));
    let is_edited = programs.iter().filter(|program| program.exists()).any(|program| {
        let text = std::fs::read_to_string(program).unwrap();
        let has_it = text.contains(from);
        std::fs::write(program, text.replace(from, to)).unwrap();
        has_it
    });
    assert!(is_edited, "no program has {from}");
}

fn runs(stack: &Stack, package: &str) {
    const ANN: &str = "user:ann@example.com";
    const EDITORS: &str = "roles/networkservices.edgeCacheAdmin";
    stack.link(package);
    stack.configure(package);
    stack.pulumi(&["preview"]).ok();
    let made = stack.up().ok();
    assert!(made.contains("4 created"), "{made}");
    assert_eq!(stack.members(BUCKET, "roles/compute.viewer"), [ANN]);
    assert_eq!(stack.members(ORIGIN, EDITORS), ["group:video@example.com", ANN]);
    let outputs = stack.pulumi(&["stack", "output", "--json"]).ok();
    assert!(outputs.contains("\"project\": \"home\""), "{outputs}");
    stack.nothing_to_do();

    // One changes in place, one is replaced.
    edit(stack, "group:video@", "group:film@");
    edit(stack, "roles/compute.viewer", "roles/compute.admin");
    let changed = stack.up().ok();
    assert!(
        changed.contains("1 updated") && changed.contains("1 replaced"),
        "{changed}"
    );
    assert_eq!(stack.members(ORIGIN, EDITORS), ["group:film@example.com", ANN]);
    assert_eq!(stack.members(BUCKET, "roles/compute.viewer"), [""; 0]);
    assert_eq!(stack.members(BUCKET, "roles/compute.admin"), [ANN]);

    // Somebody else changes it, and it is changed back.
    stack.pulumi(&["refresh", "--yes", "--expect-no-changes"]).ok();
    let drifted = json!({"bindings": [{"role": EDITORS, "members": ["user:other@example.com"]}]});
    stack.emulator.put_policy(ORIGIN, drifted);
    let seen = stack.pulumi(&["refresh", "--yes"]).ok();
    assert!(seen.contains("1 updated"), "{seen}");
    stack.up().ok();
    assert_eq!(stack.members(ORIGIN, EDITORS), ["group:film@example.com", ANN]);

    // A target that fails, and what is done once it no longer does.
    stack.emulator.set(Settings {
        denied_targets: [BUCKET.to_string()].into(),
        ..Settings::default()
    });
    edit(stack, "roles/compute.admin", "roles/compute.viewer");
    let failed = stack.up().failed();
    assert!(failed.contains(BUCKET), "{failed}");
    stack.emulator.set(Settings::default());
    stack.up().ok();
    assert_eq!(stack.members(BUCKET, "roles/compute.viewer"), [ANN]);
    assert_eq!(stack.members(BUCKET, "roles/compute.admin"), [""; 0]);

    stack.destroy().ok();
    assert_eq!(stack.members(BUCKET, "roles/compute.viewer"), [""; 0]);
    assert_eq!(stack.members(ORIGIN, EDITORS), [""; 0]);
}

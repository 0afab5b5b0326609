//! The examples: a program in YAML, and two that use the published SDKs of google-native 0.32.0, unchanged.

use std::os::unix::fs::symlink;
use std::path::Path;

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

fn runs(stack: &Stack, package: &str) {
    const ANN: &str = "user:ann@example.com";
    stack.link(package);
    stack.configure(package);
    stack.pulumi(&["preview"]).ok();
    let made = stack.up().ok();
    assert!(made.contains("4 created"), "{made}");
    assert_eq!(stack.members(BUCKET, "roles/compute.viewer"), [ANN]);
    let editors = stack.members(ORIGIN, "roles/networkservices.edgeCacheAdmin");
    assert_eq!(editors, ["group:video@example.com", ANN]);
    let outputs = stack.pulumi(&["stack", "output", "--json"]).ok();
    assert!(outputs.contains("\"project\": \"home\""), "{outputs}");
    stack.nothing_to_do();
    stack.pulumi(&["refresh", "--yes", "--expect-no-changes"]).ok();
    stack.destroy().ok();
    assert_eq!(stack.members(BUCKET, "roles/compute.viewer"), [""; 0]);
}

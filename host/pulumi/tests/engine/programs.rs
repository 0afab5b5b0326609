//! Programs that were written with the published SDKs of google-native 0.32.0, unchanged.

use std::os::unix::fs::symlink;

use crate::harness::*;

const TYPESCRIPT: &str = r#"import * as google from "@pulumi/google-native";

const viewer = new google.compute.v1.BackendBucketIamMember("viewer", {
    name: "logs",
    role: "roles/compute.viewer",
    member: "user:a@x.com",
});
const editors = new google.networkservices.v1.EdgeCacheOriginIamBinding("editors", {
    name: "video",
    role: "roles/networkservices.edgeCacheAdmin",
    members: ["user:a@x.com", "group:g@x.com"],
});
new google.datamigration.v1.MigrationJobIamMember("operator", {
    name: "orders",
    role: "roles/datamigration.admin",
    member: "user:a@x.com",
    condition: { title: "for now", expression: "true", description: editors.etag },
});
export const id = viewer.id;
export const project = viewer.project;
"#;

const PYTHON: &str = r#"import pulumi
from pulumi_google_native.compute import v1 as compute
from pulumi_google_native.datamigration import v1 as datamigration
from pulumi_google_native.iam import v1 as iam
from pulumi_google_native.networkservices import v1 as networkservices

viewer = compute.BackendBucketIamMember("viewer", name="logs", role="roles/compute.viewer", member="user:a@x.com")
editors = networkservices.EdgeCacheOriginIamBinding(
    "editors",
    name="video",
    role="roles/networkservices.edgeCacheAdmin",
    members=["user:a@x.com", "group:g@x.com"],
)
datamigration.MigrationJobIamMember(
    "operator",
    name="orders",
    role="roles/datamigration.admin",
    member="user:a@x.com",
    condition=iam.ConditionArgs(title="for now", expression="true", description=editors.etag),
)
pulumi.export("id", viewer.id)
pulumi.export("project", viewer.project)
"#;

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn typescript() {
    let stack = Stack::new("runtime: nodejs\n");
    symlink(ENGINE.join("node/node_modules"), stack.project().join("node_modules")).unwrap();
    stack.file("package.json", r#"{"name": "program", "main": "index.ts"}"#);
    stack.file("index.ts", TYPESCRIPT);
    runs_unchanged(&stack);
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn python() {
    let mut stack = Stack::new("runtime: python\n");
    let path = format!("{}:{}", ENGINE.join("venv/bin").display(), stack.path());
    stack.variable("PATH", &path);
    stack.file("__main__.py", PYTHON);
    runs_unchanged(&stack);
}

fn runs_unchanged(stack: &Stack) {
    stack.link("google-native");
    stack.configure("google-native");
    stack.pulumi(&["preview"]).ok();
    let made = stack.up().ok();
    assert!(made.contains("4 created"), "{made}");
    assert_eq!(stack.members(BUCKET, "roles/compute.viewer"), ["user:a@x.com"]);
    let editors = stack.members(ORIGIN, "roles/networkservices.edgeCacheAdmin");
    assert_eq!(editors, ["group:g@x.com", "user:a@x.com"]);
    let outputs = stack.pulumi(&["stack", "output", "--json"]).ok();
    assert!(outputs.contains("\"project\": \"home\""), "{outputs}");
    stack.nothing_to_do();
    stack.pulumi(&["refresh", "--yes", "--expect-no-changes"]).ok();
    stack.destroy().ok();
    assert_eq!(stack.members(BUCKET, "roles/compute.viewer"), [""; 0]);
}

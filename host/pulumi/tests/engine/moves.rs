//! A state of the embedded engine goes on under Pulumi.

use bindery_tests::engine::program;

use crate::harness::*;

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn an_exported_state_is_taken_and_nothing_changes() {
    let job = "  job:\n    type: bindery:datamigration/v1:MigrationJobIamMember\n    properties:\n      name: orders\n      role: \
               roles/datamigration.admin\n      member: user:a@x.com\n      condition: {title: t, expression: 'true'}\n";
    let resources = member("m", "roles/one", "user:a@x.com", "protect: true")
        + &binding(
            "b",
            "roles/two",
            &["user:a@x.com", "user:b@x.com"],
            "dependsOn: ['${m}']",
        )
        + job;
    let stack = Stack::yaml(&resources);
    let bindery = program("bindery");
    let bindery = bindery.to_str().unwrap();
    // The very same file is a stack file of the embedded engine.
    let mut up = stack.command(bindery, &["up", "Pulumi.yaml", "--yes", "--stack", "dev"]);
    for service in ["compute", "datamigration", "networkservices"] {
        up.arg(format!("--endpoint={service}={}", stack.emulator.origin()));
    }
    up.args(["--config", "project=home", "--config", "region=us-east1"]);
    Ran::from(up.output().unwrap()).ok();
    stack.emulator.take_requests();
    let export = stack
        .command(bindery, &["state", "export", "Pulumi.yaml", "--stack", "dev"])
        .output()
        .unwrap();
    assert!(export.status.success());
    stack.file("state.json", &String::from_utf8(export.stdout).unwrap());
    stack
        .pulumi(&["stack", "import", "--file", "state.json", "--stack", "dev"])
        .ok();
    stack.nothing_to_do();
    let kept = stack.up().ok();
    assert!(kept.contains("unchanged"), "{kept}");
    assert!(stack.emulator.take_requests().is_empty());
    stack.pulumi(&["refresh", "--yes", "--expect-no-changes"]).ok();
    let refused = stack.destroy().failed();
    assert!(refused.contains("protect"), "{refused}");
}

//! What goes wrong under the real engine, and what is left of it.

use bindery_emulator::{Hold, Settings};

use crate::harness::*;

const A: &str = "user:a@x.com";

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn a_failing_target_fails_alone_and_the_next_up_goes_on_from_there() {
    let stack = Stack::yaml(&(member("m", "roles/one", A, "") + &binding("b", "roles/two", &[A], "")));
    stack.emulator.set(Settings {
        missing_targets: [BUCKET.to_string()].into(),
        ..Settings::default()
    });
    let failed = stack.up().failed();
    assert!(
        failed.contains("BackendBucketIamMember (m)") && failed.contains(BUCKET),
        "{failed}"
    );
    assert_eq!(
        failed.matches("error: `projects/home").count(),
        failed.matches(&format!("error: `{BUCKET}")).count()
    );
    assert_eq!(stack.members(ORIGIN, "roles/two"), [A]);
    stack.emulator.set(Settings::default());
    let resumed = stack.up().ok();
    assert!(resumed.contains("1 created"), "{resumed}");
    assert_eq!(stack.members(BUCKET, "roles/one"), [A]);
    stack.nothing_to_do();
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn what_is_wrong_is_said_at_its_property() {
    let nested = "  odd:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties: {name: logs, role: roles/one, \
                  member: 'user:a@x.com', condition: {title: '', expression: 'true'}}\n";
    // The engine stops at the first resource that is wrong.
    for (resource, expected) in [
        (
            member("wrong", "viewer", "a@x.com", ""),
            "property member value {a@x.com}",
        ),
        (member("wrong", "viewer", "a@x.com", ""), "property role value {viewer}"),
        (nested.to_string(), "`condition.title`: must not be empty"),
    ] {
        let failed = Stack::yaml(&resource).pulumi(&["preview"]).failed();
        assert!(failed.contains(expected), "{expected} in\n{failed}");
    }
    let stack = Stack::yaml("  m:\n    type: bindery:compute/v1:BackendBucketIamMembers\n");
    let failed = stack.pulumi(&["preview"]).failed();
    assert!(failed.contains("BackendBucketIamMembers"), "{failed}");
    let stack = Stack::yaml(&member("m", "roles/one", A, ""));
    stack.set("bindery:policyMode", "all");
    let failed = stack.pulumi(&["preview"]).failed();
    assert!(
        failed.contains("`merge`, `replace`") && failed.contains("pulumi config set bindery:policyMode"),
        "{failed}"
    );
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn an_interrupt_in_the_middle_loses_nothing() {
    let resources = member("m", "roles/one", A, "") + &binding("b", "roles/two", &[A], "dependsOn: ['${m}']");
    let stack = Stack::yaml(&resources);
    // The first resource's write is done, and its answer never comes.
    stack.emulator.set(Settings {
        hold: Some(Hold { request: 2, done: true }),
        ..Settings::default()
    });
    let program = ENGINE.join("bin/pulumi");
    let arguments = ["up", "--yes", "--skip-preview", "--stack", "dev", "--non-interactive"];
    let mut up = stack.command(program.to_str().unwrap(), &arguments).spawn().unwrap();
    stack.wait_until(bindery_emulator::Emulator::is_holding);
    let interrupt = || {
        let pid = rustix::process::Pid::from_child(&up);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    };
    interrupt();
    std::thread::sleep(std::time::Duration::from_secs(1));
    stack.emulator.set(Settings::default());
    assert!(!up.wait().unwrap().success());
    assert_eq!(stack.members(BUCKET, "roles/one"), [A]);
    assert_eq!(stack.members(ORIGIN, "roles/two"), [""; 0]);
    stack.up().ok();
    assert_eq!(stack.members(ORIGIN, "roles/two"), [A]);
    stack.nothing_to_do();
    stack.destroy().ok();
    assert_eq!(stack.members(BUCKET, "roles/one"), [""; 0]);
}

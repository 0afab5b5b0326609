//! What is wrong with a stack file or a command line: named with its place, exit code 2, and nothing changed.

use crate::harness::{Bench, binding, member};

/// The error of an `up` with these resources, without the folder.
#[track_caller]
fn refused(resources: &str) -> String {
    let bench = Bench::new();
    bench.write(resources);
    refused_by(&bench, &["--config", "project=home"])
}

#[track_caller]
fn refused_by(bench: &Bench, more: &[&str]) -> String {
    let ran = bench.run("up", &[&["--yes"], more].concat());
    assert_eq!(ran.code, Some(2), "{}\n{}", ran.out, ran.err);
    assert_eq!(bench.emulator.take_requests(), []);
    assert!(
        !bench
            .file()
            .with_file_name(".bindery")
            .join("tests/dev/state.json")
            .exists()
    );
    ran.err.replace(&bench.file().display().to_string(), "FILE")
}

fn bucket(properties: &str) -> String {
    format!("  a:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties: {{{properties}}}\n")
}

#[test]
fn each_wrong_stack_file_says_what_and_where() {
    let good = "name: logs, role: roles/x";
    for (resources, expected) in [
        ("  a: [1\n", "error: FILE:5:1: not YAML:".to_string()),
        (
            "  a:\n    type: bindery:compute/v1:BackendBucketIamMembr\n",
            "FILE:5:11: resource `a`: the provider has no resource type `bindery:compute/v1:BackendBucketIamMembr`\n  hint: did you mean `bindery:compute/v1:BackendBucketIamMember`?".to_string(),
        ),
        (
            &bucket("name: logs, role: roles/x, membr: user:ann@example.com"),
            "resource `a`, property `membr`: is not a property here; did you mean `member`?".to_string(),
        ),
        (&bucket(good), "FILE:6:17: resource `a`, property `member`: is required, and missing: expected a string".to_string()),
        (
            &bucket(&format!("{good}, member: 7")),
            "FILE:6:45: resource `a`, property `member`: expected a string, found a number (`7`)".to_string(),
        ),
        (
            &bucket(&format!("{good}, member: user:ann@example.com, condition: {{title: t, expression: [x], more: 1}}")),
            "resource `a`, property `condition.expression`: expected a string, found a list".to_string(),
        ),
        (
            &bucket(&format!("{good}, member: user:ann@example.com, condition: {{title: t, expression: x, more: 1}}")),
            "property `condition.more`: is not a property here".to_string(),
        ),
        (
            &bucket(&format!("{good}, member: user:ann@example.com, condition: {{title: '', expression: x}}")),
            "property `condition.title`: must not be empty".to_string(),
        ),
        (&bucket(&format!("{good}, member: ann@example.com")), "did you mean `user:ann@example.com`".to_string()),
        (&bucket(&format!("{good}, member: allUsers")), "only under the configuration `identityForms: all`".to_string()),
        (
            &bucket("name: logs, role: viewer, member: user:ann@example.com"),
            "property `role`: `viewer` is not a role; expected `roles/NAME`".to_string(),
        ),
        (
            &bucket("name: Logs, role: roles/x, member: user:ann@example.com"),
            "property `name`: `Logs` is not the name of a backend bucket".to_string(),
        ),
        (
            &bucket("name: projects/p/locations/global/edgeCacheOrigins/o, role: roles/x, member: user:ann@example.com"),
            "names an edge cache origin; this resource grants roles on a backend bucket".to_string(),
        ),
        (
            &bucket("name: projects/p/global/backendBuckets/b, project: q, role: roles/x, member: user:ann@example.com"),
            "property `project`: `q` contradicts `name`, which is in the project `p`".to_string(),
        ),
        (&binding("b", "roles/x", &[]), "FILE:9:7: resource `b`, property `members`: must name at least one identity".to_string()),
        (
            &binding("b", "roles/x", &["user:ann@example.com", "bob"]),
            "resource `b`, property `members[1]`: `bob` is not an identity".to_string(),
        ),
        (
            &(member("one", "roles/x", "user:ann@example.com") + &member("two", "roles/x", "user:ANN@example.com")),
            "FILE:10:3: resource `two`: `one` and `two` both declare".to_string(),
        ),
    ] {
        let error = refused(resources);
        assert!(error.contains(&expected), "expected: {expected}\nfound: {error}\nfor:\n{resources}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once_in_the_order_of_the_file() {
    let error = refused(&(bucket("name: Logs, role: x, member: y") + &binding("b", "roles/x", &["z"])));
    let lines: Vec<&str> = error.lines().filter(|line| line.starts_with("error:")).collect();
    let paths: Vec<&str> = lines.iter().filter_map(|line| line.split('`').nth(3)).collect();
    assert_eq!(paths, ["name", "role", "member", "members[0]"], "{error}");
}

#[test]
fn without_a_project_the_failure_says_where_to_set_it() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    let error = refused_by(&bench, &[]);
    assert!(
        error.contains("property `project`: no project is known for `logs`; set `project`"),
        "{error}"
    );
}

#[test]
fn a_wrong_command_line_is_refused() {
    let bench = Bench::new();
    bench.write("");
    for (more, expected) in [
        (
            &["--config", "proejct=x"][..],
            "`proejct`: is not a property here; did you mean `project`?",
        ),
        (
            &["--config", "policyMode=merg"],
            "expected one of `merge`, `replace`, found `merg`",
        ),
        (&["--config", "project=My Project"], "`My Project` is not a project"),
        (&["--config", "project"], "KEY=VALUE"),
        (
            &["--endpoint", "storage=http://127.0.0.1:1"],
            "there is no service `storage`",
        ),
        (&["--endpoint", "compute=http://10.0.0.1"], "is not encrypted"),
        (&["--endpoint", "compute=http://127.0.0.1/path"], "is not an origin"),
        (&["--parallel", "0"], "--parallel"),
        (&["--stack", "../x"], "letters, digits"),
        (&["--emulate"], "cannot be used with"),
    ] {
        let error = refused_by(&bench, more);
        assert!(error.contains(expected), "{more:?}: {error}");
    }
    let missing = std::process::Command::new(env!("CARGO_BIN_EXE_bindery"))
        .args(["up", "/nowhere/stack.yaml"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/nowhere/stack.yaml cannot be read"));
}

#[test]
fn an_origin_that_is_not_allowed_is_refused_before_anything_is_called() {
    let bench = Bench::new();
    bench.write("");
    let ran: crate::harness::Ran = std::process::Command::new(env!("CARGO_BIN_EXE_bindery"))
        .env_clear()
        .args([
            "up",
            bench.file().to_str().unwrap(),
            "--yes",
            "--config",
            "computeEndpoint=https://elsewhere.example",
        ])
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err
            .contains("would call `https://elsewhere.example`, which is not one of its origins"),
        "{}",
        ran.err
    );
}

#[test]
fn a_state_that_cannot_be_used_is_left_as_it_is() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    let state = bench.file().with_file_name(".bindery").join("tests/dev/state.json");
    std::fs::create_dir_all(state.parent().unwrap()).unwrap();
    for text in ["{", r#"{"version": 4, "deployment": {}}"#, r#"{"version": 3}"#] {
        std::fs::write(&state, text).unwrap();
        let up = bench.up();
        assert_eq!(up.code, Some(1));
        assert!(
            up.err.contains("state.json cannot be used") && up.err.contains("nothing was changed"),
            "{}",
            up.err
        );
        assert_eq!(std::fs::read_to_string(&state).unwrap(), text);
    }
    assert_eq!(bench.emulator.take_requests(), []);
}

//! Up, preview, refresh and destroy, as a user goes through them.

use std::path::Path;
use std::process::Command;

use bindery_emulator::Settings;
use serde_json::json;

use crate::harness::{BUCKET, Bench, ORIGIN, Ran, binding, member};

#[test]
fn the_example_is_applied_once_and_kept() {
    let folder = tempfile::TempDir::new().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/grants.yaml");
    let file = folder.path().join("grants.yaml");
    std::fs::copy(example, &file).unwrap();
    let run = |command: &str| -> Ran {
        let mut bindery = Command::new(env!("CARGO_BIN_EXE_bindery"));
        bindery
            .env_clear()
            .arg(command)
            .arg(&file)
            .args(["--emulate", "--yes"])
            .output()
            .unwrap()
            .into()
    };
    let first = run("up").ok();
    assert!(
        first.out.contains("3 to create") && first.out.contains("3 created"),
        "{}",
        first.out
    );
    let second = run("up").ok();
    assert!(
        second.out.contains("3 unchanged") && second.out.contains("nothing to do"),
        "{}",
        second.out
    );
    let state = std::fs::read_to_string(folder.path().join(".bindery/grants/dev/emulated/state.json")).unwrap();
    assert!(
        !state.contains("127.0.0.1"),
        "the emulator's address is of one run: {state}"
    );
    assert!(run("refresh").ok().out.contains("nothing has changed"));
    assert!(run("destroy").ok().out.contains("3 deleted"));
    let policies = std::fs::read_to_string(folder.path().join(".bindery/grants/dev/emulated/policies.json")).unwrap();
    assert!(!policies.contains("members"), "{policies}");
}

#[test]
fn a_second_up_asks_nothing_of_the_services() {
    let bench = Bench::new();
    bench
        .write(&(member("a", "roles/x", "user:ann@example.com") + &binding("b", "roles/y", &["user:bob@example.com"])));
    assert!(bench.up().ok().out.contains("2 created"));
    bench.emulator.take_requests();
    assert!(bench.up().ok().out.contains("2 unchanged"));
    assert_eq!(bench.emulator.take_requests(), []);
}

#[test]
fn a_preview_touches_nothing() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    let preview = bench.run("preview", &["--config", "bindery:project=home"]).ok();
    assert!(preview.out.contains("1 to create"), "{}", preview.out);
    assert_eq!(bench.emulator.take_requests(), []);
    assert!(!bench.file().with_file_name(".bindery").exists());
}

#[test]
fn nothing_is_changed_without_a_yes() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    let up = bench.run("up", &["--config", "project=home"]);
    assert_eq!(up.code, Some(2));
    assert!(up.err.contains("pass `--yes`"), "{}", up.err);
    assert_eq!(bench.emulator.take_requests(), []);
}

#[test]
fn drift_is_shown_by_a_refresh_and_mended_by_the_next_up() {
    let bench = Bench::new();
    bench.write(
        &(member("a", "roles/x", "user:ann@example.com")
            + &binding("b", "roles/y", &["user:bob@example.com", "user:cy@example.com"])),
    );
    bench.up().ok();
    bench.emulator.put_policy(BUCKET, json!({}));
    bench.emulator.put_policy(
        ORIGIN,
        json!({"bindings": [{"role": "roles/y", "members": ["user:eve@example.com", "user:bob@example.com"]}]}),
    );
    let refresh = bench.run("refresh", &["--yes"]).ok();
    assert!(
        refresh
            .out
            .contains("- a  bindery:compute/v1:BackendBucketIamMember is gone"),
        "{}",
        refresh.out
    );
    for line in [
        r#"- "user:cy@example.com""#,
        r#"+ "user:eve@example.com""#,
        "… 1 unchanged",
    ] {
        assert!(refresh.out.contains(line), "{}", refresh.out);
    }
    let up = bench.up().ok();
    assert!(up.out.contains("1 created, 1 updated"), "{}", up.out);
    assert_eq!(bench.members(BUCKET, "roles/x"), ["user:ann@example.com"]);
    assert_eq!(
        bench.members(ORIGIN, "roles/y"),
        ["user:bob@example.com", "user:cy@example.com"]
    );
}

#[test]
fn destroying_gives_the_policies_back_as_they_were() {
    let bench = Bench::new();
    let foreign = json!({
        "bindings": [
            {"role": "roles/x", "members": ["user:MiXed@Example.com"], "bindingId": "b"},
            {"role": "roles/x", "members": ["user:mixed@example.com"], "condition": {"title": "t", "expression": "true", "location": "l"}},
        ],
        "auditConfigs": [{"service": "allServices"}],
        "future": [1.50],
    });
    bench.emulator.put_policy(BUCKET, foreign);
    let before = bench.content(BUCKET);
    bench.write(&(member("a", "roles/x", "user:ann@example.com") + &member("b", "roles/z", "user:ann@example.com")));
    bench.up().ok();
    assert_ne!(bench.content(BUCKET), before);
    assert!(bench.destroy().ok().out.contains("2 deleted"));
    assert_eq!(bench.content(BUCKET).to_string(), before.to_string());
    assert!(bench.names().is_empty());
}

#[test]
fn a_renamed_resource_keeps_its_grant_and_two_that_swap_lose_nothing() {
    let bench = Bench::new();
    bench.write(&member("old", "roles/x", "user:ann@example.com"));
    bench.up().ok();
    bench.emulator.take_requests();
    bench.write(&member("new", "roles/x", "user:ann@example.com"));
    let up = bench.up().ok();
    assert!(up.out.contains("its grant stays, declared by `new` now"), "{}", up.out);
    assert!(
        bench
            .emulator
            .take_requests()
            .iter()
            .all(|request| request.method == "GET"),
        "nothing was written"
    );
    assert_eq!(bench.names(), ["new"]);

    bench
        .write(&(member("one", "roles/x", "user:ann@example.com") + &member("two", "roles/x", "user:bob@example.com")));
    bench.up().ok();
    bench
        .write(&(member("one", "roles/x", "user:bob@example.com") + &member("two", "roles/x", "user:ann@example.com")));
    let up = bench.up().ok();
    assert!(up.out.contains("2 to replace"), "{}", up.out);
    assert_eq!(
        bench.members(BUCKET, "roles/x"),
        ["user:ann@example.com", "user:bob@example.com"]
    );
    assert_eq!(bench.names(), ["one", "two"]);
    assert!(bench.up().ok().out.contains("2 unchanged"));
}

#[test]
fn a_replacement_is_created_before_the_old_one_is_deleted() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    bench.up().ok();
    bench.write(&member("a", "roles/y", "user:ann@example.com"));
    let up = bench.up().ok();
    assert!(
        up.out.contains(r#"role  "roles/x" → "roles/y"  (replaces)"#),
        "{}",
        up.out
    );
    assert_eq!(bench.members(BUCKET, "roles/x"), Vec::<String>::new());
    assert_eq!(bench.members(BUCKET, "roles/y"), ["user:ann@example.com"]);
    let writes: Vec<u16> = bench
        .emulator
        .take_requests()
        .iter()
        .map(|request| request.status)
        .collect();
    assert_eq!(writes, [200; 6], "create, create, delete: two requests each");
    assert_eq!(bench.names(), ["a"]);
}

#[test]
fn a_failure_leaves_the_others_done_and_the_next_up_goes_on_from_there() {
    let bench = Bench::new();
    bench.emulator.set(Settings {
        missing_identities: ["user:nobody@example.com".to_string()].into(),
        ..Settings::default()
    });
    let after = member("after", "roles/w", "user:ann@example.com") + "    options: {dependsOn: ['${bad}']}\n";
    bench.write(
        &(member("good", "roles/x", "user:ann@example.com")
            + &binding("bad", "roles/y", &["user:nobody@example.com"])
            + &after),
    );
    let up = bench.up();
    assert_eq!(up.code, Some(1));
    assert!(
        up.err.contains("resource `bad`:") && up.err.contains("stack.yaml:10:3") && up.err.contains("does not exist"),
        "{}",
        up.err
    );
    assert!(up.out.contains("after skipped"), "{}", up.out);
    assert_eq!(bench.names(), ["good"]);
    assert_eq!(bench.state()["deployment"].get("pending_operations"), None);
    bench.emulator.set(Settings::default());
    let up = bench.up().ok();
    assert!(up.out.contains("2 created"), "{}", up.out);
    assert_eq!(bench.names(), ["after", "bad", "good"]);
}

#[test]
fn a_target_that_is_gone_fails_its_grant_and_lets_go_of_it() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    bench.emulator.set(Settings {
        missing_targets: [BUCKET.to_string()].into(),
        ..Settings::default()
    });
    let up = bench.up();
    assert_eq!(up.code, Some(1));
    assert!(
        up.err.contains(&format!("`{BUCKET}` does not exist; create it first")),
        "{}",
        up.err
    );
    bench.emulator.set(Settings::default());
    bench.up().ok();
    bench.emulator.set(Settings {
        missing_targets: [BUCKET.to_string()].into(),
        ..Settings::default()
    });
    assert!(bench.run("refresh", &["--yes"]).ok().out.contains("is gone"));
    assert!(bench.destroy().ok().out.contains("nothing exists"));
}

#[test]
fn a_service_that_is_down_is_named() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    let file = bench.file();
    let up: Ran = Command::new(env!("CARGO_BIN_EXE_bindery"))
        .env_clear()
        .args([
            "up",
            file.to_str().unwrap(),
            "--yes",
            "--config=project=home",
            "--timeout=1",
            "--endpoint=compute=http://127.0.0.1:9",
        ])
        .output()
        .unwrap()
        .into();
    assert_eq!(up.code, Some(1));
    assert!(
        up.err.contains("resource `a`: gave up after") && up.err.contains("cannot be reached"),
        "{}",
        up.err
    );
}

#[test]
fn the_environment_gives_defaults_and_the_command_line_goes_first() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    let preview = |more: &[&str]| -> String {
        let mut command = bench.command("preview", more);
        let ran: Ran = command
            .env("GOOGLE_CLOUD_PROJECT", "from-environment")
            .output()
            .unwrap()
            .into();
        ran.ok().out
    };
    assert!(preview(&[]).contains(r#"project  "from-environment""#));
    assert!(preview(&["--config", "project=from-flag"]).contains(r#"project  "from-flag""#));
}

#[test]
fn a_grant_that_was_there_is_adopted_with_a_warning() {
    let bench = Bench::new();
    bench.emulator.put_policy(
        BUCKET,
        json!({"bindings": [{"role": "roles/x", "members": ["user:ANN@example.com"]}]}),
    );
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    let up = bench.up().ok();
    assert!(
        up.err
            .contains("warning: resource `a`: `user:ann@example.com` had `roles/x` already"),
        "{}",
        up.err
    );
    assert_eq!(bench.members(BUCKET, "roles/x"), ["user:ANN@example.com"]);
}

#[test]
fn a_policy_that_was_to_be_replaced_is_mended() {
    let bench = Bench::new();
    let replace = ["--yes", "--config=project=home", "--config=policyMode=replace"];
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    bench.emulator.put_policy(
        BUCKET,
        json!({"bindings": [{"role": "roles/other", "members": ["user:eve@example.com"]}]}),
    );
    bench.run("up", &replace).ok();
    assert_eq!(bench.members(BUCKET, "roles/other"), Vec::<String>::new());
    bench.emulator.put_policy(
        BUCKET,
        json!({"bindings": [{"role": "roles/x", "members": ["user:ann@example.com", "user:eve@example.com"]}]}),
    );
    // The state has the configuration, so that a refresh needs none.
    let refresh = bench.run("refresh", &["--yes"]).ok();
    assert!(
        refresh.err.contains("holds more than this resource's binding"),
        "{}",
        refresh.err
    );
    assert!(refresh.out.contains("1 resource has changed"), "{}", refresh.out);
    bench.run("up", &replace).ok();
    assert_eq!(bench.members(BUCKET, "roles/x"), ["user:ann@example.com"]);
}

#[test]
fn the_emulator_serves_on_its_own() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    let mut emulator = Command::new(env!("CARGO_BIN_EXE_bindery"))
        .args(["emulator", "--port", "0"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(emulator.stdout.as_mut().unwrap()),
        &mut first,
    )
    .unwrap();
    let origin = first.trim().rsplit(' ').next().unwrap().to_string();
    let up: Ran = Command::new(env!("CARGO_BIN_EXE_bindery"))
        .env_clear()
        .args(["up", bench.file().to_str().unwrap(), "--yes", "--config=project=home"])
        .arg(format!("--endpoint=compute={origin}"))
        .output()
        .unwrap()
        .into();
    emulator.kill().unwrap();
    emulator.wait().unwrap();
    up.ok();
}

#[test]
fn a_replacement_that_is_refused_leaves_the_old_grant_in_either_mode() {
    for mode in ["merge", "replace"] {
        let bench = Bench::new();
        let config = format!("--config=policyMode={mode}");
        let up = || bench.run("up", &["--yes", "--config=project=home", &config]);
        bench.write(&member("a", "roles/x", "user:ann@example.com"));
        up().ok();
        bench.emulator.set(Settings {
            missing_identities: ["user:bob@example.com".to_string()].into(),
            ..Settings::default()
        });
        bench.write(&member("a", "roles/x", "user:bob@example.com"));
        assert_eq!(up().code, Some(1));
        assert_eq!(bench.members(BUCKET, "roles/x"), ["user:ann@example.com"], "{mode}");
        bench.emulator.set(Settings::default());
        up().ok();
        assert_eq!(bench.members(BUCKET, "roles/x"), ["user:bob@example.com"], "{mode}");
        assert_eq!(bench.names(), ["a"]);
    }
}

#[test]
fn emulated_services_have_a_state_of_their_own() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    bench.up().ok();
    let emulated = |command: &str| -> Ran {
        let mut bindery = Command::new(env!("CARGO_BIN_EXE_bindery"));
        bindery
            .env_clear()
            .arg(command)
            .arg(bench.file())
            .args(["--emulate", "--yes", "--config=project=home"]);
        // Nothing that says who makes requests matters where nobody asks.
        bindery
            .env("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file")
            .output()
            .unwrap()
            .into()
    };
    assert!(emulated("destroy").ok().out.contains("nothing exists"));
    assert!(emulated("up").ok().out.contains("1 created"));
    assert_eq!(bench.names(), ["a"]);
    assert_eq!(bench.members(BUCKET, "roles/x"), ["user:ann@example.com"]);
}

#[test]
fn a_changed_configuration_is_kept_though_nothing_else_changes() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    bench
        .run("up", &["--yes", "--config=project=home", "--config=policyMode=replace"])
        .ok();
    bench.emulator.put_policy(
        BUCKET,
        json!({"bindings": [
            {"role": "roles/x", "members": ["user:ann@example.com"]},
            {"role": "roles/other", "members": ["user:eve@example.com"]},
        ]}),
    );
    assert!(bench.up().ok().out.contains("1 unchanged"));
    bench.destroy().ok();
    assert_eq!(bench.members(BUCKET, "roles/other"), ["user:eve@example.com"]);
}

#[test]
fn what_a_failed_resource_depends_on_stays() {
    let bench = Bench::new();
    let dependent = |role: &str| binding("y", role, &["user:bob@example.com"]) + "    options: {dependsOn: ['${x}']}\n";
    bench.write(&(member("x", "roles/x", "user:ann@example.com") + &dependent("roles/y")));
    bench.up().ok();
    bench.emulator.set(Settings {
        denied_targets: [ORIGIN.to_string()].into(),
        ..Settings::default()
    });
    bench.write(&binding("y", "roles/z", &["user:bob@example.com"]));
    assert_eq!(bench.up().code, Some(1));
    assert_eq!(bench.names(), ["x", "y"]);
    bench.emulator.set(Settings::default());
    bench.up().ok();
    assert_eq!(bench.names(), ["y"]);
}

#[test]
fn a_refresh_notes_a_new_etag_without_asking() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    bench.up().ok();
    let etag = |bench: &Bench| bench.state()["deployment"]["resources"][2]["outputs"]["etag"].clone();
    let before = etag(&bench);
    bench.emulator.put_policy(
        BUCKET,
        json!({"bindings": [{"role": "roles/x", "members": ["user:ann@example.com"]}]}),
    );
    assert!(bench.run("refresh", &[]).ok().out.contains("nothing has changed"));
    assert_ne!(etag(&bench), before);
}

#[test]
fn a_resource_that_goes_as_the_mode_changes_to_replace_takes_its_grant_along() {
    let bench = Bench::new();
    let a = member("a", "roles/x", "user:ann@example.com");
    bench.write(&(a.clone() + &member("b", "roles/y", "user:ann@example.com")));
    bench.up().ok();
    bench.write(&a);
    let up = bench
        .run("up", &["--yes", "--config=project=home", "--config=policyMode=replace"])
        .ok();
    assert!(up.out.contains("the configuration has changed"), "{}", up.out);
    assert_eq!(bench.members(BUCKET, "roles/x"), ["user:ann@example.com"]);
    assert_eq!(bench.members(BUCKET, "roles/y"), Vec::<String>::new());
    assert_eq!(bench.names(), ["a"]);
}

#[test]
fn a_leftover_whose_dependencies_were_turned_round_is_destroyed() {
    let bench = Bench::new();
    let on = |name: &str, bucket: &str, depends_on: &str| {
        member(name, "roles/x", "user:ann@example.com").replace("name: logs", &format!("name: {bucket}"))
            + &if depends_on.is_empty() {
                String::new()
            } else {
                format!("    options: {{dependsOn: ['${{{depends_on}}}']}}\n")
            }
    };
    bench.write(&(on("a", "one", "b") + &on("b", "three", "")));
    bench.up().ok();
    // The old one of `a` cannot be deleted, and stays behind.
    let one = "projects/home/global/backendBuckets/one";
    bench.emulator.set(Settings {
        denied_targets: [one.to_string()].into(),
        ..Settings::default()
    });
    bench.write(&(on("a", "two", "") + &on("b", "three", "a")));
    assert_eq!(bench.up().code, Some(1));
    bench.emulator.set(Settings::default());
    assert!(bench.destroy().ok().out.contains("3 deleted"));
    for bucket in ["one", "two", "three"] {
        let target = format!("projects/home/global/backendBuckets/{bucket}");
        assert_eq!(bench.members(&target, "roles/x"), Vec::<String>::new(), "{bucket}");
    }
}

#[test]
fn nothing_is_forgotten_without_a_yes() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    bench.up().ok();
    bench.emulator.put_policy(BUCKET, json!({}));
    let before = bench.state();
    let up = bench.run("up", &["--config=project=home", "--config=region=elsewhere1"]);
    assert_eq!(up.code, Some(2));
    assert!(
        up.out.contains("1 to create") && up.err.contains("pass `--yes`"),
        "{}{}",
        up.out,
        up.err
    );
    assert_eq!(bench.state(), before);
}

#[test]
fn the_emulators_document_comes_when_it_listens() {
    let mut emulator = Command::new(env!("CARGO_BIN_EXE_bindery"))
        .args(["emulator", "--port=0", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let document: serde_json::Value = serde_json::Deserializer::from_reader(emulator.stdout.take().unwrap())
        .into_iter()
        .next()
        .unwrap()
        .unwrap();
    assert!(document["origin"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    assert!(
        Command::new("kill")
            .arg(emulator.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    assert!(emulator.wait().unwrap().success());
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/x", "user:ann@example.com"));
    bench.up().ok();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for arguments in [
        ["state", "export"].as_slice(),
        &["state", "show", "--json"],
        &["completions", "bash"],
    ] {
        let mut bindery = Command::new(env!("CARGO_BIN_EXE_bindery"));
        bindery.args(arguments);
        if arguments[0] == "state" {
            bindery.arg(bench.file());
        }
        let output = bindery.stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be written"));
    }
}

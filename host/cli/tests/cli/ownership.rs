//! Whose a grant is: what is handed over, what a target may touch, what is protected.

use std::time::Duration;

use bindery_emulator::{Faults, Settings};
use serde_json::json;

use crate::harness::{BUCKET, Bench, ORIGIN, binding, member};

/// A resource with its own options, as YAML.
fn with(resource: String, options: &str) -> String {
    format!("{resource}    options: {{{options}}}\n")
}

#[test]
fn a_grant_is_handed_over_only_to_a_resource_that_has_it() {
    let bench = Bench::new();
    let ann = "user:ann@example.com";
    bench.write(&member("a", "roles/x", ann));
    bench.up().ok();
    // `b` is to have what `a` gives up, and never comes to it, because what it waits for fails.
    bench.write(
        &(with(member("a", "roles/y", ann), "deleteBeforeReplace: true")
            + &with(
                member("fails", "roles/z", "user:no@example.com"),
                "import: logs roles/z user:no@example.com",
            )
            + &with(member("b", "roles/x", ann), "dependsOn: ['${fails}']")),
    );
    let up = bench.up();
    assert_eq!(up.code, Some(1));
    assert!(
        up.err.contains("which does not have it yet; it stays in the state"),
        "{}",
        up.err
    );
    bench.write(&member("a", "roles/y", ann));
    bench.up().ok();
    assert_eq!(bench.members(BUCKET, "roles/x"), Vec::<String>::new(), "leaked");
    assert_eq!(bench.members(BUCKET, "roles/y"), [ann]);
}

#[test]
fn a_target_neither_leaks_nor_takes_what_others_have() {
    let bench = Bench::new();
    let ann = "user:ann@example.com";
    let up = |target: &str| bench.run("up", &["--yes", "--config=project=home", "--target", target]);
    bench.write(&member("old", "roles/x", ann));
    bench.up().ok();
    // Under its new name it is no target: what goes, goes.
    bench.write(&member("new", "roles/x", ann));
    up("old").ok();
    assert_eq!(bench.members(BUCKET, "roles/x"), Vec::<String>::new());
    bench.up().ok();
    // What the state says another has cannot be taken by a target.
    bench.write(&(member("new", "roles/y", ann) + &member("other", "roles/x", ann)));
    let refused = up("other");
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("both declare"), "{}", refused.err);
    bench.up().ok();
    let destroyed = bench.run("destroy", &["--yes", "--target", "new"]).ok();
    assert!(destroyed.out.contains("1 deleted"), "{}", destroyed.out);
    assert_eq!(bench.members(BUCKET, "roles/x"), [ann]);
    assert_eq!(bench.names(), ["other"]);
}

#[test]
fn outputs_of_what_is_no_target_are_not_known_and_no_failure() {
    let bench = Bench::new();
    let both = member("a", "roles/x", "user:ann@example.com") + &member("b", "roles/y", "user:ann@example.com");
    bench.write(&(both + "outputs: {x: '${b.etag}', y: hi}\n"));
    let up = bench.run("up", &["--yes", "--config=project=home", "--target=a"]).ok();
    assert!(
        up.out.contains("x  [unknown]") && up.out.contains(r#"y  "hi""#),
        "{}",
        up.out
    );
    let typo = bench.run("refresh", &["--yes", "--target=typo"]);
    assert_eq!(typo.code, Some(2), "{}", typo.out);
}

#[test]
fn a_replaced_resource_that_was_protected_can_be_destroyed() {
    let bench = Bench::new();
    let declare = |role: &str, protect: &str| {
        bench.write(&with(
            member("a", role, "user:ann@example.com"),
            &format!("protect: {protect}"),
        ));
    };
    declare("roles/x", "true");
    bench.up().ok();
    declare("roles/y", "false");
    let mut up = bench.command("up", &["--yes", "--config=project=home"]);
    let killed = up.env("FAILPOINTS", "after-append=2*off->return").output().unwrap();
    assert_eq!(killed.status.code(), None);
    bench.destroy().ok();
    for role in ["roles/x", "roles/y"] {
        assert_eq!(bench.members(BUCKET, role), Vec::<String>::new(), "{role}");
    }
}

#[test]
fn a_grant_that_was_overwritten_by_what_goes_is_put_right() {
    let bench = Bench::new();
    let helper = |role: &str, on: &str| {
        with(
            member("h", role, "user:h@example.com"),
            &format!("dependsOn: ['${{{on}}}']"),
        )
    };
    let first = binding("a", "roles/p", &["user:ann@example.com"]) + &helper("roles/h", "a");
    bench.write(&first);
    bench.up().ok();
    // `z` takes the role from `a`, which stays, because what depends on it cannot be changed.
    bench.write(&(binding("z", "roles/p", &["user:bob@example.com"]) + &helper("roles/h2", "z")));
    bench.emulator.set(Settings {
        denied_targets: [BUCKET.to_string()].into(),
        ..Settings::default()
    });
    assert_eq!(bench.up().code, Some(1));
    bench.emulator.set(Settings::default());
    bench.write(&first);
    let up = bench.up().ok();
    assert_eq!(bench.members(ORIGIN, "roles/p"), ["user:ann@example.com"], "{}", up.out);
    assert_eq!(bench.names(), ["a", "h"]);
    assert!(
        bench
            .run("refresh", &["--yes"])
            .ok()
            .out
            .contains("nothing has changed")
    );
}

#[test]
fn what_is_adopted_is_what_is_claimed() {
    let bench = Bench::new();
    let ann = "user:ann@example.com";
    bench.write(&member("x", "roles/p", ann));
    bench.up().ok();
    let options = "import: logs roles/p user:ann@example.com, ignoreChanges: [role]";
    bench.write(&with(member("a", "roles/other", ann), options));
    let up = bench.up().ok();
    assert_eq!(bench.members(BUCKET, "roles/p"), [ann], "{}", up.out);
    assert_eq!(bench.names(), ["a"]);
    assert!(bench.up().ok().out.contains("1 unchanged"));
}

#[test]
fn an_interrupt_does_not_part_a_deletion_from_its_replacement() {
    let bench = Bench::new();
    let declare = |role: &str| {
        bench.write(&with(
            member("a", role, "user:ann@example.com"),
            "deleteBeforeReplace: true",
        ));
    };
    declare("roles/p");
    bench.up().ok();
    declare("roles/q");
    bench.emulator.set(Settings {
        faults: Faults {
            latency_ms: 700,
            ..Faults::default()
        },
        ..Settings::default()
    });
    let mut up = bench.command("up", &["--yes", "--config=project=home"]);
    let up = up
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The first request reads what exists; the second is the deletion's, which has begun by then.
    assert!((0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        bench.emulator.arrived() > 1
    }));
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &up.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    let ran: crate::harness::Ran = up.wait_with_output().unwrap().into();
    assert!(ran.out.contains("a replaced"), "{}", ran.out);
    assert_eq!(bench.members(BUCKET, "roles/q"), ["user:ann@example.com"]);
}

#[test]
fn two_that_are_known_to_have_the_same_hold_up_no_other() {
    let bench = Bench::new();
    let swapped = |a: &str, b: &str, c: &str| {
        let mut text = String::new();
        for (name, role) in [("a", a), ("b", b), ("c", c)] {
            text += &member(name, role, "user:ann@example.com");
        }
        bench.write(&text);
    };
    swapped("roles/p", "roles/q", "roles/c");
    bench.up().ok();
    swapped("roles/q", "roles/p", "roles/c2");
    let mut up = bench.command("up", &["--yes", "--config=project=home", "--parallel=1"]);
    assert_eq!(
        up.env("FAILPOINTS", "before-append=2*off->return")
            .output()
            .unwrap()
            .status
            .code(),
        None
    );
    bench.run("refresh", &["--yes"]).ok();
    bench.run("up", &["--yes", "--config=project=home", "--target=c"]).ok();
    assert_eq!(bench.members(BUCKET, "roles/c2"), ["user:ann@example.com"]);
    bench.up().ok();
    for role in ["roles/p", "roles/q"] {
        assert_eq!(bench.members(BUCKET, role), ["user:ann@example.com"], "{role}");
    }
}

#[test]
fn a_configuration_counts_once_all_is_read_under_it() {
    let bench = Bench::new();
    bench.write(&member("a", "roles/p", "user:ann@example.com"));
    bench.up().ok();
    bench.emulator.put_policy(
        BUCKET,
        json!({"bindings": [{"role": "roles/p", "members": ["user:ann@example.com", "user:evil@example.com"]}]}),
    );
    let up = || bench.run("up", &["--yes", "--config=project=home", "--config=policyMode=replace"]);
    bench.emulator.set(Settings {
        denied_targets: [BUCKET.to_string()].into(),
        ..Settings::default()
    });
    assert_eq!(up().code, Some(1));
    bench.emulator.set(Settings::default());
    up().ok();
    assert_eq!(bench.members(BUCKET, "roles/p"), ["user:ann@example.com"]);
}

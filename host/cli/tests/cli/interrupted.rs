//! Runs that are killed, and what the next one makes of it.

use std::time::Duration;

use bindery_emulator::{Faults, Settings};

use crate::harness::{BUCKET, Bench, ORIGIN, binding, member};

fn slow(milliseconds: u64) -> Settings {
    Settings {
        faults: Faults {
            latency_ms: milliseconds,
            ..Faults::default()
        },
        ..Settings::default()
    }
}

fn declared() -> String {
    member("a", "roles/x", "user:ann@example.com")
        + &member("b", "roles/y", "user:bob@example.com")
        + &binding("c", "roles/z", &["user:cy@example.com"])
}

fn kill_after(bench: &Bench, wait: Duration) {
    let mut up = bench.spawn_up();
    std::thread::sleep(wait);
    up.kill().unwrap();
    up.wait().unwrap();
}

/// All three stand in the state as being made, and no request of theirs was answered.
fn killed_while_three_are_made(bench: &Bench) {
    bench.write(&declared());
    bench.emulator.set(slow(60_000));
    let mut up = bench.spawn_up();
    let pending = || bench.on_disk().matches("\"creating\"").count();
    let waited = (0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        pending() == 3
    });
    up.kill().unwrap();
    up.wait().unwrap();
    assert!(waited);
}

#[test]
fn an_operation_stands_in_the_state_before_its_first_request() {
    let bench = Bench::new();
    killed_while_three_are_made(&bench);
    bench.emulator.set(Settings::default());
    let up = bench.up().ok();
    assert!(
        up.out.contains("settled after an interrupted run: not there"),
        "{}",
        up.out
    );
    assert_eq!(bench.names(), ["a", "b", "c"]);
}

#[test]
fn what_was_made_before_the_end_is_found_and_neither_made_again_nor_leaked() {
    let bench = Bench::new();
    bench.write(&declared());
    // The writes are done, and their answers are never seen.
    bench.emulator.set(Settings {
        faults: Faults {
            writes_only: true,
            reset_after: 1.0,
            ..slow(100).faults
        },
        ..Settings::default()
    });
    let mut up = bench.spawn_up();
    let is_written = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        !bench.members(ORIGIN, "roles/z").is_empty() && !bench.members(BUCKET, "roles/x").is_empty()
    });
    up.kill().unwrap();
    up.wait().unwrap();
    assert!(is_written);
    bench.emulator.set(Settings::default());
    // The resources were taken out of the file in between.
    bench.write(&member("d", "roles/w", "user:dee@example.com"));
    bench.up().ok();
    for (target, role) in [(BUCKET, "roles/x"), (BUCKET, "roles/y"), (ORIGIN, "roles/z")] {
        assert_eq!(bench.members(target, role), Vec::<String>::new(), "{role} was leaked");
    }
    assert_eq!(bench.members(BUCKET, "roles/w"), ["user:dee@example.com"]);
    assert_eq!(bench.names(), ["d"]);
}

#[test]
fn a_run_that_is_killed_at_any_moment_is_resumed() {
    let bench = Bench::new();
    let before = declared();
    let after = member("a", "roles/x2", "user:ann@example.com")
        + &binding("c", "roles/z", &["user:cy@example.com", "user:dee@example.com"]);
    for step in 0..12 {
        // Slow enough that a run outlasts its start-up, however slow that is here.
        bench.emulator.set(slow(200));
        bench.write(if step % 2 == 0 { &before } else { &after });
        kill_after(&bench, Duration::from_millis(400 + 230 * step));
    }
    bench.emulator.set(Settings::default());
    bench.write(&after);
    bench.up().ok();
    assert_eq!(bench.members(BUCKET, "roles/x"), Vec::<String>::new());
    assert_eq!(bench.members(BUCKET, "roles/y"), Vec::<String>::new());
    assert_eq!(bench.members(BUCKET, "roles/x2"), ["user:ann@example.com"]);
    assert_eq!(
        bench.members(ORIGIN, "roles/z"),
        ["user:cy@example.com", "user:dee@example.com"]
    );
    assert!(bench.up().ok().out.contains("2 unchanged"));
    bench.destroy().ok();
    for (target, role) in [(BUCKET, "roles/x2"), (ORIGIN, "roles/z")] {
        assert_eq!(bench.members(target, role), Vec::<String>::new());
    }
}

#[test]
fn a_second_run_at_the_same_time_is_refused() {
    let bench = Bench::new();
    bench.write(&declared());
    bench.emulator.set(slow(60_000));
    let mut up = bench.spawn_up();
    assert!((0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        !bench.on_disk().is_empty()
    }));
    let second = bench.up();
    up.kill().unwrap();
    up.wait().unwrap();
    assert_eq!(second.code, Some(1));
    assert!(
        second.err.contains("`bindery up`, process ") && second.err.contains("works on the stack `dev`"),
        "{}",
        second.err
    );
}

/// Faults under which every read is answered, and no write.
fn writes_fail(after: bool) -> Settings {
    Settings {
        faults: Faults {
            writes_only: true,
            unavailable_after: if after { 1.0 } else { 0.0 },
            unavailable_before: 1.0,
            ..Faults::default()
        },
        ..Settings::default()
    }
}

/// Ends with the second version made, and the first still to be deleted: the write of the deletion fails.
fn half_replaced(bench: &Bench, first: &str, second: &str) {
    bench.write(first);
    bench.up().ok();
    bench.write(second);
    bench.emulator.set(slow(400));
    let mut up = bench.spawn_up();
    let is_made = (0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        bench.on_disk().contains("\"made\"")
    });
    up.kill().unwrap();
    up.wait().unwrap();
    assert!(is_made);
    bench.emulator.set(Settings::default());
}

#[test]
fn going_back_to_what_was_replaced_keeps_its_grant() {
    let bench = Bench::new();
    let (a, b) = (
        member("m", "roles/a", "user:ann@example.com"),
        member("m", "roles/b", "user:ann@example.com"),
    );
    half_replaced(&bench, &a, &b);
    half_replaced(&bench, &b, &a);
    bench.write(&a);
    bench.up().ok();
    assert_eq!(bench.members(BUCKET, "roles/a"), ["user:ann@example.com"]);
    assert_eq!(bench.members(BUCKET, "roles/b"), Vec::<String>::new());
    assert_eq!(bench.names(), ["m"]);
    assert!(bench.up().ok().out.contains("1 unchanged"));
}

#[test]
fn a_replacement_that_fails_on_the_way_back_forgets_nothing() {
    let bench = Bench::new();
    let (a, b) = (
        member("m", "roles/a", "user:ann@example.com"),
        member("m", "roles/b", "user:ann@example.com"),
    );
    half_replaced(&bench, &a, &b);
    bench.write(&a);
    bench.emulator.set(Settings {
        denied_targets: [BUCKET.to_string()].into(),
        ..Settings::default()
    });
    assert_eq!(bench.up().code, Some(1));
    bench.emulator.set(Settings::default());
    assert!(!bench.names().is_empty());
    bench.write("");
    bench.up().ok();
    for role in ["roles/a", "roles/b"] {
        assert_eq!(bench.members(BUCKET, role), Vec::<String>::new(), "{role} was leaked");
    }
}

#[test]
fn two_pending_operations_of_one_resource_are_both_settled() {
    let bench = Bench::new();
    let role = |role| member("m", role, "user:ann@example.com");
    half_replaced(&bench, &role("roles/a"), &role("roles/b"));
    bench.write(&role("roles/c"));
    bench.emulator.set(writes_fail(true));
    let up = bench.run("up", &["--yes", "--config=project=home", "--timeout=1"]);
    bench.emulator.set(Settings::default());
    bench.write("");
    bench.up().ok();
    for role in ["roles/a", "roles/b", "roles/c"] {
        assert_eq!(
            bench.members(BUCKET, role),
            Vec::<String>::new(),
            "{role} was leaked after {}",
            up.err
        );
    }
    assert!(bench.names().is_empty());
}

#[test]
fn what_cannot_be_settled_holds_up_nothing_else() {
    let bench = Bench::new();
    killed_while_three_are_made(&bench);
    bench.emulator.set(Settings {
        denied_targets: [ORIGIN.to_string()].into(),
        ..Settings::default()
    });
    let up = bench.up();
    assert_eq!(up.code, Some(1));
    assert!(
        up.err.contains("resource `c`: an earlier run was stopped"),
        "{}",
        up.err
    );
    assert_eq!(bench.names(), ["a", "b"]);
    assert_eq!(
        bench.state()["deployment"]["pending_operations"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    bench.emulator.set(Settings::default());
    bench.up().ok();
    assert_eq!(bench.names(), ["a", "b", "c"]);
}

/// Runs `up` until its second request is done, which nobody hears of.
fn killed_once_the_write_is_done(bench: &Bench) {
    bench.emulator.set(Settings {
        hold: Some(bindery_emulator::Hold { request: 2, done: true }),
        ..Settings::default()
    });
    let mut up = bench.spawn_up();
    assert!((0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        bench.emulator.is_holding()
    }));
    up.kill().unwrap();
    up.wait().unwrap();
}

#[test]
fn an_operation_that_cannot_be_settled_is_kept_under_its_new_name_too() {
    let bench = Bench::new();
    bench.write(&member("m", "roles/a", "user:ann@example.com"));
    bench.up().ok();
    // The replacement is made, and nobody hears of it.
    bench.write(&member("m", "roles/b", "user:ann@example.com"));
    killed_once_the_write_is_done(&bench);
    bench.emulator.set(Settings {
        denied_targets: [BUCKET.to_string()].into(),
        ..Settings::default()
    });
    let renamed = member("n", "roles/b", "user:ann@example.com") + "    options: {aliases: [{name: m}]}\n";
    bench.write(&renamed);
    assert_eq!(bench.up().code, Some(1));
    bench.emulator.set(Settings::default());
    bench.write("");
    bench.up().ok();
    for role in ["roles/a", "roles/b"] {
        assert_eq!(bench.members(BUCKET, role), Vec::<String>::new(), "{role} was leaked");
    }
}

#[test]
fn what_is_there_and_not_as_declared_is_said() {
    let bench = Bench::new();
    bench.write(&binding("c", "roles/z", &["user:cy@example.com"]));
    killed_once_the_write_is_done(&bench);
    bench.emulator.set(Settings::default());
    let others = serde_json::json!({"bindings": [{"role": "roles/z", "members": ["user:cy@example.com", "user:x@example.com"]}]});
    bench.emulator.put_policy(ORIGIN, others);
    bench.write("");
    let up = bench.up().ok();
    assert!(
        up.err.contains("not as it was declared, and may be the work of others"),
        "{}",
        up.err
    );
}

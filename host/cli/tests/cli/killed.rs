//! A run that is killed at every point: before and after each request, before, in the midst of and after each write of the
//! state, and at random. The next `up` finishes it, whether the resources are still declared or not.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bindery_emulator::{Faults, Hold, Settings};
use serde_json::json;

use crate::harness::{BUCKET, Bench, ORIGIN, binding, member};

/// What exists before the run that is killed.
fn before() -> String {
    member("stays", "roles/stays", "user:ann@example.com")
        + &member("changes", "roles/old", "user:bob@example.com")
        + &member("goes", "roles/goes", "user:cy@example.com")
        + &binding("list", "roles/list", &["user:ann@example.com", "user:bob@example.com"])
}

/// What the killed run is to make of it: an update, a replacement, a creation that waits for another, a deletion.
fn after() -> String {
    member("stays", "roles/stays", "user:ann@example.com")
        + &member("changes", "roles/new", "user:bob@example.com")
        + &binding("list", "roles/list", &["user:bob@example.com", "user:dee@example.com"])
        + &member("new", "roles/made", "user:eve@example.com")
        + "  waits:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties:\n      name: ${new.name}\n      role: roles/waits\n      member: user:fay@example.com\n      condition: {title: prüfen, expression: \"'${new.etag}' != ''\"}\n"
}

/// A stack that is applied and then, again and again, half changed.
struct Killing {
    bench: Bench,
    policies: Vec<(&'static str, serde_json::Value)>,
}

impl Killing {
    fn new() -> Self {
        let bench = Bench::new();
        for target in [BUCKET, ORIGIN] {
            let foreign = json!({"bindings": [{"role": "roles/foreign", "members": ["user:MiXed@example.com"]}]});
            bench.emulator.put_policy(target, foreign);
        }
        bench.write(&before());
        bench.up().ok();
        let state = bench.file().with_file_name(".bindery");
        copy(&state, &state.with_file_name("saved"));
        let policies = [BUCKET, ORIGIN].map(|target| (target, bench.content(target)));
        Self {
            bench,
            policies: policies.into(),
        }
    }

    /// Everything is as it was before the run that is killed, and that run's file is in place.
    fn set_up(&self) {
        self.bench.emulator.set(Settings::default());
        for (target, policy) in &self.policies {
            self.bench.emulator.put_policy(target, policy.clone());
        }
        let state = self.bench.file().with_file_name(".bindery");
        fs::remove_dir_all(&state).unwrap();
        copy(&state.with_file_name("saved"), &state);
        self.bench.write(&after());
    }

    /// What was killed is finished by the next `up`.
    fn is_resumed(&self, is_declared: bool, when: &str) {
        let bench = &self.bench;
        bench.emulator.set(Settings::default());
        bench.write(&if is_declared { after() } else { String::new() });
        let up = bench.up();
        assert_eq!(up.code, Some(0), "{when}: {}\n{}", up.out, up.err);
        let expected: [(&str, &str, &[&str]); 8] = [
            (BUCKET, "roles/stays", &["user:ann@example.com"]),
            (BUCKET, "roles/old", &[]),
            (BUCKET, "roles/new", &["user:bob@example.com"]),
            (BUCKET, "roles/goes", &[]),
            (ORIGIN, "roles/list", &["user:bob@example.com", "user:dee@example.com"]),
            (BUCKET, "roles/made", &["user:eve@example.com"]),
            (BUCKET, "roles/waits", &["user:fay@example.com"]),
            (BUCKET, "roles/foreign", &["user:MiXed@example.com"]),
        ];
        for (target, role, members) in expected {
            let members = if is_declared || role == "roles/foreign" {
                members
            } else {
                &[]
            };
            assert_eq!(
                bench.members(target, role),
                members,
                "{when}: {role}\n{}\n{}",
                up.out,
                up.err
            );
        }
        bench.emulator.take_requests();
        let again = bench.up().ok();
        let unchanged = if is_declared {
            "5 unchanged"
        } else {
            "nothing is declared, and nothing exists"
        };
        assert!(again.out.contains(unchanged), "{when}: {}", again.out);
        assert_eq!(bench.emulator.take_requests(), [], "{when}");
        let folder = bench.file().with_file_name(".bindery").join("tests/dev");
        assert!(!folder.join("state.journal").exists(), "{when}");
        let left = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> = left
            .filter(|name| !["state.json", "lock", "backups"].contains(&name.as_str()))
            .collect();
        assert_eq!(left, Vec::<String>::new(), "{when}");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn killed_at_each_request(done: bool, is_declared: bool) {
    let killing = Killing::new();
    for request in 1.. {
        killing.set_up();
        killing.bench.emulator.set(Settings {
            hold: Some(Hold { request, done }),
            ..Settings::default()
        });
        let mut up = killing.bench.spawn_up();
        let until = Instant::now() + Duration::from_secs(60);
        let ended = loop {
            if let Some(status) = up.try_wait().unwrap() {
                break Some(status);
            }
            if killing.bench.emulator.is_holding() {
                break None;
            }
            assert!(Instant::now() < until, "request {request} never came");
            std::thread::sleep(Duration::from_millis(2));
        };
        up.kill().unwrap();
        up.wait().unwrap();
        killing.is_resumed(is_declared, &format!("killed at request {request}, done: {done}"));
        if let Some(status) = ended {
            assert!(status.success());
            // Of two targets, a first commit each, one of what waits for it, and one of the two deletions: a read and a write
            // each.
            assert!(request > 8, "only {request} requests");
            return;
        }
    }
}

#[test]
fn killed_before_each_request_is_done() {
    killed_at_each_request(false, true);
}

#[test]
fn killed_after_each_request_is_done() {
    killed_at_each_request(true, true);
}

#[test]
fn killed_before_each_request_is_done_and_taken_out_of_the_file() {
    killed_at_each_request(false, false);
}

#[test]
fn killed_after_each_request_is_done_and_taken_out_of_the_file() {
    killed_at_each_request(true, false);
}

/// How many grants one commit makes.
const GRANTS: usize = 40;

/// The same grants on one target, under a role of this number.
fn grants(role: usize) -> String {
    let grant = |number| {
        let (name, role) = (format!("grant-{number}"), format!("roles/r{role}"));
        member(&name, &role, &format!("user:u{number}@example.com"))
    };
    (0..GRANTS).map(grant).collect()
}

#[test]
fn killed_in_the_midst_of_a_commit_of_many() {
    let bench = Bench::new();
    let foreign = json!({"bindings": [{"role": "roles/foreign", "members": ["user:MiXed@example.com"]}]});
    bench.emulator.put_policy(BUCKET, foreign);
    // Made anew each time, and what was there before goes: the first commits are creations, the later ones deletions.
    for (role, (request, done)) in [(1, true), (2, false), (2, true), (3, false), (4, false), (4, true)]
        .into_iter()
        .enumerate()
    {
        let when = format!("killed at request {request}, done: {done}");
        bench.emulator.set(Settings::default());
        bench.write(&grants(role));
        bench.emulator.set(Settings {
            hold: Some(Hold { request, done }),
            ..Settings::default()
        });
        let mut up = bench.spawn_up();
        let until = Instant::now() + Duration::from_secs(60);
        while !bench.emulator.is_holding() && Instant::now() < until && up.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(bench.emulator.is_holding(), "request {request} never came");
        up.kill().unwrap();
        up.wait().unwrap();
        bench.emulator.set(Settings::default());
        bench.emulator.take_requests();
        let up = bench.up();
        assert_eq!(up.code, Some(0), "{when}: {}\n{}", up.out, up.err);
        let requests = bench.emulator.take_requests().len();
        // What became of each is found out together, and what is missing is made together.
        assert!(requests <= 30, "{when}: {requests} requests");
        let mut members = bench.members(BUCKET, &format!("roles/r{role}"));
        members.sort_unstable();
        members.dedup();
        assert_eq!(members.len(), GRANTS, "{when}: {}\n{}", up.out, up.err);
        let bindings = bench.content(BUCKET)["bindings"].clone();
        let roles: Vec<&str> = bindings
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|binding| binding["role"].as_str())
            .collect();
        assert_eq!(roles, ["roles/foreign", &format!("roles/r{role}")], "{when}");
        bench.emulator.take_requests();
        assert!(bench.up().ok().out.contains("40 unchanged"), "{when}");
        assert_eq!(bench.emulator.take_requests(), [], "{when}");
    }
}

/// Runs the binary so that it aborts at a point of the code, the nth time that it comes there. True if it did.
fn aborted(killing: &Killing, point: &str, nth: usize) -> bool {
    let mut up = killing.bench.command("up", &["--yes", "--config=project=home"]);
    up.env("FAILPOINTS", format!("{point}={nth}*off->return"));
    let ended = up.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(ended.success() || ended.code().is_none(), "{point}, {nth}: {ended}");
    !ended.success()
}

fn killed_at_each(points: &[(&str, usize)], is_declared: bool) {
    let killing = Killing::new();
    for (point, at_least) in points {
        for nth in 0.. {
            killing.set_up();
            let was_aborted = aborted(&killing, point, nth);
            killing.is_resumed(is_declared, &format!("aborted at `{point}`, time {nth}"));
            if !was_aborted {
                assert!(nth >= *at_least, "`{point}` was passed only {nth} times");
                break;
            }
        }
    }
}

/// Where a run writes its journal, and how often at least: what is ready at the same time is written at once.
const APPENDS: [(&str, usize); 3] = [("before-append", 6), ("half-append", 6), ("after-append", 6)];

/// Where it writes the document: a backup first, the whole at the end.
const REPLACES: [(&str, usize); 3] = [("half-replaced", 2), ("before-rename", 2), ("closed", 1)];

#[test]
fn killed_at_each_write_of_the_journal() {
    killed_at_each(&APPENDS, true);
}

#[test]
fn killed_at_each_write_of_the_journal_and_taken_out_of_the_file() {
    killed_at_each(&APPENDS, false);
}

#[test]
fn killed_at_each_write_of_the_document() {
    killed_at_each(&REPLACES, true);
    killed_at_each(&REPLACES, false);
}

#[test]
fn killed_while_an_earlier_runs_journal_is_put_into_the_document() {
    let killing = Killing::new();
    for point in ["half-replaced", "before-rename", "settled"] {
        killing.set_up();
        assert!(aborted(&killing, "after-append", 3));
        assert!(aborted(&killing, point, 0), "{point}");
        killing.is_resumed(true, point);
    }
}

#[test]
fn killed_at_random_times_again_and_again() {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    eprintln!("SEED={seed} runs the same times again");
    let mut random = fastrand::Rng::with_seed(seed);
    let killing = Killing::new();
    for round in 0..6 {
        killing.set_up();
        for _ in 0..random.usize(1..4) {
            let file = if random.bool() { after() } else { before() };
            killing.bench.write(&file);
            killing.bench.emulator.set(Settings {
                faults: Faults {
                    seed: random.u64(..),
                    latency_ms: 60,
                    reset_after: 0.1,
                    unavailable_before: 0.1,
                    ..Faults::default()
                },
                ..Settings::default()
            });
            let mut up = killing.bench.spawn_up();
            std::thread::sleep(Duration::from_millis(random.u64(300..1600)));
            up.kill().unwrap();
            up.wait().unwrap();
        }
        killing.is_resumed(random.bool(), &format!("SEED={seed}, round {round}"));
    }
}

//! What committing together is worth: requests and wall time of whole runs, against services that answer after 50 ms. `just bench`
//! prints the tables of `docs/performance.md`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    dead_code,
    reason = "a measurement that cannot be made is none"
)]

mod harness;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use harness::Bench;

/// How late each answer is.
const LATENCY: Duration = Duration::from_millis(50);

/// Members on one bucket.
const MEMBERS: usize = 1_000;

/// How many grants are worked on at the same time, where they are.
const PARALLEL: &str = "--parallel=64";

/// What a run cost.
struct Cost {
    requests: usize,
    conflicts: usize,
    time: Duration,
}

fn cost<T>(bench: &Bench, work: impl FnOnce() -> T) -> Cost {
    bench.requests();
    let started = Instant::now();
    work();
    let time = started.elapsed();
    let requests = bench.requests();
    Cost {
        requests: requests.len(),
        conflicts: requests.iter().filter(|request| request.status == 409).count(),
        time,
    }
}

fn granted(bench: &Bench, bucket: usize) -> BTreeSet<String> {
    let target = format!("projects/home/global/backendBuckets/bucket-{bucket}");
    let of_role = |number| bench.emulator.members(&target, &format!("roles/r{number}"));
    (0..3).flat_map(of_role).collect()
}

fn row(what: &str, cost: &Cost, against: Option<&Cost>) {
    let seconds = cost.time.as_secs_f64();
    let (fewer, faster) = match against {
        Some(other) => (
            format!("{:.0} times fewer", other.requests as f64 / cost.requests as f64),
            format!("{:.0} times faster", other.time.as_secs_f64() / seconds),
        ),
        None => (String::new(), String::new()),
    };
    println!("| {what} | {} | {fewer} | {seconds:.2} | {faster} |", cost.requests);
}

fn verdict(what: &str, is_kept: bool) {
    println!("{}: {}", what, if is_kept { "kept" } else { "NOT kept" });
}

/// 1,000 members on one bucket, and the same with one operation for each commit.
fn one_bucket() {
    println!("| {MEMBERS} members on one bucket | requests | | seconds | |");
    println!("|---|---|---|---|---|");
    let bench = Bench::new(LATENCY);
    let file = bench.stack("together", MEMBERS, MEMBERS);
    let together = cost(&bench, || bench.run("up", &file, &[PARALLEL]));
    assert_eq!(granted(&bench, 0).len(), MEMBERS);
    let refresh = cost(&bench, || bench.run("refresh", &file, &[PARALLEL]));
    let destroy = cost(&bench, || bench.run("destroy", &file, &[PARALLEL]));
    assert!(granted(&bench, 0).is_empty());
    let bench = Bench::new(LATENCY);
    let file = bench.stack("alone", MEMBERS, MEMBERS);
    let alone = cost(&bench, || bench.run("up", &file, &["--parallel=1"]));
    let refresh_alone = cost(&bench, || bench.run("refresh", &file, &["--parallel=1"]));
    row("up, 64 at a time", &together, Some(&alone));
    row("up, one at a time", &alone, None);
    row("refresh, 64 at a time", &refresh, Some(&refresh_alone));
    row("refresh, one at a time", &refresh_alone, None);
    row("destroy, 64 at a time", &destroy, None);
    println!();
    verdict("At most 40 requests", together.requests <= 40);
    verdict("At least 15 times faster", alone.time >= together.time * 15);
    verdict("A refresh of at most 20 reads", refresh.requests <= 20);
}

/// From 10 grants to 10,000, up to 100 on each target.
fn growth() {
    println!("\n| grants, 100 on each target | requests, 64 at a time | seconds | requests, 256 at a time | seconds |");
    println!("|---|---|---|---|---|");
    for grants in [10, 100, 1_000, 10_000] {
        let cells = [PARALLEL, "--parallel=256"].map(|parallel| {
            let bench = Bench::new(LATENCY);
            let file = bench.stack("growth", grants, 100);
            let cost = cost(&bench, || bench.run("up", &file, &[parallel]));
            let last = (grants - 1) / 100;
            assert_eq!(granted(&bench, last).len(), grants.min(100));
            format!("{} | {:.2}", cost.requests, cost.time.as_secs_f64())
        });
        println!("| {grants} | {} |", cells.join(" | "));
    }
}

/// The same 1,000 members from one process, and from four.
fn several_processes() {
    println!("\n| {MEMBERS} members on one bucket | requests | conflicts | seconds |");
    println!("|---|---|---|---|");
    for processes in [1, 4] {
        let bench = Bench::new(LATENCY);
        let files: Vec<_> = (0..processes)
            .map(|number| bench.stack(&format!("process-{number}"), MEMBERS / processes, MEMBERS))
            .collect();
        let cost = cost(&bench, || {
            let running: Vec<_> = files.iter().map(|file| bench.spawn("up", file, &[PARALLEL])).collect();
            for mut process in running {
                assert!(process.wait().unwrap().success());
            }
        });
        assert_eq!(granted(&bench, 0).len(), MEMBERS, "nothing is lost");
        println!(
            "| by {processes} at once | {} | {} | {:.2} |",
            cost.requests,
            cost.conflicts,
            cost.time.as_secs_f64()
        );
    }
}

fn main() {
    Bench::new(Duration::ZERO).warm_up();
    if std::env::args().any(|argument| argument == "--skip-first") {
    } else {
        one_bucket();
    }
    growth();
    several_processes();
}

//! How planning and applying grow with a stack: time and memory of the whole program, state writing included, from 10 to
//! 10,000 resources on emulated services in this process. `just bench` prints the table of `docs/performance.md`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement that cannot be made is none"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bindery_emulator::{Emulator, Options};
use tempfile::TempDir;
use wait4::Wait4;

/// How many resources.
const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];

/// How many grants are on one target.
const GRANTS_PER_TARGET: usize = 10;

/// What the program is run with, in this order.
const COMMANDS: [(&str, &str); 5] = [
    ("preview", "preview"),
    ("up", "up: create all"),
    ("up", "up: nothing to do"),
    ("refresh", "refresh"),
    ("destroy", "destroy"),
];

/// Those that cannot be done twice.
const CHANGING: [&str; 2] = ["up: create all", "destroy"];

/// How often the others are run.
const RUNS: usize = 5;

/// How much more 10,000 resources may take than 1,000.
const MOST: f64 = 12.0;

#[derive(Clone, Copy)]
struct Measured {
    time: Duration,
    bytes: u64,
}

impl Measured {
    fn min(self, other: Self) -> Self {
        Self {
            time: self.time.min(other.time),
            bytes: self.bytes.min(other.bytes),
        }
    }
}

fn stack(resources: usize) -> String {
    let mut text = "name: bench\nruntime: yaml\nconfig:\n  bindery:project: home\nresources:\n".to_string();
    for number in 0..resources {
        let bucket = number / GRANTS_PER_TARGET;
        writeln!(
            text,
            "  grant-{number}:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties: \
             {{name: bucket-{bucket}, role: roles/r{}, member: 'user:u{number}@example.com'}}",
            number % 3
        )
        .unwrap();
    }
    text
}

fn measure(command: &str, file: &Path, origin: &str) -> Measured {
    let mut bindery = Command::new(env!("CARGO_BIN_EXE_bindery"));
    bindery.env_clear().env(
        "BINDERY_CACHE_DIR",
        concat!(env!("CARGO_TARGET_TMPDIR"), "/bench-cache"),
    );
    bindery
        .arg(command)
        .arg(file)
        .arg(format!("--endpoint=compute={origin}"));
    if command != "preview" {
        bindery.arg("--yes");
    }
    let started = Instant::now();
    let child = bindery.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ended = child.wait4().unwrap();
    assert!(ended.status.success(), "{command}");
    Measured {
        time: started.elapsed(),
        bytes: ended.rusage.maxrss,
    }
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut table: Vec<[Measured; COMMANDS.len()]> = Vec::new();
    for size in SIZES {
        let emulator = runtime.block_on(Emulator::start(Options::default())).unwrap();
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("stack.yaml");
        fs::write(&file, stack(size)).unwrap();
        if table.is_empty() {
            // What is compiled once for all is no part of it.
            measure("preview", &file, &emulator.origin());
        }
        table.push(COMMANDS.map(|(command, name)| {
            let measured = measure(command, &file, &emulator.origin());
            // What can be done again is: the best of some runs says most of the program and least of the machine.
            let again = if CHANGING.contains(&name) { 0 } else { RUNS - 1 };
            (0..again).fold(measured, |best, _| {
                best.min(measure(command, &file, &emulator.origin()))
            })
        }));
    }
    let heads: Vec<String> = SIZES.iter().map(|size| format!(" {size:>8} |")).collect();
    println!("| seconds, and MiB at most |{} 10,000 to 1,000 |", heads.concat());
    println!("|---|{}---|", "---|".repeat(SIZES.len()));
    let mut worst: f64 = 0.0;
    for (index, (_, name)) in COMMANDS.iter().enumerate() {
        let cells: Vec<String> = table
            .iter()
            .map(|row| format!(" {:.2}, {} |", row[index].time.as_secs_f64(), row[index].bytes >> 20))
            .collect();
        let [.., smaller, larger] = table.as_slice() else {
            panic!("two sizes at least")
        };
        let (smaller, larger) = (smaller[index], larger[index]);
        let time = larger.time.as_secs_f64() / smaller.time.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a ratio of sizes")]
        let memory = larger.bytes as f64 / smaller.bytes as f64;
        worst = worst.max(time).max(memory);
        println!(
            "| {name} |{} {time:.1} times the time, {memory:.1} times the memory |",
            cells.concat()
        );
    }
    let verdict = if worst <= MOST { "kept" } else { "NOT kept" };
    println!("\nThe most is {worst:.1} times; at most {MOST} was promised: {verdict}.");
}

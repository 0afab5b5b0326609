//! How planning and applying grow with a stack: time and memory of the whole program, state writing included, from 10 to
//! 10,000 resources on emulated services in this process. `just bench` prints the table of `docs/performance.md`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "a measurement that cannot be made is none"
)]

mod harness;

use std::time::Duration;

use harness::{Bench, Measured};

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

fn main() {
    let mut table: Vec<[Measured; COMMANDS.len()]> = Vec::new();
    for size in SIZES {
        let bench = Bench::new(Duration::ZERO);
        bench.warm_up();
        let file = bench.stack("bench", size, GRANTS_PER_TARGET);
        table.push(COMMANDS.map(|(command, name)| {
            let measured = bench.run(command, &file, &[]);
            let again = if CHANGING.contains(&name) { 0 } else { RUNS - 1 };
            (0..again).fold(measured, |best, _| best.min(bench.run(command, &file, &[])))
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

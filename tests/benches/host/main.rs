//! What it costs to run providers that nobody needs to trust: calls, start-up, memory, and one tenant beside another. `just bench`
//! prints the table of `docs/performance.md`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a measurement that cannot be made is none"
)]

mod calls;
mod default_sender;
mod memory;
mod start;

use std::time::Duration;

use tokio::runtime::Runtime;

/// The variable that makes this program a part of a measurement.
const PART: &str = "BINDERY_BENCH_PART";

fn main() {
    let runtime = Runtime::new().unwrap();
    match std::env::var(PART).as_deref() {
        Ok("empty-server") => runtime.block_on(start::empty_server()),
        Ok("idle") => runtime.block_on(memory::idle()),
        Ok("waiting") => runtime.block_on(memory::waiting()),
        _ => {
            println!("| what | measured | against | ratio | meant |");
            println!("|---|---|---|---|---|");
            runtime.block_on(calls::check());
            start::first_check(&runtime);
            memory::measure(&runtime);
            runtime.block_on(calls::beside_a_spinning_one());
            runtime.block_on(default_sender::compare());
        }
    }
}

/// A line of the table.
fn row(what: &str, measured: &str, against: &str, ratio: f64, meant: &str) {
    println!("| {what} | {measured} | {against} | {ratio:.2} | {meant} |");
}

fn micros(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// The time below which this part of all is.
fn quantile(times: &mut [Duration], part: f64) -> Duration {
    times.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a position in a short list"
    )]
    let position = (part * (times.len() - 1) as f64).round() as usize;
    times[position]
}

//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

/// Grants roles from a stack file: on migration jobs, edge cache origins and backend buckets.
#[derive(Debug, Parser)]
#[command(name = "bindery", version, about)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make what the stack file declares so.
    Up(Target),
    /// Show what `up` would do, and touch nothing.
    Preview(Target),
    /// Read what exists, and note in the state what has changed.
    Refresh(Target),
    /// Remove everything that the stack has made.
    Destroy(Target),
    /// Serve the three services' policy endpoints on this machine.
    Emulator(EmulatorOptions),
}

/// Which stack, and how it is reached.
#[derive(Debug, Args)]
pub struct Target {
    /// The stack file.
    pub file: PathBuf,
    /// Do not ask before anything is changed.
    #[arg(long, short)]
    pub yes: bool,
    /// Set a key of the provider's configuration, such as `project=my-project`. May be repeated.
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = key_value)]
    pub config: Vec<(String, String)>,
    /// The stack: each has a state of its own.
    #[arg(long, short, default_value = "dev", value_parser = stack_name)]
    pub stack: String,
    /// How many resources are worked on at the same time.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub parallel: u16,
    /// Where the state is kept. Without it, in `.bindery` beside the stack file.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Work on emulated services in this process, whose policies are kept beside the state.
    #[arg(long)]
    pub emulate: bool,
    /// Call a service at another origin, such as `compute=http://127.0.0.1:8080`. May be repeated. No credential is sent.
    #[arg(long, value_name = "SERVICE=ORIGIN", value_parser = key_value, conflicts_with = "emulate")]
    pub endpoint: Vec<(String, String)>,
    /// How many seconds one operation may take, with all its attempts.
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub timeout: Duration,
}

/// How the emulator is served.
#[derive(Debug, Args)]
pub struct EmulatorOptions {
    /// The port on this machine; 0 for any that is free.
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// Where the policies are kept. Without it, in memory.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_string(), value.to_string())),
        _ => Err("expected `KEY=VALUE`".to_string()),
    }
}

/// A stack's name becomes part of URNs and of file names.
fn stack_name(text: &str) -> Result<String, String> {
    let is_name = (1..=100).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !text.starts_with('.');
    if is_name {
        Ok(text.to_string())
    } else {
        Err("expected letters, digits, `-`, `_` and `.`".to_string())
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected seconds, from 1 to 86400".to_string()),
    }
}

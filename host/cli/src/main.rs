//! `bindery`: the embedded engine.
//!
//! - [`args`]: the command line. [`session`]: the provider under this run's configuration.
//! - [`commands`]: up, preview, refresh, destroy. [`apply`]: carries a plan out. [`settle`]: what an interrupted run left.
//! - [`store`]: the state on disk. [`show`], [`report`]: what a person sees.

mod apply;
mod args;
mod commands;
mod failure;
mod provider;
mod report;
mod schedule;
mod session;
mod settle;
mod show;
mod store;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::run(format!("cannot start: {error}")).report(),
    };
    let ended = runtime.block_on(async {
        match command {
            Command::Up(target) => commands::up(&target).await,
            Command::Preview(target) => commands::preview(&target).await,
            Command::Refresh(target) => commands::refresh(&target).await,
            Command::Destroy(target) => commands::destroy(&target).await,
            Command::Emulator(options) => commands::emulator(&options).await,
        }
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

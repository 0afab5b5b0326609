//! `bindery`: the embedded engine.
//!
//! - [`args`]: the command line. [`commands`]: what it can do. [`stack`]: the stack that it is done with.
//! - [`component`], [`session`], [`provider`]: the provider of a run, its configuration, and what a plan asks of it.
//! - [`apply`], [`schedule`]: carry a plan out. [`settle`]: what an interrupted run left. [`prompt`], [`interrupt`]: a person's word before and after.
//! - [`store`], [`lock`]: the state on disk.
//! - [`report`]: what is told, to a person ([`show`], [`display`], [`excerpt`], [`style`]) or to a program ([`json`]).

mod apply;
mod args;
mod backup;
mod commands;
mod component;
mod display;
mod excerpt;
mod failure;
mod interrupt;
mod json;
mod lock;
mod prompt;
mod provider;
mod report;
mod schedule;
mod session;
mod settle;
mod show;
mod stack;
mod store;
mod style;

use std::process::ExitCode;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::report::Report;

fn main() -> ExitCode {
    let _failpoints = fail::FailScenario::setup();
    let Arguments { command, output } = Arguments::read();
    let report = Report::new(command.name(), &output);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(commands::run(command, &report)),
        Err(error) => Err(Failure::run(format!("cannot start: {error}"))),
    };
    report.finish(ended)
}

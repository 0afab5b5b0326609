//! What a person sees while operations run, and what they came to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bindery_resource::Urn;
use bindery_sandbox::Event;
use bindery_stack::Step;

use crate::show::{BOLD_RED, YELLOW};

/// Tells of operations as they end, and counts them.
#[derive(Debug)]
pub struct Report {
    file: PathBuf,
    started: Instant,
    counts: Mutex<BTreeMap<&'static str, usize>>,
}

impl Report {
    /// A report of what begins now, for the resources of a stack file.
    pub fn new(file: &Path) -> Self {
        Self {
            file: file.to_path_buf(),
            started: Instant::now(),
            counts: Mutex::default(),
        }
    }

    /// Something was done with a resource.
    pub fn done(&self, urn: &Urn, what: &'static str) {
        println!("   {} {what}", urn.name());
        self.count(what);
    }

    /// A resource's operation failed.
    pub fn failed(&self, step: &Step, message: &str) {
        let place = step
            .position
            .map_or_else(String::new, |position| format!("{}:{position}: ", self.file.display()));
        anstream::eprintln!(
            "{BOLD_RED}error{BOLD_RED:#}: {place}resource `{}`: {message}",
            step.urn.name()
        );
        self.count("failed");
    }

    /// A resource's operation was not begun.
    pub fn skipped(&self, urn: &Urn) {
        println!("   {} skipped: what it depends on failed", urn.name());
        self.count("skipped");
    }

    /// A resource is not touched, because what an earlier run made of it is not known.
    pub fn left_alone(&self, urn: &Urn) {
        println!(
            "   {} left alone: what became of its last operation is not known",
            urn.name()
        );
        self.count("left alone");
    }

    /// Something that a person should know of a resource.
    pub fn warn(urn: &Urn, message: &str) {
        anstream::eprintln!("{YELLOW}warning{YELLOW:#}: resource `{}`: {message}", urn.name());
    }

    /// Tells what happens while an operation on a resource runs.
    pub fn on_event(urn: &Urn, event: &Event) {
        match event {
            Event::Waiting { attempt, wait, reason } => {
                anstream::eprintln!(
                    "   {}: attempt {attempt} failed, next in {:.1} s: {reason}",
                    urn.name(),
                    wait.as_secs_f64()
                );
            }
            Event::Warning(line) => Self::warn(urn, line),
            Event::Debug(_) => {}
        }
    }

    fn count(&self, what: &'static str) {
        *self
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(what)
            .or_default() += 1;
    }

    /// One line that sums it up.
    pub fn summary(&self) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let parts: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        let parts = if parts.is_empty() {
            "nothing to do".to_string()
        } else {
            parts.join(", ")
        };
        format!("{parts} in {:.1} s", self.started.elapsed().as_secs_f64())
    }
}

//! What is under way, on a terminal: a line for each operation that runs, waits or is repeated, and one for the rest.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bindery_resource::Urn;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How many operations have a line of their own.
const LINES: usize = 8;

/// How often it is drawn.
const TICK: Duration = Duration::from_millis(100);

/// The live part of the screen. Nothing is drawn where standard error is no terminal.
#[derive(Debug)]
pub struct Display {
    lines: MultiProgress,
    shown: Mutex<Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    operations: HashMap<Urn, ProgressBar>,
    running: usize,
    all: Option<ProgressBar>,
}

impl Display {
    /// A display; an empty one draws nothing.
    pub fn new(is_empty: bool) -> Self {
        let target = if is_empty {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        Self {
            lines: MultiProgress::with_draw_target(target),
            shown: Mutex::default(),
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody sees it.
    pub fn is_drawn(&self) -> bool {
        !self.lines.is_hidden()
    }

    /// So many operations are to be done.
    pub fn expect(&self, count: usize) {
        let mut shown = self.shown();
        if !self.is_drawn() || count == 0 {
            return;
        }
        let all = shown.all.get_or_insert_with(|| {
            let bar = self.lines.add(ProgressBar::new(0));
            bar.set_style(style("   [{pos}/{len}] {msg} {elapsed}"));
            bar.enable_steady_tick(TICK);
            bar
        });
        all.inc_length(count as u64);
        shown.tell();
    }

    /// An operation is begun.
    pub fn begin(&self, urn: &Urn, what: &str) {
        if !self.is_drawn() {
            return;
        }
        let mut shown = self.shown();
        shown.running += 1;
        if shown.operations.len() < LINES {
            let line = ProgressBar::new_spinner();
            let line = match &shown.all {
                Some(all) => self.lines.insert_before(all, line),
                None => self.lines.add(line),
            };
            line.set_style(style(" {spinner} {prefix} {msg} {elapsed}"));
            line.set_prefix(urn.name().to_string());
            line.set_message(what.to_string());
            line.enable_steady_tick(TICK);
            shown.operations.insert(urn.clone(), line);
        }
        shown.tell();
    }

    /// Something is said of an operation that runs.
    pub fn say(&self, urn: &Urn, what: &str) {
        if let Some(line) = self.shown().operations.get(urn) {
            line.set_message(what.to_string());
        }
    }

    /// An operation has come to an end.
    pub fn end(&self, urn: &Urn) {
        if !self.is_drawn() {
            return;
        }
        let mut shown = self.shown();
        shown.running = shown.running.saturating_sub(1);
        if let Some(line) = shown.operations.remove(urn) {
            line.finish_and_clear();
        }
        if let Some(all) = &shown.all {
            all.inc(1);
        }
        shown.tell();
    }

    /// Nothing is under way any more.
    pub fn clear(&self) {
        let shown = std::mem::take(&mut *self.shown());
        for line in shown.operations.into_values().chain(shown.all) {
            line.finish_and_clear();
        }
    }

    /// Prints while nothing is drawn.
    pub fn around<T>(&self, print: impl FnOnce() -> T) -> T {
        self.lines.suspend(print)
    }
}

impl Shown {
    fn tell(&self) {
        if let Some(all) = &self.all {
            let left = all.length().unwrap_or_default().saturating_sub(all.position());
            let waiting = left.saturating_sub(self.running as u64);
            all.set_message(format!("{} running, {waiting} waiting,", self.running));
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

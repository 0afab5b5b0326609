//! How a command ends that did not do what it was asked: what was wrong, what to try, and an exit code.

use std::fmt::Display;
use std::io;

use bindery_stack::Diagnostic;

/// How a command ended that did not do all that it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Something failed while it was done.
    Failed,
    /// The command line, the stack file or another input is wrong: nothing was begun.
    Refused,
    /// It was interrupted, and ended after what was under way.
    Interrupted,
}

impl Ending {
    /// What `--json` calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Interrupted => "interrupted",
        }
    }

    /// The exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Refused => 2,
            // As a shell reports a command that an interrupt ended.
            Self::Interrupted => 130,
        }
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// How it ended.
    pub ending: Ending,
    /// What is wrong and was not said yet.
    pub problems: Vec<Diagnostic>,
}

impl Failure {
    /// Something failed while it was done.
    pub fn run(message: impl Display) -> Self {
        Self {
            ending: Ending::Failed,
            problems: vec![Diagnostic::new(message)],
        }
    }

    /// It ended so, and what was wrong was reported when it happened.
    pub const fn reported(ending: Ending) -> Self {
        Self {
            ending,
            problems: Vec::new(),
        }
    }

    /// What was asked cannot be right.
    pub fn input(message: impl Display) -> Self {
        Self {
            ending: Ending::Refused,
            problems: vec![Diagnostic::new(message)],
        }
    }

    /// What was asked is wrong in this.
    pub fn of(diagnostic: Diagnostic) -> Self {
        Self::diagnostics(vec![diagnostic])
    }

    /// What is wrong with a stack file.
    pub fn diagnostics(diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            ending: Ending::Refused,
            problems: diagnostics,
        }
    }

    /// The same, with what to try.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Display) -> Self {
        if let Some(last) = self.problems.last_mut() {
            last.hint = Some(hint.to_string());
        }
        self
    }
}

/// A write of the state that failed.
pub fn unwritten(error: io::Error) -> Failure {
    Failure::run(format!("the state cannot be written: {error}"))
        .with_hint("what was done before is in it; the next `up` finds out the rest")
}

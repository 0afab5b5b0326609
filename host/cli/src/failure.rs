//! How a command ends that did not do what it was asked: what was wrong, what to try, and an exit code.

use std::fmt::Display;
use std::io;

use bindery_resource::{PropertyPath, Urn};
use bindery_stack::{Diagnostic, Position};

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

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// The one thing to try.
    pub hint: Option<String>,
    /// Which resource, by its name.
    pub resource: Option<String>,
    /// Which of its properties.
    pub path: Option<PropertyPath>,
    /// Where in the stack file.
    pub position: Option<Position>,
}

impl Problem {
    /// Something is wrong.
    pub fn new(message: impl Display) -> Self {
        Self {
            message: message.to_string(),
            hint: None,
            resource: None,
            path: None,
            position: None,
        }
    }

    /// Something is wrong with a resource.
    pub fn of(urn: &Urn, position: Option<Position>, message: impl Display) -> Self {
        Self {
            resource: Some(urn.name().to_string()),
            position,
            ..Self::new(message)
        }
    }

    /// What is wrong, and with what.
    pub fn title(&self) -> String {
        match (&self.resource, &self.path) {
            (Some(resource), Some(path)) if path.first().is_some() => {
                format!("resource `{resource}`, property `{path}`: {}", self.message)
            }
            (Some(resource), _) => format!("resource `{resource}`: {}", self.message),
            (None, _) => self.message.clone(),
        }
    }
}

impl From<Diagnostic> for Problem {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            message: diagnostic.message,
            hint: diagnostic.hint,
            resource: diagnostic.resource,
            path: diagnostic.path,
            position: diagnostic.position,
        }
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// How it ended.
    pub ending: Ending,
    /// What is wrong and was not said yet.
    pub problems: Vec<Problem>,
}

impl Failure {
    /// Something failed while it was done.
    pub fn run(message: impl Display) -> Self {
        Self {
            ending: Ending::Failed,
            problems: vec![Problem::new(message)],
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
            problems: vec![Problem::new(message)],
        }
    }

    /// What is wrong with a stack file.
    pub fn diagnostics(diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            ending: Ending::Refused,
            problems: diagnostics.into_iter().map(Problem::from).collect(),
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

//! How a command ends that did not do what it was asked: what was wrong, what to try, and an exit code.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use bindery_stack::Diagnostic;

use crate::show::{BOLD_RED, CYAN};

/// Something failed while it was done.
const FAILED: u8 = 1;

/// The command line or the stack file is wrong: nothing was begun.
const BAD_INPUT: u8 = 2;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    errors: Vec<(String, Option<String>)>,
}

impl Failure {
    /// Something failed while it was done.
    pub fn run(message: impl Display) -> Self {
        Self {
            code: FAILED,
            errors: vec![(message.to_string(), None)],
        }
    }

    /// Some operations failed, each of which was reported when it did.
    pub fn reported() -> Self {
        Self {
            code: FAILED,
            errors: Vec::new(),
        }
    }

    /// What was asked cannot be right.
    pub fn input(message: impl Display) -> Self {
        Self {
            code: BAD_INPUT,
            errors: vec![(message.to_string(), None)],
        }
    }

    /// What is wrong with a stack file.
    pub fn diagnostics(file: &Path, diagnostics: Vec<Diagnostic>) -> Self {
        let error = |diagnostic: Diagnostic| (format!("{}:{diagnostic}", file.display()), diagnostic.hint);
        Self {
            code: BAD_INPUT,
            errors: diagnostics.into_iter().map(error).collect(),
        }
    }

    /// The same, with what to try.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Display) -> Self {
        if let Some((_, last)) = self.errors.last_mut() {
            *last = Some(hint.to_string());
        }
        self
    }

    /// Says it, and gives the exit code.
    pub fn report(self) -> ExitCode {
        for (message, hint) in self.errors {
            anstream::eprintln!("{BOLD_RED}error{BOLD_RED:#}: {message}");
            if let Some(hint) = hint {
                anstream::eprintln!("  {CYAN}hint{CYAN:#}: {hint}");
            }
        }
        ExitCode::from(self.code)
    }
}

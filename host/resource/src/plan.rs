//! What a check and a diff give.

use crate::path::PropertyPath;
use crate::value::PropertyMap;

/// Why one input cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFailure {
    /// Where; empty for the resource as a whole.
    pub path: PropertyPath,
    /// What is wrong, and what would be right.
    pub reason: String,
}

impl CheckFailure {
    /// A failure at a path.
    pub fn new(path: PropertyPath, reason: impl Into<String>) -> Self {
        Self {
            path,
            reason: reason.into(),
        }
    }
}

/// Failures in one line.
pub fn in_one_line(failures: &[CheckFailure]) -> String {
    let lines: Vec<String> = failures
        .iter()
        .map(|failure| format!("`{}`: {}", failure.path, failure.reason))
        .collect();
    lines.join("; ")
}

/// What a resource occupies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Footprint {
    /// The object that is written, in canonical form.
    pub target: String,
    /// What only one resource of a program may own.
    pub claim: String,
}

/// Inputs that were found right.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The inputs with their defaults.
    pub inputs: PropertyMap,
    /// None while anything that decides it is unknown.
    pub footprint: Option<Footprint>,
    /// The id that the resource will have, where the provider knows it before it makes the resource.
    pub id: Option<String>,
}

/// How a property differs between what exists and what is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Declared, and not there yet.
    Add,
    /// There with another value.
    Update,
    /// There, and no longer declared.
    Remove,
}

/// One property that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: PropertyPath,
    /// How.
    pub kind: ChangeKind,
    /// The resource must be replaced for it.
    pub replaces: bool,
}

/// What would change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// Property by property; empty where nothing changes.
    pub changes: Vec<Change>,
    /// Whether a replacement must delete first, because old and new occupy the same.
    pub delete_before_replace: bool,
}

impl Diff {
    /// Whether the resource must be replaced.
    pub fn replaces(&self) -> bool {
        self.changes.iter().any(|change| change.replaces)
    }
}

//! What a check finds wrong, and where; what a diff finds changed, and where; which inputs are not known yet.

use alloc::string::String;
use alloc::vec::Vec;

/// Why one input cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Where: `member`, `condition.title`, `members[2]`.
    pub path: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

impl Failure {
    /// A failure of the property at `path`.
    pub fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
        }
    }
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

/// One property that differs between what exists and what is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: String,
    /// How.
    pub kind: ChangeKind,
    /// The grant's identity includes this property, so the resource must be replaced.
    pub replaces: bool,
}

impl Change {
    /// A change that makes another grant of it.
    pub fn replacing(path: &str, kind: ChangeKind) -> Self {
        Self {
            path: path.into(),
            kind,
            replaces: true,
        }
    }

    /// A change within the same grant.
    pub fn in_place(path: &str, kind: ChangeKind) -> Self {
        Self {
            path: path.into(),
            kind,
            replaces: false,
        }
    }
}

/// The paths whose value is not known during a preview. Their fields hold placeholders that no rule may look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownPaths(Vec<String>);

impl UnknownPaths {
    /// The given paths.
    pub fn new(paths: Vec<String>) -> Self {
        Self(paths)
    }

    /// Whether the value at `path` is wholly unknown: the path itself or one that it lies in.
    pub fn covers(&self, path: &str) -> bool {
        self.0.iter().any(|unknown| lies_in(path, unknown))
    }

    /// Whether any part of the value at `path` is unknown.
    pub fn touches(&self, path: &str) -> bool {
        self.covers(path) || self.0.iter().any(|unknown| lies_in(unknown, path))
    }
}

/// Whether `path` is `outer` or lies in it.
fn lies_in(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn an_unknown_path_covers_itself_and_what_lies_in_it_only() {
        let unknown = UnknownPaths::new(vec!["condition".to_string(), "members[2]".to_string()]);
        assert!(unknown.covers("condition.title"));
        assert!(unknown.covers("members[2]"));
        assert!(!unknown.covers("members"));
        assert!(unknown.touches("members"));
        assert!(!unknown.touches("members[1]"));
        assert!(!unknown.covers("conditional"));
    }
}

//! IAM Conditions: part of a binding's identity.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest as _, Sha256};

use crate::failure::{Change, ChangeKind, Failure, UnknownPaths};

/// A condition as the user writes it. An absent description equals an empty one.
#[derive(Debug, Clone, Eq)]
pub struct Condition {
    /// An expression in Common Expression Language. Passed through: the service judges it.
    pub expression: String,
    /// What the expression is for, in short.
    pub title: String,
    /// What it is for, at length.
    pub description: Option<String>,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.expression == other.expression
            && self.title == other.title
            && self.description_text() == other.description_text()
    }
}

impl Condition {
    /// The description, empty where there is none.
    pub fn description_text(&self) -> &str {
        self.description.as_deref().unwrap_or_default()
    }

    /// What stands for this condition in a grant's id.
    pub fn digest(&self) -> ConditionDigest {
        ConditionDigest::of(&self.title, self.description_text(), &self.expression)
    }

    /// What is wrong with a declared condition. What is unknown is not looked at.
    pub(crate) fn check(&self, unknown: &UnknownPaths) -> Vec<Failure> {
        [
            ("condition.title", &self.title),
            ("condition.expression", &self.expression),
        ]
        .into_iter()
        .filter(|(path, text)| text.trim().is_empty() && !unknown.touches(path))
        .map(|(path, _)| Failure::new(path, "must not be empty"))
        .collect()
    }

    /// How a declared condition differs from the one that is there. Every difference makes another grant.
    pub(crate) fn changes(old: Option<&Self>, new: Option<&Self>, unknown: &UnknownPaths) -> Vec<Change> {
        if unknown.covers("condition") {
            let kind = if old.is_some() {
                ChangeKind::Update
            } else {
                ChangeKind::Add
            };
            return [Change::replacing("condition", kind)].into();
        }
        let (old, new) = match (old, new) {
            (None, None) => return Vec::new(),
            (None, Some(_)) => return [Change::replacing("condition", ChangeKind::Add)].into(),
            (Some(_), None) => return [Change::replacing("condition", ChangeKind::Remove)].into(),
            (Some(old), Some(new)) => (old, new),
        };
        let mut changes = Vec::new();
        for (path, old, new) in [
            ("condition.expression", &old.expression, &new.expression),
            ("condition.title", &old.title, &new.title),
        ] {
            if old != new || unknown.touches(path) {
                changes.push(Change::replacing(path, ChangeKind::Update));
            }
        }
        let path = "condition.description";
        if old.description_text() != new.description_text() || unknown.touches(path) {
            let kind = match (old.description_text(), new.description_text()) {
                ("", _) => ChangeKind::Add,
                (_, "") if !unknown.touches(path) => ChangeKind::Remove,
                _ => ChangeKind::Update,
            };
            changes.push(Change::replacing(path, kind));
        }
        changes
    }
}

/// A short digest of a condition: 16 hexadecimal digits of the SHA-256 of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConditionDigest(String);

impl ConditionDigest {
    /// 64 bits: short enough to read, and two conditions of one role on one target will not share it by accident.
    const DIGITS: usize = 16;

    /// The digest of a condition with these parts. Each part is preceded by its length, so that moving text from one to
    /// the next gives another digest.
    pub(crate) fn of(title: &str, description: &str, expression: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [title, description, expression] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let mut digits = String::new();
        for byte in hash.finalize().iter().take(Self::DIGITS / 2) {
            digits.push_str(&format!("{byte:02x}"));
        }
        Self(digits)
    }

    /// Parses the digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digest =
            text.len() == Self::DIGITS && text.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
        is_digest.then(|| Self(text.to_string()))
    }
}

impl fmt::Display for ConditionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn condition(title: &str, description: Option<&str>) -> Condition {
        Condition {
            expression: "true".into(),
            title: title.into(),
            description: description.map(String::from),
        }
    }

    #[test]
    fn an_absent_description_equals_an_empty_one() {
        assert_eq!(condition("t", None), condition("t", Some("")));
        assert_eq!(condition("t", None).digest(), condition("t", Some("")).digest());
        assert_ne!(condition("t", None).digest(), condition("t", Some("d")).digest());
    }

    #[test]
    fn text_that_moves_between_parts_changes_the_digest() {
        assert_ne!(ConditionDigest::of("ab", "c", "d"), ConditionDigest::of("a", "bc", "d"));
        let digest = ConditionDigest::of("ab", "c", "d");
        assert_eq!(ConditionDigest::parse(&digest.0), Some(digest));
        assert_eq!(ConditionDigest::parse("ABCDEF0123456789"), None);
        assert_eq!(ConditionDigest::parse("abc"), None);
    }

    #[test]
    fn changes_name_the_part_that_changed() {
        let none = UnknownPaths::default();
        let paths = |old: Option<&Condition>, new: Option<&Condition>, unknown: &UnknownPaths| -> Vec<String> {
            Condition::changes(old, new, unknown)
                .into_iter()
                .map(|change| change.path)
                .collect()
        };
        let (a, b) = (condition("a", None), condition("b", Some("d")));
        assert!(paths(Some(&a), Some(&a), &none).is_empty());
        assert_eq!(
            paths(Some(&a), Some(&b), &none),
            ["condition.title", "condition.description"]
        );
        assert_eq!(paths(None, Some(&b), &none), ["condition"]);
        assert_eq!(paths(Some(&a), None, &none), ["condition"]);
        let title = UnknownPaths::new(vec!["condition.title".into()]);
        assert_eq!(paths(Some(&a), Some(&a), &title), ["condition.title"]);
    }

    #[test]
    fn an_empty_title_or_expression_fails_unless_unknown() {
        let empty = Condition {
            expression: " ".into(),
            title: String::new(),
            description: None,
        };
        assert_eq!(empty.check(&UnknownPaths::default()).len(), 2);
        assert_eq!(empty.check(&UnknownPaths::new(vec!["condition.title".into()])).len(), 1);
        assert!(empty.check(&UnknownPaths::new(vec!["condition".into()])).is_empty());
    }
}

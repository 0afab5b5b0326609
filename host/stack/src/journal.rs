//! A journal of changes, one to a line, which follows a document. What was begun and done stands in it before anything
//! else happens, and a line that was not written to its end did not happen.

use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::document::{
    Owner, StateError, WireOperation, WireResource, properties, read, read_operation, to_json, write, write_operation,
};
use crate::state::{Change, Deployment, Outcome};
use bindery_resource::Urn;

/// One line of a journal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for as long as it takes to write or read it"
)]
enum Line {
    /// The first: the digest of the document that it follows.
    After(String),
    Begin(WireOperation),
    End(WireOperation, WireOutcome),
    Note(WireResource),
    Forget(WireResource),
    Rename(Vec<(String, String)>),
    Configure(Map<String, serde_json::Value>),
    Export(Map<String, serde_json::Value>),
    /// The last: the digest of the document that all of this has become.
    Became(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum WireOutcome {
    Nothing,
    Made(WireResource),
    Changed(WireResource),
    Gone,
}

/// How a journal relates to the document beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replayed {
    /// All of it was replayed.
    Whole,
    /// Its last line was not written to its end. What it would have said did not happen.
    Torn,
    /// It follows another document: nothing was replayed.
    Foreign,
    /// All that it says is in the document already.
    Included,
}

impl Deployment {
    /// Makes the changes of a journal. `after` is the digest of the document that this was read from.
    ///
    /// # Errors
    /// When a line in the midst of it cannot be read.
    pub fn replay(&mut self, journal: &[u8], after: &str, owner: &Owner) -> Result<Replayed, StateError> {
        let lines: Vec<&[u8]> = journal.split_inclusive(|byte| *byte == b'\n').collect();
        if let Some(last) = lines.last()
            && let Ok(Line::Became(digest)) = serde_json::from_slice(last)
            && digest == after
        {
            return Ok(Replayed::Included);
        }
        for (index, text) in lines.iter().enumerate() {
            let damaged = |reason: String| StateError::Journal {
                line: index + 1,
                reason,
            };
            let line: Line = match serde_json::from_slice(text) {
                Ok(line) if text.ends_with(b"\n") => line,
                _ if index + 1 == lines.len() => return Ok(Replayed::Torn),
                Ok(_) => return Err(damaged("it has no end".to_string())),
                Err(error) => return Err(damaged(error.to_string())),
            };
            match (index, line) {
                (0, Line::After(digest)) if digest == after => {}
                (0, Line::After(_)) => return Ok(Replayed::Foreign),
                (0, _) => return Err(damaged("it does not say which state it follows".to_string())),
                (_, line) => self.apply(read_line(line, owner)?),
            }
        }
        Ok(Replayed::Whole)
    }
}

/// The first line of a journal, which says the digest of the document that it follows.
///
/// # Errors
/// When it has no JSON.
pub fn journal_head(after: &str) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(&Line::After(after.to_string()))? + "\n")
}

/// The last line of a journal, which says the digest of the document that it has become.
///
/// # Errors
/// When it has no JSON.
pub fn journal_foot(became: &str) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(&Line::Became(became.to_string()))? + "\n")
}

/// A change as a line of a journal.
///
/// # Errors
/// When it has no JSON.
pub fn journal_line(change: &Change, owner: &Owner) -> Result<String, serde_json::Error> {
    let line = match change {
        Change::Begin(operation) => Line::Begin(write_operation(operation, owner)),
        Change::End(operation, outcome) => {
            let outcome = match outcome {
                Outcome::Nothing => WireOutcome::Nothing,
                Outcome::Made(made) => WireOutcome::Made(write(made, owner)),
                Outcome::Changed(changed) => WireOutcome::Changed(write(changed, owner)),
                Outcome::Gone => WireOutcome::Gone,
            };
            Line::End(write_operation(operation, owner), outcome)
        }
        Change::Note(resource) => Line::Note(write(resource, owner)),
        Change::Forget(resource) => Line::Forget(write(resource, owner)),
        Change::Rename(renamed) => Line::Rename(
            renamed
                .iter()
                .map(|(old, new)| (old.to_string(), new.to_string()))
                .collect(),
        ),
        Change::Configure(config) => Line::Configure(to_json(config)),
        Change::Export(outputs) => Line::Export(to_json(outputs)),
    };
    Ok(serde_json::to_string(&line)? + "\n")
}

fn read_line(line: Line, owner: &Owner) -> Result<Change, StateError> {
    Ok(match line {
        Line::Begin(operation) => Change::Begin(read_operation(operation, owner)?),
        Line::End(operation, outcome) => {
            let outcome = match outcome {
                WireOutcome::Nothing => Outcome::Nothing,
                WireOutcome::Made(made) => Outcome::Made(read(made, owner)?),
                WireOutcome::Changed(changed) => Outcome::Changed(read(changed, owner)?),
                WireOutcome::Gone => Outcome::Gone,
            };
            Change::End(read_operation(operation, owner)?, outcome)
        }
        Line::Note(resource) => Change::Note(read(resource, owner)?),
        Line::Forget(resource) => Change::Forget(read(resource, owner)?),
        Line::Rename(renamed) => {
            let parsed = renamed
                .iter()
                .filter_map(|(old, new)| Some((Urn::parse(old)?, Urn::parse(new)?)));
            Change::Rename(parsed.collect())
        }
        Line::Configure(config) => Change::Configure(properties(config)),
        Line::Export(outputs) => Change::Export(properties(outputs)),
        // They say which documents the changes are between, and change nothing.
        Line::After(_) | Line::Became(_) => Change::Rename(Vec::new()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::{deployment, owner, resource};
    use crate::state::{OperationType, PendingOperation, ResourceState};
    use bindery_resource::{PropertyMap, Value};

    fn changes() -> Vec<Change> {
        let creating = PendingOperation {
            kind: OperationType::Creating,
            resource: resource("d"),
        };
        let deleting = PendingOperation {
            kind: OperationType::Deleting,
            resource: deployment().replaced.into_values().next().unwrap(),
        };
        vec![
            Change::Configure(PropertyMap::from_iter([("region".to_string(), Value::from("r"))])),
            Change::Begin(creating.clone()),
            Change::Begin(deleting.clone()),
            Change::End(creating, Outcome::Made(resource("d"))),
            Change::End(deleting, Outcome::Gone),
            Change::Note(ResourceState {
                protect: true,
                ..resource("d")
            }),
            Change::Rename(vec![(resource("d").urn, resource("e").urn)]),
            Change::Forget(deployment().resources.into_values().next().unwrap()),
            Change::Export(PropertyMap::new()),
        ]
    }

    #[test]
    fn a_journal_makes_the_same_changes_again() {
        let mut expected = deployment();
        let mut journal = journal_head("digest").unwrap();
        for change in changes() {
            journal += &journal_line(&change, &owner()).unwrap();
            expected.apply(change);
        }
        let mut replayed = deployment();
        assert_eq!(
            replayed.replay(journal.as_bytes(), "digest", &owner()).unwrap(),
            Replayed::Whole
        );
        assert_eq!(replayed, expected);
        let mut other = deployment();
        let before = journal.clone();
        assert_eq!(
            other.replay(before.as_bytes(), "another", &owner()).unwrap(),
            Replayed::Foreign
        );
        assert_eq!(other, deployment());
        journal += &journal_foot("another").unwrap();
        assert_eq!(
            other.replay(journal.as_bytes(), "another", &owner()).unwrap(),
            Replayed::Included
        );
        assert_eq!(other, deployment());
        assert_eq!(
            other.replay(journal.as_bytes(), "digest", &owner()).unwrap(),
            Replayed::Whole
        );
        assert_eq!(other, expected);
    }

    #[test]
    fn a_line_that_was_not_finished_did_not_happen_and_one_in_the_midst_is_damage() {
        let mut journal = journal_head("digest").unwrap();
        let mut states = vec![deployment()];
        for change in changes() {
            journal += &journal_line(&change, &owner()).unwrap();
            let mut next = states.last().unwrap().clone();
            next.apply(change);
            states.push(next);
        }
        for end in 0..journal.len() {
            let cut = &journal.as_bytes()[..end];
            let mut replayed = deployment();
            replayed.replay(cut, "digest", &owner()).unwrap();
            let whole = cut.iter().filter(|byte| **byte == b'\n').count().saturating_sub(1);
            assert_eq!(replayed, states[whole], "cut at {end}");
        }
        let damaged = journal.replacen("\"begin\"", "\"bgein\"", 1);
        let error = deployment().replay(damaged.as_bytes(), "digest", &owner()).unwrap_err();
        assert!(error.to_string().contains("damaged at line 3"), "{error}");
    }
}

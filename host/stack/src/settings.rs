//! The block `bindery` of a stack file: how the embedded engine runs it, where the command line does not say. Pulumi reads
//! past it.

use std::time::Duration;

use crate::file::is_name;
use crate::reader::Reader;
use crate::yaml::{Entry, Node, NodeValue};

/// How many operations may run at the same time.
pub const PARALLEL: std::ops::RangeInclusive<u16> = 1..=1000;

/// How many seconds one operation may take.
pub const TIMEOUT: std::ops::RangeInclusive<u64> = 1..=86_400;

/// How the engine runs a stack. What could point at another component, another state or another service is not here: a
/// file from somebody else must not decide that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The stack that is meant where none is named.
    pub stack: Option<String>,
    /// How many operations run at the same time.
    pub parallel: Option<u16>,
    /// How long one operation may take, with all its attempts.
    pub timeout: Option<Duration>,
}

impl Settings {
    /// Reads the block.
    pub fn read(reader: &mut Reader, entries: &[Entry]) -> Self {
        reader.known_keys(entries, &["stack", "parallel", "timeout"], &[], "`bindery`");
        let mut settings = Self::default();
        for Entry { key, node, .. } in entries {
            match key.as_str() {
                "stack" => {
                    settings.stack = reader.text(node, "`stack`");
                    if settings.stack.as_deref().is_some_and(|name| !is_name(name)) {
                        reader.say(node.position, "`stack` must be letters, digits, `-`, `_` and `.`");
                    }
                }
                "parallel" => {
                    let range = u64::from(*PARALLEL.start())..=u64::from(*PARALLEL.end());
                    let parallel = whole(reader, node, "`parallel`", range);
                    settings.parallel = parallel.and_then(|number| u16::try_from(number).ok());
                }
                "timeout" => {
                    let seconds = whole(reader, node, "`timeout`", TIMEOUT);
                    settings.timeout = seconds.map(Duration::from_secs);
                }
                _ => {}
            }
        }
        settings
    }
}

fn whole(reader: &mut Reader, node: &Node, what: &str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
    let number = match &node.value {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast of a float saturates, and the range is checked next"
        )]
        NodeValue::Number(number) if number.fract() == 0.0 => Some(*number as u64),
        _ => None,
    };
    let found = number.filter(|number| range.contains(number));
    if found.is_none() {
        let message = format!(
            "{what} must be a whole number from {} to {}",
            range.start(),
            range.end()
        );
        reader.say(node.position, message);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_within_their_bounds() {
        let read = |text: &str| {
            let node = Node::parse(text).unwrap();
            let mut reader = Reader::default();
            let entries = reader.mapping(&node, "bindery").to_vec();
            let settings = Settings::read(&mut reader, &entries);
            (
                settings,
                reader.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>(),
            )
        };
        let (settings, wrong) = read("{stack: prod, parallel: 4, timeout: 60}");
        assert_eq!(wrong, Vec::<String>::new());
        assert_eq!(settings.stack.as_deref(), Some("prod"));
        assert_eq!(settings.parallel, Some(4));
        assert_eq!(settings.timeout, Some(Duration::from_secs(60)));
        for text in [
            "{parallel: 0}",
            "{parallel: 1.5}",
            "{timeout: x}",
            "{stack: ../x}",
            "{component: x}",
            "{parallel: -3}",
        ] {
            assert_eq!(read(text).1.len(), 1, "{text}");
        }
    }
}

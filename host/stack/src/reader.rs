//! What the readers of a stack file's parts share: they go on after something wrong, so that all of it is said at once.

use bindery_resource::nearest;

use crate::diagnostic::{Diagnostic, Position};
use crate::yaml::{Entry, Node, NodeValue};

/// Collects what is wrong.
#[derive(Debug, Default)]
pub struct Reader {
    /// What was found so far.
    pub diagnostics: Vec<Diagnostic>,
}

/// What the advice is where only Pulumi can do something.
pub const USE_PULUMI: &str = "use Pulumi for this stack: the same provider serves it";

impl Reader {
    /// Something is wrong at a place.
    pub fn say(&mut self, position: Position, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::at(position, message));
    }

    /// Something is wrong that has the form of a node.
    pub fn form(&mut self, node: &Node, what: &str, expected: &str) {
        self.say(
            node.position,
            format!("{what} must be {expected}, not {}", node.type_name()),
        );
    }

    /// The entries of a mapping; none for nothing, and for what is no mapping, which is said.
    pub fn mapping<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Entry] {
        match &node.value {
            NodeValue::Map(entries) => entries,
            NodeValue::Null => &[],
            _ => {
                self.form(node, what, "a mapping");
                &[]
            }
        }
    }

    /// The text of a string.
    pub fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        match &node.value {
            NodeValue::String(text) => Some(text.clone()),
            _ => {
                self.form(node, what, "a string");
                None
            }
        }
    }

    /// A text that stands as it is: a reference in it would not be followed.
    pub fn plain_text(&mut self, node: &Node, what: &str) -> Option<String> {
        let text = self.text(node, what)?;
        if text.contains("${") {
            self.say(
                node.position,
                format!("{what} must be plain: references (`${{…}}`) are not followed here"),
            );
            return None;
        }
        Some(text)
    }

    /// True or false.
    pub fn boolean(&mut self, node: &Node, what: &str) -> bool {
        match &node.value {
            NodeValue::Bool(value) => *value,
            _ => {
                self.form(node, what, "`true` or `false`");
                false
            }
        }
    }

    /// The entries of a list, or one entry alone.
    pub fn list<'n>(&mut self, node: &'n Node) -> &'n [Node] {
        match &node.value {
            NodeValue::List(items) => items,
            _ => std::slice::from_ref(node),
        }
    }

    /// Every key is known. Those that only Pulumi knows are refused as such.
    pub fn known_keys(&mut self, entries: &[Entry], known: &[&str], pulumi: &[&str], what: &str) {
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let diagnostic = if pulumi.contains(&entry.key.as_str()) {
                let message = format!("`{}` is not supported here", entry.key);
                Diagnostic::at(entry.position, message).with_hint(USE_PULUMI)
            } else {
                let diagnostic = Diagnostic::at(entry.position, format!("{what} has no `{}`", entry.key));
                match nearest(&entry.key, known.iter().copied()) {
                    Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
                    None => diagnostic.with_hint(format!("it has `{}`", known.join("`, `"))),
                }
            };
            self.diagnostics.push(diagnostic);
        }
    }
}

/// The entry of a key.
pub fn find<'e>(entries: &'e [Entry], key: &str) -> Option<&'e Entry> {
    entries.iter().find(|entry| entry.key == key)
}

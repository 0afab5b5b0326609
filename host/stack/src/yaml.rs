//! YAML as a tree in which every node and every key knows its place.

use bindery_resource::path::Segment;
use bindery_resource::{PropertyMap, PropertyPath, Value};
use saphyr::{LoadableYamlNode, MarkedYaml, Marker, Scalar, YamlData};

use crate::diagnostic::{Diagnostic, Position};

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it starts.
    pub position: Position,
    /// What it is.
    pub value: NodeValue,
}

/// A YAML value.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Text.
    String(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order in which it is written.
    Map(Vec<Entry>),
}

/// One entry of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key is.
    pub position: Position,
    /// The value.
    pub node: Node,
}

impl Node {
    /// Reads the one document of a text.
    ///
    /// # Errors
    /// When it is not YAML, has no document or several, or a key that is not text.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let documents = MarkedYaml::load_from_str(text)
            .map_err(|error| Diagnostic::at(position(error.marker()), format!("not YAML: {}", error.info())))?;
        let start = Position { line: 1, column: 1 };
        match <[MarkedYaml<'_>; 1]>::try_from(documents) {
            Ok([document]) => node(document),
            Err(documents) if documents.is_empty() => Err(Diagnostic::at(start, "the file is empty")),
            Err(_) => Err(Diagnostic::at(
                start,
                "the file has more than one document; a stack is one",
            )),
        }
    }

    /// What a person calls it, with an article.
    pub fn type_name(&self) -> &'static str {
        match self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Number(_) => "a number",
            NodeValue::String(_) => "a string",
            NodeValue::List(_) => "a list",
            NodeValue::Map(_) => "a mapping",
        }
    }

    /// The property value.
    pub fn to_value(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(value) => Value::Number(*value),
            NodeValue::String(text) => Value::String(text.clone()),
            NodeValue::List(items) => Value::List(items.iter().map(Self::to_value).collect()),
            NodeValue::Map(entries) => Value::Object(to_properties(entries)),
        }
    }

    /// The place of what is at a path inside, or of the nearest that is there.
    pub fn locate(&self, path: &PropertyPath) -> Position {
        let mut here = self;
        let mut position = self.position;
        for segment in path.segments() {
            match (segment, &here.value) {
                (Segment::Key(name), NodeValue::Map(entries)) => {
                    let Some(entry) = entries.iter().find(|entry| entry.key == *name) else {
                        break;
                    };
                    position = entry.position;
                    here = &entry.node;
                }
                (Segment::Index(index), NodeValue::List(items)) => {
                    let Some(item) = items.get(*index) else { break };
                    position = item.position;
                    here = item;
                }
                _ => break,
            }
        }
        position
    }
}

/// The property values of a mapping.
pub fn to_properties(entries: &[Entry]) -> PropertyMap {
    entries
        .iter()
        .map(|entry| (entry.key.clone(), entry.node.to_value()))
        .collect()
}

fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

fn node(yaml: MarkedYaml<'_>) -> Result<Node, Diagnostic> {
    let position = position(&yaml.span.start);
    let value = match yaml.data {
        YamlData::Value(Scalar::Null) => NodeValue::Null,
        YamlData::Value(Scalar::Boolean(value)) => NodeValue::Bool(value),
        #[expect(
            clippy::cast_precision_loss,
            reason = "a property's number is a double; 64-bit integers are strings"
        )]
        YamlData::Value(Scalar::Integer(value)) => NodeValue::Number(value as f64),
        YamlData::Value(Scalar::FloatingPoint(value)) => NodeValue::Number(value.into_inner()),
        YamlData::Value(Scalar::String(text)) => NodeValue::String(text.into_owned()),
        YamlData::Representation(text, ..) => NodeValue::String(text.into_owned()),
        YamlData::Sequence(items) => NodeValue::List(items.into_iter().map(node).collect::<Result<_, _>>()?),
        YamlData::Mapping(map) => NodeValue::Map(map.into_iter().map(entry).collect::<Result<_, _>>()?),
        YamlData::Tagged(..) => return Err(Diagnostic::at(position, "tags (`!…`) are not supported")),
        YamlData::Alias(_) | YamlData::BadValue => {
            return Err(Diagnostic::at(
                position,
                "an alias without its anchor, or a value that cannot be read",
            ));
        }
    };
    Ok(Node { position, value })
}

fn entry((key, value): (MarkedYaml<'_>, MarkedYaml<'_>)) -> Result<Entry, Diagnostic> {
    let position = position(&key.span.start);
    let key = match key.data {
        YamlData::Value(Scalar::String(text)) | YamlData::Representation(text, ..) => text.into_owned(),
        YamlData::Value(Scalar::Integer(number)) => number.to_string(),
        YamlData::Value(Scalar::Boolean(value)) => value.to_string(),
        _ => return Err(Diagnostic::at(position, "a key must be text")),
    };
    Ok(Entry {
        key,
        position,
        node: node(value)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_knows_its_place() {
        let node = Node::parse("a: 1\nb:\n  - x\n  - c: true\n").unwrap();
        let at = |path: &str| node.locate(&PropertyPath::parse(path).unwrap()).to_string();
        assert_eq!(at("a"), "1:1");
        assert_eq!(at("b[0]"), "3:5");
        assert_eq!(at("b[1].c"), "4:5");
        assert_eq!(at("b[1].missing"), "4:5");
        assert_eq!(node.to_value().to_string(), r#"{"a": 1, "b": ["x", {"c": true}]}"#);
    }

    #[test]
    fn what_is_not_one_document_is_refused_with_its_place() {
        for (text, word) in [
            ("a: [1", "not YAML"),
            ("a: 1\na: 2", "duplicated key"),
            ("", "empty"),
            ("---\na: 1\n---\nb: 2\n", "more than one"),
            ("a: *nowhere", "not YAML"),
            ("? [1]\n: 2", "key must be text"),
        ] {
            let error = Node::parse(text).unwrap_err();
            assert!(error.message.contains(word), "{text:?}: {}", error.message);
            assert!(error.position.is_some());
        }
    }
}

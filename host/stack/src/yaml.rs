//! YAML as a tree in which every node and every key knows its place.

use bindery_resource::value::EXACT;
use bindery_resource::{PropertyMap, Value};
use saphyr::{EmitError, LoadableYamlNode, MarkedYaml, Marker, Scalar, Yaml, YamlData, YamlEmitter};
use saphyr_parser::{Event, Parser};

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
        is_shallow(text)?;
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
}

/// The property values of a mapping.
fn to_properties(entries: &[Entry]) -> PropertyMap {
    entries
        .iter()
        .map(|entry| (entry.key.clone(), entry.node.to_value()))
        .collect()
}

/// How deep values may be nested: far deeper than any stack is, and not so deep that reading it runs out of stack.
pub const DEEPEST: usize = 64;

fn is_shallow(text: &str) -> Result<(), Diagnostic> {
    let mut depth = 0_usize;
    for event in Parser::new_from_str(text) {
        // What is no YAML is said when it is loaded.
        let Ok((event, span)) = event else { return Ok(()) };
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
            Event::MappingEnd | Event::SequenceEnd => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            let message = format!("values are nested deeper than {DEEPEST} levels");
            return Err(Diagnostic::at(position(&span.start), message));
        }
    }
    Ok(())
}

fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

fn exact(number: f64, position: Position) -> Result<f64, Diagnostic> {
    if number.is_finite() && (number.fract() != 0.0 || number.abs() < EXACT) {
        return Ok(number);
    }
    let message = "a number that would lose digits, or is none";
    Err(Diagnostic::at(position, message).with_hint("write it in quotes"))
}

fn node(yaml: MarkedYaml<'_>) -> Result<Node, Diagnostic> {
    let position = position(&yaml.span.start);
    let value = match yaml.data {
        YamlData::Value(Scalar::Null) => NodeValue::Null,
        YamlData::Value(Scalar::Boolean(value)) => NodeValue::Bool(value),
        #[expect(
            clippy::cast_precision_loss,
            reason = "a property's number is a double; what it cannot hold is refused"
        )]
        YamlData::Value(Scalar::Integer(value)) => NodeValue::Number(exact(value as f64, position)?),
        YamlData::Value(Scalar::FloatingPoint(value)) => NodeValue::Number(exact(value.into_inner(), position)?),
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
    if key == "<<" {
        let diagnostic = Diagnostic::at(position, "merge keys (`<<`) are not supported here");
        return Err(diagnostic.with_hint("write the keys out; an alias (`*NAME`) can stand for a whole value"));
    }
    Ok(Entry {
        key,
        position,
        node: node(value)?,
    })
}

/// A value as YAML to paste. What is unknown becomes null.
///
/// # Errors
/// When it cannot be written.
pub fn to_yaml(value: &Value) -> Result<String, EmitError> {
    let mut text = String::new();
    YamlEmitter::new(&mut text).dump(&emitted(value))?;
    Ok(text.trim_start_matches("---").trim_start_matches('\n').to_string() + "\n")
}

fn emitted(value: &Value) -> Yaml<'_> {
    match value {
        Value::Null | Value::Unknown => Yaml::Value(Scalar::Null),
        Value::Bool(value) => Yaml::Value(Scalar::Boolean(*value)),
        Value::Number(value) => Yaml::Value(Scalar::FloatingPoint((*value).into())),
        Value::String(text) => Yaml::Value(Scalar::String(text.into())),
        Value::List(items) => Yaml::Sequence(items.iter().map(emitted).collect()),
        Value::Object(fields) => {
            let entry =
                |(name, value): (&'_ String, _)| (Yaml::Value(Scalar::String(name.clone().into())), emitted(value));
            Yaml::Mapping(fields.iter().map(entry).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_and_every_key_knows_its_place() {
        let node = Node::parse("a: 1\nb:\n  - x\n  - c: true\n").unwrap();
        assert_eq!(node.to_value().to_string(), r#"{"a": 1, "b": ["x", {"c": true}]}"#);
        let NodeValue::Map(entries) = &node.value else { panic!() };
        assert_eq!(entries[1].position.to_string(), "2:1");
        let NodeValue::List(items) = &entries[1].node.value else {
            panic!()
        };
        assert_eq!(items[1].position.to_string(), "4:5");
    }

    #[test]
    fn what_is_written_reads_back() {
        let value = Value::from(serde_json::json!({
            "plain": "user:ann@example.com", "odd": ["yes", "1", "", "a: b", "- x", "#c", "'q\"", "x\ny", "${a}", "~"],
            "nested": {"list": [], "empty": {}, "null": null}, "b": [true], "n": 2.5, "1": "key"
        }));
        let text = to_yaml(&value).unwrap();
        assert_eq!(Node::parse(&text).unwrap().to_value(), value, "{text}");
    }

    #[test]
    fn a_file_that_would_use_up_the_machine_is_refused() {
        for text in ["[".repeat(100_000), "- ".repeat(10_000)] {
            assert!(Node::parse(&text).is_err());
        }
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_string();
        for n in 1..20 {
            text += &format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "));
        }
        assert!(Node::parse(&text).is_err());
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

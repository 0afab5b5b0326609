//! What the values of a stack file come to, once what they refer to is known.

use std::collections::HashMap;
use std::sync::Arc;

use bindery_resource::path::Segment;
use bindery_resource::{PropertyMap, PropertyPath, Urn, Value, nearest};

use crate::diagnostic::{Diagnostic, Position};
use crate::expression::{Expression, ExpressionKind, Part, Reference};
use crate::file::StackFile;
use crate::reader::USE_PULUMI;

/// How much one value may come to, in bytes of text and entries: references can double each other's size.
const LARGEST_VALUE: usize = 4 << 20;

/// How deep a value may be nested, whatever it refers to: as deep as a file may be, and as its state can be read back.
const DEEPEST: usize = crate::yaml::DEEPEST;

/// What one value may still come to.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Bytes of text and entries.
    left: usize,
    /// How deep inside the value this is.
    depth: usize,
}

/// A resource as others refer to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// Its URN.
    pub urn: Urn,
    /// Its id, or that it is not known.
    pub id: Value,
    /// Its outputs, as far as they are known.
    pub outputs: PropertyMap,
    /// The names of its outputs, set or not.
    pub properties: Arc<[String]>,
}

/// What is known of everything that a value can refer to.
#[derive(Debug, Clone)]
pub struct Scope {
    config: PropertyMap,
    pulumi: PropertyMap,
    resources: HashMap<String, Exported>,
    /// Variables whose value is known to its end.
    variables: HashMap<String, Value>,
}

impl Scope {
    /// What is known before any resource is: the values of the file's configuration keys, and the names of the stack.
    pub fn new(file: &StackFile, stack: &str, config: PropertyMap) -> Self {
        let named = [("project", file.name.as_str()), ("stack", stack)];
        Self {
            config,
            pulumi: named
                .map(|(key, value)| (key.to_string(), Value::from(value)))
                .into_iter()
                .collect(),
            resources: HashMap::new(),
            variables: HashMap::new(),
        }
    }

    /// Makes a resource known.
    pub fn export(&mut self, name: &str, resource: Exported) {
        self.resources.insert(name.to_string(), resource);
    }

    /// What a value comes to.
    ///
    /// # Errors
    /// The first reference in it that leads nowhere, with its place.
    pub fn evaluate(&mut self, file: &StackFile, expression: &Expression) -> Result<Value, Diagnostic> {
        let mut room = Room {
            left: LARGEST_VALUE,
            depth: 0,
        };
        self.value(file, expression, &mut room)
    }

    fn value(&mut self, file: &StackFile, expression: &Expression, room: &mut Room) -> Result<Value, Diagnostic> {
        let position = expression.position;
        match &expression.kind {
            ExpressionKind::Literal(value) => {
                spend(room, size(value), position)?;
                Ok(value.clone())
            }
            ExpressionKind::Reference(reference) => self.reference(file, reference, position, room),
            ExpressionKind::Template(parts) => self.text(file, parts, position, room),
            ExpressionKind::List(items) => {
                room.enter(position)?;
                let values = items
                    .iter()
                    .map(|item| self.value(file, item, room))
                    .collect::<Result<_, _>>()?;
                room.depth -= 1;
                Ok(Value::List(values))
            }
            ExpressionKind::Map(fields) => {
                room.enter(position)?;
                let mut values = PropertyMap::new();
                for field in fields {
                    values.insert(field.key.clone(), self.value(file, &field.value, room)?);
                }
                room.depth -= 1;
                Ok(Value::Object(values))
            }
        }
    }

    fn text(
        &mut self,
        file: &StackFile,
        parts: &[Part],
        position: Position,
        room: &mut Room,
    ) -> Result<Value, Diagnostic> {
        let mut text = String::new();
        let mut is_known = true;
        for part in parts {
            match part {
                Part::Text(plain) => {
                    spend(room, plain.len(), position)?;
                    text.push_str(plain);
                }
                Part::Reference(reference) => match self.reference(file, reference, position, room)? {
                    Value::String(value) => text.push_str(&value),
                    value @ (Value::Number(_) | Value::Bool(_)) => text.push_str(&value.to_string()),
                    Value::Unknown => is_known = false,
                    other => {
                        let message = format!("`{reference}` is {}, which cannot be part of a text", other.type_name());
                        return Err(Diagnostic::at(position, message)
                            .with_hint("refer to a text, a number or a boolean inside it"));
                    }
                },
            }
        }
        Ok(if is_known { Value::String(text) } else { Value::Unknown })
    }

    fn reference(
        &mut self,
        file: &StackFile,
        reference: &Reference,
        position: Position,
        room: &mut Room,
    ) -> Result<Value, Diagnostic> {
        let name = reference.name.as_str();
        let path = reference.path.as_slice();
        if let Some(variable) = file.variables.get(name)
            && !self.variables.contains_key(name)
        {
            let value = self.value(file, &variable.value, room)?;
            if value.has_unknown() {
                return inside(&value, path, reference, position, room);
            }
            self.variables.insert(name.to_string(), value);
        }
        if let Some(value) = self.variables.get(name).or_else(|| self.config.get(name)) {
            return inside(value, path, reference, position, room);
        }
        if name == "pulumi" {
            if let Some(Segment::Key(key)) = path.first()
                && ["cwd", "organization", "rootDirectory"].contains(&key.as_str())
            {
                let message = format!("`{reference}` is not supported here");
                return Err(Diagnostic::at(position, message).with_hint(USE_PULUMI));
            }
            let whole = Value::Object(self.pulumi.clone());
            return inside(&whole, path, reference, position, room);
        }
        match self.resources.get(name) {
            Some(resource) => of_resource(resource, path, reference, position, room),
            // It is declared, or the file would not have been read, and it comes to be.
            None => Ok(Value::Unknown),
        }
    }
}

fn of_resource(
    resource: &Exported,
    path: &[Segment],
    reference: &Reference,
    position: Position,
    room: &mut Room,
) -> Result<Value, Diagnostic> {
    let Some((Segment::Key(property), path)) = path.split_first() else {
        let message = format!("`{reference}` is a whole resource");
        let hint = format!("name one of its properties, as `${{{}.id}}`", reference.name);
        return Err(Diagnostic::at(position, message).with_hint(hint));
    };
    match property.as_str() {
        "urn" => inside(&Value::from(resource.urn.as_str()), path, reference, position, room),
        "id" => inside(&resource.id, path, reference, position, room),
        property => match resource.outputs.get(property) {
            Some(value) => inside(value, path, reference, position, room),
            None if resource.properties.iter().any(|known| known == property) => Ok(Value::Null),
            None => {
                let message = format!(
                    "`{reference}`: the resource `{}` has no property `{property}`",
                    reference.name
                );
                let known = resource.properties.iter().map(String::as_str);
                let diagnostic = Diagnostic::at(position, message);
                Err(match nearest(property, known) {
                    Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
                    None => {
                        let all = resource.properties.join("`, `");
                        diagnostic.with_hint(format!("it has `{all}`, `id` and `urn`"))
                    }
                })
            }
        },
    }
}

/// What is at a path inside a value.
fn inside(
    value: &Value,
    path: &[Segment],
    reference: &Reference,
    position: Position,
    room: &mut Room,
) -> Result<Value, Diagnostic> {
    let mut here = value;
    let mut seen = PropertyPath::property(&reference.name);
    for segment in path {
        here = match (segment, here) {
            (_, Value::Unknown) => return Ok(Value::Unknown),
            (Segment::Key(key), Value::Object(fields)) => fields.get(key).ok_or_else(|| {
                let diagnostic = Diagnostic::at(position, format!("`{reference}`: `{seen}` has no `{key}`"));
                match nearest(key, fields.keys().map(String::as_str)) {
                    Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
                    None => diagnostic,
                }
            })?,
            (Segment::Index(index), Value::List(items)) => items.get(*index).ok_or_else(|| {
                let message = format!("`{reference}`: `{seen}` has {} entries, counted from 0", items.len());
                Diagnostic::at(position, message)
            })?,
            (Segment::Key(key), other) => {
                let message = format!("`{reference}`: `{seen}` is {}, which has no `{key}`", other.type_name());
                return Err(Diagnostic::at(position, message));
            }
            (Segment::Index(_), other) => {
                let message = format!("`{reference}`: `{seen}` is {}, not a list", other.type_name());
                return Err(Diagnostic::at(position, message));
            }
        };
        seen = match segment {
            Segment::Key(key) => seen.key(key),
            Segment::Index(index) => seen.index(*index),
        };
    }
    spend(room, size(here), position)?;
    room.is_shallow(depth(here), position)?;
    Ok(here.clone())
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len(),
        Value::List(items) => items.iter().map(size).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + size(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Unknown => 0,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::List(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

impl Room {
    fn enter(&mut self, position: Position) -> Result<(), Diagnostic> {
        self.depth += 1;
        self.is_shallow(0, position)
    }

    fn is_shallow(&self, more: usize, position: Position) -> Result<(), Diagnostic> {
        if self.depth + more <= DEEPEST {
            return Ok(());
        }
        let message = format!("with all that it refers to, this value is nested deeper than {DEEPEST} levels");
        Err(Diagnostic::at(position, message))
    }
}

fn spend(room: &mut Room, size: usize, position: Position) -> Result<(), Diagnostic> {
    match room.left.checked_sub(size) {
        Some(rest) => {
            room.left = rest;
            Ok(())
        }
        None => {
            let message = format!("with all that it refers to, this value is larger than {LARGEST_VALUE} bytes");
            Err(Diagnostic::at(position, message).with_hint("do references double each other?"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
name: p
runtime: yaml
config:
  env: {type: string}
variables:
  greeting: hello ${env}
  nested: {list: [1, '${greeting}'], flag: true}
  later: x-${r.etag}
resources:
  r: {type: t}
";

    fn file() -> StackFile {
        StackFile::parse(FILE).unwrap()
    }

    fn scope() -> Scope {
        let config = PropertyMap::from_iter([("env".to_string(), Value::from("prod"))]);
        let mut scope = Scope::new(&file(), "dev", config);
        scope.export(
            "r",
            Exported {
                urn: Urn::new("dev", "p", "t", "r"),
                id: Value::from("the-id"),
                outputs: PropertyMap::from_iter([
                    ("etag".to_string(), Value::Unknown),
                    ("members".to_string(), Value::List(vec![Value::from("a")])),
                ]),
                properties: Arc::from(["etag".to_string(), "members".to_string(), "project".to_string()]),
            },
        );
        scope
    }

    fn evaluate(text: &str) -> Result<String, String> {
        let node = crate::yaml::Node::parse(&format!("- {text}")).unwrap();
        let mut wrong = Vec::new();
        let expression = Expression::read(&node, &PropertyPath::default(), &mut wrong);
        assert_eq!(wrong, []);
        match scope().evaluate(&file(), &expression) {
            Ok(value) => Ok(value.to_string()),
            Err(diagnostic) => Err(format!("{diagnostic}; {}", diagnostic.hint.clone().unwrap_or_default())),
        }
    }

    #[test]
    fn a_reference_alone_keeps_its_type_and_inside_a_text_becomes_text() {
        for (text, expected) in [
            ("${env}", r#"["prod"]"#),
            ("${nested}", r#"[{"list": [1, "hello prod"], "flag": true}]"#),
            ("${nested.list[0]}", "[1]"),
            (
                "a ${nested.list[0]} ${nested.flag} ${greeting}",
                r#"["a 1 true hello prod"]"#,
            ),
            ("${r.members}", r#"[["a"]]"#),
            ("${r.members[0]}", r#"["a"]"#),
            ("${r.id} ${r.urn}", r#"["the-id urn:pulumi:dev::p::t::r"]"#),
            ("${r.project}", "[null]"),
            ("${pulumi.stack}-${pulumi.project}", r#"["dev-p"]"#),
            ("{a: '${r.etag}', b: 1}", r#"[{"a": [unknown], "b": 1}]"#),
            ("${later}", "[[unknown]]"),
            ("x${r.etag.deeper}", "[[unknown]]"),
        ] {
            assert_eq!(evaluate(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_named_with_its_place() {
        for (text, expected) in [
            (
                "${r.etga}",
                "1:3: `${r.etga}`: the resource `r` has no property `etga`; did you mean `etag`?",
            ),
            ("${r}", "is a whole resource; name one of its properties, as `${r.id}`"),
            (
                "x ${nested}",
                "`${nested}` is an object, which cannot be part of a text",
            ),
            ("${nested.lits}", "`nested` has no `lits`; did you mean `list`?"),
            ("${nested.list[2]}", "`nested.list` has 2 entries, counted from 0"),
            ("${env.x}", "`env` is a string, which has no `x`"),
            ("${env[0]}", "`env` is a string, not a list"),
            ("${pulumi.stak}", "did you mean `stack`?"),
        ] {
            let error = evaluate(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn values_that_nest_each_other_end_in_an_error_before_the_state_could_not_be_read_back() {
        let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(40), "]".repeat(40));
        let mut text = format!("name: p\nruntime: yaml\nvariables:\n  v0: {}\n", nested("a"));
        for n in 1..90 {
            text += &format!("  v{n}: {}\n", nested(&format!("'${{v{}}}'", n - 1)));
        }
        let file = StackFile::parse(&text).unwrap();
        let mut scope = Scope::new(&file, "dev", PropertyMap::new());
        assert!(scope.evaluate(&file, &file.variables["v0"].value).is_ok());
        for name in ["v1", "v89"] {
            let error = scope.evaluate(&file, &file.variables[name].value).unwrap_err();
            assert!(error.message.contains("nested deeper than"), "{error}");
        }
    }

    #[test]
    fn values_that_double_each_other_end_in_an_error() {
        let mut text = "name: p\nruntime: yaml\nvariables:\n  v0: 0123456789\n".to_string();
        for n in 1..60 {
            text += &format!("  v{n}: ['${{v{}}}', '${{v{}}}']\n", n - 1, n - 1);
        }
        let file = StackFile::parse(&text).unwrap();
        let error = Scope::new(&file, "dev", PropertyMap::new())
            .evaluate(&file, &file.variables["v59"].value)
            .unwrap_err();
        assert!(error.message.contains("larger than"), "{error}");
    }
}

//! Values as a stack file writes them: plain, or with references to configuration, variables and resources in them.
//!
//! `${name.path}` is a reference, alone or inside a text; `$$` stands for one `$`. As Pulumi YAML has it.

use bindery_resource::path::Segment;
use bindery_resource::{PropertyPath, Value};

use crate::diagnostic::{Diagnostic, Position};
use crate::yaml::{Node, NodeValue};

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Where it starts.
    pub position: Position,
    /// What it is.
    pub kind: ExpressionKind,
}

/// The forms of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionKind {
    /// Null, a boolean, a number, or a text without references.
    Literal(Value),
    /// A reference, whose value keeps its type.
    Reference(Reference),
    /// A text with references in it.
    Template(Vec<Part>),
    /// A list.
    List(Vec<Expression>),
    /// A mapping.
    Map(Vec<Field>),
}

/// One entry of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its key.
    pub key: String,
    /// Where the key is.
    pub position: Position,
    /// Its value.
    pub value: Expression,
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Plain.
    Text(String),
    /// What it refers to, as text.
    Reference(Reference),
}

/// `${name.path}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// A configuration key, a variable, a resource, or `pulumi`.
    pub name: String,
    /// What of it: empty for the whole.
    pub path: Vec<Segment>,
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self
            .path
            .iter()
            .fold(PropertyPath::property(&self.name), |path, segment| match segment {
                Segment::Key(key) => path.key(key),
                Segment::Index(index) => path.index(*index),
            });
        write!(f, "${{{path}}}")
    }
}

impl Expression {
    /// Nothing, at a place.
    pub fn null(position: Position) -> Self {
        Self {
            position,
            kind: ExpressionKind::Literal(Value::Null),
        }
    }

    /// Reads a value; what is wrong goes to `diagnostics`, with the path at which it is.
    pub fn read(node: &Node, path: &PropertyPath, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let kind = match &node.value {
            NodeValue::String(text) => match template(text) {
                Ok(kind) => kind,
                Err(what) => {
                    diagnostics.push(Diagnostic {
                        path: Some(path.clone()),
                        ..Diagnostic::at(node.position, format!("`{text}`: {what}"))
                            .with_hint("a reference is `${NAME}` or `${NAME.PROPERTY}`; `$$` stands for a `$`")
                    });
                    ExpressionKind::Literal(Value::Null)
                }
            },
            NodeValue::List(items) => {
                let item = |(index, item)| Self::read(item, &path.index(index), diagnostics);
                ExpressionKind::List(items.iter().enumerate().map(item).collect())
            }
            NodeValue::Map(entries) => {
                let mut fields = Vec::new();
                for entry in entries {
                    if entry.key.starts_with("fn::") || entry.key.starts_with("Fn::") {
                        let message = format!("functions (`{}`) are not supported here", entry.key);
                        diagnostics.push(Diagnostic {
                            path: Some(path.clone()),
                            ..Diagnostic::at(entry.position, message)
                                .with_hint("write the value itself, or use Pulumi for this stack")
                        });
                        continue;
                    }
                    fields.push(Field {
                        key: entry.key.clone(),
                        position: entry.position,
                        value: Self::read(&entry.node, &path.key(&entry.key), diagnostics),
                    });
                }
                ExpressionKind::Map(fields)
            }
            _ => ExpressionKind::Literal(node.to_value()),
        };
        Self {
            position: node.position,
            kind,
        }
    }

    /// Every reference in it, with its place.
    pub fn references(&self) -> Vec<(&Reference, Position)> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found
    }

    fn collect<'e>(&'e self, found: &mut Vec<(&'e Reference, Position)>) {
        match &self.kind {
            ExpressionKind::Literal(_) => {}
            ExpressionKind::Reference(reference) => found.push((reference, self.position)),
            ExpressionKind::Template(parts) => found.extend(parts.iter().filter_map(|part| match part {
                Part::Text(_) => None,
                Part::Reference(reference) => Some((reference, self.position)),
            })),
            ExpressionKind::List(items) => items.iter().for_each(|item| item.collect(found)),
            ExpressionKind::Map(fields) => fields.iter().for_each(|field| field.value.collect(found)),
        }
    }

    /// The place of what is at a path inside, or of the nearest that is there.
    pub fn locate(&self, path: &PropertyPath) -> Position {
        let mut here = self;
        let mut position = self.position;
        for segment in path.segments() {
            match (segment, &here.kind) {
                (Segment::Key(name), ExpressionKind::Map(fields)) => {
                    let Some(field) = fields.iter().find(|field| field.key == *name) else {
                        break;
                    };
                    position = field.position;
                    here = &field.value;
                }
                (Segment::Index(index), ExpressionKind::List(items)) => {
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

/// Reads a text with references.
fn template(text: &str) -> Result<ExpressionKind, &'static str> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (before, after) = rest.split_at(dollar);
        plain.push_str(before);
        if let Some(after) = after.strip_prefix("$$") {
            plain.push('$');
            rest = after;
        } else if let Some(inner) = after.strip_prefix("${") {
            let (reference, after) = reference(inner)?;
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Reference(reference));
            rest = after;
        } else {
            plain.push('$');
            rest = after.get(1..).unwrap_or_default();
        }
    }
    plain.push_str(rest);
    if parts.is_empty() {
        return Ok(ExpressionKind::Literal(Value::String(plain)));
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    match <[Part; 1]>::try_from(parts) {
        Ok([Part::Reference(reference)]) => Ok(ExpressionKind::Reference(reference)),
        Ok([part]) => Ok(ExpressionKind::Template(vec![part])),
        Err(parts) => Ok(ExpressionKind::Template(parts)),
    }
}

/// Reads what follows `${`, and gives what follows its `}`.
fn reference(text: &str) -> Result<(Reference, &str), &'static str> {
    let mut segments = Vec::new();
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            let mut segments = segments.into_iter();
            return match segments.next() {
                Some(Segment::Key(name)) => {
                    let path = segments.collect();
                    Ok((Reference { name, path }, after))
                }
                _ => Err("a reference without a name"),
            };
        }
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (key, after) = quoted_key(quoted)?;
            segments.push(Segment::Key(key));
            rest = after;
        } else if let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']').ok_or("a `[` without its `]`")?;
            let index = index.trim().parse().map_err(|_| "an index that is no number")?;
            if segments.is_empty() {
                return Err("a reference without a name");
            }
            segments.push(Segment::Index(index));
            rest = after;
        } else {
            let name = if segments.is_empty() {
                rest
            } else {
                rest.strip_prefix('.')
                    .ok_or("a reference without its `}`, or one that is not well formed")?
            };
            let end = name
                .find(['.', '[', '}', '$', '{'])
                .ok_or("a reference without its `}`")?;
            let (key, after) = name.split_at(end);
            let key = key.trim();
            if key.is_empty() {
                return Err("a reference with an empty name");
            }
            segments.push(Segment::Key(key.to_string()));
            rest = after;
        }
    }
}

/// Reads what follows `["`, and gives what follows its `"]`. A `\"` inside is a quote.
fn quoted_key(text: &str) -> Result<(String, &str), &'static str> {
    let mut key = String::new();
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix("\\\"") {
            key.push('"');
            rest = after;
        } else if let Some(after) = rest.strip_prefix("\"]") {
            return Ok((key, after));
        } else {
            let next = rest.chars().next().ok_or("a quoted name without its end")?;
            key.push(next);
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ExpressionKind, &'static str> {
        template(text)
    }

    fn shown(text: &str) -> String {
        match read(text).unwrap() {
            ExpressionKind::Literal(value) => value.to_string(),
            ExpressionKind::Reference(reference) => reference.to_string(),
            ExpressionKind::Template(parts) => parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => format!("({text})"),
                    Part::Reference(reference) => reference.to_string(),
                })
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn references_are_read_as_pulumi_yaml_writes_them() {
        for (text, expected) in [
            ("plain", "\"plain\""),
            ("5$ and $x", "\"5$ and $x\""),
            ("$${a}", "\"${a}\""),
            ("$$$${a}", "\"$${a}\""),
            ("${a}", "${a}"),
            ("${a.b[0].c}", "${a.b[0].c}"),
            ("${ a }", "${a}"),
            (r#"${a["x.y"]["z\"q"]}"#, r#"${a["x.y"]["z\"q"]}"#),
            (r#"${["my res"].id}"#, r#"${["my res"].id}"#),
            ("x${a}y$$${b}", "(x)${a}(y$)${b}"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in [
            "${", "${}", "${a", "${a.}", "${a[}", "${a[x]}", "${[0]}", "${a[\"x}", "${a${b}}", "${a]}x",
        ] {
            assert!(read(text).is_err() || text == "${a]}x", "{text}");
        }
    }
}

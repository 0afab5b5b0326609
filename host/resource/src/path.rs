//! Where in a resource's properties: `member`, `condition.title`, `members[2]`, `labels["a.b"]`.

use std::fmt;

use crate::value::{PropertyMap, Value};

/// A path from a resource's properties inward.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct PropertyPath(Vec<Segment>);

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A field of a record, or a key of a map.
    Key(String),
    /// An entry of a list, counted from 0.
    Index(usize),
}

impl PropertyPath {
    /// The path of a property.
    pub fn property(name: &str) -> Self {
        Self(vec![Segment::Key(name.to_string())])
    }

    /// The path of a field of what is here.
    #[must_use]
    pub fn key(&self, name: &str) -> Self {
        self.with(Segment::Key(name.to_string()))
    }

    /// The path of an entry of the list that is here.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    /// The steps, outermost first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The path of what this leads through after so many steps.
    #[must_use]
    pub fn up_to(&self, steps: usize) -> Self {
        Self(self.0.iter().take(steps).cloned().collect())
    }

    /// The property that it starts with; none for the whole resource.
    pub fn first(&self) -> Option<&str> {
        match self.0.first() {
            Some(Segment::Key(name)) => Some(name),
            _ => None,
        }
    }

    /// Parses what `Display` prints; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix("[\"") {
                let quoted = rest.get(1..)?;
                let mut stream = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
                segments.push(Segment::Key(stream.next()?.ok()?));
                let end = stream.byte_offset();
                rest = inner.get(end.checked_sub(1)?..)?.strip_prefix(']')?;
            } else if let Some(inner) = rest.strip_prefix('[') {
                let (index, after) = inner.split_once(']')?;
                segments.push(Segment::Index(index.parse().ok()?));
                rest = after;
            } else {
                let name = if segments.is_empty() {
                    rest
                } else {
                    rest.strip_prefix('.')?
                };
                let end = name.find(['.', '[']).unwrap_or(name.len());
                let (name, after) = name.split_at_checked(end)?;
                if !is_plain(name) {
                    return None;
                }
                segments.push(Segment::Key(name.to_string()));
                rest = after;
            }
        }
        Some(Self(segments))
    }

    /// The value here, if the properties go this far.
    pub fn get<'v>(&self, properties: &'v PropertyMap) -> Option<&'v Value> {
        let (first, rest) = self.0.split_first()?;
        let Segment::Key(name) = first else { return None };
        rest.iter()
            .try_fold(properties.get(name)?, |value, segment| match (segment, value) {
                (Segment::Key(name), Value::Object(fields)) => fields.get(name),
                (Segment::Index(index), Value::List(items)) => items.get(*index),
                _ => None,
            })
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '-' || c == '$')
}

impl fmt::Display for PropertyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(name) if !is_plain(name) => {
                    write!(f, "[{}]", serde_json::Value::String(name.clone()))?;
                }
                Segment::Key(name) if position == 0 => f.write_str(name)?,
                Segment::Key(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_back_as_they_were_written() {
        for text in [
            "member",
            "condition.title",
            "members[2]",
            "a[0][1].b",
            r#"labels["a.b"].c"#,
            r#"["x\"]y"]"#,
        ] {
            assert_eq!(PropertyPath::parse(text).unwrap().to_string(), text);
        }
        for text in [".a", "a.", "a[", "a[x]", "a]", "a..b", r#"a["b"#] {
            assert_eq!(PropertyPath::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_path_finds_its_value_or_nothing() {
        let properties = PropertyMap::from_iter([("list".to_string(), Value::List(vec![Value::Bool(true)]))]);
        let get = |text| PropertyPath::parse(text).unwrap().get(&properties).cloned();
        assert_eq!(get("list[0]"), Some(Value::Bool(true)));
        assert_eq!(get("list[1]"), None);
        assert_eq!(get("list.x"), None);
        assert_eq!(get("other"), None);
    }
}

//! Property values as engines hold them.

use std::fmt;

use indexmap::IndexMap;

/// Properties by name, in the order in which they were written.
pub type PropertyMap = IndexMap<String, Value>;

/// One property's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing: the same as an absent property.
    Null,
    /// True or false.
    Bool(bool),
    /// Any number. 64-bit integers are strings.
    Number(f64),
    /// Text.
    String(String),
    /// A list.
    List(Vec<Value>),
    /// A record or a map.
    Object(PropertyMap),
    /// Not known yet: during a preview, something that does not exist decides it.
    Unknown,
}

impl Value {
    /// What a person calls its type, with an article.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
            Self::Unknown => "an unknown value",
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether this or anything in it is unknown.
    pub fn has_unknown(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::List(items) => items.iter().any(Self::has_unknown),
            Self::Object(fields) => fields.values().any(Self::has_unknown),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => false,
        }
    }

    /// As JSON; none where something is unknown.
    pub fn to_json(&self) -> Option<serde_json::Value> {
        Some(match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(value) => number(*value),
            Self::String(text) => text.clone().into(),
            Self::List(items) => items.iter().map(Self::to_json).collect::<Option<Vec<_>>>()?.into(),
            Self::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| Some((name.clone(), value.to_json()?)));
                serde_json::Value::Object(fields.collect::<Option<_>>()?)
            }
            Self::Unknown => return None,
        })
    }
}

/// Up to here every whole number is one that a double holds.
pub const EXACT: f64 = 9_007_199_254_740_992.0;

/// Whole numbers without a fraction, so that they read as a person writes them.
fn number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number of at most 2^53")]
        return (value as i64).into();
    }
    serde_json::Number::from_f64(value).map_or(serde_json::Value::Null, serde_json::Value::Number)
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::Number(value) => Self::Number(value.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(text) => Self::String(text),
            serde_json::Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            serde_json::Value::Object(fields) => {
                Self::Object(fields.into_iter().map(|(name, value)| (name, value.into())).collect())
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_string())
    }
}

impl fmt::Display for Value {
    /// As JSON on one line, with `[unknown]` for what is not known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("[unknown]"),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Object(fields) => {
                f.write_str("{")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let name = serde_json::Value::String(name.clone());
                    write!(f, "{}{name}: {value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            _ => match self.to_json() {
                Some(json) => write!(f, "{json}"),
                None => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_as_it_went() {
        let json: serde_json::Value =
            serde_json::from_str(r#"{"b":[1,2.5,null,true],"a":{"s":"x"},"big":9007199254740993}"#).unwrap();
        let value = Value::from(json.clone());
        assert_eq!(
            value.to_string(),
            r#"{"b": [1, 2.5, null, true], "a": {"s": "x"}, "big": 9007199254740992}"#
        );
        assert_eq!(Value::from(value.to_json().unwrap()), value);
    }

    #[test]
    fn what_is_unknown_has_no_json() {
        let value = Value::List(vec![Value::Bool(true), Value::Unknown]);
        assert!(value.has_unknown());
        assert_eq!(value.to_json(), None);
        assert_eq!(value.to_string(), "[true, [unknown]]");
    }
}

//! The engine's values to properties and back. Specials are objects with a signature: secrets, references to resources,
//! outputs. An unknown is one of seven strings, and goes back as the one that every SDK knows.

use std::collections::BTreeSet;

use bindery_resource::path::Segment;
use bindery_resource::{CheckFailure, PropertyMap, PropertyPath, Value};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value as Wire};

/// The key that marks an object as a special.
const SIGNATURE: &str = "4dabf18193072939515e22adb298388d";

const SECRET: &str = "1b47061264138c4ac30d75fd1eb44270";
const OUTPUT: &str = "d0e6a833031e9bbcd3f4e8bde6ca49a4";
const RESOURCE: &str = "5cf8f73096256a8f31e491e813e4eb8e";
const ASSET: &str = "c44067f5952c0a294b673a41bacd8c17";
const ARCHIVE: &str = "0def7320c3a5731c473e5ecbe6d01bc7";
const BYTES: &str = "803fd3297a5875dc03ca845dda5d2a98";

/// The unknown string: the only one that is sent.
pub const UNKNOWN: &str = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

/// What a value that is not known yet may come as: a string, a boolean, a number, an array, an asset, an archive, an object.
const UNKNOWNS: [&str; 7] = [
    UNKNOWN,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "030794c1-ac77-496b-92df-f27374a8bd58",
    "e48ece36-62e2-4504-bad9-02848725956a",
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
];

/// Properties as the engine sent them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties {
    /// The values, secrets among them in the clear.
    pub values: PropertyMap,
    /// Which of them are secret: the outermost places, all that is in them too.
    pub secrets: BTreeSet<PropertyPath>,
}

/// Turns the engine's values into properties. Nulls at the top are left out: they are the same as nothing.
///
/// # Errors
/// Every value that is none of a property.
pub fn decode(values: Option<Struct>) -> Result<Properties, Vec<CheckFailure>> {
    let mut decoding = Decoding::default();
    let mut properties = PropertyMap::new();
    for (name, value) in values.unwrap_or_default().fields {
        let path = PropertyPath::property(&name);
        match decoding.value(value, &path) {
            Value::Null => _ = decoding.secrets.remove(&path),
            value => _ = properties.insert(name, value),
        }
    }
    if decoding.failures.is_empty() {
        Ok(Properties {
            values: properties,
            secrets: decoding.secrets,
        })
    } else {
        Err(decoding.failures)
    }
}

#[derive(Default)]
struct Decoding {
    secrets: BTreeSet<PropertyPath>,
    is_within_secret: bool,
    failures: Vec<CheckFailure>,
}

impl Decoding {
    fn value(&mut self, value: Wire, at: &PropertyPath) -> Value {
        match value.kind {
            None => self.failure(at, "has no value at all: the message is malformed"),
            Some(Kind::NullValue(_)) => Value::Null,
            Some(Kind::BoolValue(value)) => Value::Bool(value),
            Some(Kind::NumberValue(value)) => Value::Number(value),
            Some(Kind::StringValue(text)) if UNKNOWNS.contains(&text.as_str()) => Value::Unknown,
            Some(Kind::StringValue(text)) => Value::String(text),
            Some(Kind::ListValue(list)) => {
                let items = list.values.into_iter().enumerate();
                Value::List(items.map(|(index, item)| self.value(item, &at.index(index))).collect())
            }
            Some(Kind::StructValue(object)) => self.object(object, at),
        }
    }

    fn object(&mut self, mut object: Struct, at: &PropertyPath) -> Value {
        let Some(signature) = object.fields.remove(SIGNATURE) else {
            let fields = object.fields.into_iter();
            return Value::Object(
                fields
                    .map(|(name, value)| {
                        let value = self.value(value, &at.key(&name));
                        (name, value)
                    })
                    .collect(),
            );
        };
        let signature = text(&signature).unwrap_or_default().to_string();
        match signature.as_str() {
            SECRET => self.secret(&mut object, at),
            OUTPUT => {
                let secret = object.fields.get("secret").and_then(|secret| secret.kind.as_ref());
                if secret == Some(&Kind::BoolValue(true)) {
                    self.secret(&mut object, at)
                } else {
                    self.inner(&mut object, at)
                }
            }
            // A resource stands for its id; a component, which has none, for its URN.
            RESOURCE => match (object.fields.remove("id"), object.fields.remove("urn")) {
                (Some(id), _) if text(&id) == Some("") => Value::Unknown,
                (Some(id), _) => self.value(id, at),
                (None, Some(urn)) => self.value(urn, at),
                (None, None) => self.failure(
                    at,
                    "is a reference to a resource without its URN: the message is malformed",
                ),
            },
            ASSET | ARCHIVE => self.failure(
                at,
                "is an asset or an archive, which no property of this provider takes",
            ),
            BYTES => self.failure(
                at,
                "holds bytes that are no UTF-8 text, which no property of this provider takes",
            ),
            _ => self.failure(
                at,
                "is of a kind that this provider does not know; it may be too old for the engine",
            ),
        }
    }

    fn secret(&mut self, object: &mut Struct, at: &PropertyPath) -> Value {
        if self.is_within_secret {
            return self.inner(object, at);
        }
        self.secrets.insert(at.clone());
        self.is_within_secret = true;
        let value = self.inner(object, at);
        self.is_within_secret = false;
        value
    }

    /// What a secret or an output holds. One that holds nothing is not known yet.
    fn inner(&mut self, object: &mut Struct, at: &PropertyPath) -> Value {
        match object.fields.remove("value") {
            Some(value) => self.value(value, at),
            None => Value::Unknown,
        }
    }

    fn failure(&mut self, at: &PropertyPath, reason: &str) -> Value {
        self.failures.push(CheckFailure::new(at.clone(), reason));
        Value::Null
    }
}

fn text(value: &Wire) -> Option<&str> {
    match &value.kind {
        Some(Kind::StringValue(text)) => Some(text),
        _ => None,
    }
}

/// Turns properties into the engine's values, marking what is at a secret path.
pub fn encode(values: &PropertyMap, secrets: &BTreeSet<PropertyPath>) -> Struct {
    let fields = values.iter();
    Struct {
        fields: fields
            .map(|(name, value)| (name.clone(), marked(value, &PropertyPath::property(name), secrets)))
            .collect(),
    }
}

impl Properties {
    /// Turns values that have come of these into the engine's. What was secret stays so.
    pub fn encode_what_came_of_them(&self, values: &PropertyMap) -> Struct {
        encode(values, &self.secrets_in(values))
    }

    /// What is secret in values that have come of these. A list that is not as it was, or a place that is no longer there, makes
    /// all of its property secret: the secret may be anywhere in it.
    pub fn secrets_in(&self, values: &PropertyMap) -> BTreeSet<PropertyPath> {
        let in_values = |path: &PropertyPath| {
            let is_index = |segment: &Segment| matches!(segment, Segment::Index(_));
            let list = path.segments().iter().position(is_index);
            let list = list.map(|depth| path.up_to(depth));
            let is_as_it_was = list.is_none_or(|list| list.get(values) == list.get(&self.values));
            if is_as_it_was && path.get(values).is_some() {
                path.clone()
            } else {
                PropertyPath::property(path.first().unwrap_or_default())
            }
        };
        self.secrets.iter().map(in_values).collect()
    }
}

/// A value with the marks of what is secret in it.
fn marked(value: &Value, at: &PropertyPath, secrets: &BTreeSet<PropertyPath>) -> Wire {
    if secrets.contains(at) {
        return secret(wire(value));
    }
    match value {
        Value::List(items) => {
            let items = items.iter().enumerate();
            list(
                items
                    .map(|(index, item)| marked(item, &at.index(index), secrets))
                    .collect(),
            )
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            object(fields.map(|(name, value)| (name.clone(), marked(value, &at.key(name), secrets))))
        }
        _ => wire(value),
    }
}

fn wire(value: &Value) -> Wire {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(*value),
        Value::Number(value) => Kind::NumberValue(*value),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Unknown => Kind::StringValue(UNKNOWN.to_string()),
        Value::List(items) => return list(items.iter().map(wire).collect()),
        Value::Object(fields) => return object(fields.iter().map(|(name, value)| (name.clone(), wire(value)))),
    };
    Wire { kind: Some(kind) }
}

fn list(values: Vec<Wire>) -> Wire {
    Wire {
        kind: Some(Kind::ListValue(ListValue { values })),
    }
}

fn object(fields: impl Iterator<Item = (String, Wire)>) -> Wire {
    Wire {
        kind: Some(Kind::StructValue(Struct {
            fields: fields.collect(),
        })),
    }
}

fn secret(value: Wire) -> Wire {
    let signature = wire(&Value::from(SECRET));
    object([(SIGNATURE.to_string(), signature), ("value".to_string(), value)].into_iter())
}

/// JSON as the engine's value: how some SDKs send configuration that is no string, with specials inside.
pub fn from_json(json: serde_json::Value) -> Wire {
    match json {
        serde_json::Value::Array(items) => list(items.into_iter().map(from_json).collect()),
        serde_json::Value::Object(fields) => object(fields.into_iter().map(|(name, value)| (name, from_json(value)))),
        other => wire(&Value::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn special(signature: &str, fields: &[(&str, Wire)]) -> Wire {
        let fields = fields.iter().map(|(name, value)| ((*name).to_string(), value.clone()));
        let signature = (SIGNATURE.to_string(), wire(&Value::from(signature)));
        object(fields.chain([signature]))
    }

    fn one(value: Wire) -> Struct {
        Struct {
            fields: [("p".to_string(), value)].into(),
        }
    }

    fn decoded(value: Wire) -> (Value, Vec<String>) {
        let properties = decode(Some(one(value))).unwrap();
        let secrets = properties.secrets.iter().map(ToString::to_string).collect();
        (properties.values.get("p").cloned().unwrap_or(Value::Null), secrets)
    }

    fn string(text: &str) -> Wire {
        wire(&Value::from(text))
    }

    #[test]
    fn seven_unknowns_come_in_and_one_goes_out() {
        for unknown in UNKNOWNS {
            assert_eq!(decoded(string(unknown)).0, Value::Unknown);
        }
        assert_eq!(text(&wire(&Value::Unknown)), Some(UNKNOWN));
    }

    #[test]
    fn secrets_are_known_by_their_paths_and_go_back_as_secrets() {
        let inner = special(SECRET, &[("value", string("s"))]);
        let value = object([("list".to_string(), list(vec![string("a"), inner]))].into_iter());
        let sent = one(value);
        let properties = decode(Some(sent.clone())).unwrap();
        let path = PropertyPath::parse("p.list[1]").unwrap();
        assert_eq!(properties.secrets, [path].into());
        assert_eq!(encode(&properties.values, &properties.secrets), sent);
    }

    #[test]
    fn a_secret_within_a_secret_is_one_and_a_secret_that_is_nothing_is_none() {
        let inner = special(SECRET, &[("value", string("s"))]);
        let outer = special(SECRET, &[("value", object([("a".to_string(), inner)].into_iter()))]);
        assert_eq!(decoded(outer).1, ["p"]);
        assert_eq!(
            decoded(special(SECRET, &[("value", wire(&Value::Null))])),
            (Value::Null, vec![])
        );
    }

    #[test]
    fn a_secret_in_a_list_that_has_changed_makes_all_of_it_secret() {
        let list_of = |items: &[&str]| Value::List(items.iter().map(|item| Value::from(*item)).collect());
        let with =
            |items: &[&str]| PropertyMap::from_iter([("p".to_string(), list_of(items)), ("q".to_string(), "x".into())]);
        let known = Properties {
            values: with(&["a", "hidden"]),
            secrets: [PropertyPath::parse("p[1]").unwrap()].into(),
        };
        let plain = |items: &[&str]| list(items.iter().map(|item| string(item)).collect());
        for changed in [&["hidden", "c"][..], &["hidden"], &[]] {
            let encoded = known.encode_what_came_of_them(&with(changed));
            assert_eq!(encoded.fields.get("p"), Some(&secret(plain(changed))), "{changed:?}");
            assert_eq!(encoded.fields.get("q"), Some(&string("x")));
        }
        let encoded = known.encode_what_came_of_them(&known.values);
        assert_eq!(
            encoded.fields.get("p"),
            Some(&list(vec![string("a"), secret(string("hidden"))]))
        );
    }

    #[test]
    fn a_secret_that_has_changed_stays_secret() {
        let with = |text: &str| PropertyMap::from_iter([("p".to_string(), text.into())]);
        let known = Properties {
            values: with("old"),
            secrets: [PropertyPath::property("p")].into(),
        };
        let encoded = known.encode_what_came_of_them(&with("new"));
        assert_eq!(encoded.fields.get("p"), Some(&secret(string("new"))));
    }

    #[test]
    fn a_secret_or_an_output_without_a_value_is_unknown() {
        assert_eq!(decoded(special(SECRET, &[])), (Value::Unknown, vec!["p".to_string()]));
        assert_eq!(decoded(special(OUTPUT, &[])), (Value::Unknown, vec![]));
        let is_secret = wire(&Value::Bool(true));
        let output = special(OUTPUT, &[("value", string("v")), ("secret", is_secret)]);
        assert_eq!(decoded(output), ("v".into(), vec!["p".to_string()]));
    }

    #[test]
    fn a_resource_stands_for_its_id_or_its_urn() {
        let reference = |id: Option<&str>| {
            let mut fields = vec![("urn", string("u"))];
            fields.extend(id.map(|id| ("id", string(id))));
            decoded(special(RESOURCE, &fields)).0
        };
        assert_eq!(reference(Some("i")), "i".into());
        assert_eq!(reference(Some("")), Value::Unknown);
        assert_eq!(reference(None), "u".into());
    }

    #[test]
    fn what_is_no_property_is_a_failure_with_its_path() {
        for value in [
            special(ASSET, &[]),
            special(ARCHIVE, &[]),
            special(BYTES, &[]),
            special("other", &[]),
            Wire { kind: None },
        ] {
            let failures = decode(Some(one(list(vec![value])))).unwrap_err();
            assert_eq!(failures[0].path.to_string(), "p[0]");
        }
    }

    #[test]
    fn nulls_are_left_out_at_the_top() {
        let properties = decode(Some(one(wire(&Value::Null)))).unwrap();
        assert!(properties.values.is_empty());
    }

    #[test]
    fn values_come_back_as_they_went() {
        let json = serde_json::json!({"a": [1.5, true, null, {"b.c": "d"}], "e": "f"});
        let Value::Object(values) = Value::from(json.clone()) else {
            unreachable!()
        };
        let encoded = encode(&values, &BTreeSet::new());
        assert_eq!(
            Wire {
                kind: Some(Kind::StructValue(encoded.clone()))
            },
            from_json(json)
        );
        assert_eq!(decode(Some(encoded)).unwrap().values, values);
    }
}

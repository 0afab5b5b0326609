//! Property maps to the runtime's component values and back: see [`bindery_resource::convert`].

use bindery_resource::convert::{self, ComponentValues};
use bindery_resource::{CheckFailure, PropertyMap};
use wasmtime::component::Val;

pub use bindery_resource::convert::restore_unknown;

use crate::schema::{Float, Integer, RecordType};

/// A record for the guest, and the paths in it that hold placeholders.
pub type Lowered = convert::Lowered<Val>;

/// Turns properties into a record of this type.
///
/// # Errors
/// Every property that is missing, unknown to the type, or of another type.
pub fn lower(ty: &RecordType, properties: &PropertyMap) -> Result<Lowered, Vec<CheckFailure>> {
    convert::lower::<Wasmtime>(ty, properties)
}

/// Turns a guest's record back into properties. Absent options are absent.
///
/// # Errors
/// What was found where the type says something else. A component's types are checked by the runtime, so this means that
/// the type is not the record's.
pub fn lift(ty: &RecordType, record: Val) -> Result<PropertyMap, String> {
    convert::lift::<Wasmtime>(ty, record)
}

/// The values of wasmtime.
struct Wasmtime;

impl ComponentValues for Wasmtime {
    type Val = Val;

    fn bool(value: bool) -> Val {
        Val::Bool(value)
    }

    fn integer(ty: Integer, value: i64) -> Option<Val> {
        Some(match ty {
            Integer::S8 => Val::S8(value.try_into().ok()?),
            Integer::U8 => Val::U8(value.try_into().ok()?),
            Integer::S16 => Val::S16(value.try_into().ok()?),
            Integer::U16 => Val::U16(value.try_into().ok()?),
            Integer::S32 => Val::S32(value.try_into().ok()?),
            Integer::U32 => Val::U32(value.try_into().ok()?),
        })
    }

    fn signed64(value: i64) -> Val {
        Val::S64(value)
    }

    fn unsigned64(value: u64) -> Val {
        Val::U64(value)
    }

    fn number(ty: Float, value: f64) -> Val {
        match ty {
            #[expect(clippy::cast_possible_truncation, reason = "what the guest's type can hold")]
            Float::F32 => Val::Float32(value as f32),
            Float::F64 => Val::Float64(value),
        }
    }

    fn string(value: String) -> Val {
        Val::String(value)
    }

    fn case(name: &str) -> Val {
        Val::Enum(name.to_string())
    }

    fn list(items: Vec<Val>) -> Val {
        Val::List(items)
    }

    fn pair(key: String, value: Val) -> Val {
        Val::Tuple(vec![Val::String(key), value])
    }

    fn option(value: Option<Val>) -> Val {
        Val::Option(value.map(Box::new))
    }

    fn record(fields: Vec<(String, Val)>) -> Val {
        Val::Record(fields)
    }

    fn into_bool(value: Val) -> Option<bool> {
        match value {
            Val::Bool(value) => Some(value),
            _ => None,
        }
    }

    fn into_number(value: Val) -> Option<f64> {
        Some(match value {
            Val::S8(value) => value.into(),
            Val::U8(value) => value.into(),
            Val::S16(value) => value.into(),
            Val::U16(value) => value.into(),
            Val::S32(value) => value.into(),
            Val::U32(value) => value.into(),
            Val::Float32(value) => value.into(),
            Val::Float64(value) => value,
            _ => return None,
        })
    }

    fn into_digits(value: Val) -> Option<String> {
        match value {
            Val::S64(value) => Some(value.to_string()),
            Val::U64(value) => Some(value.to_string()),
            _ => None,
        }
    }

    fn into_string(value: Val) -> Option<String> {
        match value {
            Val::String(text) => Some(text),
            _ => None,
        }
    }

    fn into_case(value: Val) -> Option<String> {
        match value {
            Val::Enum(case) => Some(case),
            _ => None,
        }
    }

    fn into_list(value: Val) -> Option<Vec<Val>> {
        match value {
            Val::List(items) => Some(items),
            _ => None,
        }
    }

    fn into_pair(value: Val) -> Option<(String, Val)> {
        let Val::Tuple(pair) = value else { return None };
        match <[Val; 2]>::try_from(pair) {
            Ok([Val::String(key), value]) => Some((key, value)),
            _ => None,
        }
    }

    fn into_option(value: Val) -> Option<Option<Val>> {
        match value {
            Val::Option(value) => Some(value.map(|value| *value)),
            _ => None,
        }
    }

    fn into_record(value: Val) -> Option<Vec<(String, Val)>> {
        match value {
            Val::Record(fields) => Some(fields),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_resource::{PropertyPath, Value};

    use crate::schema::{Property, PropertyType};

    fn property(name: &str, ty: PropertyType, optional: bool) -> Property {
        Property {
            name: name.to_string(),
            field: heck::AsKebabCase(name).to_string(),
            ty,
            optional,
            docs: None,
        }
    }

    fn volume() -> RecordType {
        let part = RecordType {
            properties: vec![
                property("label", PropertyType::String, true),
                property("start", PropertyType::Integer64 { signed: true }, false),
            ],
            ..RecordType::default()
        };
        RecordType {
            properties: vec![
                property("sizeGb", PropertyType::Integer(Integer::U8), false),
                property("ratio", PropertyType::Number(Float::F64), true),
                property("kind", PropertyType::Enum(vec!["ssd".into(), "hdd".into()]), false),
                property("labels", PropertyType::Map(Box::new(PropertyType::String)), true),
                property("parts", PropertyType::List(Box::new(PropertyType::Record(part))), true),
                property("bootable", PropertyType::Bool, true),
            ],
            ..RecordType::default()
        }
    }

    fn map(json: serde_json::Value) -> PropertyMap {
        match Value::from(json) {
            Value::Object(map) => map,
            _ => panic!("not an object"),
        }
    }

    #[test]
    fn properties_come_back_as_they_went() {
        let properties = map(serde_json::json!({
            "sizeGb": 255, "ratio": 0.5, "kind": "hdd", "labels": {"a.b": "c", "": "d"},
            "parts": [{"start": "-9223372036854775808"}, {"label": "x", "start": "7"}], "bootable": true,
        }));
        let lowered = lower(&volume(), &properties).unwrap();
        assert!(lowered.unknown.is_empty());
        assert_eq!(lift(&volume(), lowered.record).unwrap(), properties);
    }

    #[test]
    fn every_property_that_does_not_fit_is_named_with_its_path() {
        let properties = map(serde_json::json!({
            "sizeGb": 256, "kind": "tape", "labels": {"a": 1}, "parts": [{"start": 7}, {"lable": "x"}], "extra": 1,
        }));
        let failures = lower(&volume(), &properties).unwrap_err();
        let paths: Vec<String> = failures.iter().map(|failure| failure.path.to_string()).collect();
        assert_eq!(
            paths,
            [
                "extra",
                "sizeGb",
                "kind",
                "labels.a",
                "parts[0].start",
                "parts[1].lable",
                "parts[1].start"
            ]
        );
        assert!(failures[1].reason.contains("from 0 to 255"), "{}", failures[1].reason);
        assert!(failures[2].reason.contains("`ssd`, `hdd`"), "{}", failures[2].reason);
    }

    #[test]
    fn null_is_absent() {
        let properties = map(serde_json::json!({"sizeGb": 1, "kind": "ssd", "ratio": null}));
        assert!(lower(&volume(), &properties).is_ok());
        assert!(lower(&volume(), &map(serde_json::json!({"sizeGb": null, "kind": "ssd"}))).is_err());
    }

    #[test]
    fn unknowns_become_placeholders_and_come_back() {
        let mut properties = map(serde_json::json!({"kind": "ssd", "parts": [{"start": "1"}, {}]}));
        properties.insert("sizeGb".into(), Value::Unknown);
        properties.insert("labels".into(), Value::Unknown);
        if let Some(Value::List(parts)) = properties.get_mut("parts") {
            parts[1] = Value::Unknown;
        }
        let lowered = lower(&volume(), &properties).unwrap();
        let paths: Vec<String> = lowered.unknown.iter().map(ToString::to_string).collect();
        assert_eq!(paths, ["sizeGb", "labels", "parts[1]"]);
        let mut lifted = lift(&volume(), lowered.record).unwrap();
        restore_unknown(&mut lifted, &lowered.unknown);
        assert_eq!(lifted.get("sizeGb"), Some(&Value::Unknown));
        assert_eq!(lifted.get("labels"), Some(&Value::Unknown));
        assert_eq!(
            PropertyPath::parse("parts[1]").unwrap().get(&lifted),
            Some(&Value::Unknown)
        );
    }
}

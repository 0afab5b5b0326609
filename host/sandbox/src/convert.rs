//! Property maps to component values and back, by the component's own types. Nothing is dropped and nothing is guessed:
//! what does not fit is a failure with its path.

use bindery_resource::{CheckFailure, PropertyMap, PropertyPath, Value, nearest};
use wasmtime::component::Val;

use crate::schema::{Float, Integer, Property, PropertyType, RecordType};

/// A record for the guest, and the paths in it that hold placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// The record.
    pub record: Val,
    /// What is not known.
    pub unknown: Vec<PropertyPath>,
}

/// Turns properties into a record of this type.
///
/// # Errors
/// Every property that is missing, unknown to the type, or of another type.
pub fn lower(ty: &RecordType, properties: &PropertyMap) -> Result<Lowered, Vec<CheckFailure>> {
    let mut lowering = Lowering::default();
    let record = lowering.record(ty, properties, &PropertyPath::default());
    if lowering.failures.is_empty() {
        Ok(Lowered {
            record,
            unknown: lowering.unknown,
        })
    } else {
        Err(lowering.failures)
    }
}

#[derive(Default)]
struct Lowering {
    unknown: Vec<PropertyPath>,
    failures: Vec<CheckFailure>,
}

impl Lowering {
    fn record(&mut self, ty: &RecordType, properties: &PropertyMap, at: &PropertyPath) -> Val {
        for name in properties.keys().filter(|name| ty.property(name).is_none()) {
            self.failures
                .push(CheckFailure::new(at.key(name), unknown_property(ty, name)));
        }
        let fields = ty.properties.iter().map(|property| {
            let value = self.property(property, properties.get(&property.name), &at.key(&property.name));
            (property.field.clone(), value)
        });
        Val::Record(fields.collect())
    }

    fn property(&mut self, property: &Property, value: Option<&Value>, at: &PropertyPath) -> Val {
        let value = value.filter(|value| **value != Value::Null);
        match (property.optional, value) {
            (true, None) => Val::Option(None),
            (true, Some(Value::Unknown)) => {
                self.unknown.push(at.clone());
                Val::Option(None)
            }
            (true, Some(value)) => Val::Option(Some(Box::new(self.value(&property.ty, value, at)))),
            (false, Some(value)) => self.value(&property.ty, value, at),
            (false, None) => {
                let reason = format!("is required, and missing: expected {}", property.ty.describe());
                self.failures.push(CheckFailure::new(at.clone(), reason));
                placeholder(&property.ty)
            }
        }
    }

    fn value(&mut self, ty: &PropertyType, value: &Value, at: &PropertyPath) -> Val {
        if *value == Value::Unknown {
            self.unknown.push(at.clone());
            return placeholder(ty);
        }
        let lowered = match (ty, value) {
            (PropertyType::Bool, Value::Bool(value)) => Some(Val::Bool(*value)),
            (PropertyType::Integer(integer), Value::Number(value)) => integer_val(*integer, *value),
            (PropertyType::Integer64 { signed }, Value::String(text)) => integer64_val(*signed, text),
            (PropertyType::Number(Float::F64), Value::Number(value)) => Some(Val::Float64(*value)),
            #[expect(clippy::cast_possible_truncation, reason = "what the guest's type can hold")]
            (PropertyType::Number(Float::F32), Value::Number(value)) => Some(Val::Float32(*value as f32)),
            (PropertyType::String, Value::String(text)) => Some(Val::String(text.clone())),
            (PropertyType::Enum(cases), Value::String(text)) if cases.contains(text) => Some(Val::Enum(text.clone())),
            (PropertyType::List(item), Value::List(items)) => Some(Val::List(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, value)| self.value(item, value, &at.index(index)))
                    .collect(),
            )),
            (PropertyType::Map(item), Value::Object(entries)) => Some(Val::List(
                entries
                    .iter()
                    .map(|(key, value)| {
                        Val::Tuple(vec![Val::String(key.clone()), self.value(item, value, &at.key(key))])
                    })
                    .collect(),
            )),
            (PropertyType::Record(record), Value::Object(fields)) => Some(self.record(record, fields, at)),
            _ => None,
        };
        lowered.unwrap_or_else(|| {
            self.failures.push(CheckFailure::new(at.clone(), mismatch(ty, value)));
            placeholder(ty)
        })
    }
}

fn mismatch(ty: &PropertyType, value: &Value) -> String {
    let found = match value {
        Value::Bool(_) | Value::Number(_) => format!("{} (`{value}`)", value.type_name()),
        Value::String(text) if matches!(ty, PropertyType::Enum(_) | PropertyType::Integer64 { .. }) => {
            format!("`{text}`")
        }
        _ => value.type_name().to_string(),
    };
    format!("expected {}, found {found}", ty.describe())
}

fn unknown_property(ty: &RecordType, name: &str) -> String {
    let names = || ty.properties.iter().map(|property| property.name.as_str());
    match nearest(name, names()) {
        Some(near) => format!("is not a property here; did you mean `{near}`?"),
        None => format!(
            "is not a property here; expected one of `{}`",
            names().collect::<Vec<_>>().join("`, `")
        ),
    }
}

fn integer_val(integer: Integer, value: f64) -> Option<Val> {
    let (min, max) = integer.range();
    #[expect(clippy::cast_precision_loss, reason = "32-bit numbers are exact in a double")]
    if value.fract() != 0.0 || value < min as f64 || value > max as f64 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole, and in range")]
    let value = value as i64;
    Some(match integer {
        Integer::S8 => Val::S8(value.try_into().ok()?),
        Integer::U8 => Val::U8(value.try_into().ok()?),
        Integer::S16 => Val::S16(value.try_into().ok()?),
        Integer::U16 => Val::U16(value.try_into().ok()?),
        Integer::S32 => Val::S32(value.try_into().ok()?),
        Integer::U32 => Val::U32(value.try_into().ok()?),
    })
}

fn integer64_val(signed: bool, text: &str) -> Option<Val> {
    if signed {
        text.parse().ok().map(Val::S64)
    } else {
        text.parse().ok().map(Val::U64)
    }
}

/// What stands for a value that is not known.
fn placeholder(ty: &PropertyType) -> Val {
    match ty {
        PropertyType::Bool => Val::Bool(false),
        PropertyType::Integer(integer) => integer_val(*integer, 0.0).unwrap_or(Val::U32(0)),
        PropertyType::Integer64 { signed: true } => Val::S64(0),
        PropertyType::Integer64 { signed: false } => Val::U64(0),
        PropertyType::Number(Float::F32) => Val::Float32(0.0),
        PropertyType::Number(Float::F64) => Val::Float64(0.0),
        PropertyType::String => Val::String(String::new()),
        PropertyType::Enum(cases) => Val::Enum(cases.first().cloned().unwrap_or_default()),
        PropertyType::List(_) | PropertyType::Map(_) => Val::List(Vec::new()),
        PropertyType::Record(record) => Val::Record(
            record
                .properties
                .iter()
                .map(|property| {
                    let value = if property.optional {
                        Val::Option(None)
                    } else {
                        placeholder(&property.ty)
                    };
                    (property.field.clone(), value)
                })
                .collect(),
        ),
    }
}

/// Turns a guest's record back into properties. Absent options are absent.
///
/// # Errors
/// What was found where the type says something else. A component's types are checked by the runtime, so this means that
/// the type is not the record's.
pub fn lift(ty: &RecordType, record: Val) -> Result<PropertyMap, String> {
    let Val::Record(fields) = record else {
        return Err("no record".to_string());
    };
    let mut properties = PropertyMap::new();
    for (field, value) in fields {
        let property = ty
            .properties
            .iter()
            .find(|property| property.field == field)
            .ok_or_else(|| format!("a field `{field}` that its type does not have"))?;
        let value = match value {
            Val::Option(None) if property.optional => continue,
            Val::Option(Some(value)) if property.optional => *value,
            value => value,
        };
        properties.insert(property.name.clone(), lift_value(&property.ty, value)?);
    }
    Ok(properties)
}

fn lift_value(ty: &PropertyType, value: Val) -> Result<Value, String> {
    Ok(match (ty, value) {
        (PropertyType::Bool, Val::Bool(value)) => Value::Bool(value),
        (PropertyType::Integer(_), Val::S8(value)) => Value::Number(value.into()),
        (PropertyType::Integer(_), Val::U8(value)) => Value::Number(value.into()),
        (PropertyType::Integer(_), Val::S16(value)) => Value::Number(value.into()),
        (PropertyType::Integer(_), Val::U16(value)) => Value::Number(value.into()),
        (PropertyType::Integer(_), Val::S32(value)) => Value::Number(value.into()),
        (PropertyType::Integer(_), Val::U32(value)) => Value::Number(value.into()),
        (PropertyType::Integer64 { .. }, Val::S64(value)) => Value::String(value.to_string()),
        (PropertyType::Integer64 { .. }, Val::U64(value)) => Value::String(value.to_string()),
        (PropertyType::Number(_), Val::Float32(value)) => Value::Number(value.into()),
        (PropertyType::Number(_), Val::Float64(value)) => Value::Number(value),
        (PropertyType::String, Val::String(text)) | (PropertyType::Enum(_), Val::Enum(text)) => Value::String(text),
        (PropertyType::List(item), Val::List(items)) => Value::List(
            items
                .into_iter()
                .map(|value| lift_value(item, value))
                .collect::<Result<_, _>>()?,
        ),
        (PropertyType::Map(item), Val::List(entries)) => {
            let mut map = PropertyMap::new();
            for entry in entries {
                let Val::Tuple(entry) = entry else {
                    return Err("a map's entry that is no pair".to_string());
                };
                let Ok([Val::String(key), value]) = <[Val; 2]>::try_from(entry) else {
                    return Err("a map's entry that is no pair".to_string());
                };
                if map.insert(key.clone(), lift_value(item, value)?).is_some() {
                    return Err(format!("a map that has `{key}` twice"));
                }
            }
            Value::Object(map)
        }
        (PropertyType::Record(record), value) => Value::Object(lift(record, value)?),
        (ty, _) => return Err(format!("something else than {}", ty.describe())),
    })
}

/// Puts unknowns back where the guest was given placeholders.
pub fn restore_unknown(properties: &mut PropertyMap, unknown: &[PropertyPath]) {
    for path in unknown {
        set_unknown(properties, path);
    }
}

fn set_unknown(properties: &mut PropertyMap, path: &PropertyPath) {
    use bindery_resource::path::Segment;
    let Some((Segment::Key(first), rest)) = path.segments().split_first() else {
        return;
    };
    let mut here = properties.entry(first.clone()).or_insert(Value::Unknown);
    for segment in rest {
        let inner = match (segment, here) {
            (Segment::Key(name), Value::Object(fields)) => Some(fields.entry(name.clone()).or_insert(Value::Unknown)),
            (Segment::Index(index), Value::List(items)) => items.get_mut(*index),
            _ => None,
        };
        let Some(inner) = inner else { return };
        here = inner;
    }
    *here = Value::Unknown;
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! Property maps to component values and back, by the component's own types. Nothing is dropped and nothing is guessed:
//! what does not fit is a failure with its path. What a component value is, its runtime says ([`ComponentValues`]).

use crate::nearest::nearest;
use crate::path::{PropertyPath, Segment};
use crate::plan::CheckFailure;
use crate::schema::{Float, Integer, Property, PropertyType, RecordType};
use crate::value::{EXACT, PropertyMap, Value};

/// The component values of a runtime: how they are made, and taken apart again. What takes one apart gives none where it is
/// something else.
#[expect(missing_docs, reason = "the names say it")]
pub trait ComponentValues {
    type Val;
    fn bool(value: bool) -> Self::Val;
    /// None where the number is not one of this type.
    fn integer(ty: Integer, value: i64) -> Option<Self::Val>;
    fn signed64(value: i64) -> Self::Val;
    fn unsigned64(value: u64) -> Self::Val;
    fn number(ty: Float, value: f64) -> Self::Val;
    fn string(value: String) -> Self::Val;
    fn case(name: &str) -> Self::Val;
    fn list(items: Vec<Self::Val>) -> Self::Val;
    fn pair(key: String, value: Self::Val) -> Self::Val;
    fn option(value: Option<Self::Val>) -> Self::Val;
    /// Fields by the component's names.
    fn record(fields: Vec<(String, Self::Val)>) -> Self::Val;

    fn into_bool(value: Self::Val) -> Option<bool>;
    /// A whole or floating-point number that a double holds.
    fn into_number(value: Self::Val) -> Option<f64>;
    /// The digits of a 64-bit integer.
    fn into_digits(value: Self::Val) -> Option<String>;
    fn into_string(value: Self::Val) -> Option<String>;
    fn into_case(value: Self::Val) -> Option<String>;
    fn into_list(value: Self::Val) -> Option<Vec<Self::Val>>;
    fn into_pair(value: Self::Val) -> Option<(String, Self::Val)>;
    fn into_option(value: Self::Val) -> Option<Option<Self::Val>>;
    fn into_record(value: Self::Val) -> Option<Vec<(String, Self::Val)>>;
}

/// A record for the guest, and the paths in it that hold placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered<Val> {
    /// The record.
    pub record: Val,
    /// What is not known.
    pub unknown: Vec<PropertyPath>,
}

/// Turns properties into a record of this type.
///
/// # Errors
/// Every property that is missing, unknown to the type, or of another type.
pub fn lower<V: ComponentValues>(
    ty: &RecordType,
    properties: &PropertyMap,
) -> Result<Lowered<V::Val>, Vec<CheckFailure>> {
    let mut lowering = Lowering::default();
    let record = lowering.record::<V>(ty, properties, &PropertyPath::default());
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
    fn record<V: ComponentValues>(&mut self, ty: &RecordType, properties: &PropertyMap, at: &PropertyPath) -> V::Val {
        for name in properties.keys().filter(|name| ty.property(name).is_none()) {
            self.failures
                .push(CheckFailure::new(at.key(name), unknown_property(ty, name)));
        }
        let fields = ty.properties.iter().map(|property| {
            let value = self.property::<V>(property, properties.get(&property.name), &at.key(&property.name));
            (property.field.clone(), value)
        });
        V::record(fields.collect())
    }

    fn property<V: ComponentValues>(
        &mut self,
        property: &Property,
        value: Option<&Value>,
        at: &PropertyPath,
    ) -> V::Val {
        let value = value.filter(|value| **value != Value::Null);
        match (property.optional, value) {
            (true, None) => V::option(None),
            (true, Some(Value::Unknown)) => {
                self.unknown.push(at.clone());
                V::option(None)
            }
            (true, Some(value)) => V::option(Some(self.value::<V>(&property.ty, value, at))),
            (false, Some(value)) => self.value::<V>(&property.ty, value, at),
            (false, None) => {
                let reason = format!("is required, and missing: expected {}", property.ty.describe());
                self.failures.push(CheckFailure::new(at.clone(), reason));
                placeholder::<V>(&property.ty)
            }
        }
    }

    fn value<V: ComponentValues>(&mut self, ty: &PropertyType, value: &Value, at: &PropertyPath) -> V::Val {
        if *value == Value::Unknown {
            self.unknown.push(at.clone());
            return placeholder::<V>(ty);
        }
        let lowered = match (ty, value) {
            (PropertyType::Bool, Value::Bool(value)) => Some(V::bool(*value)),
            (PropertyType::Integer(integer), Value::Number(value)) => {
                whole(*value).and_then(|value| V::integer(*integer, value))
            }
            (PropertyType::Integer64 { signed: true }, Value::String(text)) => text.parse().ok().map(V::signed64),
            (PropertyType::Integer64 { signed: false }, Value::String(text)) => text.parse().ok().map(V::unsigned64),
            (PropertyType::Number(float), Value::Number(value)) => Some(V::number(*float, *value)),
            (PropertyType::String, Value::String(text)) => Some(V::string(text.clone())),
            (PropertyType::Enum(cases), Value::String(text)) if cases.contains(text) => Some(V::case(text)),
            (PropertyType::List(item), Value::List(items)) => {
                let items = items.iter().enumerate();
                let items = items.map(|(index, value)| self.value::<V>(item, value, &at.index(index)));
                Some(V::list(items.collect()))
            }
            (PropertyType::Map(item), Value::Object(entries)) => {
                let entries = entries.iter();
                let pairs =
                    entries.map(|(key, value)| V::pair(key.clone(), self.value::<V>(item, value, &at.key(key))));
                Some(V::list(pairs.collect()))
            }
            (PropertyType::Record(record), Value::Object(fields)) => Some(self.record::<V>(record, fields, at)),
            _ => None,
        };
        lowered.unwrap_or_else(|| {
            self.failures.push(CheckFailure::new(at.clone(), mismatch(ty, value)));
            placeholder::<V>(ty)
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

/// A whole number that a double holds exactly.
fn whole(value: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "whole, and small enough")]
    let number = (value.fract() == 0.0 && value.abs() < EXACT).then_some(value as i64);
    number
}

/// What stands for a value that is not known.
fn placeholder<V: ComponentValues>(ty: &PropertyType) -> V::Val {
    match ty {
        PropertyType::Bool => V::bool(false),
        PropertyType::Integer(integer) => V::integer(*integer, 0).unwrap_or_else(|| V::signed64(0)),
        PropertyType::Integer64 { signed: true } => V::signed64(0),
        PropertyType::Integer64 { signed: false } => V::unsigned64(0),
        PropertyType::Number(float) => V::number(*float, 0.0),
        PropertyType::String => V::string(String::new()),
        PropertyType::Enum(cases) => V::case(cases.first().map(String::as_str).unwrap_or_default()),
        PropertyType::List(_) | PropertyType::Map(_) => V::list(Vec::new()),
        PropertyType::Record(record) => {
            let fields = record.properties.iter().map(|property| {
                let value = if property.optional {
                    V::option(None)
                } else {
                    placeholder::<V>(&property.ty)
                };
                (property.field.clone(), value)
            });
            V::record(fields.collect())
        }
    }
}

/// Turns a guest's record back into properties. Absent options are absent.
///
/// # Errors
/// What was found where the type says something else. A component's types are checked by the runtime, so this means that
/// the type is not the record's.
pub fn lift<V: ComponentValues>(ty: &RecordType, record: V::Val) -> Result<PropertyMap, String> {
    let fields = V::into_record(record).ok_or("no record")?;
    let mut properties = PropertyMap::new();
    for (field, value) in fields {
        let property = ty
            .properties
            .iter()
            .find(|property| property.field == field)
            .ok_or_else(|| format!("a field `{field}` that its type does not have"))?;
        let value = if property.optional {
            match V::into_option(value).ok_or("something else than an option")? {
                Some(value) => value,
                None => continue,
            }
        } else {
            value
        };
        properties.insert(property.name.clone(), lift_value::<V>(&property.ty, value)?);
    }
    Ok(properties)
}

fn lift_value<V: ComponentValues>(ty: &PropertyType, value: V::Val) -> Result<Value, String> {
    let lifted = match ty {
        PropertyType::Bool => V::into_bool(value).map(Value::Bool),
        PropertyType::Integer(_) | PropertyType::Number(_) => V::into_number(value).map(Value::Number),
        PropertyType::Integer64 { .. } => V::into_digits(value).map(Value::String),
        PropertyType::String => V::into_string(value).map(Value::String),
        PropertyType::Enum(_) => V::into_case(value).map(Value::String),
        PropertyType::List(item) => match V::into_list(value) {
            Some(items) => {
                let items = items.into_iter().map(|value| lift_value::<V>(item, value));
                Some(Value::List(items.collect::<Result<_, _>>()?))
            }
            None => None,
        },
        PropertyType::Map(item) => match V::into_list(value) {
            Some(entries) => {
                let mut map = PropertyMap::new();
                for entry in entries {
                    let (key, value) = V::into_pair(entry).ok_or("a map's entry that is no pair")?;
                    if map.insert(key.clone(), lift_value::<V>(item, value)?).is_some() {
                        return Err(format!("a map that has `{key}` twice"));
                    }
                }
                Some(Value::Object(map))
            }
            None => None,
        },
        PropertyType::Record(record) => Some(Value::Object(lift::<V>(record, value)?)),
    };
    lifted.ok_or_else(|| format!("something else than {}", ty.describe()))
}

/// Puts unknowns back where the guest was given placeholders.
pub fn restore_unknown(properties: &mut PropertyMap, unknown: &[PropertyPath]) {
    for path in unknown {
        set_unknown(properties, path);
    }
}

fn set_unknown(properties: &mut PropertyMap, path: &PropertyPath) {
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

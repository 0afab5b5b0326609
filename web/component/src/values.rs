//! Component values on their way into the generated types: JSON by the fields' names in Rust, which serde reads into them.

use bindery_resource::convert::ComponentValues;
use bindery_resource::schema::{Float, Integer};
use heck::{ToKebabCase, ToSnakeCase, ToUpperCamelCase};
use serde_json::{Map, Value};

/// JSON as the generated types take it.
pub struct Generated;

impl ComponentValues for Generated {
    type Val = Value;

    fn bool(value: bool) -> Value {
        Value::Bool(value)
    }

    fn integer(ty: Integer, value: i64) -> Option<Value> {
        let (min, max) = ty.range();
        (min..=max).contains(&value).then(|| value.into())
    }

    fn signed64(value: i64) -> Value {
        value.into()
    }

    fn unsigned64(value: u64) -> Value {
        value.into()
    }

    fn number(_: Float, value: f64) -> Value {
        value.into()
    }

    fn string(value: String) -> Value {
        Value::String(value)
    }

    fn case(name: &str) -> Value {
        Value::String(name.to_upper_camel_case())
    }

    fn list(items: Vec<Value>) -> Value {
        Value::Array(items)
    }

    fn pair(key: String, value: Value) -> Value {
        Value::Array(vec![Value::String(key), value])
    }

    fn option(value: Option<Value>) -> Value {
        value.unwrap_or_default()
    }

    fn record(fields: Vec<(String, Value)>) -> Value {
        let fields = fields.into_iter();
        Value::Object(fields.map(|(name, value)| (name.to_snake_case(), value)).collect())
    }

    fn into_bool(value: Value) -> Option<bool> {
        value.as_bool()
    }

    fn into_number(value: Value) -> Option<f64> {
        value.as_f64()
    }

    fn into_digits(value: Value) -> Option<String> {
        value.is_number().then(|| value.to_string())
    }

    fn into_string(value: Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    fn into_case(value: Value) -> Option<String> {
        value.as_str().map(ToKebabCase::to_kebab_case)
    }

    fn into_list(value: Value) -> Option<Vec<Value>> {
        match value {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    fn into_pair(value: Value) -> Option<(String, Value)> {
        match <[Value; 2]>::try_from(Self::into_list(value)?) {
            Ok([Value::String(key), value]) => Some((key, value)),
            _ => None,
        }
    }

    fn into_option(value: Value) -> Option<Option<Value>> {
        Some(Some(value).filter(|value| !value.is_null()))
    }

    fn into_record(value: Value) -> Option<Vec<(String, Value)>> {
        match value {
            Value::Object(fields) => {
                let fields: Map<String, Value> = fields;
                Some(
                    fields
                        .into_iter()
                        .map(|(name, value)| (name.to_kebab_case(), value))
                        .collect(),
                )
            }
            _ => None,
        }
    }
}

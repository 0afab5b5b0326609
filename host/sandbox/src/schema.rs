//! The properties of a resource type, read from the component's own types. Types that no engine has are refused by name.

use thiserror::Error;
use wasmtime::component::types::{self, Type};

pub use bindery_resource::schema::*;

use crate::token::property_name;

/// A type that has no counterpart in an engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{path}` is {ty}, which is no type of a property")]
pub struct UnsupportedType {
    /// Where: the fields from the record inward.
    pub path: String,
    /// What was found.
    pub ty: &'static str,
}

/// Reads a record's fields.
///
/// # Errors
/// When a field's type has no counterpart in an engine, or two fields have one name there.
pub fn record_type(record: &types::Record, path: &str) -> Result<RecordType, UnsupportedType> {
    let mut properties: Vec<Property> = Vec::new();
    for field in record.fields() {
        let path = format!("{path}.{}", field.name);
        let (ty, optional) = match field.ty {
            Type::Option(option) => (property_type(&option.ty(), &path)?, true),
            ty => (property_type(&ty, &path)?, false),
        };
        let name = property_name(field.name);
        if properties.iter().any(|property| property.name == name) {
            return Err(UnsupportedType {
                path,
                ty: "a second field of one property's name",
            });
        }
        properties.push(Property {
            name,
            field: field.name.to_string(),
            ty,
            optional,
            docs: None,
        });
    }
    Ok(RecordType {
        properties,
        ..RecordType::default()
    })
}

fn property_type(ty: &Type, path: &str) -> Result<PropertyType, UnsupportedType> {
    let unsupported = |ty| {
        Err(UnsupportedType {
            path: path.to_string(),
            ty,
        })
    };
    Ok(match ty {
        Type::Bool => PropertyType::Bool,
        Type::S8 => PropertyType::Integer(Integer::S8),
        Type::U8 => PropertyType::Integer(Integer::U8),
        Type::S16 => PropertyType::Integer(Integer::S16),
        Type::U16 => PropertyType::Integer(Integer::U16),
        Type::S32 => PropertyType::Integer(Integer::S32),
        Type::U32 => PropertyType::Integer(Integer::U32),
        Type::S64 => PropertyType::Integer64 { signed: true },
        Type::U64 => PropertyType::Integer64 { signed: false },
        Type::Float32 => PropertyType::Number(Float::F32),
        Type::Float64 => PropertyType::Number(Float::F64),
        Type::String => PropertyType::String,
        Type::Enum(cases) => PropertyType::Enum(cases.names().map(String::from).collect()),
        Type::List(list) => match list.ty() {
            Type::Tuple(entry) => match entry.types().collect::<Vec<_>>().as_slice() {
                [Type::String, value] => PropertyType::Map(Box::new(property_type(value, &format!("{path}[…]"))?)),
                _ => return unsupported("a list of tuples"),
            },
            item => PropertyType::List(Box::new(property_type(&item, &format!("{path}[]"))?)),
        },
        Type::Record(record) => PropertyType::Record(record_type(record, path)?),
        Type::Char => return unsupported("a `char`"),
        Type::Tuple(_) => return unsupported("a `tuple`"),
        Type::Variant(_) => return unsupported("a `variant`"),
        Type::Option(_) => return unsupported("an `option` that is not a field of a record"),
        Type::Result(_) => return unsupported("a `result`"),
        Type::Flags(_) => return unsupported("`flags`"),
        Type::Own(_) | Type::Borrow(_) => return unsupported("a resource handle"),
        _ => return unsupported("a type of asynchronous or future interfaces"),
    })
}

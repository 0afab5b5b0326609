//! The properties of a resource type, read from the component's own types. Types that no engine has are refused by name.

use thiserror::Error;
use wasmtime::component::types::{self, Type};

use crate::token::{InterfaceId, property_name};

/// A record: a resource's inputs or outputs, a configuration, or a nested object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordType {
    /// Its fields, in the component's order.
    pub properties: Vec<Property>,
    /// What it is for: see [`Component::documented`](crate::Component::documented).
    pub docs: Option<String>,
    /// What the component calls it; as the docs.
    pub name: Option<TypeName>,
}

/// A record's own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeName {
    /// The interface that it is defined in.
    pub interface: InterfaceId,
    /// Its name there: `kebab-case`.
    pub name: String,
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// The engine's name: `lowerCamelCase`.
    pub name: String,
    /// The component's name: `kebab-case`.
    pub field: String,
    /// Its type.
    pub ty: PropertyType,
    /// Whether it may be absent.
    pub optional: bool,
    /// What it is for: see [`Component::documented`](crate::Component::documented).
    pub docs: Option<String>,
}

/// A type that both engines and components have.
#[derive(Debug, Clone, PartialEq)]
pub enum PropertyType {
    /// A boolean.
    Bool,
    /// A whole number of at most 32 bits.
    Integer(Integer),
    /// A 64-bit integer: a string of digits to the engine. True if it has a sign.
    Integer64 {
        /// Whether it may be negative.
        signed: bool,
    },
    /// A floating-point number.
    Number(Float),
    /// Text.
    String,
    /// One of these strings.
    Enum(Vec<String>),
    /// A list.
    List(Box<PropertyType>),
    /// A map from strings.
    Map(Box<PropertyType>),
    /// An object.
    Record(RecordType),
}

/// The whole-number types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Integer {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
}

impl Integer {
    /// The smallest and the largest.
    pub fn range(self) -> (i64, i64) {
        match self {
            Self::S8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0, u8::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
        }
    }
}

/// The floating-point types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Float {
    F32,
    F64,
}

impl PropertyType {
    /// What a person calls it, with an article.
    pub fn describe(&self) -> String {
        match self {
            Self::Bool => "a boolean".to_string(),
            Self::Integer(integer) => {
                let (min, max) = integer.range();
                format!("a whole number from {min} to {max}")
            }
            Self::Integer64 { signed: true } => "a 64-bit integer, written as a string of digits".to_string(),
            Self::Integer64 { signed: false } => {
                "a 64-bit integer of at least 0, written as a string of digits".to_string()
            }
            Self::Number(_) => "a number".to_string(),
            Self::String => "a string".to_string(),
            Self::Enum(cases) => format!("one of `{}`", cases.join("`, `")),
            Self::List(_) => "a list".to_string(),
            Self::Map(_) => "a map".to_string(),
            Self::Record(_) => "an object".to_string(),
        }
    }
}

/// A type that has no counterpart in an engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{path}` is {ty}, which is no type of a property")]
pub struct UnsupportedType {
    /// Where: the fields from the record inward.
    pub path: String,
    /// What was found.
    pub ty: &'static str,
}

impl RecordType {
    /// Reads a record's fields.
    ///
    /// # Errors
    /// When a field's type has no counterpart in an engine, or two fields have one name there.
    pub fn of(record: &types::Record, path: &str) -> Result<Self, UnsupportedType> {
        let mut properties: Vec<Property> = Vec::new();
        for field in record.fields() {
            let path = format!("{path}.{}", field.name);
            let (ty, optional) = match field.ty {
                Type::Option(option) => (PropertyType::of(&option.ty(), &path)?, true),
                ty => (PropertyType::of(&ty, &path)?, false),
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
        Ok(Self {
            properties,
            ..Self::default()
        })
    }

    /// The property of a name.
    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }
}

impl PropertyType {
    fn of(ty: &Type, path: &str) -> Result<Self, UnsupportedType> {
        let unsupported = |ty| {
            Err(UnsupportedType {
                path: path.to_string(),
                ty,
            })
        };
        Ok(match ty {
            Type::Bool => Self::Bool,
            Type::S8 => Self::Integer(Integer::S8),
            Type::U8 => Self::Integer(Integer::U8),
            Type::S16 => Self::Integer(Integer::S16),
            Type::U16 => Self::Integer(Integer::U16),
            Type::S32 => Self::Integer(Integer::S32),
            Type::U32 => Self::Integer(Integer::U32),
            Type::S64 => Self::Integer64 { signed: true },
            Type::U64 => Self::Integer64 { signed: false },
            Type::Float32 => Self::Number(Float::F32),
            Type::Float64 => Self::Number(Float::F64),
            Type::String => Self::String,
            Type::Enum(cases) => Self::Enum(cases.names().map(String::from).collect()),
            Type::List(list) => match list.ty() {
                Type::Tuple(entry) => match entry.types().collect::<Vec<_>>().as_slice() {
                    [Type::String, value] => Self::Map(Box::new(Self::of(value, &format!("{path}[…]"))?)),
                    _ => return unsupported("a list of tuples"),
                },
                item => Self::List(Box::new(Self::of(&item, &format!("{path}[]"))?)),
            },
            Type::Record(record) => Self::Record(RecordType::of(record, path)?),
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
}

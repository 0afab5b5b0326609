//! The properties of a resource type: its inputs or outputs, as a component's own types say them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::token::InterfaceId;
use crate::value::{PropertyMap, Value};

/// A record: a resource's inputs or outputs, a configuration, or a nested object.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecordType {
    /// Its fields, in the component's order.
    pub properties: Vec<Property>,
    /// What it is for: only where the component carries docs and they were asked for.
    #[serde(skip)]
    pub docs: Option<String>,
    /// What the component calls it; as the docs.
    #[serde(skip)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// The engine's name: `lowerCamelCase`.
    pub name: String,
    /// The component's name: `kebab-case`.
    pub field: String,
    /// Its type.
    pub ty: PropertyType,
    /// Whether it may be absent.
    pub optional: bool,
    /// What it is for: only where the component carries docs and they were asked for.
    #[serde(skip)]
    pub docs: Option<String>,
}

/// A type that both engines and components have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

impl RecordType {
    /// The property of a name.
    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }
}

/// What there is to know of a provider without running it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderTypes {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its configuration.
    pub config: RecordType,
    /// The configuration keys that its hosts answer.
    pub host_keys: Vec<String>,
    /// Its resource types by token.
    pub types: BTreeMap<String, InputsAndOutputs>,
}

/// The properties of a resource type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputsAndOutputs {
    /// Its inputs.
    pub args: RecordType,
    /// Its outputs, `id` among them.
    pub state: RecordType,
}

/// What a create or an update of checked inputs will give, as far as it is known beforehand: the inputs, and unknowns for what
/// only the result says.
pub fn outputs_beforehand(args: &RecordType, state: &RecordType, inputs: &PropertyMap) -> PropertyMap {
    let mut outputs = inputs.clone();
    for property in state.properties.iter().filter(|property| property.name != "id") {
        let is_input = args.property(&property.name).is_some();
        // An input that is absent and yet always an output has a default that is not known yet.
        if !outputs.contains_key(&property.name) && (!is_input || !property.optional) {
            outputs.insert(property.name.clone(), Value::Unknown);
        }
    }
    outputs
}

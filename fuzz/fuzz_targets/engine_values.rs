//! The engine's values: decoded or refused, and sent back as what they were.
#![no_main]

// The bridge is a program; this is its module as it stands.
#[allow(dead_code)]
#[path = "../../host/pulumi/src/properties.rs"]
mod properties;

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};

/// What the engine marks its special values with, and what unknowns come as.
const WORDS: [&str; 12] = [
    "4dabf18193072939515e22adb298388d",
    "1b47061264138c4ac30d75fd1eb44270",
    "d0e6a833031e9bbcd3f4e8bde6ca49a4",
    "5cf8f73096256a8f31e491e813e4eb8e",
    "c44067f5952c0a294b673a41bacd8c17",
    "0def7320c3a5731c473e5ecbe6d01bc7",
    "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "value",
    "secret",
    "id",
    "urn",
];

#[derive(Debug)]
struct Sent(Struct);

impl<'a> Arbitrary<'a> for Sent {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(object(bytes, 4)?))
    }
}

fn text(bytes: &mut Unstructured<'_>) -> Result<String> {
    if bytes.ratio(2, 3)? {
        Ok((*bytes.choose(&WORDS)?).to_string())
    } else {
        String::arbitrary(bytes)
    }
}

fn object(bytes: &mut Unstructured<'_>, depth: usize) -> Result<Struct> {
    let mut object = Struct::default();
    for _ in 0..bytes.int_in_range(0..=4)? {
        object.fields.insert(text(bytes)?, value(bytes, depth)?);
    }
    Ok(object)
}

fn value(bytes: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let kind = match bytes.int_in_range(0..=if depth == 0 { 4 } else { 6 })? {
        0 => return Ok(Value { kind: None }),
        1 => Kind::NullValue(0),
        2 => Kind::BoolValue(bool::arbitrary(bytes)?),
        3 => Kind::NumberValue(f64::arbitrary(bytes)?),
        4 => Kind::StringValue(text(bytes)?),
        5 => {
            let count = bytes.int_in_range(0..=3)?;
            let values = (0..count).map(|_| value(bytes, depth - 1)).collect::<Result<_>>()?;
            Kind::ListValue(ListValue { values })
        }
        _ => Kind::StructValue(object(bytes, depth - 1)?),
    };
    Ok(Value { kind: Some(kind) })
}

fuzz_target!(|sent: Sent| {
    let Ok(decoded) = properties::decode(Some(sent.0)) else {
        return;
    };
    let again = properties::decode(Some(properties::encode(&decoded.values, &decoded.secrets))).unwrap();
    // As text: a number that is none equals nothing, and itself neither.
    assert_eq!(format!("{again:?}"), format!("{decoded:?}"));
});

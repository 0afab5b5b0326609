//! Properties by a component's types, whatever they are: lowered or refused, and lifted to what lowers to the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

use bindery_resource::{PropertyMap, Value};
use bindery_sandbox::convert::{lift, lower, restore_unknown};
use bindery_sandbox::schema::{Float, Integer, Property, PropertyType, RecordType};
use proptest::prelude::*;

/// Names that the type has, and one that it has not.
const NAMES: [&str; 8] = [
    "sizeGb", "ratio", "kind", "labels", "parts", "start", "bootable", "other",
];

fn property(name: &str, ty: PropertyType) -> Property {
    Property {
        name: name.to_string(),
        field: name.replace("Gb", "-gb"),
        ty,
        optional: name != "start",
        docs: None,
    }
}

fn volume() -> RecordType {
    let part = RecordType {
        properties: vec![
            property("start", PropertyType::Integer64 { signed: true }),
            property("kind", PropertyType::String),
        ],
        ..RecordType::default()
    };
    RecordType {
        properties: vec![
            property("sizeGb", PropertyType::Integer(Integer::U8)),
            property("ratio", PropertyType::Number(Float::F64)),
            property("kind", PropertyType::Enum(vec!["ssd".into(), "other".into()])),
            property("labels", PropertyType::Map(Box::new(PropertyType::String))),
            property("parts", PropertyType::List(Box::new(PropertyType::Record(part)))),
            property("bootable", PropertyType::Bool),
        ],
        ..RecordType::default()
    }
}

fn some_text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(NAMES.to_vec()).prop_map(String::from),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>(),
    ]
}

fn some_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(Value::Unknown),
        any::<bool>().prop_map(Value::Bool),
        any::<u8>().prop_map(|number| Value::Number(number.into())),
        any::<f64>().prop_map(Value::Number),
        some_text().prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::vec((some_text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Values that mostly fit, so that what is lowered is looked at as well as what is refused.
fn some_properties() -> impl Strategy<Value = PropertyMap> {
    let part = (any::<i64>(), prop::option::of(any::<String>())).prop_map(|(start, kind)| {
        let mut part = PropertyMap::from_iter([("start".to_string(), Value::String(start.to_string()))]);
        part.extend(kind.map(|kind| ("kind".to_string(), Value::String(kind))));
        Value::Object(part)
    });
    let labels = prop::collection::hash_map(any::<String>(), any::<String>(), 0..3).prop_map(|labels| {
        let labels = labels.into_iter().map(|(key, text)| (key, Value::String(text)));
        Value::Object(labels.collect())
    });
    let fitting = (
        any::<u8>().prop_map(|number| Value::Number(number.into())),
        any::<f64>().prop_map(Value::Number),
        labels,
        prop::collection::vec(prop_oneof![4 => part, 1 => Just(Value::Unknown)], 0..4).prop_map(Value::List),
    );
    let fitting = fitting.prop_map(|(size, ratio, labels, parts)| {
        let named = [("sizeGb", size), ("ratio", ratio), ("labels", labels), ("parts", parts)];
        named.map(|(name, value)| (name.to_string(), value))
    });
    let chosen = prop::sample::subsequence(vec![0, 1, 2, 3], 0..=4);
    let other = prop::collection::vec((some_text(), some_value()), 0..2);
    (fitting, chosen, other).prop_map(|(fitting, chosen, other)| {
        let chosen = chosen.into_iter().map(|index| fitting[index].clone());
        chosen.chain(other).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_lowered_is_lifted_to_what_lowers_to_the_same(properties in some_properties()) {
        let ty = volume();
        if let Ok(lowered) = lower(&ty, &properties) {
            let mut lifted = lift(&ty, lowered.record.clone()).unwrap();
            restore_unknown(&mut lifted, &lowered.unknown);
            let again = lower(&ty, &lifted).unwrap();
            // As text: a number that is none does not equal itself.
            prop_assert_eq!(format!("{again:?}"), format!("{lowered:?}"));
            for (name, value) in properties.iter().filter(|(_, value)| **value != Value::Null) {
                prop_assert!(lifted.contains_key(name), "{name} = {value:?} was dropped");
            }
        }
    }
}

//! What the two built-in components are, found without running them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

use std::collections::BTreeSet;

use bindery_sandbox::schema::PropertyType;
use bindery_tests::{BUILT_IN, RUNTIME};
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{Resolve, WorldId, WorldItem};

fn world(bytes: &[u8]) -> (Resolve, WorldId) {
    match decode(bytes).unwrap() {
        DecodedWasm::Component(resolve, world) => (resolve, world),
        DecodedWasm::WitPackage(..) => panic!("a WIT package, not a component"),
    }
}

/// `interface#function` for every function and resource that a component imports.
fn imported(bytes: &[u8]) -> BTreeSet<String> {
    let (resolve, world) = world(bytes);
    let mut imported = BTreeSet::new();
    for (key, item) in &resolve.worlds[world].imports {
        let name = resolve.name_world_key(key);
        match item {
            WorldItem::Interface { id, .. } => {
                let interface = &resolve.interfaces[*id];
                imported.extend(interface.functions.keys().map(|function| format!("{name}#{function}")));
            }
            _ => {
                imported.insert(name);
            }
        }
    }
    imported
}

fn interfaces(names: &BTreeSet<String>) -> BTreeSet<&str> {
    names.iter().filter_map(|name| name.split('@').next()).collect()
}

#[test]
fn the_planner_imports_no_function() {
    assert_eq!(imported(bindery_components::PLANNER), BTreeSet::new());
}

#[test]
fn the_provider_imports_http_and_what_std_needs_and_nothing_else() {
    let imported = imported(bindery_components::PROVIDER);
    assert_eq!(
        interfaces(&imported).into_iter().collect::<Vec<_>>(),
        [
            "wasi:cli/environment",
            "wasi:cli/exit",
            "wasi:cli/stderr",
            "wasi:cli/stdin",
            "wasi:cli/stdout",
            "wasi:cli/terminal-stderr",
            "wasi:cli/terminal-stdin",
            "wasi:cli/terminal-stdout",
            "wasi:http/outgoing-handler",
            "wasi:http/types",
            "wasi:io/poll",
            "wasi:io/streams",
            "wasi:random/insecure-seed",
        ]
    );
}

#[test]
fn both_components_are_of_the_worlds_in_the_wit_folder() {
    let mut resolve = Resolve::default();
    let (package, _) = resolve
        .push_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../wit"))
        .unwrap();
    for (bytes, name) in [
        (bindery_components::PLANNER, "planner"),
        (bindery_components::PROVIDER, "provider"),
    ] {
        let expected = &resolve.worlds[resolve.packages[package].worlds[name]];
        let expected: BTreeSet<String> = expected.exports.keys().map(|key| resolve.name_world_key(key)).collect();
        let (resolve, world) = world(bytes);
        let found: BTreeSet<String> = resolve.worlds[world]
            .exports
            .keys()
            .map(|key| resolve.name_world_key(key))
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn the_provider_says_its_name_its_types_and_their_properties() {
    let component = &*BUILT_IN;
    assert_eq!(
        (component.name.as_str(), component.version.as_str()),
        ("bindery", "0.32.0")
    );
    assert_eq!(component.contract, "1.0.0");
    let tokens: Vec<String> = component.types.keys().map(ToString::to_string).collect();
    assert_eq!(
        tokens,
        [
            "bindery:compute/v1:BackendBucketIamMember",
            "bindery:datamigration/v1:MigrationJobIamMember",
            "bindery:networkservices/v1:EdgeCacheOriginIamBinding",
        ]
    );
    let member = component
        .resource_type("bindery:compute/v1:BackendBucketIamMember")
        .unwrap();
    let names = |ty: &bindery_sandbox::schema::RecordType| -> Vec<String> {
        ty.properties.iter().map(|property| property.name.clone()).collect()
    };
    assert_eq!(names(&member.args), ["member", "name", "role", "condition", "project"]);
    assert_eq!(
        names(&member.state),
        ["member", "name", "role", "condition", "project", "etag", "id"]
    );
    assert!(member.args.property("condition").unwrap().optional);
    assert!(!member.args.property("member").unwrap().optional);
    let binding = component
        .resource_type("bindery:networkservices/v1:EdgeCacheOriginIamBinding")
        .unwrap();
    assert_eq!(
        binding.args.property("members").unwrap().ty,
        PropertyType::List(Box::new(PropertyType::String))
    );
}

#[test]
fn every_property_has_its_docs() {
    for component in [
        BUILT_IN.documented(),
        RUNTIME.load(bindery_components::PLANNER).unwrap().documented(),
    ] {
        for property in &component.config.properties {
            assert!(property.docs.is_some(), "config: {}", property.name);
        }
        for ty in component.types.values() {
            assert!(
                ty.docs.as_deref().is_some_and(|docs| docs.starts_with("Grants ")),
                "{}",
                ty.token
            );
            for property in ty.args.properties.iter().chain(&ty.state.properties) {
                assert!(property.docs.is_some(), "{}: {}", ty.token, property.name);
                if let PropertyType::Record(record) = &property.ty {
                    assert!(
                        record.properties.iter().all(|field| field.docs.is_some()),
                        "{}: {}",
                        ty.token,
                        property.name
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_not_a_provider_is_refused_with_the_reason() {
    let refused = |bytes: &[u8]| RUNTIME.load(bytes).unwrap_err().to_string();
    assert!(refused(b"not wasm").contains("not a WebAssembly component"));
    assert!(refused(b"\0asm\x01\0\0\0").contains("not a WebAssembly component"));
    // A component that exports nothing.
    assert!(refused(b"\0asm\x0d\0\x01\0").contains("not a provider"));
}

//! The schemas of two unrelated components, as they were looked at and kept. `BLESS=1` records them anew.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that finds something else fails"
)]

use std::path::Path;

use bindery_credentials::{KEYS, Key};
use bindery_sandbox::Runtime;
use bindery_sandbox::package::Package;
use bindery_schema::Served;
use serde_json::Value;

fn schema(component: &[u8], manifest: &str, name: &str, host_keys: &[Key]) -> Value {
    let package = Package::built_in(&Runtime::new().unwrap(), component, manifest).unwrap();
    let served = Served {
        component: &package.component,
        name,
        environment: &package.manifest.environment,
        host_keys,
    };
    served.schema()
}

fn is_as_kept(name: &str, schema: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.json"));
    let text = format!("{schema:#}\n");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(
        kept == text,
        "{} differs; look, and keep it with BLESS=1:\n{text}",
        path.display()
    );
}

fn built_in(name: &str) -> Value {
    schema(bindery_components::PROVIDER, bindery_components::MANIFEST, name, &KEYS)
}

#[test]
fn the_built_in_provider() {
    is_as_kept("bindery", &built_in("bindery"));
}

#[test]
fn another_provider() {
    is_as_kept("acme", &schema(bindery_test_guests::ACME, "", "acme", &[]));
}

#[test]
fn it_has_what_programs_were_written_against() {
    let schema = built_in("google-native");
    let reference = "#/types/google-native:iam%2Fv1:Condition";
    for (token, who) in [
        ("datamigration/v1:MigrationJobIamMember", "member"),
        ("networkservices/v1:EdgeCacheOriginIamBinding", "members"),
        ("compute/v1:BackendBucketIamMember", "member"),
    ] {
        let resource = &schema["resources"][format!("google-native:{token}")];
        assert_eq!(
            resource["requiredInputs"],
            serde_json::json!([who, "name", "role"]),
            "{token}"
        );
        assert_eq!(
            resource["required"],
            serde_json::json!(["etag", who, "name", "project", "role"]),
            "{token}"
        );
        assert_eq!(resource["inputProperties"]["condition"]["$ref"], reference);
        assert!(resource["properties"]["id"].is_null(), "every resource has an id");
        for (_, property) in resource["inputProperties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{property}");
        }
    }
    let condition = &schema["types"]["google-native:iam/v1:Condition"];
    assert_eq!(condition["required"], serde_json::json!(["expression", "title"]));
    assert!(schema["description"].as_str().unwrap().contains("preview"));
    assert_eq!(schema["version"], "0.32.0");
}

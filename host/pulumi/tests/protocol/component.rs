//! Any component of the contract is a provider: one beside the link is served in the place of the built-in one.

use bindery_test_guests::ACME;
use serde_json::json;

use crate::harness::*;

const VOLUME: &str = "acme:disks/v2:Volume";
const ALLOWED: &str = "[[origin]]\nurl = \"https://disks.acme.example\"\n";

fn acme(manifest: &str) -> Start {
    Start {
        name: "acme",
        beside: vec![
            ("acme.wasm", ACME.to_vec()),
            ("acme.toml", manifest.as_bytes().to_vec()),
        ],
        ..Start::default()
    }
}

fn volume() -> serde_json::Value {
    json!({
        "name": "data", "sizeGb": 10, "encrypted": true, "kind": "ssd", "quotaBytes": "9007199254740993",
        "partitions": [{"startByte": "0", "bootable": true}], "labels": {"a.b": "c"},
    })
}

#[tokio::test]
async fn a_component_beside_the_link_is_served() {
    let mut plugin = Plugin::start(acme(ALLOWED)).await;
    assert_eq!(
        plugin.client.get_plugin_info(()).await.unwrap().into_inner().version,
        "1.4.0"
    );
    // Some SDKs send what is no string as JSON.
    let news = json!({"region": "north", "maxGb": "1000"});
    assert_eq!(plugin.check_config(news.clone()).await.unwrap(), news);
    assert_eq!(
        plugin.check_config(json!({"maxGb": 1000.0})).await.unwrap(),
        json!({"maxGb": 1000.0})
    );
    for wrong in [
        json!({"maxGb": "many"}),
        json!({"maxGb": "1.5"}),
        json!({"accessToken": "t"}),
        json!({"region": "moon"}),
    ] {
        plugin.check_config(wrong).await.unwrap_err();
    }
    plugin.configure_with(news).await.unwrap();
    let made = plugin.make(VOLUME, "data", &volume()).await;
    assert_eq!(made.id, "volumes/data");
    let too_large = json!({"name": "data", "sizeGb": 2000, "encrypted": true, "kind": "ssd", "partitions": []});
    let failures = plugin
        .try_check(VOLUME, "data", &json!({}), &too_large)
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(
        (failures[0].property.as_str(), failures[0].reason.as_str()),
        ("sizeGb", "must be from 1 to 1000")
    );
    let mut nested = volume();
    nested["partitions"][0]["startByte"] = json!("-1");
    let failures = plugin
        .try_check(VOLUME, "data", &json!({}), &nested)
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(
        failures[0].property, "partitions",
        "the engine finds a value at the top only"
    );
    assert_eq!(failures[0].reason, "`partitions[0].startByte`: must not be negative");
    plugin.delete(&made).await;
}

#[tokio::test]
async fn it_may_call_what_the_file_beside_it_lists_and_no_more() {
    let mut plugin = Plugin::start(acme("")).await;
    let failures = plugin.check_config(json!({})).await.unwrap_err();
    let said = &failures[0];
    assert!(
        said.contains("acme.toml") && said.contains("url = \"https://disks.acme.example\""),
        "{said}"
    );
    let error = plugin.configure_with(json!({})).await.unwrap_err();
    assert!(
        error.message().contains("url = \"https://disks.acme.example\""),
        "{error}"
    );
}

#[tokio::test]
async fn a_component_that_cannot_be_used_is_named_before_there_is_a_port() {
    for (files, said) in [
        (
            vec![("acme.wasm", b"no component".to_vec())],
            "acme.wasm cannot be used: not a WebAssembly component",
        ),
        (
            vec![("acme.wasm", ACME.to_vec()), ("acme.toml", b"[[origins]]".to_vec())],
            "acme.toml cannot be used",
        ),
    ] {
        let start = Start {
            name: "acme",
            beside: files,
            ..Start::default()
        };
        let (_folder, program) = link(&start);
        let output = command(&program, &start)
            .stderr(std::process::Stdio::piped())
            .output()
            .unwrap();
        assert!(!output.status.success());
        assert_eq!(output.stdout, b"");
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains(said), "{printed}");
    }
}

#[tokio::test]
async fn the_schema_is_the_components_under_the_links_name() {
    for (start, name, token) in [
        (acme(ALLOWED), "acme", VOLUME),
        (Start::default(), "bindery", MEMBER),
        (
            Start {
                name: "google-native",
                ..Start::default()
            },
            "google-native",
            "google-native:compute/v1:BackendBucketIamMember",
        ),
    ] {
        let mut plugin = Plugin::start(start).await;
        let request = pulumi_gestalt_proto::pulumi::pulumirpc::GetSchemaRequest::default();
        let schema = plugin.client.get_schema(request).await.unwrap().into_inner().schema;
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        assert_eq!(schema["name"], name);
        assert!(schema["resources"][token].is_object(), "{schema}");
    }
}

//! What no engine should send ends in an error, and the program goes on.

use prost_types::{Struct, Value as Wire};
use pulumi_gestalt_proto::pulumi::pulumirpc::{CheckRequest, CreateRequest, DiffRequest, InvokeRequest, ReadRequest};
use serde_json::json;
use tonic::Code;

use crate::harness::*;

fn without_a_kind() -> Struct {
    Struct {
        fields: [("member".to_string(), Wire { kind: None })].into(),
    }
}

#[tokio::test]
async fn before_it_is_configured_nothing_is_done() {
    let mut plugin = Plugin::start(Start::default()).await;
    let error = plugin.try_check(MEMBER, "m", &json!({}), &json!({})).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains("Configure"), "{error}");
}

#[tokio::test]
async fn malformed_values_are_errors() {
    let mut plugin = Plugin::configured().await;
    let check = CheckRequest {
        urn: urn(MEMBER, "m"),
        news: Some(without_a_kind()),
        ..CheckRequest::default()
    };
    let response = plugin.client.check(check).await.unwrap().into_inner();
    assert_eq!(response.failures[0].property, "member");
    let diff = DiffRequest {
        urn: urn(MEMBER, "m"),
        olds: Some(without_a_kind()),
        ..DiffRequest::default()
    };
    assert_eq!(
        plugin.client.diff(diff).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    let create = CreateRequest {
        urn: urn(MEMBER, "m"),
        properties: Some(without_a_kind()),
        ..CreateRequest::default()
    };
    assert_eq!(
        plugin.client.create(create).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    for value in [
        json!({SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": "x"}),
        json!({SIGNATURE: "new"}),
    ] {
        let failures = plugin
            .try_check(MEMBER, "m", &json!({}), &json!({"member": value}))
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(failures[0].property, "member");
    }
    plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
}

#[tokio::test]
async fn every_property_that_is_missing_or_wrong_is_named() {
    let mut plugin = Plugin::configured().await;
    let wrong = json!({"member": 7, "nme": "logs", "condition": {"title": "t"}});
    let failures = plugin
        .try_check(MEMBER, "m", &json!({}), &wrong)
        .await
        .unwrap()
        .unwrap_err();
    let said: Vec<String> = failures
        .iter()
        .map(|failure| format!("{}: {}", failure.property, failure.reason))
        .collect();
    let all = said.join("\n");
    for expected in [
        "member: expected a string, found a number",
        "nme: is not a property here; did you mean `name`?",
        "name: is required, and missing",
        "role: is required, and missing",
        "condition: `condition.expression`: is required, and missing",
    ] {
        assert!(all.contains(expected), "{expected} in\n{all}");
    }
}

#[tokio::test]
async fn what_there_is_not_is_said() {
    let mut plugin = Plugin::configured().await;
    let token = "bindery:compute/v1:BackendBucketIamMembr";
    let error = plugin.try_check(token, "m", &json!({}), &json!({})).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(
        error.message().contains(&format!("did you mean `{MEMBER}`?")),
        "{error}"
    );
    let read = ReadRequest {
        urn: "no urn".to_string(),
        ..ReadRequest::default()
    };
    assert_eq!(
        plugin.client.read(read).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(
        plugin.client.invoke(InvokeRequest::default()).await.unwrap_err().code(),
        Code::Unimplemented
    );
    // A state that lacks a field says so, and what to do.
    let made = plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
    let mut outputs = made.outputs.clone();
    outputs.as_object_mut().unwrap().remove("project");
    let inputs = made.inputs.clone();
    let error = plugin
        .try_diff(&Made { outputs, ..made }, &inputs, &[])
        .await
        .unwrap_err();
    assert!(
        error.message().contains("`project`") && error.message().contains("pulumi import"),
        "{error}"
    );
}

#[tokio::test]
async fn a_huge_message_is_answered() {
    let mut plugin = Plugin::configured().await;
    let huge = "x".repeat(8 << 20);
    let failures = plugin
        .try_check(MEMBER, "m", &json!({}), &member("roles/one", &huge))
        .await;
    assert!(!matches!(failures, Ok(Ok(_))));
    let mut deep = json!("x");
    for _ in 0..90 {
        deep = json!([deep]);
    }
    let answer = plugin
        .try_check(MEMBER, "m", &json!({}), &json!({"member": deep}))
        .await;
    assert!(!matches!(answer, Ok(Ok(_))));
    plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
}

#[tokio::test]
async fn an_unknown_call_is_not_implemented() {
    use tonic::codegen::http::uri::PathAndQuery;
    let mut plugin = Plugin::configured().await;
    let mut grpc = tonic::client::Grpc::new(plugin.channel.clone());
    grpc.ready().await.unwrap();
    let path = PathAndQuery::from_static("/pulumirpc.ResourceProvider/List");
    let codec: tonic_prost::ProstCodec<(), ()> = tonic_prost::ProstCodec::default();
    let error = grpc.unary(tonic::Request::new(()), path, codec).await.unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
}

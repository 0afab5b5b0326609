//! What may be configured, and where a credential does not go.

use pulumi_gestalt_proto::pulumi::pulumirpc::LogSeverity;
use serde_json::json;
use tonic::Code;

use crate::harness::*;

#[tokio::test]
async fn a_credential_is_used_and_not_written_down() {
    let mut plugin = Plugin::start(Start::default()).await;
    let news = json!({"accessToken": "ya29.secret", "project": "home", "version": "0.32.0"});
    let kept = plugin.check_config(news).await.unwrap();
    assert_eq!(kept, json!({"project": "home", "version": "0.32.0"}));
}

#[tokio::test]
async fn what_the_machine_says_is_written_down() {
    let mut plugin = Plugin::start(Start {
        environment: variables(&[("GOOGLE_CLOUD_PROJECT", "from-env"), ("GOOGLE_REGION", "us-east1")]),
        ..Start::default()
    })
    .await;
    let kept = plugin.check_config(json!({"region": "us-west1"})).await.unwrap();
    assert_eq!(kept, json!({"project": "from-env", "region": "us-west1"}));
}

#[tokio::test]
async fn every_key_that_cannot_be_accepted_is_named_with_what_to_do() {
    let mut plugin = Plugin::start(Start::default()).await;
    for (news, property, reason, advice) in [
        (json!({"projct": "x"}), "projct", "did you mean `project`?", "rm "),
        (
            json!({"zone": "x"}),
            "zone",
            "is no configuration key of `bindery`",
            "rm ",
        ),
        (json!({"policyMode": "all"}), "policyMode", "`merge`, `replace`", "set "),
        (json!({"project": 7}), "project", "expected a string", "set "),
        (
            json!({"computeEndpoint": "http://example.com"}),
            "computeEndpoint",
            "is not encrypted",
            "set ",
        ),
        (
            json!({"computeEndpoint": "not an origin"}),
            "computeEndpoint",
            "is not an origin",
            "set ",
        ),
        (
            json!({"credentials": "{}"}),
            "credentials",
            "has no `type`",
            "set --secret ",
        ),
        (
            json!({"impersonateServiceAccountDelegates": ["a@b.c"]}),
            "impersonateServiceAccountDelegates",
            "`impersonateServiceAccount`, which is not set",
            "set ",
        ),
        (
            json!({"accessToken": "a\nb"}),
            "accessToken",
            "cannot carry",
            "set --secret ",
        ),
        (
            json!({"accessToken": 7}),
            "accessToken",
            "expected a text",
            "set --secret ",
        ),
    ] {
        let said = &plugin.check_config(news.clone()).await.unwrap_err()[0];
        let advice = format!("pulumi config {advice}bindery:{property}");
        assert!(said.starts_with(&format!("`{property}`: ")), "{said}");
        assert!(said.contains(reason) && said.contains(&advice), "{said}");
        let error = plugin.configure_with(news).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(
            error.message().contains(reason) && error.message().contains(&advice),
            "{error}"
        );
    }
}

#[tokio::test]
async fn no_message_has_a_secret_of_the_configuration() {
    let mut plugin = Plugin::start(Start::default()).await;
    for key in ["project", "policyMode", "computeEndpoint", "accessToken", "credentials"] {
        let news = json!({key: secret(&json!("Hidden Value!\n"))});
        let error = plugin.configure_with(news).await.unwrap_err();
        assert!(!error.message().to_lowercase().contains("hidden"), "{error}");
        assert!(error.message().contains(key), "{error}");
    }
    let said = plugin
        .check_config(json!({"credentials": "Hidden Value!"}))
        .await
        .unwrap_err();
    assert!(!said[0].contains("Hidden"), "{said:?}");
}

#[tokio::test]
async fn what_is_not_known_yet_keeps_the_engine_from_going_on_without_it() {
    let mut plugin = Plugin::start(Start::default()).await;
    let news = json!({
        "project": "3eeb2bf0-c639-47a8-9e75-3b44932eb421", "accessToken": UNKNOWN, "policyMode": UNKNOWN,
        "computeEndpoint": UNKNOWN,
    });
    let kept = plugin.check_config(news).await.unwrap();
    let known = json!({"project": UNKNOWN, "accessToken": secret(&json!(UNKNOWN)), "policyMode": UNKNOWN, "computeEndpoint": UNKNOWN});
    assert_eq!(kept, known);
}

#[tokio::test]
async fn nothing_is_the_same_as_a_key_that_is_absent() {
    let mut plugin = Plugin::start(Start {
        environment: variables(&[("GOOGLE_PROJECT", "from-env")]),
        ..Start::default()
    })
    .await;
    let news = json!({"project": null, "region": null, "__internal": {"pluginDownloadURL": "x"}});
    assert_eq!(plugin.check_config(news).await.unwrap(), json!({"project": "from-env"}));
}

#[tokio::test]
async fn a_configuration_that_fails_leaves_none_behind() {
    let mut plugin = Plugin::configured().await;
    plugin.configure_with(json!({"policyMode": "all"})).await.unwrap_err();
    let error = plugin.try_check(MEMBER, "m", &json!({}), &json!({})).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn one_process_has_one_configuration_in_a_run() {
    let mut plugin = Plugin::configured().await;
    let mut client = plugin.client.clone();
    let mut configure = async |project: &str| {
        let request = pulumi_gestalt_proto::pulumi::pulumirpc::ConfigureRequest {
            urn: Some(urn("pulumi:providers:bindery", "other")),
            args: Some(fields(&json!({"project": project}))),
            ..Default::default()
        };
        client.configure(request).await.map(drop)
    };
    let error = configure("elsewhere").await.unwrap_err();
    assert!(error.message().contains("different configurations"), "{error}");
    // The first one's is still in force.
    plugin
        .check(MEMBER, "m", &json!({}), &member("roles/one", "user:a@x.com"))
        .await;
    plugin.client.cancel(()).await.unwrap();
    configure("elsewhere").await.unwrap();
}

#[tokio::test]
async fn a_program_that_was_written_for_google_native_brings_its_keys() {
    let mut plugin = Plugin::start(Start {
        name: "google-native",
        ..Start::default()
    })
    .await;
    let info = plugin.client.get_plugin_info(()).await.unwrap().into_inner();
    assert_eq!(info.version, "0.32.0", "the version that the published SDKs ask for");
    let news = json!({"project": "home", "zone": "z", "partnerName": "p", "disablePartnerName": "true", "appendUserAgent": "a"});
    assert_eq!(plugin.check_config(news.clone()).await.unwrap(), news);
    let warned = |key: &str| {
        let mut logs = plugin.logs.all().into_iter();
        logs.any(|log| log.severity() == LogSeverity::Warning && log.message.contains(&format!("google-native:{key}")))
    };
    for key in ["zone", "partnerName", "disablePartnerName"] {
        assert!(warned(key), "{key}");
    }
    assert!(!warned("project") && !warned("appendUserAgent"));
    let token = "google-native:compute/v1:BackendBucketIamMember";
    plugin.configure(news).await.unwrap();
    plugin.make(token, "m", &member("roles/one", "user:a@x.com")).await;
    assert_eq!(plugin.emulator.members(BUCKET, "roles/one"), ["user:a@x.com"]);
    let error = plugin.try_check(MEMBER, "m", &json!({}), &json!({})).await.unwrap_err();
    assert!(error.message().contains("it has `google-native:compute"), "{error}");
}

/// What a service that wants a credential is answered with, under a configuration.
async fn refused(environment: Vec<(&'static str, &'static str)>, checked: serde_json::Value) -> String {
    let mut plugin = Plugin::start(Start {
        environment: variables(&environment),
        ..Start::default()
    })
    .await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            assert!(!String::from_utf8_lossy(&request[..read]).contains("ya29"));
            let body =
                r#"{"error": {"code": 401, "message": "Request had no credential.", "status": "UNAUTHENTICATED"}}"#;
            let head =
                "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ";
            let answer = format!("{head}{}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let mut news = json!({"project": "home", "computeEndpoint": origin});
    for (key, value) in checked.as_object().unwrap() {
        news[key] = value.clone();
    }
    let kept = plugin.check_config(news).await.unwrap();
    plugin.configure_with(kept).await.unwrap();
    let inputs = plugin
        .check(MEMBER, "m", &json!({}), &member("roles/one", "user:a@x.com"))
        .await;
    let error = plugin.try_create(MEMBER, "m", &inputs, false, 0.0).await.unwrap_err();
    assert_eq!(error.code(), Code::Unauthenticated, "{error}");
    assert!(!error.message().contains("ya29"));
    error.message().to_string()
}

#[tokio::test]
async fn an_endpoint_without_a_credential_is_named_with_what_to_do() {
    let said = refused(vec![], json!({})).await;
    assert!(said.contains("BINDERY_CREDENTIAL_ORIGINS"), "{said}");
}

#[tokio::test]
async fn the_credential_comes_from_the_configuration_the_stack_or_the_environment() {
    for (environment, checked) in [
        (vec![], json!({"accessToken": "ya29.secret"})),
        (vec![("PULUMI_CONFIG", r#"{"accessToken": "ya29.secret"}"#)], json!({})),
        (vec![("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.secret")], json!({})),
    ] {
        // There is one, and it is not sent to a service on this machine.
        let said = refused(environment, checked).await;
        assert!(
            said.contains("gets no credential") && said.contains("BINDERY_CREDENTIAL_ORIGINS"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn texts_are_accepted_where_an_engine_sends_texts_only() {
    let mut plugin = Plugin::start(Start::default()).await;
    let origin = plugin.emulator.origin();
    let request = pulumi_gestalt_proto::pulumi::pulumirpc::ConfigureRequest {
        variables: [("project", "home"), ("computeEndpoint", origin.as_str())]
            .map(|(key, value)| (format!("bindery:config:{key}"), value.to_string()))
            .into(),
        ..Default::default()
    };
    plugin.client.configure(request).await.unwrap();
    plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
}

//! Every source of credentials, against services that accept only what was given out. Over TLS, with the roots of the platform.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bindery_tests::cloud::Cloud;
use hyper::{StatusCode, Version};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::harness::{MEMBER, Plugin, Start, member};

/// The plugin where a cloud is the cloud, with these further variables and keys.
async fn configured(cloud: &Cloud, variables: &[(&str, &str)], keys: Value) -> Plugin {
    let mut environment = cloud.environment();
    environment.extend(crate::harness::variables(variables));
    let start = Start {
        environment,
        ..Start::default()
    };
    let mut plugin = Plugin::start(start).await;
    let mut args = json!({"project": "home", "computeEndpoint": cloud.origin});
    for (key, value) in keys.as_object().unwrap() {
        args[key] = value.clone();
    }
    plugin.configure_with(args).await.unwrap();
    plugin
}

async fn grant(plugin: &mut Plugin, name: &str) -> Result<(), Status> {
    let inputs = member(&format!("roles/{name}"), &format!("user:{name}@x.com"));
    let inputs = plugin.check(MEMBER, name, &json!({}), &inputs).await;
    plugin.try_create(MEMBER, name, &inputs, false, 60.0).await.map(drop)
}

fn user() -> Value {
    json!({
        "type": "authorized_user", "client_id": "client", "client_secret": "hidden-client", "refresh_token": "hidden-refresh",
    })
}

/// A service account's key, made for this test.
fn service_account() -> Value {
    let key = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
    json!({
        "type": "service_account", "client_email": "robot@home.iam.gserviceaccount.com", "private_key_id": "k1",
        "private_key": key.serialize_pem(), "project_id": "home", "universe_domain": "googleapis.com",
    })
}

fn claims(authorization: &str) -> Value {
    let payload = authorization.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

#[tokio::test]
async fn an_access_token_is_sent_as_it_is_with_project_and_user_agent() {
    let cloud = Cloud::start().await;
    cloud.accept("ya29.own");
    let keys = json!({"accessToken": "ya29.own", "quotaProject": "billed", "appendUserAgent": "team/1"});
    let mut plugin = configured(&cloud, &[], keys).await;
    grant(&mut plugin, "ann").await.unwrap();
    assert_eq!(cloud.members(), ["user:ann@x.com"]);
    for request in cloud.arrived("IamPolicy") {
        assert_eq!(request.header("authorization"), "Bearer ya29.own");
        assert_eq!(request.header("x-goog-user-project"), "billed");
        assert!(request.header("user-agent").ends_with(" team/1"));
        assert_eq!(request.version, Version::HTTP_2);
    }
    assert_eq!(cloud.given(), 0);
}

#[tokio::test]
async fn a_user_who_has_signed_in_gets_one_token_for_many_calls() {
    let cloud = Cloud::start().await;
    // In the place where the cloud's own tools keep it, named by a variable, as the text of a variable, and as a key.
    let file = cloud.file("user.json", &user().to_string());
    let home = cloud.folder.path().join(".config/gcloud");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("application_default_credentials.json"), user().to_string()).unwrap();
    let (home, text) = (cloud.folder.path().display().to_string(), user().to_string());
    for (variables, keys) in [
        (vec![("HOME", home.as_str())], json!({})),
        (vec![("GOOGLE_APPLICATION_CREDENTIALS", file.as_str())], json!({})),
        (vec![("GOOGLE_CREDENTIALS", text.as_str())], json!({})),
        (vec![], json!({"credentials": file})),
        (vec![], json!({"credentials": text})),
    ] {
        let before = cloud.given();
        let mut plugin = configured(&cloud, &variables, keys.clone()).await;
        for name in ["ann", "bob", "cem"] {
            grant(&mut plugin, name).await.unwrap();
        }
        assert_eq!(cloud.given(), before + 1, "{variables:?} {keys}");
        let asked = cloud.arrived("oauth2.googleapis.com/token").pop().unwrap();
        assert!(asked.body.contains("hidden-refresh"), "{}", asked.body);
    }
}

#[tokio::test]
async fn a_service_account_signs_for_its_scopes() {
    let cloud = Cloud::start().await;
    let keys = json!({"credentials": service_account().to_string(), "scopes": ["https://scope.example/one"]});
    let mut plugin = configured(&cloud, &[], keys).await;
    grant(&mut plugin, "ann").await.unwrap();
    let request = cloud.arrived("IamPolicy").remove(0);
    let claims = claims(request.header("authorization"));
    assert_eq!(claims["iss"], "robot@home.iam.gserviceaccount.com");
    assert_eq!(claims["scope"], "https://scope.example/one");
    assert_eq!(cloud.given(), 0, "nobody was asked");
}

#[tokio::test]
async fn acting_as_a_service_account_goes_through_its_delegates() {
    let cloud = Cloud::start().await;
    cloud.accept("ya29.own");
    let acting = json!({
        "impersonateServiceAccount": "robot@home.iam.gserviceaccount.com",
        "impersonateServiceAccountDelegates": "[\"d1@x.com\", \"d2@x.com\"]", "scopes": "https://scope.example/one",
    });
    for source in [
        json!({"accessToken": "ya29.own"}),
        json!({"credentials": user().to_string()}),
    ] {
        let mut keys = acting.clone();
        for (key, value) in source.as_object().unwrap() {
            keys[key] = value.clone();
        }
        let mut plugin = configured(&cloud, &[], keys).await;
        grant(&mut plugin, "ann").await.unwrap();
        let asked = cloud.arrived(":generateAccessToken").pop().unwrap();
        assert!(
            asked
                .path
                .starts_with("iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/robot@home"),
            "{}",
            asked.path
        );
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        let prefix = "projects/-/serviceAccounts/";
        let delegates: Vec<&str> = body["delegates"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let names: Vec<&str> = delegates.iter().map(|name| name.trim_start_matches(prefix)).collect();
        assert_eq!(names, ["d1@x.com", "d2@x.com"]);
        assert_eq!(body["scope"], json!(["https://scope.example/one"]));
        let sent = cloud.arrived("IamPolicy").pop().unwrap();
        assert_eq!(
            sent.header("authorization"),
            format!("Bearer ya29.given-{}", cloud.given())
        );
    }
}

#[tokio::test]
async fn an_impersonated_account_in_a_file_and_an_external_one_are_asked_for_where_they_say() {
    let cloud = Cloud::start().await;
    let url = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/robot@home.iam:generateAccessToken";
    let impersonated = json!({
        "type": "impersonated_service_account", "service_account_impersonation_url": url, "source_credentials": user(),
    });
    let mut plugin = configured(&cloud, &[], json!({"credentials": impersonated.to_string()})).await;
    grant(&mut plugin, "ann").await.unwrap();
    assert_eq!(cloud.arrived(":generateAccessToken").len(), 1);
    let subject = cloud.file("subject", "hidden-subject");
    let external = json!({
        "type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "https://sts.googleapis.com/v1/token",
        "credential_source": {"file": subject},
    });
    let mut plugin = configured(&cloud, &[], json!({"credentials": external.to_string()})).await;
    grant(&mut plugin, "bob").await.unwrap();
    let asked = cloud.arrived("sts.googleapis.com/v1/token").pop().unwrap();
    assert!(asked.body.contains("hidden-subject"), "{}", asked.body);
}

#[tokio::test]
async fn without_anything_else_the_metadata_server_is_asked() {
    let cloud = Cloud::start().await;
    let variables = [("GCE_METADATA_HOST", cloud.metadata.as_str())];
    let mut plugin = configured(&cloud, &variables, json!({})).await;
    grant(&mut plugin, "ann").await.unwrap();
    let asked = cloud.arrived("service-accounts/default/token").pop().unwrap();
    assert_eq!(asked.header("metadata-flavor"), "Google");
    assert_eq!(cloud.given(), 1);
}

#[tokio::test]
async fn a_token_that_is_refused_is_replaced_once_for_all_calls() {
    let cloud = Cloud::start().await;
    let mut plugin = configured(&cloud, &[], json!({"credentials": user().to_string()})).await;
    grant(&mut plugin, "ann").await.unwrap();
    assert_eq!(cloud.given(), 1);
    cloud.revoke();
    let names: Vec<String> = (0..8).map(|number| format!("n{number}")).collect();
    let mut checked = Vec::new();
    for name in &names {
        let mut inputs = member("roles/many", &format!("user:{name}@x.com"));
        // Each on a target of its own, so that they are as many requests.
        inputs["name"] = json!(format!("bucket-{name}"));
        checked.push((name, plugin.check(MEMBER, name, &json!({}), &inputs).await));
    }
    let all = checked.iter().map(|(name, inputs)| {
        let mut client = plugin.client.clone();
        let request = pulumi_gestalt_proto::pulumi::pulumirpc::CreateRequest {
            urn: crate::harness::urn(MEMBER, name),
            r#type: MEMBER.to_string(),
            properties: Some(crate::harness::fields(inputs)),
            ..Default::default()
        };
        async move { client.create(request).await }
    });
    for created in futures_util::future::join_all(all).await {
        created.unwrap();
    }
    assert_eq!(cloud.given(), 2);
    // One that refuses whatever comes is not asked for ever.
    cloud.revoke();
    let error = grant(&mut plugin, "bob").await.unwrap_err();
    assert_eq!(error.code(), Code::Unauthenticated, "{error}");
    assert!(error.message().contains("authorized user"), "{error}");
    assert_eq!(cloud.given(), 2);
}

#[tokio::test]
async fn a_token_is_asked_for_again_where_that_may_help_and_ahead_of_its_end() {
    let cloud = Cloud::start().await;
    cloud.fail(&[StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS]);
    // It is replaced four minutes before its end: two seconds from now.
    cloud.lifetime(242);
    let mut plugin = configured(&cloud, &[], json!({"credentials": user().to_string()})).await;
    grant(&mut plugin, "ann").await.unwrap();
    let first = cloud.given();
    let begun = Instant::now();
    while cloud.given() == first {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody asked again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // While it was, no request waited or failed: the next one has it already.
    grant(&mut plugin, "bob").await.unwrap();
}

#[tokio::test]
async fn an_error_says_which_source_was_tried_and_what_to_do_and_no_secret() {
    let cloud = Cloud::start().await;
    let unanswered = [("GCE_METADATA_HOST", "127.0.0.1:1")];
    let sources = [
        (
            &[][..],
            json!({"credentials": user().to_string()}),
            "no credential from the authorized user of `credentials`",
            "gcloud auth application-default login",
        ),
        (
            &unanswered[..],
            json!({}),
            "no credential from the metadata server",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
        (
            &[][..],
            json!({"accessToken": "ya29.hidden", "impersonateServiceAccount": "robot@home.iam"}),
            "acting as `robot@home.iam`",
            "roles/iam.serviceAccountTokenCreator",
        ),
    ];
    let mut said = BTreeSet::new();
    for (variables, keys, source, advice) in sources {
        cloud.fail(&[StatusCode::BAD_REQUEST; 20]);
        let mut plugin = configured(&cloud, variables, keys).await;
        let error = grant(&mut plugin, "ann").await.unwrap_err();
        assert!(
            error.message().contains(source) && error.message().contains(advice),
            "{error}"
        );
        assert!(!error.message().contains("hidden"), "{error}");
        said.insert(error.message().to_string());
        assert!(cloud.arrived("IamPolicy").is_empty(), "nothing is sent without one");
        assert!(!plugin.logs.has("hidden"));
    }
    assert_eq!(said.len(), 3);
}

#[tokio::test]
async fn a_service_that_the_platform_does_not_trust_is_sent_nothing() {
    let cloud = Cloud::start().await;
    let stranger = Cloud::start().await;
    let roots = stranger.roots().display().to_string();
    let variables = [("SSL_CERT_FILE", roots.as_str())];
    let mut plugin = configured(&cloud, &variables, json!({"accessToken": "ya29.own"})).await;
    let inputs = plugin
        .check(MEMBER, "m", &json!({}), &member("roles/one", "user:a@x.com"))
        .await;
    let error = plugin.try_create(MEMBER, "m", &inputs, false, 2.0).await.unwrap_err();
    assert!(error.message().to_lowercase().contains("certificate"), "{error}");
    assert!(cloud.arrived("").is_empty());
}

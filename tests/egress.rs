//! What a guest may send, and where: real requests of a real guest.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

use bindery_sandbox::{Limits, Tenant};
use bindery_tests::{Server, UNRULY, context, properties, tenant};
use serde_json::json;

const PROBE: &str = "unruly:test/v1:Probe";

async fn fetch(tenant: &Tenant, url: &str, headers: serde_json::Value) -> Result<String, String> {
    let (context, _) = context(30);
    let inputs = properties(json!({"deed": "fetch", "url": url, "headers": headers}));
    let made = tenant.create(&context, PROBE, &inputs).await;
    made.map(|made| made.outputs["seen"].as_str().unwrap_or_default().to_string())
        .map_err(|error| error.to_string())
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

#[tokio::test]
async fn an_origin_that_is_written_down_is_reached_and_no_other() {
    let allowed = Server::start(Some(OK)).await.origin;
    let server = Server::start(Some(OK)).await;
    let other = server.origin.clone();
    let tenant = tenant(&UNRULY, json!({}), &[&allowed], Limits::default()).await;
    assert_eq!(
        fetch(&tenant, &format!("{allowed}/path?query"), json!({}))
            .await
            .unwrap(),
        "200 hello"
    );
    let host = other.trim_start_matches("http://");
    for url in [
        other.clone(),
        format!("http://localhost:{}", host.rsplit(':').next().unwrap()),
        format!("http://{}@{host}", allowed.trim_start_matches("http://")),
        "https://example.com/".to_string(),
        "http://169.254.169.254/computeMetadata/v1/".to_string(),
        "http://[::1]:80/".to_string(),
    ] {
        let error = fetch(&tenant, &url, json!({})).await.unwrap_err();
        assert!(
            error.contains("was denied") || error.contains("invalid"),
            "{url}: {error}"
        );
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_denial_says_the_line_that_would_allow_it() {
    let tenant = tenant(&UNRULY, json!({}), &[], Limits::default()).await;
    let error = fetch(&tenant, "https://api.example.com/v1/things?key=x", json!({}))
        .await
        .unwrap_err();
    assert!(error.contains("HttpRequestDenied"), "{error}");
    assert!(
        error.contains("[[origin]]\nurl = \"https://api.example.com\""),
        "{error}"
    );
}

#[tokio::test]
async fn a_redirect_is_handed_to_the_guest_and_not_followed() {
    let server = Server::start(Some(
        "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
    ))
    .await;
    let origin = server.origin.clone();
    let tenant = tenant(&UNRULY, json!({}), &[&origin], Limits::default()).await;
    assert_eq!(fetch(&tenant, &origin, json!({})).await.unwrap(), "302 ");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_guest_cannot_set_the_hosts_headers() {
    let server = Server::start(Some(OK)).await;
    let origin = server.origin.clone();
    let tenant = tenant(&UNRULY, json!({}), &[&origin], Limits::default()).await;
    for header in [
        "authorization",
        "cookie",
        "host",
        "proxy-authorization",
        "connection",
        "transfer-encoding",
    ] {
        assert!(fetch(&tenant, &origin, json!({header: "x"})).await.is_err(), "{header}");
    }
    assert_eq!(server.requests().len(), 0);
    fetch(&tenant, &origin, json!({"x-custom": "kept"})).await.unwrap();
    let request = server.requests()[0].to_lowercase();
    assert!(request.contains("x-custom: kept"), "{request}");
    assert_eq!(request.matches("host:").count(), 1, "{request}");
    assert!(request.contains("user-agent: bindery/"), "{request}");
}

#[tokio::test]
async fn connections_are_reused_across_calls_and_never_across_tenants() {
    let server = Server::start(Some(OK)).await;
    let one = tenant(&UNRULY, json!({}), &[&server.origin], Limits::default()).await;
    for _ in 0..5 {
        fetch(&one, &server.origin, json!({})).await.unwrap();
    }
    assert_eq!((server.requests().len(), server.connections()), (5, 1));
    let other = tenant(&UNRULY, json!({}), &[&server.origin], Limits::default()).await;
    fetch(&other, &server.origin, json!({})).await.unwrap();
    assert_eq!(server.connections(), 2);
}

//! Those that send what they may not, where they may not.

use std::time::Duration;

use bindery_sandbox::{ErrorCode, Limits};
use bindery_tests::{Server, allow};
use serde_json::json;

use crate::quiet::Quiet;
use crate::{ends_with, hostile, told};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_requests_to_other_origins_are_denied() {
    let (allowed, other) = (Server::start(Some(OK)).await, Server::start(Some(OK)).await);
    let (tenant, quiet) = (
        hostile(vec![allow(&allowed.origin)], Limits::default()).await,
        Quiet::begin().await,
    );
    let host = other.origin.trim_start_matches("http://");
    let port = host.rsplit(':').next().unwrap();
    for url in [
        other.origin.clone(),
        // The same port of this machine by its other names.
        format!("http://localhost:{port}"),
        format!("http://127.1:{port}"),
        format!("http://2130706433:{port}"),
        format!("http://[::ffff:127.0.0.1]:{port}"),
        // The allowed origin as a user, a path, a query.
        format!("{}@{host}/", allowed.origin),
        format!("http://{host}/{}", allowed.origin),
        format!("http://{host}?{}", allowed.origin),
        "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token".to_string(),
        "http://metadata.google.internal/computeMetadata/v1/".to_string(),
        "http://[fd00:ec2::254]/latest/meta-data/".to_string(),
        "https://compute.googleapis.com/".to_string(),
    ] {
        let error = told(&tenant, json!({"deed": "fetch", "url": url})).await.unwrap_err();
        assert!(
            error.message.contains("was denied") || error.message.contains("nvalid"),
            "{url}: {error}"
        );
    }
    assert_eq!(other.requests().len(), 0);
    assert_eq!(allowed.requests().len(), 0);
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_parts_of_a_request_do_not_make_it_another() {
    let quiet = Quiet::begin().await;
    let (allowed, other) = (Server::start(Some(OK)).await, Server::start(Some(OK)).await);
    let tenant = hostile(vec![allow(&allowed.origin)], Limits::default()).await;
    let (here, there) = (
        allowed.origin.trim_start_matches("http://"),
        other.origin.trim_start_matches("http://"),
    );
    for (authority, path) in [
        (here.to_string(), format!("http://{there}/")),
        (here.to_string(), format!("@{there}/")),
        (here.to_string(), format!("//{there}/")),
        (here.to_string(), format!("\\\\{there}\\")),
        (format!("{here}@{there}"), "/".to_string()),
        (format!("user:pass@{here}"), "/".to_string()),
        (format!("{there}#{here}"), "/".to_string()),
        (format!("{there}/{here}"), "/".to_string()),
        (
            here.to_string(),
            "/ HTTP/1.1\r\nhost: elsewhere\r\n\r\nGET /x".to_string(),
        ),
    ] {
        let inputs = json!({"deed": "smuggle", "url": authority, "headers": {"path": path}});
        let ended = told(&tenant, inputs).await;
        let arrived = allowed.requests();
        // What was let out went where it may, as one request.
        assert_eq!(ended.is_ok(), !arrived.is_empty(), "{authority} {path}: {ended:?}");
        assert!(arrived.len() <= 1, "{arrived:?}");
        if let Some(request) = arrived.first() {
            assert_eq!(request.matches("HTTP/1.1").count(), 1, "{request}");
            assert!(request.contains(&format!("host: {here}")), "{request}");
        }
        allowed.forget();
    }
    assert_eq!(other.requests().len(), 0);
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_that_resolve_to_this_machine_are_not_dialled() {
    let quiet = Quiet::begin().await;
    // The machine's own name; the filter itself is tested beside it with names that no machine has.
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    let origin = format!("https://{name}:{port}");
    let limits = Limits {
        wall_time: Duration::from_secs(5),
        ..Limits::default()
    };
    let tenant = hostile(vec![allow(&origin)], limits).await;
    let error = told(&tenant, json!({"deed": "fetch", "url": origin}))
        .await
        .unwrap_err();
    assert!(error.message.contains("no address that may be dialled"), "{error}");
    assert!(listener.accept().is_err(), "it was dialled");
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_redirects_lead_nowhere() {
    let quiet = Quiet::begin().await;
    let other = Server::start(Some(OK)).await;
    let answer = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        other.origin
    );
    let server = Server::start(Some(answer.leak())).await;
    let tenant = hostile(vec![allow(&server.origin)], Limits::default()).await;
    let seen = told(&tenant, json!({"deed": "fetch", "url": server.origin}))
        .await
        .unwrap();
    assert_eq!(seen, "307 ");
    assert_eq!(other.requests().len(), 0);
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_headers_are_not_sent() {
    let quiet = Quiet::begin().await;
    let server = Server::start(Some(OK)).await;
    let tenant = hostile(vec![allow(&server.origin)], Limits::default()).await;
    for (name, value) in [
        ("authorization", "Bearer own"),
        ("Authorization", "Bearer own"),
        ("cookie", "a=b"),
        ("proxy-authorization", "x"),
        ("proxy-connection", "x"),
        ("host", "elsewhere"),
        ("transfer-encoding", "chunked"),
        ("content-length", "1"),
        ("connection", "upgrade"),
        ("upgrade", "h2c"),
        ("expect", "100-continue"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-goog-user-project", "elsewhere"),
        ("x-custom", "a\r\nauthorization: Bearer own"),
        ("x-custom\r\nauthorization", "Bearer own"),
        (":authority", "elsewhere"),
    ] {
        let inputs = json!({"deed": "fetch", "url": server.origin, "headers": {name: value}});
        assert!(told(&tenant, inputs).await.is_err(), "{name}");
    }
    assert_eq!(server.requests().len(), 0);
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_requests_without_end_are_counted_whether_their_answers_are_read_or_not() {
    let server = Server::start(Some(OK)).await;
    let (tenant, quiet) = (
        hostile(vec![allow(&server.origin)], Limits::default()).await,
        Quiet::begin().await,
    );
    let inputs = json!({"deed": "hammer", "url": server.origin});
    let error = ends_with(
        &tenant,
        inputs,
        "`hostile`: a call sent too many requests; the limit is `requests` = 100",
    )
    .await;
    assert_eq!(error.code, ErrorCode::ResourceExhausted);
    assert_eq!(server.requests().len(), 100);
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_requests_that_nobody_reads_are_few_at_once_and_end_with_the_call() {
    let silent = Server::start(None).await;
    let limits = Limits {
        wall_time: Duration::from_secs(3),
        calls_in_flight: 8,
        ..Limits::default()
    };
    let (tenant, quiet) = (hostile(vec![allow(&silent.origin)], limits).await, Quiet::begin().await);
    let flood = json!({"deed": "flood", "url": silent.origin});
    let flooding = told(&tenant, flood);
    let watching = async {
        while silent.requests().len() < 8 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        silent.open()
    };
    let (ended, open) = tokio::join!(flooding, watching);
    let error = ended.unwrap_err();
    assert!(error.message.contains("`wall_time` = 3s"), "{error}");
    assert_eq!(open, 8, "as many connections as there may be calls");
    assert_eq!(silent.requests().len(), 8, "the others never came to be sent");
    assert_eq!(tenant.usage().instances, 0);
    quiet.was_answered().await;
}

//! Every limit is hit by a guest that goes over it, and is an error that names the setting. The next call is not touched.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

use std::time::{Duration, Instant};

use bindery_sandbox::{Event, Limits, OperationError, Tenant};
use bindery_tests::{Server, UNRULY, context, properties, tenant};
use serde_json::json;

const PROBE: &str = "unruly:test/v1:Probe";

async fn unruly(origins: &[&str], limits: Limits) -> Tenant {
    tenant(&UNRULY, json!({}), origins, limits).await
}

async fn create(tenant: &Tenant, inputs: serde_json::Value) -> Result<String, OperationError> {
    let (context, _) = context(30);
    let made = tenant.create(&context, PROBE, &properties(inputs)).await?;
    Ok(made.outputs["seen"].as_str().unwrap_or_default().to_string())
}

async fn still_works(tenant: &Tenant) {
    assert_eq!(create(tenant, json!({"deed": "answer"})).await.unwrap(), "nothing");
}

fn quick() -> Limits {
    Limits {
        cpu_time: Duration::from_millis(100),
        ..Limits::default()
    }
}

#[tokio::test]
async fn a_loop_ends_at_its_cpu_time() {
    let tenant = unruly(&[], quick()).await;
    for deed in ["spin", "watch-clock"] {
        let started = Instant::now();
        let error = create(&tenant, json!({ "deed": deed })).await.unwrap_err();
        assert!(error.to_string().contains("`cpu_time` = 100ms"), "{deed}: {error}");
        assert!(started.elapsed() < Duration::from_secs(20), "{deed}");
        still_works(&tenant).await;
    }
}

#[tokio::test]
async fn a_loop_does_not_keep_others_from_their_turn() {
    let tenant = unruly(
        &[],
        Limits {
            cpu_time: Duration::from_secs(5),
            ..Limits::default()
        },
    )
    .await;
    let spinning = create(&tenant, json!({"deed": "spin"}));
    let answering = async {
        let started = Instant::now();
        still_works(&tenant).await;
        started.elapsed()
    };
    // One thread for both: without yielding, the answer would come after the spinning.
    let (spun, answered) = tokio::join!(spinning, answering);
    assert!(spun.is_err());
    assert!(answered < Duration::from_secs(4), "{answered:?}");
}

#[tokio::test]
async fn waiting_for_the_host_is_not_cpu_time_and_ends_at_the_wall_time() {
    let origin = Server::start(None).await.origin;
    let tenant = unruly(
        &[&origin],
        Limits {
            wall_time: Duration::from_secs(1),
            ..quick()
        },
    )
    .await;
    let error = create(&tenant, json!({"deed": "fetch", "url": origin}))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("`wall_time` = 1s"), "{error}");
    still_works(&tenant).await;
}

#[tokio::test]
async fn memory_ends_at_its_limit() {
    let tenant = unruly(
        &[],
        Limits {
            memory: 16 << 20,
            ..Limits::default()
        },
    )
    .await;
    let error = create(&tenant, json!({"deed": "hoard"})).await.unwrap_err();
    assert!(error.to_string().contains("`memory` = 16777216 bytes"), "{error}");
    still_works(&tenant).await;
}

#[tokio::test]
async fn a_guest_that_stops_itself_says_where_and_why() {
    let tenant = unruly(&[], quick()).await;
    let error = create(&tenant, json!({"deed": "panic"})).await.unwrap_err().to_string();
    assert!(
        error.contains("stopped in `create`") && error.contains("as it was told to"),
        "{error}"
    );
    let error = create(&tenant, json!({"deed": "recurse"}))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("`stack` = 524288 bytes"), "{error}");
    still_works(&tenant).await;
}

#[tokio::test]
async fn output_is_capped_and_cleaned() {
    let tenant = unruly(&[], Limits::default()).await;
    let (context, events) = context(30);
    let inputs = properties(json!({"deed": "shout"}));
    tenant.create(&context, PROBE, &inputs).await.unwrap();
    let events = events.lock().unwrap();
    assert_eq!(events.first(), Some(&Event::Warning("LOUD".to_string())));
    assert!(
        matches!(events.last(), Some(Event::Warning(line)) if line.contains("cut off")),
        "{:?}",
        events.last()
    );
}

#[tokio::test]
async fn a_response_ends_at_its_limit_whether_announced_or_not() {
    const ANNOUNCED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n";
    const CHUNKED: &str = concat!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n",
        "40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n0\r\n\r\n",
    );
    for answer in [ANNOUNCED, CHUNKED] {
        let origin = Server::start(Some(answer)).await.origin;
        let tenant = unruly(
            &[&origin],
            Limits {
                response_body: 100,
                ..Limits::default()
            },
        )
        .await;
        let error = create(&tenant, json!({"deed": "fetch", "url": origin}))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("`response_body` = 100 bytes"), "{error}");
    }
}

#[tokio::test]
async fn requests_of_one_call_are_counted() {
    let server = Server::start(Some("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")).await;
    let origin = server.origin.clone();
    let tenant = unruly(&[&origin], Limits::default()).await;
    let error = create(&tenant, json!({"deed": "hammer", "url": origin}))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("`requests` = 100"), "{error}");
    assert_eq!(server.requests().len(), 100);
}

#[tokio::test]
async fn a_request_that_a_guest_leaves_unfinished_is_never_sent_and_holds_nothing_up() {
    let server = Server::start(Some("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")).await;
    let limits = Limits {
        calls_in_flight: 1,
        ..Limits::default()
    };
    let tenant = unruly(&[&server.origin], limits).await;
    let started = Instant::now();
    assert_eq!(
        create(&tenant, json!({"deed": "abandon", "url": server.origin}))
            .await
            .unwrap(),
        "left"
    );
    still_works(&tenant).await;
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn an_operation_ends_at_its_deadline_with_all_that_waits_for_it() {
    let server = Server::start(None).await;
    let tenant = unruly(&[&server.origin], Limits::default()).await;
    let started = Instant::now();
    let (context, _) = context(1);
    let inputs = properties(json!({"deed": "fetch", "url": server.origin}));
    let error = tenant.create(&context, PROBE, &inputs).await.unwrap_err();
    assert!(
        error.to_string().contains("deadline") && !error.may_have_effect,
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
    let late = tenant.create(&context, PROBE, &inputs).await.unwrap_err();
    assert!(late.to_string().contains("deadline") && !late.may_have_effect, "{late}");
}

#[tokio::test]
async fn calls_in_flight_are_bounded() {
    let server = Server::start(None).await;
    let origin = server.origin.clone();
    let limits = Limits {
        calls_in_flight: 2,
        wall_time: Duration::from_secs(2),
        ..Limits::default()
    };
    let tenant = unruly(&[&origin], limits).await;
    let fetch = || create(&tenant, json!({"deed": "fetch", "url": origin}));
    let third = async {
        while server.requests().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
        let in_flight = server.requests().len();
        (fetch().await, in_flight)
    };
    let (_, _, _, (_, in_flight)) = tokio::join!(fetch(), fetch(), fetch(), third);
    assert_eq!(in_flight, 2);
}

//! What tenants share, what they do not, and how they end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_sandbox::{ErrorCode, Limits, Tenant};
use bindery_tests::{Server, UNRULY, context, properties, tenant};
use serde_json::json;

const PROBE: &str = "unruly:test/v1:Probe";

async fn fetch(tenant: &Tenant, origin: &str) -> Result<(), bindery_sandbox::OperationError> {
    let (context, _) = context(30);
    let inputs = properties(json!({"deed": "fetch", "url": origin}));
    tenant.create(&context, PROBE, &inputs).await.map(drop)
}

/// A tenant whose requests are never answered, and where they go.
async fn waiting(limits: Limits) -> (Arc<Tenant>, Server) {
    let server = Server::start(None).await;
    let tenant = tenant(&UNRULY, json!({}), &[&server.origin], limits).await;
    (Arc::new(tenant), server)
}

async fn until(what: impl Fn() -> bool) {
    let started = Instant::now();
    while !what() {
        assert!(started.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_ended_tenant_ends_its_calls_and_takes_no_more() {
    let limits = Limits {
        wall_time: Duration::from_secs(2),
        ..Limits::default()
    };
    let (tenant, server) = waiting(limits).await;
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let (tenant, origin) = (Arc::clone(&tenant), server.origin.clone());
            tokio::spawn(async move { fetch(&tenant, &origin).await })
        })
        .collect();
    until(|| server.requests().len() == 3).await;
    assert_eq!(tenant.usage().instances, 3);
    assert!(tenant.usage().memory > 0);
    tenant.end();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::Cancelled, "{error}");
        assert!(error.message.contains("`tests` is gone"), "{error}");
    }
    let usage = tenant.usage();
    assert_eq!((usage.instances, usage.memory, usage.requests), (0, 0, 3));
    let late = fetch(&tenant, &server.origin).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::Cancelled);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_dropped_tenant_frees_its_connections_and_its_instances() {
    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let server = Server::start(Some(OK)).await;
    let tenant = tenant(&UNRULY, json!({}), &[&server.origin], Limits::default()).await;
    fetch(&tenant, &server.origin).await.unwrap();
    assert_eq!(server.open(), 1, "it is kept for the next request");
    drop(tenant);
    until(|| server.open() == 0).await;
}

#[tokio::test]
async fn a_tenant_under_two_configurations_has_one_set_of_limits_and_ends_as_one() {
    let limits = Limits {
        calls_in_flight: 2,
        wall_time: Duration::from_secs(2),
        ..Limits::default()
    };
    let (tenant, server) = waiting(limits).await;
    let other = Arc::new(tenant.with_config(&properties(json!({"nothing": "x"}))).await.unwrap());
    let calls: Vec<_> = [&tenant, &other, &tenant, &other]
        .map(|tenant| {
            let (tenant, origin) = (Arc::clone(tenant), server.origin.clone());
            tokio::spawn(async move { fetch(&tenant, &origin).await })
        })
        .into();
    until(|| server.requests().len() == 2).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.requests().len(), 2, "two for both");
    assert_eq!((tenant.usage(), tenant.usage().instances), (other.usage(), 2));
    tenant.end();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().code, ErrorCode::Cancelled);
    }
    // The end of the second alone is not the first's.
    let (tenant, server) = waiting(Limits::default()).await;
    let other = tenant.with_config(&properties(json!({}))).await.unwrap();
    other.end();
    assert_eq!(
        fetch(&other, &server.origin).await.unwrap_err().code,
        ErrorCode::Cancelled
    );
    drop(other);
    let (context, _) = context(5);
    let inputs = properties(json!({"deed": "answer"}));
    tenant.create(&context, PROBE, &inputs).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_that_wait_with_all_they_may_leave_instances_to_others() {
    let limits = Limits {
        calls_in_flight: 3_000,
        wall_time: Duration::from_secs(20),
        ..Limits::default()
    };
    let (hog, server) = waiting(limits).await;
    let calls: Vec<_> = (0..1_500)
        .map(|_| {
            let (hog, origin) = (Arc::clone(&hog), server.origin.clone());
            tokio::spawn(async move { fetch(&hog, &origin).await })
        })
        .collect();
    until(|| hog.usage().instances >= 800).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let held = hog.usage().instances;
    assert!(held <= 896, "half of what is not reserved: {held}");
    let quiet = tenant(&UNRULY, json!({}), &[], Limits::default()).await;
    let (context, _) = context(5);
    quiet
        .create(&context, PROBE, &properties(json!({"deed": "answer"})))
        .await
        .unwrap();
    hog.end();
    for call in calls {
        call.abort();
    }
}

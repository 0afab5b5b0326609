//! Calls that touch nothing: what one costs, and what it costs beside a tenant that does not stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_resource::PropertyMap;
use bindery_sandbox::{Component, Limits, Run, Tenant};
use bindery_tests::{BUILT_IN, RUNTIME, UNRULY, context, properties, tenant, urn};
use serde_json::json;

use crate::{micros, quantile, row};

const MEMBER: &str = "bindery:compute/v1:BackendBucketIamMember";

/// How many checks of each are measured.
const CHECKS: usize = 5_000;

fn inputs() -> PropertyMap {
    properties(json!({
        "name": "logs", "role": "roles/storage.objectViewer", "member": "user:ann@example.com",
        "condition": {"title": "until-june", "expression": "request.time < timestamp('2027-06-01T00:00:00Z')"},
    }))
}

async fn of(component: &Arc<Component>) -> Tenant {
    tenant(component, json!({"project": "home"}), &[], Limits::default()).await
}

async fn time(tenant: &Tenant, inputs: &PropertyMap) -> Duration {
    let run = Run::new();
    let started = Instant::now();
    tenant.check(&run, &urn(MEMBER, "m"), MEMBER, inputs).await.unwrap();
    started.elapsed()
}

/// A check, against that of a component which gives back what it gets. One after the other, so that both see the same machine.
pub async fn check() {
    let echo = Arc::new(RUNTIME.load(bindery_test_guests::ECHO).unwrap());
    let (rules, echo, inputs) = (of(&BUILT_IN).await, of(&echo).await, inputs());
    let (mut with_rules, mut without) = (Vec::new(), Vec::new());
    for _ in 0..CHECKS {
        with_rules.push(time(&rules, &inputs).await);
        without.push(time(&echo, &inputs).await);
    }
    let (with_rules, without) = (quantile(&mut with_rules, 0.5), quantile(&mut without, 0.5));
    row(
        "a `check` in a fresh instance, against one that returns its args",
        &micros(with_rules),
        &micros(without),
        with_rules.as_secs_f64() / without.as_secs_f64(),
        "at most 2",
    );
}

/// The slowest of a hundred checks of a tenant, alone and beside one that spins all the time.
pub async fn beside_a_spinning_one() {
    let (quiet, inputs) = (of(&BUILT_IN).await, inputs());
    let slowest = async || {
        let mut times = Vec::new();
        for _ in 0..CHECKS {
            times.push(time(&quiet, &inputs).await);
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        quantile(&mut times, 0.99)
    };
    let alone = slowest().await;
    let hog = tenant(&UNRULY, json!({}), &[], Limits::default()).await;
    let spinning = tokio::spawn(async move {
        loop {
            let (context, _) = context(60);
            let inputs = properties(json!({"deed": "spin"}));
            let _ = hog.create(&context, "unruly:test/v1:Probe", &inputs).await;
        }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let beside = slowest().await;
    spinning.abort();
    row(
        "p99 of a tenant's checks beside one that spins, against alone",
        &micros(beside),
        &micros(alone),
        beside.as_secs_f64() / alone.as_secs_f64(),
        "at most 3",
    );
}

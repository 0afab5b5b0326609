//! Those that take time and memory without end, or hand out too much.

use std::sync::Arc;
use std::time::Duration;

use bindery_sandbox::{ErrorCode, Limits};
use bindery_tests::{context, properties, urn};
use futures_util::future::join_all;
use serde_json::json;

use crate::quiet::Quiet;
use crate::{ends_with, hostile, told};

fn quick() -> Limits {
    Limits {
        cpu_time: Duration::from_millis(200),
        wall_time: Duration::from_secs(2),
        ..Limits::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_loops_end_at_their_cpu_time() {
    let (tenant, quiet) = (hostile(vec![], quick()).await, Quiet::begin().await);
    for deed in ["spin", "watch-clock"] {
        let error = ends_with(
            &tenant,
            json!({ "deed": deed }),
            "`hostile`: a call used too much CPU time",
        )
        .await;
        assert!(error.message.contains("`cpu_time` = 200ms"), "{error}");
        assert_eq!(error.code, ErrorCode::ResourceExhausted);
    }
    assert_eq!(tenant.usage().limits_hit["cpu_time"], 2);
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_loops_in_every_call_that_a_tenant_may_make_leave_others_their_turn() {
    let tenant = hostile(
        vec![],
        Limits {
            cpu_time: Duration::from_millis(50),
            wall_time: Duration::from_secs(60),
            ..Limits::default()
        },
    )
    .await;
    let quiet = Quiet::begin().await;
    let all = (0..64).map(|_| told(&tenant, json!({"deed": "spin"})));
    for ended in join_all(all).await {
        assert!(ended.unwrap_err().message.contains("`cpu_time`"));
    }
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_sleep_ends_at_the_wall_time() {
    let (tenant, quiet) = (hostile(vec![], quick()).await, Quiet::begin().await);
    ends_with(&tenant, json!({"deed": "sleep"}), "`wall_time` = 2s").await;
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_memory_ends_at_its_limit_and_is_given_back() {
    let (tenant, quiet) = (hostile(vec![], Limits::default()).await, Quiet::begin().await);
    ends_with(&tenant, json!({"deed": "hoard"}), "`memory` = 67108864 bytes").await;
    let usage = tenant.usage();
    assert_eq!((usage.instances, usage.memory), (0, 0));
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_recursion_and_panic_end_the_call() {
    let (tenant, quiet) = (hostile(vec![], Limits::default()).await, Quiet::begin().await);
    ends_with(&tenant, json!({"deed": "recurse"}), "`stack` = 524288 bytes").await;
    let error = ends_with(&tenant, json!({"deed": "panic"}), "as it was told to").await;
    assert_eq!(error.code, ErrorCode::Internal);
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_texts_and_lists_end_at_what_may_be_handed_out() {
    let limits = Limits {
        memory: 1 << 30,
        ..Limits::default()
    };
    let (tenant, quiet) = (hostile(vec![], limits).await, Quiet::begin().await);
    for deed in ["build-text", "build-list"] {
        let error = ends_with(&tenant, json!({ "deed": deed }), "`bytes handed out` = 67108864 bytes").await;
        assert_eq!(error.code, ErrorCode::ResourceExhausted);
    }
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_handles_end_at_their_limit() {
    let (tenant, quiet) = (hostile(vec![], Limits::default()).await, Quiet::begin().await);
    ends_with(&tenant, json!({"deed": "grasp"}), "`handles` = 1000").await;
    quiet.was_answered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_answers_of_the_wrong_number_are_none() {
    const JOB: &str = "unruly:test/v1:Job";
    let (tenant, quiet) = (Arc::new(hostile(vec![], Limits::default()).await), Quiet::begin().await);
    let inputs = properties(json!({"name": "a", "conduct": "shorten"}));
    tenant
        .check(&bindery_sandbox::Run::new(), &urn(JOB, "a"), JOB, &inputs)
        .await
        .unwrap();
    let (context, _) = context(10);
    let error = tenant.create(&context, JOB, &inputs).await.unwrap_err();
    assert!(error.message.contains("0 answers to 1 operations"), "{error}");
    quiet.was_answered().await;
}

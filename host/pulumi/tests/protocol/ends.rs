//! How things end: operations by their deadline or a cancellation, runs, and the program.

use std::io::Read;
use std::time::{Duration, Instant};

use bindery_emulator::{Faults, Hold, Settings};
use pulumi_gestalt_proto::pulumi::pulumirpc::{PluginAttach, ProviderHandshakeRequest};
use serde_json::json;
use tonic::Code;

use crate::harness::*;

fn faults(faults: Faults) -> Settings {
    Settings {
        faults,
        ..Settings::default()
    }
}

/// A provider, and the inputs of a resource that it has checked.
async fn checked() -> (Plugin, serde_json::Value) {
    let mut plugin = Plugin::configured().await;
    let inputs = member("roles/one", "user:a@x.com");
    let inputs = plugin.check(MEMBER, "m", &json!({}), &inputs).await;
    (plugin, inputs)
}

#[tokio::test]
async fn cancelling_ends_what_waits_and_nothing_after_it() {
    let (mut plugin, inputs) = checked().await;
    plugin.emulator.set(faults(Faults {
        unavailable_before: 1.0,
        ..Faults::default()
    }));
    let mut other = plugin.client.clone();
    let cancelled = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        other.cancel(()).await.unwrap();
    });
    let started = Instant::now();
    let error = plugin.try_create(MEMBER, "m", &inputs, false, 0.0).await.unwrap_err();
    assert_eq!(error.code(), Code::Cancelled, "nothing has changed: {error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    cancelled.await.unwrap();
    plugin.emulator.set(Settings::default());
    plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
}

#[tokio::test]
async fn cancelling_waits_for_an_answer_for_a_few_seconds_only() {
    for (request, role) in [(1, "roles/none"), (2, "roles/one")] {
        let (mut plugin, inputs) = checked().await;
        plugin.emulator.set(Settings {
            hold: Some(Hold { request, done: true }),
            ..Settings::default()
        });
        let mut creating = plugin.client.clone();
        let request = pulumi_gestalt_proto::pulumi::pulumirpc::CreateRequest {
            urn: urn(MEMBER, "m"),
            properties: Some(fields(&inputs)),
            ..Default::default()
        };
        let create = tokio::spawn(async move { creating.create(request).await });
        while !plugin.emulator.is_holding() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let started = Instant::now();
        plugin.client.cancel(()).await.unwrap();
        let ended = create.await.unwrap();
        // The end is found out by a read: the write was done, or it was never sent.
        assert_eq!(ended.is_ok(), role == "roles/one", "{ended:?}");
        assert!(started.elapsed() < Duration::from_secs(25));
    }
}

#[tokio::test]
async fn the_programs_timeout_is_the_operations_deadline() {
    let (mut plugin, inputs) = checked().await;
    plugin.emulator.set(faults(Faults {
        unavailable_before: 1.0,
        ..Faults::default()
    }));
    let error = plugin.try_create(MEMBER, "m", &inputs, false, 0.6).await.unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
}

#[tokio::test]
async fn a_write_whose_answer_never_came_is_found_by_a_read() {
    let (mut plugin, inputs) = checked().await;
    // The read is answered, and the write is done but not.
    plugin.emulator.set(Settings {
        hold: Some(Hold { request: 2, done: true }),
        ..Settings::default()
    });
    let made = plugin.try_create(MEMBER, "m", &inputs, false, 1.0).await.unwrap();
    let outputs = json(&made.properties.unwrap());
    assert_eq!(
        (&outputs["member"], &outputs["name"]),
        (&json!("user:a@x.com"), &json!("logs"))
    );
}

#[tokio::test]
async fn a_write_whose_end_cannot_be_found_out_may_have_happened() {
    let (plugin, inputs) = checked().await;
    // The write is done and not answered, and after that nothing is.
    plugin.emulator.set(Settings {
        hold: Some(Hold { request: 2, done: true }),
        ..Settings::default()
    });
    let mut creating = plugin.client.clone();
    let request = pulumi_gestalt_proto::pulumi::pulumirpc::CreateRequest {
        urn: urn(MEMBER, "m"),
        properties: Some(fields(&inputs)),
        timeout: 1.0,
        ..Default::default()
    };
    let create = tokio::spawn(async move { creating.create(request).await });
    while !plugin.emulator.is_holding() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    plugin.emulator.set(faults(Faults {
        unavailable_before: 1.0,
        ..Faults::default()
    }));
    let error = create.await.unwrap().unwrap_err();
    // The engine takes this code, and few others, for something that may have changed.
    assert_eq!(error.code(), Code::Unknown, "{error}");
    assert!(error.message().contains("may have taken effect"), "{error}");
}

#[tokio::test]
async fn a_target_that_is_gone_or_not_allowed_changes_nothing() {
    let (mut plugin, inputs) = checked().await;
    for (settings, code) in [
        (
            Settings {
                missing_targets: [BUCKET.to_string()].into(),
                ..Settings::default()
            },
            Code::NotFound,
        ),
        (
            Settings {
                denied_targets: [BUCKET.to_string()].into(),
                ..Settings::default()
            },
            Code::PermissionDenied,
        ),
    ] {
        plugin.emulator.set(settings);
        let error = plugin.try_create(MEMBER, "m", &inputs, false, 0.0).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(BUCKET), "{error}");
    }
}

#[tokio::test]
async fn the_engines_end_is_the_programs() {
    let mut plugin = Plugin::configured().await;
    drop(plugin.stdin.take());
    let started = Instant::now();
    assert!(plugin.child.wait().unwrap().success());
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn one_that_engines_attach_to_outlives_them_and_their_claims_do_not() {
    let start = || Start {
        by_engine: false,
        ..Start::default()
    };
    let mut plugin = Plugin::start(start()).await;
    drop(plugin.stdin.take());
    plugin.configure(json!({"project": "home"})).await.unwrap();
    let attach = PluginAttach {
        address: "127.0.0.1:9".to_string(),
    };
    plugin.client.attach(attach).await.unwrap();
    let inputs = member("roles/one", "user:a@x.com");
    plugin.check(MEMBER, "first", &json!({}), &inputs).await;
    // It has nothing to ask for a while, and comes back.
    plugin.disconnect().await;
    plugin
        .try_check(MEMBER, "second", &json!({}), &inputs)
        .await
        .unwrap()
        .unwrap_err();
    // It is killed, and another one comes.
    plugin.disconnect().await;
    plugin
        .client
        .handshake(ProviderHandshakeRequest::default())
        .await
        .unwrap();
    plugin.check(MEMBER, "second", &json!({}), &inputs).await;
    assert_eq!(plugin.end().await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_ends_once_what_is_under_way_has() {
    let (mut plugin, inputs) = checked().await;
    plugin.emulator.set(faults(Faults {
        latency_ms: 700,
        ..Faults::default()
    }));
    let client = plugin.client.clone();
    let create = tokio::spawn(async move {
        let request = pulumi_gestalt_proto::pulumi::pulumirpc::CreateRequest {
            urn: urn(MEMBER, "m"),
            properties: Some(fields(&inputs)),
            ..Default::default()
        };
        client.clone().create(request).await
    });
    // The second request is the write.
    while plugin.emulator.arrived() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pid = rustix::process::Pid::from_child(&plugin.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut printed = String::new();
    plugin
        .child
        .stdout
        .take()
        .map(|mut out| out.read_to_string(&mut printed));
    assert!(plugin.child.wait().unwrap().success());
    // The write was sent, so it was awaited.
    assert_eq!(plugin.emulator.members(BUCKET, "roles/one"), ["user:a@x.com"]);
    let _ = create.await;
}

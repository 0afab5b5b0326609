//! The built-in provider against the emulator: what it asks, what it writes, and what becomes of it under faults.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bindery_emulator::{Emulator, Faults, Settings};
use bindery_resource::{PropertyMap, Value};
use bindery_sandbox::operation::Resource;
use bindery_sandbox::{DeleteReason, Deleted, ErrorCode, Event, Limits, OperationError, Run, Tenant};
use bindery_tests::{BUILT_IN, Server, context, emulated, properties, tenant, urn};
use serde_json::{Value as Json, json};

const BUCKET: &str = "bindery:compute/v1:BackendBucketIamMember";
const JOB: &str = "bindery:datamigration/v1:MigrationJobIamMember";
const ORIGIN: &str = "bindery:networkservices/v1:EdgeCacheOriginIamBinding";

const BUCKET_TARGET: &str = "projects/home/global/backendBuckets/logs";
const JOB_TARGET: &str = "projects/home/locations/us-east1/migrationJobs/move";
const ORIGIN_TARGET: &str = "projects/home/locations/global/edgeCacheOrigins/video";

fn member(name: &str, member: &str) -> PropertyMap {
    properties(json!({"name": name, "role": "roles/x.viewer", "member": member}))
}

fn binding(members: &[&str]) -> PropertyMap {
    properties(json!({"name": "video", "role": "roles/x.viewer", "members": members}))
}

async fn create(tenant: &Tenant, token: &str, inputs: &PropertyMap) -> Result<Resource, OperationError> {
    let (context, _) = context(20);
    tenant.create(&context, token, inputs).await
}

async fn read(tenant: &Tenant, token: &str, resource: &Resource) -> Option<Resource> {
    let (context, _) = context(20);
    tenant
        .read(&context, token, &resource.id, Some(&resource.outputs))
        .await
        .unwrap()
}

async fn delete(tenant: &Tenant, token: &str, resource: &Resource) -> Deleted {
    let (context, _) = context(20);
    tenant
        .delete(
            &Run::new(),
            &context,
            &urn(token, "x"),
            token,
            resource,
            DeleteReason::NotDeclared,
        )
        .await
        .unwrap()
}

fn policy(emulator: &Emulator, target: &str) -> Json {
    Json::Object(emulator.policies().get(target))
}

/// A policy's content: without etag and version.
fn content(emulator: &Emulator, target: &str) -> String {
    let mut policy = emulator.policies().get(target);
    policy.remove("etag");
    policy.remove("version");
    Json::Object(policy).to_string()
}

fn set_faults(emulator: &Emulator, faults: Faults) {
    emulator.set(Settings {
        faults,
        ..Settings::default()
    });
}

#[tokio::test]
async fn each_type_makes_its_grant_reads_it_and_takes_it_away() {
    let (tenant, emulator) = emulated(json!({})).await;
    for (token, target, inputs) in [
        (BUCKET, BUCKET_TARGET, member("logs", "user:Ann@example.com")),
        (JOB, JOB_TARGET, member("move", "user:Ann@example.com")),
        (
            ORIGIN,
            ORIGIN_TARGET,
            binding(&["user:Ann@example.com", "domain:example.com"]),
        ),
    ] {
        let made = create(&tenant, token, &inputs).await.unwrap();
        let held = policy(&emulator, target);
        assert_eq!(held["bindings"][0]["members"][0], "user:Ann@example.com", "{token}");
        assert_eq!(made.outputs["etag"].as_str(), held["etag"].as_str(), "{token}");
        assert_eq!(made.outputs["project"].as_str(), Some("home"));
        assert_eq!(read(&tenant, token, &made).await, Some(made.clone()), "{token}");
        assert_eq!(delete(&tenant, token, &made).await, Deleted::Removed);
        assert_eq!(policy(&emulator, target)["bindings"], json!([]), "{token}");
        assert_eq!(read(&tenant, token, &made).await, None, "{token}");
    }
}

#[tokio::test]
async fn a_create_is_one_read_and_one_write_and_the_same_again_is_one_read() {
    let (tenant, emulator) = emulated(json!({})).await;
    let inputs = member("logs", "user:ann@example.com");
    create(&tenant, BUCKET, &inputs).await.unwrap();
    let methods = |emulator: &Emulator| -> Vec<String> {
        emulator
            .take_requests()
            .into_iter()
            .map(|request| request.method)
            .collect()
    };
    assert_eq!(methods(&emulator), ["GET", "POST"]);
    create(&tenant, BUCKET, &inputs).await.unwrap();
    assert_eq!(methods(&emulator), ["GET"]);
}

#[tokio::test]
async fn what_others_wrote_is_the_same_after_our_create_and_delete() {
    let (tenant, emulator) = emulated(json!({})).await;
    let foreign: Json = serde_json::from_str(
        r#"{"future":{"n":1.50,"list":[1e3]},"bindings":[
            {"role":"roles/x.viewer","members":["user:MiXed@Example.com","deleted:user:ann@example.com?uid=7"],"bindingId":"b1"},
            {"role":"roles/x.viewer","members":["user:MiXed@Example.com"]},
            {"role":"roles/x.viewer","members":["user:ann@example.com"],"condition":{"title":"t","expression":"true","location":"here"}},
            {"role":"roles/other","members":["allUsers"]}],
           "auditConfigs":[{"service":"allServices","auditLogConfigs":[{"logType":"DATA_READ","exemptedMembers":["user:Zoe@example.com"]}]}]}"#,
    )
    .unwrap();
    for (token, target, inputs) in [
        (BUCKET, BUCKET_TARGET, member("logs", "user:ann@example.com")),
        (JOB, JOB_TARGET, member("move", "user:ann@example.com")),
    ] {
        emulator.put_policy(target, foreign.clone());
        let before = content(&emulator, target);
        let made = create(&tenant, token, &inputs).await.unwrap();
        assert_ne!(content(&emulator, target), before);
        delete(&tenant, token, &made).await;
        assert_eq!(content(&emulator, target), before, "{token}");
    }
}

#[tokio::test]
async fn parallel_grants_on_one_target_are_all_there() {
    let (tenant, emulator) = emulated(json!({})).await;
    let tenant = Arc::new(tenant);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let tenant = Arc::clone(&tenant);
        tasks.spawn(async move { create(&tenant, BUCKET, &member("logs", &format!("user:u{n}@example.com"))).await });
    }
    while let Some(made) = tasks.join_next().await {
        made.unwrap().unwrap();
    }
    let members = policy(&emulator, BUCKET_TARGET)["bindings"][0]["members"].clone();
    assert_eq!(
        members
            .as_array()
            .unwrap()
            .iter()
            .map(Json::to_string)
            .collect::<BTreeSet<_>>()
            .len(),
        40
    );
    // One at a time on a target: no write of ours conflicts with another.
    assert!(emulator.take_requests().iter().all(|request| request.status == 200));
}

#[tokio::test]
async fn two_hosts_on_one_target_lose_nothing() {
    let (one, emulator) = emulated(json!({})).await;
    let origin = emulator.origin();
    let config = json!({"project": "home", "computeEndpoint": origin});
    let other = tenant(&BUILT_IN, config, &[&origin], Limits::default()).await;
    let many = async |tenant: &Tenant, prefix: &str| {
        for n in 0..10 {
            create(
                tenant,
                BUCKET,
                &member("logs", &format!("user:{prefix}{n}@example.com")),
            )
            .await
            .unwrap();
        }
    };
    tokio::join!(many(&one, "a"), many(&other, "b"));
    assert_eq!(
        policy(&emulator, BUCKET_TARGET)["bindings"][0]["members"]
            .as_array()
            .unwrap()
            .len(),
        20
    );
}

#[tokio::test]
async fn every_fault_alone_ends_in_one_effect() {
    let often = |set: fn(&mut Faults, f64)| {
        let mut faults = Faults {
            seed: 7,
            ..Faults::default()
        };
        set(&mut faults, 0.35);
        faults
    };
    let mut tasks = tokio::task::JoinSet::new();
    for (name, faults) in [
        ("conflict", often(|faults, p| faults.conflict = p)),
        ("too many requests", often(|faults, p| faults.too_many_requests = p)),
        ("unavailable before", often(|faults, p| faults.unavailable_before = p)),
        ("unavailable after", often(|faults, p| faults.unavailable_after = p)),
        ("reset before", often(|faults, p| faults.reset_before = p)),
        ("reset after", often(|faults, p| faults.reset_after = p)),
        ("truncated", often(|faults, p| faults.truncated = p)),
        ("html", often(|faults, p| faults.html = p)),
    ] {
        tasks.spawn(one_effect_under(name, faults));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

async fn one_effect_under(name: &'static str, faults: Faults) {
    let (tenant, emulator) = emulated(json!({})).await;
    set_faults(&emulator, faults);
    let (context, events) = context(120);
    let urn = urn(ORIGIN, "x");
    let members = || policy(&emulator, ORIGIN_TARGET)["bindings"][0]["members"].clone();
    let made = tenant
        .create(&context, ORIGIN, &binding(&["user:u0@example.com"]))
        .await;
    let mut made = made.unwrap_or_else(|error| panic!("{name}: {error}"));
    for n in 1..4 {
        let member = format!("user:u{n}@example.com");
        let updated = tenant.update(&context, ORIGIN, &made, &binding(&[&member])).await;
        made = updated.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(members(), json!([member]), "{name}");
    }
    let deleted = tenant
        .delete(&Run::new(), &context, &urn, ORIGIN, &made, DeleteReason::NotDeclared)
        .await;
    assert_eq!(deleted, Ok(Deleted::Removed), "{name}");
    assert_eq!(members(), Json::Null, "{name}");
    assert!(
        events
            .lock()
            .unwrap()
            .iter()
            .any(|event| matches!(event, Event::Waiting { .. })),
        "{name}: no fault came"
    );
}

fn lost_writes() -> Faults {
    Faults {
        writes_only: true,
        unavailable_after: 1.0,
        ..Faults::default()
    }
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_seen_by_the_next_attempt_and_not_done_again() {
    let (tenant, emulator) = emulated(json!({})).await;
    set_faults(&emulator, lost_writes());
    let (context, events) = context(60);
    let inputs = member("logs", "user:a@example.com");
    let made = tenant.create(&context, BUCKET, &inputs).await.unwrap();
    assert!(made.id.ends_with("/user:a@example.com"));
    let heard = events.lock().unwrap().clone();
    // And nobody is told that the grant was there already: it was made here.
    assert!(
        matches!(heard.as_slice(), [Event::Waiting { attempt: 1, .. }]),
        "{heard:?}"
    );
    let writes = emulator
        .take_requests()
        .iter()
        .filter(|request| request.method == "POST")
        .count();
    assert_eq!(writes, 1);
}

#[tokio::test]
async fn what_became_of_a_write_is_known_when_the_deadline_passes() {
    let (tenant, emulator) = emulated(json!({})).await;
    set_faults(&emulator, lost_writes());
    // Time for one attempt, and not for another: the read that settles it comes after.
    let soon = || {
        let (mut context, _) = context(0);
        context.deadline += Duration::from_millis(240);
        context
    };
    let urn = urn(ORIGIN, "x");
    let made = tenant
        .create(&soon(), ORIGIN, &binding(&["user:a@example.com"]))
        .await
        .unwrap();
    let new = binding(&["user:b@example.com"]);
    let made = tenant.update(&soon(), ORIGIN, &made, &new).await.unwrap();
    assert_eq!(made.outputs["members"].to_string(), r#"["user:b@example.com"]"#);
    let deleted = tenant
        .delete(&Run::new(), &soon(), &urn, ORIGIN, &made, DeleteReason::NotDeclared)
        .await;
    assert_eq!(deleted, Ok(Deleted::Removed));
    set_faults(
        &emulator,
        Faults {
            unavailable_after: 0.0,
            unavailable_before: 1.0,
            ..lost_writes()
        },
    );
    let error = tenant
        .create(&soon(), ORIGIN, &binding(&["user:a@example.com"]))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::DeadlineExceeded);
    // What others granted is not taken for what was to be made.
    emulator.put_policy(
        ORIGIN_TARGET,
        json!({"bindings": [{"role": "roles/x.viewer", "members": ["user:eve@example.com"]}]}),
    );
    let error = tenant
        .create(&soon(), ORIGIN, &binding(&["user:a@example.com"]))
        .await
        .unwrap_err();
    assert!(error.may_have_effect, "{error}");
}

#[tokio::test]
async fn errors_say_what_was_wrong_and_are_not_repeated() {
    let (tenant, emulator) = emulated(json!({})).await;
    emulator.set(Settings {
        missing_targets: [BUCKET_TARGET.to_string()].into(),
        denied_targets: [JOB_TARGET.to_string()].into(),
        missing_identities: ["user:nobody@example.com".to_string()].into(),
        ..Settings::default()
    });
    let cases = [
        (
            BUCKET,
            member("logs", "user:a@example.com"),
            ErrorCode::NotFound,
            "does not exist",
        ),
        (
            JOB,
            member("move", "user:a@example.com"),
            ErrorCode::PermissionDenied,
            "`datamigration.migrationjobs.getIamPolicy`",
        ),
        (
            ORIGIN,
            binding(&["user:nobody@example.com"]),
            ErrorCode::InvalidArgument,
            "correct the identity",
        ),
    ];
    for (token, inputs, code, word) in cases {
        emulator.take_requests();
        let error = create(&tenant, token, &inputs).await.unwrap_err();
        assert_eq!((error.code, error.may_have_effect), (code, false), "{token}: {error}");
        assert!(error.message.contains(word), "{token}: {error}");
        assert!(emulator.take_requests().len() <= 2);
    }
    // A target that is gone has no grants, and nothing to remove.
    let gone = Resource {
        id: format!("{BUCKET_TARGET}/roles/x.viewer/user:a@example.com"),
        outputs: properties(
            json!({"name": "logs", "role": "roles/x.viewer", "member": "user:a@example.com", "project": "home", "etag": "A"}),
        ),
    };
    assert_eq!(read(&tenant, BUCKET, &gone).await, None);
    assert_eq!(delete(&tenant, BUCKET, &gone).await, Deleted::Removed);
}

#[tokio::test]
async fn a_service_that_is_down_or_no_service_is_said_to_be_so() {
    let config = |origin: &str| json!({"project": "home", "computeEndpoint": origin});
    let create = async |origin: &str| {
        let tenant = tenant(&BUILT_IN, config(origin), &[origin], Limits::default()).await;
        let (context, _) = context(1);
        let inputs = member("logs", "user:a@example.com");
        tenant.create(&context, BUCKET, &inputs).await.unwrap_err()
    };
    let down = create("http://127.0.0.1:9").await;
    assert_eq!((down.code, down.may_have_effect), (ErrorCode::DeadlineExceeded, false));
    assert!(down.message.contains("cannot be reached"), "{down}");
    let page = Server::start(Some("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>")).await;
    let page = create(&page.origin).await;
    assert!(page.message.contains("a web page"), "{page}");
}

#[tokio::test]
async fn cancelling_ends_an_operation_before_its_next_attempt() {
    let (tenant, emulator) = emulated(json!({})).await;
    set_faults(
        &emulator,
        Faults {
            too_many_requests: 1.0,
            ..Faults::default()
        },
    );
    let (context, _) = context(600);
    let cancel = context.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let inputs = member("logs", "user:a@example.com");
    let error = tenant.create(&context, BUCKET, &inputs).await.unwrap_err();
    assert_eq!((error.code, error.may_have_effect), (ErrorCode::Cancelled, false));
}

#[tokio::test]
async fn a_grant_that_another_resource_of_the_run_claims_stays() {
    let (tenant, emulator) = emulated(json!({})).await;
    let inputs = member("logs", "user:a@example.com");
    let made = create(&tenant, BUCKET, &inputs).await.unwrap();
    let run = Run::new();
    let (old, new) = (urn(BUCKET, "old"), urn(BUCKET, "new"));
    tenant.check(&run, &new, BUCKET, &inputs).await.unwrap();
    let (context, _) = context(20);
    let deleted = tenant
        .delete(&run, &context, &old, BUCKET, &made, DeleteReason::NotDeclared)
        .await
        .unwrap();
    assert_eq!(deleted, Deleted::KeptFor(new));
    assert_eq!(
        policy(&emulator, BUCKET_TARGET)["bindings"][0]["members"],
        json!(["user:a@example.com"])
    );
    assert!(
        tenant
            .check(&run, &old, BUCKET, &inputs)
            .await
            .unwrap_err()
            .to_string()
            .contains("`new` and `old` both")
    );
}

#[tokio::test]
async fn replace_mode_writes_the_literal_policy_and_claims_the_target() {
    let (tenant, emulator) = emulated(json!({"policyMode": "replace"})).await;
    emulator.put_policy(
        BUCKET_TARGET,
        json!({"bindings": [{"role": "roles/other", "members": ["user:eve@example.com"]}]}),
    );
    let inputs = member("logs", "user:a@example.com");
    let made = create(&tenant, BUCKET, &inputs).await.unwrap();
    let only = json!([{"role": "roles/x.viewer", "members": ["user:a@example.com"]}]);
    assert_eq!(policy(&emulator, BUCKET_TARGET)["bindings"], only);
    let run = Run::new();
    tenant.check(&run, &urn(BUCKET, "one"), BUCKET, &inputs).await.unwrap();
    let second = tenant
        .check(&run, &urn(BUCKET, "two"), BUCKET, &member("logs", "user:b@example.com"))
        .await;
    assert!(second.unwrap_err().to_string().contains("`one` and `two` both"));

    emulator.put_policy(
        BUCKET_TARGET,
        json!({"bindings": [only[0], {"role": "roles/other", "members": ["user:eve@example.com"]}]}),
    );
    let drifted = read(&tenant, BUCKET, &made).await.unwrap();
    let diff = tenant
        .diff(BUCKET, &drifted.id, &drifted.outputs, &inputs)
        .await
        .unwrap();
    assert_eq!(diff.changes[0].path.to_string(), "etag");
    let (context, _) = context(20);
    tenant.update(&context, BUCKET, &drifted, &inputs).await.unwrap();
    assert_eq!(policy(&emulator, BUCKET_TARGET)["bindings"], only);
    delete(&tenant, BUCKET, &made).await;
    assert_eq!(policy(&emulator, BUCKET_TARGET)["bindings"], json!([]));
}

#[tokio::test]
async fn a_replacement_under_replace_mode_is_one_write_and_leaves_no_moment_without_a_grant() {
    let (tenant, emulator) = emulated(json!({"policyMode": "replace"})).await;
    let inputs = member("logs", "user:a@example.com");
    let old = create(&tenant, BUCKET, &inputs).await.unwrap();
    let mut new = inputs.clone();
    new.insert("member".into(), Value::from("user:b@example.com"));
    let diff = tenant.diff(BUCKET, &old.id, &old.outputs, &new).await.unwrap();
    // Both occupy the whole target, and have different ids: the new one is written over the old one.
    assert!(diff.replaces() && !diff.delete_before_replace);
    let (run, urn) = (Run::new(), urn(BUCKET, "x"));
    tenant.check(&run, &urn, BUCKET, &new).await.unwrap();
    emulator.take_requests();
    create(&tenant, BUCKET, &new).await.unwrap();
    let (context, _) = context(20);
    let deleted = tenant
        .delete(&run, &context, &urn, BUCKET, &old, DeleteReason::NotDeclared)
        .await
        .unwrap();
    assert_eq!(deleted, Deleted::KeptFor(urn));
    // Nor does a delete that comes in another run take away what the new one has set.
    assert_eq!(delete(&tenant, BUCKET, &old).await, Deleted::Removed);
    let writes = emulator
        .take_requests()
        .iter()
        .filter(|request| request.method == "POST")
        .count();
    assert_eq!(writes, 1);
    assert_eq!(
        policy(&emulator, BUCKET_TARGET)["bindings"][0]["members"],
        json!(["user:b@example.com"])
    );
}

#[tokio::test]
async fn the_wait_that_the_service_asks_for_is_kept() {
    let (tenant, emulator) = emulated(json!({})).await;
    set_faults(
        &emulator,
        Faults {
            too_many_requests: 1.0,
            retry_after_seconds: 30,
            ..Faults::default()
        },
    );
    let (context, events) = context(600);
    let (cancel, told) = (context.cancel.clone(), Arc::clone(&events));
    tokio::spawn(async move {
        while told.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    });
    tenant
        .create(&context, BUCKET, &member("logs", "user:a@example.com"))
        .await
        .unwrap_err();
    let events = events.lock().unwrap();
    assert!(
        matches!(events[0], Event::Waiting { wait, .. } if wait >= Duration::from_secs(30)),
        "{events:?}"
    );
}

#[tokio::test]
async fn identity_forms_all_accepts_what_the_service_knows() {
    let (documented, _emulator) = emulated(json!({})).await;
    let error = create(&documented, BUCKET, &member("logs", "allUsers"))
        .await
        .unwrap_err();
    assert!(error.message.contains("`identityForms: all`"), "{error}");
    let (all, emulator) = emulated(json!({"identityForms": "all"})).await;
    create(&all, BUCKET, &member("logs", "allUsers")).await.unwrap();
    assert_eq!(
        policy(&emulator, BUCKET_TARGET)["bindings"][0]["members"],
        json!(["allUsers"])
    );
}

#[tokio::test]
async fn an_import_finds_a_grant_by_what_a_person_knows() {
    let (tenant, emulator) = emulated(json!({})).await;
    emulator.put_policy(
        JOB_TARGET,
        json!({"bindings": [{"role": "roles/x.viewer", "members": ["user:Ann@example.com"], "condition": {"title": "for  now", "expression": "true"}}]}),
    );
    let (context, _) = context(20);
    let found = tenant
        .read(&context, JOB, "move roles/x.viewer user:ann@example.com for  now", None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.outputs["name"].as_str(), Some(JOB_TARGET));
    assert_eq!(
        tenant.read(&context, JOB, &found.id, None).await.unwrap(),
        Some(found.clone())
    );
    let declared = properties(json!({
        "name": "move", "role": "roles/x.viewer", "member": "user:ann@example.com", "condition": {"title": "for  now", "expression": "true"},
    }));
    assert!(
        tenant
            .diff(JOB, &found.id, &found.outputs, &declared)
            .await
            .unwrap()
            .changes
            .is_empty()
    );
    assert_eq!(
        tenant
            .read(&context, JOB, "move roles/x.viewer user:bob@example.com", None)
            .await
            .unwrap(),
        None
    );
    assert!(
        tenant
            .read(&context, JOB, "nonsense", None)
            .await
            .unwrap_err()
            .message
            .contains("TARGET ROLE IDENTITY")
    );
}

//! Many operations on one target: what they cost, and what one of them does to the others.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

use std::sync::Arc;
use std::time::Duration;

use bindery_emulator::{Emulator, Faults, Settings};
use bindery_resource::PropertyMap;
use bindery_sandbox::operation::Resource;
use bindery_sandbox::{DeleteReason, ErrorCode, Event, Limits, OperationError, Run, Tenant};
use bindery_tests::{BUILT_IN, UNRULY, context, emulated, properties, tenant, urn};
use serde_json::{Value as Json, json};

const BUCKET: &str = "bindery:compute/v1:BackendBucketIamMember";
const TARGET: &str = "projects/home/global/backendBuckets/logs";
const JOB: &str = "unruly:test/v1:Job";

fn member(member: &str) -> PropertyMap {
    properties(json!({"name": "logs", "role": "roles/x.viewer", "member": member}))
}

fn members(kind: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{kind}:n{n}@example.com")).collect()
}

type Made = Result<Resource, OperationError>;

/// Creates all at once. What each came to, and what it heard.
async fn create_all(tenant: &Arc<Tenant>, token: &'static str, all: Vec<PropertyMap>) -> Vec<(Made, Vec<Event>)> {
    let creating = all.into_iter().map(|inputs| {
        let tenant = Arc::clone(tenant);
        tokio::spawn(async move {
            let (context, events) = context(30);
            let made = tenant.create(&context, token, &inputs).await;
            let heard = events.lock().unwrap().clone();
            (made, heard)
        })
    });
    let creating: Vec<_> = creating.collect();
    let mut made = Vec::new();
    for created in creating {
        made.push(created.await.unwrap());
    }
    made
}

async fn create_members(tenant: &Arc<Tenant>, names: &[String]) -> Vec<(Made, Vec<Event>)> {
    create_all(tenant, BUCKET, names.iter().map(|name| member(name)).collect()).await
}

fn requests(emulator: &Emulator, method: &str) -> usize {
    let requests = emulator.take_requests();
    requests.iter().filter(|request| request.method == method).count()
}

fn granted(emulator: &Emulator) -> Vec<String> {
    let mut members = emulator.members(TARGET, "roles/x.viewer");
    members.sort();
    members
}

#[tokio::test(flavor = "multi_thread")]
async fn many_grants_and_many_reads_cost_a_few_requests() {
    let (tenant, emulator) = emulated(json!({})).await;
    let tenant = Arc::new(tenant);
    let latency = || Settings {
        faults: Faults {
            latency_ms: 50,
            ..Faults::default()
        },
        ..Settings::default()
    };
    emulator.set(latency());
    let names = members("user", 200);
    let made: Vec<Resource> = create_members(&tenant, &names)
        .await
        .into_iter()
        .map(|(made, _)| made.unwrap())
        .collect();
    let mut expected = names.clone();
    expected.sort();
    assert_eq!(granted(&emulator), expected);
    let log = emulator.take_requests();
    assert!(log.len() <= 8, "{} requests", log.len());
    assert!(
        log.iter().all(|request| request.status == 200),
        "no write of ours conflicts with another"
    );
    let reading = made.iter().map(|resource| {
        let (tenant, resource) = (Arc::clone(&tenant), resource.clone());
        tokio::spawn(async move {
            let (context, _) = context(30);
            let found = tenant
                .read(&context, BUCKET, &resource.id, Some(&resource.outputs))
                .await;
            (found.unwrap().unwrap(), resource)
        })
    });
    let reading: Vec<_> = reading.collect();
    for read in reading {
        let (found, resource) = read.await.unwrap();
        assert_eq!(found.id, resource.id);
    }
    let log = emulator.take_requests();
    assert!(
        log.len() <= 4 && log.iter().all(|request| request.method == "GET"),
        "{log:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_the_service_refuses_fails_alone() {
    let (tenant, emulator) = emulated(json!({})).await;
    let tenant = Arc::new(tenant);
    let mut names = members("user", 60);
    let refused = ["user:gone@example.com", "group:gone@example.com"];
    emulator.set(Settings {
        missing_identities: refused.map(String::from).into(),
        ..Settings::default()
    });
    names.insert(17, refused[0].to_string());
    names.insert(40, refused[1].to_string());
    for ((made, _), name) in create_members(&tenant, &names).await.into_iter().zip(&names) {
        if refused.contains(&name.as_str()) {
            let error = made.unwrap_err();
            assert_eq!(
                (error.code, error.may_have_effect),
                (ErrorCode::InvalidArgument, false),
                "{error}"
            );
            assert!(error.message.contains("gone@example.com does not exist"), "{error}");
        } else {
            assert_eq!(made.unwrap().outputs["member"].as_str(), Some(name.as_str()));
        }
    }
    assert_eq!(granted(&emulator).len(), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_known_to_have_done_nothing_whatever_failed_before() {
    let (tenant, emulator) = emulated(json!({})).await;
    let tenant = Arc::new(tenant);
    emulator.set(Settings {
        missing_identities: ["user:gone@example.com".to_string()].into(),
        faults: Faults {
            seed: 3,
            writes_only: true,
            unavailable_before: 0.7,
            ..Faults::default()
        },
        ..Settings::default()
    });
    let (context, events) = context(60);
    let inputs = member("user:gone@example.com");
    let error = tenant.create(&context, BUCKET, &inputs).await.unwrap_err();
    assert!(!events.lock().unwrap().is_empty(), "it was tried more than once");
    assert_eq!(
        (error.code, error.may_have_effect),
        (ErrorCode::InvalidArgument, false),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_in_their_thousands_cost_no_more_than_a_call_may_take() {
    let (tenant, emulator) = emulated(json!({})).await;
    let tenant = Arc::new(tenant);
    let bindings: Vec<Json> = (0..1_200)
        .map(|number| {
            let expression = format!("{} && resource.name == \"{number}\"", "true && ".repeat(100) + "true");
            json!({
                "role": "roles/x.viewer", "members": [format!("user:there{number}@example.com")],
                "condition": {"title": format!("condition {number}"), "expression": expression},
            })
        })
        .collect();
    emulator.put_policy(TARGET, json!({"bindings": bindings}));
    emulator.set(Settings {
        faults: Faults {
            latency_ms: 50,
            ..Faults::default()
        },
        ..Settings::default()
    });
    let made = create_members(&tenant, &members("user", 256)).await;
    assert!(made.iter().all(|(made, _)| made.is_ok()));
    // Out of its CPU time it would be halved, and read again and again.
    assert!(emulator.take_requests().len() <= 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_longer_fits_into_a_policy_fails_alone_and_is_never_sent() {
    for (kind, limit, said) in [("user", 1_500, "1501 identities"), ("group", 250, "251 groups")] {
        let (tenant, emulator) = emulated(json!({})).await;
        let tenant = Arc::new(tenant);
        let there = members(kind, limit - 10);
        emulator.put_policy(
            TARGET,
            json!({"bindings": [{"role": "roles/x.viewer", "members": there}]}),
        );
        let more: Vec<String> = (0..25).map(|n| format!("{kind}:more{n}@example.com")).collect();
        let (made, refused): (Vec<_>, Vec<_>) = create_members(&tenant, &more)
            .await
            .into_iter()
            .map(|(made, _)| made)
            .partition(Result::is_ok);
        assert_eq!((made.len(), refused.len()), (10, 15));
        for error in refused.into_iter().map(Result::unwrap_err) {
            assert!(
                error.message.contains(said) && error.message.contains(&limit.to_string()),
                "{error}"
            );
            assert!(!error.may_have_effect);
        }
        assert_eq!(granted(&emulator).len(), limit);
        assert!(emulator.take_requests().iter().all(|request| request.status == 200));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_goes_in_the_midst_fails_what_is_to_be_granted_and_lets_the_rest_pass() {
    let (tenant, emulator) = emulated(json!({})).await;
    let tenant = Arc::new(tenant);
    let made = create_members(&tenant, &members("user", 10)).await;
    let made: Vec<Resource> = made.into_iter().map(|(made, _)| made.unwrap()).collect();
    emulator.set(Settings {
        missing_targets: [TARGET.to_string()].into(),
        ..Settings::default()
    });
    let deleting = made.iter().map(|resource| {
        let (tenant, resource) = (Arc::clone(&tenant), resource.clone());
        tokio::spawn(async move {
            let (context, _) = context(30);
            let urn = urn(BUCKET, "x");
            tenant
                .delete(
                    &Run::new(),
                    &context,
                    &urn,
                    BUCKET,
                    &resource,
                    DeleteReason::NotDeclared,
                )
                .await
        })
    });
    let deleting: Vec<_> = deleting.collect();
    for (created, _) in create_members(&tenant, &members("group", 5)).await {
        let error = created.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
        assert!(error.message.contains(TARGET), "{error}");
    }
    for deleted in deleting {
        assert!(deleted.await.unwrap().is_ok());
    }
    // What is elsewhere has nothing to do with it.
    let (context, _) = context(10);
    let elsewhere = properties(json!({"name": "other", "role": "roles/x.viewer", "member": "user:a@example.com"}));
    assert!(tenant.create(&context, BUCKET, &elsewhere).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_many_is_one_effect_and_only_who_adopts_hears_of_it() {
    let (tenant, emulator) = emulated(json!({})).await;
    let tenant = Arc::new(tenant);
    emulator.put_policy(
        TARGET,
        json!({"bindings": [{"role": "roles/x.viewer", "members": ["user:n3@example.com"]}]}),
    );
    let adopting = create_members(&tenant, &members("user", 6)).await;
    for (index, (made, heard)) in adopting.iter().enumerate() {
        assert!(made.is_ok());
        let is_warned = heard.iter().any(|event| matches!(event, Event::Warning(_)));
        assert_eq!(is_warned, index == 3, "{heard:?}");
    }
    emulator.take_requests();
    emulator.set(Settings {
        faults: Faults {
            writes_only: true,
            reset_after: 1.0,
            ..Faults::default()
        },
        ..Settings::default()
    });
    let names: Vec<String> = (0..50).map(|n| format!("user:lost{n}@example.com")).collect();
    for (made, heard) in create_members(&tenant, &names).await {
        assert!(made.is_ok());
        assert!(
            heard.iter().all(|event| matches!(event, Event::Waiting { .. })),
            "it was made here, and not adopted: {heard:?}"
        );
    }
    assert_eq!(granted(&emulator).len(), 56);
    assert!(requests(&emulator, "POST") <= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_many_at_their_deadline_is_found_out_by_one_read() {
    let (tenant, emulator) = emulated(json!({})).await;
    let tenant = Arc::new(tenant);
    emulator.set(Settings {
        faults: Faults {
            writes_only: true,
            unavailable_after: 1.0,
            ..Faults::default()
        },
        ..Settings::default()
    });
    let creating = members("user", 30).into_iter().map(|name| {
        let tenant = Arc::clone(&tenant);
        tokio::spawn(async move {
            let (mut context, _) = context(0);
            context.deadline += Duration::from_millis(240);
            tenant.create(&context, BUCKET, &member(&name)).await
        })
    });
    let creating: Vec<_> = creating.collect();
    for created in creating {
        assert!(created.await.unwrap().is_ok());
    }
    assert!(requests(&emulator, "GET") <= 6, "a few commits, and as many reads");
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_do_not_fail_with_the_writes_beside_them() {
    let (tenant, emulator) = emulated(json!({})).await;
    let tenant = Arc::new(tenant);
    let (context, _) = context(30);
    let made = tenant
        .create(&context, BUCKET, &member("user:ann@example.com"))
        .await
        .unwrap();
    emulator.set(Settings {
        faults: Faults {
            writes_only: true,
            conflict: 1.0,
            ..Faults::default()
        },
        ..Settings::default()
    });
    let writer = Arc::clone(&tenant);
    let writing = tokio::spawn(async move {
        let (context, _) = bindery_tests::context(4);
        writer.create(&context, BUCKET, &member("user:bob@example.com")).await
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let found = tenant
        .read(&context, BUCKET, &made.id, Some(&made.outputs))
        .await
        .unwrap();
    assert!(found.is_some() && !writing.is_finished());
    assert_eq!(writing.await.unwrap().unwrap_err().code, ErrorCode::DeadlineExceeded);
}

fn job(name: &str, conduct: &str) -> PropertyMap {
    properties(json!({"name": name, "conduct": conduct}))
}

/// Jobs that work, and one in their midst that does not.
async fn jobs_with(conduct: &str) -> Vec<(Made, Vec<Event>)> {
    let tenant = Arc::new(tenant(&UNRULY, json!({}), &[], Limits::default()).await);
    let mut jobs: Vec<PropertyMap> = (0..20).map(|n| job(&format!("job-{n}"), "work")).collect();
    jobs.insert(7, job("other", conduct));
    create_all(&tenant, JOB, jobs).await
}

#[tokio::test(flavor = "multi_thread")]
async fn any_provider_with_commit_is_called_once_for_many() {
    let all = jobs_with("speak").await;
    let together: Vec<f64> = all
        .iter()
        .map(|(made, _)| match made.as_ref().unwrap().outputs["together"] {
            bindery_resource::Value::Number(together) => together,
            ref other => panic!("{other} is no number"),
        })
        .collect();
    assert!(together.iter().any(|together| *together > 1.0), "{together:?}");
    for (index, (_, heard)) in all.iter().enumerate() {
        let to_one = heard.contains(&Event::Warning("said to one".to_string()));
        assert_eq!(to_one, index == 7, "{heard:?}");
    }
    let (_, heard) = &all[7];
    assert!(heard.contains(&Event::Warning("said to all".to_string())), "{heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operation_that_spoils_a_commit_is_found_and_fails_alone() {
    for (conduct, said) in [
        ("fail", "not this one"),
        ("spoil", "not with this one"),
        ("panic", "as it was told to"),
        ("shorten", "0 answers to 1 operations"),
    ] {
        for (index, (made, _)) in jobs_with(conduct).await.into_iter().enumerate() {
            match made {
                Ok(_) => assert_ne!(index, 7, "{conduct}"),
                Err(error) => assert!(
                    index == 7 && error.message.contains(said),
                    "{conduct}, {index}: {error}"
                ),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn four_hosts_on_one_target_lose_nothing() {
    let (first, emulator) = emulated(json!({})).await;
    let origin = emulator.origin();
    let mut hosts = vec![Arc::new(first)];
    for _ in 0..3 {
        let config = json!({"project": "home", "computeEndpoint": origin});
        hosts.push(Arc::new(tenant(&BUILT_IN, config, &[&origin], Limits::default()).await));
    }
    let foreign = json!({"bindings": [{"role": "roles/foreign", "members": ["user:MiXed@example.com"]}]});
    emulator.put_policy(TARGET, foreign.clone());
    let working = hosts.iter().enumerate().map(|(number, host)| {
        let host = Arc::clone(host);
        tokio::spawn(async move {
            let names: Vec<String> = (0..30).map(|n| format!("user:h{number}n{n}@example.com")).collect();
            create_members(&host, &names).await
        })
    });
    let working: Vec<_> = working.collect();
    for worked in working {
        assert!(worked.await.unwrap().iter().all(|(made, _)| made.is_ok()));
    }
    assert_eq!(granted(&emulator).len(), 120);
    let held = Json::Object(emulator.policies().get(TARGET));
    assert_eq!(held["bindings"][0], foreign["bindings"][0]);
}

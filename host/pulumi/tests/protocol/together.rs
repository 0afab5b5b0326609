//! Many resources on one target that the engine makes at the same time.

use std::sync::Arc;

use bindery_emulator::{Faults, Hold, Settings};
use pulumi_gestalt_proto::pulumi::pulumirpc::{CreateRequest, CreateResponse};
use serde_json::{Value, json};
use tonic::Status;

use crate::harness::*;

const ROLE: &str = "roles/compute.viewer";
const COUNT: usize = 50;

fn inputs(number: usize) -> Value {
    member(ROLE, &format!("user:u{number}@x.com"))
}

/// Checks all, and creates them at once.
async fn create_all(plugin: &mut Plugin) -> Vec<Result<CreateResponse, Status>> {
    let mut creating = Vec::new();
    for number in 0..COUNT {
        let name = format!("r{number}");
        let inputs = plugin.check(MEMBER, &name, &json!({}), &inputs(number)).await;
        let request = CreateRequest {
            urn: urn(MEMBER, &name),
            name,
            r#type: MEMBER.to_string(),
            properties: Some(fields(&inputs)),
            ..CreateRequest::default()
        };
        creating.push((plugin.client.clone(), request));
    }
    let creating = creating
        .into_iter()
        .map(|(mut client, request)| tokio::spawn(async move { Ok(client.create(request).await?.into_inner()) }));
    let creating: Vec<_> = creating.collect();
    let mut made = Vec::new();
    for created in creating {
        made.push(created.await.unwrap());
    }
    made
}

fn all_made(plugin: &Plugin, made: Vec<Result<CreateResponse, Status>>) {
    for (number, made) in made.into_iter().enumerate() {
        let outputs = json(made.unwrap().properties.as_ref().unwrap());
        assert_eq!(outputs["member"], inputs(number)["member"], "each its own answer");
    }
    let mut members = plugin.emulator.members(BUCKET, ROLE);
    members.sort();
    members.dedup();
    assert_eq!(members.len(), COUNT);
}

fn writes(plugin: &Plugin) -> usize {
    let requests = plugin.emulator.take_requests();
    requests.iter().filter(|request| request.method == "POST").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn they_cost_a_few_requests_and_a_lost_answer_is_one_effect() {
    let mut plugin = Plugin::configured().await;
    plugin.emulator.set(Settings {
        faults: Faults {
            writes_only: true,
            reset_after: 1.0,
            ..Faults::default()
        },
        ..Settings::default()
    });
    let made = create_all(&mut plugin).await;
    all_made(&plugin, made);
    assert!(writes(&plugin) <= 10, "{} writes", writes(&plugin));
    assert!(!plugin.logs.has("already"), "they were made here, and not adopted");
    assert!(plugin.logs.has("trying again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_the_service_refuses_fails_alone() {
    let mut plugin = Plugin::configured().await;
    plugin.emulator.set(Settings {
        missing_identities: ["user:u7@x.com".to_string()].into(),
        ..Settings::default()
    });
    let made = create_all(&mut plugin).await;
    for (number, made) in made.into_iter().enumerate() {
        match made {
            Ok(_) => assert_ne!(number, 7),
            Err(error) => assert!(
                number == 7 && error.message().contains("u7@x.com does not exist"),
                "{error}"
            ),
        }
    }
    assert_eq!(plugin.emulator.members(BUCKET, ROLE).len(), COUNT - 1);
}

#[tokio::test]
async fn what_is_secret_in_one_is_not_shown_at_another() {
    let mut plugin = Plugin::configured().await;
    let mut hidden = member(ROLE, "");
    hidden["member"] = secret(&json!("user:hidden-name@x.com"));
    plugin.make(MEMBER, "hidden", &hidden).await;
    // It is in the policy now, and the service comes to refuse it: whoever writes is told of it.
    plugin.emulator.set(Settings {
        missing_identities: ["user:hidden-name@x.com".to_string()].into(),
        ..Settings::default()
    });
    let inputs = plugin.check(MEMBER, "other", &json!({}), &inputs(1)).await;
    let error = plugin
        .try_create(MEMBER, "other", &inputs, false, 0.0)
        .await
        .unwrap_err();
    assert!(
        error.message().contains("[secret]") && !error.message().contains("hidden-name"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_midst_of_a_commit_the_next_run_makes_what_is_missing() {
    for done in [false, true] {
        let mut killed = Plugin::configured().await;
        killed.emulator.set(Settings {
            hold: Some(Hold { request: 2, done }),
            ..Settings::default()
        });
        let emulator = killed.emulator.origin();
        let held = Arc::clone(&killed.emulator);
        let pid = rustix::process::Pid::from_child(&killed.child);
        let (made, ()) = tokio::join!(create_all(&mut killed), async {
            // The engine's calls end with the process.
            while !held.is_holding() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        });
        assert!(killed.emulator.is_holding());
        assert!(made.iter().any(Result::is_err));
        killed.emulator.set(Settings::default());
        let mut next = Plugin::start(Start::default()).await;
        next.configure(json!({"project": "home", "computeEndpoint": emulator}))
            .await
            .unwrap();
        let made = create_all(&mut next).await;
        all_made(&killed, made);
    }
}

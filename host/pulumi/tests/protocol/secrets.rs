//! Secret inputs stay secret in outputs, and are in no message.

use serde_json::json;

use crate::harness::*;

const NAME: &str = "user:hidden-name@x.com";

#[tokio::test]
async fn a_secret_input_is_a_secret_output() {
    let mut plugin = Plugin::configured().await;
    let mut wanted = binding("roles/networkservices.viewer", &["user:a@x.com"]);
    wanted["members"] = json!(["user:a@x.com", secret(&json!(NAME))]);
    let made = plugin.make(BINDING, "b", &wanted).await;
    assert_eq!(made.outputs["members"], wanted["members"]);
    assert_eq!(
        plugin.emulator.members(ORIGIN, "roles/networkservices.viewer"),
        ["user:a@x.com", NAME]
    );
    assert_eq!(plugin.refresh(&made).await.unwrap(), made);
    // In a list in which it stands elsewhere, all is secret.
    for drifted in [
        &[NAME][..],
        &[NAME, "user:c@x.com"],
        &["user:c@x.com", "user:a@x.com", NAME],
    ] {
        let policy = json!({"bindings": [{"role": "roles/networkservices.viewer", "members": drifted}]});
        plugin.emulator.put_policy(ORIGIN, policy);
        let fresh = plugin.refresh(&made).await.unwrap();
        for side in [&fresh.outputs, &fresh.inputs] {
            let marked = [&side["members"], &side["members"][1]];
            assert!(marked.iter().any(|value| value[SIGNATURE] == SECRET), "{side}");
            assert_ne!(side["members"][0], NAME, "{side}");
        }
    }
}

#[tokio::test]
async fn being_secret_is_no_difference() {
    let mut plugin = Plugin::configured().await;
    let made = plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
    let mut news = made.inputs.clone();
    news["member"] = secret(&json!("user:a@x.com"));
    assert!(plugin.diff(&made, &news).await.diffs.is_empty());
}

#[tokio::test]
async fn a_secret_is_in_no_failure_error_or_log() {
    let mut plugin = Plugin::configured().await;
    let wrong = json!({"name": "logs", "role": "roles/one", "member": secret(&json!("hidden-name"))});
    let failures = plugin
        .try_check(MEMBER, "m", &json!({}), &wrong)
        .await
        .unwrap()
        .unwrap_err();
    assert!(
        failures[0].reason.contains("`member`: `[secret]`"),
        "{}",
        failures[0].reason
    );
    assert_eq!(failures[0].property, "", "the engine would print its value");

    let mut right = member("roles/one", "");
    right["member"] = secret(&json!(NAME));
    let inputs = plugin.check(MEMBER, "m", &json!({}), &right).await;
    plugin.emulator.set(bindery_emulator::Settings {
        missing_identities: [NAME.to_string()].into(),
        ..Default::default()
    });
    let error = plugin.try_create(MEMBER, "m", &inputs, false, 0.0).await.unwrap_err();
    assert!(error.message().contains("[secret]"), "{error}");
    assert!(!error.message().contains("hidden-name"), "{error}");

    let mut name = member("roles/one", "user:a@x.com");
    name["name"] = secret(&json!("hidden-name"));
    plugin.emulator.set(bindery_emulator::Settings {
        faults: bindery_emulator::Faults {
            unavailable_before: 0.6,
            seed: 1,
            ..Default::default()
        },
        ..Default::default()
    });
    let inputs = plugin.check(MEMBER, "n", &json!({}), &name).await;
    plugin.try_create(MEMBER, "n", &inputs, false, 60.0).await.unwrap();
    let waits: Vec<_> = plugin.logs.all().into_iter().filter(|log| log.ephemeral).collect();
    assert!(
        waits
            .iter()
            .any(|wait| wait.message.contains("trying again in") && wait.urn == urn(MEMBER, "n"))
    );
    for log in plugin.logs.all() {
        assert!(!log.message.contains("hidden-name"), "{}", log.message);
    }
}

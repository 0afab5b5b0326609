//! Create, no change, update, replace, refresh, import, delete: what the engine calls for each, in its order.

use pulumi_gestalt_proto::pulumi::pulumirpc::ReadResponse;
use pulumi_gestalt_proto::pulumi::pulumirpc::property_diff::Kind;
use serde_json::json;

use crate::harness::*;

#[tokio::test]
async fn each_type_is_made_and_removed() {
    let mut plugin = Plugin::configured().await;
    for (token, target, role, inputs) in [
        (
            MEMBER,
            BUCKET,
            "roles/compute.viewer",
            member("roles/compute.viewer", "user:a@x.com"),
        ),
        (
            BINDING,
            ORIGIN,
            "roles/networkservices.viewer",
            binding("roles/networkservices.viewer", &["user:a@x.com", "group:g@x.com"]),
        ),
        (
            JOB,
            "projects/home/locations/us-east1/migrationJobs/orders",
            "roles/datamigration.admin",
            json!({
                "name": "projects/home/locations/us-east1/migrationJobs/orders", "role": "roles/datamigration.admin",
                "member": "user:a@x.com", "condition": {"title": "t", "expression": "true"},
            }),
        ),
    ] {
        let made = plugin.make(token, "r", &inputs).await;
        assert_eq!(made.outputs["project"], "home");
        assert_eq!(plugin.emulator.members(target, role)[0], "user:a@x.com");
        plugin.next_run().await;
        plugin.delete(&made).await;
        assert_eq!(plugin.emulator.members(target, role), [""; 0]);
        plugin.delete(&made).await;
    }
    assert_eq!(plugin.end().await, "", "stdout holds the port and nothing else");
}

#[tokio::test]
async fn members_of_a_binding_change_in_place() {
    let mut plugin = Plugin::configured().await;
    let role = "roles/networkservices.viewer";
    let made = plugin
        .make(BINDING, "b", &binding(role, &["user:a@x.com", "user:b@x.com"]))
        .await;
    let news = plugin
        .check(
            BINDING,
            "b",
            &made.inputs,
            &binding(role, &["user:b@x.com", "user:c@x.com"]),
        )
        .await;
    let diff = plugin.diff(&made, &news).await;
    assert_eq!(diff.diffs, ["members"]);
    assert!(diff.replaces.is_empty());
    let planned = plugin.try_update(&made, &news, true).await.unwrap();
    assert!(has_unknown(&planned.outputs["etag"]));
    let updated = plugin.try_update(&made, &news, false).await.unwrap();
    assert_eq!(updated.outputs["members"], news["members"]);
    assert_eq!(plugin.emulator.members(ORIGIN, role), ["user:b@x.com", "user:c@x.com"]);
    assert!(plugin.diff(&updated, &news).await.diffs.is_empty());
    // The same set in another order is the same.
    let news = plugin
        .check(BINDING, "b", &news, &binding(role, &["user:c@x.com", "user:b@x.com"]))
        .await;
    assert!(plugin.diff(&updated, &news).await.diffs.is_empty());
}

#[tokio::test]
async fn another_role_is_a_replacement_that_is_made_first() {
    let mut plugin = Plugin::configured().await;
    let made = plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
    plugin.next_run().await;
    let news = plugin
        .check(MEMBER, "m", &made.inputs, &member("roles/two", "user:a@x.com"))
        .await;
    let diff = plugin.diff(&made, &news).await;
    assert_eq!(
        (&diff.replaces, diff.delete_before_replace),
        (&vec!["role".to_string()], false)
    );
    assert_eq!(diff.detailed_diff["role"].kind(), Kind::UpdateReplace);
    let replaced = plugin.make(MEMBER, "m", &member("roles/two", "user:a@x.com")).await;
    plugin.delete(&made).await;
    assert_eq!(plugin.emulator.members(BUCKET, "roles/one"), [""; 0]);
    assert_eq!(plugin.emulator.members(BUCKET, "roles/two"), ["user:a@x.com"]);
    assert_eq!(replaced.outputs["role"], "roles/two");
}

#[tokio::test]
async fn what_is_replaced_by_the_same_is_deleted_first_and_made_again() {
    let mut plugin = Plugin::configured().await;
    let role = "roles/networkservices.viewer";
    let made = plugin.make(BINDING, "b", &binding(role, &["user:a@x.com"])).await;
    plugin.next_run().await;
    let wanted = binding(role, &["user:b@x.com"]);
    let news = plugin.check(BINDING, "b", &made.inputs, &wanted).await;
    // The program may make a replacement of it, and both would be the same grant.
    assert!(plugin.diff(&made, &news).await.delete_before_replace);
    let inputs = plugin.check(BINDING, "b", &json!({}), &wanted).await;
    plugin.delete(&made).await;
    assert_eq!(plugin.emulator.members(ORIGIN, role), [""; 0]);
    plugin.try_create(BINDING, "b", &inputs, false, 0.0).await.unwrap();
    assert_eq!(plugin.emulator.members(ORIGIN, role), ["user:b@x.com"]);
}

#[tokio::test]
async fn a_delete_that_comes_after_the_end_of_its_run_does_nothing() {
    let mut plugin = Plugin::configured().await;
    let made = plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
    plugin.client.cancel(()).await.unwrap();
    let error = plugin.try_delete(&made).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::Cancelled, "{error}");
    assert_eq!(plugin.emulator.members(BUCKET, "roles/one"), ["user:a@x.com"]);
    plugin.next_run().await;
    plugin.delete(&made).await;
    assert_eq!(plugin.emulator.members(BUCKET, "roles/one"), [""; 0]);
}

#[tokio::test]
async fn what_could_not_be_made_at_once_keeps_its_claim() {
    let mut plugin = Plugin::configured().await;
    let old = plugin.make(MEMBER, "old", &member("roles/one", "user:a@x.com")).await;
    plugin.next_run().await;
    let inputs = plugin.check(MEMBER, "new", &json!({}), &old.inputs).await;
    plugin.emulator.set(bindery_emulator::Settings {
        denied_targets: [BUCKET.to_string()].into(),
        ..Default::default()
    });
    plugin.try_create(MEMBER, "new", &inputs, false, 0.0).await.unwrap_err();
    plugin.emulator.set(bindery_emulator::Settings::default());
    // The program may ask the engine to try again.
    plugin.try_create(MEMBER, "new", &inputs, false, 0.0).await.unwrap();
    plugin.delete(&old).await;
    assert_eq!(plugin.emulator.members(BUCKET, "roles/one"), ["user:a@x.com"]);
}

#[tokio::test]
async fn what_an_earlier_run_left_to_delete_does_not_take_away_what_is_there() {
    let mut plugin = Plugin::configured().await;
    let made = plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
    plugin.next_run().await;
    // The run before made the same again first, and was stopped before it deleted the old one.
    plugin.check(MEMBER, "m", &made.inputs, &made.inputs).await;
    plugin.delete(&made).await;
    assert_eq!(plugin.emulator.members(BUCKET, "roles/one"), ["user:a@x.com"]);
    assert!(plugin.logs.has("what it granted stays: `m` declares it now"));
}

#[tokio::test]
async fn a_renamed_resource_and_two_that_swap_lose_nothing() {
    let mut plugin = Plugin::configured().await;
    let one = plugin.make(MEMBER, "one", &member("roles/one", "user:a@x.com")).await;
    let two = plugin.make(MEMBER, "two", &member("roles/two", "user:a@x.com")).await;
    plugin.next_run().await;
    for (name, old, role) in [("one", &one, "roles/two"), ("two", &two, "roles/one")] {
        let wanted = member(role, "user:a@x.com");
        plugin.check(MEMBER, name, &old.inputs, &wanted).await;
        plugin.make(MEMBER, name, &wanted).await;
    }
    plugin.delete(&one).await;
    plugin.delete(&two).await;
    for role in ["roles/one", "roles/two"] {
        assert_eq!(plugin.emulator.members(BUCKET, role), ["user:a@x.com"]);
    }
    plugin.next_run().await;
    let renamed = plugin
        .make(MEMBER, "renamed", &member("roles/one", "user:a@x.com"))
        .await;
    plugin
        .delete(&Made {
            name: "two".to_string(),
            ..renamed.clone()
        })
        .await;
    assert_eq!(plugin.emulator.members(BUCKET, "roles/one"), ["user:a@x.com"]);
}

#[tokio::test]
async fn a_claim_has_one_owner_until_the_run_is_over() {
    let mut plugin = Plugin::configured().await;
    let inputs = member("roles/one", "user:a@x.com");
    plugin.check(MEMBER, "first", &json!({}), &inputs).await;
    let failures = plugin
        .try_check(MEMBER, "second", &json!({}), &inputs)
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(failures[0].property, "");
    assert!(
        failures[0].reason.contains("`first` and `second` both declare"),
        "{}",
        failures[0].reason
    );
    plugin.next_run().await;
    plugin.check(MEMBER, "second", &json!({}), &inputs).await;
}

#[tokio::test]
async fn a_refresh_sees_drift_and_what_is_gone() {
    let mut plugin = Plugin::configured().await;
    let role = "roles/networkservices.viewer";
    let made = plugin.make(BINDING, "b", &binding(role, &["user:a@x.com"])).await;
    assert_eq!(plugin.refresh(&made).await.unwrap(), made);
    let policy = json!({"bindings": [{"role": role, "members": ["user:a@x.com", "user:new@x.com"]}]});
    plugin.emulator.put_policy(ORIGIN, policy);
    let fresh = plugin.refresh(&made).await.unwrap();
    assert_eq!(fresh.inputs["members"], json!(["user:a@x.com", "user:new@x.com"]));
    assert_eq!(fresh.outputs["members"], fresh.inputs["members"]);
    // The engine asks for the difference the other way round.
    let inputs = made.inputs.clone();
    assert_eq!(plugin.diff(&fresh, &inputs).await.diffs, ["members"]);
    assert!(
        plugin
            .try_diff(&fresh, &inputs, &["members"])
            .await
            .unwrap()
            .diffs
            .is_empty()
    );
    plugin.emulator.put_policy(ORIGIN, json!({}));
    assert_eq!(plugin.refresh(&made).await, None);
}

#[tokio::test]
async fn a_refresh_gives_back_no_inputs_that_the_program_did_not_set() {
    let mut plugin = Plugin::configured().await;
    let made = plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
    let mut inputs = made.inputs.clone();
    inputs.as_object_mut().unwrap().remove("project");
    let made = Made { inputs, ..made };
    assert_eq!(plugin.refresh(&made).await.unwrap().inputs, made.inputs);
}

#[tokio::test]
async fn an_import_needs_the_id_alone_and_then_nothing_changes() {
    let mut plugin = Plugin::configured().await;
    let made = plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
    let spoken = format!("{BUCKET} roles/one user:a@x.com");
    for id in [made.id.as_str(), &spoken] {
        plugin.next_run().await;
        let read = plugin.read(MEMBER, "m", id, None).await;
        let found = Made {
            id: read.id,
            inputs: json(&read.inputs.unwrap()),
            outputs: json(&read.properties.unwrap()),
            ..made.clone()
        };
        assert_eq!(found.id, made.id);
        let checked = plugin.check(MEMBER, "m", &found.inputs, &found.inputs).await;
        assert!(plugin.diff(&found, &checked).await.diffs.is_empty());
    }
    let gone = plugin
        .read(MEMBER, "m", &spoken.replace("user:a", "user:other"), None)
        .await;
    assert_eq!(gone, ReadResponse::default());
}

#[tokio::test]
async fn a_program_that_only_looks_knows_some_of_the_state() {
    let mut plugin = Plugin::configured().await;
    let made = plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
    for known in [json!({}), json!({"role": "roles/one"})] {
        let read = plugin.read(MEMBER, "look", &made.id, Some((&known, &known))).await;
        let found = json(&read.properties.unwrap());
        assert_eq!(
            (&found["member"], &found["etag"]),
            (&made.outputs["member"], &made.outputs["etag"])
        );
    }
}

#[tokio::test]
async fn seven_unknowns_are_known_as_such_and_diffs_see_them_also_outside_of_previews() {
    let mut plugin = Plugin::configured().await;
    let made = plugin.make(MEMBER, "m", &member("roles/one", "user:a@x.com")).await;
    plugin.next_run().await;
    for unknown in UNKNOWNS {
        let news = member("roles/one", unknown);
        let checked = plugin.check(MEMBER, "m", &made.inputs, &news).await;
        assert_eq!(checked["member"], UNKNOWN, "one of them goes back");
        let diff = plugin.diff(&made, &checked).await;
        assert_eq!(diff.detailed_diff["member"].kind(), Kind::UpdateReplace);
        let planned = plugin.try_create(MEMBER, "m", &checked, true, 0.0).await.unwrap();
        assert!(has_unknown(&json(&planned.properties.unwrap())["member"]));
        let refused = plugin.try_create(MEMBER, "m", &checked, false, 0.0).await.unwrap_err();
        assert!(refused.message().contains("`member`: is not known yet"), "{refused}");
    }
}

//! Operations as a user meets them: adopted grants, imports, limits, drift.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

use bindery_policy::config::{Config, IdentityForms, PolicyMode};
use bindery_policy::document::Policy;
use bindery_policy::failure::UnknownPaths;
use bindery_policy::operation::{Operation, Outcome, Prepared, Refusal};
use bindery_policy::resource::{self, Args, State};
use bindery_policy::target::TargetKind;
use serde_json::{Value, json};

const KIND: TargetKind = TargetKind::BackendBucket;

fn config() -> Config {
    Config {
        project: Some("home".into()),
        identity_forms: IdentityForms::Documented,
        ..Config::default()
    }
}

fn policy(value: Value) -> Policy {
    Policy::parse(&value.to_string()).unwrap()
}

fn args(member: &str) -> Args<String> {
    Args {
        subject: member.into(),
        name: "logs".into(),
        role: "roles/x.viewer".into(),
        condition: None,
        project: None,
    }
}

fn run(policy: &mut Policy, operation: Operation<String>) -> Result<Outcome<String>, Refusal> {
    Prepared::new(KIND, &config(), operation)?.apply(&config(), policy)
}

fn import(policy: &Policy, what: &str) -> Result<Option<State<String>>, Refusal> {
    let read = Operation::Read {
        id: what.into(),
        last: None,
    };
    run(&mut policy.clone(), read).map(|outcome| outcome.state)
}

#[test]
fn a_grant_that_was_there_is_adopted_with_a_warning_and_without_a_write() {
    let mut policy =
        policy(json!({"etag": "A", "bindings": [{"role": "roles/x.viewer", "members": ["user:ANN@example.com"]}]}));
    let outcome = run(&mut policy, Operation::Create(args("user:ann@example.com"))).unwrap();
    assert!(!outcome.changed);
    assert!(outcome.warning.unwrap().contains("had `roles/x.viewer` already"));
}

#[test]
fn a_binding_warns_of_those_who_lose_the_role() {
    let mut policy = policy(
        json!({"etag": "A", "bindings": [{"role": "roles/x", "members": ["user:eve@example.com", "user:ann@example.com"]}]}),
    );
    let args = Args {
        subject: vec!["user:ann@example.com".to_string()],
        name: "o".into(),
        role: "roles/x".into(),
        condition: None,
        project: None,
    };
    let prepared = Prepared::new(TargetKind::EdgeCacheOrigin, &config(), Operation::Create(args)).unwrap();
    let warning = prepared.apply(&config(), &mut policy).unwrap().warning.unwrap();
    assert!(warning.ends_with("user:eve@example.com"), "{warning}");
}

#[test]
fn a_grant_over_a_limit_is_refused_alone_and_leaves_the_policy() {
    let members: Vec<String> = (0..1_500).map(|n| format!("user:u{n}@example.com")).collect();
    let mut full = policy(json!({"etag": "A", "bindings": [{"role": "roles/x.viewer", "members": members}]}));
    let before = full.clone();
    let refusal = run(&mut full, Operation::Create(args("user:ann@example.com"))).unwrap_err();
    assert!(matches!(refusal, Refusal::Invalid(reason) if reason.contains("1501") && reason.contains("1500")));
    assert_eq!(full, before);
    assert!(run(&mut full, Operation::Create(args("user:u7@example.com"))).is_ok());
}

#[test]
fn an_import_names_the_parts_or_the_id() {
    let policy = policy(json!({"etag": "A", "bindings": [
        {"role": "roles/x.viewer", "members": ["user:Ann@example.com"]},
        {"role": "roles/x.viewer", "members": ["user:ann@example.com"], "condition": {"title": "until  spring", "expression": "true"}},
    ]}));
    let plain = import(&policy, "logs roles/x.viewer user:ann@example.com")
        .unwrap()
        .unwrap();
    assert_eq!(plain.subject, "user:Ann@example.com");
    assert_eq!(plain.name, "projects/home/global/backendBuckets/logs");
    let titled = import(&policy, "logs roles/x.viewer user:ann@example.com until  spring")
        .unwrap()
        .unwrap();
    assert_eq!(titled.condition.as_ref().unwrap().expression, "true");
    assert_eq!(import(&policy, &titled.id).unwrap().unwrap(), titled);
    assert_eq!(
        import(&policy, "logs roles/x.viewer user:bob@example.com").unwrap(),
        None
    );
    assert_eq!(
        import(&policy, "logs roles/x.viewer user:ann@example.com spring").unwrap(),
        None
    );
}

#[test]
fn two_conditions_of_one_title_are_told_apart_by_their_ids() {
    let binding = |expression: &str| json!({"role": "roles/x.viewer", "members": ["user:ann@example.com"], "condition": {"title": "t", "expression": expression}});
    let policy = policy(json!({"etag": "A", "bindings": [binding("true"), binding("false")]}));
    let Refusal::Invalid(reason) = import(&policy, "logs roles/x.viewer user:ann@example.com t").unwrap_err() else {
        panic!("the target was not the trouble");
    };
    let ids: Vec<&str> = reason.split('`').filter(|part| part.starts_with("projects/")).collect();
    assert_eq!(ids.len(), 2, "{reason}");
    assert_ne!(
        import(&policy, ids[0]).unwrap().unwrap().condition,
        import(&policy, ids[1]).unwrap().unwrap().condition
    );
}

#[test]
fn a_missing_target_fails_a_grant_and_is_gone_for_the_rest() {
    let prepared = |operation| Prepared::new(KIND, &config(), operation).unwrap();
    let state = State {
        subject: "user:ann@example.com".to_string(),
        name: "logs".into(),
        role: "roles/x.viewer".into(),
        condition: None,
        project: "home".into(),
        etag: "A".into(),
        id: "projects/home/global/backendBuckets/logs/roles/x.viewer/user:ann@example.com".into(),
    };
    assert!(matches!(
        prepared(Operation::Create(args("user:ann@example.com"))).without_target(),
        Err(Refusal::NoTarget(_))
    ));
    assert_eq!(
        prepared(Operation::Delete(state.clone()))
            .without_target()
            .unwrap()
            .state,
        None
    );
    assert_eq!(
        prepared(Operation::Read {
            id: state.id.clone(),
            last: Some(state)
        })
        .without_target()
        .unwrap()
        .state,
        None
    );
}

#[test]
fn an_update_that_would_move_a_grant_is_refused() {
    let mut policy = policy(json!({"etag": "A"}));
    let old = run(&mut policy, Operation::Create(args("user:ann@example.com")))
        .unwrap()
        .state
        .unwrap();
    let moved = Operation::Update {
        old,
        new: args("user:bob@example.com"),
    };
    assert!(matches!(run(&mut policy, moved), Err(Refusal::Invalid(reason)) if reason.contains("must be replaced")));
}

#[test]
fn only_a_deleted_twin_left_is_gone() {
    let policy = policy(
        json!({"etag": "A", "bindings": [{"role": "roles/x.viewer", "members": ["deleted:user:ann@example.com?uid=1"]}]}),
    );
    assert_eq!(
        import(&policy, "logs roles/x.viewer user:ann@example.com").unwrap(),
        None
    );
}

#[test]
fn anything_foreign_is_drift_under_replace() {
    let config = Config {
        policy_mode: PolicyMode::Replace,
        ..config()
    };
    let mut policy =
        policy(json!({"etag": "A", "bindings": [{"role": "roles/y", "members": ["user:eve@example.com"]}]}));
    let apply = |policy: &mut Policy, operation| {
        Prepared::new(KIND, &config, operation)
            .unwrap()
            .apply(&config, policy)
            .unwrap()
    };
    let own = args("user:ann@example.com");
    let state = apply(&mut policy, Operation::Create(own.clone())).state.unwrap();
    assert_eq!(policy.document()["bindings"].as_array().unwrap().len(), 1);
    let mut grown = Policy::parse(
        r#"{"etag":"B","bindings":[{"role":"roles/x.viewer","members":["user:ann@example.com","user:eve@example.com"]}]}"#,
    )
    .unwrap();
    let read = apply(
        &mut grown,
        Operation::Read {
            id: state.id.clone(),
            last: Some(state),
        },
    );
    assert!(read.warning.is_some());
    let drifted = read.state.unwrap();
    let changes = resource::diff(KIND, &config, &drifted, &own, &UnknownPaths::default()).unwrap();
    assert_eq!(changes[0].path, "etag");
    let mended = apply(&mut grown, Operation::Update { old: drifted, new: own });
    assert!(mended.changed);
    assert_eq!(mended.state.unwrap().etag, "B");
    assert_eq!(
        grown.document()["bindings"][0]["members"],
        json!(["user:ann@example.com"])
    );
}

#[test]
fn doubled_bindings_become_one_under_replace() {
    let config = Config {
        policy_mode: PolicyMode::Replace,
        ..config()
    };
    let own = json!({"role": "roles/x.viewer", "members": ["user:ann@example.com"]});
    let mut policy = policy(json!({"etag": "A", "bindings": [own, own]}));
    let create = || Prepared::new(KIND, &config, Operation::Create(args("user:ann@example.com"))).unwrap();
    assert!(create().apply(&config, &mut policy).unwrap().changed);
    assert_eq!(policy.document()["bindings"], json!([own]));
    assert!(!create().apply(&config, &mut policy).unwrap().changed);
}

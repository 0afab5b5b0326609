//! A service's answer: read, or refused without a panic. A grant that comes and goes leaves what others wrote as it was.
#![no_main]

use bindery_policy::config::Config;
use bindery_policy::document::Policy;
use bindery_policy::operation::{Operation, Prepared};
use bindery_policy::resource::{Args, State};
use bindery_policy::target::TargetKind;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

/// A policy's content: no bindings are as good as an empty list of them.
fn content(policy: &Policy) -> Map<String, Value> {
    let mut content = policy.document();
    if content
        .get("bindings")
        .is_none_or(|bindings| bindings.is_null() || *bindings == json!([]))
    {
        content.shift_remove("bindings");
    }
    content
}

fuzz_target!(|text: &str| {
    let Ok(policy) = Policy::parse(text) else { return };
    if let Ok(body) = policy.set_request() {
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["policy"]["etag"].as_str(), policy.etag());
    }
    let config = Config {
        project: Some("home".to_string()),
        ..Config::default()
    };
    let args: Args<String> = Args {
        subject: "user:fuzz@example.com".to_string(),
        name: "logs".to_string(),
        role: "roles/viewer".to_string(),
        condition: None,
        project: None,
    };
    let kind = TargetKind::BackendBucket;
    let prepared = Prepared::new(kind, &config, Operation::Create(args)).unwrap();
    let mut changed = policy.clone();
    let Ok(made) = prepared.apply(&config, &mut changed) else {
        return;
    };
    let state: State<String> = made.state.unwrap();
    if !made.changed {
        assert_eq!(changed.document(), policy.document());
        return;
    }
    let read = Operation::Read {
        id: state.id.clone(),
        last: Some(state.clone()),
    };
    let found = Prepared::new(kind, &config, read)
        .unwrap()
        .apply(&config, &mut changed)
        .unwrap();
    assert_eq!(found.state.unwrap().subject, state.subject);
    let delete = Prepared::new(kind, &config, Operation::Delete(state)).unwrap();
    assert!(delete.apply(&config, &mut changed).unwrap().changed);
    assert_eq!(content(&changed), content(&policy));
});

//! The laws of policy changes, over policies that others have written to.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

use bindery_policy::condition::Condition;
use bindery_policy::config::{Config, IdentityForms, PolicyMode};
use bindery_policy::document::Policy;
use bindery_policy::failure::UnknownPaths;
use bindery_policy::grant_id::GrantId;
use bindery_policy::identity::{self, Identity};
use bindery_policy::operation::{Operation, Outcome, Prepared};
use bindery_policy::resource::{self, Args, State};
use bindery_policy::subject::Subject;
use bindery_policy::target::TargetKind;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const MEMBER: TargetKind = TargetKind::BackendBucket;
const BINDING: TargetKind = TargetKind::EdgeCacheOrigin;

fn config() -> Config {
    Config {
        project: Some("home".into()),
        region: Some("us-east1".into()),
        identity_forms: IdentityForms::All,
        ..Config::default()
    }
}

fn a_role() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["roles/a.viewer", "roles/b.admin", "projects/home/roles/custom"]).prop_map(String::from)
}

/// Few names in few spellings, so that collisions are common, and some that nobody thought of.
fn an_identity() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "user:ann@example.com",
        "user:Ann@Example.com",
        "user:bob@example.com",
        "group:ann@example.com",
        "serviceAccount:robot@p.iam.gserviceaccount.com",
        "serviceAccount:p.svc.id.goog[ns/ksa]",
        "domain:example.com",
        "principal://iam.googleapis.com/x/subject/S",
        "principal://iam.googleapis.com/x/subject/s#1/y",
        "allUsers",
    ]);
    let any = (
        "(user|group|serviceAccount):[\\PC]{1,8}@[\\pL\\pN]{1,6}\\.[\\pL]{2,4}",
        any::<()>(),
    )
        .prop_map(|(text, ())| text)
        .prop_filter("only what is accepted", |text| {
            Identity::parse(text, IdentityForms::All).is_ok()
        });
    prop_oneof![8 => known.prop_map(String::from), 1 => any]
}

/// A target of the member's kind under test, in some spelling.
fn a_member_target() -> impl Strategy<Value = (TargetKind, String)> {
    let buckets = prop::sample::select(vec!["logs", "projects/other/global/backendBuckets/logs", "7"]);
    let jobs = prop_oneof![
        Just("move".to_string()),
        Just("projects/other/locations/asia-east1/migrationJobs/move".to_string()),
        "[!-.0-~]{1,10}".prop_map(String::from),
    ];
    prop_oneof![
        buckets.prop_map(|name| (TargetKind::BackendBucket, name.to_string())),
        jobs.prop_map(|name| (TargetKind::MigrationJob, name)),
    ]
}

fn a_foreign_member() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => an_identity(),
        1 => Just("deleted:user:ann@example.com?uid=1".to_string()),
        1 => Just("someday:Something".to_string()),
    ]
}

fn a_condition() -> impl Strategy<Value = Option<Condition>> {
    let description = prop::option::of(prop::sample::select(vec!["", "why"]).prop_map(String::from));
    prop::option::of(
        (
            prop::sample::select(vec!["t", "two  words"]),
            prop::sample::select(vec!["true", "false"]),
            description,
        )
            .prop_map(|(title, expression, description)| Condition {
                expression: expression.into(),
                title: title.into(),
                description,
            }),
    )
}

fn a_binding() -> impl Strategy<Value = Value> {
    (
        a_role(),
        prop::collection::vec(a_foreign_member(), 1..4),
        a_condition(),
        any::<bool>(),
    )
        .prop_map(|(role, members, condition, has_extra)| {
            let mut binding = json!({"role": role, "members": members});
            if let Some(condition) = condition {
                binding["condition"] =
                    json!({"title": condition.title, "expression": condition.expression, "location": "x"});
                if let Some(description) = condition.description {
                    binding["condition"]["description"] = json!(description);
                }
            }
            if has_extra {
                binding["bindingId"] = json!("b1");
            }
            binding
        })
}

fn a_policy() -> impl Strategy<Value = Policy> {
    let audit = json!([{"service": "allServices", "auditLogConfigs": [{"logType": "DATA_READ", "exemptedMembers": ["user:Zoe@example.com"]}]}]);
    (
        prop::option::of(prop::collection::vec(a_binding(), 0..5)),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(move |(bindings, has_audit, has_unknown)| {
            let mut document = Map::new();
            document.insert("version".into(), json!(1));
            document.insert("etag".into(), json!("BwX="));
            if has_unknown {
                document.insert("future".into(), serde_json::from_str(r#"{"n":1.250,"e":1E3}"#).unwrap());
            }
            if let Some(bindings) = bindings {
                document.insert("bindings".into(), json!(bindings));
            }
            if has_audit {
                document.insert("auditConfigs".into(), audit.clone());
            }
            Policy::parse(&Value::Object(document).to_string()).unwrap()
        })
}

fn member_args() -> impl Strategy<Value = Args<String>> {
    (an_identity(), a_role(), a_condition()).prop_map(|(subject, role, condition)| Args {
        subject,
        name: "logs".into(),
        role,
        condition,
        project: None,
    })
}

fn binding_args() -> impl Strategy<Value = Args<Vec<String>>> {
    (prop::collection::vec(an_identity(), 1..4), a_role(), a_condition()).prop_map(|(subject, role, condition)| Args {
        subject,
        name: "origin".into(),
        role,
        condition,
        project: None,
    })
}

fn apply<S: Subject>(kind: TargetKind, config: &Config, policy: &mut Policy, operation: Operation<S>) -> Outcome<S> {
    Prepared::new(kind, config, operation)
        .unwrap()
        .apply(config, policy)
        .unwrap()
}

fn create<S: Subject>(kind: TargetKind, policy: &mut Policy, args: &Args<S>) -> State<S> {
    apply(kind, &config(), policy, Operation::Create(args.clone()))
        .state
        .unwrap()
}

/// The document without etag and version, where absent equals empty.
fn content(policy: &Policy) -> String {
    let mut document = policy.document();
    document.shift_remove("etag");
    document.shift_remove("version");
    if document
        .get("bindings")
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty)
    {
        document.shift_remove("bindings");
    }
    Value::Object(document).to_string()
}

/// The bindings of every other (role, condition) than these args', and everything beside the bindings.
fn others<S>(policy: &Policy, args: &Args<S>) -> String {
    let mut document = policy.document();
    let empty = || json!([]);
    let bindings = document.entry("bindings").or_insert_with(empty).as_array_mut().unwrap();
    bindings.retain(|binding| {
        let text = |key: &str| binding["condition"][key].as_str().unwrap_or_default().to_string();
        let condition = binding.get("condition").map(|_| Condition {
            expression: text("expression"),
            title: text("title"),
            description: Some(text("description")),
        });
        binding["role"] != args.role.as_str() || condition != args.condition
    });
    let bindings = document.shift_remove("bindings");
    document.shift_remove("version");
    format!("{}{}", Value::Object(document), bindings.unwrap())
}

/// Every (role, condition, identity) of a policy, as a set.
fn grants(policy: &Policy) -> std::collections::BTreeSet<String> {
    let bindings = policy
        .document()
        .get("bindings")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    bindings
        .iter()
        .flat_map(|binding| {
            let condition = binding.get("condition").map(|condition| {
                let text = |key: &str| condition[key].as_str().unwrap_or_default().to_string();
                format!("{:?}", (text("title"), text("description"), text("expression")))
            });
            let role = binding["role"].to_string();
            binding["members"]
                .as_array()
                .unwrap()
                .iter()
                .map(move |member| format!("{role} {condition:?} {}", identity::canonical(member.as_str().unwrap())))
                .collect::<Vec<_>>()
        })
        .collect()
}

proptest! {
    #[test]
    fn applying_a_member_twice_is_applying_it_once(policy in a_policy(), args in member_args()) {
        let mut once = policy;
        create(MEMBER, &mut once, &args);
        let mut twice = once.clone();
        let again = apply(MEMBER, &config(), &mut twice, Operation::Create(args));
        prop_assert!(!again.changed);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn applying_a_binding_twice_is_applying_it_once(policy in a_policy(), args in binding_args()) {
        let mut once = policy;
        create(BINDING, &mut once, &args);
        let mut twice = once.clone();
        let again = apply(BINDING, &config(), &mut twice, Operation::Create(args));
        prop_assert!(!again.changed);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn granting_and_revoking_a_member_gives_back_the_same_document(policy in a_policy(), args in member_args()) {
        let mut after = policy.clone();
        let created = apply(MEMBER, &config(), &mut after, Operation::Create(args));
        prop_assume!(created.changed);
        let revoked = apply(MEMBER, &config(), &mut after, Operation::Delete(created.state.unwrap()));
        prop_assert!(revoked.changed);
        prop_assert_eq!(content(&policy), content(&after));
    }

    #[test]
    fn a_binding_touches_no_other_role_or_condition(policy in a_policy(), args in binding_args(), next in prop::collection::vec(an_identity(), 1..4)) {
        let mut after = policy.clone();
        let state = create(BINDING, &mut after, &args);
        prop_assert_eq!(others(&policy, &args), others(&after, &args));
        let new = Args { subject: next, ..args.clone() };
        let updated = apply(BINDING, &config(), &mut after, Operation::Update { old: state, new }).state.unwrap();
        prop_assert_eq!(others(&policy, &args), others(&after, &args));
        apply(BINDING, &config(), &mut after, Operation::Delete(updated));
        prop_assert_eq!(others(&policy, &args), others(&after, &args));
        prop_assert_eq!(grants(&after).len(), grants(&after).intersection(&grants(&policy)).count());
    }

    #[test]
    fn a_member_adds_and_removes_one_grant_and_no_other(policy in a_policy(), args in member_args()) {
        let mut after = policy.clone();
        let state = create(MEMBER, &mut after, &args);
        let (before, with) = (grants(&policy), grants(&after));
        prop_assert!(before.is_subset(&with));
        prop_assert!(with.len() - before.len() <= 1);
        apply(MEMBER, &config(), &mut after, Operation::Delete(state));
        prop_assert!(grants(&after).is_subset(&before));
        prop_assert!(before.len() - grants(&after).len() <= 1);
    }

    #[test]
    fn any_order_of_grants_gives_the_same_set(policy in a_policy(), args in prop::collection::vec(member_args(), 1..6), seed in any::<prop::sample::Index>()) {
        let mut forward = policy.clone();
        for args in &args {
            create(MEMBER, &mut forward, args);
        }
        let mut rotated = args.clone();
        rotated.rotate_left(seed.index(args.len()));
        rotated.reverse();
        let mut backward = policy;
        for args in &rotated {
            create(MEMBER, &mut backward, args);
        }
        prop_assert_eq!(grants(&forward), grants(&backward));
    }

    #[test]
    fn an_id_read_back_gives_the_same_grant(policy in a_policy(), args in member_args(), (kind, name) in a_member_target()) {
        let args = Args { name, ..args };
        let mut after = policy;
        let state = create(kind, &mut after, &args);
        let id = GrantId::parse(kind, &state.id);
        prop_assert_eq!(id.map(|id| id.to_string()), Some(state.id.clone()));
        let read = |last| apply(kind, &config(), &mut after.clone(), Operation::Read { id: state.id.clone(), last }).state.unwrap();
        prop_assert_eq!(&read(Some(state.clone())), &state);
        let imported: State<String> = read(None);
        prop_assert_eq!(&imported.id, &state.id);
        prop_assert_eq!(&imported.condition, &state.condition);
        prop_assert!(resource::diff(kind, &config(), &imported, &args, &UnknownPaths::default()).unwrap().is_empty());
    }

    #[test]
    fn a_bindings_id_read_back_gives_the_same_binding(policy in a_policy(), args in binding_args()) {
        let mut after = policy;
        let state = create(BINDING, &mut after, &args);
        prop_assert_eq!(GrantId::parse(BINDING, &state.id).map(|id| id.to_string()), Some(state.id.clone()));
        let imported = apply(BINDING, &config(), &mut after, Operation::Read { id: state.id.clone(), last: None }).state.unwrap();
        prop_assert_eq!(&imported.id, &state.id);
        prop_assert!(resource::diff(BINDING, &config(), &imported, &args, &UnknownPaths::default()).unwrap().is_empty());
    }

    #[test]
    fn a_member_leaves_every_other_role_and_condition_as_it_was(policy in a_policy(), args in member_args()) {
        let mut after = policy.clone();
        let state = create(MEMBER, &mut after, &args);
        prop_assert_eq!(others(&policy, &args), others(&after, &args));
        apply(MEMBER, &config(), &mut after, Operation::Delete(state));
        prop_assert_eq!(others(&policy, &args), others(&after, &args));
    }

    #[test]
    fn checking_and_comparing_a_member_with_itself_finds_nothing(policy in a_policy(), args in member_args(), (kind, name) in a_member_target()) {
        let args = Args { name, ..args };
        let once = resource::check(kind, &config(), args.clone(), &UnknownPaths::default()).unwrap();
        let twice = resource::check(kind, &config(), once.args.clone(), &UnknownPaths::default()).unwrap();
        prop_assert_eq!(&once, &twice);
        let mut after = policy;
        let state = create(kind, &mut after, &args);
        prop_assert_eq!(once.id.as_ref(), Some(&state.id));
        for args in [&args, &once.args] {
            prop_assert!(resource::diff(kind, &config(), &state, args, &UnknownPaths::default()).unwrap().is_empty());
        }
    }

    #[test]
    fn a_binding_read_back_keeps_the_users_order_and_spelling(policy in a_policy(), args in binding_args()) {
        let mut after = policy;
        let state = create(BINDING, &mut after, &args);
        let read = Operation::Read { id: state.id.clone(), last: Some(state.clone()) };
        prop_assert_eq!(apply(BINDING, &config(), &mut after, read).state.unwrap(), state);
    }

    #[test]
    fn a_deleted_grant_is_gone(policy in a_policy(), args in member_args()) {
        let mut after = policy;
        let state = create(MEMBER, &mut after, &args);
        apply(MEMBER, &config(), &mut after, Operation::Delete(state.clone()));
        let read = Operation::Read { id: state.id.clone(), last: Some(state) };
        prop_assert_eq!(apply(MEMBER, &config(), &mut after, read).state, None);
    }

    #[test]
    fn checking_what_check_gave_changes_nothing(args in binding_args()) {
        let once = resource::check(BINDING, &config(), args, &UnknownPaths::default()).unwrap();
        let twice = resource::check(BINDING, &config(), once.args.clone(), &UnknownPaths::default()).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_state_does_not_differ_from_the_args_that_made_it(policy in a_policy(), args in binding_args()) {
        let mut after = policy;
        let state = create(BINDING, &mut after, &args);
        prop_assert!(resource::diff(BINDING, &config(), &state, &args, &UnknownPaths::default()).unwrap().is_empty());
        let checked = resource::check(BINDING, &config(), args, &UnknownPaths::default()).unwrap();
        prop_assert!(resource::diff(BINDING, &config(), &state, &checked.args, &UnknownPaths::default()).unwrap().is_empty());
        prop_assert_eq!(checked.id.unwrap(), state.id);
    }

    #[test]
    fn replace_mode_leaves_this_binding_and_nothing_else(policy in a_policy(), args in member_args()) {
        let config = Config { policy_mode: PolicyMode::Replace, ..config() };
        let mut after = policy;
        let state = apply(MEMBER, &config, &mut after, Operation::Create(args)).state.unwrap();
        prop_assert_eq!(grants(&after).len(), 1);
        let read = Operation::Read { id: state.id.clone(), last: Some(state.clone()) };
        prop_assert_eq!(&apply(MEMBER, &config, &mut after, read).state.unwrap(), &state);
        prop_assert!(apply(MEMBER, &config, &mut after, Operation::Delete(state)).changed);
        prop_assert!(grants(&after).is_empty());
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "\\PC{0,40}") {
        let _ = Policy::parse(&text);
        let _ = GrantId::parse(MEMBER, &text);
        let args = Args { subject: text.clone(), name: text.clone(), role: text.clone(), condition: None, project: Some(text.clone()) };
        let _ = resource::check(MEMBER, &config(), args, &UnknownPaths::default());
        let _ = Prepared::<String>::new(MEMBER, &config(), Operation::Read { id: text, last: None });
    }
}

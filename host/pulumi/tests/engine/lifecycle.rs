//! What users do with a stack, in YAML.

use serde_json::json;

use crate::harness::*;

const A: &str = "user:a@x.com";
const B: &str = "user:b@x.com";

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn a_stack_from_its_first_up_to_its_destroy() {
    let job = "  job:\n    type: bindery:datamigration/v1:MigrationJobIamMember\n    properties:\n      name: orders\n      role: \
               roles/datamigration.admin\n      member: user:a@x.com\n      condition: {title: t, expression: 'true'}\n";
    let stack = Stack::yaml(&(member("m", "roles/one", A, "") + &binding("b", "roles/two", &[A, B], "") + job));
    let planned = stack.pulumi(&["preview"]).ok();
    assert!(planned.contains("+ 4 to create"), "{planned}");
    assert!(stack.emulator.policies().all().is_empty(), "a preview changes nothing");
    stack.up().ok();
    assert_eq!(stack.members(BUCKET, "roles/one"), [A]);
    assert_eq!(stack.members(ORIGIN, "roles/two"), [A, B]);
    let job_target = "projects/home/locations/us-east1/migrationJobs/orders";
    assert_eq!(stack.members(job_target, "roles/datamigration.admin"), [A]);
    stack.nothing_to_do();

    stack.write(&(member("m", "roles/one", A, "") + &binding("b", "roles/two", &[B, "user:c@x.com"], "") + job));
    let changed = stack.pulumi(&["up", "--yes", "--diff"]).ok();
    assert!(changed.contains("1 updated"), "{changed}");
    assert_eq!(stack.members(ORIGIN, "roles/two"), [B, "user:c@x.com"]);

    stack.write(&(member("m", "roles/other", A, "") + &binding("b", "roles/two", &[B, "user:c@x.com"], "") + job));
    let replaced = stack.up().ok();
    assert!(replaced.contains("1 replaced"), "{replaced}");
    assert_eq!(stack.members(BUCKET, "roles/other"), [A]);
    assert_eq!(stack.members(BUCKET, "roles/one"), [""; 0]);
    stack.nothing_to_do();

    stack.destroy().ok();
    for (target, role) in [
        (BUCKET, "roles/other"),
        (ORIGIN, "roles/two"),
        (job_target, "roles/datamigration.admin"),
    ] {
        assert_eq!(stack.members(target, role), [""; 0]);
    }
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn drift_is_seen_by_a_refresh_and_undone_by_an_up() {
    let stack = Stack::yaml(&(binding("b", "roles/two", &[A], "") + &member("m", "roles/one", A, "")));
    stack.up().ok();
    stack.pulumi(&["refresh", "--yes", "--expect-no-changes"]).ok();
    let others = json!({"role": "roles/others", "members": [B]});
    stack.emulator.put_policy(
        ORIGIN,
        json!({"bindings": [{"role": "roles/two", "members": [A, B]}, others]}),
    );
    stack.emulator.put_policy(BUCKET, json!({"bindings": []}));
    let seen = stack.pulumi(&["refresh", "--yes"]).ok();
    assert!(seen.contains("1 updated") && seen.contains("1 deleted"), "{seen}");
    let again = stack.up().ok();
    assert!(again.contains("1 updated") && again.contains("1 created"), "{again}");
    assert_eq!(stack.members(ORIGIN, "roles/two"), [A]);
    assert_eq!(stack.members(ORIGIN, "roles/others"), [B]);
    assert_eq!(stack.members(BUCKET, "roles/one"), [A]);
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn all_three_types_are_imported() {
    let stack = Stack::yaml("  {}\n");
    let job_target = "projects/home/locations/us-east1/migrationJobs/orders";
    let grant = json!({"bindings": [{"role": "roles/one", "members": [A]}]});
    for target in [BUCKET, ORIGIN, job_target] {
        stack.emulator.put_policy(target, grant.clone());
    }
    // By the command, as a person spells it.
    let id = format!("{BUCKET} roles/one {A}");
    let import = ["import", "bindery:compute/v1:BackendBucketIamMember", "m", &id];
    stack
        .pulumi(&[&import[..], &["--yes", "--generate-code=false", "--protect=false"]].concat())
        .ok();
    // By the option, with the id.
    let job = format!(
        "  job:\n    type: bindery:datamigration/v1:MigrationJobIamMember\n    properties: {{name: orders, role: roles/one, \
         member: '{A}'}}\n    options: {{import: '{job_target}/roles/one/{A}'}}\n"
    );
    let import = format!("import: '{ORIGIN} roles/one'");
    let resource = member("m", "roles/one", A, "").replace("name: logs", &format!("name: {BUCKET}"));
    let declared = resource
        + &binding("b", "roles/one", &[A], &import).replace("name: video", &format!("name: {ORIGIN}"))
        + &job.replace("name: orders", &format!("name: {job_target}"));
    stack.write(&declared);
    let imported = stack.up().ok();
    assert!(imported.contains("2 imported"), "{imported}");
    stack.nothing_to_do();
    for target in [BUCKET, ORIGIN, job_target] {
        assert_eq!(stack.members(target, "roles/one"), [A]);
    }
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn options_of_the_program_are_kept() {
    let stack = Stack::yaml(
        &(member("kept", "roles/kept", A, "protect: true")
            + &binding("ignoring", "roles/two", &[A], "ignoreChanges: [members]")),
    );
    stack.up().ok();
    stack.write(
        &(member("kept", "roles/kept", A, "protect: true")
            + &binding("ignoring", "roles/two", &[B], "ignoreChanges: [members]")),
    );
    stack.nothing_to_do();
    let refused = stack.destroy().failed();
    assert!(refused.contains("protect"), "{refused}");
    assert_eq!(stack.members(BUCKET, "roles/kept"), [A]);
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn a_resource_may_be_renamed() {
    let stack = Stack::yaml(&member("old", "roles/one", A, ""));
    stack.up().ok();
    stack.write(&member("new", "roles/one", A, "aliases: [{name: old}]"));
    stack.nothing_to_do();
    stack.up().ok();
    stack.emulator.take_requests();
    // Without an alias it is another resource, and the old one's end takes nothing away.
    stack.write(&member("newer", "roles/one", A, ""));
    let renamed = stack.up().ok();
    assert!(
        renamed.contains("1 created") && renamed.contains("1 deleted"),
        "{renamed}"
    );
    assert!(
        stack
            .emulator
            .take_requests()
            .iter()
            .all(|request| request.method == "GET"),
        "nothing was written"
    );
    assert_eq!(stack.members(BUCKET, "roles/one"), [A]);
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn replacing_what_has_not_changed_loses_nothing() {
    for options in ["", "deleteBeforeReplace: true", "deleteBeforeReplace: false"] {
        let stack = Stack::yaml(&(member("m", "roles/one", A, options) + &binding("b", "roles/two", &[A], options)));
        stack.up().ok();
        for urn in [
            "compute/v1:BackendBucketIamMember::m",
            "networkservices/v1:EdgeCacheOriginIamBinding::b",
        ] {
            let urn = format!("urn:pulumi:dev::tests::bindery:{urn}");
            let replaced = stack.pulumi(&["up", "--yes", "--skip-preview", "--replace", &urn]).ok();
            assert!(replaced.contains("1 replaced"), "{replaced}");
        }
        assert_eq!(stack.members(BUCKET, "roles/one"), [A], "{options}");
        assert_eq!(stack.members(ORIGIN, "roles/two"), [A], "{options}");
        stack.nothing_to_do();
    }
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn two_resources_may_swap_their_roles() {
    let stack = Stack::yaml(&(member("one", "roles/one", A, "") + &member("two", "roles/two", A, "")));
    stack.up().ok();
    for (first, second, options) in [
        ("roles/two", "roles/one", ""),
        ("roles/one", "roles/two", "dependsOn: ['${one}']"),
        (
            "roles/two",
            "roles/one",
            "dependsOn: ['${one}'], deleteBeforeReplace: true",
        ),
    ] {
        stack.write(&(member("one", first, A, "") + &member("two", second, A, options)));
        stack.up().ok();
        for role in ["roles/one", "roles/two"] {
            assert_eq!(stack.members(BUCKET, role), [A], "{options}");
        }
        stack.nothing_to_do();
    }
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn an_input_that_another_resource_decides_is_unknown_until_then() {
    let depending = "  second:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties:\n      name: logs\n      role: \
                     roles/two\n      member: user:b@x.com\n      condition: {title: t, expression: 'true', description: \
                     'after ${first.etag}'}\n";
    let stack = Stack::yaml(&(member("first", "roles/one", A, "") + depending));
    let planned = stack.pulumi(&["preview"]).ok();
    assert!(planned.contains("+ 3 to create"), "{planned}");
    stack.up().ok();
    assert_eq!(stack.members(BUCKET, "roles/two"), [B]);
    let state = stack.resources();
    let second = state
        .iter()
        .find(|resource| resource["urn"].as_str().unwrap().ends_with("::second"))
        .unwrap();
    let described = second["outputs"]["condition"]["description"].as_str().unwrap();
    assert!(described.starts_with("after Bw"), "{described}");
    // What the first one's replacement gives is not known yet, and it decides the second one's condition.
    stack.write(&(member("first", "roles/three", A, "") + depending));
    let planned = stack.pulumi(&["preview"]).ok();
    assert!(planned.contains("2 to replace"), "{planned}");
    stack.up().ok();
    assert_eq!(stack.members(BUCKET, "roles/two"), [B]);
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn two_providers_have_two_projects() {
    let stack = Stack::yaml("  {}\n");
    let origin = stack.emulator.origin();
    let provider = |project: &str| {
        format!(
            "  {project}:\n    type: pulumi:providers:bindery\n    properties: {{project: {project}, computeEndpoint: '{origin}'}}\n"
        )
    };
    let on = |name: &str, project: &str| member(name, "roles/one", A, &format!("provider: '${{{project}}}'"));
    stack.write(&(provider("first") + &provider("second") + &on("a", "first") + &on("b", "second")));
    stack.up().ok();
    for project in ["first", "second"] {
        let target = format!("projects/{project}/global/backendBuckets/logs");
        assert_eq!(stack.members(&target, "roles/one"), [A]);
    }
    stack.nothing_to_do();
    stack.destroy().ok();
    assert_eq!(
        stack.members("projects/second/global/backendBuckets/logs", "roles/one"),
        [""; 0]
    );
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn a_secret_input_is_secret_in_the_state_and_in_errors() {
    let stack = Stack::yaml("  {}\n");
    stack
        .pulumi(&["config", "set", "--secret", "who", "user:hidden-name@x.com"])
        .ok();
    stack.write(&member("m", "roles/one", "${who}", ""));
    stack.emulator.set(bindery_emulator::Settings {
        missing_identities: ["user:hidden-name@x.com".to_string()].into(),
        ..Default::default()
    });
    let refused = stack.up().failed();
    assert!(
        refused.contains("[secret]") && !refused.contains("hidden-name"),
        "{refused}"
    );
    stack.emulator.set(bindery_emulator::Settings::default());
    stack.up().ok();
    assert_eq!(stack.members(BUCKET, "roles/one"), ["user:hidden-name@x.com"]);
    let state = stack.resources();
    for side in ["inputs", "outputs"] {
        assert!(state[0][side]["member"]["ciphertext"].is_string(), "{}", state[0][side]);
    }
    stack.nothing_to_do();
    stack.pulumi(&["refresh", "--yes", "--expect-no-changes"]).ok();
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn the_engine_prints_no_value_that_is_secret() {
    let wrong = "  b:\n    type: bindery:networkservices/v1:EdgeCacheOriginIamBinding\n    properties: {name: video, role: roles/two, \
                 members: ['user:a@x.com', {fn::secret: hidden-value}]}\n";
    let key = "  p:\n    type: pulumi:providers:bindery\n    properties: {credentials: {fn::secret: hidden-value}}\n";
    for (resources, said) in [
        (wrong, "`members[1]`: `[secret]`"),
        (key, "`credentials`: the file that it names cannot be read"),
    ] {
        let stack = Stack::yaml(resources);
        let failed = stack.pulumi(&["preview"]).failed();
        assert!(failed.contains(said) && !failed.contains("hidden-value"), "{failed}");
    }
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn a_secret_in_a_list_that_has_drifted_stays_secret() {
    let binding = "  b:\n    type: bindery:networkservices/v1:EdgeCacheOriginIamBinding\n    properties: {name: video, role: roles/two, \
                   members: ['user:a@x.com', {fn::secret: 'user:hidden-name@x.com'}]}\n";
    let stack = Stack::yaml(binding);
    stack.up().ok();
    let drifted = json!({"role": "roles/two", "members": ["user:hidden-name@x.com", "user:foreign@x.com"]});
    stack.emulator.put_policy(ORIGIN, json!({"bindings": [drifted]}));
    let refreshed = stack.pulumi(&["refresh", "--yes", "--diff"]).ok();
    let state = serde_json::to_string(&stack.resources()).unwrap();
    let planned = stack.pulumi(&["preview", "--diff"]).ok();
    for text in [refreshed, state, planned] {
        assert!(!text.contains("hidden-name"), "{text}");
    }
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn a_grant_may_leave_one_provider_resource_for_another() {
    let stack = Stack::yaml("  {}\n");
    let origin = stack.emulator.origin();
    let provider = |name: &str| {
        format!(
            "  {name}:\n    type: pulumi:providers:bindery\n    properties: {{project: home, computeEndpoint: '{origin}'}}\n"
        )
    };
    let providers = provider("p") + &provider("q");
    let on = |name: &str, role: &str, provider: &str| member(name, role, A, &format!("provider: '${{{provider}}}'"));
    stack.write(&(providers.clone() + &on("a", "roles/one", "q") + &on("b", "roles/two", "p")));
    stack.up().ok();
    // Two on different ones swap, and then one is declared by another name on the other.
    for resources in [
        on("a", "roles/two", "q") + &on("b", "roles/one", "p"),
        on("a", "roles/two", "q") + &on("c", "roles/one", "q"),
    ] {
        stack.write(&(providers.clone() + &resources));
        stack.up().ok();
        for role in ["roles/one", "roles/two"] {
            assert_eq!(stack.members(BUCKET, role), [A], "{resources}");
        }
        stack.nothing_to_do();
    }
    stack.write(&(providers + &on("a", "roles/two", "q") + &on("c", "roles/one", "q") + &on("d", "roles/one", "p")));
    let refused = stack.up().failed();
    assert!(refused.contains("both declare"), "{refused}");
}

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn a_provider_resource_that_is_replaced_loses_none_of_its_grants() {
    let stack = Stack::yaml("  {}\n");
    let origin = stack.emulator.origin();
    let provider = format!(
        "  p:\n    type: pulumi:providers:bindery\n    properties: {{project: home, computeEndpoint: '{origin}'}}\n"
    );
    stack.write(&(provider + &member("m", "roles/one", A, "provider: '${p}'")));
    stack.up().ok();
    let urn = "urn:pulumi:dev::tests::pulumi:providers:bindery::p";
    stack.pulumi(&["up", "--yes", "--skip-preview", "--replace", urn]).ok();
    assert_eq!(stack.members(BUCKET, "roles/one"), [A]);
    stack.nothing_to_do();
    stack.destroy().ok();
    assert_eq!(stack.members(BUCKET, "roles/one"), [""; 0]);
}

//! Whose a grant is: what is handed over, what a target may touch, what is protected.

use crate::harness::{BUCKET, Bench, member};

/// A resource with its own options, as YAML.
fn with(resource: String, options: &str) -> String {
    format!("{resource}    options: {{{options}}}\n")
}

#[test]
fn a_grant_is_handed_over_only_to_a_resource_that_has_it() {
    let bench = Bench::new();
    let ann = "user:ann@example.com";
    bench.write(&member("a", "roles/x", ann));
    bench.up().ok();
    // `b` is to have what `a` gives up, and never comes to it, because what it waits for fails.
    bench.write(
        &(with(member("a", "roles/y", ann), "deleteBeforeReplace: true")
            + &with(
                member("fails", "roles/z", "user:no@example.com"),
                "import: logs roles/z user:no@example.com",
            )
            + &with(member("b", "roles/x", ann), "dependsOn: ['${fails}']")),
    );
    let up = bench.up();
    assert_eq!(up.code, Some(1));
    assert!(
        up.err.contains("which does not have it yet; it stays in the state"),
        "{}",
        up.err
    );
    bench.write(&member("a", "roles/y", ann));
    bench.up().ok();
    assert_eq!(bench.members(BUCKET, "roles/x"), Vec::<String>::new(), "leaked");
    assert_eq!(bench.members(BUCKET, "roles/y"), [ann]);
}

#[test]
fn a_target_neither_leaks_nor_takes_what_others_have() {
    let bench = Bench::new();
    let ann = "user:ann@example.com";
    let up = |target: &str| bench.run("up", &["--yes", "--config=project=home", "--target", target]);
    bench.write(&member("old", "roles/x", ann));
    bench.up().ok();
    // Under its new name it is no target: what goes, goes.
    bench.write(&member("new", "roles/x", ann));
    up("old").ok();
    assert_eq!(bench.members(BUCKET, "roles/x"), Vec::<String>::new());
    bench.up().ok();
    // What the state says another has cannot be taken by a target.
    bench.write(&(member("new", "roles/y", ann) + &member("other", "roles/x", ann)));
    let refused = up("other");
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("both declare"), "{}", refused.err);
    bench.up().ok();
    let destroyed = bench.run("destroy", &["--yes", "--target", "new"]).ok();
    assert!(destroyed.out.contains("1 deleted"), "{}", destroyed.out);
    assert_eq!(bench.members(BUCKET, "roles/x"), [ann]);
    assert_eq!(bench.names(), ["other"]);
}

#[test]
fn outputs_of_what_is_no_target_are_not_known_and_no_failure() {
    let bench = Bench::new();
    let both = member("a", "roles/x", "user:ann@example.com") + &member("b", "roles/y", "user:ann@example.com");
    bench.write(&(both + "outputs: {x: '${b.etag}', y: hi}\n"));
    let up = bench.run("up", &["--yes", "--config=project=home", "--target=a"]).ok();
    assert!(
        up.out.contains("x  [unknown]") && up.out.contains(r#"y  "hi""#),
        "{}",
        up.out
    );
    let typo = bench.run("refresh", &["--yes", "--target=typo"]);
    assert_eq!(typo.code, Some(2), "{}", typo.out);
}

#[test]
fn a_replaced_resource_that_was_protected_can_be_destroyed() {
    let bench = Bench::new();
    let declare = |role: &str, protect: &str| {
        bench.write(&with(
            member("a", role, "user:ann@example.com"),
            &format!("protect: {protect}"),
        ));
    };
    declare("roles/x", "true");
    bench.up().ok();
    declare("roles/y", "false");
    let mut up = bench.command("up", &["--yes", "--config=project=home"]);
    let killed = up.env("FAILPOINTS", "after-append=2*off->return").output().unwrap();
    assert_eq!(killed.status.code(), None);
    bench.destroy().ok();
    for role in ["roles/x", "roles/y"] {
        assert_eq!(bench.members(BUCKET, role), Vec::<String>::new(), "{role}");
    }
}

//! The parts of a commit on a policy at the service's own limit: to read it, to grant to one identity or to 256 more, and to
//! write it down.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a measurement that cannot be made is none"
)]

use bindery_policy::config::Config;
use bindery_policy::document::Policy;
use bindery_policy::operation::{Operation, Prepared};
use bindery_policy::resource::Args;
use bindery_policy::target::TargetKind;
use divan::{Bencher, black_box};
use serde_json::json;

fn main() {
    divan::main();
}

/// A policy that has room for 256 identities more.
fn answer() -> String {
    let members = |role: usize| -> Vec<String> {
        (0..311)
            .map(|number| format!("user:there-{role}-{number}@example.com"))
            .collect()
    };
    let bindings: Vec<_> = (0..4)
        .map(|role| json!({"role": format!("roles/r{role}"), "members": members(role)}))
        .collect();
    json!({"version": 1, "etag": "BwYAAAAAAAA=", "bindings": bindings}).to_string()
}

fn config() -> Config {
    Config {
        project: Some("home".to_string()),
        ..Config::default()
    }
}

fn create(number: usize) -> Operation<String> {
    Operation::Create(Args {
        subject: format!("user:new-{number}@example.com"),
        name: "logs".to_string(),
        role: format!("roles/r{}", number % 4),
        condition: None,
        project: None,
    })
}

#[divan::bench]
fn read(bencher: Bencher<'_, '_>) {
    let answer = answer();
    bencher.bench(|| Policy::parse(black_box(&answer)).unwrap());
}

#[divan::bench(args = [1, 16, 256])]
fn grant(bencher: Bencher<'_, '_>, operations: usize) {
    grant_to(bencher, &Policy::parse(&answer()).unwrap(), operations);
}

fn grant_to(bencher: Bencher<'_, '_>, policy: &Policy, operations: usize) {
    let config = config();
    bencher.with_inputs(|| policy.clone()).bench_values(|mut policy| {
        for number in 0..operations {
            let prepared = Prepared::new(TargetKind::BackendBucket, &config, create(number)).unwrap();
            assert!(prepared.apply(&config, &mut policy).unwrap().changed);
        }
        policy
    });
}

/// Bindings of one role, each with a condition of its own.
#[divan::bench(args = [1, 16, 256])]
fn grant_among_conditions(bencher: Bencher<'_, '_>, operations: usize) {
    let bindings: Vec<_> = (0..1_200)
        .map(|number| {
            let expression = format!("resource.name == \"{number}\" && {}", "true && ".repeat(100) + "true");
            let condition = json!({"title": format!("condition {number}"), "expression": expression});
            json!({"role": "roles/r0", "members": [format!("user:there-{number}@example.com")], "condition": condition})
        })
        .collect();
    let answer = json!({"version": 3, "etag": "BwYAAAAAAAA=", "bindings": bindings}).to_string();
    grant_to(bencher, &Policy::parse(&answer).unwrap(), operations);
}

#[divan::bench]
fn write(bencher: Bencher<'_, '_>) {
    let policy = Policy::parse(&answer()).unwrap();
    bencher.bench(|| black_box(&policy).set_request().unwrap());
}

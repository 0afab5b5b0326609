//! What the engine makes at the same time on one target.

use bindery_emulator::{Faults, Settings};

use crate::harness::*;

#[test]
#[ignore = "needs the real engine: just test-engine"]
fn many_grants_on_one_target_are_a_few_requests_made_read_and_removed() {
    let grants = (0..100).map(|number| {
        let (name, identity) = (format!("m{number}"), format!("user:u{number}@x.com"));
        member(&name, "roles/one", &identity, "")
    });
    let stack = Stack::yaml(&grants.collect::<String>());
    // A service that takes no time is free before the engine has sent the next one.
    stack.emulator.set(Settings {
        faults: Faults {
            latency_ms: 50,
            ..Faults::default()
        },
        ..Settings::default()
    });
    let parallel = |command: &str| {
        stack.emulator.take_requests();
        stack
            .pulumi(&[command, "--yes", "--skip-preview", "--stack", "dev", "--parallel=256"])
            .ok();
        stack.emulator.take_requests().len()
    };
    let made = parallel("up");
    assert_eq!(stack.members(BUCKET, "roles/one").len(), 100);
    eprintln!("{made} requests to make them");
    // One by one it would be two hundred. How fast they come is the engine's.
    assert!(made <= 50, "{made} requests");
    let read = parallel("refresh");
    assert!(read <= 25, "{read} requests");
    let removed = parallel("destroy");
    assert!(removed <= 50, "{removed} requests");
    assert!(stack.members(BUCKET, "roles/one").is_empty());
}

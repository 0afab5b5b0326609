//! Builds the test components.

use bindery_component_build::{Guest, build};

fn main() {
    let acme = Guest {
        package: "bindery-test-acme",
        features: &[],
        wit: "tests/guests/acme/wit",
        sources: &["tests/guests/acme", "wit/deps/engine"],
    };
    let unruly = Guest {
        package: "bindery-test-unruly",
        features: &[],
        wit: "tests/guests/unruly/wit",
        sources: &["tests/guests/unruly", "wit/deps/engine"],
    };
    build(&[("acme", acme), ("unruly", unruly)]);
}

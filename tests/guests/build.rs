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
    let echo = Guest {
        package: "bindery-test-echo",
        features: &[],
        wit: "wit",
        sources: &["tests/guests/echo", "wit"],
    };
    build(&[("acme", acme), ("unruly", unruly), ("echo", echo)]);
}

//! Builds the planner and the provider. One cargo call each: in a common one, features unify and pull std into the planner.

use bindery_component_build::{Guest, build};

fn main() {
    let planner = Guest {
        package: "bindery-planner",
        features: &["standalone"],
        wit: "wit",
        sources: &["guest/policy/src", "guest/planner"],
    };
    let provider = Guest {
        package: "bindery-provider",
        features: &[],
        wit: "wit",
        sources: &["guest/policy/src", "guest/planner", "guest/provider"],
    };
    build(&[("planner", planner), ("provider", provider)]);
}

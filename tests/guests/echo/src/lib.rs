//! A planner of the built-in provider's world that decides nothing: its `check` gives back what it gets. What a call costs beside
//! the rules is measured with it.
#![cfg(target_family = "wasm")]

wit_bindgen::generate!({ path: "../../../wit", world: "planner", generate_all });

use bindery::engine::types::{Change, Failure, Footprint};
use exports::bindery::compute::backend_bucket_iam_member_plan as bucket;
use exports::bindery::datamigration::migration_job_iam_member_plan as job;
use exports::bindery::networkservices::edge_cache_origin_iam_binding_plan as origin;
use exports::bindery::provider::about;

struct Echo;

export!(Echo);

impl about::Guest for Echo {
    fn configure(_: about::Config, _: Vec<String>) -> Result<Vec<String>, Vec<Failure>> {
        Ok(Vec::new())
    }
}

macro_rules! plan {
    ($plan:ident) => {
        impl $plan::Guest for Echo {
            fn check(_: $plan::Config, args: $plan::Args, _: Vec<String>) -> Result<$plan::Checked, Vec<Failure>> {
                Ok($plan::Checked {
                    args,
                    footprint: None,
                    id: None,
                })
            }

            fn diff(_: $plan::Config, _: $plan::State, _: $plan::Args, _: Vec<String>) -> Result<Vec<Change>, Failure> {
                Ok(Vec::new())
            }

            fn footprint_of(_: $plan::Config, old: $plan::State) -> Result<Footprint, Failure> {
                Ok(Footprint {
                    target: old.id.clone(),
                    claim: old.id,
                })
            }
        }
    };
}

plan!(bucket);
plan!(job);
plan!(origin);

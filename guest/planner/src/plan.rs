//! The exported `-plan` interfaces: one generic implementation, one row for each resource type.

use alloc::string::String;
use alloc::vec::Vec;

use bindery_policy::resource::{self, Args, Checked, State};
use bindery_policy::target::TargetKind;

use crate::bindings::bindery::engine::types::{Change, Failure, Footprint};
use crate::bindings::bindery::iam::types::Config;
use crate::bindings::exports::bindery::{compute, datamigration, networkservices, provider};
use crate::wire;

struct Planner;

crate::bindings::export!(Planner with_types_in crate::bindings);

impl provider::about::Guest for Planner {
    fn configure(config: Config, unknown: Vec<String>) -> Result<Vec<String>, Vec<Failure>> {
        wire::config(config)
            .check(&wire::unknown(unknown))
            .map_err(|failures| failures.into_iter().map(wire::failure).collect())
    }
}

macro_rules! resource_type {
    ($interface:path, $kind:expr, $subject:ty) => {
        const _: () = {
            use $interface as interface;

            impl interface::Guest for Planner {
                fn check(
                    config: Config,
                    args: interface::Args,
                    unknown: Vec<String>,
                ) -> Result<interface::Checked, Vec<Failure>> {
                    let args = Args::<$subject>::from(args);
                    let Checked { args, footprint, id } =
                        resource::check($kind, &wire::config(config), args, &wire::unknown(unknown))
                            .map_err(|failures| failures.into_iter().map(wire::failure).collect::<Vec<_>>())?;
                    Ok(interface::Checked {
                        args: args.into(),
                        footprint: footprint.map(wire::footprint),
                        id,
                    })
                }

                fn diff(
                    config: Config,
                    old: interface::State,
                    new: interface::Args,
                    unknown: Vec<String>,
                ) -> Result<Vec<Change>, Failure> {
                    let (old, new) = (State::<$subject>::from(old), Args::<$subject>::from(new));
                    resource::diff($kind, &wire::config(config), &old, &new, &wire::unknown(unknown))
                        .map(|changes| changes.into_iter().map(wire::change).collect())
                        .map_err(wire::failure)
                }

                fn footprint_of(config: Config, old: interface::State) -> Result<Footprint, Failure> {
                    resource::footprint_of::<$subject>($kind, &wire::config(config), &old.id)
                        .map(wire::footprint)
                        .map_err(wire::failure)
                }
            }
        };
    };
}

resource_type!(
    compute::backend_bucket_iam_member_plan,
    TargetKind::BackendBucket,
    String
);
resource_type!(
    datamigration::migration_job_iam_member_plan,
    TargetKind::MigrationJob,
    String
);
resource_type!(
    networkservices::edge_cache_origin_iam_binding_plan,
    TargetKind::EdgeCacheOrigin,
    Vec<String>
);

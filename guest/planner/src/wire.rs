//! Between the contract's records and the rules' types.

use alloc::string::String;
use alloc::vec::Vec;

use bindery_policy::condition::Condition;
use bindery_policy::config::{self, Config, Endpoints};
use bindery_policy::failure::{self, UnknownPaths};
use bindery_policy::resource::{self, Args, State};

use crate::bindings::bindery::engine::types as engine;
use crate::bindings::bindery::iam::types as iam;

/// The configuration.
pub fn config(wire: iam::Config) -> Config {
    Config {
        project: wire.project,
        region: wire.region,
        policy_mode: match wire.policy_mode {
            None | Some(iam::PolicyMode::Merge) => config::PolicyMode::Merge,
            Some(iam::PolicyMode::Replace) => config::PolicyMode::Replace,
        },
        identity_forms: match wire.identity_forms {
            None | Some(iam::IdentityForms::Documented) => config::IdentityForms::Documented,
            Some(iam::IdentityForms::All) => config::IdentityForms::All,
        },
        endpoints: Endpoints {
            datamigration: wire.datamigration_endpoint,
            networkservices: wire.networkservices_endpoint,
            compute: wire.compute_endpoint,
        },
    }
}

fn condition_in(wire: iam::Condition) -> Condition {
    Condition {
        expression: wire.expression,
        title: wire.title,
        description: wire.description,
    }
}

fn condition_out(condition: Condition) -> iam::Condition {
    iam::Condition {
        expression: condition.expression,
        title: condition.title,
        description: condition.description,
    }
}

/// The inputs and outputs of one shape of resource, member or binding, on the wire.
macro_rules! shape {
    ($subject:ty, $field:ident, $args:ident, $state:ident) => {
        impl From<iam::$args> for Args<$subject> {
            fn from(wire: iam::$args) -> Self {
                Self {
                    subject: wire.$field,
                    name: wire.name,
                    role: wire.role,
                    condition: wire.condition.map(condition_in),
                    project: wire.project,
                }
            }
        }

        impl From<Args<$subject>> for iam::$args {
            fn from(args: Args<$subject>) -> Self {
                Self {
                    $field: args.subject,
                    name: args.name,
                    role: args.role,
                    condition: args.condition.map(condition_out),
                    project: args.project,
                }
            }
        }

        impl From<iam::$state> for State<$subject> {
            fn from(wire: iam::$state) -> Self {
                Self {
                    subject: wire.$field,
                    name: wire.name,
                    role: wire.role,
                    condition: wire.condition.map(condition_in),
                    project: wire.project,
                    etag: wire.etag,
                    id: wire.id,
                }
            }
        }

        impl From<State<$subject>> for iam::$state {
            fn from(state: State<$subject>) -> Self {
                Self {
                    $field: state.subject,
                    name: state.name,
                    role: state.role,
                    condition: state.condition.map(condition_out),
                    project: state.project,
                    etag: state.etag,
                    id: state.id,
                }
            }
        }
    };
}

shape!(String, member, MemberArgs, MemberState);
shape!(Vec<String>, members, BindingArgs, BindingState);

/// The unknown paths.
pub fn unknown(paths: Vec<String>) -> UnknownPaths {
    UnknownPaths::new(paths)
}

/// One failure.
pub fn failure(failure: failure::Failure) -> engine::Failure {
    engine::Failure {
        path: failure.path,
        reason: failure.reason,
    }
}

/// One change.
pub fn change(change: failure::Change) -> engine::Change {
    engine::Change {
        path: change.path,
        kind: match change.kind {
            failure::ChangeKind::Add => engine::ChangeKind::Add,
            failure::ChangeKind::Update => engine::ChangeKind::Update,
            failure::ChangeKind::Remove => engine::ChangeKind::Remove,
        },
        replaces: change.replaces,
    }
}

/// A footprint.
pub fn footprint(footprint: resource::Footprint) -> engine::Footprint {
    engine::Footprint {
        target: footprint.target,
        claim: footprint.claim,
    }
}

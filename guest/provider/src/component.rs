//! The exported interfaces that talk to the services: one generic implementation, one row for each resource type. The
//! `-plan` interfaces are the planner's, which is linked in.

use bindery_planner::bindings::bindery::engine::types as engine;
use bindery_planner::bindings::bindery::iam::types::Config;
use bindery_planner::wire;
use bindery_policy::operation::Operation;
use bindery_policy::resource::State;
use bindery_policy::subject::Subject;
use bindery_policy::target::TargetKind;

use crate::answer::{Code, Effect, Error};
use crate::commit::{self, Answer};
use crate::http::Http;

/// The world `provider`, less the world `planner`.
#[allow(missing_docs, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: r#"
            package bindery:lifecycle;

            world lifecycle {
                export bindery:compute/backend-bucket-iam-member@1.0.0;
                export bindery:datamigration/migration-job-iam-member@1.0.0;
                export bindery:networkservices/edge-cache-origin-iam-binding@1.0.0;
            }
        "#,
        world: "bindery:lifecycle/lifecycle",
        with: {
            "bindery:engine/types@1.0.0": bindery_planner::bindings::bindery::engine::types,
            "bindery:iam/types@1.0.0": bindery_planner::bindings::bindery::iam::types,
        },
    });
}

use bindings::exports::bindery::{compute, datamigration, networkservices};

struct Provider;

bindings::export!(Provider with_types_in bindings);

fn error(error: Error) -> engine::Error {
    engine::Error {
        code: match error.code {
            Code::NotFound => engine::ErrorCode::NotFound,
            Code::InvalidArgument => engine::ErrorCode::InvalidArgument,
            Code::PermissionDenied => engine::ErrorCode::PermissionDenied,
            Code::Unauthenticated => engine::ErrorCode::Unauthenticated,
            Code::FailedPrecondition => engine::ErrorCode::FailedPrecondition,
            Code::Conflict => engine::ErrorCode::Conflict,
            Code::ResourceExhausted => engine::ErrorCode::ResourceExhausted,
            Code::Unavailable => engine::ErrorCode::Unavailable,
            Code::Internal => engine::ErrorCode::Internal,
        },
        message: error.message,
        effect: match error.effect {
            Effect::None => engine::Effect::None,
            Effect::Unknown => engine::Effect::Unknown,
        },
        retry_after: error.retry_after,
    }
}

fn commit_all<S: Subject>(
    kind: TargetKind,
    config: Config,
    operations: Vec<Operation<S>>,
) -> Result<Vec<Answer<S>>, engine::Error> {
    let config = wire::config(config);
    let mut http = Http { config: &config };
    commit::commit(kind, &config, operations, &mut http).map_err(error)
}

fn commit_one<S: Subject>(
    kind: TargetKind,
    config: Config,
    operation: Operation<S>,
) -> Result<Option<State<S>>, engine::Error> {
    let Some(Answer { outcome, warning }) = commit_all(kind, config, vec![operation])?.pop() else {
        return Ok(None);
    };
    if let Some(warning) = warning {
        eprintln!("{warning}");
    }
    outcome.map_err(error)
}

/// What a create or an update gives back, which always has a state.
fn made<S>(state: Option<State<S>>) -> Result<State<S>, engine::Error> {
    state.ok_or_else(|| error(Error::fatal(Code::Internal, "the grant was made, and has no state")))
}

macro_rules! resource_type {
    ($interface:path, $kind:expr, $subject:ty) => {
        const _: () = {
            use $interface as interface;
            use $interface::{Args, State};

            impl interface::Guest for Provider {
                fn create(config: Config, args: Args) -> Result<State, engine::Error> {
                    let operation = Operation::<$subject>::Create(args.into());
                    commit_one($kind, config, operation)
                        .and_then(made)
                        .map(State::from)
                }

                fn read(config: Config, id: String, last: Option<State>) -> Result<Option<State>, engine::Error> {
                    let last = last.map(Into::into);
                    let operation = Operation::<$subject>::Read { id, last };
                    commit_one($kind, config, operation).map(|state| state.map(State::from))
                }

                fn update(config: Config, old: State, new: Args) -> Result<State, engine::Error> {
                    let (old, new) = (old.into(), new.into());
                    let operation = Operation::<$subject>::Update { old, new };
                    commit_one($kind, config, operation)
                        .and_then(made)
                        .map(State::from)
                }

                fn delete(config: Config, old: State) -> Result<(), engine::Error> {
                    let operation = Operation::<$subject>::Delete(old.into());
                    commit_one($kind, config, operation).map(|_| ())
                }

                fn commit(
                    config: Config,
                    operations: Vec<interface::Operation>,
                ) -> Result<Vec<interface::Answer>, engine::Error> {
                    let operations = operations
                        .into_iter()
                        .map(|operation| match operation {
                            interface::Operation::Create(args) => Operation::<$subject>::Create(args.into()),
                            interface::Operation::Read((id, last)) => {
                                let last = last.map(Into::into);
                                Operation::Read { id, last }
                            }
                            interface::Operation::Update((old, new)) => {
                                let (old, new) = (old.into(), new.into());
                                Operation::Update { old, new }
                            }
                            interface::Operation::Delete(old) => Operation::Delete(old.into()),
                        })
                        .collect();
                    let answers = commit_all($kind, config, operations)?;
                    Ok(answers
                        .into_iter()
                        .map(|answer| interface::Answer {
                            outcome: answer.outcome.map(|state| state.map(State::from)).map_err(error),
                            warnings: answer.warning.into_iter().collect(),
                        })
                        .collect())
                }
            }
        };
    };
}

resource_type!(compute::backend_bucket_iam_member, TargetKind::BackendBucket, String);
resource_type!(
    datamigration::migration_job_iam_member,
    TargetKind::MigrationJob,
    String
);
resource_type!(
    networkservices::edge_cache_origin_iam_binding,
    TargetKind::EdgeCacheOrigin,
    Vec<String>
);

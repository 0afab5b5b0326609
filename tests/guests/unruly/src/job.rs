//! Operations that are committed together, and what one of them does to the rest.

use crate::Unruly;
use crate::bindery::engine::types::{Change, Effect, Error, ErrorCode, Failure, Footprint};
use crate::exports::unruly::test::job::{self, Answer, Operation};
use crate::exports::unruly::test::job_plan;
use crate::unruly::test::types::{Conduct, Config, JobArgs, JobState};

impl job_plan::Guest for Unruly {
    fn check(_: Config, args: JobArgs, _: Vec<String>) -> Result<job_plan::Checked, Vec<Failure>> {
        Ok(job_plan::Checked {
            footprint: Some(footprint(&args.name)),
            id: Some(format!("jobs/{}", args.name)),
            args,
        })
    }

    fn diff(_: Config, _: JobState, _: JobArgs, _: Vec<String>) -> Result<Vec<Change>, Failure> {
        Ok(Vec::new())
    }

    fn footprint_of(_: Config, old: JobState) -> Result<Footprint, Failure> {
        Ok(footprint(&old.name))
    }
}

fn footprint(name: &str) -> Footprint {
    Footprint {
        target: "yard".to_string(),
        claim: format!("job {name}"),
    }
}

fn error(code: ErrorCode, message: &str) -> Error {
    Error {
        code,
        message: message.to_string(),
        effect: Effect::None,
        retry_after: None,
    }
}

/// The functions for one resource, which a host has no use for beside `commit`.
impl job::Guest for Unruly {
    fn create(_: Config, _: JobArgs) -> Result<JobState, Error> {
        Err(error(ErrorCode::Internal, "`create` was called"))
    }

    /// What no state is known of is asked for alone.
    fn read(_: Config, _: String, last: Option<JobState>) -> Result<Option<JobState>, Error> {
        Ok(last)
    }

    fn update(_: Config, _: JobState, _: JobArgs) -> Result<JobState, Error> {
        Err(error(ErrorCode::Internal, "`update` was called"))
    }

    fn delete(_: Config, _: JobState) -> Result<(), Error> {
        Err(error(ErrorCode::Internal, "`delete` was called"))
    }

    fn commit(_: Config, operations: Vec<Operation>) -> Result<Vec<Answer>, Error> {
        let together = u32::try_from(operations.len()).unwrap_or(u32::MAX);
        let mut answers = Vec::new();
        for operation in operations {
            let JobArgs { name, conduct } = match operation {
                Operation::Create(args) | Operation::Update((_, args)) => args,
                Operation::Read((_, last)) => {
                    answers.push(Answer {
                        outcome: Ok(last.map(|last| JobState { together, ..last })),
                        warnings: Vec::new(),
                    });
                    continue;
                }
                Operation::Delete(_) => {
                    answers.push(Answer {
                        outcome: Ok(None),
                        warnings: Vec::new(),
                    });
                    continue;
                }
            };
            let mut warnings = Vec::new();
            match conduct {
                Conduct::Work => {}
                Conduct::Speak => {
                    eprintln!("said to all");
                    warnings.push("said to\u{1b}[31m one".to_string());
                }
                Conduct::Fail => {
                    answers.push(Answer {
                        outcome: Err(error(ErrorCode::FailedPrecondition, "not this one")),
                        warnings,
                    });
                    continue;
                }
                Conduct::Spoil => return Err(error(ErrorCode::InvalidArgument, "not with this one")),
                Conduct::Panic => panic!("as it was told to"),
                Conduct::Shorten => continue,
            }
            answers.push(Answer {
                outcome: Ok(Some(JobState {
                    id: format!("jobs/{name}"),
                    name,
                    conduct,
                    together,
                })),
                warnings,
            });
        }
        Ok(answers)
    }
}

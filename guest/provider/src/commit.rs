//! Many operations on one target: one read and at most one write. A single create, read, update or delete is a commit
//! of one.

use bindery_policy::config::Config;
use bindery_policy::document::{Policy, PolicyError};
use bindery_policy::operation::{Operation, Outcome, Prepared, Refusal};
use bindery_policy::resource::State;
use bindery_policy::subject::Subject;
use bindery_policy::target::{Target, TargetKind};

use crate::answer::{Code, Error, Failure};

/// A service that holds policies. A call is one request.
pub trait Service {
    /// The policy of a target.
    fn read(&mut self, target: &Target) -> Result<Policy, Failure>;

    /// Sets the policy of a target, and gives its new etag.
    fn write(&mut self, target: &Target, body: String) -> Result<String, Failure>;

    /// Tells the person something that is not an error.
    fn warn(&mut self, message: &str);
}

/// What one operation of a commit came to: the resource, or none where it is gone.
pub type Answer<S> = Result<Option<State<S>>, Error>;

/// Applies the operations in order. Each has its answer, in their order; the outer error is the commit's own.
pub fn commit<S: Subject>(
    kind: TargetKind,
    config: &Config,
    operations: Vec<Operation<S>>,
    service: &mut impl Service,
) -> Result<Vec<Answer<S>>, Error> {
    let prepared = prepare(kind, config, operations);
    let Some(target) = prepared
        .iter()
        .flatten()
        .map(|operation| operation.target.clone())
        .next()
    else {
        return Ok(prepared.into_iter().map(|operation| operation.map(|_| None)).collect());
    };
    let mut policy = match service.read(&target) {
        Ok(policy) => policy,
        Err(Failure::NoTarget) => return Ok(without_target(&prepared)),
        Err(Failure::Error(error)) => return Err(error),
    };
    let outcomes: Vec<Result<Outcome<S>, Error>> = prepared
        .iter()
        .cloned()
        .map(|operation| operation?.apply(config, &mut policy).map_err(refused))
        .collect();
    let changed = outcomes.iter().flatten().any(|outcome| outcome.changed);
    let etag = if changed {
        let body = policy.set_request().map_err(|error| unwritable(&target, &error))?;
        match service.write(&target, body) {
            Ok(etag) => Some(etag),
            Err(Failure::NoTarget) => return Ok(without_target(&prepared)),
            Err(Failure::Error(error)) => return Err(error),
        }
    } else {
        None
    };
    Ok(outcomes
        .into_iter()
        .map(|outcome| {
            let outcome = outcome?;
            if let Some(warning) = &outcome.warning {
                service.warn(warning);
            }
            Ok(match &etag {
                Some(etag) => outcome.committed(etag),
                None => outcome,
            }
            .state)
        })
        .collect())
}

type Preparation<S> = Result<Prepared<S>, Error>;

/// Parses the operands. One that is on another target than those before it fails alone.
fn prepare<S: Subject>(kind: TargetKind, config: &Config, operations: Vec<Operation<S>>) -> Vec<Preparation<S>> {
    let mut target: Option<Target> = None;
    operations
        .into_iter()
        .map(|operation| {
            let prepared = Prepared::new(kind, config, operation).map_err(refused)?;
            let first = target.get_or_insert_with(|| prepared.target.clone());
            if *first == prepared.target {
                return Ok(prepared);
            }
            Err(Error::fatal(
                Code::InvalidArgument,
                format!("`{}` is not the target of this commit, `{first}`", prepared.target),
            ))
        })
        .collect()
}

fn without_target<S: Subject>(prepared: &[Preparation<S>]) -> Vec<Answer<S>> {
    prepared
        .iter()
        .map(|operation| match operation {
            Ok(operation) => operation.without_target().map(|outcome| outcome.state).map_err(refused),
            Err(error) => Err(error.clone()),
        })
        .collect()
}

fn refused(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Invalid(reason) => Error::fatal(Code::InvalidArgument, reason),
        Refusal::NoTarget(reason) => Error::fatal(Code::NotFound, reason),
    }
}

/// A policy that may be looked at, and not written.
fn unwritable(target: &Target, error: &PolicyError) -> Error {
    let hint = match (error, target.kind()) {
        // Compute answers an empty policy for a bucket that does not exist.
        (PolicyError::NoEtag, TargetKind::BackendBucket) => "; check that the bucket exists",
        _ => "",
    };
    Error::fatal(Code::FailedPrecondition, format!("`{target}`: {error}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_policy::resource::Args;

    /// Holds one policy, and counts.
    struct Fake {
        policy: Option<Result<String, Failure>>,
        write: Result<String, Failure>,
        reads: usize,
        writes: Vec<String>,
        warnings: Vec<String>,
    }

    impl Fake {
        fn holding(policy: &str) -> Self {
            Self {
                policy: Some(Ok(policy.to_string())),
                write: Ok("NEW=".to_string()),
                reads: 0,
                writes: Vec::new(),
                warnings: Vec::new(),
            }
        }
    }

    impl Service for Fake {
        fn read(&mut self, _: &Target) -> Result<Policy, Failure> {
            self.reads += 1;
            self.policy.take().unwrap().map(|text| Policy::parse(&text).unwrap())
        }

        fn write(&mut self, _: &Target, body: String) -> Result<String, Failure> {
            self.writes.push(body);
            self.write.clone()
        }

        fn warn(&mut self, message: &str) {
            self.warnings.push(message.to_string());
        }
    }

    fn args(bucket: &str, member: &str) -> Args<String> {
        Args {
            subject: member.to_string(),
            name: bucket.into(),
            role: "roles/x".into(),
            condition: None,
            project: Some("p".into()),
        }
    }

    fn create(bucket: &str, member: &str) -> Operation<String> {
        Operation::Create(args(bucket, member))
    }

    fn state(member: &str) -> State<String> {
        State {
            subject: member.to_string(),
            name: "b".into(),
            role: "roles/x".into(),
            condition: None,
            project: "p".into(),
            etag: "OLD=".into(),
            id: format!("projects/p/global/backendBuckets/b/roles/x/{member}"),
        }
    }

    fn run(service: &mut Fake, operations: Vec<Operation<String>>) -> Result<Vec<Answer<String>>, Error> {
        commit(TargetKind::BackendBucket, &Config::default(), operations, service)
    }

    const EMPTY: &str = r#"{"etag":"OLD="}"#;

    #[test]
    fn many_operations_cost_one_read_and_one_write() {
        let mut service = Fake::holding(EMPTY);
        let answers = run(
            &mut service,
            vec![
                create("b", "user:a@example.com"),
                create("b", "user:b@example.com"),
                Operation::Delete(state("user:a@example.com")),
            ],
        )
        .unwrap();
        assert_eq!((service.reads, service.writes.len()), (1, 1));
        assert!(
            service.writes[0].contains(r#""members":["user:b@example.com"]"#),
            "{}",
            service.writes[0]
        );
        assert_eq!(answers[0].as_ref().unwrap().as_ref().unwrap().etag, "NEW=");
        assert_eq!(answers[2], Ok(None));
    }

    #[test]
    fn nothing_is_written_where_nothing_changes() {
        let mut service =
            Fake::holding(r#"{"etag":"OLD=","bindings":[{"role":"roles/x","members":["user:a@example.com"]}]}"#);
        let answers = run(
            &mut service,
            vec![
                create("b", "user:a@example.com"),
                Operation::Delete(state("user:z@example.com")),
            ],
        )
        .unwrap();
        assert!(service.writes.is_empty());
        assert_eq!(answers[0].as_ref().unwrap().as_ref().unwrap().etag, "OLD=");
        assert_eq!(service.warnings.len(), 1);
    }

    #[test]
    fn what_can_be_judged_alone_fails_alone() {
        let mut service = Fake::holding(EMPTY);
        let answers = run(
            &mut service,
            vec![
                create("b", "nobody"),
                create("b", "user:a@example.com"),
                create("other", "user:a@example.com"),
            ],
        )
        .unwrap();
        assert_eq!(answers[0].as_ref().unwrap_err().code, Code::InvalidArgument);
        assert!(answers[1].is_ok());
        assert!(answers[2].as_ref().unwrap_err().message.contains("not the target"));
        assert_eq!(service.writes.len(), 1);
        let mut unread = Fake::holding(EMPTY);
        assert!(run(&mut unread, vec![create("b", "nobody")]).unwrap()[0].is_err());
        assert_eq!(unread.reads, 0);
    }

    #[test]
    fn a_missing_target_fails_grants_and_lets_the_rest_pass() {
        for (policy, write) in [
            (Err(Failure::NoTarget), Ok(String::new())),
            (Ok(EMPTY.to_string()), Err(Failure::NoTarget)),
        ] {
            let mut service = Fake {
                policy: Some(policy),
                write,
                ..Fake::holding(EMPTY)
            };
            let answers = run(
                &mut service,
                vec![
                    create("b", "user:a@example.com"),
                    Operation::Delete(state("user:b@example.com")),
                ],
            )
            .unwrap();
            assert_eq!(answers[0].as_ref().unwrap_err().code, Code::NotFound);
            assert_eq!(answers[1], Ok(None));
        }
    }

    #[test]
    fn a_read_without_an_etag_is_never_written_on() {
        let mut service = Fake::holding("{}");
        let error = run(&mut service, vec![create("b", "user:a@example.com")]).unwrap_err();
        assert_eq!(error.code, Code::FailedPrecondition);
        assert!(
            error.message.contains("without an etag") && error.message.contains("exists"),
            "{}",
            error.message
        );
        assert!(service.writes.is_empty());
    }
}

//! Many operations on one target: one read and at most one write. A single create, read, update or delete is a commit
//! of one.

use bindery_policy::config::Config;
use bindery_policy::document::{Policy, PolicyError};
use bindery_policy::identity::address;
use bindery_policy::operation::{Operation, Outcome, Prepared, Refusal};
use bindery_policy::resource::State;
use bindery_policy::subject::Subject;
use bindery_policy::target::{Target, TargetKind};

use crate::answer::{Code, Effect, Error, Failure};

/// A service that holds policies. A call is one request.
pub trait Service {
    /// The policy of a target.
    fn read(&mut self, target: &Target) -> Result<Policy, Failure>;

    /// Sets the policy of a target, and gives its new etag.
    fn write(&mut self, target: &Target, body: String) -> Result<String, Failure>;
}

/// What one operation of a commit came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<S> {
    /// The resource, or none where it is gone.
    pub outcome: Result<Option<State<S>>, Error>,
    /// What a person should know.
    pub warning: Option<String>,
}

impl<S> Answer<S> {
    fn refused(error: Error) -> Self {
        Self {
            outcome: Err(error),
            warning: None,
        }
    }
}

/// Applies the operations in order. Each has its answer, in their order. The outer error is the commit's own: worth
/// repeating, or a write that was refused as a whole, perhaps for one operation's sake. What concerns the target is each
/// operation's answer.
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
        return Ok(refused_each(prepared));
    };
    let read = match service.read(&target) {
        Ok(policy) => policy,
        Err(Failure::NoTarget) => return Ok(without_target(prepared)),
        Err(Failure::Error(error)) if error.retry_after.is_some() => return Err(error),
        Err(Failure::Error(error)) => return Ok(without_policy(prepared, &error)),
    };
    let mut policy = read.clone();
    let outcomes: Vec<Result<Outcome<S>, Error>> = prepared
        .iter()
        .cloned()
        .map(|operation| operation?.apply(config, &mut policy).map_err(refused))
        .collect();
    let changed = outcomes.iter().flatten().any(|outcome| outcome.changed);
    if !changed {
        return Ok(outcomes.into_iter().map(answer).collect());
    }
    let body = match policy.set_request() {
        Ok(body) => body,
        Err(error) => return Ok(without_write(prepared, config, &read, &unwritable(&target, &error))),
    };
    match service.write(&target, body) {
        Ok(etag) => Ok(outcomes
            .into_iter()
            .map(|outcome| answer(outcome.map(|outcome| outcome.committed(&etag))))
            .collect()),
        Err(Failure::NoTarget) => Ok(without_target(prepared)),
        // No half of the operations would fare better.
        Err(Failure::Error(error)) if is_of_the_whole(&error) && is_refused_for_others(&error, &read, &prepared) => {
            let message = format!(
                "{}; that identity is in the policy already, and is none of those that are granted here",
                error.message
            );
            Ok(without_write(prepared, config, &read, &Error { message, ..error }))
        }
        Err(Failure::Error(error)) if is_of_the_whole(&error) => Err(error),
        Err(Failure::Error(error)) => Ok(without_write(prepared, config, &read, &error)),
    }
}

fn answer<S>(outcome: Result<Outcome<S>, Error>) -> Answer<S> {
    match outcome {
        Ok(outcome) => Answer {
            outcome: Ok(outcome.state),
            warning: outcome.warning,
        },
        Err(error) => Answer::refused(error),
    }
}

/// Whether a write that failed says nothing of each operation: it may have been done, is worth repeating, or was refused
/// for what it holds.
fn is_of_the_whole(error: &Error) -> bool {
    error.retry_after.is_some()
        || error.effect == Effect::Unknown
        || matches!(error.code, Code::InvalidArgument | Code::FailedPrecondition)
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

/// Whether the service refuses a member that was in the policy before, and that none of the operations has to do with.
fn is_refused_for_others<S: Subject>(error: &Error, read: &Policy, prepared: &[Preparation<S>]) -> bool {
    if error.code != Code::InvalidArgument || error.retry_after.is_some() || error.effect != Effect::None {
        return false;
    }
    let is_named = |address: &&str| address.contains('@') && has_word(&error.message, address);
    let mut named = read.all_members().map(address).filter(is_named).peekable();
    let is_of_others = |address| !prepared.iter().flatten().any(|operation| operation.concerns(address));
    named.peek().is_some() && named.all(is_of_others)
}

/// Whether an address stands in a text, and is no part of another one.
fn has_word(text: &str, address: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || "._%+-@".contains(c);
    let (text, address) = (text.to_lowercase(), address.to_lowercase());
    text.match_indices(&address).any(|(start, found)| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(start + found.len()..).unwrap_or_default();
        // A full stop may end the sentence.
        let after = after.strip_prefix('.').unwrap_or(after);
        !before.is_some_and(goes_on) && !after.starts_with(goes_on)
    })
}

fn refused_each<S: Subject>(prepared: Vec<Preparation<S>>) -> Vec<Answer<S>> {
    let errors = prepared.into_iter().filter_map(Result::err);
    errors.map(Answer::refused).collect()
}

fn without_target<S: Subject>(prepared: Vec<Preparation<S>>) -> Vec<Answer<S>> {
    let outcome = |operation: Preparation<S>| operation?.without_target().map_err(refused);
    prepared
        .into_iter()
        .map(|operation| answer(outcome(operation)))
        .collect()
}

/// The policy cannot be read.
fn without_policy<S: Subject>(prepared: Vec<Preparation<S>>, error: &Error) -> Vec<Answer<S>> {
    let refused = |operation: Preparation<S>| Answer::refused(operation.err().unwrap_or_else(|| error.clone()));
    prepared.into_iter().map(refused).collect()
}

/// The policy cannot be written. An operation that has nothing to change in it does not need that.
fn without_write<S: Subject>(
    prepared: Vec<Preparation<S>>,
    config: &Config,
    policy: &Policy,
    error: &Error,
) -> Vec<Answer<S>> {
    let outcome = |operation: Preparation<S>| {
        let outcome = operation?.apply(config, &mut policy.clone()).map_err(refused)?;
        if outcome.changed {
            Err(error.clone())
        } else {
            Ok(outcome)
        }
    };
    prepared
        .into_iter()
        .map(|operation| answer(outcome(operation)))
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
    }

    impl Fake {
        fn holding(policy: &str) -> Self {
            Self {
                policy: Some(Ok(policy.to_string())),
                write: Ok("NEW=".to_string()),
                reads: 0,
                writes: Vec::new(),
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

    fn etag(answer: &Answer<String>) -> &str {
        &answer.outcome.as_ref().unwrap().as_ref().unwrap().etag
    }

    fn error(answer: &Answer<String>) -> &Error {
        answer.outcome.as_ref().unwrap_err()
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
        assert_eq!(etag(&answers[0]), "NEW=");
        assert_eq!(answers[2].outcome, Ok(None));
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
        assert_eq!(etag(&answers[0]), "OLD=");
        assert!(answers[0].warning.is_some() && answers[1].warning.is_none());
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
        assert_eq!(error(&answers[0]).code, Code::InvalidArgument);
        assert!(answers[1].outcome.is_ok());
        assert!(error(&answers[2]).message.contains("not the target"));
        assert_eq!(service.writes.len(), 1);
        let mut unread = Fake::holding(EMPTY);
        assert!(
            run(&mut unread, vec![create("b", "nobody")]).unwrap()[0]
                .outcome
                .is_err()
        );
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
            assert_eq!(error(&answers[0]).code, Code::NotFound);
            assert_eq!(answers[1].outcome, Ok(None));
        }
    }

    #[test]
    fn a_read_without_an_etag_is_never_written_on() {
        let mut service = Fake::holding("{}");
        let answers = run(&mut service, vec![create("b", "user:a@example.com")]).unwrap();
        let error = error(&answers[0]);
        assert_eq!(error.code, Code::FailedPrecondition);
        assert!(
            error.message.contains("without an etag") && error.message.contains("exists"),
            "{}",
            error.message
        );
        assert!(service.writes.is_empty());
    }

    #[test]
    fn a_refused_member_that_others_put_there_is_no_operations_fault() {
        let refusing = |said: &str| Fake {
            write: Err(Failure::Error(Error::fatal(Code::InvalidArgument, said))),
            ..Fake::holding(
                r#"{"etag":"OLD=","bindings":[{"role":"roles/y","members":["user:eve@example.com","serviceAccount:steve@example.com"]}]}"#,
            )
        };
        let others = || vec![create("b", "user:a@example.com"), create("b", "user:b@example.com")];
        let answers = run(&mut refusing("User Eve@example.com does not exist."), others()).unwrap();
        for answer in &answers {
            let message = &error(answer).message;
            assert!(message.contains("is in the policy already"), "{message}");
        }
        // Where one of them has to do with it, it may be that one's fault.
        for (said, member) in [
            ("User eve@example.com does not exist.", "user:eve@example.com"),
            ("User steve@example.com does not exist.", "user:steve@example.com"),
            ("User eve@example.com.au does not exist.", "user:eve@example.com.au"),
            ("The role is not supported for this resource.", "user:c@example.com"),
        ] {
            let mut operations = others();
            operations.push(create("b", member));
            assert!(run(&mut refusing(said), operations).is_err(), "{said}");
        }
        assert!(run(&mut refusing("User adam.eve@example.com does not exist."), others()).is_err());
    }

    #[test]
    fn what_may_be_one_operations_fault_is_the_commits_error_and_what_is_the_targets_is_everyones() {
        let refusal = |code, effect, retry_after| {
            Failure::Error(Error {
                effect,
                retry_after,
                ..Error::fatal(code, "no")
            })
        };
        let operations = || {
            vec![
                create("b", "user:there@example.com"),
                create("b", "user:a@example.com"),
                create("b", "nobody"),
            ]
        };
        let there = r#"{"etag":"OLD=","bindings":[{"role":"roles/x","members":["user:there@example.com"]}]}"#;
        for (code, effect, retry_after) in [
            (Code::InvalidArgument, Effect::None, None),
            (Code::FailedPrecondition, Effect::None, None),
            (Code::Internal, Effect::Unknown, None),
            (Code::Conflict, Effect::None, Some(0)),
        ] {
            let mut service = Fake {
                write: Err(refusal(code, effect, retry_after)),
                ..Fake::holding(there)
            };
            assert_eq!(run(&mut service, operations()).unwrap_err().code, code);
        }
        let denied = || refusal(Code::PermissionDenied, Effect::None, None);
        let mut service = Fake {
            write: Err(denied()),
            ..Fake::holding(there)
        };
        let answers = run(&mut service, operations()).unwrap();
        assert_eq!(etag(&answers[0]), "OLD=", "it has nothing to write");
        assert_eq!(error(&answers[1]).code, Code::PermissionDenied);
        assert_eq!(error(&answers[2]).code, Code::InvalidArgument);
        let mut service = Fake {
            policy: Some(Err(denied())),
            ..Fake::holding(there)
        };
        let answers = run(&mut service, operations()).unwrap();
        assert_eq!(error(&answers[0]).code, Code::PermissionDenied);
        assert_eq!(error(&answers[2]).code, Code::InvalidArgument);
    }
}

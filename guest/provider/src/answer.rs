//! What a service's answer means: what went wrong, what was done, whether the same call is worth repeating, and what a
//! person should do about it.

use bindery_policy::document::PolicyError;
use bindery_policy::target::{Target, TargetKind};
use serde_json::Value;

/// An error's code, by Google's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// What was named does not exist.
    NotFound,
    /// The request cannot be right, however often it is tried.
    InvalidArgument,
    /// The caller may not do this.
    PermissionDenied,
    /// The caller's credential was not accepted.
    Unauthenticated,
    /// Something else must be put right first.
    FailedPrecondition,
    /// Somebody else wrote at the same time.
    Conflict,
    /// A quota is used up for now.
    ResourceExhausted,
    /// The service could not answer.
    Unavailable,
    /// The service answered what it should not.
    Internal,
}

/// What a call that failed has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Perhaps what was asked.
    Unknown,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What kind of failure.
    pub code: Code,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// What was done.
    pub effect: Effect,
    /// Present where the same call is worth repeating: after how many milliseconds at the earliest.
    pub retry_after: Option<u32>,
}

impl Error {
    /// An error that nothing was done for, and that repeating will not mend.
    pub fn fatal(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            effect: Effect::None,
            retry_after: None,
        }
    }
}

/// Which request of a read, modify, set was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The policy is read: nothing can have been done.
    Read,
    /// The policy is written.
    Write,
}

impl Step {
    /// What is known of the effect when the answer does not say.
    pub const fn effect(self) -> Effect {
        match self {
            Self::Read => Effect::None,
            Self::Write => Effect::Unknown,
        }
    }

    const fn verb(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Write => "writing",
        }
    }
}

/// Why a request had no good answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The target does not exist.
    NoTarget,
    /// Anything else.
    Error(Error),
}

/// An answer that is not a success.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The `retry-after` header: seconds, or a date.
    pub retry_after: Option<&'a str>,
    /// The `date` header, which a date in `retry-after` counts from.
    pub date: Option<&'a str>,
    /// The body as text.
    pub body: &'a str,
}

/// What an answer that is not a success means.
pub fn failure(step: Step, target: &Target, answer: Answer<'_>) -> Failure {
    let Details {
        message,
        status,
        reason,
        metadata,
    } = details(answer.body);
    let metadata = |key| metadata.get(key).and_then(Value::as_str).map(String::from);
    let said = message.as_deref().unwrap_or("the answer does not say why");
    let at = format!("{} the policy of `{target}`", step.verb());
    let fatal = |code, text: String| Failure::Error(Error::fatal(code, text));
    // At the earliest when the service says; how long to wait beyond that is the host's to decide.
    let again = |code, effect, text: String| {
        Failure::Error(Error {
            code,
            message: text,
            effect,
            retry_after: Some(retry_after(answer)),
        })
    };
    let reason = reason.as_deref().unwrap_or_default();
    match answer.status {
        404 if is_target(status.as_deref(), reason, said) => Failure::NoTarget,
        404 => fatal(
            Code::FailedPrecondition,
            format!("{at}: {}", unknown_method(target.kind(), message.as_deref())),
        ),
        409 | 412 => again(
            Code::Conflict,
            Effect::None,
            format!("{at}: somebody else changed it meanwhile ({said})"),
        ),
        429 => again(Code::ResourceExhausted, Effect::None, quota(&at, said)),
        403 if is_rate_limit(reason, said) => again(Code::ResourceExhausted, Effect::None, quota(&at, said)),
        403 if matches!(reason, "SERVICE_DISABLED" | "accessNotConfigured") => {
            let link = metadata("activationUrl").unwrap_or_else(|| {
                format!(
                    "https://console.cloud.google.com/apis/library/{}.googleapis.com?project={}",
                    target.kind().service(),
                    target.project()
                )
            });
            fatal(
                Code::PermissionDenied,
                format!("{at}: the service is not enabled; enable it at {link} ({said})"),
            )
        }
        // Something between here and the service, which knows nothing of permissions.
        403 if message.is_none() => fatal(
            Code::PermissionDenied,
            format!(
                "{at}: it was forbidden without a reason; is the endpoint the service's own, and is there a proxy?"
            ),
        ),
        403 => {
            let verb = if step == Step::Read {
                "getIamPolicy"
            } else {
                "setIamPolicy"
            };
            let permission = metadata("permission").unwrap_or_else(|| permission(target.kind(), verb));
            let resource = metadata("resource").unwrap_or_else(|| target.to_string());
            fatal(
                Code::PermissionDenied,
                format!("{at}: the caller lacks `{permission}` on `{resource}`; grant it a role that has it ({said})"),
            )
        }
        401 => fatal(
            Code::Unauthenticated,
            format!("{at}: the service did not accept the credential; it is missing or has expired: renew it ({said})"),
        ),
        408 | 500..=599 => again(
            Code::Unavailable,
            step.effect(),
            format!(
                "{at}: the service answered {}; if it lasts, try again later ({said})",
                answer.status
            ),
        ),
        400 if status.as_deref() == Some("FAILED_PRECONDITION") => {
            fatal(Code::FailedPrecondition, format!("{at}: {said}{}", advice(said)))
        }
        400..=499 => fatal(
            Code::InvalidArgument,
            format!("{at}: the service refused it: {said}{}", advice(said)),
        ),
        300..=399 => fatal(
            Code::FailedPrecondition,
            format!(
                "{at}: the service answered with a redirect ({}), which is not followed; correct the endpoint",
                answer.status
            ),
        ),
        other => Failure::Error(Error {
            code: Code::Internal,
            message: format!("{at}: the service answered {other}, which was not expected ({said})"),
            effect: step.effect(),
            retry_after: None,
        }),
    }
}

/// Whether a 404 speaks of the target, and not of a path or a method that is not there.
fn is_target(status: Option<&str>, reason: &str, said: &str) -> bool {
    (status == Some("NOT_FOUND") || reason == "notFound") && !said.starts_with("Method not found")
}

fn quota(at: &str, said: &str) -> String {
    format!("{at}: a quota is used up; if it lasts, ask for more or do less at once ({said})")
}

/// What a successful answer means whose body is not what it should be.
pub fn unreadable(step: Step, target: &Target, body: &str, why: &str) -> Error {
    let is_page = body.trim_start().starts_with('<');
    let what = if is_page {
        "it answered a web page; is the endpoint the service's own?"
    } else {
        why
    };
    Error {
        code: Code::Internal,
        message: format!("{} the policy of `{target}`: {what}", step.verb()),
        effect: step.effect(),
        // A write is worth repeating in any case: the next attempt reads first, and finds out.
        retry_after: (step == Step::Write || !is_page).then_some(0),
    }
}

/// What it means that a policy was read which cannot be worked on.
pub fn not_a_policy(target: &Target, body: &str, error: &PolicyError) -> Error {
    match error {
        PolicyError::HashedCondition(_) | PolicyError::NoEtag => {
            Error::fatal(Code::FailedPrecondition, format!("`{target}`: {error}"))
        }
        PolicyError::NotAPolicy | PolicyError::Malformed(_) => unreadable(Step::Read, target, body, &error.to_string()),
    }
}

struct Details {
    message: Option<String>,
    status: Option<String>,
    reason: Option<String>,
    metadata: Value,
}

/// Reads the two shapes of error body, and survives any other.
fn details(body: &str) -> Details {
    let body: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let body = match body {
        Value::Array(mut list) if !list.is_empty() => list.swap_remove(0),
        other => other,
    };
    let error = body.get("error").cloned().unwrap_or(Value::Null);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(String::from);
    let in_list = |key: &str| -> Vec<Value> { error.get(key).and_then(Value::as_array).cloned().unwrap_or_default() };
    let info = in_list("details")
        .into_iter()
        .find(|detail| detail.get("reason").is_some());
    let legacy = in_list("errors").into_iter().next();
    let reason = info.as_ref().or(legacy.as_ref()).and_then(|item| text(item, "reason"));
    let message = text(&error, "message").or_else(|| legacy.as_ref().and_then(|item| text(item, "message")));
    let status = text(&error, "status");
    let metadata = info
        .and_then(|info| info.get("metadata").cloned())
        .unwrap_or(Value::Null);
    Details {
        message: message.filter(|message| !message.trim().is_empty()),
        status,
        reason,
        metadata,
    }
}

/// How long the service asks to wait, in milliseconds. What cannot be read leaves the wait to the host.
fn retry_after(answer: Answer<'_>) -> u32 {
    let asked = answer.retry_after.map(str::trim).unwrap_or_default();
    let date = |text| httpdate::parse_http_date(text).ok();
    let seconds = asked.parse::<u32>().ok().or_else(|| {
        let wait = date(asked)?.duration_since(date(answer.date?)?).ok()?;
        u32::try_from(wait.as_secs()).ok()
    });
    seconds.unwrap_or(0).saturating_mul(1_000)
}

fn is_rate_limit(reason: &str, said: &str) -> bool {
    matches!(
        reason,
        "rateLimitExceeded"
            | "userRateLimitExceeded"
            | "RATE_LIMIT_EXCEEDED"
            | "quotaExceeded"
            | "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED"
    ) || said.starts_with("Quota exceeded")
}

fn permission(kind: TargetKind, verb: &str) -> String {
    let collection = match kind {
        TargetKind::MigrationJob => "migrationjobs",
        TargetKind::EdgeCacheOrigin | TargetKind::BackendBucket => kind.collection(),
    };
    format!("{}.{collection}.{verb}", kind.service())
}

fn unknown_method(kind: TargetKind, message: Option<&str>) -> String {
    let hint = match kind {
        TargetKind::EdgeCacheOrigin => "Media CDN is open to allow-listed projects only: ask for access to it",
        TargetKind::MigrationJob | TargetKind::BackendBucket => "is the endpoint the service's own?",
    };
    format!(
        "the service does not know the method, which says nothing about the target; {hint} ({})",
        message.unwrap_or("404 without a reason")
    )
}

/// What to do about a refusal, by the words that the services use.
fn advice(said: &str) -> &'static str {
    const KNOWN: [(&str, &str); 8] = [
        (
            "is not supported for this resource",
            "; choose a role that can be granted on this kind of resource",
        ),
        (
            "exist in the resource's hierarchy",
            "; correct the role, or create it first",
        ),
        ("does not exist", "; correct the identity, or create it first"),
        ("set the type prefix", "; write the identity with that prefix"),
        (
            "membership type restrictions",
            "; this resource cannot be opened to everybody",
        ),
        (
            "permitted customer",
            "; name identities of a domain that the organization's policy permits",
        ),
        (
            "larger than the maximum allowed size",
            "; grant the role to a group instead of each identity",
        ),
        ("Policy members must be of the form", "; correct the identity"),
    ];
    let known = KNOWN.iter().find(|(words, _)| said.contains(words));
    known.map_or("; check the identity, the role and the condition", |(_, advice)| advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target::parse(TargetKind::BackendBucket, "projects/p/global/backendBuckets/b").unwrap()
    }

    fn of(step: Step, status: u16, body: &str) -> Failure {
        failure(
            step,
            &target(),
            Answer {
                status,
                retry_after: Some("3"),
                date: None,
                body,
            },
        )
    }

    fn error(step: Step, status: u16, body: &str) -> Error {
        match of(step, status, body) {
            Failure::Error(error) => error,
            Failure::NoTarget => panic!("taken for a missing target"),
        }
    }

    fn one_platform(code: u16, status: &str, message: &str) -> String {
        serde_json::json!({"error": {"code": code, "message": message, "status": status}}).to_string()
    }

    #[test]
    fn only_a_404_that_speaks_of_the_target_means_that_it_is_gone() {
        let legacy = r#"{"error":{"code":404,"message":"The resource 'x' was not found","errors":[{"message":"x","domain":"global","reason":"notFound"}]}}"#;
        assert_eq!(of(Step::Read, 404, legacy), Failure::NoTarget);
        assert_eq!(
            of(Step::Write, 404, &one_platform(404, "NOT_FOUND", "gone")),
            Failure::NoTarget
        );
        for body in [
            "",
            "<html>404</html>",
            &one_platform(404, "NOT_FOUND", "Method not found."),
        ] {
            assert_eq!(error(Step::Read, 404, body).code, Code::FailedPrecondition, "{body}");
        }
        assert_eq!(
            error(
                Step::Read,
                403,
                &one_platform(403, "PERMISSION_DENIED", "(or it may not exist)")
            )
            .code,
            Code::PermissionDenied
        );
    }

    #[test]
    fn what_is_worth_repeating_says_so_and_when() {
        for (status, code) in [
            (409, Code::Conflict),
            (412, Code::Conflict),
            (429, Code::ResourceExhausted),
            (500, Code::Unavailable),
            (502, Code::Unavailable),
            (503, Code::Unavailable),
            (504, Code::Unavailable),
            (501, Code::Unavailable),
            (520, Code::Unavailable),
        ] {
            let error = error(Step::Write, status, "<html>");
            assert_eq!((error.code, error.retry_after), (code, Some(3_000)), "{status}");
        }
        for (status, state) in [
            (400, "INVALID_ARGUMENT"),
            (400, "FAILED_PRECONDITION"),
            (401, "UNAUTHENTICATED"),
            (403, "PERMISSION_DENIED"),
        ] {
            assert_eq!(
                error(Step::Write, status, &one_platform(status, state, "no")).retry_after,
                None,
                "{state}"
            );
        }
    }

    #[test]
    fn a_rate_limit_in_a_403_is_worth_repeating() {
        for reason in ["rateLimitExceeded", "userRateLimitExceeded"] {
            let body = format!(
                r#"{{"error":{{"code":403,"message":"Rate Limit Exceeded","errors":[{{"reason":"{reason}"}}]}}}}"#
            );
            assert_eq!(error(Step::Read, 403, &body).code, Code::ResourceExhausted);
        }
        let body = r#"{"error":{"code":403,"message":"x","status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"}]}}"#;
        assert!(error(Step::Read, 403, body).retry_after.is_some());
    }

    #[test]
    fn a_write_that_the_service_may_have_applied_has_an_unknown_effect() {
        assert_eq!(error(Step::Write, 503, "").effect, Effect::Unknown);
        assert_eq!(error(Step::Read, 503, "").effect, Effect::None);
        assert_eq!(error(Step::Write, 409, "").effect, Effect::None);
    }

    #[test]
    fn a_denial_names_the_permission_and_the_resource() {
        let body = r#"{"error":{"code":403,"message":"Permission denied","status":"PERMISSION_DENIED","details":[{"reason":"IAM_PERMISSION_DENIED","metadata":{"permission":"compute.backendBuckets.setIamPolicy","resource":"projects/p/global/backendBuckets/b"}}]}}"#;
        let message = error(Step::Write, 403, body).message;
        assert!(
            message.contains("`compute.backendBuckets.setIamPolicy` on `projects/p/global/backendBuckets/b`"),
            "{message}"
        );
        let message = error(
            Step::Read,
            403,
            &one_platform(403, "PERMISSION_DENIED", "The caller does not have permission"),
        )
        .message;
        assert!(message.contains("`compute.backendBuckets.getIamPolicy`"), "{message}");
        let disabled = r#"{"error":{"code":403,"message":"x","details":[{"reason":"SERVICE_DISABLED","metadata":{"activationUrl":"https://console/enable"}}]}}"#;
        assert!(
            error(Step::Read, 403, disabled)
                .message
                .contains("https://console/enable")
        );
    }

    #[test]
    fn refusals_say_what_to_do() {
        let said = "Role roles/x is not supported for this resource.";
        assert!(
            error(Step::Write, 400, &one_platform(400, "INVALID_ARGUMENT", said))
                .message
                .contains("choose a role")
        );
        let said = "User ann@example.com does not exist.";
        assert!(
            error(Step::Write, 400, &one_platform(400, "INVALID_ARGUMENT", said))
                .message
                .contains("correct the identity")
        );
    }

    #[test]
    fn each_refusal_has_its_own_advice() {
        for (said, advice) in [
            (
                "Role (roles/x) does not exist in the resource's hierarchy.",
                "correct the role",
            ),
            (
                "Account a@b.c is of type \"group\". Please set the type prefix to be \"group:\".",
                "with that prefix",
            ),
            (
                "The number of members in the policy (1,501) is larger than the maximum allowed size 1,500.",
                "a group",
            ),
            ("Request contains an invalid argument.", "check the identity"),
        ] {
            assert!(
                error(Step::Write, 400, &one_platform(400, "INVALID_ARGUMENT", said))
                    .message
                    .contains(advice),
                "{said}"
            );
        }
        let said = "One or more users named in the policy do not belong to a permitted customer.";
        let policy = error(Step::Write, 400, &one_platform(400, "FAILED_PRECONDITION", said));
        assert!(policy.message.contains("organization's policy") && policy.retry_after.is_none());
        assert!(!error(Step::Read, 403, "<html>").message.contains("lacks"));
    }

    #[test]
    fn the_wait_is_in_seconds_or_until_a_date() {
        let wait = |asked, date| {
            let answer = Answer {
                status: 429,
                retry_after: asked,
                date,
                body: "",
            };
            match failure(Step::Read, &target(), answer) {
                Failure::Error(error) => error.retry_after.unwrap(),
                Failure::NoTarget => panic!("taken for a missing target"),
            }
        };
        let date = Some("Fri, 20 Nov 2026 15:00:00 GMT");
        assert_eq!(wait(Some("7"), None), 7_000);
        assert_eq!(wait(Some("Fri, 20 Nov 2026 15:01:00 GMT"), date), 60_000);
        assert_eq!(wait(Some("Fri, 20 Nov 2026 14:00:00 GMT"), date), 0);
        assert_eq!(wait(Some("soon"), date), 0);
        assert_eq!(wait(None, None), 0);
    }

    #[test]
    fn odd_bodies_are_survived() {
        for body in [
            "",
            "[]",
            "null",
            "[{\"error\":{\"message\":\"m\"}}]",
            "{\"error\":\"text\"}",
            "{\"error\":{\"details\":[1]}}",
            "\u{0}",
        ] {
            let _ = of(Step::Read, 400, body);
        }
        assert!(
            error(Step::Read, 418, "[{\"error\":{\"message\":\"teapot\"}}]")
                .message
                .contains("teapot")
        );
    }

    #[test]
    fn a_page_is_not_a_policy() {
        let page = unreadable(Step::Read, &target(), "<html>", "not a policy");
        assert!(page.message.contains("web page") && page.retry_after.is_none());
        assert_eq!(
            unreadable(Step::Read, &target(), "{\"bin", "not a policy").retry_after,
            Some(0)
        );
        assert_eq!(
            unreadable(Step::Write, &target(), "<html>", "x").effect,
            Effect::Unknown
        );
        let hidden = not_a_policy(
            &target(),
            "{}",
            &PolicyError::HashedCondition("roles/x_withcond_1".into()),
        );
        assert_eq!((hidden.code, hidden.retry_after), (Code::FailedPrecondition, None));
    }
}

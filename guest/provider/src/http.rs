//! The services over HTTP: the only door of this component, and the host guards it.

use bindery_policy::config::Config;
use bindery_policy::document::Policy;
use bindery_policy::target::{Target, TargetKind};
use serde_json::Value;
use waki::{Client, ErrorCode, RequestBuilder};

use crate::answer::{self, Answer, Code, Effect, Error, Failure, Step};
use crate::commit::Service;
use crate::request;

/// The services under a configuration.
pub struct Http<'a> {
    /// Says where each service is.
    pub config: &'a Config,
}

impl Service for Http<'_> {
    fn read(&mut self, target: &Target) -> Result<Policy, Failure> {
        let url = request::read_url(&self.config.origin(target.kind()), target);
        let body = send(Step::Read, target, Client::new().get(&url))?;
        let policy =
            Policy::parse(&body).map_err(|error| Failure::Error(answer::not_a_policy(target, &body, &error)))?;
        Ok(match target.kind() {
            TargetKind::BackendBucket => policy,
            TargetKind::MigrationJob | TargetKind::EdgeCacheOrigin => policy.keeping_audit(),
        })
    }

    fn write(&mut self, target: &Target, body: String) -> Result<String, Failure> {
        let url = request::write_url(&self.config.origin(target.kind()), target);
        let request = Client::new()
            .post(&url)
            .headers([("content-type", "application/json")])
            .body(body.into_bytes());
        let body = send(Step::Write, target, request)?;
        let answer: Value = serde_json::from_str(&body).unwrap_or(Value::Null);
        match answer
            .get("etag")
            .and_then(Value::as_str)
            .filter(|etag| !etag.is_empty())
        {
            Some(etag) => Ok(etag.to_string()),
            None => {
                let why = "its answer to the write is not a policy with an etag";
                Err(Failure::Error(answer::unreadable(Step::Write, target, &body, why)))
            }
        }
    }
}

/// Sends one request, and gives the body of a successful answer.
fn send(step: Step, target: &Target, request: RequestBuilder) -> Result<String, Failure> {
    let response = request
        .headers([("accept", "application/json")])
        .send()
        .map_err(|error| lost(step, target, &error.to_string(), error.downcast_ref::<ErrorCode>()))?;
    let status = response.status_code();
    let header = |name: &str| {
        response
            .header(name)
            .and_then(|value| value.to_str().ok().map(String::from))
    };
    let (retry_after, date) = (header("retry-after"), header("date"));
    let body = response
        .body()
        .map_err(|error| lost(step, target, &error.to_string(), error.downcast_ref::<ErrorCode>()))?;
    let body = match String::from_utf8(body) {
        Ok(body) => body,
        // What cannot be read exactly must not be written back.
        Err(_) if (200..300).contains(&status) => {
            let why = "its answer is not UTF-8";
            return Err(Failure::Error(answer::unreadable(step, target, "", why)));
        }
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    if (200..300).contains(&status) {
        return Ok(body);
    }
    let answer = Answer {
        status,
        retry_after: retry_after.as_deref(),
        date: date.as_deref(),
        body: &body,
    };
    Err(answer::failure(step, target, answer))
}

/// What a request means that had no answer.
fn lost(step: Step, target: &Target, said: &str, code: Option<&ErrorCode>) -> Failure {
    let message = |what: &str| format!("`{target}`: {what}");
    let error = match code {
        Some(ErrorCode::HttpRequestDenied) => Error::fatal(
            Code::PermissionDenied,
            message("the host does not let this provider call the service"),
        ),
        Some(ErrorCode::HttpRequestBodySize(_)) => {
            Error::fatal(Code::InvalidArgument, message("the policy is too large to send"))
        }
        Some(ErrorCode::HttpResponseBodySize(_)) => Error {
            code: Code::Internal,
            message: message("the service's answer is larger than the host allows"),
            effect: step.effect(),
            retry_after: None,
        },
        Some(ErrorCode::TlsCertificateError | ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_)) => {
            Error::fatal(
                Code::Unavailable,
                message("the service's TLS certificate was not accepted"),
            )
        }
        // The request was never sent.
        Some(
            ErrorCode::ConnectionRefused
            | ErrorCode::ConnectionTimeout
            | ErrorCode::DnsError(_)
            | ErrorCode::DnsTimeout
            | ErrorCode::DestinationNotFound
            | ErrorCode::DestinationUnavailable,
        ) => Error {
            code: Code::Unavailable,
            message: message("the service cannot be reached"),
            effect: Effect::None,
            retry_after: Some(0),
        },
        _ => Error {
            code: Code::Unavailable,
            message: message(&format!("the service's answer was lost ({said})")),
            effect: step.effect(),
            retry_after: Some(0),
        },
    };
    Failure::Error(error)
}

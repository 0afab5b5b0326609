//! What can go wrong, in the words of the field.

use std::fmt;
use std::time::Duration;

use bindery_resource::plan::in_one_line;
use bindery_resource::{CheckFailure, ClaimTaken};
use thiserror::Error;

/// An error's code, by Google's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ErrorCode {
    NotFound,
    InvalidArgument,
    PermissionDenied,
    Unauthenticated,
    FailedPrecondition,
    Conflict,
    ResourceExhausted,
    Unavailable,
    DeadlineExceeded,
    Cancelled,
    Internal,
}

impl ErrorCode {
    const NAMES: [(Self, &'static str); 11] = [
        (Self::NotFound, "not-found"),
        (Self::InvalidArgument, "invalid-argument"),
        (Self::PermissionDenied, "permission-denied"),
        (Self::Unauthenticated, "unauthenticated"),
        (Self::FailedPrecondition, "failed-precondition"),
        (Self::Conflict, "conflict"),
        (Self::ResourceExhausted, "resource-exhausted"),
        (Self::Unavailable, "unavailable"),
        (Self::DeadlineExceeded, "deadline-exceeded"),
        (Self::Cancelled, "cancelled"),
        (Self::Internal, "internal"),
    ];

    pub(crate) fn from_name(name: &str) -> Self {
        Self::NAMES
            .into_iter()
            .find(|(_, known)| *known == name)
            .map_or(Self::Internal, |(code, _)| code)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES
            .into_iter()
            .find(|(code, _)| code == self)
            .map_or("internal", |(_, name)| name);
        f.write_str(name)
    }
}

/// A call into a guest that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// A limit was hit.
    #[error("`{tenant}`: {what}; the limit is `{setting}` = {value}")]
    Limit {
        /// Whose limit.
        tenant: String,
        /// What was done too much.
        what: &'static str,
        /// The setting's name.
        setting: &'static str,
        /// Its value.
        value: String,
    },
    /// The operation's deadline passed.
    #[error("`{0}` was still running at the operation's deadline")]
    Deadline(String),
    /// The tenant was ended, or dropped, and its calls with it.
    #[error("the tenant `{0}` is gone, and this call with it")]
    TenantGone(String),
    /// The guest stopped itself, or broke a rule of its sandbox.
    #[error("the provider stopped in `{function}`: {reason}")]
    Trap {
        /// What was called.
        function: String,
        /// What the runtime says of it.
        reason: String,
    },
    /// The guest's answer is not of the form that the contract describes.
    #[error("the provider answered `{function}` with {what}; it does not keep to the contract")]
    Contract {
        /// What was called.
        function: String,
        /// What was found.
        what: String,
    },
    /// No resource type of this token.
    #[error("the provider has no resource type `{0}`")]
    UnknownType(String),
    /// The component plans only.
    #[error("the component has no interface that makes `{0}` so: it is a planner")]
    PlannerOnly(String),
    /// The properties do not fit the resource type.
    #[error("{}", in_one_line(.0))]
    Properties(Vec<CheckFailure>),
}

/// A check that found something wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckError {
    /// Inputs that cannot be accepted.
    #[error("{}", in_one_line(.0))]
    Failures(Vec<CheckFailure>),
    /// Another resource owns what this one declares.
    #[error(transparent)]
    Claim(#[from] ClaimTaken),
    /// The check itself did not come to an end.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A configuration that the provider does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigureError {
    /// Keys that cannot be accepted.
    #[error("{}", in_one_line(.0))]
    Failures(Vec<CheckFailure>),
    /// The check itself did not come to an end.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// An operation that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct OperationError {
    /// What kind of failure.
    pub code: ErrorCode,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// Whether something may have been done all the same.
    pub may_have_effect: bool,
    /// Present where the same operation is worth repeating: how long to wait at least.
    pub retry_after: Option<Duration>,
}

impl OperationError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            may_have_effect: false,
            retry_after: None,
        }
    }
}

impl From<CallError> for OperationError {
    /// A call that did not come to an end may have sent a request before.
    fn from(error: CallError) -> Self {
        let (code, may_have_effect) = match &error {
            CallError::Limit { .. } => (ErrorCode::ResourceExhausted, true),
            CallError::Deadline(_) => (ErrorCode::DeadlineExceeded, true),
            CallError::TenantGone(_) => (ErrorCode::Cancelled, true),
            CallError::Trap { .. } | CallError::Contract { .. } => (ErrorCode::Internal, true),
            CallError::UnknownType(_) | CallError::PlannerOnly(_) | CallError::Properties(_) => {
                (ErrorCode::InvalidArgument, false)
            }
        };
        Self {
            may_have_effect,
            ..Self::new(code, error.to_string())
        }
    }
}

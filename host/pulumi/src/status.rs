//! Errors as the engine takes them. Its codes say whether something may have changed.

use bindery_resource::CheckFailure;
use bindery_sandbox::{ErrorCode, OperationError};
use tonic::{Code, Status};

use crate::mask::Mask;

/// An operation's error. `Unknown` tells the engine that what became of the resource is not known; every other code used
/// here, that nothing has changed.
pub fn of_operation(error: &OperationError, mask: &Mask) -> Status {
    let message = mask.hide(&error.message);
    if error.may_have_effect {
        let message = format!("{message}; it may have taken effect all the same, which the next run finds out");
        return Status::new(Code::Unknown, message);
    }
    let code = match error.code {
        ErrorCode::NotFound => Code::NotFound,
        ErrorCode::InvalidArgument => Code::InvalidArgument,
        ErrorCode::PermissionDenied => Code::PermissionDenied,
        ErrorCode::Unauthenticated => Code::Unauthenticated,
        // The engine takes `Internal` for something that may have changed.
        ErrorCode::FailedPrecondition | ErrorCode::Internal => Code::FailedPrecondition,
        ErrorCode::Conflict => Code::Aborted,
        ErrorCode::ResourceExhausted => Code::ResourceExhausted,
        ErrorCode::Unavailable => Code::Unavailable,
        ErrorCode::DeadlineExceeded => Code::DeadlineExceeded,
        ErrorCode::Cancelled => Code::Cancelled,
    };
    Status::new(code, message)
}

/// Properties that cannot be used, where the engine has no better place for them.
pub fn of_failures(what: &str, failures: &[CheckFailure], mask: &Mask) -> Status {
    let line = |failure: &CheckFailure| {
        let failure = mask.hide_in(failure);
        format!("`{}` {}", failure.path, failure.reason)
    };
    let lines: Vec<String> = failures.iter().map(line).collect();
    Status::invalid_argument(format!("{what}: {}", lines.join("; ")))
}

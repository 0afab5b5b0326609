//! The services' answers, each in its own shape of error.

use serde_json::{Value, json};

use crate::route::{Route, Service};

/// An answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Value,
    /// Seconds until the request is worth repeating.
    pub retry_after: Option<u32>,
}

impl Answer {
    /// A success.
    pub fn ok(body: Value) -> Self {
        Self {
            status: 200,
            body,
            retry_after: None,
        }
    }

    /// An error in the shape of a service.
    pub fn error(service: Service, error: &ServiceError) -> Self {
        let (status, code, reason) = error.kind.names();
        let message = &error.message;
        let body = match service {
            Service::Compute => json!({"error": {
                "code": status,
                "message": message,
                "errors": [{"message": message, "domain": "global", "reason": reason}],
            }}),
            Service::Datamigration | Service::Networkservices => {
                let details: Vec<&Value> = error.details.iter().collect();
                json!({"error": {"code": status, "message": message, "status": code, "details": details}})
            }
        };
        Self {
            status,
            body,
            retry_after: None,
        }
    }

    /// There is no such method, which says nothing about the target. The error has the shape of the path's service.
    pub fn no_method(path: &str) -> Self {
        let service = if path.starts_with("/compute/") {
            Service::Compute
        } else {
            Service::Datamigration
        };
        Self::error(service, &ServiceError::new(Kind::NotFound, "Method not found."))
    }
}

/// Kinds of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    InvalidArgument,
    PermissionDenied,
    NotFound,
    Aborted,
    ResourceExhausted,
    Unavailable,
}

impl Kind {
    const fn names(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::InvalidArgument => (400, "INVALID_ARGUMENT", "invalid"),
            Self::PermissionDenied => (403, "PERMISSION_DENIED", "forbidden"),
            Self::NotFound => (404, "NOT_FOUND", "notFound"),
            Self::Aborted => (409, "ABORTED", "aborted"),
            Self::ResourceExhausted => (429, "RESOURCE_EXHAUSTED", "rateLimitExceeded"),
            Self::Unavailable => (503, "UNAVAILABLE", "backendError"),
        }
    }
}

/// An error before it has a shape.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceError {
    /// What kind.
    pub kind: Kind,
    /// What the service says.
    pub message: String,
    /// What One Platform adds.
    pub details: Option<Value>,
}

impl ServiceError {
    /// An error without details.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: None,
        }
    }

    /// A request that cannot be right.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidArgument, message)
    }

    /// The target does not exist.
    pub fn no_target(route: &Route) -> Self {
        Self::new(Kind::NotFound, format!("The resource '{}' was not found", route.target))
    }

    /// The caller may not do this.
    pub fn denied(route: &Route) -> Self {
        let permission = route.service.permission(route.verb);
        let message = match route.service {
            Service::Compute => format!("Required '{permission}' permission for '{}'", route.target),
            Service::Datamigration | Service::Networkservices => {
                format!(
                    "Permission '{permission}' denied on resource '{}' (or it may not exist).",
                    route.target
                )
            }
        };
        Self {
            details: Some(json!({
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "IAM_PERMISSION_DENIED",
                "domain": "iam.googleapis.com",
                "metadata": {"permission": permission, "resource": route.target},
            })),
            ..Self::new(Kind::PermissionDenied, message)
        }
    }

    /// The etag is not the policy's.
    pub fn conflict() -> Self {
        Self::new(
            Kind::Aborted,
            "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff.",
        )
    }
}

//! What requests to an origin carry, attached on the way out. No guest sees it.

use std::fmt;
use std::pin::Pin;

use http::header::{self, HeaderMap, HeaderValue};
use thiserror::Error;

/// Gives requests their credential. Shared by the calls of a tenant.
pub trait Credential: fmt::Debug + Send + Sync {
    /// What the next request carries.
    ///
    /// # Errors
    /// When there is none to be had.
    fn attach(&self) -> Attaching<'_>;

    /// A service did not accept what was attached. Whether the next request will carry another: a token that was replaced
    /// since, or will be.
    fn refused(&self, attached: &Attached) -> bool;
}

/// A credential on its way, perhaps from a service that gives tokens.
pub type Attaching<'a> = Pin<Box<dyn Future<Output = Result<Attached, CredentialError>> + Send + 'a>>;

/// What one request carries. It prints as nothing.
#[derive(Clone)]
pub struct Attached {
    /// The headers, marked as sensitive.
    pub headers: HeaderMap,
    /// Which of its source's tokens it is.
    pub generation: u64,
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attached(…)")
    }
}

/// There is no credential to be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CredentialError {
    /// Which source was tried, what it said, and what to do. No secret is in it.
    pub message: String,
    /// Whether it may be there for the next try.
    pub is_transient: bool,
}

/// A bearer token that stays the same. It prints as nothing.
#[derive(Clone)]
pub struct BearerToken(HeaderValue);

impl BearerToken {
    /// A token; none where it has characters that a header cannot carry.
    pub fn new(token: &str) -> Option<Self> {
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(…)")
    }
}

impl Credential for BearerToken {
    fn attach(&self) -> Attaching<'_> {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, self.0.clone())]);
        Box::pin(std::future::ready(Ok(Attached { headers, generation: 0 })))
    }

    fn refused(&self, _: &Attached) -> bool {
        false
    }
}

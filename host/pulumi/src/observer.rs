//! Who hears of the protocol's calls.

use std::fmt;
use std::time::Duration;

use tonic::Status;

/// Hears of each call when it has ended.
pub trait Observer: fmt::Debug + Send + Sync {
    /// A call has ended. `urn` is the resource's, or the provider's.
    fn called(&self, method: &'static str, urn: &str, took: Duration, ended: Result<(), &Status>);
}

/// Nobody does: the engine that started the process shows what there is to see.
#[derive(Debug)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn called(&self, _: &'static str, _: &str, _: Duration, _: Result<(), &Status>) {}
}

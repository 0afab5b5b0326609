//! What a plan asks of a provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use bindery_resource::{CheckFailure, Checked, ClaimTaken, Diff, PropertyMap, Urn};
use thiserror::Error;

use crate::state::ResourceState;

/// Says what declarations mean. Nothing is touched.
pub trait Provider {
    /// Its resource types by token, each with the names of its outputs.
    fn types(&self) -> BTreeMap<String, Arc<[String]>>;

    /// Checks a resource's inputs, and takes its claim for the run.
    fn check(&self, urn: &Urn, inputs: &PropertyMap) -> impl Future<Output = Result<Checked, CheckError>> + Send;

    /// What would change between a resource and checked inputs.
    fn diff(&self, old: &ResourceState, inputs: &PropertyMap) -> impl Future<Output = Result<Diff, String>> + Send;

    /// Takes the claim of a resource that stays as it is.
    ///
    /// # Errors
    /// When another resource has it.
    fn claim(&self, state: &ResourceState) -> impl Future<Output = Result<(), CheckError>> + Send;

    /// The outputs that a resource will have that is made from checked inputs, as far as they are known beforehand.
    ///
    /// # Errors
    /// When there is no such resource type.
    fn preview(&self, token: &str, inputs: &PropertyMap) -> Result<PropertyMap, String>;
}

/// A check that found something wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckError {
    /// Inputs that cannot be accepted.
    #[error("inputs that cannot be accepted")]
    Failures(Vec<CheckFailure>),
    /// Another resource owns what this one declares.
    #[error(transparent)]
    Claim(#[from] ClaimTaken),
    /// The check did not come to an end.
    #[error("{0}")]
    Other(String),
}

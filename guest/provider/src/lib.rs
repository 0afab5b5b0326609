//! The provider component: makes grants so, one attempt for each call.
//!
//! - [`request`]: where a target's policy is read and written.
//! - [`answer`]: what a service's answer means, and whether the same call is worth repeating.
//! - [`commit`]: many operations on one target with one read and at most one write.
//! - `component`, `http`: the exported interfaces, and HTTP through the host. They exist in the component only; the rest
//!   is tested natively.

pub mod answer;
pub mod commit;
pub mod request;

#[cfg(target_family = "wasm")]
mod component;
#[cfg(target_family = "wasm")]
mod http;

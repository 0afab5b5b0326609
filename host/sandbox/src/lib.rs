//! Runs provider components for engine hosts.
//!
//! A provider is a WebAssembly component that exports, for each of its resource types, a pure `-plan` interface and one
//! that talks to a service. This library needs no knowledge of any provider: it finds the resource types among a
//! component's exports, and converts property maps by the component's own types.
//!
//! One operation's way through: [`Tenant`] converts the properties → the target's queue → a fresh instance, with its
//! limits → the guest → `wasi:http` → egress, which judges the origin and attaches the credential → the service; and
//! back to the retry loop, which repeats or hands up one error that says what to do.
//!
//! - [`package`], [`runtime`], [`component`]: load a component, and see what it is without running it. [`cache`]: what was compiled.
//! - [`schema`], [`token`], [`docs`]: resource types, their names and properties. [`convert`]: values by those types.
//! - [`tenant`]: a component, configured, with its origins and limits; [`operation`]: create, read, update, delete.
//! - [`limits`], [`egress`], [`origin`], [`manifest`]: what a guest may do.

pub mod cache;
pub mod component;
pub mod convert;
pub mod credential;
pub mod docs;
pub mod egress;
pub mod error;
pub mod limits;
pub mod manifest;
pub mod operation;
pub mod origin;
pub mod package;
pub mod runtime;
pub mod schema;
pub mod tenant;
pub mod token;

mod answer;
mod call;
mod commit;
mod contract;
mod guest;
mod imports;
mod instances;
mod output;
mod queue;
mod retry;
mod store;
mod tls;
mod turns;
mod usage;

pub use bindery_resource as resource;
pub use cache::Cache;
pub use component::{Component, Digest};
pub use error::{CallError, ErrorCode, OperationError};
pub use limits::Limits;
pub use operation::{Context, Event};
pub use runtime::Runtime;
pub use tenant::{DeleteReason, Deleted, Run, Tenant, TenantOptions};
pub use token::Token;
pub use usage::Usage;

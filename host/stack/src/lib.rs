//! From a stack file's text and a state to a plan. No I/O: what a declaration means is asked of a [`Provider`], which the
//! command line fills with a sandboxed component, and a page with the planner in the browser.
//!
//! - [`yaml`]: YAML with positions. [`diagnostic`]: what is wrong, and where.
//! - [`file`]: what a stack file declares: [`config`] with its [`configuration`], [`settings`], [`declaration`]s of resources, and the `order` of them.
//! - [`expression`], [`evaluate`]: values with references in them, and what they come to.
//! - [`state`]: what is known to exist, and how that changes. [`document`], [`journal`]: the same as text; [`json`]: for programs that read what was planned or done.
//! - [`plan`]: what to do about the difference, [`step`] by step, within the [`target`]s of a run. [`provider`]: what it asks.

pub mod config;
pub mod configuration;
pub mod declaration;
pub mod diagnostic;
pub mod document;
pub mod evaluate;
pub mod expression;
pub mod file;
pub mod journal;
pub mod json;
pub mod plan;
pub mod provider;
pub mod settings;
pub mod state;
pub mod step;
pub mod target;
pub mod yaml;

mod order;
mod reader;

pub use declaration::ResourceDeclaration;
pub use diagnostic::{Diagnostic, Position};
pub use document::Owner;
pub use evaluate::Scope;
pub use file::StackFile;
pub use plan::Plan;
pub use provider::{CheckError, Provider};
pub use state::{Change, Deployment, OperationType, Outcome, PendingOperation, ResourceState};
pub use step::{Action, Step};
pub use target::Targets;

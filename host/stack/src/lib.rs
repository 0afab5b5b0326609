//! From a stack file's text and a state to a plan. No I/O: what a declaration means is asked of a [`Provider`], which the
//! command line fills with a sandboxed component, and a page with the planner in the browser.
//!
//! - [`yaml`]: YAML with positions. [`file`]: what a stack file declares. [`diagnostic`]: what is wrong, and where.
//! - [`state`]: what is known to exist, as a Pulumi deployment document.
//! - [`plan`]: what to do about the difference.

pub mod diagnostic;
pub mod file;
pub mod plan;
pub mod state;
pub mod yaml;

pub use diagnostic::{Diagnostic, Position};
pub use file::{ResourceDeclaration, StackFile};
pub use plan::{Action, CheckError, Plan, Provider, Step, plan};
pub use state::{Deployment, OperationType, PendingOperation, ResourceState};

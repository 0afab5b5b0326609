//! What engines, plans and the sandbox say to each other about a resource. No I/O, and nothing of any one provider.
//!
//! - [`value`]: property values, some of them not known yet; [`path`]: where in them.
//! - [`urn`]: which resource of which stack.
//! - [`plan`]: what a check and a diff give.
//! - [`schema`], [`token`]: resource types, their names and properties; [`convert`]: properties to a component's values.
//! - [`claims`]: one owner for each grant. [`nearest`]: what a misspelt name probably means.

pub mod claims;
pub mod convert;
pub mod nearest;
pub mod path;
pub mod plan;
pub mod schema;
pub mod token;
pub mod urn;
pub mod value;

pub use claims::{ClaimTaken, Claims};
pub use nearest::nearest;
pub use path::PropertyPath;
pub use plan::{Change, ChangeKind, CheckFailure, Checked, Diff, Footprint};
pub use urn::Urn;
pub use value::{PropertyMap, Value};

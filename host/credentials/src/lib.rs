//! The credential of the built-in provider's requests, from the sources that the cloud's own tools know.
//!
//! [`settings`]: the keys that say which, and their environment variables. [`source`]: where tokens come from.
//! [`endpoints`]: which other origins get it. [`google`]: what requests carry, refreshed ahead of its end, and once more where a service refuses it.

pub mod endpoints;
pub mod google;
pub mod settings;
pub mod source;

pub use endpoints::TrustedEndpoints;
pub use google::GoogleCredential;
pub use settings::{KEYS, Key, Settings};
pub use source::{Source, is_path};

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
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use bindery_sandbox::credential::BearerToken;
//! use bindery_sandbox::egress::AllowedOrigin;
//! use bindery_sandbox::origin::Origin;
//! use bindery_sandbox::resource::{PropertyMap, Urn};
//! use bindery_sandbox::{Cache, Limits, Run, Runtime, Tenant, TenantOptions};
//!
//! # async fn example(wasm: &[u8], token: &str, inputs: PropertyMap) -> Result<(), Box<dyn std::error::Error>> {
//! // One for the process; components are shared, and compiled once.
//! let runtime = Runtime::new()?.with_cache(Cache::open("/var/cache/bindery".as_ref())?);
//! let component = Arc::new(runtime.load(wasm)?);
//!
//! // What this tenant may do. Without origins its component can call nothing.
//! let options = TenantOptions {
//!     name: "payments".to_string(),
//!     config: PropertyMap::from_iter([("region".to_string(), "eu".into())]),
//!     origins: vec![AllowedOrigin {
//!         origin: Origin::parse("https://api.acme.example")?,
//!         credential: Some(Arc::new(BearerToken::new(token).ok_or("not a token")?)),
//!     }],
//!     limits: Limits { cpu_time: Duration::from_millis(500), ..Limits::default() },
//!     ..TenantOptions::default()
//! };
//! let tenant = Tenant::new(&runtime, component, options).await?;
//!
//! let urn = Urn::new("prod", "payments", "acme:disks/v2:Volume", "data");
//! let checked = tenant.check(&Run::new(), &urn, "acme:disks/v2:Volume", &inputs).await?;
//! println!("{:?} {:?}", checked.inputs, tenant.usage());
//! drop(tenant); // ends its calls, and closes its connections
//! # Ok(())
//! # }
//! ```
//!
//! - [`package`], [`runtime`], [`component`]: load a component, and see what it is without running it. [`cache`]: what was compiled.
//! - [`schema`], [`token`], [`docs`]: resource types, their names and properties. [`convert`]: values by those types.
//! - [`tenant`]: a component, configured, with its origins and limits; [`operation`]: create, read, update, delete.
//! - [`limits`], [`egress`], [`origin`], [`manifest`]: what a guest may do. [`credential`]: what its requests carry.

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

mod answer;
mod call;
mod commit;
mod contract;
mod guest;
mod imports;
mod instances;
mod output;
mod queue;
mod resolver;
mod retry;
mod store;
mod tls;
mod turns;
mod usage;

pub use bindery_resource as resource;
pub use bindery_resource::token;
pub use cache::Cache;
pub use component::{Component, Digest};
pub use error::{CallError, ErrorCode, OperationError};
pub use limits::Limits;
pub use operation::{Context, Event};
pub use runtime::Runtime;
pub use tenant::{DeleteReason, Deleted, Run, Tenant, TenantOptions};
pub use token::Token;
pub use usage::Usage;

//! Provider components under Pulumi, by its `ResourceProvider` protocol: as a plugin that the engine starts, and as one process that
//! serves many tenants to engines which attach to it.
//!
//! - [`plugin`]: what the binary `pulumi-resource-bindery` does. [`serve`]: what `bindery serve` does.
//! - `served`: what is served, and under which name. `connection`: the protocol on a connection. `observer`: who hears of each call.
//! - `provider`: the protocol's calls. `operation`: one of them on one resource. `configuration`: before all of them.
//! - `properties`, `difference`, `status`: values, diffs and errors in the engine's form. `mask`: without secrets.
//! - `run`, `shared_claims`: what is kept from call to call, and from process to process. `engine_log`: what the engine shows meanwhile.

pub mod plugin;
pub mod serve;

mod configuration;
mod connection;
mod difference;
mod engine_log;
mod mask;
mod observer;
mod operation;
mod properties;
mod provider;
mod run;
mod served;
mod shared_claims;
mod status;

//! The planner component: what a declaration means, without touching anything.
//!
//! It exports the `-plan` interface of every resource type and `about`, and imports no function. The provider component
//! links this crate and adds the interfaces that talk to the services.
#![cfg(target_family = "wasm")]
#![no_std]

extern crate alloc;

mod plan;
pub mod wire;

#[cfg(feature = "standalone")]
mod standalone;

/// The world `planner`, as Rust types and traits.
#[allow(missing_docs, reason = "generated")]
#[allow(clippy::all, reason = "generated")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "planner",
        generate_all,
        pub_export_macro: true,
    });
}

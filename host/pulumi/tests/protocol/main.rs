//! The engine's sequences of calls, played against the binary as the engine starts it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

mod component;
mod configuration;
mod credentials;
mod ends;
mod harness;
mod lifecycle;
mod malformed;
mod secrets;
mod serve;
mod together;

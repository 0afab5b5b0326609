//! The real binary, from stack file to policy.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

mod credentials;
mod golden;
mod harness;
mod interrupted;
mod killed;
mod lifecycle;
mod ownership;
mod plans;
mod serve;
mod state;
mod terminal;

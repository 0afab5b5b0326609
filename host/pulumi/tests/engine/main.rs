//! Whole programs under the real engine, its language hosts and the published SDKs, against the emulator.
//!
//! They need what `tests/engine/build` builds, minutes the first time, so they run by `just test-engine` and in CI, and
//! `cargo test` says that it left them out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else than it expects fails"
)]

mod attached;
mod commits;
mod components;
mod failures;
mod harness;
mod lifecycle;
mod moves;
mod programs;
mod sdks;

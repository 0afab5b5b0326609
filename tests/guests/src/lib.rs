//! Provider components that tests load.

/// A provider of disks: numbers, booleans, nested records, lists of records, enums, maps, 64-bit integers.
pub const ACME: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/acme.wasm"));

/// A planner of the built-in provider's world that decides nothing.
pub const ECHO: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/echo.wasm"));

/// A provider that does what it is told to, and what a provider should not do.
pub const UNRULY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/unruly.wasm"));

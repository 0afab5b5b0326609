//! The built-in provider as bytes.

/// The component of world `provider`: plans and applies.
pub const PROVIDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/provider.wasm"));

/// The component of world `planner`: plans, and imports no function.
pub const PLANNER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/planner.wasm"));

/// What is particular to the built-in provider: its origins, and the environment variables that its configuration
/// defaults to. TOML, in the form of the file that an operator writes for any other component.
pub const MANIFEST: &str = include_str!("../provider.toml");

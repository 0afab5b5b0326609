//! The policy endpoints of Compute Engine, Database Migration Service and Network Services on this machine.
//!
//! It stands in for services that tests cannot reach, so it is stricter than they are: what they would let pass and a
//! careful client never sends is refused. It shares no code with the provider, whose work it judges.
//!
//! - [`route`]: which service, target and verb a path names. [`rules`]: what makes a written policy wrong.
//! - [`policies`]: what is held. [`fault`]: what goes wrong on purpose. [`answer`]: the services' shapes of error.
//! - `control`: `/emulator/…`, where tests and people look at all this and set it. `server`: the connections.

pub mod answer;
pub mod fault;
pub mod policies;
pub mod route;
pub mod rules;

mod control;
mod server;

pub use fault::Faults;
pub use policies::{Hold, Policies, Settings};
pub use server::{Emulator, Options, RequestRecord};

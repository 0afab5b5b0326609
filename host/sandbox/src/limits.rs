//! What one call may use. Each limit that is hit is an error that names its setting.

use std::time::Duration;

/// A tenant's limits. The defaults leave room for a policy at the service's own limits and stop what runs away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Guest CPU time of one call, host waits excluded. Room for many operations on a policy at the
    /// service's own limits, and short enough that a loop is noticed.
    pub cpu_time: Duration,
    /// Wall time of one call: a read and a write, each with a slow answer.
    pub wall_time: Duration,
    /// Linear memory of one instance, in bytes. A policy is tens of kilobytes; this leaves room for many copies.
    pub memory: usize,
    /// Body of one response, in bytes. A policy has a few tens of kilobytes.
    pub response_body: usize,
    /// Calls that run at the same time; more wait.
    pub calls_in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu_time: Duration::from_secs(2),
            wall_time: Duration::from_secs(60),
            memory: 64 << 20,
            response_body: 8 << 20,
            calls_in_flight: 64,
        }
    }
}

/// The most instances that a process has at the same time. Each takes 4 GiB of addresses, and memory only as it is used.
pub const INSTANCES: usize = 4_096;

/// Of a process's instances one in so many is only for tenants that hold none: others keep off these, however many they are.
pub const RESERVE: usize = 8;

/// Core instances of one component, and tables: its module, and the shims around it.
pub const CORE_INSTANCES: u32 = 8;

/// Linear memories of one component. A component made by any toolchain has one; several would take the pool's slots from others.
pub const MEMORIES: u32 = 1;

/// A guest's stack, in bytes. Deep enough for any data that it may be handed, which is not nested deeply.
pub const STACK: usize = 512 << 10;

/// Linear memory that any tenant's limit may ask for: the pool's slots are laid out for it.
pub const MEMORY_CEILING: usize = 1 << 30;

/// How often the epoch advances: the grain of `cpu_time`. Shorter costs more wake-ups, longer lets a guest overrun.
pub const TICK: Duration = Duration::from_millis(10);

/// Bytes that one call may lift out of its guest: a commit's answers, many times over.
pub const LIFTED_BYTES: usize = 64 << 20;

/// Elements of all tables: function pointers of a guest, which has a few hundred.
pub const TABLE_ELEMENTS: usize = 100_000;

/// Handles that a call may hold: a handful for each request in flight.
pub const RESOURCES: usize = 1_000;

/// How long a service may take to begin an answer, if the guest does not ask for less. Google's own deadline is about as long.
pub const FIRST_BYTE: Duration = Duration::from_secs(30);

/// Requests that one call may send. A commit sends two.
pub const REQUESTS: usize = 100;

/// Bodies of one call's requests and responses together, in bytes: a few of the largest. The host holds them until the call ends.
pub const BODIES: usize = 64 << 20;

/// Body of one request, in bytes: what a service takes, and more.
pub const REQUEST_BODY: usize = 8 << 20;

/// Guest output kept of one call, in bytes. The rest is cut off with a note.
pub const OUTPUT: usize = 64 << 10;

/// A guest's message, in bytes: what a service said, and then some. It may go to every operation of a commit. What is longer
/// is cut off.
pub const MESSAGE: usize = 16 << 10;

/// Random bytes that a guest may ask for at once: a hash map's seed needs 16.
pub const RANDOM_BYTES: u64 = 4 << 10;

/// Size of the header fields of one request or response.
pub const HEADER_BYTES: usize = 64 << 10;

/// Docs that a component carries, in bytes: many times what a large provider has. Of more none are read.
pub const DOCS: usize = 1 << 20;

/// Size of a component that is compiled: compiling costs time and memory in proportion, and before any limit applies.
pub const COMPONENT_BYTES: usize = 64 << 20;

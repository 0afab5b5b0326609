//! What a tenant uses, and has used: for its operator's metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A tenant's use of its host, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Calls into its component, since it was made.
    pub calls: u64,
    /// Requests that were sent out for it.
    pub requests: u64,
    /// How often each limit was hit, by the setting's name.
    pub limits_hit: BTreeMap<&'static str, u64>,
    /// Instances that it has now.
    pub instances: usize,
    /// Linear memory of these, in bytes.
    pub memory: usize,
}

/// Counts it.
#[derive(Debug, Default)]
pub struct Counters {
    pub calls: AtomicU64,
    pub requests: AtomicU64,
    /// Shared with the process's instances, which lend by it.
    pub instances: Arc<AtomicUsize>,
    pub memory: AtomicUsize,
    limits_hit: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    pub fn hit(&self, setting: &'static str) {
        let mut hit = self.limits_hit.lock().unwrap_or_else(PoisonError::into_inner);
        *hit.entry(setting).or_default() += 1;
    }

    pub fn usage(&self) -> Usage {
        Usage {
            calls: self.calls.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            limits_hit: self.limits_hit.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            instances: self.instances.load(Ordering::Relaxed),
            memory: self.memory.load(Ordering::Relaxed),
        }
    }
}

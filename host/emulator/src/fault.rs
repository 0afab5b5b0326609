//! What goes wrong on purpose: each with a probability, drawn from a seed, so that a run comes again.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// The probabilities, each from 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Faults {
    /// The seed that they are drawn from.
    pub seed: u64,
    /// Reads are spared.
    pub writes_only: bool,
    /// An answer comes only after `latency_ms`. Unless it is set, every answer does.
    pub latency: Option<f64>,
    /// How many milliseconds.
    pub latency_ms: u64,
    /// A write is answered with 409 though its etag is right.
    pub conflict: f64,
    /// 429 with `retry-after`.
    pub too_many_requests: f64,
    /// What that says, in seconds.
    pub retry_after_seconds: u32,
    /// 503, and nothing was done.
    pub unavailable_before: f64,
    /// 503, and the write was done.
    pub unavailable_after: f64,
    /// The connection ends without an answer, and nothing was done.
    pub reset_before: f64,
    /// The connection ends without an answer, and the write was done.
    pub reset_after: f64,
    /// The connection ends in the middle of the answer, and the write was done.
    pub truncated: f64,
    /// 502 with a web page, and nothing was done.
    pub html: f64,
}

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "as the probabilities above")]
pub enum Fault {
    Conflict,
    TooManyRequests,
    UnavailableBefore,
    UnavailableAfter,
    ResetBefore,
    ResetAfter,
    Truncated,
    Html,
}

impl Fault {
    /// Whether the request is done all the same.
    pub const fn is_after(self) -> bool {
        matches!(self, Self::UnavailableAfter | Self::ResetAfter | Self::Truncated)
    }
}

/// Draws faults.
#[derive(Debug)]
pub struct Draw(Mutex<fastrand::Rng>);

impl Draw {
    /// A draw from a seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    /// How many milliseconds one answer is late.
    pub fn latency(&self, faults: &Faults) -> u64 {
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_late = faults.latency.is_none_or(|probability| random.f64() < probability);
        if is_late { faults.latency_ms } else { 0 }
    }

    /// The fault of one request, if any. Reads cannot conflict.
    pub fn fault(&self, faults: &Faults, is_write: bool) -> Option<Fault> {
        if faults.writes_only && !is_write {
            return None;
        }
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let conflict = if is_write { faults.conflict } else { 0.0 };
        [
            (Fault::Conflict, conflict),
            (Fault::TooManyRequests, faults.too_many_requests),
            (Fault::UnavailableBefore, faults.unavailable_before),
            (Fault::UnavailableAfter, faults.unavailable_after),
            (Fault::ResetBefore, faults.reset_before),
            (Fault::ResetAfter, faults.reset_after),
            (Fault::Truncated, faults.truncated),
            (Fault::Html, faults.html),
        ]
        .into_iter()
        .filter(|(_, probability)| *probability > 0.0)
        .find(|(_, probability)| random.f64() < *probability)
        .map(|(fault, _)| fault)
    }
}

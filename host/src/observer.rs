//! What a driver says while it runs: progress and log records, handed to the
//! embedder as they come.

use std::time::Duration;

use serde::Serialize;

use crate::result::{CallError, LogRecord, Metadata};

/// A progress report of a driver.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Progress {
    /// How much is done; rises from report to report within an attempt.
    pub done: f64,
    /// How much there is, where the driver knows.
    pub total: Option<f64>,
    /// What is going on, in the driver's words. Untrusted text.
    pub message: Option<String>,
}

/// A driver is compiled for the first time, and a call waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiling {
    /// The driver's id.
    pub driver: String,
    /// For how long it is compiled by now; `None` while others are compiled
    /// first.
    pub elapsed: Option<Duration>,
    /// The longest that it may take, where that is bounded.
    pub longest: Option<Duration>,
}

/// The ending of a call that was cancelled. No reply is given to anybody.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Canceled {
    /// What the result would be: [`ErrorCode::CANCELED`](crate::ErrorCode::CANCELED).
    pub error: CallError,
    /// What was called, and what it took so far. What the guest consumed in the attempt that was cut off is not
    /// in it.
    pub metadata: Metadata,
    /// The tools that led to the call, the first one first; empty where the caller asked for it.
    pub called_by: Vec<String>,
}

/// Receives what a driver says during a call. Called on the thread that runs
/// the guest: return quickly.
pub trait Observer: Send + Sync {
    /// The driver reported progress. Reports that don't rise never get here.
    fn progress(&self, progress: &Progress) {
        let _ = progress;
    }

    /// The driver is compiled before it runs, which takes a while. Repeated as
    /// long as the call waits.
    fn compiling(&self, compiling: &Compiling) {
        let _ = compiling;
    }

    /// The call was cancelled, or one that a tool made on its behalf: the future of the call was dropped. Of
    /// several that end together, those that were called come before their callers. Called while the future is
    /// dropped: don't panic.
    fn canceled(&self, canceled: &Canceled) {
        let _ = canceled;
    }

    /// The driver logged a record.
    fn log(&self, record: &LogRecord) {
        let _ = record;
    }
}

//! Observers of a running call: they get progress and log records as they come.

use std::time::Duration;

use crate::api::facts::CallFacts;
use crate::api::result::LogRecord;
use crate::imports::Progress;

/// A driver is compiled for the first time, and a call waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiling {
    /// The driver's id.
    pub driver: String,
    /// How long it has been compiling; `None` while it waits for other drivers.
    pub elapsed: Option<Duration>,
    /// The most that it may take, if that is bounded.
    pub longest: Option<Duration>,
}

/// Receives progress and log records of a call. Runs on the thread of the guest: return
/// quickly.
///
/// ```
/// use std::sync::Arc;
/// use toolward_bundle::text::visible_line;
/// use toolward_host::{CallFacts, Compiling, LogLevel, LogRecord, Observer, Progress, Request};
///
/// struct Printed;
///
/// impl Observer for Printed {
///     fn progress(&self, progress: &Progress) {
///         println!("{} of {:?}", progress.done, progress.total);
///     }
///
///     fn compiling(&self, compiling: &Compiling) {
///         println!("compiling {}", compiling.driver);
///     }
///
///     fn log(&self, record: &LogRecord) {
///         if record.level == LogLevel::Error {
///             println!("{}", visible_line(&record.message, 1000));
///         }
///     }
///
///     fn canceled(&self, call: &CallFacts) {
///         println!("{} was cancelled", call.tool);
///     }
/// }
///
/// let request = Request::new("text.stats", r#"{"text": "Hello"}"#).observer(Arc::new(Printed));
/// ```
pub trait Observer: Send + Sync {
    /// The driver reported progress. A report that is not higher than the last one is dropped.
    fn progress(&self, _progress: &Progress) {}

    /// The call waits for the driver to be compiled. Repeated while it waits.
    fn compiling(&self, _compiling: &Compiling) {}

    /// The call, or a nested one, was cancelled: its future was dropped, and it has no reply. Nested calls
    /// are reported before their callers. Runs while the future is dropped: don't panic.
    fn canceled(&self, _call: &CallFacts) {}

    /// The driver logged a record.
    fn log(&self, _record: &LogRecord) {}
}

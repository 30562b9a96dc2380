//! Warnings, notes and progress while something is read, fetched or verified.

/// Receives warnings, notes and progress. The command writes them to standard error;
/// an application may log them, or drop them with [`Silent`].
///
/// ```
/// use toolward_operator::{Progress, Report, Silent};
///
/// struct Logged;
///
/// impl Report for Logged {
///     fn warning(&self, message: &str) {
///         eprintln!("warning: {message}");
///     }
///
///     fn note(&self, message: &str) {
///         eprintln!("{message}");
///     }
///
///     fn begin(&self, what: &str) -> Box<dyn Progress + Send> {
///         eprintln!("{what}");
///         Box::new(Silent)
///     }
/// }
/// ```
pub trait Report {
    /// A problem that does not stop the work. May contain untrusted text.
    fn warning(&self, message: &str);

    /// A note. May contain untrusted text.
    fn note(&self, message: &str);

    /// Begins an operation that may take long, such as `verifying`. It ends when the
    /// value is dropped.
    fn begin(&self, what: &str) -> Box<dyn Progress + Send>;
}

/// Receives the progress of an operation.
pub trait Progress {
    /// `done` of `total` bytes; a total of 0 means unknown.
    fn set(&self, done: u64, total: u64);
}

/// A [`Report`] that drops everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Report for Silent {
    fn warning(&self, _message: &str) {}

    fn note(&self, _message: &str) {}

    fn begin(&self, _what: &str) -> Box<dyn Progress + Send> {
        Box::new(Self)
    }
}

impl Progress for Silent {
    fn set(&self, _done: u64, _total: u64) {}
}

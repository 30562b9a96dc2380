//! Warnings, notes and progress while something is read, fetched or verified.

use std::sync::{Mutex, PoisonError};

use toolward_signing::verify::VerifyProgress;

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

    /// Starts an operation that may take long, such as `verifying`. It ends when the
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

/// Reports the sum of what several threads have verified.
pub(crate) struct JointProgress(Mutex<(Vec<VerifyProgress>, Box<dyn Progress + Send>)>);

impl JointProgress {
    pub(crate) fn of(count: usize, whole: Box<dyn Progress + Send>) -> Self {
        let none = VerifyProgress { done: 0, total: 0 };
        Self(Mutex::new((vec![none; count], whole)))
    }

    /// Sets the progress of one. Its total counts once it has started.
    pub(crate) fn set(&self, number: usize, progress: VerifyProgress) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (each, whole) = &mut *state;
        if let Some(one) = each.get_mut(number) {
            *one = progress;
        }
        let sum = |part: fn(&VerifyProgress) -> u64| each.iter().map(part).sum();
        whole.set(sum(|one| one.done), sum(|one| one.total));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Default)]
    struct Last(Arc<Mutex<(u64, u64)>>);

    impl Progress for Last {
        fn set(&self, done: u64, total: u64) {
            *self.0.lock().unwrap() = (done, total);
        }
    }

    #[test]
    fn the_whole_is_the_sum() {
        let last = Last::default();
        let seen = Arc::clone(&last.0);
        let joint = JointProgress::of(2, Box::new(last));
        for (number, done, total, whole) in [
            (0, 1, 10, (1, 10)),
            (1, 5, 5, (6, 15)),
            (0, 9, 10, (14, 15)),
        ] {
            joint.set(number, VerifyProgress { done, total });
            assert_eq!(*seen.lock().unwrap(), whole);
        }
    }
}

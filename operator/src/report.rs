//! What a person should hear of while something is read, fetched or verified.

/// Takes warnings, notes and progress. The command writes them to standard error;
/// an application may log them, or drop them with [`Silent`].
pub trait Report {
    /// Something is wrong, and the work goes on. May hold other people's text.
    fn warning(&self, message: &str);

    /// Something that is good to know.
    fn note(&self, message: &str);

    /// Begins a piece of work that may take long, named by what is done, such as
    /// `verifying`. It ends when the value is dropped.
    fn begin(&self, what: &str) -> Box<dyn Progress>;
}

/// How far a piece of work is.
pub trait Progress {
    /// `done` of `total` bytes; a total of 0 is not known.
    fn set(&self, done: u64, total: u64);
}

/// A [`Report`] that drops everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Report for Silent {
    fn warning(&self, _message: &str) {}

    fn note(&self, _message: &str) {}

    fn begin(&self, _what: &str) -> Box<dyn Progress> {
        Box::new(Self)
    }
}

impl Progress for Silent {
    fn set(&self, _done: u64, _total: u64) {}
}

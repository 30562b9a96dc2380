//! How far something has come.

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The envelope is downloaded.
    Envelope,
    /// The content is downloaded. It may begin where an earlier try ended.
    Content,
    /// A blob is uploaded.
    Upload,
}

/// How far a transfer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub step: Step,
    /// Bytes that are there.
    pub done: u64,
    /// Bytes in all, where that is known.
    pub total: Option<u64>,
}

/// Whom to tell about progress.
pub type ProgressFn = dyn Fn(Progress) + Send + Sync;

/// Somebody to tell, or nobody.
#[derive(Clone, Copy)]
pub(crate) struct Teller<'a> {
    pub(crate) whom: Option<&'a ProgressFn>,
    pub(crate) step: Step,
}

impl Teller<'_> {
    pub(crate) fn tell(&self, done: u64, total: Option<u64>) {
        if let Some(whom) = self.whom {
            whom(Progress {
                step: self.step,
                done,
                total,
            });
        }
    }
}

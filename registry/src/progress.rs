//! Progress of a transfer.

/// The current step.
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

/// Progress of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferProgress {
    /// The current step.
    pub step: Step,
    /// Bytes transferred.
    pub done: u64,
    /// Bytes in total, where known.
    pub total: Option<u64>,
}

/// Called with each progress.
pub type ProgressFn = dyn Fn(TransferProgress) + Send + Sync;

/// Reports progress, if anybody listens.
#[derive(Clone, Copy)]
pub(crate) struct Teller<'a> {
    pub(crate) whom: Option<&'a ProgressFn>,
    pub(crate) step: Step,
}

impl Teller<'_> {
    pub(crate) fn tell(&self, done: u64, total: Option<u64>) {
        if let Some(whom) = self.whom {
            whom(TransferProgress {
                step: self.step,
                done,
                total,
            });
        }
    }
}

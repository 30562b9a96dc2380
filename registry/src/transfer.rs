//! Limits of a client, and the progress of a transfer.

use std::time::Duration;

/// Limits of a client, in bytes and time. The defaults are the limits of the formats; the size of a bundle can't be
/// raised above them, since no reader accepts more.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ClientLimits {
    /// The largest archive, in bytes.
    pub content: u64,
    /// The largest OCI manifest or index, in bytes.
    pub manifest: u64,
    /// How many tags are listed.
    pub tags: usize,
    /// How many referrers of a kind are read.
    pub referrers: usize,
    /// How long connecting may take.
    pub connect: Duration,
    /// How long the registry may be silent.
    pub silence: Duration,
    /// How long an operation may take, with all its requests, waits and transfers.
    pub total: Duration,
    /// How often a request is repeated, and a transfer resumed without progress.
    pub retries: u32,
    /// The longest `Retry-After` that is honoured.
    pub patience: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            content: toolward_signing::verify::MAX_BYTES,
            manifest: 1024 * 1024,
            tags: 10_000,
            referrers: 16,
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            total: Duration::from_secs(30 * 60),
            retries: 4,
            patience: Duration::from_secs(60),
        }
    }
}

/// The current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Downloading the envelope.
    Envelope,
    /// Downloading the content, which may resume an earlier attempt.
    Content,
    /// Uploading a blob.
    Upload,
}

/// Progress of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferProgress {
    /// The current step.
    pub step: Step,
    /// Bytes transferred.
    pub done: u64,
    /// Bytes in total, if known.
    pub total: Option<u64>,
}

/// Called with each progress.
pub type ProgressFn = dyn Fn(TransferProgress) + Send + Sync;

/// Reports progress to a callback.
#[derive(Clone, Copy)]
pub(crate) struct Reporter<'a> {
    pub(crate) callback: Option<&'a ProgressFn>,
    pub(crate) step: Step,
}

impl Reporter<'_> {
    /// Reports nothing.
    pub(crate) const SILENT: Self = Self {
        callback: None,
        step: Step::Upload,
    };

    pub(crate) fn report(&self, done: u64, total: Option<u64>) {
        if let Some(callback) = self.callback {
            callback(TransferProgress {
                step: self.step,
                done,
                total,
            });
        }
    }
}

//! Sizes and times that a client keeps to.

use std::time::Duration;

/// Limits of a client, in bytes and time. The defaults are those of the formats; sizes of a bundle can't be
/// raised above them, as no reader accepts more.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The largest archive, in bytes.
    pub content: u64,
    /// The largest OCI manifest or index, in bytes.
    pub manifest: u64,
    /// How many tags are listed.
    pub tags: usize,
    /// How many referrers of a kind are looked at.
    pub referrers: usize,
    /// How long a connection may take to be made.
    pub connect: Duration,
    /// How long the registry may be silent.
    pub silence: Duration,
    /// How long an operation may take, with all its requests, waits and transfers.
    pub total: Duration,
    /// How often a request is repeated, and a transfer taken up again without progress.
    pub retries: u32,
    /// The longest `Retry-After` that is waited for.
    pub patience: Duration,
}

impl Default for Limits {
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

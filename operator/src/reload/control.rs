//! Stops the thread that reloads, and asks it to read the configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Controls a [`Watch`](super::Watch). Clones control the same one.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// Cancel it to stop. The watch cancels it itself if it can't continue.
    pub stop: CancellationToken,
    /// Requests a reload of the configuration.
    pub reload: Arc<ReloadRequest>,
}

/// A request to reload the configuration.
#[derive(Debug, Default)]
pub struct ReloadRequest {
    asked: AtomicBool,
    notify: Notify,
}

impl ReloadRequest {
    /// Makes the request.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Whether there was a request since the last call.
    pub(super) fn take(&self) -> bool {
        self.asked.swap(false, Ordering::AcqRel)
    }

    /// Waits for a request.
    pub(super) async fn asked(&self) {
        self.notify.notified().await;
    }
}

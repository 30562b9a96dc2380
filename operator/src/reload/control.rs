//! What others ask of what keeps things up to date.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What others ask of what keeps things up to date.
#[derive(Debug, Clone, Default)]
pub struct Control {
    /// Cancelled when it should end. It cancels this itself where it can't go on.
    pub stop: CancellationToken,
    /// Asks for the configuration to be read again.
    pub reload: Arc<ReloadRequest>,
}

/// Whether the configuration is to be read again.
#[derive(Debug, Default)]
pub struct ReloadRequest {
    asked: AtomicBool,
    notify: Notify,
}

impl ReloadRequest {
    /// Asks for it.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Whether it was asked for since this was called last.
    pub(super) fn take(&self) -> bool {
        self.asked.swap(false, Ordering::AcqRel)
    }

    /// Waits until it is asked for.
    pub(super) async fn asked(&self) {
        self.notify.notified().await;
    }
}

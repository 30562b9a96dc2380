//! What signals ask of a server: to end, at once or when it has drained, and to read its
//! configuration again.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::failure::{Exit, Failure};

/// What signals lead to.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    /// Cancelled when requests should go elsewhere.
    pub(super) draining: CancellationToken,
    /// Cancelled when no more requests are taken.
    pub(super) shutdown: CancellationToken,
    /// Cancelled when nothing is waited for any more.
    pub(super) at_once: CancellationToken,
    pub(super) reload: Arc<Reload>,
}

/// Whether the configuration is to be read again.
#[derive(Debug, Default)]
pub(super) struct Reload {
    asked: AtomicBool,
    notify: Notify,
}

impl Reload {
    fn ask(&self) {
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

/// The signals that a server obeys. As long as this is there none of them ends the
/// process by itself.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// Whether the server was started from a terminal.
    terminal: bool,
}

impl Signals {
    /// Takes them, on a runtime.
    pub(super) fn take() -> Result<Self, Failure> {
        let take = |kind| {
            signal(kind).map_err(|error| Failure::new(Exit::Failed, "runtime-unavailable", error))
        };
        Ok(Self {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
            hangup: take(SignalKind::hangup())?,
            terminal: std::io::stdin().is_terminal(),
        })
    }

    /// Obeys them. SIGTERM drains for so long before it ends the server in good order,
    /// SIGINT ends it without; each further one of them cuts short what is left.
    pub(super) async fn obey(mut self, asked: Asked, drain: Duration) {
        let drains = loop {
            tokio::select! {
                _ = self.interrupt.recv() => break false,
                _ = self.terminate.recv() => break true,
                _ = self.hangup.recv() => {
                    // Its terminal is gone, and with it whoever would end it.
                    if self.terminal && !std::io::stdin().is_terminal() {
                        break false;
                    }
                    asked.reload.ask();
                }
            }
        };
        if drains && !drain.is_zero() {
            asked.draining.cancel();
            tokio::select! {
                () = tokio::time::sleep(drain) => {}
                () = self.ended() => asked.at_once.cancel(),
            }
        }
        asked.shutdown.cancel();
        self.ended().await;
        asked.at_once.cancel();
    }

    async fn ended(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

//! Serves new hosts, and withdraws everything when the lease ends.

use std::panic::resume_unwind;

use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;
use toolward_host::SharedState;

use super::control::Control;
use super::lease::Lease;
use super::target::Target;
use super::{Reports, SCAN_INTERVAL};

/// The state shared by the watching thread and the task that ends the lease.
pub(super) struct Serving<T> {
    pub(super) target: T,
    pub(super) shared_state: SharedState,
    pub(super) reports: Reports,
    /// The runtime that prepares drivers.
    pub(super) runtime: Handle,
    pub(super) control: Control,
    pub(super) lease: Lease,
}

impl<T: Target> Serving<T> {
    /// Withdraws everything when the lease ends, even while the verifying thread is
    /// blocked. Runs until stopped.
    pub(super) async fn expire(&self) {
        let withdraw = || {
            self.withdraw_all("it could not be verified again for six minutes");
            (self.reports)().warning(
                "the bundles could not be verified again for six minutes, and none is served",
            );
        };
        let watch = self.lease.watch(SCAN_INTERVAL, withdraw);
        self.control.stop.run_until_cancelled(watch).await;
    }

    /// Serves this, unless the lease has ended.
    pub(super) fn show(&self, made: T::Made) -> bool {
        self.lease.unless_over(|| self.target.replace(made))
    }

    /// Refuses all calls, and lists nothing.
    pub(super) fn withdraw_all(&self, why: &str) {
        self.shared_state.withdraw_all(why);
        // If no new host can be built, the current one stays and refuses all calls.
        match self.target.empty().or_else(|_error| self.target.bare()) {
            Ok(made) => self.target.replace(made),
            Err(error) => tracing::warn!(error.message, "what is refused is listed still"),
        }
    }

    /// Waits for the next scan or a reload; `false` if stopped, or if the runtime of `expiring` has shut down.
    ///
    /// # Panics
    /// If `expiring` has.
    pub(super) fn pause(&self, timer: &Runtime, expiring: &mut JoinHandle<()>) -> bool {
        let control = &self.control;
        timer.block_on(async {
            tokio::select! {
                () = control.stop.cancelled() => false,
                expired = expiring => match expired {
                    Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                    _ => false,
                },
                () = control.reload.asked() => true,
                () = tokio::time::sleep(SCAN_INTERVAL) => true,
            }
        })
    }
}

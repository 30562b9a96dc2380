//! Where what changed is served, and how all of it is taken back.

use tokio::runtime::Handle;
use toolward_host::SharedState;

use super::control::Control;
use super::lease::Lease;
use super::target::Target;
use super::{Reports, SCAN_INTERVAL};

/// Where what changed is served.
pub(super) struct Serving<T> {
    pub(super) target: T,
    pub(super) shared_state: SharedState,
    pub(super) reports: Reports,
    /// Where drivers are prepared.
    pub(super) runtime: Handle,
    pub(super) control: Control,
    pub(super) lease: Lease,
}

impl<T: Target> Serving<T> {
    /// Takes everything back when nothing was verified for too long, whatever the
    /// thread that verifies waits for. Ends when it is stopped.
    pub(super) async fn expire(&self) {
        let take_back = || {
            self.take_all_back("it could not be verified again for six minutes");
            (self.reports)().warning(
                "the bundles could not be verified again for six minutes, and none is served",
            );
        };
        let watch = self.lease.watch(SCAN_INTERVAL, take_back);
        self.control.stop.run_until_cancelled(watch).await;
    }

    /// Shows this, unless all was taken back by now.
    pub(super) fn show(&self, made: T::Made) -> bool {
        self.lease.unless_over(|| self.target.replace(made))
    }

    /// Refuses all that is served, and shows none of it.
    pub(super) fn take_all_back(&self, why: &str) {
        self.shared_state.withdraw_all(why);
        // Where nothing new can be made, what there is has to do: it refuses all calls.
        match self.target.empty().or_else(|_error| self.target.bare()) {
            Ok(made) => self.target.replace(made),
            Err(error) => tracing::warn!(error.message, "what is refused is listed still"),
        }
    }

    /// Waits until it is time to look again, or to reload. False if it is time to end.
    pub(super) fn pause(&self) -> bool {
        let control = &self.control;
        self.runtime.block_on(async {
            tokio::select! {
                () = control.stop.cancelled() => false,
                () = control.reload.asked() => true,
                () = tokio::time::sleep(SCAN_INTERVAL) => true,
            }
        })
    }
}

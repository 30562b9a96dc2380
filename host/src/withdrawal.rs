//! Whether a loaded bundle may still be served: its publisher or the operator
//! may withdraw it while the host runs.

use std::sync::OnceLock;

/// Whether one bundle was withdrawn, shared by its tools and its drivers, and by the
/// hosts that have it one after the other. Reading it takes no lock.
#[derive(Debug, Default)]
pub(crate) struct Withdrawal(OnceLock<String>);

impl Withdrawal {
    /// Withdraws the bundle, for good. False if it was already.
    pub(crate) fn withdraw(&self, reason: &str) -> bool {
        self.0.set(reason.to_owned()).is_ok()
    }

    /// Why the bundle was withdrawn, if it was.
    pub(crate) fn withdrawn(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

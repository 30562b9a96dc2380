//! The withdrawal of a loaded bundle while the host runs, by its publisher or the
//! operator.

use std::sync::OnceLock;

/// Whether one bundle was withdrawn. Its tools, its drivers and successive hosts share
/// it; reading it takes no lock.
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

//! The withdrawal of a bundle while hosts serve it.

use std::sync::OnceLock;

/// Whether one bundle was withdrawn, by its publisher or the operator. Its tools, its drivers, their kept replies and
/// successive hosts share it; reading it takes no lock.
#[derive(Debug)]
pub struct Withdrawal {
    bundle: String,
    reason: OnceLock<String>,
}

impl Withdrawal {
    /// A bundle that is served, by the digest of its manifest.
    #[must_use]
    pub fn new(bundle: &str) -> Self {
        Self {
            bundle: bundle.to_owned(),
            reason: OnceLock::new(),
        }
    }

    /// The digest of the bundle's manifest.
    #[must_use]
    pub fn bundle(&self) -> &str {
        &self.bundle
    }

    /// Withdraws the bundle permanently. False if it was already.
    pub fn withdraw(&self, reason: &str) -> bool {
        self.reason.set(reason.to_owned()).is_ok()
    }

    /// Why the bundle was withdrawn, if it was.
    #[must_use]
    pub fn withdrawn(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }
}

//! Who is trusted at the time of one operation: publishers, the operator's
//! settings, and what is revoked, with one "now" for all of it.

use std::time::SystemTime;

use toolward_signing::Refusal;
use toolward_signing::publisher::Terms;
use toolward_signing::revocation::Revocations;
use toolward_signing::trust::{TrustSettings, TrustStore};
use toolward_signing::verify::{self, Bundle, ProgressFn, Verified, VerifyOptions};

/// Whom and what an operation believes.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) store: TrustStore,
    pub(crate) settings: TrustSettings,
    pub(crate) revocations: Revocations,
    pub(crate) now: SystemTime,
}

impl Standing {
    /// How a bundle is verified.
    pub(crate) fn options<'a>(&'a self, progress: Option<&'a ProgressFn<'a>>) -> VerifyOptions<'a> {
        VerifyOptions {
            now: Some(self.now),
            mode: self.settings.mode,
            max_age: self.settings.max_age,
            require_provenance: self.settings.require_provenance,
            revocations: Some(&self.revocations),
            progress,
            ..VerifyOptions::default()
        }
    }

    /// How a document is accepted.
    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms {
            now: self.now,
            mode: self.settings.mode,
            revocations: &self.revocations,
        }
    }

    /// Verifies an archive in memory.
    pub(crate) fn archive(&self, bytes: &[u8]) -> Result<Verified<Bundle>, Refusal> {
        verify::archive_bytes(bytes, &self.store, &self.options(None))
    }
}

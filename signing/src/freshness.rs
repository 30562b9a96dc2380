//! Checks whether the release that a source offers is current. The functions have no side effects;
//! the caller gives the time.

use std::time::{Duration, SystemTime};

use crate::channel::VerifiedIndex;
use crate::digest::Digest;
use crate::error::{ErrorKind, Refusal};
use crate::manifest::Manifest;
use crate::timestamp::{Mode, Timestamp};

const SECONDS_PER_DAY: u64 = 86_400;

/// The kind of source of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseSource {
    /// A file or directory of this machine.
    Local,
    /// A registry or a web server, which can show different releases to different clients.
    Remote,
}

/// The evidence that a release is current, and the operator's limits.
#[derive(Clone, Debug)]
pub struct Freshness<'a> {
    /// The kind of source of the bundle.
    pub origin: ReleaseSource,
    /// The accepted index of the channel that the bundle comes from.
    pub index: Option<&'a VerifiedIndex>,
    /// How old a bundle may be.
    pub max_age: Option<Duration>,
    /// The time of the operation.
    pub now: SystemTime,
    /// Whether a wrong age is refused or gives a warning.
    pub mode: Mode,
}

impl Freshness<'_> {
    /// Checks that the bundle with this manifest and digest is current:
    ///
    /// * it is not older than the maximum age, if one is set;
    /// * the index, if one is given, is still valid and lists the bundle as the current release;
    /// * if neither is given, it comes from this machine. A remote source could show an old release
    ///   forever.
    ///
    /// Under [`Mode::Audit`], age and expiry are returned as warnings.
    ///
    /// # Errors
    /// [`ErrorKind::TooOld`], [`ErrorKind::DocumentExpired`], [`ErrorKind::ChannelUnlisted`],
    /// [`ErrorKind::ChannelMismatch`], [`ErrorKind::FreshnessUnknown`].
    pub fn check(&self, manifest: &Manifest, digest: &Digest) -> Result<Vec<String>, Refusal> {
        let mut warnings = Vec::new();
        if let Some(index) = self.index {
            if let Some(refusal) = index.expires.expired(ErrorKind::DocumentExpired, self.now) {
                let refusal = refusal.at(format!("index of channel {}", index.name));
                self.mode.apply(refusal, &mut warnings)?;
            }
            index.check(manifest, digest)?;
        }
        if let Some(max_age) = self.max_age {
            check_age(manifest.created, max_age, self.now)
                .or_else(|refusal| self.mode.apply(refusal, &mut warnings))?;
        }
        if self.origin == ReleaseSource::Remote && self.index.is_none() && self.max_age.is_none() {
            return Err(Refusal::new(ErrorKind::FreshnessUnknown)
                .at(manifest.id.clone())
                .expected("a signed index of the source, or a maximum age")
                .found("neither"));
        }
        Ok(warnings)
    }
}

/// Returns the shorter of two maximum ages that may each be set.
#[must_use]
pub fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    [one, other].into_iter().flatten().min()
}

/// Refuses a creation time more than `max_age` before `now`.
///
/// # Errors
/// [`ErrorKind::TooOld`].
pub fn check_age(created: Timestamp, max_age: Duration, now: SystemTime) -> Result<(), Refusal> {
    let oldest = now.checked_sub(max_age);
    // `ahead_of` also returns `Some` if the two times are equal, so an age of exactly `max_age`
    // passes.
    if oldest.is_none_or(|oldest| created.ahead_of(oldest).is_some()) {
        return Ok(());
    }
    Err(Refusal::new(ErrorKind::TooOld)
        .expected(format!(
            "made in the last {} days",
            max_age.as_secs() / SECONDS_PER_DAY
        ))
        .found(format!("`created` {created}")))
}

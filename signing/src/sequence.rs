//! Numbers that only rise: the sequence of a bundle, the version of a document. The functions have
//! no side effects; the caller stores the last number for each publisher and id.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::document::{name, number};
use crate::error::{ErrorKind, Refusal};

/// The last genuine release of an id. If a thief released higher sequences, hosts that saw them
/// return to this release once, when they accept the publisher document with this reset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// The bundle's id.
    #[serde(deserialize_with = "name")]
    pub id: String,
    /// The highest sequence that the publisher released itself.
    #[serde(deserialize_with = "number::<0, _>")]
    pub sequence: u64,
    /// The manifest's digest of that release.
    pub digest: Digest,
}

/// How a release or document follows the one accepted before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Nothing was accepted before.
    First,
    /// The number is higher.
    Newer,
    /// The same document.
    Same,
    /// The number is lower, which the operator allows.
    Back,
}

/// Compares a number and its document's digest with the pair accepted last. Store `found` if the
/// answer is [`Advance::First`] or [`Advance::Newer`].
///
/// # Errors
/// [`ErrorKind::Rollback`] for a lower number, [`ErrorKind::Equivocation`] for the same number with
/// another digest.
pub fn check(previous: Option<(u64, Digest)>, found: (u64, Digest)) -> Result<Advance, Refusal> {
    let Some((number, digest)) = previous else {
        return Ok(Advance::First);
    };
    if found.0 > number {
        return Ok(Advance::Newer);
    }
    if found.0 < number {
        return Err(Refusal::new(ErrorKind::Rollback)
            .expected(format!("number {number} or higher"))
            .found(format!("number {}", found.0)));
    }
    if found.1 == digest {
        return Ok(Advance::Same);
    }
    Err(Refusal::new(ErrorKind::Equivocation)
        .expected(format!("number {number} with digest {digest}"))
        .found(format!("digest {}", found.1)))
}

/// As [`check`], but under `--allow-rollback`: a lower number gives [`Advance::Back`]. Store
/// `found` in that case, too, and record who allowed it. Another document with the same number is
/// still refused.
///
/// # Errors
/// [`ErrorKind::Equivocation`].
pub fn check_allowing_rollback(
    previous: Option<(u64, Digest)>,
    found: (u64, Digest),
) -> Result<Advance, Refusal> {
    match check(previous, found) {
        Err(refusal) if refusal.kind() == ErrorKind::Rollback => Ok(Advance::Back),
        other => other,
    }
}

/// Returns the pair to store for an id when a publisher document with this reset is accepted. The
/// last genuine release replaces a stored number that is equal or higher; a lower stored number
/// stays, since it is genuine. Apply the resets of each document exactly once, when it is accepted
/// by rotation. On first use, there is nothing to lower.
#[must_use]
pub fn reset(previous: (u64, Digest), reset: &Reset) -> (u64, Digest) {
    if previous.0 < reset.sequence {
        previous
    } else {
        (reset.sequence, reset.digest)
    }
}

//! The signed index of a channel: which release of each bundle is the current one. It expires soon, which exposes a
//! source that holds releases back or mixes old and new ones.

mod toml;

use std::time::Duration;

use semver::Version;

use crate::digest::Digest;
use crate::document::{DocumentKind, SignedDocument, Terms, Verified};
use crate::error::{ErrorKind, Refusal};
use crate::key::PublicKey;
use crate::manifest::Manifest;
use crate::signers::{Fingerprint, Quorum};
use crate::timestamp::Timestamp;

/// The payload type under which an index is signed.
pub const PAYLOAD_TYPE: &str = "application/vnd.toolward.channel.v1+toml";
/// How large an index may be, in bytes.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;
/// How large the envelope of an index may be, in bytes.
pub const MAX_ENVELOPE_BYTES: usize = 8 * 1024 * 1024;
/// How long an index may be valid: a source can hold releases back for that long.
pub const MAX_VALIDITY: Duration = Duration::from_secs(90 * 86_400);
/// How many bundles an index may list.
pub const MAX_BUNDLES: usize = 16 * 1024;
/// How many tools an entry may have.
pub const MAX_TOOLS: usize = 256;
/// How many tags an entry may have.
pub const MAX_TAGS: usize = 32;
/// How long names, titles and tags may be, in characters.
pub const MAX_TITLE: usize = 120;
/// How long descriptions may be, in characters.
pub const MAX_DESCRIPTION: usize = 2000;

const KIND: DocumentKind = DocumentKind {
    name: "channel index",
    payload_type: PAYLOAD_TYPE,
    max_bytes: MAX_BYTES,
    max_envelope_bytes: MAX_ENVELOPE_BYTES,
};

/// An index that the keys of its channel have signed.
pub type VerifiedIndex = Verified<SignedDocument<ChannelIndex>>;

/// A channel, as the operator pins it: where its index is, and who may sign it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) keys: Vec<PublicKey>,
    pub(crate) threshold: usize,
}

impl Channel {
    /// The channel's name, which its index must have.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address of the index, which this crate does not interpret.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The keys that may sign the index, all distinct.
    #[must_use]
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// How many distinct keys must have signed.
    #[must_use]
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// The key under which the last version of the index is stored: when the operator pins other keys, versions
    /// that a thief of the earlier ones used up no longer count.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.name, self.threshold, &self.keys)
    }
}

/// Names the current release of each bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelIndex {
    /// The channel's name.
    pub name: String,
    /// Rises with every index.
    pub version: u64,
    /// When the index was made.
    pub created: Timestamp,
    /// When it stops being valid: at most [`MAX_VALIDITY`] after `created`.
    pub expires: Timestamp,
    /// The bundles, each id once.
    pub bundles: Vec<ListedRelease>,
}

/// The current release of a bundle, and what a person may look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRelease {
    /// The bundle's id.
    pub id: String,
    /// The version of that release.
    pub version: Version,
    /// The sequence of that release.
    pub sequence: u64,
    /// The manifest's digest.
    pub digest: Digest,
    /// The name of the publisher.
    pub publisher: String,
    /// What people call it.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// The tools in it.
    pub tools: Vec<ListedTool>,
}

/// A tool in a bundle: to be searched, not to be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTool {
    /// The contract's id.
    pub id: String,
    /// What people call it.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
}

impl ChannelIndex {
    /// The current release of a bundle.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&ListedRelease> {
        self.bundles.iter().find(|listed| listed.id == id)
    }

    /// Checks that a bundle, of which this is the manifest and its digest, is the release that is listed.
    ///
    /// # Errors
    /// [`ErrorKind::ChannelUnlisted`], [`ErrorKind::ChannelMismatch`].
    pub fn check(&self, manifest: &Manifest, digest: &Digest) -> Result<(), Refusal> {
        let place = || format!("channel {}", self.name);
        let Some(listed) = self.get(&manifest.id) else {
            return Err(Refusal::new(ErrorKind::ChannelUnlisted)
                .at(place())
                .expected("a listed bundle")
                .found(manifest.id.clone()));
        };
        let is_listed = listed.digest == *digest
            && listed.sequence == manifest.sequence
            && listed.version == manifest.version
            && listed.publisher == manifest.publisher;
        if is_listed {
            return Ok(());
        }
        Err(Refusal::new(ErrorKind::ChannelMismatch)
            .at(place())
            .expected(format!(
                "{} {}, sequence {}, of publisher {}, with digest {}",
                listed.id, listed.version, listed.sequence, listed.publisher, listed.digest
            ))
            .found(format!(
                "{} {}, sequence {}, of publisher {}, with digest {digest}",
                manifest.id, manifest.version, manifest.sequence, manifest.publisher
            )))
    }
}

/// Accepts the index of a channel: the keys that the operator pinned have signed it, and it is valid now.
/// The caller checks with [`crate::sequence::check`] that it is the newest so far, by the version and digest that
/// are stored under the channel's [`fingerprint`](Channel::fingerprint).
///
/// # Errors
/// [`ErrorKind::ThresholdNotMet`], [`ErrorKind::KeyRevoked`], [`ErrorKind::ChannelMismatch`] for another channel's
/// index, [`ErrorKind::DocumentExpired`], [`ErrorKind::DocumentNotYetValid`], and those of [`ChannelIndex::parse`].
pub fn accept(
    bytes: &[u8],
    channel: &Channel,
    terms: &Terms<'_>,
) -> Result<VerifiedIndex, Refusal> {
    let envelope = KIND.open(bytes)?;
    let signers = Quorum {
        whose: &format!("channel {}", channel.name),
        keys: &channel.keys,
        threshold: channel.threshold,
    }
    // A channel has no publisher: only what the operator denies affects its keys.
    .check(&envelope, &|key| terms.revocations.is_denied(key))
    .map_err(|refusal| refusal.at(KIND.name))?;
    let index = ChannelIndex::parse(envelope.payload())?;
    if index.name != channel.name {
        return Err(Refusal::new(ErrorKind::ChannelMismatch)
            .at(KIND.name)
            .expected(format!("the index of channel {}", channel.name))
            .found(format!("that of channel {}", index.name)));
    }
    let warnings = KIND.check_age(index.created, Some(index.expires), terms)?;
    Ok(Verified::new(SignedDocument {
        digest: Digest::of(envelope.payload()),
        document: index,
        envelope_bytes: bytes.into(),
        signers,
        warnings,
    }))
}

//! The signed index of a channel: which release of each bundle is the current one. It expires soon,
//! so a source can't hold releases back for long or mix old and new releases.

use std::collections::HashSet;
use std::time::Duration;

use semver::Version;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::document::{
    DocumentKind, SignedDocument, Terms, Verified, line, lines, name, number, optional_line,
    version,
};
use crate::envelope::Envelope;
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

/// A channel that the operator pinned: the address of its index, and the keys that may sign it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Channel {
    /// The channel's name, which its index must have.
    pub name: String,
    /// The address of the index, which this crate does not interpret.
    pub source: String,
    /// The keys that may sign the index, all distinct.
    pub keys: Vec<PublicKey>,
    /// How many distinct keys must have signed.
    pub threshold: usize,
}

impl Channel {
    /// The last version of the index is stored under this fingerprint. If the operator pins other
    /// keys, the fingerprint changes. So version numbers that a thief of the earlier keys used up
    /// no longer count.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.name, self.threshold, &self.keys)
    }
}

/// Names the current release of each bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelIndex {
    /// The channel's name.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Rises with every index.
    #[serde(deserialize_with = "number::<1, _>")]
    pub version: u64,
    /// When the index was made.
    pub created: Timestamp,
    /// When it stops being valid: at most [`MAX_VALIDITY`] after `created`.
    pub expires: Timestamp,
    /// The bundles, each id once.
    #[serde(default)]
    pub bundles: Vec<ListedRelease>,
}

/// The current release of a bundle, with texts for people to search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedRelease {
    /// The bundle's id.
    #[serde(deserialize_with = "name")]
    pub id: String,
    /// The version of that release.
    #[serde(deserialize_with = "version")]
    pub version: Version,
    /// The sequence of that release.
    #[serde(deserialize_with = "number::<0, _>")]
    pub sequence: u64,
    /// The manifest's digest.
    pub digest: Digest,
    /// The name of the publisher.
    #[serde(deserialize_with = "name")]
    pub publisher: String,
    /// The bundle's name for people.
    #[serde(default, deserialize_with = "optional_line::<MAX_TITLE, _>")]
    pub name: Option<String>,
    /// The bundle's description.
    #[serde(default, deserialize_with = "optional_line::<MAX_DESCRIPTION, _>")]
    pub description: Option<String>,
    /// Words to find the bundle by.
    #[serde(default, deserialize_with = "lines::<MAX_TITLE, _>")]
    pub tags: Vec<String>,
    /// The tools in the bundle.
    #[serde(default)]
    pub tools: Vec<ListedTool>,
}

/// A tool in a bundle, for searches only: it is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedTool {
    /// The contract's id. It is only searched, so it is not checked against the grammar of contract
    /// ids.
    #[serde(deserialize_with = "line::<MAX_TITLE, _>")]
    pub id: String,
    /// Its name for people.
    #[serde(default, deserialize_with = "optional_line::<MAX_TITLE, _>")]
    pub title: Option<String>,
    /// Its description.
    #[serde(deserialize_with = "line::<MAX_DESCRIPTION, _>")]
    pub description: String,
    /// Words to find it by.
    #[serde(default, deserialize_with = "lines::<MAX_TITLE, _>")]
    pub tags: Vec<String>,
}

impl ChannelIndex {
    /// The current release of a bundle.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&ListedRelease> {
        self.bundles.iter().find(|listed| listed.id == id)
    }

    /// Checks that the bundle with this manifest and digest is the listed release.
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

/// Accepts the index of a channel if the keys that the operator pinned have signed it and it is
/// valid now. The caller checks with [`crate::sequence::check`] that the index is the newest so
/// far, against the version and digest stored under the channel's
/// [`fingerprint`](Channel::fingerprint).
///
/// # Errors
/// [`ErrorKind::ThresholdNotMet`], [`ErrorKind::KeyRevoked`], [`ErrorKind::ChannelMismatch`] for
/// another channel's index, [`ErrorKind::DocumentExpired`], [`ErrorKind::DocumentNotYetValid`], and
/// the errors of [`ChannelIndex::parse`].
pub fn accept(
    bytes: &[u8],
    channel: &Channel,
    terms: &Terms<'_>,
) -> Result<VerifiedIndex, Refusal> {
    let envelope = KIND.open(bytes)?;
    let whose = format!("channel {}", channel.name);
    let signers = Quorum(&whose, &channel.keys, channel.threshold)
        // A channel has no publisher, so only the operator can deny its keys.
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
    let index = SignedDocument::new(index, &envelope, bytes, signers, warnings);
    Ok(Verified::new(index))
}

impl ChannelIndex {
    /// Reads an index. Signatures are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::DocumentInvalid`], [`ErrorKind::DocumentSchema`], or the error of an invalid
    /// value.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let format = KIND.format();
        let index: Self = format.read(bytes, &[("bundles", MAX_BUNDLES, "bundles")])?;
        for bundle in &index.bundles {
            format.at_most(bundle.tools.len(), MAX_TOOLS, "tools")?;
            let tags = bundle.tools.iter().map(|tool| &tool.tags);
            for tags in tags.chain([&bundle.tags]) {
                format.at_most(tags.len(), MAX_TAGS, "tags")?;
            }
        }
        format.check_times(index.created, Some(index.expires))?;
        let seconds = index.expires.unix().saturating_sub(index.created.unix());
        if u64::try_from(seconds).is_ok_and(|seconds| seconds > MAX_VALIDITY.as_secs()) {
            return Err(format
                .invalid()
                .expected("`expires` at most 90 days after `created`")
                .found(index.expires.to_string()));
        }
        let mut seen = HashSet::new();
        match index.bundles.iter().find(|bundle| !seen.insert(&bundle.id)) {
            Some(bundle) => Err(format
                .invalid()
                .expected("each id once")
                .found(format!("{} twice", bundle.id))),
            None => Ok(index),
        }
    }

    /// Writes the index with bundles sorted by id, the same bytes each time. The bytes are read
    /// back as a check.
    ///
    /// # Errors
    /// The errors of [`ChannelIndex::parse`], for an index that breaks a rule.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        let mut sorted = self.clone();
        sorted.bundles.sort_by(|a, b| a.id.cmp(&b.id));
        KIND.format().write(&sorted, Self::parse)
    }

    /// The index in an envelope without signatures, see [`Envelope::sign`].
    ///
    /// # Errors
    /// The errors of [`ChannelIndex::to_bytes`].
    pub fn to_envelope(&self) -> Result<Envelope, Refusal> {
        Ok(Envelope::new(KIND.payload_type, self.to_bytes()?))
    }
}

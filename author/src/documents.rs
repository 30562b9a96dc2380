//! The documents that a publisher signs in addition to its bundles: its keys, its revocations, the
//! index of a channel. The reader of a document decides whether to trust it.

use toolward_bundle::content::Content;
use toolward_signing::Refusal;
use toolward_signing::channel::{self, ChannelIndex, ListedRelease, ListedTool};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::KeyId;
use toolward_signing::publisher::{self, PublisherDocument, RevokedKey};
use toolward_signing::revocation::{self, RevocationList};
use toolward_signing::timestamp::Timestamp;

/// Any of the documents.
#[derive(Debug, Clone)]
pub enum Document {
    /// A publisher's keys.
    Publisher(PublisherDocument),
    /// A publisher's revocations.
    Revocations(RevocationList),
    /// The index of a channel.
    Channel(ChannelIndex),
}

impl Document {
    /// Reads the document in an envelope, without checking its signatures; `None` if the envelope
    /// contains something else.
    ///
    /// # Errors
    ///
    /// If the document is invalid.
    pub fn read(envelope: &Envelope) -> Result<Option<Self>, Refusal> {
        let bytes = envelope.payload();
        Ok(Some(match envelope.payload_type() {
            publisher::PAYLOAD_TYPE => Self::Publisher(PublisherDocument::parse(bytes)?),
            revocation::PAYLOAD_TYPE => Self::Revocations(RevocationList::parse(bytes)?),
            channel::PAYLOAD_TYPE => Self::Channel(ChannelIndex::parse(bytes)?),
            _ => return Ok(None),
        }))
    }
}

/// Returns the next version of a publisher's document, with the same keys.
pub fn next(current: PublisherDocument, created: Timestamp) -> PublisherDocument {
    PublisherDocument {
        version: current.version.saturating_add(1),
        created,
        resets: Vec::new(),
        ..current
    }
}

/// Drops a key: its signatures no longer count. Returns whether the document had the key.
pub fn drop_key(document: &mut PublisherDocument, key: KeyId) -> bool {
    let before = document.keys.len();
    document.keys.retain(|one| one.key_id() != key);
    document.keys.len() < before
}

/// Drops and revokes a key. The key may have been dropped before. A publisher who has only this key
/// can't sign a document that revokes it. A first document replaces the key by a new one, and the
/// document after that revokes it.
pub fn revoke_key(document: &mut PublisherDocument, key: KeyId, reason: &str) {
    drop_key(document, key);
    document.revoked_keys.push(revoked(key, reason));
}

/// Returns the entry that revokes a key for this reason.
pub fn revoked(key_id: KeyId, reason: &str) -> RevokedKey {
    RevokedKey {
        key_id,
        since: None,
        reason: reason.to_owned(),
    }
}

/// Lists a bundle in the index of a channel, in place of any other release of the bundle.
pub fn list(index: &mut ChannelIndex, content: &Content) {
    let manifest = &content.manifest;
    index.bundles.retain(|other| other.id != manifest.id);
    let tools = content.tools.iter().map(|entry| ListedTool {
        id: entry.tool.id.to_string(),
        title: Some(cut(&entry.tool.name, channel::MAX_TITLE)),
        description: cut(&entry.tool.description, channel::MAX_DESCRIPTION),
        tags: (entry.tool.tags.iter().take(channel::MAX_TAGS))
            .map(|tag| cut(tag, channel::MAX_TITLE))
            .collect(),
    });
    index.bundles.push(ListedRelease {
        id: manifest.id.clone(),
        version: manifest.version.clone(),
        sequence: manifest.sequence,
        digest: content.manifest_digest,
        publisher: manifest.publisher.clone(),
        name: None,
        description: None,
        tags: Vec::new(),
        tools: tools.collect(),
    });
}

fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

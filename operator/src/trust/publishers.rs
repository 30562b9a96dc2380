//! The publishers of `toolward trust`, trusted by their documents or by bare keys.

mod folder;
mod transaction;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolward_signing::id::Prefix;
use toolward_signing::key::{KeyId, PublicKey};
use toolward_signing::publisher::VerifiedPublisher;
use toolward_signing::revocation::{Revocations, SignedList};
use toolward_signing::trust::{TrustStore, max_age};

use crate::{Error, Kind, Result};

pub(super) use folder::MAX_KEY_BYTES;
pub use folder::{Publishers, RecordFiles, Tombstone, WHAT};
pub use transaction::{RemovedPublisher, Transaction};

/// The operator's settings for a publisher.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublisherGrant {
    /// Prefixes of the ids that it may publish.
    pub prefixes: Vec<String>,
    /// Prefixes of the action ids that it may also publish.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// The source of its document, as given by the operator.
    pub source: String,
    /// The keys that signed the stored list of revocations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revocation_signers: Vec<String>,
    /// The rule that shows that a remote release is current.
    #[serde(default, skip_serializing_if = "FreshnessRule::is_empty")]
    pub freshness: FreshnessRule,
}

/// The rule that shows that a publisher's remote release is current: a maximum age, or a channel
/// that lists it. `[trust]` applies as well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreshnessRule {
    /// The maximum age of its releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u64>,
    /// The `[[channel]]` that must list its releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

impl FreshnessRule {
    /// Whether the rule sets neither a maximum age nor a channel.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The maximum age.
    pub fn max_age(&self) -> Result<Option<Duration>> {
        let max_age = self.max_age_days.map(max_age).transpose();
        max_age.map_err(|refusal| Error::usage(refusal.kind(), &refusal))
    }
}

impl std::fmt::Display for FreshnessRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.max_age_days, &self.channel) {
            (Some(days), _) => write!(f, "at most {days} days old"),
            (None, Some(channel)) => write!(f, "what the channel {channel} lists"),
            (None, None) => f.write_str("no rule"),
        }
    }
}

/// A publisher that is known by its document.
#[derive(Debug, Clone)]
pub struct KnownPublisher {
    /// Its current document.
    pub document: VerifiedPublisher,
    /// The operator's settings for it.
    pub grant: PublisherGrant,
    /// Its list of revocations, if it was fetched.
    pub revocations: Option<SignedList>,
}

impl KnownPublisher {
    /// The prefixes of the ids that it may publish.
    pub fn prefixes(&self) -> Result<Vec<Prefix>> {
        parse_prefixes(&self.grant.prefixes)
    }

    /// The prefixes of the action ids that it may also publish.
    pub fn actions(&self) -> Result<Vec<Prefix>> {
        parse_prefixes(&self.grant.actions)
    }
}

/// The record of a publisher.
#[derive(Debug, Clone)]
pub enum PublisherRecord {
    /// It is trusted by its document.
    Document(Box<KnownPublisher>),
    /// It is trusted by a bare key.
    Key(Box<BareKey>),
}

/// Reads prefixes.
pub(super) fn parse_prefixes(prefixes: &[String]) -> Result<Vec<Prefix>> {
    let parse =
        |prefix: &String| Prefix::parse(prefix).map_err(|refusal| Error::of(Kind::Usage, refusal));
    prefixes.iter().map(parse).collect()
}

/// A snapshot of the publishers of `toolward trust`.
#[derive(Debug, Default)]
pub struct TrustedPublishers {
    /// The publishers that are trusted by their documents, by name.
    pub known: Vec<KnownPublisher>,
    /// The publishers that are trusted by a bare key, by name.
    pub keys: Vec<BareKey>,
    /// The revocations of removed publishers.
    removed: Vec<Tombstone>,
}

impl TrustedPublishers {
    /// Whether no publisher is trusted.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.keys.is_empty()
    }

    /// A publisher that is trusted by its document, by name.
    pub fn get(&self, name: &str) -> Option<&KnownPublisher> {
        self.known.iter().find(|known| known.document.name == name)
    }

    /// A publisher that is trusted by a bare key, by name.
    pub fn key(&self, name: &str) -> Option<&BareKey> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Returns all publishers except the publisher of this name.
    pub fn without(mut self, name: &str) -> Self {
        self.known.retain(|known| known.document.name != name);
        self.keys.retain(|key| key.name != name);
        self
    }

    /// The channels that the operator set, by publisher.
    pub fn channels(&self) -> BTreeMap<String, String> {
        let known = self.known.iter().filter_map(|known| {
            let channel = known.grant.freshness.channel.clone()?;
            Some((known.document.name.clone(), channel))
        });
        let keys = self.keys.iter();
        let keys = keys.filter_map(|key| Some((key.name.clone(), key.grant.channel.clone()?)));
        known.chain(keys).collect()
    }

    /// Adds all publishers to the store of the configuration. Fails if a name or a key is not
    /// unique.
    pub fn add_to(&self, store: &mut TrustStore) -> Result<()> {
        let twice = |failure: Error, name: &str| {
            failure.of_kind(Kind::Usage).hint(format!(
                "take the publisher out of toolward.toml, or: toolward trust remove {name}"
            ))
        };
        for known in &self.known {
            let name = &known.document.name;
            store
                .add_document(&known.document, known.prefixes()?)
                .map_err(|refusal| twice(Error::usage(refusal.kind(), &refusal), name))?;
            store.give_actions(name, known.actions()?);
            if let Some(max_age) = known.grant.freshness.max_age()? {
                store.limit_age(name, max_age);
            }
        }
        for key in &self.keys {
            key.add_to(store)
                .map_err(|failure| twice(failure, &key.name))?;
        }
        Ok(())
    }

    /// Adds the revocations of all publishers.
    pub fn revoke(&self, revocations: &mut Revocations) {
        for removed in &self.removed {
            revocations.add_list(&removed.list);
        }
        for known in &self.known {
            revocations.add_document(&known.document);
            if let Some(list) = &known.revocations {
                revocations.add_list(list);
            }
        }
        // A key that another publisher revoked is also revoked if it is trusted as a bare key.
        for key in &self.keys {
            for owner in self.owners(&key.key.key_id()) {
                revocations.share(owner, &key.name);
            }
        }
    }

    /// Returns the publisher whose document has this key. If there is none, returns the publishers
    /// that had or revoked it. Their revocations apply even if the key is named without a
    /// publisher.
    pub fn owners(&self, key: &KeyId) -> Vec<&str> {
        let has =
            |known: &&KnownPublisher| known.document.keys.iter().any(|own| own.key_id() == *key);
        if let Some(owner) = self.known.iter().find(has) {
            return vec![&owner.document.name];
        }
        let revokes = |known: &&KnownPublisher| {
            let list = known.revocations.iter();
            known.document.revokes(key)
                || list
                    .flat_map(|list| &list.keys)
                    .any(|own| own.key_id == *key)
        };
        let known = self.known.iter().filter(revokes);
        let removed = self.removed.iter().filter(|removed| {
            removed.keys.contains(key) || removed.list.keys.iter().any(|own| own.key_id == *key)
        });
        known
            .map(|known| known.document.name.as_str())
            .chain(removed.map(|removed| removed.list.publisher.as_str()))
            .collect()
    }
}

/// The operator's settings for a bare key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyGrant {
    /// Prefixes of the ids that it may publish.
    pub prefixes: Vec<String>,
    /// The maximum age of its bundles. A bare key always has one.
    pub max_age_days: u64,
    /// The `[[channel]]` that must list its releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The file that the key came from.
    pub source: String,
}

/// A publisher that is trusted by a bare key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BareKey {
    /// Its name, as in its manifests.
    pub name: String,
    /// Its key.
    pub key: PublicKey,
    /// The operator's settings for it.
    pub grant: KeyGrant,
}

impl BareKey {
    /// The features of a publisher's document that a bare key lacks.
    pub const LACKS: &[&str] = &["rotation", "revocation"];

    /// The default maximum age of the bundles of a bare key, in days.
    pub const DEFAULT_MAX_AGE_DAYS: u64 = 90;

    /// The prefixes of the ids that it may publish.
    pub fn prefixes(&self) -> Result<Vec<Prefix>> {
        parse_prefixes(&self.grant.prefixes)
    }

    /// The maximum age of its bundles.
    pub fn max_age(&self) -> Result<Duration> {
        max_age(self.grant.max_age_days).map_err(|refusal| {
            Error::usage(refusal.kind(), &refusal)
                .hint("give --max-age-days a number of days, such as 90")
        })
    }

    /// Describes the maximum age and the channel for people.
    pub fn freshness(&self) -> String {
        let age = FreshnessRule {
            max_age_days: Some(self.grant.max_age_days),
            channel: None,
        };
        match &self.grant.channel {
            Some(channel) => format!("{age}, and what the channel {channel} lists"),
            None => age.to_string(),
        }
    }

    /// Adds it to the trusted publishers.
    pub(in crate::trust) fn add_to(&self, store: &mut TrustStore) -> Result<()> {
        let (key, prefixes) = (self.key.clone(), self.prefixes()?);
        let added = store.add_bare_key(&self.name, key, prefixes, self.max_age()?);
        Ok(added?)
    }
}

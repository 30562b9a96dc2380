//! The publishers of `toolward trust`: a folder for each beside the configuration, with
//! the current document, the operator's settings, and the publisher's revocations.

mod bare_key;
mod private_dir;
mod tombstone;
mod transaction;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolward_signing::id::{self, Prefix};
use toolward_signing::key::KeyId;
use toolward_signing::publisher::{self, VerifiedPublisher};
use toolward_signing::revocation::{self, Revocations, SignedList};
use toolward_signing::trust::TrustStore;

use crate::error::{Code, Error, Kind};

use private_dir::Folder;

pub(super) use bare_key::MAX_KEY_BYTES;
pub use bare_key::{BareKey, KeyGrant};
pub use tombstone::Tombstone;
pub use transaction::{Gone, Transaction};

const DOCUMENT_FILE: &str = "publisher.json";
const GRANT_FILE: &str = "grant.toml";
const REVOCATIONS_FILE: &str = "revocations.json";

/// Maximum size of a grant, in bytes.
const MAX_GRANT_BYTES: usize = 64 * 1024;

/// The operator's settings for a publisher.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Prefixes of the ids that it may publish.
    pub prefixes: Vec<String>,
    /// Prefixes of the action ids that it may publish besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// The source of its document, as given by the operator.
    pub source: String,
    /// The keys that signed the stored list of revocations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revocation_signers: Vec<String>,
    /// How a remote release of it is shown to be current.
    #[serde(default, skip_serializing_if = "FreshnessRule::is_empty")]
    pub freshness: FreshnessRule,
}

/// How a remote release of a publisher is shown to be current: by a maximum age, or by
/// the channel that lists it. `[trust]` applies as well.
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
    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The maximum age.
    pub fn max_age(&self) -> Result<Option<Duration>, Error> {
        let max_age = self.max_age_days.map(toolward_signing::trust::max_age);
        max_age
            .transpose()
            .map_err(|refusal| Error::usage(refusal.kind(), &refusal))
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

/// One known publisher, by its document.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its current document.
    pub document: VerifiedPublisher,
    /// The operator's settings for it.
    pub grant: Grant,
    /// Its list of revocations, if it was fetched.
    pub revocations: Option<SignedList>,
}

impl Known {
    /// The prefixes of the ids that it may publish.
    pub fn prefixes(&self) -> Result<Vec<Prefix>, Error> {
        parsed(&self.grant.prefixes)
    }

    /// The prefixes of the action ids that it may publish besides.
    pub fn actions(&self) -> Result<Vec<Prefix>, Error> {
        parsed(&self.grant.actions)
    }
}

/// What is recorded of a publisher.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Record {
    /// It is trusted by its document.
    Document(Box<Known>),
    /// It is trusted by a bare key.
    Key(Box<BareKey>),
}

/// Reads prefixes.
pub(super) fn parsed(prefixes: &[String]) -> Result<Vec<Prefix>, Error> {
    let parse =
        |prefix: &String| Prefix::parse(prefix).map_err(|refusal| Error::of(Kind::Usage, refusal));
    prefixes.iter().map(parse).collect()
}

/// A snapshot of the publishers of `toolward trust`.
#[derive(Debug, Default)]
pub struct Trusted {
    /// The publishers that are trusted by their documents, by name.
    pub known: Vec<Known>,
    /// Those that are trusted by a bare key, by name.
    pub keys: Vec<BareKey>,
    /// The revocations of removed publishers.
    removed: Vec<Tombstone>,
}

impl Trusted {
    /// Whether nobody is trusted.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.keys.is_empty()
    }

    /// A publisher that is trusted by its document, by name.
    pub fn get(&self, name: &str) -> Option<&Known> {
        self.known.iter().find(|known| known.document.name == name)
    }

    /// A publisher that is trusted by a bare key, by name.
    pub fn key(&self, name: &str) -> Option<&BareKey> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// All but one publisher.
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

    /// Adds all publishers to those of the configuration. Names and keys must be
    /// unique.
    pub fn add_to(&self, store: &mut TrustStore) -> Result<(), Error> {
        for known in &self.known {
            store
                .add_document(&known.document, known.prefixes()?)
                .map_err(|refusal| {
                    let name = &known.document.name;
                    Error::usage(refusal.kind(), &refusal).hint(format!(
                        "take the publisher out of toolward.toml, or: toolward trust remove {name}"
                    ))
                })?;
            store.give_actions(&known.document.name, known.actions()?);
            if let Some(max_age) = known.grant.freshness.max_age()? {
                store.limit_age(&known.document.name, max_age);
            }
        }
        for key in &self.keys {
            key.add_to(store).map_err(|failure| {
                let name = &key.name;
                failure.of_kind(Kind::Usage).hint(format!(
                    "take the publisher out of toolward.toml, or: toolward trust remove {name}"
                ))
            })?;
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
        // A key that another publisher revoked stays revoked under the name of a bare key.
        for key in &self.keys {
            for owner in self.owners(&key.key.key_id()) {
                revocations.share(owner, &key.name);
            }
        }
    }

    /// The publishers that have or had this key, or that revoked it while no other has
    /// it. Their revocations apply even if the key is given by itself.
    pub fn owners(&self, key: &KeyId) -> Vec<&str> {
        let has = |known: &&Known| known.document.keys.iter().any(|own| own.key_id() == *key);
        if let Some(owner) = self.known.iter().find(has) {
            return vec![&owner.document.name];
        }
        let revokes = |known: &&Known| {
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

/// The folder of all known publishers.
#[derive(Debug)]
pub struct Publishers(PathBuf);

/// The description of the folder in messages.
pub const WHAT: &str = "the folder of trusted publishers";

impl Publishers {
    /// The publishers beside a configuration file.
    pub fn beside(configuration: &Path) -> Self {
        let folder = configuration.parent().unwrap_or_else(|| Path::new("."));
        let folder = folder.join("trust");
        Self(std::path::absolute(&folder).unwrap_or(folder))
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Reads all publishers. Fails if one can't be read: it may contain revocations.
    pub fn all(&self) -> Result<Trusted, Error> {
        let Some(folder) = Folder::open(&self.0)? else {
            return Ok(Trusted::default());
        };
        folder.shared(&self.0)?;
        self.read_all()
    }

    /// Creates the folder if it is missing, for a confined process that can only scan
    /// paths that existed at its start.
    pub fn make(&self) -> Result<(), Error> {
        Folder::make(&self.0).map(drop)
    }

    /// Reads one publisher by name.
    pub fn get(&self, name: &str) -> Result<Option<Record>, Error> {
        let Some(folder) = Folder::open(&self.0)? else {
            return Ok(None);
        };
        folder.shared(&self.0)?;
        match self.has(name) {
            true => self.read(name).map(Some),
            false => Ok(None),
        }
    }

    /// Locks the folder for changes. Creates it if it is missing.
    pub fn exclusive(self) -> Result<Transaction, Error> {
        Transaction::new(self)
    }

    /// Whether the folder has an entry for a publisher of this name.
    pub fn has(&self, name: &str) -> bool {
        // Any other name could be a path to elsewhere.
        id::check(name).is_ok() && self.0.join(name).symlink_metadata().is_ok()
    }

    /// The names of the publishers, at most this many. No document is read or verified:
    /// for completion only.
    pub(crate) fn names(&self, max: usize) -> Result<Vec<String>, Error> {
        if Folder::open(&self.0)?.is_none() {
            return Ok(Vec::new());
        }
        let unreadable = |error| Error::unreadable(&self.0, error);
        let entries = std::fs::read_dir(&self.0).map_err(unreadable)?;
        let names = entries.take(max).filter_map(|entry| {
            let entry = entry.ok().filter(|entry| entry.path().is_dir())?;
            entry.file_name().into_string().ok()
        });
        // Tombstones and temporary folders begin with a dot, which no name does.
        Ok(names.filter(|name| id::check(name).is_ok()).collect())
    }

    fn read_all(&self) -> Result<Trusted, Error> {
        let unreadable = |error| Error::unreadable(&self.0, error);
        let mut names = Vec::new();
        let mut trusted = Trusted::default();
        for entry in std::fs::read_dir(&self.0).map_err(unreadable)? {
            let Ok(name) = entry.map_err(unreadable)?.file_name().into_string() else {
                continue;
            };
            if let Some(name) = Tombstone::named_by(&name) {
                trusted.removed.extend(Tombstone::read(&self.0, name)?);
            } else if !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort();
        for name in &names {
            match self.read(name)? {
                Record::Document(known) => trusted.known.push(*known),
                Record::Key(key) => trusted.keys.push(*key),
            }
        }
        Ok(trusted)
    }

    fn read(&self, name: &str) -> Result<Record, Error> {
        let folder = self.0.join(name);
        let remove = |failure: Error| {
            let remove = format!("`toolward trust remove {name}` takes the publisher out");
            failure.hint(remove)
        };
        let read = match BareKey::is_in(&folder) {
            true => BareKey::read(&folder, name).map(|key| Record::Key(Box::new(key))),
            false => self.read_known(&folder, name),
        };
        read.map_err(remove)
    }

    fn read_known(&self, folder: &Path, name: &str) -> Result<Record, Error> {
        if Folder::open(folder)?.is_none() {
            return Err(Error::unreadable(folder, "the folder is gone"));
        }
        let path = folder.join(GRANT_FILE);
        let text = private_dir::read(&path, MAX_GRANT_BYTES)?;
        let text = String::from_utf8(text).map_err(|error| Error::unreadable(&path, error))?;
        let grant: Grant = toml::from_str(&text).map_err(|error| {
            Error::usage(Code::TrustInvalid, format!("{}: {error}", path.display()))
        })?;
        let document = read_document(folder)?;
        is_of(folder, name, &document.name)?;
        let path = folder.join(REVOCATIONS_FILE);
        let signers: Result<Vec<KeyId>, _> = grant
            .revocation_signers
            .iter()
            .map(|signer| signer.parse())
            .collect();
        let signers = signers.map_err(|refusal| at(&path, refusal))?;
        let revocations = read_list(folder, signers)?;
        if let Some(list) = &revocations {
            is_of(folder, name, &list.publisher)?;
        }
        Ok(Record::Document(Box::new(Known {
            document,
            grant,
            revocations,
        })))
    }
}

fn read_document(folder: &Path) -> Result<VerifiedPublisher, Error> {
    let path = folder.join(DOCUMENT_FILE);
    let bytes = private_dir::read(&path, toolward_signing::envelope::MAX_BYTES)?;
    publisher::stored(&bytes).map_err(|refusal| at(&path, refusal))
}

fn read_list(folder: &Path, signers: Vec<KeyId>) -> Result<Option<SignedList>, Error> {
    let path = folder.join(REVOCATIONS_FILE);
    if path
        .symlink_metadata()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    {
        return Ok(None);
    }
    let bytes = private_dir::read(&path, toolward_signing::envelope::MAX_BYTES)?;
    let list = revocation::stored(&bytes, signers);
    list.map(Some).map_err(|refusal| at(&path, refusal))
}

/// Refuses files that were moved from one publisher's folder to another's.
fn is_of(folder: &Path, name: &str, found: &str) -> Result<(), Error> {
    if name == found {
        return Ok(());
    }
    let message = format!("{}: what is in it is of {found}", folder.display());
    Err(Error::usage(Code::TrustInvalid, message)
        .hint("a folder has the name of its publisher, and its documents and nothing else"))
}

fn at(path: &Path, refusal: toolward_signing::Refusal) -> Error {
    Error::refused(refusal).in_file(path)
}

//! The folder of the publishers next to the configuration. Each publisher has a folder in it with
//! the operator's settings, and with either its document and revocations or a bare key. Unless the
//! operator forgets them, the revocations of a removed publisher stay in effect (in a tombstone),
//! so that removing and adding a publisher does not undo them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toolward_signing::envelope::MAX_BYTES;
use toolward_signing::key::{KeyId, PublicKey};
use toolward_signing::publisher::{self, RevokedKey, VerifiedPublisher};
use toolward_signing::revocation::{self, RevocationList, RevokedBundle, SignedList};
use toolward_signing::timestamp::Timestamp;
use toolward_signing::{Refusal, id};
use toolward_support::files::Lock;

use super::{BareKey, KnownPublisher, PublisherGrant, PublisherRecord, TrustedPublishers};
use crate::file::{self, TrustFolder};
use crate::{Code, Error, Result};

const DOCUMENT_FILE: &str = "publisher.json";
const GRANT_FILE: &str = "grant.toml";
const REVOCATIONS_FILE: &str = "revocations.json";
const KEY_FILE: &str = "key.pem";

/// The maximum size of a grant, in bytes.
const MAX_GRANT_BYTES: usize = 64 * 1024;
/// The maximum size of a key file, in bytes.
pub(in crate::trust) const MAX_KEY_BYTES: usize = 16 * 1024;

/// The name of a tombstone's file: this prefix, the publisher's name, and a suffix.
const TOMBSTONE_PREFIX: &str = ".revoked-";
const TOMBSTONE_SUFFIX: &str = ".toml";
/// The maximum size of a tombstone, in bytes. It has room for dozens of the longest lists.
const MAX_TOMBSTONE_BYTES: usize = 16 * 1024 * 1024;

/// The folder of all known publishers.
#[derive(Debug)]
pub struct Publishers(PathBuf);

/// The description of the folder in messages.
pub const WHAT: &str = "the folder of trusted publishers";

impl Publishers {
    /// Returns the publishers for a configuration file. They are in the folder `trust` next to it.
    pub fn beside(configuration: &Path) -> Self {
        let folder = configuration.parent().unwrap_or_else(|| Path::new("."));
        let folder = folder.join("trust");
        Self(std::path::absolute(&folder).unwrap_or(folder))
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Reads all publishers. Fails if one of them can't be read, since it may contain revocations.
    pub fn all(&self) -> Result<TrustedPublishers> {
        let Some(folder) = TrustFolder::open(&self.0)? else {
            return Ok(TrustedPublishers::default());
        };
        folder.lock(Lock::Shared)?;
        self.read_all()
    }

    /// Creates the folder if it is missing. A confined process can only scan paths that existed
    /// when it started.
    pub fn make(&self) -> Result<()> {
        TrustFolder::make(&self.0).map(drop)
    }

    /// Reads one publisher by name.
    pub fn get(&self, name: &str) -> Result<Option<PublisherRecord>> {
        let Some(folder) = TrustFolder::open(&self.0)? else {
            return Ok(None);
        };
        folder.lock(Lock::Shared)?;
        self.has(name).then(|| self.read(name)).transpose()
    }

    /// Whether the folder has an entry for a publisher of this name.
    pub fn has(&self, name: &str) -> bool {
        // Any other name could be a path outside the folder.
        id::check(name).is_ok() && self.0.join(name).symlink_metadata().is_ok()
    }

    /// Returns the names of at most `max` publishers. No document is read or verified, so use the
    /// names for completion only.
    pub(crate) fn names(&self, max: usize) -> Result<Vec<String>> {
        if TrustFolder::open(&self.0)?.is_none() {
            return Ok(Vec::new());
        }
        let unreadable = |error| Error::unreadable(&self.0, error);
        let entries = std::fs::read_dir(&self.0).map_err(unreadable)?;
        let names = entries.take(max).filter_map(|entry| {
            let entry = entry.ok().filter(|entry| entry.path().is_dir())?;
            entry.file_name().into_string().ok()
        });
        // Names of tombstones and temporary folders start with a dot, unlike publishers' names.
        Ok(names.filter(|name| id::check(name).is_ok()).collect())
    }

    pub(super) fn read_all(&self) -> Result<TrustedPublishers> {
        let unreadable = |error| Error::unreadable(&self.0, error);
        let mut names = Vec::new();
        let mut trusted = TrustedPublishers::default();
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
                PublisherRecord::Document(known) => trusted.known.push(*known),
                PublisherRecord::Key(key) => trusted.keys.push(*key),
            }
        }
        Ok(trusted)
    }

    fn read(&self, name: &str) -> Result<PublisherRecord> {
        let folder = self.0.join(name);
        let read = match TrustFolder::open(&folder) {
            Ok(None) => Err(Error::unreadable(&folder, "the folder is gone")),
            Ok(Some(_)) if has(&folder, KEY_FILE) => {
                read_key(&folder, name).map(|key| PublisherRecord::Key(Box::new(key)))
            }
            Ok(Some(_)) => {
                read_known(&folder, name).map(|known| PublisherRecord::Document(Box::new(known)))
            }
            Err(failure) => Err(failure),
        };
        let remove = format!("`toolward trust remove {name}` takes the publisher out");
        read.map_err(|failure| failure.hint(remove))
    }
}

fn has(folder: &Path, file: &str) -> bool {
    folder.join(file).symlink_metadata().is_ok()
}

/// Whether a folder has a bare key, and no file that belongs to a document.
pub(super) fn has_only_key(folder: &Path) -> bool {
    has(folder, KEY_FILE) && !has(folder, DOCUMENT_FILE) && !has(folder, REVOCATIONS_FILE)
}

fn invalid(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::usage(Code::TrustInvalid, format!("{}: {what}", path.display()))
}

fn read_known(folder: &Path, name: &str) -> Result<KnownPublisher> {
    let grant: PublisherGrant = read_grant(folder)?;
    let document = read_document(folder)?;
    is_of(folder, name, &document.name)?;
    let signers = grant.revocation_signers.iter().map(|signer| signer.parse());
    let signers: Result<Vec<KeyId>, Refusal> = signers.collect();
    let signers = signers.map_err(|refusal| refused_at(&folder.join(REVOCATIONS_FILE), refusal))?;
    let revocations = read_list(folder, signers)?;
    if let Some(list) = &revocations {
        is_of(folder, name, &list.publisher)?;
    }
    Ok(KnownPublisher {
        document,
        grant,
        revocations,
    })
}

fn read_key(folder: &Path, name: &str) -> Result<BareKey> {
    id::check(name).map_err(|refusal| invalid(folder, refusal))?;
    if !has_only_key(folder) {
        let both = "it holds a bare key and a document's files, and a publisher has either";
        return Err(invalid(folder, both));
    }
    let grant = read_grant(folder)?;
    let path = folder.join(KEY_FILE);
    let key = PublicKey::from_pem(&read_text(&path, MAX_KEY_BYTES)?);
    Ok(BareKey {
        name: name.to_owned(),
        key: key.map_err(|refusal| refused_at(&path, refusal))?,
        grant,
    })
}

fn read_grant<T: DeserializeOwned>(folder: &Path) -> Result<T> {
    let path = folder.join(GRANT_FILE);
    let text = read_text(&path, MAX_GRANT_BYTES)?;
    toml::from_str(&text).map_err(|error| invalid(&path, error))
}

pub(super) fn read_document(folder: &Path) -> Result<VerifiedPublisher> {
    let path = folder.join(DOCUMENT_FILE);
    publisher::stored(&file::read_trusted(&path, MAX_BYTES)?)
        .map_err(|refusal| refused_at(&path, refusal))
}

pub(super) fn read_list(folder: &Path, signers: Vec<KeyId>) -> Result<Option<SignedList>> {
    let path = folder.join(REVOCATIONS_FILE);
    if file::is_missing(&path) {
        return Ok(None);
    }
    let list = revocation::stored(&file::read_trusted(&path, MAX_BYTES)?, signers);
    list.map(Some).map_err(|refusal| refused_at(&path, refusal))
}

/// Refuses files that were moved here from another publisher's folder.
fn is_of(folder: &Path, name: &str, found: &str) -> Result<()> {
    if name == found {
        return Ok(());
    }
    Err(invalid(folder, format!("what is in it is of {found}"))
        .hint("a folder has the name of its publisher, and its documents and nothing else"))
}

fn refused_at(path: &Path, refusal: Refusal) -> Error {
    Error::refused(refusal).in_file(path)
}

/// The record of a publisher, as files of its folder.
pub trait RecordFiles {
    /// The publisher's name.
    fn name(&self) -> &str;

    /// Writes the files.
    fn write(&self, folder: &Path) -> Result<()>;
}

impl RecordFiles for KnownPublisher {
    fn name(&self) -> &str {
        &self.document.name
    }

    /// The document is written last, after everything it depends on.
    fn write(&self, folder: &Path) -> Result<()> {
        if let Some(list) = &self.revocations {
            file::replace(&folder.join(REVOCATIONS_FILE), &list.envelope_bytes)?;
        }
        write_toml(&folder.join(GRANT_FILE), &self.grant, MAX_GRANT_BYTES)?;
        file::replace(&folder.join(DOCUMENT_FILE), &self.document.envelope_bytes)
    }
}

impl RecordFiles for BareKey {
    fn name(&self) -> &str {
        &self.name
    }

    /// The key is written last, since a folder with this file is the folder of a bare key.
    fn write(&self, folder: &Path) -> Result<()> {
        write_toml(&folder.join(GRANT_FILE), &self.grant, MAX_GRANT_BYTES)?;
        let pem = self.key.to_pem()?;
        file::replace(&folder.join(KEY_FILE), pem.as_bytes())
    }
}

fn write_toml(path: &Path, value: &impl Serialize, limit: usize) -> Result<()> {
    let text =
        toml::to_string(value).map_err(|error| Error::failed(Code::UnwritableValue, error))?;
    if text.len() > limit {
        return Err(Error::unwritable(path, "it would be too large"));
    }
    file::replace(path, text.as_bytes())
}

fn read_text(path: &Path, limit: usize) -> Result<String> {
    String::from_utf8(file::read_trusted(path, limit)?)
        .map_err(|error| Error::unreadable(path, error))
}

/// The record of a removed publisher.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTombstone {
    /// The keys that it had.
    keys: BTreeSet<String>,
    /// The keys that it revoked, with the reasons.
    revoked_keys: BTreeMap<String, String>,
    /// The bundles that it revoked, by digest, with the reasons.
    revoked_bundles: BTreeMap<String, String>,
}

/// The revocations of a removed publisher.
#[derive(Debug)]
pub struct Tombstone {
    /// The keys that it had.
    pub keys: BTreeSet<KeyId>,
    /// Its revocations, in the form of a revocation list.
    pub list: RevocationList,
}

impl Tombstone {
    /// Returns an empty record of the publisher `name`.
    pub(super) fn new(name: &str) -> Result<Self> {
        Ok(Self::of(name, StoredTombstone::default())?)
    }

    /// Returns the publisher's name, if `file` is the name of a tombstone file.
    pub(super) fn named_by(file: &str) -> Option<&str> {
        file.strip_prefix(TOMBSTONE_PREFIX)?
            .strip_suffix(TOMBSTONE_SUFFIX)
    }

    fn path(folder: &Path, name: &str) -> PathBuf {
        folder.join(format!("{TOMBSTONE_PREFIX}{name}{TOMBSTONE_SUFFIX}"))
    }

    pub(super) fn read(folder: &Path, name: &str) -> Result<Option<Self>> {
        let path = Self::path(folder, name);
        if file::is_missing(&path) {
            return Ok(None);
        }
        let invalid = |what: String| {
            Error::usage(Code::TrustInvalid, format!("{}: {what}", path.display()))
                .hint("it says what a publisher revoked before it was removed; to forget that, remove the file")
        };
        let text = String::from_utf8(file::read_trusted(&path, MAX_TOMBSTONE_BYTES)?)
            .map_err(|error| invalid(error.to_string()))?;
        let kept: StoredTombstone =
            toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        id::check(name)
            .and_then(|()| Self::of(name, kept))
            .map(Some)
            .map_err(|refusal| invalid(refusal.to_string()))
    }

    fn of(name: &str, kept: StoredTombstone) -> Result<Self, Refusal> {
        let keys = kept.keys.iter().map(|key| key.parse());
        let revoked = kept.revoked_keys.into_iter().map(|(key, reason)| {
            Ok(RevokedKey {
                key_id: key.parse()?,
                since: None,
                reason,
            })
        });
        let bundles = kept.revoked_bundles.into_iter().map(|(digest, reason)| {
            Ok(RevokedBundle {
                digest: digest.parse()?,
                id: None,
                reason,
            })
        });
        Ok(Self {
            keys: keys.collect::<Result<_, Refusal>>()?,
            list: RevocationList {
                publisher: name.to_owned(),
                version: 1,
                created: Timestamp::from_unix(0)?,
                expires: None,
                keys: revoked.collect::<Result<_, Refusal>>()?,
                bundles: bundles.collect::<Result<_, Refusal>>()?,
            },
        })
    }

    /// Adds the keys and revocations that the publisher has when it is removed.
    pub(super) fn keep(
        &mut self,
        keys: impl IntoIterator<Item = KeyId>,
        revoked: &[RevokedKey],
        bundles: &[RevokedBundle],
    ) {
        self.keys.extend(keys);
        self.list.keys.extend_from_slice(revoked);
        self.list.bundles.extend_from_slice(bundles);
    }

    /// Writes the file, unless the publisher revoked nothing. Returns the number of revoked keys
    /// and bundles.
    pub(super) fn write(&self, folder: &Path) -> Result<usize> {
        let list = &self.list;
        if list.keys.is_empty() && list.bundles.is_empty() {
            return Ok(0);
        }
        let key = |revoked: &RevokedKey| (revoked.key_id.to_string(), revoked.reason.clone());
        let bundle = |revoked: &RevokedBundle| (revoked.digest.to_string(), revoked.reason.clone());
        let kept = StoredTombstone {
            keys: self.keys.iter().map(ToString::to_string).collect(),
            revoked_keys: list.keys.iter().map(key).collect(),
            revoked_bundles: list.bundles.iter().map(bundle).collect(),
        };
        let path = Self::path(folder, &list.publisher);
        write_toml(&path, &kept, MAX_TOMBSTONE_BYTES)?;
        let (keys, bundles) = (kept.revoked_keys.len(), kept.revoked_bundles.len());
        Ok(keys.saturating_add(bundles))
    }

    /// Removes the file. Returns whether it existed.
    pub(super) fn forget(folder: &Path, name: &str) -> Result<bool> {
        let path = Self::path(folder, name);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::unwritable(&path, error)),
        }
    }
}

//! The revocations of removed publishers. They stay in effect, so that removing and
//! adding a publisher does not undo them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolward_signing::key::KeyId;
use toolward_signing::publisher::RevokedKey;
use toolward_signing::revocation::{RevocationList, RevokedBundle};
use toolward_signing::timestamp::Timestamp;
use toolward_signing::{Refusal, id};

use super::private_dir;
use crate::error::{Code, Error};
use crate::file;

const FILE_PREFIX: &str = ".revoked-";
const FILE_SUFFIX: &str = ".toml";

/// Maximum size of a file, in bytes: some dozens of the longest lists.
const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;

/// The record of a removed publisher.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
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
    /// An empty record of the publisher `name`.
    pub(super) fn new(name: &str) -> Result<Self, Error> {
        Self::of(name, Kept::default()).map_err(Error::refused)
    }

    /// The publisher's name, if this is the name of a tombstone file.
    pub(super) fn named_by(file: &str) -> Option<&str> {
        file.strip_prefix(FILE_PREFIX)?.strip_suffix(FILE_SUFFIX)
    }

    fn path(folder: &Path, name: &str) -> PathBuf {
        folder.join(format!("{FILE_PREFIX}{name}{FILE_SUFFIX}"))
    }

    pub(super) fn read(folder: &Path, name: &str) -> Result<Option<Self>, Error> {
        let path = Self::path(folder, name);
        if path
            .symlink_metadata()
            .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        {
            return Ok(None);
        }
        let invalid = |what: String| {
            Error::usage(Code::TrustInvalid, format!("{}: {what}", path.display()))
                .hint("it says what a publisher revoked before it was removed; to forget that, remove the file")
        };
        let text = String::from_utf8(private_dir::read(&path, MAX_FILE_BYTES)?)
            .map_err(|error| invalid(error.to_string()))?;
        let kept: Kept = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        id::check(name)
            .and_then(|()| Self::of(name, kept))
            .map(Some)
            .map_err(|refusal| invalid(refusal.to_string()))
    }

    fn of(name: &str, kept: Kept) -> Result<Self, Refusal> {
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

    /// Adds the keys and revocations that it had when it was removed.
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

    /// Writes the file unless there are no revocations. Returns the number of revoked
    /// keys and bundles.
    pub(super) fn write(&self, folder: &Path) -> Result<usize, Error> {
        let list = &self.list;
        if list.keys.is_empty() && list.bundles.is_empty() {
            return Ok(0);
        }
        let key = |revoked: &RevokedKey| (revoked.key_id.to_string(), revoked.reason.clone());
        let bundle = |revoked: &RevokedBundle| (revoked.digest.to_string(), revoked.reason.clone());
        let kept = Kept {
            keys: self.keys.iter().map(ToString::to_string).collect(),
            revoked_keys: list.keys.iter().map(key).collect(),
            revoked_bundles: list.bundles.iter().map(bundle).collect(),
        };
        let path = Self::path(folder, &list.publisher);
        let text =
            toml::to_string(&kept).map_err(|error| Error::failed(Code::UnwritableValue, error))?;
        if text.len() > MAX_FILE_BYTES {
            return Err(Error::unwritable(&path, "it would be too large"));
        }
        file::replace(&path, text.as_bytes())?;
        Ok(kept
            .revoked_keys
            .len()
            .saturating_add(kept.revoked_bundles.len()))
    }

    /// Removes the file. Returns whether it existed.
    pub(super) fn forget(folder: &Path, name: &str) -> Result<bool, Error> {
        let path = Self::path(folder, name);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::unwritable(&path, error)),
        }
    }
}

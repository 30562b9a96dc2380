//! A publisher that is trusted by a bare key: its folder holds the key and the operator's settings, and no document.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolward_signing::id::{self, Prefix};
use toolward_signing::key::PublicKey;
use toolward_signing::trust::{TrustStore, max_age};

use super::private_dir::{self, Folder};
use super::{DOCUMENT_FILE, FreshnessRule, GRANT_FILE, MAX_GRANT_BYTES, REVOCATIONS_FILE, parsed};
use crate::error::{Code, Error};
use crate::file;

const KEY_FILE: &str = "key.pem";

/// Maximum size of a key file, in bytes.
pub(in crate::trust) const MAX_KEY_BYTES: usize = 16 * 1024;

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
    /// Its name, as its manifests have it.
    pub name: String,
    /// Its key.
    pub key: PublicKey,
    /// The operator's settings for it.
    pub grant: KeyGrant,
}

impl BareKey {
    /// What a bare key lacks, of what a publisher's document has.
    pub const LACKS: &[&str] = &["rotation", "revocation"];

    /// The maximum age of the bundles of a bare key for which the operator says nothing else, in days.
    pub const DEFAULT_MAX_AGE_DAYS: u64 = 90;

    /// The prefixes of the ids that it may publish.
    pub fn prefixes(&self) -> Result<Vec<Prefix>, Error> {
        parsed(&self.grant.prefixes)
    }

    /// The maximum age of its bundles.
    pub fn max_age(&self) -> Result<Duration, Error> {
        max_age(self.grant.max_age_days).map_err(|refusal| {
            Error::usage(refusal.kind(), &refusal)
                .hint("give --max-age-days a number of days, such as 90")
        })
    }

    /// The maximum age and the channel, for people.
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
    pub(in crate::trust) fn add_to(&self, store: &mut TrustStore) -> Result<(), Error> {
        let (key, prefixes) = (self.key.clone(), self.prefixes()?);
        let added = store.add_bare_key(&self.name, key, prefixes, self.max_age()?);
        added.map_err(Error::refused)
    }

    /// Whether a folder is that of a bare key.
    pub(super) fn is_in(folder: &Path) -> bool {
        let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
        has(KEY_FILE)
    }

    /// Whether a folder holds nothing that a document's publisher would have.
    pub(super) fn is_alone_in(folder: &Path) -> bool {
        let others = [DOCUMENT_FILE, REVOCATIONS_FILE];
        Self::is_in(folder)
            && others
                .iter()
                .all(|name| folder.join(name).symlink_metadata().is_err())
    }

    pub(super) fn read(folder: &Path, name: &str) -> Result<Self, Error> {
        if Folder::open(folder)?.is_none() {
            return Err(Error::unreadable(folder, "the folder is gone"));
        }
        let invalid = |path: &Path, what: String| {
            Error::usage(Code::TrustInvalid, format!("{}: {what}", path.display()))
        };
        id::check(name).map_err(|refusal| invalid(folder, refusal.to_string()))?;
        if !Self::is_alone_in(folder) {
            let both = "it holds a bare key and a document's files, and a publisher has either";
            return Err(invalid(folder, both.to_owned()));
        }
        let path = folder.join(GRANT_FILE);
        let text = private_dir::read(&path, MAX_GRANT_BYTES)?;
        let text = String::from_utf8(text).map_err(|error| Error::unreadable(&path, error))?;
        let grant = toml::from_str(&text).map_err(|error| invalid(&path, error.to_string()))?;
        let path = folder.join(KEY_FILE);
        let pem = private_dir::read(&path, MAX_KEY_BYTES)?;
        let pem = String::from_utf8(pem).map_err(|error| Error::unreadable(&path, error))?;
        let key =
            PublicKey::from_pem(&pem).map_err(|refusal| Error::refused(refusal).in_file(&path))?;
        Ok(Self {
            name: name.to_owned(),
            key,
            grant,
        })
    }

    /// Writes its files. The key is written last, because it makes the folder that of a bare key.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        super::transaction::write_grant(folder, &self.grant)?;
        let pem = self.key.to_pem().map_err(Error::refused)?;
        file::replace(&folder.join(KEY_FILE), pem.as_bytes())
    }
}

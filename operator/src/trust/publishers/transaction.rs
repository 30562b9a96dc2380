//! Changes of the publishers' records, by one process at a time, based on the current
//! state.

use std::path::Path;

use toolward_signing::id;

use super::private_dir::Folder;
use super::{BareKey, DOCUMENT_FILE, GRANT_FILE, Known, MAX_GRANT_BYTES, Publishers};
use super::{REVOCATIONS_FILE, Tombstone, Trusted};
use super::{read_document, read_list};
use crate::error::{Code, Error};
use crate::file;

/// The folder of publishers, exclusively locked. Don't block on the network or a person
/// while holding it.
#[derive(Debug)]
pub struct Transaction {
    publishers: Publishers,
    folder: Folder,
}

/// The outcome of removing a publisher.
#[derive(Debug)]
pub struct Gone {
    /// The number of keys and bundles that stay revoked.
    pub revoked: usize,
    /// Why its revocations could not be kept.
    pub lost: Vec<Error>,
}

impl Transaction {
    pub(super) fn new(publishers: Publishers) -> Result<Self, Error> {
        let folder = Folder::make(&publishers.0)?;
        folder.exclusive(&publishers.0)?;
        Ok(Self { publishers, folder })
    }

    /// Reads all records.
    pub fn all(&self) -> Result<Trusted, Error> {
        self.publishers.read_all()
    }

    /// Adds a new publisher atomically.
    pub fn add(&self, known: &Known) -> Result<(), Error> {
        self.add_folder(&known.document.name, |folder| write(folder, known))
    }

    /// Adds a publisher that is trusted by a bare key, atomically.
    pub fn add_key(&self, key: &BareKey) -> Result<(), Error> {
        self.add_folder(&key.name, |folder| key.write(folder))
    }

    fn add_folder(
        &self,
        name: &str,
        write: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let place = &self.publishers.0;
        let (folder, new) = (place.join(name), place.join(format!(".new-{name}")));
        // Left behind by a killed process.
        clear(&new)?;
        let made = Folder::make(&new)?;
        write(&new)?;
        made.sync(&new)?;
        std::fs::rename(&new, &folder).map_err(|error| Error::unwritable(&folder, error))?;
        self.folder.sync(place)
    }

    /// Updates a publisher. The document is written last, after everything it depends
    /// on.
    pub fn write(&self, known: &Known) -> Result<(), Error> {
        let folder = self.publishers.0.join(&known.document.name);
        write(&folder, known)?;
        Folder::make(&folder)?.sync(&folder)
    }

    /// Updates the operator's settings for a bare key.
    pub fn write_key(&self, key: &BareKey) -> Result<(), Error> {
        let folder = self.publishers.0.join(&key.name);
        key.write(&folder)?;
        Folder::make(&folder)?.sync(&folder)
    }

    /// Removes a publisher, regardless of its folder's content, and keeps its
    /// revocations. `None` if there is no publisher of this name.
    pub fn remove(&self, name: &str) -> Result<Option<Gone>, Error> {
        if !self.publishers.has(name) {
            return Ok(None);
        }
        let place = &self.publishers.0;
        let folder = place.join(name);
        let gone = self.keep(name)?;
        let aside = place.join(format!(".gone-{name}"));
        clear(&aside)?;
        // Rename atomically, so that no reader sees a partial folder.
        std::fs::rename(&folder, &aside).map_err(|error| Error::unwritable(&folder, error))?;
        self.folder.sync(place)?;
        clear(&aside)?;
        Ok(Some(gone))
    }

    /// Keeps a publisher's revocations, as far as they can be read.
    fn keep(&self, name: &str) -> Result<Gone, Error> {
        let place = &self.publishers.0;
        let folder = place.join(name);
        let mut lost = Vec::new();
        if BareKey::is_alone_in(&folder) {
            return Ok(Gone { revoked: 0, lost });
        }
        let mut removed = match Tombstone::read(place, name) {
            Ok(Some(removed)) => removed,
            Ok(None) => Tombstone::new(name)?,
            // Don't replace it with fewer revocations.
            Err(failure) => {
                return Ok(Gone {
                    revoked: 0,
                    lost: vec![failure],
                });
            }
        };
        match read_document(&folder) {
            Ok(document) if document.name == name => {
                let keys = document.keys.iter().map(|key| key.key_id());
                removed.keep(keys, &document.revoked_keys, &[]);
            }
            Ok(_) => {}
            Err(failure) => lost.push(failure),
        }
        match read_list(&folder, Vec::new()) {
            Ok(Some(list)) if list.publisher == name => {
                removed.keep([], &list.keys, &list.bundles);
            }
            Ok(_) => {}
            Err(failure) => lost.push(failure),
        }
        let revoked = removed.write(place)?;
        Ok(Gone { revoked, lost })
    }

    /// Forgets the revocations of a removed publisher. Returns whether there were any.
    pub fn forget(&self, name: &str) -> Result<bool, Error> {
        match id::check(name) {
            Ok(()) => Tombstone::forget(&self.publishers.0, name),
            Err(_) => Ok(false),
        }
    }
}

fn write(folder: &Path, known: &Known) -> Result<(), Error> {
    if let Some(list) = &known.revocations {
        file::replace(&folder.join(REVOCATIONS_FILE), &list.envelope_bytes)?;
    }
    write_grant(folder, &known.grant)?;
    file::replace(&folder.join(DOCUMENT_FILE), &known.document.envelope_bytes)
}

/// Writes the operator's settings for a publisher.
pub(super) fn write_grant(folder: &Path, grant: &impl serde::Serialize) -> Result<(), Error> {
    let grant =
        toml::to_string(grant).map_err(|error| Error::failed(Code::UnwritableValue, error))?;
    let path = folder.join(GRANT_FILE);
    if grant.len() > MAX_GRANT_BYTES {
        return Err(Error::unwritable(&path, "it would be too large"));
    }
    file::replace(&path, grant.as_bytes())
}

/// Removes a file or folder, if it exists.
fn clear(path: &Path) -> Result<(), Error> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::unwritable(path, error))
        }
        _ => Ok(()),
    }
}

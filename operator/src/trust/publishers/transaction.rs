//! Changing what is kept of publishers: by one process at a time, on what is there
//! at that time.

use std::path::Path;

use toolward_signing::id;

use super::private_dir::Folder;
use super::{DOCUMENT_FILE, GRANT_FILE, Known, Publishers, REVOCATIONS_FILE, Tombstone, Trusted};
use super::{read_document, read_list};
use crate::error::{Error, Kind};
use crate::file;

/// The folder of publishers, which nobody else reads or changes meanwhile. Whoever
/// has it waits neither for the network nor for a person.
#[derive(Debug)]
pub struct Transaction {
    publishers: Publishers,
    folder: Folder,
}

/// What became of a publisher that was to be removed.
#[derive(Debug)]
pub struct Gone {
    /// How many keys and bundles it revoked, which stay revoked.
    pub revoked: usize,
    /// Why what it revoked could not be kept.
    pub lost: Vec<Error>,
}

impl Transaction {
    pub(super) fn new(publishers: Publishers) -> Result<Self, Error> {
        let folder = Folder::make(&publishers.0)?;
        folder.exclusive(&publishers.0)?;
        Ok(Self { publishers, folder })
    }

    /// All that is kept.
    pub fn all(&self) -> Result<Trusted, Error> {
        self.publishers.read_all()
    }

    /// Keeps a new publisher: all that belongs to it at once, or nothing.
    pub fn add(&self, known: &Known) -> Result<(), Error> {
        let (place, name) = (&self.publishers.0, &known.document.name);
        let (folder, new) = (place.join(name), place.join(format!(".new-{name}")));
        // Of a process that was killed.
        clear(&new)?;
        let made = Folder::make(&new)?;
        write(&new, known)?;
        made.sync(&new)?;
        std::fs::rename(&new, &folder).map_err(|error| Error::unwritable(&folder, error))?;
        self.folder.sync(place)
    }

    /// Keeps what is new of a publisher. The document comes last: what it rests on
    /// is there by then.
    pub fn write(&self, known: &Known) -> Result<(), Error> {
        let folder = self.publishers.0.join(&known.document.name);
        write(&folder, known)?;
        Folder::make(&folder)?.sync(&folder)
    }

    /// Forgets a publisher, whatever is in its folder, but not what it revoked.
    /// Nothing if there is none of this name.
    pub fn remove(&self, name: &str) -> Result<Option<Gone>, Error> {
        if !self.publishers.has(name) {
            return Ok(None);
        }
        let place = &self.publishers.0;
        let folder = place.join(name);
        let gone = self.keep(name)?;
        let aside = place.join(format!(".gone-{name}"));
        clear(&aside)?;
        // In one step, so that no half of it is read.
        std::fs::rename(&folder, &aside).map_err(|error| Error::unwritable(&folder, error))?;
        self.folder.sync(place)?;
        clear(&aside)?;
        Ok(Some(gone))
    }

    /// Keeps what a publisher revoked, as far as it can be read.
    fn keep(&self, name: &str) -> Result<Gone, Error> {
        let place = &self.publishers.0;
        let folder = place.join(name);
        let mut lost = Vec::new();
        let mut removed = match Tombstone::read(place, name) {
            Ok(Some(removed)) => removed,
            Ok(None) => Tombstone::new(name)?,
            // Not replaced by what is less.
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

    /// Forgets what a publisher revoked before it was removed. Whether it did.
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
    let grant = toml::to_string(&known.grant)
        .map_err(|error| Error::new(Kind::Failed, "unwritable-value", error))?;
    file::replace(&folder.join(GRANT_FILE), grant.as_bytes())?;
    file::replace(&folder.join(DOCUMENT_FILE), &known.document.envelope_bytes)
}

/// Removes what is there, if anything is.
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

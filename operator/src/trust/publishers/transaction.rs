//! Changes of the publishers' records. One process at a time makes them, based on the current
//! state.

use std::path::Path;

use toolward_signing::id;
use toolward_support::files::Lock;

use super::TrustedPublishers;
use super::folder::{self, Publishers, RecordFiles, Tombstone};
use crate::file::TrustFolder;
use crate::{Error, Result};

/// The folder of publishers, locked exclusively. Don't wait for the network or a person while
/// holding it.
#[derive(Debug)]
pub struct Transaction {
    publishers: Publishers,
    folder: TrustFolder,
}

/// The number of a removed publisher's keys and bundles that stay revoked, and the errors of
/// revocations that could not be stored.
pub type RemovedPublisher = (usize, Vec<Error>);

impl Publishers {
    /// Locks the folder for changes. Creates it if it is missing.
    pub fn exclusive(self) -> Result<Transaction> {
        let folder = TrustFolder::make(self.folder())?;
        folder.lock(Lock::Exclusive)?;
        Ok(Transaction {
            publishers: self,
            folder,
        })
    }
}

impl Transaction {
    /// Reads all records.
    pub fn all(&self) -> Result<TrustedPublishers> {
        self.publishers.read_all()
    }

    /// Adds a new publisher atomically.
    pub fn add(&self, record: &impl RecordFiles) -> Result<()> {
        let (place, name) = (self.publishers.folder(), record.name());
        let (folder, new) = (place.join(name), place.join(format!(".new-{name}")));
        // A process that was killed may have left this folder behind.
        clear(&new)?;
        let made = TrustFolder::make(&new)?;
        record.write(&new)?;
        made.sync()?;
        std::fs::rename(&new, &folder).map_err(|error| Error::unwritable(&folder, error))?;
        self.folder.sync()
    }

    /// Updates a publisher.
    pub fn write(&self, record: &impl RecordFiles) -> Result<()> {
        let folder = self.publishers.folder().join(record.name());
        record.write(&folder)?;
        TrustFolder::make(&folder)?.sync()
    }

    /// Removes a publisher, regardless of its folder's content, and stores its revocations. Returns
    /// `None` if no publisher has this name.
    pub fn remove(&self, name: &str) -> Result<Option<RemovedPublisher>> {
        if !self.publishers.has(name) {
            return Ok(None);
        }
        let place = self.publishers.folder();
        let folder = place.join(name);
        let gone = self.keep(name)?;
        let aside = place.join(format!(".gone-{name}"));
        clear(&aside)?;
        // Rename atomically, so that no reader sees a partial folder.
        std::fs::rename(&folder, &aside).map_err(|error| Error::unwritable(&folder, error))?;
        self.folder.sync()?;
        clear(&aside)?;
        Ok(Some(gone))
    }

    /// Stores the revocations of a publisher, as far as they can be read.
    fn keep(&self, name: &str) -> Result<RemovedPublisher> {
        let place = self.publishers.folder();
        let folder = place.join(name);
        let mut lost = Vec::new();
        if folder::has_only_key(&folder) {
            return Ok((0, lost));
        }
        let mut removed = match Tombstone::read(place, name) {
            Ok(Some(removed)) => removed,
            Ok(None) => Tombstone::new(name)?,
            // A file with fewer revocations must not replace the unreadable one.
            Err(failure) => return Ok((0, vec![failure])),
        };
        match folder::read_document(&folder) {
            Ok(document) if document.name == name => {
                let keys = document.keys.iter().map(|key| key.key_id());
                removed.keep(keys, &document.revoked_keys, &[]);
            }
            Ok(_) => {}
            Err(failure) => lost.push(failure),
        }
        match folder::read_list(&folder, Vec::new()) {
            Ok(Some(list)) if list.publisher == name => {
                removed.keep([], &list.keys, &list.bundles);
            }
            Ok(_) => {}
            Err(failure) => lost.push(failure),
        }
        Ok((removed.write(place)?, lost))
    }

    /// Forgets the revocations of a removed publisher. Returns whether there were any.
    pub fn forget(&self, name: &str) -> Result<bool> {
        match id::check(name) {
            Ok(()) => Tombstone::forget(self.publishers.folder(), name),
            Err(_) => Ok(false),
        }
    }
}

/// Removes a file or folder, if it exists.
fn clear(path: &Path) -> Result<()> {
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

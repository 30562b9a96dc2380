//! Removing the files that nothing refers to, and those that a killed process left behind.

use std::collections::HashSet;

use toolward_signing::Digest;

use crate::error::Error;
use crate::lock;
use crate::model;
use crate::store::Store;

/// How many files were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Bundles that are neither installed nor held.
    pub objects: u64,
    /// Files that were never put in place.
    pub temporary: u64,
}

impl Store {
    /// Frees the files of a bundle that is to be removed, with all garbage, where the disk has no room for
    /// [`Store::remove`] to be written down. Nothing else goes: not what is known of sequences, documents and
    /// revocations. Until it is removed the bundle is one whose file is missing.
    ///
    /// # Errors
    /// [`Error::NotInstalled`]; [`Error::ReadOnly`] where nothing can be removed either.
    pub fn make_room(&self, id: &str) -> Result<Collected, Error> {
        let _lock = lock::exclusive(&self.directory)?;
        let (own, used): (HashSet<Digest>, HashSet<Digest>) = self.state.read(|sql| {
            let installed = model::all_installed(sql)?.into_iter();
            let installed = installed.map(|installed| (installed.id, installed.digest));
            let held = model::all_held(sql)?.into_iter();
            let all: Vec<_> = installed
                .chain(held.map(|held| (held.id, held.digest)))
                .collect();
            if !all.iter().any(|(own, _)| own == id) {
                return Err(Error::NotInstalled { id: id.to_owned() });
            }
            let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(own, _)| own == id);
            let digests = |all: Vec<(String, Digest)>| all.into_iter().map(|(_, digest)| digest);
            let used: HashSet<Digest> = digests(others).collect();
            let own: HashSet<Digest> = digests(own).filter(|one| !used.contains(one)).collect();
            Ok((own, used))
        })?;
        // What changed last, and is not known, may refer to any other file.
        let keep = |digest: &Digest| match self.log_unread() {
            true => !own.contains(digest),
            false => used.contains(digest),
        };
        let (objects, temporary) = self.objects.sweep(keep)?;
        Ok(Collected { objects, temporary })
    }

    /// Collects garbage, alone: waits for readers and writers of bundles, which then wait for it.
    ///
    /// # Errors
    /// [`Error::Busy`] if others use the store for more than a minute.
    pub fn gc(&self) -> Result<Collected, Error> {
        let _lock = lock::exclusive(&self.directory)?;
        let used: HashSet<Digest> = self.state.read(|sql| {
            let installed = model::all_installed(sql)?.into_iter();
            let held = model::all_held(sql)?.into_iter();
            Ok(installed
                .map(|installed| installed.digest)
                .chain(held.map(|held| held.digest))
                .collect())
        })?;
        let (objects, temporary) = self.objects.sweep(|digest| used.contains(digest))?;
        Ok(Collected { objects, temporary })
    }
}

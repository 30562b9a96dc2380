//! Removing the files that nothing refers to, and those that a killed process left behind.

use std::collections::HashSet;

use toolward_signing::Digest;

use crate::error::Error;
use crate::lock;
use crate::rows;
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
    /// Collects garbage. Waits for whoever writes or reads a bundle, and keeps them waiting meanwhile.
    ///
    /// # Errors
    /// [`Error::Busy`] if others use the store for more than a minute.
    pub fn gc(&self) -> Result<Collected, Error> {
        let _lock = lock::exclusive(&self.directory)?;
        let used: HashSet<Digest> = self.state.read(|sql| {
            let installed = rows::all_installed(sql)?.into_iter();
            let held = rows::all_held(sql)?.into_iter();
            Ok(installed
                .map(|installed| installed.digest)
                .chain(held.map(|held| held.digest))
                .collect())
        })?;
        let (objects, temporary) = self.objects.sweep(|digest| used.contains(digest))?;
        Ok(Collected { objects, temporary })
    }
}

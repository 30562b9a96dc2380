//! Removing bundles, and the files that no release refers to or that a killed process left behind.

use std::collections::HashSet;
use std::time::SystemTime;

use toolward_signing::Digest;
use toolward_support::files::Lock as LockKind;

use crate::audit_log::{self, NewDecision, TrustVerdict};
use crate::decide;
use crate::error::Error;
use crate::model::{self, InstalledBundle};
use crate::objects::{CollectedFiles, lock_objects};
use crate::state;
use crate::store::Store;

impl Store {
    /// Removes a bundle, and its held update. Its marks stay, and its file until garbage is collected.
    ///
    /// # Errors
    /// [`Error::NotInstalled`] if neither exists.
    pub fn remove(&self, id: &str, now: SystemTime) -> Result<Option<InstalledBundle>, Error> {
        let at = state::seconds(now);
        self.state.write(|sql| {
            let installed = model::one_installed(sql, id)?;
            let removed = sql.execute("DELETE FROM installed WHERE id = ?1", [id])?;
            let dropped = sql.execute("DELETE FROM held WHERE id = ?1", [id])?;
            if removed == 0 && dropped == 0 {
                return Err(Error::NotInstalled { id: id.to_owned() });
            }
            decide::forget_surfaces(sql)?;
            let verdict = TrustVerdict::Accepted;
            let mut decision = NewDecision::new("remove", id, verdict, "removed".to_owned());
            if let Some(installed) = &installed {
                decision = decision.of_release(installed);
            }
            audit_log::record(sql, &decision, at)?;
            Ok(installed)
        })
    }

    /// Frees the files of a bundle that is to be removed, and all garbage, when the disk has no room to record
    /// [`Store::remove`]. What is known of sequences, documents and revocations stays. Until the bundle is removed, its
    /// file is missing.
    ///
    /// # Errors
    /// [`Error::NotInstalled`]; [`Error::ReadOnly`] if no file can be removed either.
    pub fn make_room(&self, id: &str) -> Result<CollectedFiles, Error> {
        let _lock = lock_objects(&self.directory, LockKind::Exclusive)?;
        let (own, others): (Vec<_>, Vec<_>) = self
            .referenced()?
            .into_iter()
            .partition(|(bundle, _)| bundle == id);
        if own.is_empty() {
            return Err(Error::NotInstalled { id: id.to_owned() });
        }
        let digests = |all: Vec<(String, Digest)>| all.into_iter().map(|(_, digest)| digest);
        let used: HashSet<Digest> = digests(others).collect();
        let own: HashSet<Digest> = digests(own).filter(|own| !used.contains(own)).collect();
        // Changes that could not be read may refer to any other file.
        self.objects.sweep(|digest| match self.log_unread() {
            true => !own.contains(digest),
            false => used.contains(digest),
        })
    }

    /// Collects garbage: waits for readers and writers of bundles, which then wait for it.
    ///
    /// # Errors
    /// [`Error::Busy`] if others use the store for more than a minute.
    pub fn gc(&self) -> Result<CollectedFiles, Error> {
        let _lock = lock_objects(&self.directory, LockKind::Exclusive)?;
        let referenced = self.referenced()?.into_iter();
        let used: HashSet<Digest> = referenced.map(|(_, digest)| digest).collect();
        self.objects.sweep(|digest| used.contains(digest))
    }

    /// The ids and digests of all installed bundles and held updates.
    fn referenced(&self) -> Result<Vec<(String, Digest)>, Error> {
        self.state.read(|sql| {
            let installed = model::all_installed(sql)?.into_iter();
            let held = model::all_held(sql)?.into_iter();
            let releases = installed
                .map(|installed| installed.release)
                .chain(held.map(|held| held.release));
            Ok(releases
                .map(|release| (release.id, release.digest))
                .collect())
        })
    }
}

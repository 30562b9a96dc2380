//! Installs and updates bundles, and holds updates until a person accepts their surface (what a
//! model or a policy sees of the bundle). A bundle's file is on disk before the state names the
//! file, and the state changes in one transaction. If the process is killed at any time, either the
//! old or the new release is installed, and works.

use std::collections::HashSet;
use std::time::SystemTime;

use rusqlite::Transaction;
use toolward_bundle::Content;
use toolward_bundle::libraries::Libraries;
use toolward_bundle::surface::{BundleSurface, SurfaceDifference};
use toolward_signing::verify::{Bundle, Verified};
use toolward_signing::{Digest, archive};
use toolward_support::files::Lock as LockKind;

use crate::audit_log::{NewDecision, TrustVerdict, record};
use crate::decide::{self, ReleaseCandidate, ReleaseDecision};
use crate::error::Error;
use crate::load::Verify;
use crate::model::{self, Acceptance, HeldUpdate, InstalledBundle, StoredRelease, StoredRow as _};
use crate::objects::lock_objects;
use crate::state;
use crate::store::Store;

/// The settings of an installation, besides the bundle.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// The source of the bundle, for people: recorded unchanged.
    pub source: String,
    /// The current time, which the whole operation records.
    pub now: SystemTime,
    /// The reason to allow a lower sequence than that of an earlier installation, if it is allowed.
    /// A different release with the same sequence is refused in any case.
    pub allow_rollback: Option<String>,
    /// The digest of the surface that was accepted beforehand. A bundle with any other surface is
    /// held, even at the first installation.
    pub accept: Option<Digest>,
}

/// The result of an installation.
#[derive(Clone, Debug, PartialEq)]
pub enum InstallOutcome {
    /// The bundle is installed.
    Installed {
        /// The bundle as installed now.
        installed: InstalledBundle,
        /// The bundle as installed before.
        previous: Option<InstalledBundle>,
    },
    /// The bundle's surface is not the accepted one, so the bundle is held. An installed bundle
    /// stays.
    Held {
        /// The held update.
        held: HeldUpdate,
        /// The installed bundle.
        current: Option<InstalledBundle>,
        /// How its surface differs from the installed surface, or from an empty one if nothing is
        /// installed.
        difference: SurfaceDifference,
    },
    /// Exactly this bundle is already installed. Its recorded source is updated.
    Unchanged(InstalledBundle),
}

impl Store {
    /// Installs a bundle, or updates one. An update with another surface is held. The same release
    /// is held, too, if the actions that it takes from `libraries` have changed its surface.
    ///
    /// # Errors
    /// [`Error::Content`] for a bundle that no host would accept; [`Error::Refused`] for a `rollback` or an
    /// `equivocation`; [`Error::Duplicate`], [`Error::Full`], [`Error::Busy`], [`Error::Io`].
    /// Refusals are recorded, and change nothing else.
    pub fn install(
        &self,
        bundle: &Verified<Bundle>,
        options: &InstallOptions,
        libraries: &dyn Libraries,
    ) -> Result<InstallOutcome, Error> {
        let result = self.try_install(bundle, options, libraries);
        result.inspect_err(|error| {
            let refused = NewDecision::refused("install", &bundle.manifest.id, error);
            let refused = refused.about(bundle.publisher.name(), Some(bundle.manifest_digest));
            // The refusal stands, whether or not it can be recorded.
            let _ = self.record(&refused, options.now);
        })
    }

    fn try_install(
        &self,
        bundle: &Verified<Bundle>,
        options: &InstallOptions,
        libraries: &dyn Libraries,
    ) -> Result<InstallOutcome, Error> {
        let candidate = candidate(bundle, options, libraries)?;
        let at = state::seconds(options.now);
        let _lock = self.share_objects()?;
        // Checked first without writing, so that a refused release leaves no file. The transaction
        // below decides again, since another process may have changed the state.
        self.state
            .read(|sql| decide::decide(sql, &candidate, options.accept))?;
        let bytes = archive::to_stored_bytes(&bundle.contents()?);
        // An existing file that differs is replaced. This repairs the file, or updates its
        // signatures.
        if !self.objects.holds(&bundle.manifest_digest, &bytes)? {
            self.objects.write(&bundle.manifest_digest, &bytes)?;
        }
        self.state.write(|sql| {
            let new = &candidate.held;
            let previous = InstalledBundle::of(sql, &new.id)?;
            match decide::decide(sql, &candidate, options.accept)? {
                ReleaseDecision::Unchanged(mut installed) => {
                    sql.execute(
                        "UPDATE installed SET source = ?1 WHERE id = ?2",
                        [&new.source, &installed.id],
                    )?;
                    installed.release.source.clone_from(&new.source);
                    Ok(InstallOutcome::Unchanged(*installed))
                }
                ReleaseDecision::Install(acceptance) => {
                    let installed = decide::install(sql, &candidate, acceptance, at)?;
                    let reason = reason(new, acceptance);
                    let decision =
                        NewDecision::new("install", &new.id, TrustVerdict::Accepted, reason);
                    record(sql, &decision.of_release(new), at)?;
                    Ok(InstallOutcome::Installed {
                        installed,
                        previous,
                    })
                }
                ReleaseDecision::Hold => {
                    let held = decide::hold(sql, &candidate, at)?;
                    let old = surface_of(sql, previous.as_ref())?;
                    let difference = old.difference(&candidate.surface);
                    let reason = format!(
                        "the surface {} is not the one accepted: {} changes",
                        held.surface,
                        difference.changes.len()
                    );
                    let decision =
                        NewDecision::new("install", &held.id, TrustVerdict::Held, reason);
                    record(sql, &decision.of_release(&held), at)?;
                    Ok(InstallOutcome::Held {
                        held,
                        current: previous,
                        difference,
                    })
                }
            }
        })
    }

    /// The held updates, by id, each with the difference between its surface and the installed
    /// surface.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn pending(&self) -> Result<Vec<(HeldUpdate, SurfaceDifference)>, Error> {
        self.state.read(|sql| {
            let held = HeldUpdate::all(sql)?.into_iter();
            held.map(|held| {
                let old = surface_of(sql, InstalledBundle::of(sql, &held.id)?.as_ref())?;
                let difference = old.difference(&model::surface(sql, &held.surface)?);
                Ok((held, difference))
            })
            .collect()
        })
    }

    /// Installs the held update of `id`, whose surface a person saw and accepts. The update is
    /// verified again, so a release that was revoked while it was held does not replace a working
    /// release.
    ///
    /// # Errors
    /// [`Error::NotHeld`]; [`Error::SurfaceMismatch`] if the held update has another surface than the
    /// accepted one; the errors of [`Store::load`]; [`Error::Refused`] and [`Error::Duplicate`] if
    /// the state has changed since.
    pub fn accept(
        &self,
        id: &str,
        surface: &Digest,
        verify: &Verify<'_>,
        now: SystemTime,
    ) -> Result<InstalledBundle, Error> {
        let result = self.try_accept(id, surface, verify, now);
        result.inspect_err(|error| {
            // The refusal stands, whether or not it can be recorded.
            let _ = self.record(&NewDecision::refused("accept", id, error), now);
        })
    }

    fn try_accept(
        &self,
        id: &str,
        surface: &Digest,
        verify: &Verify<'_>,
        now: SystemTime,
    ) -> Result<InstalledBundle, Error> {
        let at = state::seconds(now);
        let not_held = || Error::NotHeld { id: id.to_owned() };
        let _lock = self.share_objects()?;
        let held = self.state.read(|sql| HeldUpdate::of(sql, id))?;
        let held = held.ok_or_else(not_held)?;
        if held.surface != *surface {
            return Err(Error::SurfaceMismatch {
                id: id.to_owned(),
                accepted: *surface,
                found: held.surface,
            });
        }
        self.open_object(&held, verify)?;
        self.state.write(|sql| {
            // Another update may have replaced the held one since it was read.
            let still = HeldUpdate::of(sql, id)?.filter(|still| still.digest == held.digest);
            let held = still.ok_or_else(not_held)?;
            let surface = model::surface(sql, &held.surface)?;
            let candidate = ReleaseCandidate { held, surface };
            // If the release was installed in the meantime, only the held copy is removed.
            if let ReleaseDecision::Unchanged(installed) =
                decide::decide(sql, &candidate, Some(candidate.held.surface))?
            {
                sql.execute("DELETE FROM held WHERE id = ?1", [id])?;
                decide::forget_surfaces(sql)?;
                return Ok(*installed);
            }
            let installed = decide::install(sql, &candidate, Acceptance::Accepted, at)?;
            let reason = format!("the surface {} was accepted", installed.surface);
            let decision = NewDecision::new("accept", id, TrustVerdict::Accepted, reason);
            record(sql, &decision.of_release(&candidate.held), at)?;
            Ok(installed)
        })
    }

    /// Removes a bundle and its held update. Its sequence marks stay; its file stays until garbage
    /// is collected. Returns the removed bundle; `None` if only an update was held.
    ///
    /// # Errors
    /// [`Error::NotInstalled`] if neither exists.
    pub fn remove(&self, id: &str, now: SystemTime) -> Result<Option<InstalledBundle>, Error> {
        let at = state::seconds(now);
        self.state.write(|sql| {
            let installed = InstalledBundle::of(sql, id)?;
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
            record(sql, &decision, at)?;
            Ok(installed)
        })
    }

    /// Deletes the files of a bundle that is to be removed, for a disk that is too full to record
    /// [`Store::remove`]. Also collects garbage, unless the newest changes of the state could not
    /// be read. The recorded sequences, documents and revocations stay. Until the bundle is
    /// removed, its file is missing. Returns the number of deleted bundles.
    ///
    /// # Errors
    /// [`Error::NotInstalled`]; [`Error::ReadOnly`] if no file can be removed either.
    pub fn make_room(&self, id: &str) -> Result<u64, Error> {
        let _lock = lock_objects(&self.directory, LockKind::Exclusive)?;
        let all = self.all_releases()?.into_iter();
        let (own, others): (Vec<_>, Vec<_>) = all.partition(|(one, _)| one.id == id);
        if own.is_empty() {
            return Err(Error::NotInstalled { id: id.to_owned() });
        }
        let digests = |all: Vec<(StoredRelease, bool)>| all.into_iter().map(|(one, _)| one.digest);
        let used: HashSet<Digest> = digests(others).collect();
        let own: HashSet<Digest> = digests(own).filter(|own| !used.contains(own)).collect();
        // If the newest changes could not be read, they may refer to any other file, so only the
        // bundle's own files are deleted.
        self.objects.sweep(|digest| match self.log_unread() {
            true => !own.contains(digest),
            false => used.contains(digest),
        })
    }

    /// Collects garbage: deletes the files of bundles that are neither installed nor held, and
    /// unfinished files. It waits for readers and writers of bundles, and they wait while it runs.
    /// Returns the number of deleted bundles.
    ///
    /// # Errors
    /// [`Error::Busy`] if others use the store for more than a minute.
    pub fn gc(&self) -> Result<u64, Error> {
        let _lock = lock_objects(&self.directory, LockKind::Exclusive)?;
        let all = self.all_releases()?.into_iter();
        let used: HashSet<Digest> = all.map(|(one, _)| one.digest).collect();
        self.objects.sweep(|digest| used.contains(digest))
    }
}

/// The surface of an installed bundle, or the empty surface.
fn surface_of(
    sql: &Transaction<'_>,
    installed: Option<&InstalledBundle>,
) -> Result<BundleSurface, Error> {
    installed.map_or_else(
        || Ok(BundleSurface::empty()),
        |one| model::surface(sql, &one.surface),
    )
}

fn candidate(
    bundle: &Verified<Bundle>,
    options: &InstallOptions,
    libraries: &dyn Libraries,
) -> Result<ReleaseCandidate, Error> {
    let content = Content::from_verified_with(bundle.clone(), libraries)?;
    let surface = BundleSurface::of(&content);
    let release = StoredRelease {
        id: bundle.manifest.id.clone(),
        digest: bundle.manifest_digest,
        version: bundle.manifest.version.clone(),
        sequence: bundle.manifest.sequence,
        publisher: bundle.publisher.name().to_owned(),
        signers: bundle.signers.clone(),
        surface: surface.digest(),
        source: options.source.clone(),
        at: state::timestamp(state::seconds(options.now))?,
    };
    Ok(ReleaseCandidate {
        held: HeldUpdate {
            release,
            allow_rollback: options.allow_rollback.clone(),
        },
        surface,
    })
}

fn reason(new: &HeldUpdate, acceptance: Acceptance) -> String {
    let why = match acceptance {
        Acceptance::First => "first installation",
        Acceptance::SameSurface => "the surface is the same",
        Acceptance::Accepted => "the surface was accepted",
    };
    let reason = format!(
        "{why}; version {}, sequence {}, surface {}, from {}",
        new.version, new.sequence, new.surface, new.source
    );
    match &new.allow_rollback {
        Some(back) => format!("{reason}; going back was allowed: {back}"),
        None => reason,
    }
}

//! Loads and verifies the store's bundles with the current trust and revocations. Each file is
//! opened once, and exactly the verified bytes are returned. A stored surface (what a model or a
//! policy sees of a bundle) in an earlier format version is replaced by the same bundle's surface
//! in the current version. Otherwise the fields that a new format version adds would look like
//! changes of a release.

use std::fs::File;
use std::sync::Arc;
use std::time::SystemTime;

use rusqlite::{Transaction, params};
use toolward_bundle::libraries::Libraries;
use toolward_bundle::surface::{BundleSurface, Version};
use toolward_bundle::{Content, parallel};
use toolward_signing::verify::{Bundle, ReopenFn, Verified};
use toolward_signing::{ErrorKind, Refusal};

use crate::audit_log::{NewDecision, TrustVerdict, record};
use crate::decide;
use crate::error::Error;
use crate::model::{self, HeldUpdate, InstalledBundle, StoredRelease, StoredRow as _};
use crate::state;
use crate::store::Store;

/// Verifies an archive as of now:
/// [`archive_file`](toolward_signing::verify::archive_file) with the operator's trust store,
/// revocations and denials. Called from several threads.
pub type Verify<'a> = dyn Fn(&mut File) -> Result<Verified<Bundle>, Refusal> + Sync + 'a;

/// Verifies an archive as [`Verify`] does; also gets a function that opens it again.
pub type VerifyObject<'a> =
    dyn Fn(&mut File, &Arc<ReopenFn>) -> Result<Verified<Bundle>, Refusal> + Sync + 'a;

/// An installed bundle with its verified bytes or a value made from them, or with the error that
/// prevents its use.
#[derive(Debug)]
pub struct LoadedBundle<T = Verified<Bundle>> {
    /// The stored facts.
    pub installed: InstalledBundle,
    /// The verified bundle or the value made from it, or the error.
    pub bundle: Result<T, Error>,
    /// Whether components of the bundle were left unread: only its documents were verified.
    pub is_partly_read: bool,
}

/// The result for one bundle of [`Store::verify_all`].
#[derive(Debug)]
pub struct VerifyResult {
    /// The bundle's id.
    pub id: String,
    /// The bundle's version.
    pub version: semver::Version,
    /// Whether this is a held update.
    pub held: bool,
    /// `Ok` if the file is the recorded release and a host would accept it.
    pub result: Result<(), Error>,
}

/// A file of an installed bundle that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("a file of the store: {0}")]
struct UnreadableFile(#[source] Refusal);

impl Store {
    /// Loads an installed bundle, and records the result.
    ///
    /// # Errors
    /// [`Error::NotInstalled`]; the refusals of `verify`; [`Error::ObjectMissing`],
    /// [`Error::ObjectChanged`] and [`Error::PublisherChanged`] if the file is no longer the installed
    /// bundle.
    pub fn load(
        &self,
        id: &str,
        verify: &Verify<'_>,
        now: SystemTime,
    ) -> Result<(InstalledBundle, Verified<Bundle>), Error> {
        let _lock = self.share_objects()?;
        let installed = self.state.read(|sql| InstalledBundle::of(sql, id))?;
        let installed = installed.ok_or_else(|| Error::NotInstalled { id: id.to_owned() })?;
        let bundle = self.open_object(&installed, verify);
        let decision = match &bundle {
            Ok(_) => NewDecision::new("load", id, TrustVerdict::Accepted, "verified".to_owned()),
            Err(error) => NewDecision::refused("load", id, error).of_release(&installed),
        };
        let recorded = self.recorded(self.record(&decision, now));
        // A refusal stands, whether or not it can be recorded.
        let bundle = bundle?;
        recorded?;
        Ok((installed, bundle))
    }

    /// Loads all installed bundles, by id, on all processors, and calls `make` for each while
    /// others are still loading. A refused bundle doesn't prevent others from loading. One decision
    /// is recorded for each refusal, and one for all accepted bundles. The results of `make` are
    /// not recorded.
    ///
    /// # Errors
    /// When the state can't be read or written.
    pub fn load_all_as<T: Send>(
        &self,
        verify: &VerifyObject<'_>,
        make: &(dyn Fn(Verified<Bundle>) -> T + Sync),
        now: SystemTime,
    ) -> Result<Vec<LoadedBundle<T>>, Error> {
        let loaded = self.load_objects(verify, make)?;
        self.record_load(&loaded, now)?;
        Ok(loaded)
    }

    /// Verifies all installed bundles as [`Store::load_all_as`] does, but records nothing. Use this
    /// function to list the bundles that would be loaded.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn examine<T: Send>(
        &self,
        verify: &Verify<'_>,
        make: &(dyn Fn(Verified<Bundle>) -> T + Sync),
    ) -> Result<Vec<LoadedBundle<T>>, Error> {
        self.load_objects(&|file, _| verify(file), make)
    }

    fn load_objects<T: Send>(
        &self,
        verify: &VerifyObject<'_>,
        make: &(dyn Fn(Verified<Bundle>) -> T + Sync),
    ) -> Result<Vec<LoadedBundle<T>>, Error> {
        let _lock = self.share_objects()?;
        let installed = self.state.read(InstalledBundle::all)?;
        let load = |one: &InstalledBundle| {
            let reopen = self.objects.reopen(one.digest);
            let bundle = self.open_object(one, &|file| verify(file, &reopen));
            let is_partly_read = bundle.as_ref().is_ok_and(|one| !one.unread.is_empty());
            (bundle.map(make), is_partly_read)
        };
        let bundles = parallel::each(&installed, load);
        let loaded = installed.into_iter().zip(bundles);
        let loaded = loaded.map(|(installed, (bundle, is_partly_read))| LoadedBundle {
            installed,
            bundle,
            is_partly_read,
        });
        Ok(loaded.collect())
    }

    /// Verifies all installed and held releases, one after the other, and checks their contents and
    /// surfaces. `libraries` has the actions of the installed bundles. Calls `tell` with each
    /// result, records each refusal and the number of verified bundles, and returns the number of
    /// refusals.
    ///
    /// # Errors
    /// When the state can't be read or written.
    pub fn verify_all(
        &self,
        verify: &Verify<'_>,
        libraries: &dyn Libraries,
        now: SystemTime,
        tell: &mut dyn FnMut(&VerifyResult),
    ) -> Result<usize, Error> {
        let _lock = self.share_objects()?;
        let all = self.all_releases()?;
        let mut refusals = 0_usize;
        for (one, held) in &all {
            let result = self.open_object(one, verify).and_then(|bundle| {
                let content = Content::from_verified_with(bundle, libraries)?;
                one.check_actions(&content)?;
                if BundleSurface::is_of(&content, &one.surface) {
                    return Ok(());
                }
                let found = BundleSurface::of(&content).digest();
                Err(Error::ObjectChanged {
                    id: one.id.clone(),
                    expected: format!("surface {}", one.surface),
                    found: format!("surface {found}"),
                })
            });
            if let Err(error) = &result {
                refusals = refusals.saturating_add(1);
                let refused = NewDecision::refused("verify", &one.id, error).of_release(one);
                self.recorded(self.record(&refused, now))?;
            }
            tell(&VerifyResult {
                id: one.id.clone(),
                version: one.version.clone(),
                held: *held,
                result,
            });
        }
        let sound = all.len().saturating_sub(refusals);
        let reason = format!("{sound} of {} bundles verified", all.len());
        let accepted = NewDecision::new("verify", "all", TrustVerdict::Accepted, reason);
        self.recorded(self.record(&accepted, now))?;
        Ok(refusals)
    }

    /// Whether an installed or held release has a surface in an earlier format version.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn has_earlier_surfaces(&self) -> Result<bool, Error> {
        self.state.read(|sql| {
            let query =
                "SELECT EXISTS (SELECT 1 FROM surface WHERE substr(bytes, 1, length(?1)) <> ?1)";
            let mut statement = sql.prepare_cached(query)?;
            Ok(statement.query_row([Version::CURRENT.header()], |row| row.get(0))?)
        })
    }

    /// Replaces surfaces in an earlier format version by the current surfaces of the same bundles.
    /// If the earlier surface of an installed bundle still matches the bundle with the current
    /// `libraries`, the current surface counts as accepted. A bundle that no longer verifies, or
    /// whose actions changed, keeps its earlier surface, so its next update is held. A held update
    /// stays held.
    ///
    /// # Errors
    /// When the state can't be read or written.
    pub fn renew_surfaces(
        &self,
        verify: &Verify<'_>,
        libraries: &dyn Libraries,
        now: SystemTime,
    ) -> Result<(), Error> {
        let _lock = self.share_objects()?;
        for (one, is_held) in self.all_releases()? {
            let earlier = self.state.read(|sql| model::surface(sql, &one.surface))?;
            if earlier.version() == Version::CURRENT {
                continue;
            }
            let bundle = self.open_object(&one, verify).ok();
            let content = bundle.and_then(|one| Content::from_verified_with(one, libraries).ok());
            let Some(content) = content else { continue };
            if !is_held && !BundleSurface::is_of(&content, &one.surface) {
                continue;
            }
            let surface = BundleSurface::of(&content);
            self.state
                .write(|sql| renew(sql, &one, &surface, is_held, state::seconds(now)))?;
        }
        Ok(())
    }

    /// All installed releases, then all held releases, each with whether it is held.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn all_releases(&self) -> Result<Vec<(StoredRelease, bool)>, Error> {
        self.state.read(|sql| {
            let installed = InstalledBundle::all(sql)?.into_iter();
            let held = HeldUpdate::all(sql)?.into_iter();
            let installed = installed.map(|installed| (installed.release, false));
            Ok(installed
                .chain(held.map(|held| (held.release, true)))
                .collect())
        })
    }

    /// Reads and verifies one file, which must be the release in the state.
    pub(crate) fn open_object(
        &self,
        one: &StoredRelease,
        verify: &Verify<'_>,
    ) -> Result<Verified<Bundle>, Error> {
        let file = self.objects.open(&one.digest)?;
        let mut file = file.ok_or_else(|| Error::ObjectMissing {
            id: one.id.clone(),
            digest: one.digest,
        })?;
        let bundle = verify(&mut file).map_err(|refusal| match refusal.kind() {
            // An I/O error is not a verdict about the bundle.
            ErrorKind::Io => Error::Io(Box::new(UnreadableFile(refusal))),
            _ => refusal.into(),
        })?;
        if bundle.manifest_digest != one.digest || bundle.manifest.id != one.id {
            return Err(Error::ObjectChanged {
                id: one.id.clone(),
                expected: format!("{} {}", one.id, one.digest),
                found: format!("{} {}", bundle.manifest.id, bundle.manifest_digest),
            });
        }
        if bundle.publisher.name() != one.publisher {
            return Err(Error::PublisherChanged {
                id: one.id.clone(),
                expected: one.publisher.clone(),
                found: bundle.publisher.name().to_owned(),
            });
        }
        Ok(bundle)
    }

    /// Records one decision for all accepted bundles, and one for each refusal.
    fn record_load<T>(&self, loaded: &[LoadedBundle<T>], now: SystemTime) -> Result<(), Error> {
        let mut decisions = Vec::new();
        let accepted = loaded.iter().filter(|one| one.bundle.is_ok()).count();
        if accepted > 0 {
            let partly = loaded.iter().filter(|one| one.is_partly_read).count();
            let mut reason = format!("{accepted} of {} installed bundles verified", loaded.len());
            if partly > 0 {
                reason.push_str(&format!(", {partly} of them: documents verified"));
            }
            let verdict = TrustVerdict::Accepted;
            decisions.push(NewDecision::new("load", "all", verdict, reason));
        }
        for one in loaded {
            if let Err(error) = &one.bundle {
                let refused = NewDecision::refused("load", &one.installed.id, error);
                decisions.push(refused.of_release(&one.installed));
            }
        }
        // If all bundles were accepted, the record need not survive a power cut, so a start doesn't
        // wait for the disk.
        let wait = accepted < loaded.len();
        self.recorded(self.record_all(&decisions, now, wait))
    }
}

fn renew(
    sql: &Transaction<'_>,
    one: &StoredRelease,
    surface: &BundleSurface,
    is_held: bool,
    at: i64,
) -> Result<(), Error> {
    let digest = surface.digest().to_string();
    decide::write_surface(sql, surface)?;
    let update = match is_held {
        false => "UPDATE installed SET surface = ?1 WHERE id = ?2 AND digest = ?3 AND surface = ?4",
        true => "UPDATE held SET surface = ?1 WHERE id = ?2 AND digest = ?3 AND surface = ?4",
    };
    let of = params![
        digest,
        one.id,
        one.digest.to_string(),
        one.surface.to_string()
    ];
    if sql.execute(update, of)? > 0 {
        if !is_held {
            decide::write_provides(sql, &one.id, surface)?;
        }
        let reason = format!(
            "the surface {} is {digest} since surfaces have more fields",
            one.surface
        );
        let decision = NewDecision::new("surface", &one.id, TrustVerdict::Accepted, reason);
        record(sql, &decision.of_release(one), at)?;
    }
    decide::forget_surfaces(sql)
}

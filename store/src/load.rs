//! From the store's files to verified bundles. Each file is opened once, and what comes out are the bytes that
//! were verified, with the trust and the revocations of now.

use std::fs::File;
use std::time::SystemTime;

use toolward_bundle::libraries::Libraries;
use toolward_bundle::surface::BundleSurface;
use toolward_bundle::{Content, parallel};
use toolward_signing::verify::{Bundle, Verified};
use toolward_signing::{ErrorKind, Refusal};

use crate::audit_log::{NewDecision, Verdict};
use crate::error::Error;
use crate::lock;
use crate::model::{self, Held, Installed};
use crate::store::Store;

/// Verifies an archive as things stand now:
/// [`archive_file`](toolward_signing::verify::archive_file) with the operator's trust store,
/// revocations and denials. Called from several threads.
pub type Verify<'a> = dyn Fn(&mut File) -> Result<Verified<Bundle>, Refusal> + Sync + 'a;

/// An installed bundle, and its verified bytes, or what was made of them, or why there are none.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded<T = Verified<Bundle>> {
    /// What is installed.
    pub installed: Installed,
    /// The bundle.
    pub bundle: Result<T, Error>,
}

/// How one bundle of [`Store::verify_all`] came out.
#[derive(Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The bundle's id.
    pub id: String,
    /// Its version.
    pub version: semver::Version,
    /// Whether this is an update that waits.
    pub held: bool,
    /// Its number, from 1.
    pub number: usize,
    /// How many there are.
    pub total: usize,
    /// Whether it is what was installed, and a host would take it.
    pub result: Result<(), Error>,
}

/// A file of an installed bundle that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("a file of the store: {0}")]
struct Unread(#[source] Refusal);

impl Store {
    /// Loads an installed bundle. How it came out is recorded.
    ///
    /// # Errors
    /// [`Error::NotInstalled`]; the refusals of `verify`; [`Error::ObjectMissing`],
    /// [`Error::ObjectChanged`] and [`Error::PublisherChanged`] for what is no longer what was installed.
    pub fn load(
        &self,
        id: &str,
        verify: &Verify<'_>,
        now: SystemTime,
    ) -> Result<(Installed, Verified<Bundle>), Error> {
        let _lock = lock::shared(&self.directory)?;
        let installed = self.state.read(|sql| model::one_installed(sql, id))?;
        let installed = installed.ok_or_else(|| Error::NotInstalled { id: id.to_owned() })?;
        let bundle = self.open_object(&as_held(&installed), verify);
        let decision = match &bundle {
            Ok(_) => accepted("load", id, "verified".to_owned()),
            Err(error) => refused("load", &as_held(&installed), error),
        };
        let recorded = self.recorded(self.record(&decision, now));
        // A refusal stands, whether or not it can be written down.
        let bundle = bundle?;
        recorded?;
        Ok((installed, bundle))
    }

    /// Loads all installed bundles, by id, on all processors. One that is refused doesn't keep the others
    /// from loading; refusals are recorded, and that the rest was accepted.
    ///
    /// # Errors
    /// When the state can't be read or written.
    pub fn load_all(&self, verify: &Verify<'_>, now: SystemTime) -> Result<Vec<Loaded>, Error> {
        self.load_all_as(verify, &|bundle| bundle, now)
    }

    /// Loads all installed bundles as [`Store::load_all`] does, and makes something of each while its
    /// neighbours are loaded. What that comes to is not the store's affair, and not recorded.
    ///
    /// # Errors
    /// When the state can't be read or written.
    pub fn load_all_as<T: Send>(
        &self,
        verify: &Verify<'_>,
        make: &(dyn Fn(Verified<Bundle>) -> T + Sync),
        now: SystemTime,
    ) -> Result<Vec<Loaded<T>>, Error> {
        let loaded = self.each_installed(verify, make)?;
        self.record_load(&loaded, now)?;
        Ok(loaded)
    }

    /// Verifies all installed bundles as [`Store::load_all_as`] does, and records nothing: for lists, which say
    /// what would be loaded.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn examine<T: Send>(
        &self,
        verify: &Verify<'_>,
        make: &(dyn Fn(Verified<Bundle>) -> T + Sync),
    ) -> Result<Vec<Loaded<T>>, Error> {
        self.each_installed(verify, make)
    }

    /// Loads all installed bundles, by id, on all processors.
    fn each_installed<T: Send>(
        &self,
        verify: &Verify<'_>,
        make: &(dyn Fn(Verified<Bundle>) -> T + Sync),
    ) -> Result<Vec<Loaded<T>>, Error> {
        let _lock = lock::shared(&self.directory)?;
        let installed = self.state.read(model::all_installed)?;
        let load = |one: &Installed| self.open_object(&as_held(one), verify).map(make);
        let bundles = parallel::each(&installed, load);
        let loaded = (installed.into_iter().zip(bundles))
            .map(|(installed, bundle)| Loaded { installed, bundle });
        Ok(loaded.collect())
    }

    /// Verifies all that is installed or held, one after the other, as deeply as an installation does, and
    /// tells each result. `libraries`: the actions of what is installed. How many were refused is what comes back; refusals are recorded.
    ///
    /// # Errors
    /// When the state can't be read or written.
    pub fn verify_all(
        &self,
        verify: &Verify<'_>,
        libraries: &dyn Libraries,
        now: SystemTime,
        tell: &mut dyn FnMut(&Checked),
    ) -> Result<usize, Error> {
        let _lock = lock::shared(&self.directory)?;
        let (installed, held) = self
            .state
            .read(|sql| Ok((model::all_installed(sql)?, model::all_held(sql)?)))?;
        let installed: Vec<_> = installed.iter().map(|one| (as_held(one), false)).collect();
        let all = installed
            .into_iter()
            .chain(held.into_iter().map(|one| (one, true)));
        let all: Vec<_> = all.collect();
        let mut refusals = 0_usize;
        for (position, (one, held)) in all.iter().enumerate() {
            let result = self.open_object(one, verify).and_then(|bundle| {
                let content = Content::from_verified_with(bundle, libraries)?;
                if BundleSurface::is_of(&content, &one.surface) {
                    return Ok(());
                }
                let found = BundleSurface::of(&content).digest();
                if content.takes_actions() {
                    return Err(Error::ActionsChanged {
                        id: one.id.clone(),
                        accepted: one.surface,
                        found,
                    });
                }
                Err(changed(
                    one,
                    format!("surface {}", one.surface),
                    format!("surface {found}"),
                ))
            });
            if let Err(error) = &result {
                refusals = refusals.saturating_add(1);
                self.recorded(self.record(&refused("verify", one, error), now))?;
            }
            tell(&Checked {
                id: one.id.clone(),
                version: one.version.clone(),
                held: *held,
                number: position.saturating_add(1),
                total: all.len(),
                result,
            });
        }
        let sound = all.len().saturating_sub(refusals);
        let reason = format!("{sound} of {} bundles verified", all.len());
        self.recorded(self.record(&accepted("verify", "all", reason), now))?;
        Ok(refusals)
    }

    /// Reads and verifies one file: it must be what the state says.
    pub(crate) fn open_object(
        &self,
        one: &Held,
        verify: &Verify<'_>,
    ) -> Result<Verified<Bundle>, Error> {
        let file = self.objects.open(&one.digest)?;
        let mut file = file.ok_or_else(|| Error::ObjectMissing {
            id: one.id.clone(),
            digest: one.digest,
        })?;
        let bundle = verify(&mut file).map_err(|refusal| match refusal.kind() {
            // Nothing was found out about the bundle.
            ErrorKind::Io => Error::Io(Box::new(Unread(refusal))),
            _ => refusal.into(),
        })?;
        if bundle.manifest_digest != one.digest || bundle.manifest.id != one.id {
            let found = format!("{} {}", bundle.manifest.id, bundle.manifest_digest);
            return Err(changed(one, format!("{} {}", one.id, one.digest), found));
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

    /// One row for all that was accepted, and one for each refusal: a start is one decision.
    fn record_load<T>(&self, loaded: &[Loaded<T>], now: SystemTime) -> Result<(), Error> {
        let mut decisions = Vec::new();
        let accepted = loaded.iter().filter(|one| one.bundle.is_ok()).count();
        if accepted > 0 {
            let reason = format!("{accepted} of {} installed bundles verified", loaded.len());
            decisions.push(self::accepted("load", "all", reason));
        }
        for one in loaded {
            if let Err(error) = &one.bundle {
                decisions.push(refused("load", &as_held(&one.installed), error));
            }
        }
        if accepted == loaded.len() {
            // That all was well need not survive a power cut: a start waits for no disk.
            return self.recorded(self.record_soon(&decisions, now));
        }
        self.recorded(self.record_all(&decisions, now))
    }
}

fn accepted(action: &str, subject: &str, reason: String) -> NewDecision {
    NewDecision {
        action: action.to_owned(),
        subject: subject.to_owned(),
        publisher: None,
        digest: None,
        verdict: Verdict::Accepted,
        code: None,
        reason,
    }
}

fn refused(action: &str, one: &Held, error: &Error) -> NewDecision {
    NewDecision {
        publisher: Some(one.publisher.clone()),
        digest: Some(one.digest),
        ..NewDecision::refused(action, &one.id, error)
    }
}

fn changed(one: &Held, expected: String, found: String) -> Error {
    Error::ObjectChanged {
        id: one.id.clone(),
        expected,
        found,
    }
}

/// What is to be loaded, in the form that installed and held bundles share.
pub(crate) fn as_held(installed: &Installed) -> Held {
    Held {
        id: installed.id.clone(),
        digest: installed.digest,
        version: installed.version.clone(),
        sequence: installed.sequence,
        publisher: installed.publisher.clone(),
        signers: installed.signers.clone(),
        surface: installed.surface,
        source: installed.source.clone(),
        at: installed.at,
        allow_rollback: None,
    }
}

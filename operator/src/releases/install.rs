//! Installs releases, fetched or held, after checking signatures and age.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

use toolward_bundle::libraries::{Reading, Shelf};
use toolward_host::Broker;
use toolward_ledger::record::TrustAction;
use toolward_registry::Source;
use toolward_signing::Digest;
use toolward_signing::verify::{Bundle, Verified};
use toolward_store::{HeldUpdate, InstallOptions, InstallOutcome, InstalledBundle, Store};

use super::{ConfirmMove, Place, compile_ahead};
use crate::environment::Environment;
use crate::error::Error;
use crate::installed;
use crate::network::Fetcher;
use crate::report::Report;
use crate::trust::TrustContext;
use crate::trust::rows::{self, TrustRows};

/// Installs bundles. Fetching blocks, see [`network`](crate::network).
///
/// ```no_run
/// use toolward_operator::installed::StoreLocation;
/// use toolward_operator::network::Network;
/// use toolward_operator::releases::{Installer, Place};
/// use toolward_operator::trust::Trust;
/// use toolward_operator::{Environment, Silent};
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let environment = Environment::of_process();
/// let trust = Trust::default();
/// let installer = Installer {
///     channel: None,
///     accept: None,
///     allow_rollback: None,
///     move_source: None,
///     network: &Network::default().fetcher(&trust, &environment)?,
///     store: &StoreLocation::default().open(&environment)?,
///     context: &trust.context(&environment, &Silent)?,
///     environment: &environment,
///     compiler: None,
///     rows: None,
///     report: &Silent,
/// };
/// let outcome = installer.install(&Place::parse("notes.toolbundle")?, None)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Installer<'a> {
    /// The channel whose index lists the current release; by default the one that the
    /// operator set for the publisher, or the only one.
    pub channel: Option<&'a str>,
    /// The accepted surface; a release with another one is held.
    pub accept: Option<Digest>,
    /// The reason to allow a rollback, if one is allowed.
    pub allow_rollback: Option<&'a str>,
    /// Asks whether a bundle may come from another place than before; without it none may.
    pub move_source: Option<ConfirmMove<'a>>,
    /// What fetches.
    pub network: &'a Fetcher,
    /// The store to install into.
    pub store: &'a Store,
    /// Whom to trust.
    pub context: &'a TrustContext,
    /// The operator's directories.
    pub environment: &'a Environment,
    /// Compiles the drivers of what was installed into its cache. Never those of a held
    /// release.
    pub compiler: Option<&'a Broker>,
    /// Records what was installed, held, accepted and rolled back in the ledger, beside the store's own log.
    pub rows: Option<TrustRows<'a>>,
    /// Receives warnings and progress.
    pub report: &'a dyn Report,
}

impl Installer<'_> {
    /// Installs the bundle from a source. If `expected` is given, the bundle must have
    /// that id.
    ///
    /// # Errors
    /// If it can't be fetched or is refused; `source-moves` if it is installed from another place.
    pub fn install(&self, place: &Place, expected: Option<&str>) -> Result<InstallOutcome, Error> {
        let source = &place.source;
        let bundle = self
            .network
            .bundle(source, expected, self.context, self.report)?;
        let current = self.current(source, bundle.publisher.name())?;
        let freshness = current.freshness();
        let warnings = freshness
            .check(&bundle.manifest, &bundle.manifest_digest)
            .map_err(Error::refused)?;
        for warning in warnings.iter().chain(&bundle.warnings) {
            self.report.warning(warning);
        }
        let moved = self.check_place(&bundle, place)?;
        let options = InstallOptions {
            source: place.recorded.clone(),
            now: self.context.now,
            allow_rollback: self.allow_rollback.map(str::to_owned),
            accept: self.accept,
        };
        let shelf = match Reading::new(bundle.clone()).is_open() {
            true => installed::libraries(self.store, self.context, Some(&bundle.manifest.id))?,
            false => Shelf::default(),
        };
        installed::renew_surfaces(self.store, self.context)?;
        let waiting = rows::waiting(self.store)?;
        let highest = self.highest(&bundle)?;
        let outcome = self.store.install_with(&bundle, &options, &shelf)?;
        let left = moved.as_ref().map(|moved| moved.from.clone());
        if let Some(moved) = moved {
            self.keep_move(moved)?;
        }
        if let InstallOutcome::Installed { installed, .. } = &outcome {
            let action = match installed.sequence < highest {
                true => TrustAction::RolledBack,
                false => TrustAction::Installed,
            };
            self.record(action, installed);
        }
        if let InstallOutcome::Installed {
            previous: Some(_), ..
        } = outcome
        {
            // Does not wait for readers of the old file.
            let _ = self.store.gc();
        }
        if let InstallOutcome::Installed { .. } = outcome {
            self.compile_ahead(bundle);
            installed::hold_changed(self.store, self.context, self.report)?;
        }
        rows::record_held(self.rows, self.store, &waiting)?;
        self.settle_hosts(left.as_deref());
        Ok(outcome)
    }

    /// Keeps what was confirmed about downloads, and forgets it for a source that was left. What is installed stays so
    /// where that fails.
    fn settle_hosts(&self, left: Option<&str>) {
        let settled = || -> Result<(), Error> {
            self.network.keep_confirmed()?;
            match left {
                Some(left) => self.network.forget(left, installed::sources(self.store)?),
                None => Ok(()),
            }
        };
        if let Err(error) = settled() {
            self.report.warning(&format!(
                "what was allowed about downloads is not settled: {error}"
            ));
        }
    }

    /// The highest sequence of this bundle that was installed, or 0.
    fn highest(&self, bundle: &Bundle) -> Result<u64, Error> {
        let (id, publisher) = (&bundle.manifest.id, bundle.publisher.name());
        let marks = self.store.marks()?.into_iter();
        let own = marks.filter(|mark| mark.id == *id && mark.publisher == publisher);
        Ok(own.map(|mark| mark.sequence).max().unwrap_or_default())
    }

    fn record(&self, action: TrustAction, installed: &InstalledBundle) {
        if let Some(rows) = &self.rows {
            rows.record(action, &[installed.into()]);
        }
    }

    fn compile_ahead(&self, bundle: Verified<Bundle>) {
        if let Some(broker) = self.compiler {
            compile_ahead::compile(bundle, broker, self.report);
        }
    }

    /// Installs the current release from the source of an installed bundle: the one
    /// that the channel lists, else the newest.
    ///
    /// # Errors
    /// `release-missing` if there is none; otherwise as [`Installer::install`].
    pub fn update(&self, installed: &InstalledBundle) -> Result<InstallOutcome, Error> {
        let place = self.newest(installed, Place::parse(&installed.source)?)?;
        self.install(&place, Some(&installed.id))
    }

    /// Installs a held release with an accepted surface, if it is still trusted and
    /// current.
    ///
    /// # Errors
    /// If it is not, or another surface is held by now.
    pub fn accept(&self, held: &HeldUpdate, surface: &Digest) -> Result<InstalledBundle, Error> {
        let source = Source::parse(&held.source)?;
        let current = self.current(&source, &held.publisher)?;
        let warnings = Mutex::new(Vec::new());
        let verified = Mutex::new(None);
        let verify = |file: &mut File| {
            let bundle = self.context.archive_file(file)?;
            let freshness = current.freshness();
            let found = freshness.check(&bundle.manifest, &bundle.manifest_digest)?;
            let mut warnings = warnings.lock().unwrap_or_else(PoisonError::into_inner);
            warnings.extend(found);
            let mut verified = verified.lock().unwrap_or_else(PoisonError::into_inner);
            *verified = Some(bundle.clone());
            Ok(bundle)
        };
        let now = self.context.now;
        installed::renew_surfaces(self.store, self.context)?;
        let waiting = rows::waiting(self.store)?;
        let before = self.store.installed(&held.id)?;
        let installed = self.store.accept(&held.id, surface, &verify, now)?;
        self.record(TrustAction::Accepted, &installed);
        let warnings = warnings.into_inner();
        for warning in warnings.unwrap_or_else(PoisonError::into_inner) {
            self.report.warning(&warning);
        }
        let verified = verified.into_inner();
        if let Some(bundle) = verified.unwrap_or_else(PoisonError::into_inner) {
            self.compile_ahead(bundle);
        }
        installed::hold_changed(self.store, self.context, self.report)?;
        rows::record_held(self.rows, self.store, &waiting)?;
        self.settle_hosts(before.map(|before| before.release.source).as_deref());
        Ok(installed)
    }
}

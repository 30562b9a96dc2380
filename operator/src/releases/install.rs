//! Installs releases, fetched or held, after checking their signatures and age.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use toolward_bundle::libraries::{Reading, Shelf};
use toolward_host::Broker;
use toolward_ledger::record::TrustAction;
use toolward_registry::Source;
use toolward_signing::Digest;
use toolward_signing::verify::Bundle;
use toolward_store::{HeldUpdate, InstallOptions, InstallOutcome, InstalledBundle, Store};
use toolward_support::helper::lock;

use super::ReleasePlace;
use crate::installed;
use crate::lasting_changes::{LastingChange, LastingChanges};
use crate::network::Fetcher;
use crate::trust::TrustContext;
use crate::trust::changes::{self, TrustRows};
use crate::{Code, Error, Kind, Report, Result};

/// Installs bundles. Fetching blocks; see [`network`](crate::network).
///
/// ```no_run
/// use toolward_operator::installed::StoreLocation;
/// use toolward_operator::network::Network;
/// use toolward_operator::releases::{Installer, ReleasePlace};
/// use toolward_operator::trust::Trust;
/// use toolward_operator::Environment;
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let environment = Environment::of_process();
/// let trust = Trust::default();
/// let installer = Installer {
///     channel: None,
///     accept: None,
///     allow_rollback: None,
///     move_source: None,
///     network: Network::default().fetcher(&trust, &environment)?,
///     store: StoreLocation::default().open(&environment)?,
///     context: trust.context(&environment)?,
///     compiler: None,
///     rows: None,
/// };
/// let outcome = installer.install(&ReleasePlace::parse("notes.toolbundle")?, None)?;
/// # Ok(())
/// # }
/// ```
pub struct Installer<'a> {
    /// The channel whose index lists the current release. By default, for a remote source, the
    /// channel that the operator set for the publisher, or the only channel.
    pub channel: Option<&'a str>,
    /// The surface (what models and policies see of a bundle) that a person accepted. A release
    /// with another surface is held.
    pub accept: Option<Digest>,
    /// The reason for allowing a rollback; `None` if none is allowed.
    pub allow_rollback: Option<&'a str>,
    /// Asks whether a bundle may come from another place than before. If `None`, it may not.
    pub move_source: Option<ConfirmMove<'a>>,
    /// Fetches bundles and documents.
    pub network: Fetcher,
    /// The store to install into.
    pub store: Store,
    /// Whom to trust.
    pub context: TrustContext,
    /// Compiles the drivers of installed releases into its cache. Drivers of held releases are not
    /// compiled.
    pub compiler: Option<Broker>,
    /// Records installed, held, accepted and rolled back releases in the ledger, in addition to the
    /// store's own log.
    pub rows: Option<TrustRows<'a>>,
}

impl Installer<'_> {
    pub(super) fn report(&self) -> &dyn Report {
        &*self.context.environment.report
    }

    /// Installs the bundle from a source. If `expected` is given, the bundle must have that id.
    ///
    /// # Errors
    /// If it can't be fetched or is refused; `source-moves` if the bundle is installed from another
    /// place, and no person is asked.
    pub fn install(&self, place: &ReleasePlace, expected: Option<&str>) -> Result<InstallOutcome> {
        let source = &place.source;
        let bundle = self.network.bundle(source, expected, &self.context)?;
        let current = self.current(source, bundle.publisher.name())?;
        let freshness = current.freshness();
        let warnings = freshness.check(&bundle.manifest, &bundle.manifest_digest)?;
        for warning in warnings.iter().chain(&bundle.warnings) {
            self.report().warning(warning);
        }
        let moved = self.check_place(&bundle, place)?;
        let options = InstallOptions {
            source: place.recorded.clone(),
            now: self.context.now,
            allow_rollback: self.allow_rollback.map(str::to_owned),
            accept: self.accept,
        };
        let shelf = match Reading::new(bundle.clone()).is_open() {
            true => installed::libraries(&self.store, &self.context, Some(&bundle.manifest.id))?,
            false => Shelf::default(),
        };
        installed::renew_surfaces(&self.store, &self.context)?;
        let waiting = changes::waiting(&self.store)?;
        let highest =
            (self.store).highest_sequence(bundle.publisher.name(), &bundle.manifest.id)?;
        let outcome = self.store.install(&bundle, &options, &shelf)?;
        if let Some(moved) = &moved {
            self.keep_move(moved)?;
        }
        if let InstallOutcome::Installed {
            installed,
            previous,
            ..
        } = &outcome
        {
            let action = match installed.sequence < highest {
                true => TrustAction::RolledBack,
                false => TrustAction::Installed,
            };
            self.record(action, installed);
            if previous.is_some() {
                // Deletes the replaced file. Waits at most a minute for readers of the store.
                let _ = self.store.gc();
            }
            self.compile_ahead(bundle);
            installed::hold_changed(&self.store, &self.context)?;
        }
        changes::record_held(self.rows.as_ref(), &self.store, &waiting)?;
        self.settle_hosts(moved.as_ref().map(|moved| moved.from.as_str()));
        Ok(outcome)
    }

    /// Stores the confirmed download hosts, and forgets the hosts of a source that is no longer
    /// used. The bundle stays installed even if this fails.
    fn settle_hosts(&self, left: Option<&str>) {
        let settled = || -> Result<()> {
            self.network.keep_confirmed()?;
            match left {
                Some(left) => self.network.forget(left, installed::sources(&self.store)?),
                None => Ok(()),
            }
        };
        if let Err(error) = settled() {
            self.report().warning(&format!(
                "what was allowed about downloads is not settled: {error}"
            ));
        }
    }

    fn record(&self, action: TrustAction, installed: &InstalledBundle) {
        if let Some(rows) = &self.rows {
            rows.record(action, std::slice::from_ref(&installed.release));
        }
    }

    /// Installs the current release from the source of an installed bundle: the release that the
    /// channel lists, otherwise the newest.
    ///
    /// # Errors
    /// `release-missing` if no release is found; otherwise as [`Installer::install`].
    pub fn update(&self, installed: &InstalledBundle) -> Result<InstallOutcome> {
        let place = self.newest(installed, ReleasePlace::parse(&installed.source)?)?;
        self.install(&place, Some(&installed.id))
    }

    /// Installs a held release whose surface was accepted, if the release is still trusted and
    /// current.
    ///
    /// # Errors
    /// If it is not trusted or current, or if another surface is held by now.
    pub fn accept(&self, held: &HeldUpdate, surface: &Digest) -> Result<InstalledBundle> {
        let source = Source::parse(&held.source)?;
        let current = self.current(&source, &held.publisher)?;
        let verified = Mutex::new(None);
        let verify = |file: &mut File| {
            let bundle = self.context.archive_file(file)?;
            let freshness = current.freshness();
            let warnings = freshness.check(&bundle.manifest, &bundle.manifest_digest)?;
            *lock(&verified) = Some((bundle.clone(), warnings));
            Ok(bundle)
        };
        let now = self.context.now;
        installed::renew_surfaces(&self.store, &self.context)?;
        let waiting = changes::waiting(&self.store)?;
        let before = self.store.installed(&held.id)?;
        let installed = self.store.accept(&held.id, surface, &verify, now)?;
        self.record(TrustAction::Accepted, &installed);
        let verified = lock(&verified).take();
        if let Some((bundle, warnings)) = verified {
            for warning in &warnings {
                self.report().warning(warning);
            }
            self.compile_ahead(bundle);
        }
        installed::hold_changed(&self.store, &self.context)?;
        changes::record_held(self.rows.as_ref(), &self.store, &waiting)?;
        self.settle_hosts(before.map(|before| before.release.source).as_deref());
        Ok(installed)
    }

    /// Checks that a bundle comes from the place of the installed bundle, or that a person confirms
    /// the new place. Returns `None` if the bundle does not move. Without this check, an attacker
    /// who makes an operator install a bundle once from another place would also control all its
    /// updates.
    fn check_place(&self, bundle: &Bundle, place: &ReleasePlace) -> Result<Option<SourceMove>> {
        let id = &bundle.manifest.id;
        let Some(installed) = self.store.installed(id)? else {
            return Ok(None);
        };
        let before = Source::parse(&installed.source);
        // The recorded form has absolute paths, like the source of the installed bundle.
        let after = Source::parse(&place.recorded)?;
        if let Ok(before) = &before
            && is_same_place(before, &after)
        {
            return Ok(None);
        }
        // In the form that is shown, without secrets of a query.
        let moved = SourceMove {
            id: id.clone(),
            from: before.map_or(installed.release.source, |before| before.to_string()),
            to: after.to_string(),
        };
        match self.move_source {
            Some(confirm) => confirm(&moved).map(|()| Some(moved)),
            None => {
                let SourceMove { id, from, to } = moved;
                let message = format!("{id} is installed from {from}, and this is {to}");
                Err(Error::new(Kind::Denied, Code::SourceMoves, message).hint(
                    "if its updates shall come from there, give --move-source, which asks on the terminal; its channel and \
                     its maximum age stay",
                ))
            }
        }
    }

    /// Records for the next `doctor` and `serve` that a bundle's source has moved.
    fn keep_move(&self, moved: &SourceMove) -> Result<()> {
        let SourceMove { id, from, to } = moved;
        let what = format!("let {id} come from {to} instead of {from}");
        let state = self.context.environment.state_directory.as_deref();
        let state = state.unwrap_or(Path::new(""));
        let change = LastingChange::new("install --move-source", what, state);
        LastingChanges::of(&self.context.environment)?.add(change)
    }
}

/// A bundle that would come from another place than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceMove {
    /// The bundle.
    pub id: String,
    /// The recorded source.
    pub from: String,
    /// The new source.
    pub to: String,
}

/// Asks whether a source may move. Returns an error if it may not.
pub type ConfirmMove<'a> = &'a (dyn Fn(&SourceMove) -> Result<()> + Sync);

/// Whether two sources are the same place: the same repository, with any tag; the same folder of a
/// web server, with the same query; or the same folder of this machine.
fn is_same_place(one: &Source, other: &Source) -> bool {
    match (one, other) {
        (Source::Path(one), Source::Path(other)) => {
            // Resolves `..` and links. A missing folder is compared as written.
            let folder = |file: &Path| {
                let folder = file.parent()?;
                Some(folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
            };
            folder(one) == folder(other)
        }
        (Source::Registry(one), Source::Registry(other)) => {
            one.bare_repository() == other.bare_repository()
        }
        (Source::Web(one), Source::Web(other)) => {
            let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
            one.origin() == other.origin()
                && folder(one.path()) == folder(other.path())
                && one.query() == other.query()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_repository_or_a_folder() {
        let same = |one: &str, other: &str| {
            let parse = |text: &str| Source::parse(text).unwrap();
            is_same_place(&parse(one), &parse(other))
        };
        for (one, other) in [
            ("/here/a.toolbundle", "/here/b.toolbundle"),
            ("oci://r.example/a/b:1.0.0", "oci://r.example/a/b:stable"),
            ("oci://r.example/a/b:1", "oci://r.example:443/a/b:1"),
            (
                "https://h.example/a/1.toolbundle",
                "https://h.example/a/2.toolbundle",
            ),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("/here/a.toolbundle", "/elsewhere/a.toolbundle"),
            ("/here/a.toolbundle", "/here/below/a.toolbundle"),
            ("a.toolbundle", "oci://r.example/a/b:1.0.0"),
            ("a.toolbundle", "https://h.example/a.toolbundle"),
            ("oci://r.example/a/b:1", "oci://r.example/a/c:1"),
            (
                "https://h.example/get?bundle=a",
                "https://h.example/get?bundle=b",
            ),
            ("oci://r.example/a/b:1", "oci://r.example:444/a/b:1"),
            ("oci://127.0.0.1/a/b:1", "oci://127.0.0.1:443/a/b:1"),
            ("https://h.example/a/1", "https://h.example/b/1"),
            ("https://h.example/a", "https://g.example/a"),
            ("https://h.example/a", "https://h.example:444/a"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }
}

//! Installed bundles as each other's action libraries, and what becomes of those that a library changes.

use std::fs::File;

use toolward_bundle::content::Content;
use toolward_bundle::libraries::{Reading, Shelf};
use toolward_store::{InstallOptions, InstallOutcome, InstalledBundle, LoadedBundle, Store};

use crate::error::{Code, Error, Kind, content_error};
use crate::report::Report;
use crate::trust::TrustContext;

/// Reads installed bundles, each with the others as its action libraries. One that asks for something else than what
/// was accepted, because an action that it takes from a library changed, is refused.
pub(super) fn read_all(
    loaded: Vec<LoadedBundle<Reading>>,
    context: &TrustContext,
) -> Vec<(InstalledBundle, Result<Content, Error>)> {
    let mut readings = Vec::new();
    let mut opened = Vec::new();
    for one in loaded {
        opened.push((
            one.installed,
            one.bundle.map(|reading| readings.push(reading)),
        ));
    }
    let mut contents = Reading::finish(readings, &context.store).into_iter();
    let mut next = || {
        let lost = || Error::new(Kind::Failed, Code::BundleMissing, "a bundle was not read");
        let content = contents.next().ok_or_else(lost)?;
        content.map_err(|error| content_error(error, Kind::Refused))
    };
    let read = opened.into_iter().map(|(installed, opened)| {
        let content = opened.map_err(Error::from).and_then(|()| next());
        let content = content.and_then(|content| {
            installed.check_actions(&content)?;
            Ok(content)
        });
        (installed, content)
    });
    read.collect()
}

/// The action libraries among the installed bundles that verify, but for one bundle.
pub fn libraries(
    store: &Store,
    context: &TrustContext,
    without: Option<&str>,
) -> Result<Shelf, Error> {
    let verify = |file: &mut File| context.archive_file(file);
    let loaded = store.examine(&verify, &|bundle| bundle)?;
    let bundles = loaded.iter().filter_map(|one| one.bundle.as_ref().ok());
    let others = bundles.filter(|bundle| Some(bundle.manifest.id.as_str()) != without);
    Ok(Shelf::of(others.map(|bundle| &**bundle), &context.store))
}

/// Gives bundles whose surface is of an earlier version that of now, where they verify.
pub fn renew_surfaces(store: &Store, context: &TrustContext) -> Result<(), Error> {
    if !store.has_earlier_surfaces()? {
        return Ok(());
    }
    let shelf = libraries(store, context, None)?;
    let verify = |file: &mut File| context.archive_file(file);
    Ok(store.renew_surfaces(&verify, &shelf, context.now)?)
}

/// Holds the installed bundles that the actions of a library changed, so that the difference can be looked at and
/// accepted, and says which are blocked. None of them is loaded meanwhile, whether or not this was called.
pub fn hold_changed(
    store: &Store,
    context: &TrustContext,
    report: &dyn Report,
) -> Result<(), Error> {
    renew_surfaces(store, context)?;
    let takers = store.catalogue()?.into_iter();
    let takers = takers.filter(|(_, surface)| surface.takes_actions());
    let takers: Vec<InstalledBundle> = takers.map(|(installed, _)| installed).collect();
    if takers.is_empty() {
        return Ok(());
    }
    let shelf = libraries(store, context, None)?;
    let verify = |file: &mut File| context.archive_file(file);
    for installed in takers {
        let (_, bundle) = match store.load(&installed.id, &verify, context.now) {
            Ok(loaded) => loaded,
            // Whoever lists or loads it is told why.
            Err(_) => continue,
        };
        let options = InstallOptions {
            source: installed.source.clone(),
            now: context.now,
            allow_rollback: None,
            accept: None,
        };
        match store.install_with(&bundle, &options, &shelf) {
            Ok(InstallOutcome::Held { held, .. }) => report.warning(&format!(
                "{0} is not loaded until what a library changed of it is accepted: toolward update {0}, or \
                 toolward update {0} --accept {1}",
                held.id, held.surface
            )),
            Ok(_) => {}
            Err(error) => report.warning(&format!(
                "{} is no longer loaded: {error} ({})",
                installed.id,
                error.code()
            )),
        }
    }
    Ok(())
}

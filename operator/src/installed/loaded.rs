//! Reads installed bundles. A bundle may use actions of the others, which are its action libraries.
//! Also finds bundles whose actions a library changed, and the tools of bundles that are not
//! loaded.

use std::fs::File;

use toolward_bundle::content::Content;
use toolward_bundle::libraries::{Reading, Shelf};
use toolward_bundle::surface::BundleSurface;
use toolward_host::{WithheldReason, WithheldTool};
use toolward_store::{InstallOptions, InstallOutcome, InstalledBundle, LoadedBundle, Store};

use crate::trust::TrustContext;
use crate::{Code, Error, Report, Result};

/// Bundles that were loaded, and the tools of bundles that were not.
#[derive(Debug, Default)]
pub struct LoadedBundles {
    /// The bundles that verify.
    pub contents: Vec<Content>,
    /// The tools of bundles that do not verify now, or that are not accepted yet.
    pub withheld: Vec<WithheldTool>,
}

impl LoadedBundles {
    /// All of these bundles are loaded, and no tools are withheld.
    pub(crate) fn all_of(contents: Vec<Content>) -> Self {
        let withheld = Vec::new();
        Self { contents, withheld }
    }
}

/// Why the tools of a bundle that was refused with this error are not served.
pub fn reason(failure: &Error) -> WithheldReason {
    let source = std::error::Error::source(failure);
    match source.and_then(|source| source.downcast_ref()) {
        Some(toolward_store::Error::ActionsChanged { .. }) => WithheldReason::Held,
        _ => WithheldReason::Withdrawn,
    }
}

/// Returns the tools of refused bundles, and the other tools of updates that wait for acceptance.
/// If these tools can't be read, warns and returns none.
pub(super) fn withheld_tools(
    store: &Store,
    refused: &[(String, WithheldReason)],
    report: &dyn Report,
) -> Vec<WithheldTool> {
    let ids: Vec<&str> = refused.iter().map(|(id, _)| id.as_str()).collect();
    let (installed, held) = match store.surfaces(&ids) {
        Ok(surfaces) => surfaces,
        Err(error) => {
            report.warning_of("which tools are not loaded is not known", &error.into());
            return Vec::new();
        }
    };
    let mut withheld = Vec::new();
    for (one, surface) in &installed {
        let known = refused.iter().find(|(id, _)| *id == one.id);
        let reason = known.map_or(WithheldReason::Withdrawn, |(_, reason)| *reason);
        withheld.extend(tools(surface, &one.publisher, reason));
    }
    for (one, surface) in &held {
        for tool in tools(surface, &one.publisher, WithheldReason::Held) {
            let mut known = withheld.iter();
            if !known.any(|known: &WithheldTool| known.major_id() == tool.major_id()) {
                withheld.push(tool);
            }
        }
    }
    withheld
}

fn tools(
    surface: &BundleSurface,
    publisher: &str,
    reason: WithheldReason,
) -> impl Iterator<Item = WithheldTool> {
    let tools = surface.tools().into_iter();
    tools.filter_map(move |tool| {
        let (_, major) = tool.major_id.rsplit_once('@')?;
        let major = major.parse().ok()?;
        Some(WithheldTool {
            id: tool.id,
            major,
            publisher: publisher.to_owned(),
            aliases: tool.aliases,
            mcp_name: tool.mcp_name,
            reason,
        })
    })
}

/// Reads installed bundles, each with the others as its action libraries. A library's action may
/// have changed since a bundle was accepted. The bundle is then refused if it asks for other
/// capabilities than were accepted.
pub(super) fn read_all(
    loaded: Vec<LoadedBundle<Reading>>,
    context: &TrustContext,
) -> Vec<(InstalledBundle, Result<Content>)> {
    let mut readings = Vec::new();
    let opened = loaded.into_iter().map(|one| {
        let opened = one.bundle.map(|reading| readings.push(reading));
        (one.installed, opened)
    });
    let opened: Vec<_> = opened.collect();
    let mut contents = context.read(readings).into_iter();
    let mut next = || {
        let lost = || Error::failed(Code::BundleMissing, "a bundle was not read");
        contents.next().ok_or_else(lost)?
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

/// Returns the actions of the installed bundles that verify, except the bundle `without`.
pub fn libraries(store: &Store, context: &TrustContext, without: Option<&str>) -> Result<Shelf> {
    let verify = |file: &mut File| context.archive_file(file);
    let loaded = store.examine(&verify, &|bundle| bundle)?;
    let bundles = loaded.iter().filter_map(|one| one.bundle.as_ref().ok());
    let others = bundles.filter(|bundle| Some(bundle.manifest.id.as_str()) != without);
    Ok(Shelf::of(others.map(|bundle| &**bundle), &context.store))
}

/// Updates stored surfaces in an earlier format, for bundles that verify. A surface is what models
/// and policies see of a bundle.
pub fn renew_surfaces(store: &Store, context: &TrustContext) -> Result<()> {
    if !store.has_earlier_surfaces()? {
        return Ok(());
    }
    let shelf = libraries(store, context, None)?;
    let verify = |file: &mut File| context.archive_file(file);
    Ok(store.renew_surfaces(&verify, &shelf, context.now)?)
}

/// Holds and reports the installed bundles whose actions a library changed, so that a person can
/// view and accept the difference. Until then they are not loaded, even if this function is not
/// called.
pub fn hold_changed(store: &Store, context: &TrustContext) -> Result<()> {
    let report = &context.environment.report;
    renew_surfaces(store, context)?;
    let takers = store.action_takers()?;
    if takers.is_empty() {
        return Ok(());
    }
    let shelf = libraries(store, context, None)?;
    let verify = |file: &mut File| context.archive_file(file);
    for installed in takers {
        let (_, bundle) = match store.load(&installed.id, &verify, context.now) {
            Ok(loaded) => loaded,
            // Listing or loading the bundle reports the reason.
            Err(_) => continue,
        };
        let options = InstallOptions {
            source: installed.source.clone(),
            now: context.now,
            allow_rollback: None,
            accept: None,
        };
        match store.install(&bundle, &options, &shelf) {
            Ok(InstallOutcome::Held { held, .. }) => report.warning(&format!(
                "{0} is not loaded until what a library changed of it is accepted: toolward update {0}, or \
                 toolward update {0} --accept {1}",
                held.id, held.surface
            )),
            Ok(_) => {}
            Err(error) => {
                let what = format!("{} is no longer loaded", installed.id);
                report.warning_of(&what, &error.into());
            }
        }
    }
    Ok(())
}

//! The store of installed bundles: its location, and which bundles may run.

mod libraries;
mod loaded;

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use toolward_bundle::content::Content;
use toolward_bundle::libraries::Reading;
use toolward_host::HostBuilder;
use toolward_store::{InstalledBundle, InstalledTool, Store};

use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::registries::kept_hosts::KeptHosts;
use crate::report::Report;
use crate::trust::{Trust, TrustContext};

use libraries::read_all;
pub use libraries::{hold_changed, libraries, renew_surfaces};
pub use loaded::{LoadedBundles, reason};

/// The location of installed bundles.
///
/// ```no_run
/// use toolward_operator::installed::{StoreLocation, examined};
/// use toolward_operator::trust::Trust;
/// use toolward_operator::{Environment, Silent};
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let environment = Environment::of_process();
/// if let Some(store) = StoreLocation::default().existing(&environment)? {
///     for one in examined(&store, &Trust::default(), &environment, &Silent)? {
///         println!("{}: {}", one.installed.id, one.word());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default, Clone)]
pub struct StoreLocation(
    /// The directory of the store and the record of trust; by default in the user's
    /// data and state directories.
    pub Option<PathBuf>,
);

impl StoreLocation {
    fn places(&self, environment: &Environment) -> Result<(PathBuf, PathBuf), Error> {
        if let Some(directory) = &self.0 {
            return Ok((directory.join("store"), directory.join("state/trust.db")));
        }
        match (&environment.data_directory, &environment.state_directory) {
            (Some(data), Some(state)) => Ok((data.join("store"), state.join("trust/trust.db"))),
            _ => Err(Error::usage(
                Code::StoreUnusable,
                "there is no place for installed bundles: no home directory",
            )
            .hint("name one with --store-dir DIR")),
        }
    }

    /// Keeps guests out of the store and the record of trust, where a writer could
    /// install anything.
    pub fn protect(&self, builder: HostBuilder, environment: &Environment) -> HostBuilder {
        let Ok((directory, state)) = self.places(environment) else {
            return builder;
        };
        let state = state.parent().unwrap_or(&state);
        builder
            .protect("the store of bundles", directory)
            .protect("the record of trust", state)
    }

    /// The folder of the record of trust.
    ///
    /// # Errors
    /// `store-unusable` if there is no place for it.
    pub fn record_folder(&self, environment: &Environment) -> Result<PathBuf, Error> {
        let (_, state) = self.places(environment)?;
        Ok(state.parent().unwrap_or(&state).to_owned())
    }

    /// The store's folder, and the file in it that readers lock.
    pub fn read_places(&self, environment: &Environment) -> Option<(PathBuf, PathBuf)> {
        let (directory, _) = self.places(environment).ok()?;
        let lock = directory.join("lock");
        Some((directory, lock))
    }

    /// Opens the store, or creates it.
    pub fn open(&self, environment: &Environment) -> Result<Store, Error> {
        let (directory, state) = self.places(environment)?;
        Ok(Store::open(&directory, &state)?)
    }

    /// Opens the store for reading if it exists, also on a full or read-only disk.
    /// Creates no files. Fails if the latest changes can't be read: they may contain
    /// revocations.
    pub fn existing(&self, environment: &Environment) -> Result<Option<Store>, Error> {
        match self.to_read(environment)? {
            Some(store) if store.log_unread() => Err(toolward_store::Error::LogUnreadable.into()),
            store => Ok(store),
        }
    }

    /// [`StoreLocation::existing`] for display: warns if the latest changes can't be
    /// read.
    pub fn shown(
        &self,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Option<Store>, Error> {
        let store = self.to_read(environment)?;
        if store.as_ref().is_some_and(Store::log_unread) {
            let unread = toolward_store::Error::LogUnreadable;
            report.warning(&format!(
                "what is shown may be out of date: {unread} ({})",
                unread.code()
            ));
        }
        Ok(store)
    }

    /// Opens the store for display if it exists, and changes nothing in it.
    pub(crate) fn untouched(
        &self,
        environment: &Environment,
        wait: Duration,
    ) -> Result<Option<Store>, Error> {
        let (directory, state) = self.places(environment)?;
        Ok(Store::open_untouched(&directory, &state, wait)?)
    }

    fn to_read(&self, environment: &Environment) -> Result<Option<Store>, Error> {
        let Ok((directory, state)) = self.places(environment) else {
            return Ok(None);
        };
        match directory.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => Ok(Some(Store::open_to_read(&directory, &state)?)),
        }
    }

    /// Removes the bundle with this id, or the one that brings this tool. On a full disk
    /// its file is deleted first, to make room for the record.
    pub fn remove(
        &self,
        name: &str,
        now: SystemTime,
        environment: &Environment,
    ) -> Result<Removed, Error> {
        use toolward_store::Error;
        let missing = || Error::NotInstalled {
            id: name.to_owned(),
        };
        let store = self.to_read(environment)?.ok_or_else(missing)?;
        let id = bundle_of(&store, name)?.ok_or_else(missing)?;
        let installed = store.installed(&id)?.map(|one| one.release.source);
        let held = store.pending()?.into_iter().map(|(held, _)| held);
        let held = held
            .filter(|held| held.id == id)
            .map(|held| held.release.source);
        let left: Vec<String> = installed.into_iter().chain(held).collect();
        match store.remove(&id, now) {
            Ok(_) => {
                self.forget_hosts(&left, &store, environment);
                let files = store.gc()?.objects;
                return Ok(Removed { id, files });
            }
            Err(Error::Full | Error::ReadOnly) => {}
            Err(error) => return Err(error.into()),
        }
        let files = store.make_room(&id)?.objects;
        drop(store);
        let store = self.open(environment)?;
        store.remove(&id, now)?;
        self.forget_hosts(&left, &store, environment);
        Ok(Removed { id, files })
    }

    /// Forgets where downloads from sources may come from that nothing is installed or held from. An answer that
    /// stays, since that fails, counts only for what is installed from there again.
    fn forget_hosts(&self, left: &[String], store: &Store, environment: &Environment) {
        let forget = |source: &String| {
            let kept = KeptHosts::in_folder(&self.record_folder(environment)?);
            kept.forget(source, sources(store)?)
        };
        if let Err(error) = left.iter().try_for_each(forget) {
            tracing::debug!(%error, "answers about downloads stay");
        }
    }
}

/// A bundle that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Its id.
    pub id: String,
    /// How many files of the store were deleted.
    pub files: u64,
}

/// Where the bundles that are installed and held came from.
pub(crate) fn sources(store: &Store) -> Result<Vec<String>, Error> {
    let installed = store.list()?.into_iter().map(|one| one.release.source);
    let held = store
        .pending()?
        .into_iter()
        .map(|(one, _)| one.release.source);
    Ok(installed.chain(held).collect())
}

/// The id of the installed bundle that a person means: by its own id, or by that of a tool
/// which it alone brings.
///
/// # Errors
/// If the store can't be read.
pub fn bundle_of(store: &Store, name: &str) -> Result<Option<String>, Error> {
    if store.installed(name)?.is_some() {
        return Ok(Some(name.to_owned()));
    }
    let tools = store.tools()?;
    let named = |tool: &&InstalledTool| tool.entry.id == name || tool.major_id == name;
    let mut bundles = tools.iter().filter(named).map(|tool| &tool.bundle);
    let first = bundles.next();
    Ok(first
        .filter(|first| bundles.all(|other| other == *first))
        .cloned())
}

/// The installed bundles that verify now. A refused bundle, such as one that was
/// revoked after its installation, is left out with a warning.
pub fn loaded(
    store: &Store,
    context: &TrustContext,
    report: &dyn Report,
) -> Result<LoadedBundles, Error> {
    let verify = |file: &mut File| context.archive_file(file);
    let (mut contents, mut refused) = (Vec::new(), Vec::new());
    let loaded = store.load_all_as(&verify, &Reading::new, context.now)?;
    for (installed, content) in read_all(loaded, context) {
        match content {
            Ok(content) => contents.push(content),
            Err(failure) => {
                report.warning(&format!(
                    "{} is installed and not loaded: {} ({})",
                    installed.id, failure.message, failure.code
                ));
                refused.push((installed.release.id, reason(&failure)));
            }
        }
    }
    let arrivals = store.arrivals()?.into_iter().zip(0..);
    let arrivals: HashMap<(String, String), u64> = arrivals.collect();
    for content in &mut contents {
        let publisher = content.origin.publisher();
        for entry in &mut content.tools {
            let tool = (publisher.clone(), entry.tool.major_id());
            entry.arrival = arrivals.get(&tool).copied();
        }
    }
    unrecorded(store, report);
    Ok(LoadedBundles {
        contents,
        withheld: loaded::withheld_tools(store, &refused, report),
    })
}

/// Warns if decisions could not be recorded.
pub fn unrecorded(store: &Store, report: &dyn Report) {
    if let Some(code) = store.unrecorded() {
        report.warning(&format!("what was decided here is not recorded ({code})"));
    }
}

/// An installed bundle, and whether `call` and `serve` would load it now.
#[derive(Debug)]
pub struct Examined {
    /// The store's entry.
    pub installed: InstalledBundle,
    /// Whether it would be loaded.
    pub state: State,
}

/// Whether an installed bundle is loaded.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each installed bundle, and not for long"
)]
pub enum State {
    /// It verifies: what it brings.
    Verified(Box<Content>),
    /// It is left out for this reason.
    Refused(Error),
    /// The trust configuration can't be read.
    Unknown,
}

impl Examined {
    /// Why it is not loaded, if that is known.
    pub fn refusal(&self) -> Option<&Error> {
        match &self.state {
            State::Refused(failure) => Some(failure),
            State::Verified(_) | State::Unknown => None,
        }
    }

    /// What it brings, if it is loaded.
    pub fn content(&self) -> Option<&Content> {
        match &self.state {
            State::Verified(content) => Some(content),
            State::Refused(_) | State::Unknown => None,
        }
    }

    /// The state in one word.
    pub fn word(&self) -> &'static str {
        match &self.state {
            State::Verified(_) => "verified",
            State::Refused(_) => "refused",
            State::Unknown => "unknown",
        }
    }
}

/// All installed bundles, verified as `call` and `serve` do. Records nothing. Warns if
/// the trust configuration can't be read.
pub fn examined(
    store: &Store,
    trust: &Trust,
    environment: &Environment,
    report: &dyn Report,
) -> Result<Vec<Examined>, Error> {
    let context = trust
        .trusted(environment)
        .and_then(|trusted| trust.context_or_empty(&trusted, environment, report));
    let context = match context {
        Ok(context) => context,
        Err(failure) => {
            report.warning(&format!(
                "whether the installed bundles may run is not known: {} ({})",
                failure.message, failure.code
            ));
            let unknown = |installed| Examined {
                installed,
                state: State::Unknown,
            };
            return Ok(store.list()?.into_iter().map(unknown).collect());
        }
    };
    let verify = |file: &mut File| context.archive_file(file);
    let loaded = store.examine(&verify, &Reading::new)?;
    let examined = read_all(loaded, &context).into_iter();
    let examined = examined.map(|(installed, content)| Examined {
        installed,
        state: match content {
            Ok(content) => State::Verified(Box::new(content)),
            Err(failure) => State::Refused(failure),
        },
    });
    Ok(examined.collect())
}

/// A tool of an installed bundle that is not loaded, with the reason.
pub type RefusedTool = (String, InstalledBundle, Error);

/// The tools of installed bundles that are not loaded now, by bundle and id.
pub fn refused_tools(
    store: &Store,
    trust: &Trust,
    environment: &Environment,
    report: &dyn Report,
) -> Result<Vec<RefusedTool>, Error> {
    let tools = store.tools()?;
    let mut refused = Vec::new();
    for one in examined(store, trust, environment, report)? {
        let Some(failure) = one.refusal() else {
            continue;
        };
        let brought = tools.iter().filter(|tool| tool.bundle == one.installed.id);
        refused.extend(brought.map(|tool| {
            let failure = failure.clone();
            (tool.major_id.clone(), one.installed.clone(), failure)
        }));
    }
    Ok(refused)
}

/// Why a tool is missing, if it belongs to an installed bundle that is not loaded.
pub fn withheld(
    tool: &str,
    store: &Store,
    trust: &Trust,
    environment: &Environment,
    report: &dyn Report,
) -> Result<Option<Error>, Error> {
    let named = |major_id: &str| {
        let id = major_id.split('@').next();
        major_id == tool || id == Some(tool)
    };
    let mut refused = refused_tools(store, trust, environment, report)?.into_iter();
    Ok(refused
        .find(|(major_id, _, _)| named(major_id))
        .map(|(_, installed, failure)| {
            let message = format!(
                "`{tool}` is in {} {}, which is installed and not loaded: {}",
                installed.id, installed.version, failure.message
            );
            failure.saying(message).hint(next_step(&installed.id))
        }))
}

/// What to do about an installed bundle that is not loaded.
pub fn next_step(id: &str) -> String {
    format!(
        "`toolward update {id}` looks for a release that holds, `toolward remove {id}` takes it out"
    )
}

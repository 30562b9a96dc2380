//! The store of installed bundles: its location, and which bundles may run.

mod loaded;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toolward_bundle::content::Content;
use toolward_bundle::libraries::Reading;
use toolward_contract::tool::ToolId;
use toolward_host::{Broker, HostBuilder};
use toolward_signing::id;
use toolward_signing::verify::ReopenFn;
use toolward_store::{InstalledBundle, InstalledTool, Store};

use crate::registries::kept_hosts::DownloadHosts;
use crate::trust::{MAX_NAMES, Trust, TrustContext};
use crate::{Code, Environment, Error, Kind, Result, content_error};

use loaded::{read_all, withheld_tools};

pub use loaded::{LoadedBundles, hold_changed, libraries, reason, renew_surfaces};

/// How long completion in a shell waits for a process that writes the store. Short, since a person
/// waits for the completion.
const NAMES_TIMEOUT: Duration = Duration::from_millis(100);

/// The location of installed bundles.
///
/// ```no_run
/// use toolward_operator::installed::{StoreLocation, examined};
/// use toolward_operator::trust::Trust;
/// use toolward_operator::Environment;
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// let environment = Environment::of_process();
/// if let Some(store) = StoreLocation::default().existing(&environment)? {
///     for one in examined(&store, &Trust::default(), &environment)? {
///         println!("{}: {}", one.installed.id, one.word());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default, Clone)]
pub struct StoreLocation(
    /// The directory with the store and the record of trust (a database of what was installed and
    /// decided). By default the store is in the user's data directory, and the record in the user's
    /// state directory.
    pub Option<PathBuf>,
);

impl StoreLocation {
    fn places(&self, environment: &Environment) -> Result<(PathBuf, PathBuf)> {
        if let Some(directory) = &self.0 {
            return Ok((directory.join("store"), directory.join("state/trust.db")));
        }
        match (&environment.data_directory, &environment.state_directory) {
            (Some(data), Some(state)) => Ok((data.join("store"), state.join("trust/trust.db"))),
            _ => {
                let message = "there is no place for installed bundles: no home directory";
                Err(Error::usage(Code::StoreUnusable, message)
                    .hint("name one with --store-dir DIR"))
            }
        }
    }

    /// Keeps guests out of the store and the record of trust: a writer there could install
    /// anything.
    pub fn protect(&self, builder: HostBuilder, environment: &Environment) -> HostBuilder {
        let Ok((directory, state)) = self.places(environment) else {
            return builder;
        };
        let state = state.parent().unwrap_or(&state);
        builder
            .protect("the store of bundles", directory)
            .protect("the record of trust", state)
    }

    /// Returns the folder of the record of trust.
    ///
    /// # Errors
    /// `store-unusable` if there is no place for it.
    pub fn record_folder(&self, environment: &Environment) -> Result<PathBuf> {
        let (_, state) = self.places(environment)?;
        Ok(state.parent().unwrap_or(&state).to_owned())
    }

    /// Returns the store's folder, and the file in it that readers lock.
    pub fn read_places(&self, environment: &Environment) -> Option<(PathBuf, PathBuf)> {
        let (directory, _) = self.places(environment).ok()?;
        let lock = directory.join("lock");
        Some((directory, lock))
    }

    /// Opens the store, or creates it.
    pub fn open(&self, environment: &Environment) -> Result<Store> {
        let (directory, state) = self.places(environment)?;
        Ok(Store::open(&directory, &state)?)
    }

    /// Opens the store for reading if it exists, even on a full or read-only disk. Creates no
    /// files. Fails if the latest changes can't be read, since they may contain revocations.
    pub fn existing(&self, environment: &Environment) -> Result<Option<Store>> {
        match self.to_read(environment)? {
            Some(store) if store.log_unread() => Err(toolward_store::Error::LogUnreadable.into()),
            store => Ok(store),
        }
    }

    /// [`StoreLocation::existing`] for display: if the latest changes can't be read, warns instead
    /// of failing.
    pub fn shown(&self, environment: &Environment) -> Result<Option<Store>> {
        let store = self.to_read(environment)?;
        if store.as_ref().is_some_and(Store::log_unread) {
            let unread = toolward_store::Error::LogUnreadable;
            let code = unread.code();
            environment.report.warning(&format!(
                "what is shown may be out of date: {unread} ({code})"
            ));
        }
        Ok(store)
    }

    /// Returns the ids of installed tools, of bundles, or of both, for completion in a shell.
    /// Returns none if they can't be read. A stored id that the grammar of ids does not allow is
    /// left out. Nothing is verified or written.
    pub fn names(
        &self,
        (tools, bundles): (bool, bool),
        environment: &Environment,
    ) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let open = || {
            let (directory, state) = self.places(environment)?;
            Ok::<_, Error>(Store::open_untouched(&directory, &state, NAMES_TIMEOUT)?)
        };
        let Ok(Some(store)) = open() else {
            return names;
        };
        if tools {
            let ids = store.tools().unwrap_or_default().into_iter();
            let ids = ids.map(|tool| tool.entry.id);
            names.extend(ids.filter(|id| ToolId::relaxed(id).is_ok()).take(MAX_NAMES));
        }
        if bundles {
            let ids = store.list().unwrap_or_default().into_iter();
            let ids = ids.map(|one| one.release.id);
            names.extend(ids.filter(|id| id::check(id).is_ok()).take(MAX_NAMES));
        }
        names
    }

    fn to_read(&self, environment: &Environment) -> Result<Option<Store>> {
        let Ok((directory, state)) = self.places(environment) else {
            return Ok(None);
        };
        match directory.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => Ok(Some(Store::open_to_read(&directory, &state)?)),
        }
    }

    /// Removes the bundle with this id, or with this tool. Returns its id, and how many files of
    /// the store were deleted. On a full disk the bundle's file is deleted first, to make room for
    /// recording the removal.
    pub fn remove(
        &self,
        name: &str,
        now: SystemTime,
        environment: &Environment,
    ) -> Result<(String, u64)> {
        use toolward_store::Error;
        let missing = || Error::NotInstalled {
            id: name.to_owned(),
        };
        let store = self.to_read(environment)?.ok_or_else(missing)?;
        let id = bundle_of(&store, name)?.ok_or_else(missing)?;
        let own = store.all_releases()?.into_iter();
        let own = own.filter(|(one, _)| one.id == id);
        let left: Vec<String> = own.map(|(one, _)| one.source).collect();
        let files = match store.remove(&id, now) {
            Ok(_) => {
                self.forget_hosts(&left, &store, environment);
                store.gc()?
            }
            Err(Error::Full | Error::ReadOnly) => {
                let files = store.make_room(&id)?;
                drop(store);
                let store = self.open(environment)?;
                store.remove(&id, now)?;
                self.forget_hosts(&left, &store, environment);
                files
            }
            Err(error) => return Err(error.into()),
        };
        Ok((id, files))
    }

    /// Forgets the hosts that a person allowed for downloads from these sources, unless a bundle
    /// from there is still installed or held (waits for a person's acceptance). If that fails, the
    /// hosts stay stored. They count only for bundles that are installed from these sources again.
    fn forget_hosts(&self, left: &[String], store: &Store, environment: &Environment) {
        let forget = |source: &String| {
            let kept = DownloadHosts::in_folder(&self.record_folder(environment)?);
            kept.forget(source, sources(store)?)
        };
        if let Err(error) = left.iter().try_for_each(forget) {
            tracing::debug!(%error, "answers about downloads stay");
        }
    }
}

/// Returns the sources of the installed and the held bundles.
pub(crate) fn sources(store: &Store) -> Result<Vec<String>> {
    let all = store.all_releases()?.into_iter();
    Ok(all.map(|(one, _)| one.source).collect())
}

/// Returns the id of the installed bundle with this id, or with this tool if no other bundle has
/// the tool.
///
/// # Errors
/// If the store can't be read.
pub fn bundle_of(store: &Store, name: &str) -> Result<Option<String>> {
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

/// Returns the installed bundles that verify now. A refused bundle, for example after a revocation,
/// is left out with a warning.
///
/// Components in the cache of `known` are left unread until they are compiled.
pub fn loaded(
    store: &Store,
    context: &TrustContext,
    known: Option<&Broker>,
) -> Result<LoadedBundles> {
    let report = &context.environment.report;
    let verify = |file: &mut File, reopen: &Arc<ReopenFn>| match known {
        Some(broker) => context.stored_file(file, broker, reopen),
        None => context.archive_file(file),
    };
    let (mut contents, mut refused) = (Vec::new(), Vec::new());
    let loaded = store.load_all_as(&verify, &Reading::new, context.now)?;
    for (installed, content) in read_all(loaded, context) {
        match content {
            Ok(content) => contents.push(content),
            Err(failure) => {
                let what = format!("{} is installed and not loaded", installed.id);
                report.warning_of(&what, &failure);
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
    unrecorded(store, &context.environment);
    Ok(LoadedBundles {
        contents,
        withheld: withheld_tools(store, &refused, &**report),
    })
}

/// Warns if decisions could not be recorded.
pub fn unrecorded(store: &Store, environment: &Environment) {
    if let Some(code) = store.unrecorded() {
        let message = format!("what was decided here is not recorded ({code})");
        environment.report.warning(&message);
    }
}

/// An installed bundle, and whether `call` and `serve` would load it now.
#[derive(Debug)]
pub struct ExaminedBundle {
    /// The store's entry.
    pub installed: InstalledBundle,
    /// Its content if it verifies, or why it is not loaded; `None` if the trust configuration can't
    /// be read.
    pub read: Option<Result<Content>>,
}

impl ExaminedBundle {
    /// Why it is not loaded, if that is known.
    pub fn refusal(&self) -> Option<&Error> {
        self.read.as_ref()?.as_ref().err()
    }

    /// Its content, if it is loaded.
    pub fn content(&self) -> Option<&Content> {
        self.read.as_ref()?.as_ref().ok()
    }

    /// The state in one word.
    pub fn word(&self) -> &'static str {
        match &self.read {
            Some(Ok(_)) => "verified",
            Some(Err(_)) => "refused",
            None => "unknown",
        }
    }
}

/// Verifies all installed bundles as `call` and `serve` do. Records nothing. Warns if the trust
/// configuration can't be read.
pub fn examined(
    store: &Store,
    trust: &Trust,
    environment: &Environment,
) -> Result<Vec<ExaminedBundle>> {
    let all: Vec<_> = match trust.context_or_empty(environment) {
        Ok(context) => {
            let verify = |file: &mut File| context.archive_file(file);
            let loaded = read_all(store.examine(&verify, &Reading::new)?, &context);
            let known = loaded.into_iter().map(|(one, read)| (one, Some(read)));
            known.collect()
        }
        Err(failure) => {
            let what = "whether the installed bundles may run is not known";
            environment.report.warning_of(what, &failure);
            store.list()?.into_iter().map(|one| (one, None)).collect()
        }
    };
    let examined = all.into_iter();
    let examined = examined.map(|(installed, read)| ExaminedBundle { installed, read });
    Ok(examined.collect())
}

/// The next step for an installed bundle that is not loaded.
pub fn next_step(id: &str) -> String {
    format!(
        "`toolward update {id}` looks for a release that verifies, `toolward remove {id}` removes it"
    )
}

impl From<toolward_store::Error> for Error {
    fn from(error: toolward_store::Error) -> Self {
        use toolward_store::Error as Store;
        let kind = match error {
            Store::Refused(refusal) => return Self::refused(refusal),
            Store::Content(error) => return content_error(*error, Kind::Refused),
            Store::Duplicate { .. }
            | Store::SurfaceMismatch { .. }
            | Store::ObjectMissing { .. }
            | Store::ObjectChanged { .. }
            | Store::PublisherChanged { .. }
            | Store::ActionsChanged { .. } => Kind::Refused,
            _ => Kind::Failed,
        };
        Self::of(kind, error)
    }
}

//! The store of installed bundles: where it is, and what of it may run.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use toolward_bundle::content::Content;
use toolward_host::HostBuilder;
use toolward_store::{Installed, Store};

use crate::environment::Environment;
use crate::failure::{self, Exit, Failure};
use crate::output::Output;
use crate::standing::Standing;
use crate::trust::{self, Trust};

/// Where installed bundles are.
#[derive(Debug, Args)]
pub(crate) struct StoreFlags {
    /// Where installed bundles and the record of trust are kept [default:
    /// toolward in the user's data and state directories]
    #[arg(long, value_name = "DIR")]
    store_dir: Option<PathBuf>,
}

impl StoreFlags {
    fn places(&self, environment: &Environment) -> Result<(PathBuf, PathBuf), Failure> {
        if let Some(directory) = &self.store_dir {
            return Ok((directory.join("store"), directory.join("state/trust.db")));
        }
        match (&environment.data_directory, &environment.state_directory) {
            (Some(data), Some(state)) => Ok((data.join("store"), state.join("trust/trust.db"))),
            _ => Err(Failure::usage(
                "store-unusable",
                "there is no place for installed bundles: no home directory",
            )
            .hint("name one with --store-dir DIR")),
        }
    }

    /// Keeps all guests out of the store and the record of trust: whoever writes
    /// there says what is installed.
    pub(crate) fn protect(&self, builder: HostBuilder, environment: &Environment) -> HostBuilder {
        let Ok((directory, state)) = self.places(environment) else {
            return builder;
        };
        let state = state.parent().unwrap_or(&state);
        builder
            .protect("the store of bundles", directory)
            .protect("the record of trust", state)
    }

    /// The store's folder, and the file in it that readers lock.
    pub(crate) fn read_places(&self, environment: &Environment) -> Option<(PathBuf, PathBuf)> {
        let (directory, _) = self.places(environment).ok()?;
        let lock = directory.join("lock");
        Some((directory, lock))
    }

    /// Opens the store, and makes it where there is none.
    pub(crate) fn open(&self, environment: &Environment) -> Result<Store, Failure> {
        let (directory, state) = self.places(environment)?;
        Ok(Store::open(&directory, &state)?)
    }

    /// Opens the store if there is one, on a full or read-only disk, too. Looking
    /// leaves nothing behind. One whose newest changes can't be read is refused:
    /// they may revoke something.
    pub(crate) fn existing(&self, environment: &Environment) -> Result<Option<Store>, Failure> {
        match self.to_read(environment)? {
            Some(store) if store.log_unread() => Err(toolward_store::Error::LogUnreadable.into()),
            store => Ok(store),
        }
    }

    /// [`StoreFlags::existing`], for showing only: where the newest changes can't be
    /// read a warning says so.
    pub(crate) fn shown(
        &self,
        environment: &Environment,
        output: &Output,
    ) -> Result<Option<Store>, Failure> {
        let store = self.to_read(environment)?;
        if store.as_ref().is_some_and(Store::log_unread) {
            let unread = toolward_store::Error::LogUnreadable;
            output.warning(format!(
                "what is shown may be out of date: {unread} ({})",
                unread.code()
            ));
        }
        Ok(store)
    }

    fn to_read(&self, environment: &Environment) -> Result<Option<Store>, Failure> {
        let Ok((directory, state)) = self.places(environment) else {
            return Ok(None);
        };
        match directory.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => Ok(Some(Store::open_to_read(&directory, &state)?)),
        }
    }

    /// Removes a bundle. On a full disk its file goes first, so that there is room
    /// to write that down.
    pub(crate) fn remove(
        &self,
        id: &str,
        now: SystemTime,
        environment: &Environment,
    ) -> Result<u64, Failure> {
        use toolward_store::Error;
        let missing = || Error::NotInstalled { id: id.to_owned() };
        let store = self.to_read(environment)?.ok_or_else(missing)?;
        match store.remove(id, now) {
            Ok(_) => return Ok(store.gc()?.objects),
            Err(Error::Full | Error::ReadOnly) => {}
            Err(error) => return Err(error.into()),
        }
        let freed = store.make_room(id)?.objects;
        drop(store);
        self.open(environment)?.remove(id, now)?;
        Ok(freed)
    }
}

/// The installed bundles that verify now, ready to be loaded. One that is
/// refused is left out, with a warning; what is revoked since it was installed
/// does not run.
pub(crate) fn contents(
    store: &Store,
    standing: &Standing,
    output: &Output,
) -> Result<Vec<Content>, Failure> {
    let verify = |file: &mut File| standing.archive_file(file);
    let mut contents = Vec::new();
    for loaded in store.load_all_as(&verify, &trust::read, standing.now)? {
        match loaded.bundle.map_err(Failure::from).flatten() {
            Ok(content) => contents.push(content),
            Err(failure) => output.warning(format!(
                "{} is installed and not loaded: {} ({})",
                loaded.installed.id, failure.message, failure.code
            )),
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
    unrecorded(store, output);
    Ok(contents)
}

/// Warns where decisions could not be written down.
pub(crate) fn unrecorded(store: &Store, output: &Output) {
    if let Some(code) = store.unrecorded() {
        output.warning(format!("what was decided here is not recorded ({code})"));
    }
}

/// An installed bundle, and what `call` and `serve` would make of it now.
#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) installed: Installed,
    pub(crate) state: State,
}

/// Whether an installed bundle is loaded.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each installed bundle, and not for long"
)]
pub(crate) enum State {
    /// It verifies.
    Verified,
    /// It is left out, and this is why.
    Refused(Failure),
    /// Whom to trust can't be read.
    Unknown,
}

impl Examined {
    /// Why it is not loaded, where that is known.
    pub(crate) fn refusal(&self) -> Option<&Failure> {
        match &self.state {
            State::Refused(failure) => Some(failure),
            State::Verified | State::Unknown => None,
        }
    }

    /// The state in one word.
    pub(crate) fn word(&self) -> &'static str {
        match &self.state {
            State::Verified => "verified",
            State::Refused(_) => "refused",
            State::Unknown => "unknown",
        }
    }
}

/// All that is installed, verified as `call` and `serve` verify it. Nothing is
/// recorded. Where whom to trust can't be read, a warning says so.
pub(crate) fn examined(
    store: &Store,
    trust: &Trust,
    environment: &Environment,
    output: &Output,
) -> Result<Vec<Examined>, Failure> {
    let standing = trust
        .trusted(environment)
        .and_then(|trusted| trust.standing_or_empty(&trusted, environment, output));
    let standing = match standing {
        Ok(standing) => standing,
        Err(failure) => {
            output.warning(format!(
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
    let verify = |file: &mut File| standing.archive_file(file);
    let examined = store.examine(&verify, &trust::read)?.into_iter();
    let examined = examined.map(|loaded| Examined {
        installed: loaded.installed,
        state: match loaded.bundle.map_err(Failure::from).flatten() {
            Ok(_) => State::Verified,
            Err(failure) => State::Refused(failure),
        },
    });
    Ok(examined.collect())
}

/// A tool that an installed bundle brings, which is not loaded, and why.
pub(crate) type RefusedTool = (String, Installed, Failure);

/// The tools of the installed bundles that are not loaded now, by bundle and id.
pub(crate) fn refused_tools(
    store: &Store,
    trust: &Trust,
    environment: &Environment,
    output: &Output,
) -> Result<Vec<RefusedTool>, Failure> {
    let tools = store.tools()?;
    let mut refused = Vec::new();
    for one in examined(store, trust, environment, output)? {
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

/// Why a tool is not there, if an installed bundle that is not loaded brings it.
pub(crate) fn withheld(
    tool: &str,
    store: &Store,
    trust: &Trust,
    environment: &Environment,
    output: &Output,
) -> Result<Option<Failure>, Failure> {
    let named = |major_id: &str| {
        let id = major_id.split('@').next();
        major_id == tool || id == Some(tool)
    };
    let mut refused = refused_tools(store, trust, environment, output)?.into_iter();
    Ok(refused.find(|(major_id, _, _)| named(major_id)).map(
        |(_, Installed { id, version, .. }, failure)| {
            let message = format!(
                "`{tool}` is in {id} {version}, which is installed and not loaded: {}",
                failure.message
            );
            Failure { message, ..failure }.hint(next_step(&id))
        },
    ))
}

/// What to do about an installed bundle that is not loaded.
pub(crate) fn next_step(id: &str) -> String {
    format!(
        "`toolward update {id}` looks for a release that holds, `toolward remove {id}` takes it out"
    )
}

impl From<toolward_store::Error> for Failure {
    fn from(error: toolward_store::Error) -> Self {
        use toolward_store::Error;
        let exit = match &error {
            Error::Refused(refusal) => return Self::refused(refusal),
            Error::Content(error) => return failure::content(error, Exit::Refused),
            Error::Duplicate { .. }
            | Error::SurfaceMismatch { .. }
            | Error::ObjectMissing { .. }
            | Error::ObjectChanged { .. }
            | Error::PublisherChanged { .. } => Exit::Refused,
            _ => Exit::Failed,
        };
        let failure = Self::new(exit, error.code(), &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

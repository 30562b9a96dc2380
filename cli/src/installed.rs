//! The store of installed bundles: where it is, and what of it may run.

use std::fs::File;
use std::path::PathBuf;

use clap::Args;
use toolward_bundle::content::Content;
use toolward_host::HostBuilder;
use toolward_store::Store;

use crate::environment::Environment;
use crate::failure::{self, Exit, Failure};
use crate::output::Output;
use crate::standing::Standing;
use crate::trust;

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

    /// Opens the store if there is one. Looking leaves nothing behind.
    pub(crate) fn existing(&self, environment: &Environment) -> Result<Option<Store>, Failure> {
        let Ok((directory, _)) = self.places(environment) else {
            return Ok(None);
        };
        match directory.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => self.open(environment).map(Some),
        }
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
    Ok(contents)
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

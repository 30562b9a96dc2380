//! Why a host could not be built. Errors of a call are part of its result ([`crate::CallError`]).

use std::path::PathBuf;

/// Building a host failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The engine could not be made.
    #[error("the WebAssembly engine could not be made: {0}")]
    Engine(String),
    /// The cache directory can't be used safely.
    #[error("the cache directory {} {problem}", directory.display())]
    Cache {
        /// The directory.
        directory: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The compile broker can't be started.
    #[error("the compile broker {} can't be started: {problem}", program.display())]
    Broker {
        /// The program.
        program: PathBuf,
        /// What went wrong.
        problem: String,
    },
    /// Two bundles bring the same tool or driver.
    #[error("{kind} `{id}` is in two bundles: {first} and {second}")]
    Duplicate {
        /// `tool` or `driver`.
        kind: &'static str,
        /// The id, for a tool with its major version.
        id: String,
        /// The bundle that brought it first.
        first: String,
        /// The bundle that brought it again.
        second: String,
    },
    /// The directory of a workspace is one that guests must not reach.
    #[error("the directory {} of the workspace `{path}` {problem}", directory.display())]
    Workspace {
        /// The virtual path.
        path: String,
        /// The directory.
        directory: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl HostError {
    /// The stable code of this error, as the book lists it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Engine(_) => "engine-unavailable",
            Self::Cache { .. } => "cache-unusable",
            Self::Broker { .. } => "broker-unavailable",
            Self::Duplicate { .. } => "duplicate-id",
            Self::Workspace { .. } => "workspace-refused",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Engine(_) => {
                Some("lower the concurrency limit, or raise the limit on address space".to_owned())
            }
            Self::Cache { .. } => {
                Some("name another cache directory, or repair this one".to_owned())
            }
            Self::Broker { .. } => {
                Some("name a program that is there and that you may run".to_owned())
            }
            Self::Duplicate { .. } => Some("load only one of the two bundles".to_owned()),
            Self::Workspace { .. } => {
                Some("map the workspace to a directory of its own".to_owned())
            }
        }
    }
}

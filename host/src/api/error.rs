//! Why a host could not be built. Errors of a call are part of its result ([`crate::CallError`]).

use std::path::PathBuf;

use toolward_support::report::codes;

/// Building a host failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The engine could not be made.
    #[error("the WebAssembly engine could not be made: {0}")]
    Engine(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The cache directory can't be used safely.
    #[error("the cache directory {} {source}", directory.display())]
    Cache {
        /// The directory.
        directory: PathBuf,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The compile broker can't be started.
    #[error("the compile broker {} can't be started: {source}", program.display())]
    Broker {
        /// The program.
        program: PathBuf,
        /// What went wrong.
        source: std::io::Error,
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

codes! {
    for HostError {
        Self::Engine(_) = "engine-unavailable",
            "raise the limit on address space (`ulimit -v unlimited`)";
        Self::Cache { .. } = "cache-unusable", "name another cache directory, or repair this one";
        Self::Broker { .. } = "broker-unavailable",
            "name a program that is there and that you may run";
        Self::Duplicate { .. } = "duplicate-id", "load only one of the two bundles";
        Self::Workspace { .. } = "workspace-refused", "map the workspace to a directory of its own";
    }
}

//! Why a host could not be built. The error of a call is part of the call's result
//! ([`crate::result::CallError`]).

use std::path::PathBuf;

use toolward_support::report::codes;

codes! {
    /// Building a host failed.
    #[derive(Debug)]
    pub enum HostError: Error {
        Engine(source: BoxError) = "engine-unavailable", ("the WebAssembly engine could not be made: {source}")
            => "raise the limit on address space (`ulimit -v unlimited`)";
        Cache { directory: PathBuf, source: BoxError } = "cache-unusable", "the cache directory can't be used safely",
            ("the cache directory {} {source}", directory.display())
            => "name another cache directory, or repair this one";
        Broker { program: PathBuf, source: std::io::Error } = "broker-unavailable",
            ("the compile broker {} can't be started: {source}", program.display())
            => "name a program that is there and that you may run";
        /// `kind` is `tool` or `driver`; a tool's `id` has its major version.
        Duplicate { kind: &'static str, id: String, first: String, second: String } = "duplicate-id",
            ("{kind} `{id}` is in two bundles: {first} and {second}")
            => "load only one of the two bundles";
        /// `path` is virtual.
        Workspace { path: String, directory: PathBuf, problem: String } = "workspace-refused" ["2"],
            "a workspace's directory is in a protected place, or in another workspace",
            ("the directory {} of the workspace `{path}` {problem}", directory.display())
            => "map the workspace to a directory of its own";
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

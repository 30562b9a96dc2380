//! Why a component can't be built.

use std::path::PathBuf;
use std::process::ExitStatus;

use toolward_bundle::component::{HANDLER, SurfaceError};
use toolward_support::report::codes;

use super::TARGET;
use crate::error::AuthorError;

codes! {
    /// Why a component can't be built. `from` is its source.
    #[derive(Debug)]
    pub enum BuildError: Error {
        /// `bundle.toml` is missing or invalid, or the component can't be written.
        Author(inner: AuthorError);
        NothingToBuild = "nothing-to-build", "`bundle.toml` has no `[[build]]`", ("bundle.toml has no [[build]] table")
            => "add `[[build]]` with `crate = \"driver\"` and `output = \"drivers/ID/driver.wasm\"`";
        /// `path` is the directory.
        NoCrate(path: PathBuf) = "crate-missing", "a `[[build]]` names a directory without Cargo.toml",
            ("{}: there is no Cargo.toml", path.display())
            => "`crate` in bundle.toml names the directory of the driver's Cargo.toml";
        /// Cargo can't be started, or its output can't be read.
        Cargo(program: PathBuf, source: std::io::Error) = "cargo-unusable",
            "the guest toolchain's Cargo can't be started", ("{}: {source}", program.display())
            => "name a Cargo that can be run, with `--guest-cargo` or TOOLWARD_GUEST_CARGO";
        /// Cargo or a tool ended with an error.
        Failed(from: String, status: ExitStatus, reason: BuildReason) -> reason, ("building {from} failed ({status})");
        NoComponent(from: String) = "component-missing", ("{from} has made no .wasm file")
            => "the crate needs `[lib]` with `crate-type = [\"cdylib\"]`";
        SourceMissing(path: PathBuf) = "source-missing", "the `source` of a `[[build]]` is missing, or a link leads to it",
            ("{}: the source is missing, or a link leads to it", path.display())
            => "`source` in bundle.toml names the file or directory that the driver is built from";
        /// `install` is a command.
        ToolMissing(tool: &'static str, install: String) = "build-tool-missing",
            "a tool of the driver's language is not installed", ("{tool} is missing")
            => format!("install it: {install}");
        /// The tool can't be started, or its output can't be read.
        Tool(program: PathBuf, source: std::io::Error) = "build-tool-unusable",
            "a tool of the driver's language can't be started", ("{}: {source}", program.display())
            => "see that the file is a program that this user may run";
        /// The tool was not started.
        Confine(source: Box<dyn std::error::Error + Send + Sync>) = "build-confine-refused",
            "the kernel refuses to confine a build", ("the build can't be confined: {source}")
            => "see whether something else forbids it, such as a container; `--no-confine` builds with all your rights";
        Snapshot(from: String, message: String) = "snapshot-failed", "the start of a driver can't run when the driver is built",
            ("{from}: its start can't run beforehand: {message}")
            => "remove `snapshot` from its [[build]]: the start then runs in each call";
        Wrap(from: String, message: String) = "component-wrap-failed", "no component can be made of a core module",
            ("{from}: no component can be made of the module: {message}")
            => "compile a reactor (without `main`) for WASI preview 1 that exports the handler of the world";
        Features(from: String, source: Box<dyn std::error::Error + Send + Sync>) = "component-features",
            "a component uses proposals of WebAssembly that this host does not run",
            ("{from}: the component is not one that a host runs: {source}")
            => "build it without component-model async, threads and 64-bit memories";
        /// The output is not a component.
        Surface(from: String, source: SurfaceError) -> source, ("{from}: {source}");
        /// The output is a component of another world.
        World(from: String, exports: String) = "component-world",
            ("{from}: the component exports {exports}; expected {HANDLER}")
            => "a Rust driver needs the `driver!` macro of toolward-guest, others the `handler` of their world";
    }
}

codes! {
    /// Why Cargo or a tool failed, as far as its output shows. If it shows several reasons, the
    /// least one by [`Ord`] counts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum BuildReason: Error {
        TargetMissing = "guest-target-missing", "the compiler of the guest toolchain lacks the target `wasm32-wasip2`" => format!(
            "this compiler has no {TARGET}: `rustup target add {TARGET}`, or name another Cargo with `--guest-cargo`"
        );
        StdNeeded = "guest-std-needed",
            "the driver or one of its dependencies uses `std`, and `toolward-guest` was built without its feature `std`"
            => "something in this driver uses `std`: remove `#![no_std]` from its source and `default-features = false` of \
                toolward-guest from its Cargo.toml, or turn off the feature `std` of the crate that needs it";
        /// A confined program reported that something was denied.
        Denied = "build-failed", "a driver does not compile"
            => "a build reads your checkout and compilers, writes to scratch directories, and has no network; \
                if you trust its sources: `--no-confine`";
        /// Cargo's output shows no other reason.
        Cargo = "build-failed"
            => "the compiler says what is wrong; is there a target wasm32-wasip2? `--guest-cargo` names another cargo";
        /// A tool's output shows no other reason.
        Tool = "build-failed" => "the lines above say what is wrong, and where";
    }
}

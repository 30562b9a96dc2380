//! Why a component can't be built.

use std::path::PathBuf;

use toolward_bundle::component::{HANDLER, SurfaceError};
use toolward_support::report::codes;

use super::TARGET;
use crate::error::AuthorError;

/// Why a component can't be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// `bundle.toml` is missing or invalid, or the component can't be written.
    #[error(transparent)]
    Author(#[from] AuthorError),
    /// `bundle.toml` has no `[[build]]`.
    #[error("bundle.toml has no [[build]] table")]
    NothingToBuild,
    /// The crate is not there.
    #[error("{path}: there is no Cargo.toml", path = path.display())]
    NoCrate {
        /// Its directory.
        path: PathBuf,
    },
    /// Cargo can't be started, or its output can't be read.
    #[error("{program}: {source}", program = program.display())]
    Cargo {
        /// The program.
        program: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Cargo ended with an error.
    #[error("building {from} failed ({status})")]
    Failed {
        /// The source.
        from: String,
        /// How Cargo ended.
        status: std::process::ExitStatus,
        /// The cause, where Cargo's output shows one.
        reason: Option<CargoReason>,
    },
    /// The crate has made no component.
    #[error("{from} has made no .wasm file")]
    NoComponent {
        /// The source.
        from: String,
    },
    /// The source is not there.
    #[error("{path}: the source is missing, or a link leads to it", path = path.display())]
    SourceMissing {
        /// Where it was expected.
        path: PathBuf,
    },
    /// A tool of the source's language is not installed.
    #[error("{tool} is missing")]
    ToolMissing {
        /// The tool.
        tool: &'static str,
        /// The command that installs it.
        install: String,
    },
    /// No directory was named to install tools in, and the user has no data directory.
    #[error("there is no toolchain directory: this user has no data directory")]
    NoToolchain,
    /// Another process installs into the toolchain directory.
    #[error("{path}: another process installs tools there", path = path.display())]
    ToolchainBusy {
        /// The directory.
        path: PathBuf,
    },
    /// A program that fetches tools ended with an error.
    #[error("{what} failed ({status})")]
    Install {
        /// The program.
        what: &'static str,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// A tool can't be started, or its output can't be read.
    #[error("{program}: {source}", program = program.display())]
    Tool {
        /// The program.
        program: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A tool ended with an error.
    #[error("building {from} failed ({status})")]
    ToolFailed {
        /// The source.
        from: String,
        /// How the tool ended.
        status: std::process::ExitStatus,
        /// Whether it was confined, and said that something was denied.
        denied: bool,
    },
    /// The kernel has refused to confine a tool, which was not started.
    #[error("the build can't be confined: {source}")]
    Confine {
        /// The kernel's answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The module's start can't run when it is built.
    #[error("{from}: its start can't run beforehand: {message}")]
    Snapshot {
        /// The source.
        from: String,
        /// Why not.
        message: String,
    },
    /// The core module does not fit its world.
    #[error("{from}: no component can be made of the module: {message}")]
    Wrap {
        /// The source.
        from: String,
        /// Why not.
        message: String,
    },
    /// The component uses a proposal of WebAssembly that no host runs.
    #[error("{from}: the component is not one that a host runs: {source}")]
    Features {
        /// The source.
        from: String,
        /// What it uses, and where.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What the crate has made is not a component.
    #[error("{from}: {source}")]
    Surface {
        /// The source.
        from: String,
        /// Why not.
        source: SurfaceError,
    },
    /// What the crate has made is a component of another world.
    #[error("{from}: the component exports {exports}; expected {HANDLER}")]
    World {
        /// The source.
        from: String,
        /// What it exports.
        exports: String,
    },
}

/// Why Cargo failed, where its output says so. Where it gives several, the first of these counts, by [`Ord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CargoReason {
    /// The compiler lacks the target.
    TargetMissing,
    /// The guest library was built without the standard library, which the driver or a dependency uses.
    StdNeeded,
    /// A confined program said that something was denied.
    Denied,
}

const CONFINED: &str = "a build reads your checkout and compilers, writes to scratch directories, and has no network; \
                        if you trust its sources: `--no-confine`";

codes! {
    for BuildError {
        Self::Author(error) = error;
        Self::NothingToBuild = "nothing-to-build",
            "add `[[build]]` with `crate = \"driver\"` and `output = \"drivers/ID/driver.wasm\"`";
        Self::NoCrate { .. } = "crate-missing",
            "`crate` in bundle.toml names the directory of the driver's Cargo.toml";
        Self::Cargo { .. } = "cargo-unusable",
            "name a Cargo that can be run, with `--guest-cargo` or TOOLWARD_GUEST_CARGO";
        Self::Failed { reason: Some(CargoReason::TargetMissing), .. } = "guest-target-missing", format!(
            "this compiler has no {TARGET}: `rustup target add {TARGET}`, or name another Cargo with `--guest-cargo`"
        );
        Self::Failed { reason: Some(CargoReason::StdNeeded), .. } = "guest-std-needed",
            "something in this driver uses `std`: remove `#![no_std]` from its source and `default-features = false` of \
             toolward-guest from its Cargo.toml, or turn off the feature `std` of the crate that needs it";
        Self::Failed { reason: Some(CargoReason::Denied), .. } = "build-failed", CONFINED;
        Self::Failed { .. } = "build-failed",
            "the compiler says what is wrong; is there a target wasm32-wasip2? `--guest-cargo` names another cargo";
        Self::NoComponent { .. } = "component-missing",
            "the crate needs `[lib]` with `crate-type = [\"cdylib\"]`";
        Self::SourceMissing { .. } = "source-missing",
            "`source` in bundle.toml names the file or directory that the driver is built from";
        Self::ToolMissing { install, .. } = "build-tool-missing", format!("install it: {install}");
        Self::NoToolchain = "toolchain-unplaced", "name a directory with `--toolchain` or TOOLWARD_TOOLCHAIN";
        Self::ToolchainBusy { .. } = "toolchain-busy", "try again when it has ended";
        Self::Install { .. } = "toolchain-install-failed",
            "its output says why; a file whose digest is not the one in this release is refused";
        Self::Tool { .. } = "build-tool-unusable", "see that the file is a program that this user may run";
        Self::ToolFailed { denied: true, .. } = "build-failed", CONFINED;
        Self::Confine { .. } = "build-confine-refused",
            "see whether something else forbids it, such as a container; `--no-confine` builds with all your rights";
        Self::ToolFailed { .. } = "build-failed", "the lines above say what is wrong, and where";
        Self::Snapshot { .. } = "snapshot-failed",
            "remove `snapshot` from its [[build]]: the start then runs in each call";
        Self::Wrap { .. } = "component-wrap-failed",
            "compile a reactor (without `main`) for WASI preview 1 that exports the handler of the world";
        Self::Features { .. } = "component-features",
            "build it without component-model async, threads and 64-bit memories";
        Self::Surface { source, .. } = source;
        Self::World { .. } = "component-world", "a Rust driver needs the `driver!` macro of toolward-guest, others the `handler` of their world";
    }
}

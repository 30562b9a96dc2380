//! Why a component can't be built.

use std::path::PathBuf;

use toolward_bundle::component::{HANDLER, SurfaceError};

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
    #[error("building {krate} failed ({status})")]
    Failed {
        /// The crate's directory.
        krate: String,
        /// How Cargo ended.
        status: std::process::ExitStatus,
        /// Whether the compiler said that it lacks the target.
        target_missing: bool,
    },
    /// The crate has made no component.
    #[error("{krate} has made no .wasm file")]
    NoComponent {
        /// The crate's directory.
        krate: String,
    },
    /// What the crate has made is not a component.
    #[error("{krate}: {source}")]
    Surface {
        /// The crate's directory.
        krate: String,
        /// Why not.
        source: SurfaceError,
    },
    /// What the crate has made is a component of another world.
    #[error("{krate}: the component exports {exports}; expected {HANDLER}")]
    World {
        /// The crate's directory.
        krate: String,
        /// What it exports.
        exports: String,
    },
}

impl BuildError {
    /// The stable name of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Author(error) => error.code(),
            Self::NothingToBuild => "nothing-to-build",
            Self::NoCrate { .. } => "crate-missing",
            Self::Cargo { .. } => "cargo-unusable",
            Self::Failed { target_missing, .. } if *target_missing => "guest-target-missing",
            Self::Failed { .. } => "build-failed",
            Self::NoComponent { .. } => "component-missing",
            Self::Surface { source, .. } => source.code(),
            Self::World { .. } => "component-world",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Author(error) => error.hint(),
            Self::NothingToBuild => Some(
                "add `[[build]]` with `crate = \"driver\"` and `output = \"drivers/ID/driver.wasm\"`"
                    .to_owned(),
            ),
            Self::NoCrate { .. } => {
                Some("`crate` in bundle.toml names the directory of the driver's Cargo.toml".to_owned())
            }
            Self::Cargo { .. } => Some(
                "name a Cargo that can be run, with `--guest-cargo` or TOOLWARD_GUEST_CARGO".to_owned(),
            ),
            Self::Failed { target_missing, .. } => Some(if *target_missing {
                format!(
                    "this compiler has no {TARGET}: `rustup target add {TARGET}`, or name another Cargo with `--guest-cargo`"
                )
            } else {
                "the compiler says what is wrong; is there a target wasm32-wasip2? `--guest-cargo` names another cargo"
                    .to_owned()
            }),
            Self::NoComponent { .. } => {
                Some("the crate needs `[lib]` with `crate-type = [\"cdylib\"]`".to_owned())
            }
            Self::Surface { source, .. } => source.hint(),
            Self::World { .. } => {
                Some("the crate needs the `driver!` macro of toolward-guest".to_owned())
            }
        }
    }
}

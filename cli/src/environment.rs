//! The values that the command takes from its environment. Of Toolward's libraries, only
//! `toolward_operator` looks up environment variables, in its `Environment`.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::ColorChoice;
use toolward_author::build::RustSettings;
use toolward_operator::{directory_of_variable, unix_seconds};

use crate::codes::Code;
use crate::failure::{Failure, Result};

/// The part of the environment that the command uses.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// Where the operator's files are.
    pub(crate) operator: toolward_operator::Environment,
    /// The guest toolchain's Cargo, from `TOOLWARD_GUEST_CARGO`.
    pub(crate) guest_cargo: Option<OsString>,
    /// The user's home directory. The tools of a build get its path, but mostly no access to it.
    pub(crate) home: Option<PathBuf>,
    /// The settings of Rust's tools.
    pub(crate) rust: RustSettings,
    /// `SOURCE_DATE_EPOCH`, unparsed.
    source_date_epoch: Option<String>,
    /// The variable that sets which reports of libraries are shown, `TOOLWARD_LOG` or else
    /// `RUST_LOG`, and its value.
    pub(crate) log: Option<(&'static str, String)>,
    /// `LISTEN_FDS`, if `LISTEN_PID` names this process.
    pub(crate) listen_fds: Option<String>,
    pub(crate) colours: Colours,
}

/// Which streams get colours: terminals, unless `NO_COLOR` is set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Colours {
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

impl Colours {
    /// Returns the streams that get colours with this flag.
    pub(crate) fn wanted(self, choice: ColorChoice) -> Self {
        let all = |on| Self {
            stdout: on,
            stderr: on,
        };
        match choice {
            ColorChoice::Auto => self,
            ColorChoice::Always => all(true),
            ColorChoice::Never => all(false),
        }
    }

    pub(crate) fn read() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            stdout: wanted && std::io::stdout().is_terminal(),
            stderr: wanted && std::io::stderr().is_terminal(),
        }
    }
}

impl Environment {
    pub(crate) fn read() -> Self {
        Self {
            operator: toolward_operator::Environment::of_process(),
            guest_cargo: std::env::var_os("TOOLWARD_GUEST_CARGO").filter(|v| !v.is_empty()),
            // If `HOME` is not set, the system's list of users is used.
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            rust: RustSettings {
                cargo_home: directory_of_variable("CARGO_HOME"),
                rustup_home: directory_of_variable("RUSTUP_HOME"),
                target: target_directory(),
                tokens: registry_tokens(),
            },
            source_date_epoch: std::env::var("SOURCE_DATE_EPOCH")
                .ok()
                .filter(|value| !value.is_empty()),
            log: ["TOOLWARD_LOG", "RUST_LOG"]
                .into_iter()
                .filter_map(|name| Some((name, std::env::var(name).ok()?)))
                .find(|(_, value)| !value.is_empty()),
            listen_fds: std::env::var("LISTEN_PID")
                .is_ok_and(|process| process == std::process::id().to_string())
                .then(|| std::env::var("LISTEN_FDS").ok())
                .flatten(),
            colours: Colours::read(),
        }
    }

    /// `SOURCE_DATE_EPOCH` as a number.
    pub(crate) fn source_date_epoch(&self) -> Result<Option<i64>> {
        let number = self.source_date_epoch.as_ref().map(|value| {
            value.parse().map_err(|_| {
                let message =
                    format!("SOURCE_DATE_EPOCH is {value:?}; expected seconds since 1970");
                Failure::usage(Code::SourceDateEpochInvalid, message)
            })
        });
        number.transpose()
    }

    /// Returns the time of creation for things that are made now, in seconds since 1970:
    /// `SOURCE_DATE_EPOCH`, or else the current time.
    pub(crate) fn created(&self) -> Result<i64> {
        let now = || unix_seconds(SystemTime::now());
        Ok(self.source_date_epoch()?.unwrap_or_else(now))
    }
}

impl Deref for Environment {
    type Target = toolward_operator::Environment;

    fn deref(&self) -> &Self::Target {
        &self.operator
    }
}

/// Returns the directory in which Cargo builds, if a variable names one. It is made absolute in the
/// same way as by Cargo.
fn target_directory() -> Option<PathBuf> {
    ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|named| !named.is_empty())
        .and_then(|named| std::path::absolute(named).ok())
}

/// The names of the variables with tokens that Cargo would send to registries:
/// `CARGO_REGISTRY_TOKEN` and `CARGO_REGISTRIES_…_TOKEN`.
fn registry_tokens() -> Vec<OsString> {
    let is_token = |name: &OsString| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"CARGO_REGISTR") && name.ends_with(b"_TOKEN")
    };
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(is_token).collect()
}

/// Whether a person can be asked: on standard error, with the answer on standard input.
pub(crate) fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Returns the file or directory that a variable names, if it is not empty.
pub(crate) fn path(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable)?;
    (!value.is_empty()).then(|| value.into())
}

/// The files that a variable names, separated by colons.
pub(crate) fn paths(variable: &str) -> Vec<PathBuf> {
    let value = std::env::var_os(variable).unwrap_or_default();
    let paths = std::env::split_paths(&value);
    paths.filter(|path| !path.as_os_str().is_empty()).collect()
}

/// Returns the directories that are searched for programs: `PATH`.
pub(crate) fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

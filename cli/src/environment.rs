//! What the command takes from its environment, read once. No library does.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::ops::Deref;
use std::path::PathBuf;

/// The environment, as far as the command cares.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// Where the operator's files are.
    pub(crate) operator: toolward_operator::Environment,
    /// The guest toolchain's Cargo, from `TOOLWARD_GUEST_CARGO`.
    pub(crate) guest_cargo: Option<OsString>,
    /// `SOURCE_DATE_EPOCH`, unparsed.
    pub(crate) source_date_epoch: Option<String>,
    /// What is shown of what libraries report, and the variable that says so:
    /// `TOOLWARD_LOG`, or else `RUST_LOG`.
    pub(crate) log: Option<(&'static str, String)>,
    /// `LISTEN_FDS`, if `LISTEN_PID` says that it is meant for this process.
    pub(crate) listen_fds: Option<String>,
    pub(crate) colours: Colours,
}

/// Which streams take colours: those that are a terminal, unless `NO_COLOR` is set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Colours {
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

impl Colours {
    fn read() -> Self {
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
}

impl Deref for Environment {
    type Target = toolward_operator::Environment;

    fn deref(&self) -> &Self::Target {
        &self.operator
    }
}

/// Where programs are looked for: `PATH`.
pub(crate) fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

//! What the command takes from its environment, read once. No library does.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// The environment, as far as the command cares.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// Where configuration lies: `$XDG_CONFIG_HOME/toolward`.
    pub(crate) config_directory: Option<PathBuf>,
    /// Where compiled drivers are kept: `$XDG_CACHE_HOME/toolward`.
    pub(crate) cache_directory: Option<PathBuf>,
    /// Where installed bundles are kept: `$XDG_DATA_HOME/toolward`.
    pub(crate) data_directory: Option<PathBuf>,
    /// Where tools' own data is kept: `$XDG_STATE_HOME/toolward`.
    pub(crate) state_directory: Option<PathBuf>,
    /// Where the system's certificates lie, if `SSL_CERT_FILE` or
    /// `SSL_CERT_DIR` say so.
    pub(crate) certificates: Vec<PathBuf>,
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
        let home = absolute("HOME");
        let below_home = |folder: &str| home.as_ref().map(|home| home.join(folder));
        Self {
            config_directory: absolute("XDG_CONFIG_HOME")
                .or_else(|| below_home(".config"))
                .map(|directory| directory.join("toolward")),
            cache_directory: absolute("XDG_CACHE_HOME")
                .or_else(|| below_home(".cache"))
                .map(|directory| directory.join("toolward")),
            data_directory: absolute("XDG_DATA_HOME")
                .or_else(|| below_home(".local/share"))
                .map(|directory| directory.join("toolward")),
            state_directory: absolute("XDG_STATE_HOME")
                .or_else(|| below_home(".local/state"))
                .map(|directory| directory.join("toolward")),
            certificates: ["SSL_CERT_FILE", "SSL_CERT_DIR"]
                .iter()
                .filter_map(std::env::var_os)
                .flat_map(|value| std::env::split_paths(&value).collect::<Vec<_>>())
                .filter(|path| path.exists())
                .collect(),
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

    /// The directories that no workspace may have anything in common with, and
    /// what is there.
    pub(crate) fn protected(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let all = [
            ("the configuration directory", &self.config_directory),
            ("the cache directory", &self.cache_directory),
            ("the data directory", &self.data_directory),
            ("the state directory", &self.state_directory),
        ];
        all.into_iter()
            .filter_map(|(what, directory)| Some((what, directory.as_ref()?)))
    }
}

/// The value of a variable that the operator's policy names for a secret.
pub(crate) fn secret(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

/// A directory from the environment; one that isn't absolute counts as unset
/// (XDG Base Directory Specification).
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

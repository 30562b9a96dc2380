//! Where the operator's files are, and what comes from the process's environment.

use std::path::PathBuf;

/// Directories and variables that the operator's files are found by.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Environment {
    /// Where configuration lies: `$XDG_CONFIG_HOME/toolward`.
    pub config_directory: Option<PathBuf>,
    /// Where compiled drivers are kept: `$XDG_CACHE_HOME/toolward`.
    pub cache_directory: Option<PathBuf>,
    /// Where installed bundles are kept: `$XDG_DATA_HOME/toolward`.
    pub data_directory: Option<PathBuf>,
    /// Where tools' own data is kept: `$XDG_STATE_HOME/toolward`.
    pub state_directory: Option<PathBuf>,
    /// Where the system's certificates lie, if `SSL_CERT_FILE` or
    /// `SSL_CERT_DIR` say so.
    pub certificates: Vec<PathBuf>,
    /// The value of a variable that the operator's policy names.
    pub variable: fn(&str) -> Option<String>,
}

impl Default for Environment {
    /// No directories, no variables: what needs one says which is missing.
    fn default() -> Self {
        Self {
            config_directory: None,
            cache_directory: None,
            data_directory: None,
            state_directory: None,
            certificates: Vec::new(),
            variable: |_| None,
        }
    }
}

impl Environment {
    /// What the environment variables of this process say, as of now.
    pub fn of_process() -> Self {
        let home = absolute("HOME");
        let directory = |variable: &str, below_home: &str| {
            absolute(variable)
                .or_else(|| home.as_ref().map(|home| home.join(below_home)))
                .map(|directory| directory.join("toolward"))
        };
        let paths = |variable: &str| {
            let value = std::env::var_os(variable).unwrap_or_default();
            let paths: Vec<PathBuf> = std::env::split_paths(&value).collect();
            paths.into_iter()
        };
        Self {
            config_directory: directory("XDG_CONFIG_HOME", ".config"),
            cache_directory: directory("XDG_CACHE_HOME", ".cache"),
            data_directory: directory("XDG_DATA_HOME", ".local/share"),
            state_directory: directory("XDG_STATE_HOME", ".local/state"),
            certificates: paths("SSL_CERT_FILE")
                .chain(paths("SSL_CERT_DIR"))
                .filter(|path| path.exists())
                .collect(),
            variable: |name| std::env::var(name).ok(),
        }
    }

    /// The directories that no workspace may have anything in common with, and
    /// what is there.
    pub fn protected(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
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

/// A directory from the environment; one that isn't absolute counts as unset
/// (XDG Base Directory Specification).
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

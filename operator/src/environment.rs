//! The operator's directories, and the values read from the process's environment.

use std::path::PathBuf;

/// The directories and variables that locate the operator's files.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Environment {
    /// The configuration: `$XDG_CONFIG_HOME/toolward`.
    pub config_directory: Option<PathBuf>,
    /// Compiled drivers: `$XDG_CACHE_HOME/toolward`.
    pub cache_directory: Option<PathBuf>,
    /// Installed bundles: `$XDG_DATA_HOME/toolward`.
    pub data_directory: Option<PathBuf>,
    /// The tools' own data: `$XDG_STATE_HOME/toolward`.
    pub state_directory: Option<PathBuf>,
    /// The tools that drivers are built with, if `TOOLWARD_TOOLCHAIN` names a directory;
    /// else they are in the data directory.
    pub toolchain_directory: Option<PathBuf>,
    /// The system's certificates, if `SSL_CERT_FILE` or `SSL_CERT_DIR` is set.
    pub certificates: Vec<PathBuf>,
    /// Looks up a variable that the operator's policy names.
    pub variable: fn(&str) -> Option<String>,
}

impl Default for Environment {
    /// No directories and no variables. An operation that needs one returns an error
    /// that names it.
    fn default() -> Self {
        Self {
            config_directory: None,
            cache_directory: None,
            data_directory: None,
            state_directory: None,
            toolchain_directory: None,
            certificates: Vec::new(),
            variable: |_| None,
        }
    }
}

impl Environment {
    /// Reads the environment variables of this process.
    ///
    /// ```
    /// let environment = toolward_operator::Environment::of_process();
    /// println!("configured in {:?}", environment.config_directory);
    /// ```
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
            toolchain_directory: absolute("TOOLWARD_TOOLCHAIN"),
            certificates: paths("SSL_CERT_FILE")
                .chain(paths("SSL_CERT_DIR"))
                .filter(|path| path.exists())
                .collect(),
            variable: |name| std::env::var(name).ok(),
        }
    }

    /// The directories that must not overlap with a workspace, each with a description.
    ///
    /// ```
    /// let environment = toolward_operator::Environment::of_process();
    /// for (what, directory) in environment.protected() {
    ///     println!("{what}: {}", directory.display());
    /// }
    /// ```
    pub fn protected(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let all = [
            ("the configuration directory", &self.config_directory),
            ("the cache directory", &self.cache_directory),
            ("the data directory", &self.data_directory),
            ("the state directory", &self.state_directory),
            ("the toolchain directory", &self.toolchain_directory),
        ];
        all.into_iter()
            .filter_map(|(what, directory)| Some((what, directory.as_ref()?)))
    }
}

/// A directory from the environment; a relative one counts as unset (XDG Base Directory
/// Specification).
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

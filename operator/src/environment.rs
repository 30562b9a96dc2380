//! What surrounds an operation: the operator's directories and the process's variables, and the receiver of warnings,
//! notes and progress.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use toolward_signing::verify::VerifyProgress;

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

/// Receives warnings, notes and progress. The command writes them to standard error;
/// an application may log them, or drop them with [`Silent`].
///
/// ```
/// use toolward_operator::{Progress, Report, Silent};
///
/// struct Logged;
///
/// impl Report for Logged {
///     fn warning(&self, message: &str) {
///         eprintln!("warning: {message}");
///     }
///
///     fn note(&self, message: &str) {
///         eprintln!("{message}");
///     }
///
///     fn begin(&self, what: &str) -> Box<dyn Progress + Send> {
///         eprintln!("{what}");
///         Box::new(Silent)
///     }
/// }
/// ```
pub trait Report {
    /// A problem that does not stop the work. May contain untrusted text.
    fn warning(&self, message: &str);

    /// A note. May contain untrusted text.
    fn note(&self, message: &str);

    /// Starts an operation that may take long, such as `verifying`. It ends when the
    /// value is dropped.
    fn begin(&self, what: &str) -> Box<dyn Progress + Send>;
}

/// Receives the progress of an operation.
pub trait Progress {
    /// `done` of `total` bytes; a total of 0 means unknown.
    fn set(&self, done: u64, total: u64);
}

/// A [`Report`] that drops everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Report for Silent {
    fn warning(&self, _message: &str) {}

    fn note(&self, _message: &str) {}

    fn begin(&self, _what: &str) -> Box<dyn Progress + Send> {
        Box::new(Self)
    }
}

impl Progress for Silent {
    fn set(&self, _done: u64, _total: u64) {}
}

/// Reports the sum of what several threads have verified.
pub(crate) struct JointProgress(Mutex<(Vec<VerifyProgress>, Box<dyn Progress + Send>)>);

impl JointProgress {
    pub(crate) fn of(count: usize, whole: Box<dyn Progress + Send>) -> Self {
        let none = VerifyProgress { done: 0, total: 0 };
        Self(Mutex::new((vec![none; count], whole)))
    }

    /// Sets the progress of one. Its total counts once it has started.
    pub(crate) fn set(&self, number: usize, progress: VerifyProgress) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (each, whole) = &mut *state;
        if let Some(one) = each.get_mut(number) {
            *one = progress;
        }
        let sum = |part: fn(&VerifyProgress) -> u64| each.iter().map(part).sum();
        whole.set(sum(|one| one.done), sum(|one| one.total));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Default)]
    struct Last(Arc<Mutex<(u64, u64)>>);

    impl Progress for Last {
        fn set(&self, done: u64, total: u64) {
            *self.0.lock().unwrap() = (done, total);
        }
    }

    #[test]
    fn the_whole_is_the_sum() {
        let last = Last::default();
        let seen = Arc::clone(&last.0);
        let joint = JointProgress::of(2, Box::new(last));
        for (number, done, total, whole) in [
            (0, 1, 10, (1, 10)),
            (1, 5, 5, (6, 15)),
            (0, 9, 10, (14, 15)),
        ] {
            joint.set(number, VerifyProgress { done, total });
            assert_eq!(*seen.lock().unwrap(), whole);
        }
    }
}

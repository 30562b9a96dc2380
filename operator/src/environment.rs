//! The environment of an operation: the operator's directories, the process's variables, and the
//! receiver of warnings, notes and progress.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use toolward_signing::verify::VerifyProgress;
use toolward_support::helper::lock;

use crate::error::Error;

/// The directories and variables that locate the operator's files, and the receiver of reports.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The configuration: `$XDG_CONFIG_HOME/toolward`.
    pub config_directory: Option<PathBuf>,
    /// Compiled drivers: `$XDG_CACHE_HOME/toolward`.
    pub cache_directory: Option<PathBuf>,
    /// Installed bundles: `$XDG_DATA_HOME/toolward`.
    pub data_directory: Option<PathBuf>,
    /// The tools' own data, the record of trust and the ledger: `$XDG_STATE_HOME/toolward`.
    pub state_directory: Option<PathBuf>,
    /// The tools with which drivers are built, if `TOOLWARD_TOOLCHAIN` names a directory. Otherwise
    /// they are in the data directory.
    pub toolchain_directory: Option<PathBuf>,
    /// The files and directories in `SSL_CERT_FILE` and `SSL_CERT_DIR` that exist: the system's
    /// certificates.
    pub certificates: Vec<PathBuf>,
    /// Looks up an environment variable, such as one that the operator's policy names.
    pub variable: fn(&str) -> Option<String>,
    /// Receives warnings, notes and progress.
    pub report: Arc<dyn Report>,
}

impl Default for Environment {
    /// No directories and no variables. An operation that needs a directory or a variable returns
    /// an error that names it.
    fn default() -> Self {
        Self {
            config_directory: None,
            cache_directory: None,
            data_directory: None,
            state_directory: None,
            toolchain_directory: None,
            certificates: Vec::new(),
            variable: |_| None,
            report: Arc::new(Silent),
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
        let home = directory_of_variable("HOME");
        let directory = |variable: &str, below_home: &str| {
            directory_of_variable(variable)
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
            toolchain_directory: directory_of_variable("TOOLWARD_TOOLCHAIN"),
            certificates: paths("SSL_CERT_FILE")
                .chain(paths("SSL_CERT_DIR"))
                .filter(|path| path.exists())
                .collect(),
            variable: |name| std::env::var(name).ok(),
            report: Arc::new(Silent),
        }
    }

    /// Returns the same environment with another receiver of warnings, notes and progress.
    #[must_use]
    pub fn reporting(&self, report: impl Report + 'static) -> Self {
        Self {
            report: Arc::new(report),
            ..self.clone()
        }
    }

    /// Returns the directories that must not overlap with a workspace, each with a description.
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

/// Returns the directory in an environment variable. A relative path counts as unset (XDG Base
/// Directory Specification).
pub fn directory_of_variable(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// Seconds since 1970.
pub fn unix_seconds(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Receives warnings, notes and progress. The command writes them to standard error; an application
/// may log them, or drop them with [`Silent`].
///
/// ```
/// use toolward_operator::{Progress, Report, Silent};
///
/// #[derive(Debug)]
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
///     fn begin(&self, what: &str) -> Box<dyn Progress> {
///         eprintln!("{what}");
///         Box::new(Silent)
///     }
/// }
/// ```
pub trait Report: Debug + Send + Sync {
    /// A problem that does not stop the work. May contain untrusted text.
    fn warning(&self, message: &str);

    /// A note. May contain untrusted text.
    fn note(&self, message: &str);

    /// Reports that an operation starts that may take long, such as `verifying`. The operation ends
    /// when the returned value is dropped.
    fn begin(&self, what: &str) -> Box<dyn Progress>;

    /// Warns about a failure. `what` is its consequence: what the failure prevents or leaves
    /// unknown.
    fn warning_of(&self, what: &str, failure: &Error) {
        self.warning(&format!("{what}: {} ({})", failure.message, failure.code));
    }
}

/// Receives the progress of an operation.
pub trait Progress: Send + Sync {
    /// `done` of `total` bytes; a total of 0 means unknown.
    fn set(&self, done: u64, total: u64);
}

/// A [`Report`] that drops everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Report for Silent {
    fn warning(&self, _message: &str) {}

    fn note(&self, _message: &str) {}

    fn begin(&self, _what: &str) -> Box<dyn Progress> {
        Box::new(Self)
    }
}

impl Progress for Silent {
    fn set(&self, _done: u64, _total: u64) {}
}

/// Reports the total progress of several threads that verify.
pub(crate) struct JointProgress {
    each: Mutex<Vec<VerifyProgress>>,
    whole: Box<dyn Progress>,
}

impl JointProgress {
    pub(crate) fn of(count: usize, whole: Box<dyn Progress>) -> Self {
        let each = Mutex::new(vec![VerifyProgress { done: 0, total: 0 }; count]);
        Self { each, whole }
    }

    /// Sets the progress of one thread. The thread's total counts from its first report on.
    pub(crate) fn set(&self, number: usize, progress: VerifyProgress) {
        let mut each = lock(&self.each);
        if let Some(one) = each.get_mut(number) {
            *one = progress;
        }
        let sum = |part: fn(&VerifyProgress) -> u64| each.iter().map(part).sum();
        self.whole.set(sum(|one| one.done), sum(|one| one.total));
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

//! Processes of the operator's program: the broker that compiles drivers, and the confinement of
//! this process before it runs guests.

use std::path::PathBuf;

use toolward_host::confine::{ConfineError, Confinement, SystemCalls};
use toolward_host::{Broker, BrokerCommand, Host, HostBuilder, HostError};

use crate::trust::Trust;
use crate::{Environment, Error, Kind, Result};

/// The cache of compiled drivers.
#[derive(Debug, Default, Clone)]
pub struct CompileCache {
    /// The directory; by default in the user's cache directory.
    pub directory: Option<PathBuf>,
    /// Disables the cache.
    pub disabled: bool,
}

impl CompileCache {
    /// Returns a broker that compiles and caches drivers. It is not started yet.
    ///
    /// # Errors
    /// If `directory` is set and can't be used.
    pub fn broker(&self, command: &BrokerCommand, environment: &Environment) -> Result<Broker> {
        let builder = || Broker::builder(command.clone());
        let directory = match (&self.directory, &environment.cache_directory) {
            _ if self.disabled => None,
            // A given directory must be usable, but the default one need not be.
            (Some(directory), _) => return Ok(builder().cache(directory).open()?),
            (None, directory) => directory.as_ref(),
        };
        if let Some(directory) = directory {
            match builder().cache(directory).open() {
                Err(error @ HostError::Cache { .. }) => {
                    environment
                        .report
                        .warning(&format!("{error}; compiled drivers are not kept"));
                }
                opened => return Ok(opened?),
            }
        }
        Ok(builder().open()?)
    }

    /// Builds the host, with its drivers compiled by this broker.
    pub fn host(&self, builder: HostBuilder, broker: &Broker) -> Result<Host> {
        let mut builder = builder.broker(broker.clone());
        if let Some(directory) = broker.directory() {
            builder = builder.protect("the cache directory", directory);
        }
        Ok(builder.build()?)
    }
}

/// Confines this process to the access that `confinement` allows and to reading the broker's
/// compiled drivers. `[confine]` of the configuration chooses the list of system calls.
///
/// Call it after the host is built and the broker started, and before the runtime starts: a process
/// with more than one thread is refused.
///
/// ```no_run
/// use toolward_host::{Broker, Host};
/// use toolward_operator::trust::Trust;
/// use toolward_operator::{Environment, processes};
///
/// # fn confined(host: &Host, broker: &Broker) -> Result<(), toolward_operator::Error> {
/// let (trust, environment) = (Trust::default(), Environment::of_process());
/// let keep = host.requirements().confinement();
/// processes::confine(keep, broker, &trust, &environment)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the configuration can't be read, or the kernel refuses.
pub fn confine(
    confinement: Confinement,
    broker: &Broker,
    trust: &Trust,
    environment: &Environment,
) -> Result<()> {
    let confinement = match broker.artifacts() {
        Some(path) => confinement.read(path),
        None => confinement,
    };
    let calls = trust.system_calls(environment)?;
    if calls == SystemCalls::DenyList {
        environment.report.warning(
            "`[confine] system_calls = \"deny-list\"`: whoever escapes the sandbox may make every \
             system call that is not known to do harm",
        );
    }
    let confined = confinement.system_calls(calls).apply()?;
    if let Some(warning) = confined.warning() {
        environment.report.warning(&warning.to_string());
    }
    Ok(())
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Self {
        let kind = match error {
            // The policy is invalid.
            HostError::Workspace { .. } => Kind::Usage,
            _ => Kind::Failed,
        };
        Self::of(kind, error)
    }
}

impl From<ConfineError> for Error {
    fn from(error: ConfineError) -> Self {
        Self::of(Kind::Failed, error)
    }
}

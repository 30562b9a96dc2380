//! The broker that compiles drivers, and the directory of compiled drivers.

use std::path::PathBuf;

use toolward_host::{Broker, BrokerCommand, Host, HostBuilder, HostError};

use crate::environment::Environment;
use crate::error::Error;
use crate::report::Report;

/// Where compiled drivers are kept.
#[derive(Debug, Default, Clone)]
pub struct CompileCache {
    /// The directory; by default in the user's cache directory.
    pub directory: Option<PathBuf>,
    /// Disables the cache.
    pub disabled: bool,
}

impl CompileCache {
    /// A broker that compiles and caches drivers. It is not started yet.
    ///
    /// # Errors
    /// If the given directory can't be used.
    pub fn broker(
        &self,
        command: &BrokerCommand,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Broker, Error> {
        let builder = || Broker::builder(command.clone());
        let directory = match (&self.directory, &environment.cache_directory) {
            _ if self.disabled => None,
            // A given directory must be usable; the default need not be.
            (Some(directory), _) => return Ok(builder().cache(directory).open()?),
            (None, directory) => directory.as_ref(),
        };
        if let Some(directory) = directory {
            match builder().cache(directory).open() {
                Err(error @ HostError::Cache { .. }) => {
                    report.warning(&format!("{error}; compiled drivers are not kept"));
                }
                opened => return Ok(opened?),
            }
        }
        Ok(builder().open()?)
    }

    /// Builds the host, with its drivers compiled by this broker.
    pub fn host(&self, builder: HostBuilder, broker: &Broker) -> Result<Host, Error> {
        let mut builder = builder.broker(broker.clone());
        if let Some(directory) = broker.directory() {
            builder = builder.protect("the cache directory", directory);
        }
        Ok(builder.build()?)
    }
}

//! Who compiles drivers, and where what was compiled is kept.

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
    /// Whether nothing is kept.
    pub disabled: bool,
}

impl CompileCache {
    /// The broker that compiles drivers and keeps them, not started yet.
    ///
    /// # Errors
    ///
    /// Where the directory that was named can't be used.
    pub fn broker(
        &self,
        command: &BrokerCommand,
        environment: &Environment,
        report: &dyn Report,
    ) -> Result<Broker, Error> {
        let builder = || Broker::builder(command.clone());
        let directory = match (&self.directory, &environment.cache_directory) {
            _ if self.disabled => None,
            // A directory that was asked for must do; the default may not.
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

    /// The host, with its drivers compiled by this broker.
    pub fn host(&self, builder: HostBuilder, broker: &Broker) -> Result<Host, Error> {
        let mut builder = builder.broker(broker.clone());
        if let Some(directory) = broker.directory() {
            builder = builder.protect("the cache directory", directory);
        }
        Ok(builder.build()?)
    }
}

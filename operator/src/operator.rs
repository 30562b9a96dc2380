//! What is served, whom that is trusted from, and where all of it is.

use toolward_bundle::content::Content;
use toolward_host::{Broker, BrokerCommand, Host, HostBuilder};

use crate::bundles::BundleSource;
use crate::compile_cache::CompileCache;
use crate::config::Granted;
use crate::environment::Environment;
use crate::error::Error;
use crate::host_setup::HostSetup;
use crate::report::Report;

/// Where an operator's things are. By default: what is installed for the user whose
/// [`Environment`] it is, under that user's configuration.
#[derive(Debug, Default)]
pub struct Operator {
    /// Where tools come from, and whom to trust.
    pub source: BundleSource,
    /// What stands behind grants.
    pub setup: HostSetup,
    /// Where compiled drivers are kept.
    pub cache: CompileCache,
    /// The directories that all of it is in by default.
    pub environment: Environment,
}

impl Operator {
    /// The user's own: what is installed, and the configuration that is there.
    pub fn of_process() -> Self {
        Self {
            environment: Environment::of_process(),
            ..Self::default()
        }
    }

    /// What the operator grants, as the configuration says now.
    ///
    /// # Errors
    ///
    /// Where a file can't be read or is wrong.
    pub fn granted(&self) -> Result<Granted, Error> {
        Granted::read(&self.source.trust, &self.setup.policies, &self.environment)
    }

    /// A host with these bundles in the making. `buckets` says whether key-value
    /// buckets are opened.
    ///
    /// # Errors
    ///
    /// Where something behind a grant can't be used.
    pub fn host_builder(
        &self,
        contents: Vec<Content>,
        granted: &Granted,
        buckets: bool,
    ) -> Result<HostBuilder, Error> {
        let (source, environment) = (&self.source, &self.environment);
        let setup = &self.setup;
        let builder = setup.host(contents, granted, &source.trust, environment, buckets)?;
        Ok(source.store.protect(builder, environment))
    }

    /// Who compiles drivers, by this command; not started yet.
    ///
    /// # Errors
    ///
    /// Where the directory that was named can't be used.
    pub fn broker(&self, command: &BrokerCommand, report: &dyn Report) -> Result<Broker, Error> {
        self.cache.broker(command, &self.environment, report)
    }

    /// The host, with its drivers compiled by this broker.
    ///
    /// # Errors
    ///
    /// What [`HostBuilder::build`] refuses.
    pub fn build(&self, builder: HostBuilder, broker: &Broker) -> Result<Host, Error> {
        self.cache.host(builder, broker)
    }
}

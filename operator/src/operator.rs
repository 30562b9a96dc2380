//! The operator's settings: bundles, trust, resources and directories.

use toolward_bundle::content::Content;
use toolward_host::{Broker, BrokerCommand, Host, HostBuilder};

use crate::bundles::BundleSource;
use crate::granted::Granted;
use crate::host_setup::{ConfiguredSetup, HostSetup};
use crate::processes::CompileCache;
use crate::{Environment, Result};

/// The operator's settings. By default they use the bundles that are installed for the user of this
/// [`Environment`], and that user's configuration.
#[derive(Debug, Default)]
pub struct Operator {
    /// The source of tools, and the trust configuration.
    pub source: BundleSource,
    /// The resources behind grants.
    pub setup: HostSetup,
    /// The directory of compiled drivers.
    pub cache: CompileCache,
    /// The default directories.
    pub environment: Environment,
}

impl Operator {
    /// Uses the current user's installed bundles and configuration.
    ///
    /// ```
    /// use toolward_operator::Operator;
    /// use toolward_operator::bundles::SourceKind;
    ///
    /// let operator = Operator::of_process();
    /// assert_eq!(operator.source.kind(), SourceKind::Installed);
    /// ```
    pub fn of_process() -> Self {
        Self {
            environment: Environment::of_process(),
            ..Self::default()
        }
    }

    /// Reads the operator's current grants.
    ///
    /// ```
    /// use toolward_operator::Operator;
    ///
    /// # fn main() -> Result<(), toolward_operator::Error> {
    /// // Without a configuration nothing is granted.
    /// assert_eq!(Operator::default().granted()?.policy.grants().count(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If a file can't be read or is invalid.
    pub fn granted(&self) -> Result<Granted> {
        Granted::read(&self.source.trust, &self.setup.policies, &self.environment)
    }

    /// The resources behind grants, with the configuration.
    pub fn configured(&self) -> ConfiguredSetup<'_> {
        self.setup.configured(&self.source.trust, &self.environment)
    }

    /// A builder of a host with these bundles. Opens key-value buckets only if `buckets` is set.
    ///
    /// ```no_run
    /// use toolward_operator::Operator;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let operator = Operator::of_process();
    /// let contents = operator.source.contents(&operator.environment)?;
    /// let host = operator.host_builder(contents, &operator.granted()?, true)?.build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If a resource behind a grant can't be used.
    pub fn host_builder(
        &self,
        contents: Vec<Content>,
        granted: &Granted,
        buckets: bool,
    ) -> Result<HostBuilder> {
        let builder = self.configured().host(contents, granted, buckets)?;
        Ok(self.source.store.protect(builder, &self.environment))
    }

    /// Returns a broker that compiles drivers with this command. It is not started yet.
    ///
    /// ```no_run
    /// use toolward_host::{BrokerCommand, Host};
    /// use toolward_operator::Operator;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let operator = Operator::of_process();
    /// let command = BrokerCommand {
    ///     program: std::env::current_exe()?,
    ///     broker: vec!["broker".into()],
    ///     worker: vec!["worker".into()],
    /// };
    /// let broker = operator.broker(&command)?;
    /// broker.start()?;
    /// let host = operator.build(Host::builder(), &broker)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the operator set a cache directory that can't be used.
    pub fn broker(&self, command: &BrokerCommand) -> Result<Broker> {
        self.cache.broker(command, &self.environment)
    }

    /// Builds the host, with its drivers compiled by this broker.
    ///
    /// See the example of [`Operator::broker`].
    ///
    /// # Errors
    /// The errors of [`HostBuilder::build`].
    pub fn build(&self, builder: HostBuilder, broker: &Broker) -> Result<Host> {
        self.cache.host(builder, broker)
    }
}

//! The service that is rebuilt when bundles or the configuration change.

use std::sync::Arc;

use toolward_host::Host;

use crate::error::Error;
use crate::granted::Granted;
use crate::installed::LoadedBundles;
use crate::report::Report;

/// Builds a service from bundles and serves it. Implemented for `LiveHost` and
/// `toolward serve`.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use toolward_host::Host;
/// use toolward_operator::Error;
/// use toolward_operator::installed::LoadedBundles;
/// use toolward_operator::granted::Granted;
/// use toolward_operator::reload::Target;
///
/// /// Serves a plain host.
/// struct Current(Mutex<Host>);
///
/// impl Target for Current {
///     type Made = Host;
///
///     fn make(&self, loaded: &LoadedBundles, granted: &Arc<Granted>) -> Result<Host, Error> {
///         let builder = Host::builder().policy(granted.policy.clone());
///         let builder = builder.withheld(loaded.withheld.iter().cloned());
///         let contents = loaded.contents.iter().cloned();
///         let builder = contents.fold(builder, |one, content| one.bundle(content));
///         Ok(builder.build()?)
///     }
///
///     fn empty(&self) -> Result<Host, Error> {
///         Ok(Host::builder().build()?)
///     }
///
///     fn host(&self, made: &Host) -> Host {
///         made.clone()
///     }
///
///     fn replace(&self, made: Host) {
///         *self.0.lock().unwrap_or_else(|broken| broken.into_inner()) = made;
///     }
/// }
/// ```
pub trait Target: Send + Sync + 'static {
    /// The service built from bundles.
    type Made;

    /// Builds it from these bundles, under what the operator grants.
    ///
    /// # Errors
    /// If it can't be built. The previous service stays, without withdrawn tools.
    fn make(&self, loaded: &LoadedBundles, granted: &Arc<Granted>) -> Result<Self::Made, Error>;

    /// Builds it without bundles. What was served before may be given as
    /// [withheld](toolward_host::HostBuilder::withheld).
    ///
    /// # Errors
    /// If even that can't be built. Calls are refused nevertheless.
    fn empty(&self) -> Result<Self::Made, Error>;

    /// Builds it without bundles from the current host, whose calls were withdrawn: the
    /// last resort if no other host can be built.
    ///
    /// # Errors
    /// If even that can't be built.
    fn bare(&self) -> Result<Self::Made, Error> {
        self.empty()
    }

    /// The host of the service.
    fn host(&self, made: &Self::Made) -> Host;

    /// The number of its tools.
    fn tool_count(&self, made: &Self::Made) -> usize {
        self.host(made).tools().count()
    }

    /// Serves it in place of the previous one.
    fn replace(&self, made: Self::Made);

    /// Called after a change is served.
    fn served(&self, report: &dyn Report) {
        let _ = report;
    }
}

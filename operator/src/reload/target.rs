//! What is kept up to date.

use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_host::Host;

use crate::config::Granted;
use crate::error::Error;
use crate::report::Report;

/// What is made of bundles, and where it is served.
pub trait Target: Send + Sync + 'static {
    /// What is made of bundles.
    type Made;

    /// Makes it of these bundles, under what the operator grants.
    ///
    /// # Errors
    ///
    /// Where it can't be made. What was served before is served on, as far as it may
    /// be.
    fn make(&self, contents: &[Content], granted: &Arc<Granted>) -> Result<Self::Made, Error>;

    /// Makes it of no bundle.
    ///
    /// # Errors
    ///
    /// Where not even that can be made. Calls are refused all the same.
    fn empty(&self) -> Result<Self::Made, Error>;

    /// Makes it of no bundle, with the host that there is: the last resort where no other
    /// can be made. Its calls were withdrawn before.
    ///
    /// # Errors
    ///
    /// Where not even that can be made.
    fn bare(&self) -> Result<Self::Made, Error> {
        self.empty()
    }

    /// The host in it.
    fn host(&self, made: &Self::Made) -> Host;

    /// How many tools are in it.
    fn tool_count(&self, made: &Self::Made) -> usize {
        self.host(made).tools().count()
    }

    /// Serves it in place of what was served before.
    fn replace(&self, made: Self::Made);

    /// Called when something new is served.
    fn served(&self, report: &dyn Report) {
        let _ = report;
    }
}

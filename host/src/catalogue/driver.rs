//! A driver of a loaded bundle.

use std::sync::Arc;

use toolward_bundle::content::DriverEntry;
use toolward_contract::driver::Driver;
use toolward_state::Withdrawal;

use crate::api::violations::Reported;
use crate::executor::{DriverSource, Executor, Executors, Features};
use crate::health::Health;

/// The driver of a bundle.
pub(crate) struct LoadedDriver {
    pub(crate) driver: Arc<Driver>,
    pub(crate) bundle: Arc<str>,
    pub(crate) publisher: Arc<str>,
    /// `driver.id`, shared with the metadata of each call.
    pub(crate) id: Arc<str>,
    pub(crate) withdrawal: Arc<Withdrawal>,
    /// `None` for a kind that this host does not run: no route has such a driver.
    pub(crate) executor: Option<Arc<dyn Executor>>,
    pub(crate) reported: Reported,
    pub(crate) health: Health,
}

impl LoadedDriver {
    pub(super) fn new(
        entry: DriverEntry,
        bundle: &str,
        publisher: &str,
        withdrawal: &Arc<Withdrawal>,
        executors: &Executors,
    ) -> Self {
        let publisher: Arc<str> = publisher.into();
        let source = DriverSource {
            driver: entry.driver.clone(),
            publisher: publisher.clone(),
            component: entry.component,
        };
        Self {
            id: entry.driver.id.as_str().into(),
            driver: entry.driver,
            bundle: bundle.into(),
            publisher,
            withdrawal: withdrawal.clone(),
            executor: executors.executor(source),
            reported: Reported::default(),
            health: Health::default(),
        }
    }

    /// What the stages have to know of its executor.
    pub(crate) fn features(&self) -> Features {
        let executor = self.executor.as_ref();
        executor.map_or_else(Features::default, |executor| executor.features())
    }

    /// Whether a call of it need not wait until it is prepared.
    pub(crate) fn is_ready(&self) -> bool {
        let executor = self.executor.as_ref();
        executor.is_none_or(|executor| executor.is_ready())
    }
}

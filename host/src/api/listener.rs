//! Listeners for finished calls.

use toolward_contract::driver::DriverKind;

use crate::api::facts::CallFacts;

/// The target of log lines of calls, by which a filter of `tracing` names them. A call that ends logs one line of
/// level `INFO`: ids of what is loaded, codes, numbers, and a random id for the principal.
pub const CALL_LOG: &str = "toolward_host::calls";

/// Is called exactly once for each call that ends: successful, failed, refused and
/// cancelled ones, and nested ones.
///
/// Runs on the task that drives the call; for a cancelled call, while its future is
/// dropped. Return quickly, and do slow work elsewhere.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use toolward_host::{CallFacts, CallListener, CallStage, Host};
///
/// /// Counts the calls that failed before their drivers ran.
/// #[derive(Default)]
/// struct Refused(AtomicUsize);
///
/// impl CallListener for Refused {
///     fn finished(&self, call: &CallFacts) {
///         if call.error.is_some() && call.stage < CallStage::Run {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// # fn main() -> Result<(), toolward_host::HostError> {
/// let refused = Arc::new(Refused::default());
/// let host = Host::builder().listener(refused.clone()).build()?;
/// # Ok(())
/// # }
/// ```
pub trait CallListener: Send + Sync {
    /// A call begins. [`CallListener::finished`] is called for each of them.
    fn began(&self) {}

    /// A driver of this kind is started for a call, first or once more.
    fn driver_started(&self, kind: &DriverKind) {
        let _ = kind;
    }

    /// A call has ended.
    fn finished(&self, call: &CallFacts);
}

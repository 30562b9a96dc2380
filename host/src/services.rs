//! The services of a host, which all its calls share: policy, limits, and what grants
//! refer to.

use std::sync::Arc;

use toolward_egress::Transport;
use toolward_policy::{Limits, Machine, Policy};
use toolward_sandbox::files::workspaces::Workspaces;
use toolward_state::Buckets;

use crate::api::approval::Approver;
use crate::api::facts::CallListener;
use crate::events::EventHub;
use crate::recording::Recording;
use crate::secrets::SecretStore;
use crate::tape::Tape;

/// Everything beyond bundles that calls depend on.
#[derive(Default)]
pub(crate) struct Services {
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// Listeners for finished calls.
    pub(crate) listeners: Vec<Arc<dyn CallListener>>,
    /// The readers of events.
    pub(crate) events: Arc<EventHub>,
    /// Where calls are recorded.
    pub(crate) recording: Option<Recording>,
    /// What answers calls instead of drivers.
    pub(crate) tape: Option<Tape>,
    pub(crate) secrets: Option<Arc<dyn SecretStore>>,
    pub(crate) buckets: Option<Arc<dyn Buckets>>,
    /// `None` in a build without the feature `http`.
    pub(crate) transport: Option<Transport>,
    /// The directories behind the policy's workspaces.
    pub(crate) workspaces: Workspaces,
    /// What this machine offers to drivers.
    pub(crate) machine: Machine,
}

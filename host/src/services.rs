//! The services of a host, which all its calls share: policy, limits, and the resources that grants
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
    pub(crate) listeners: Vec<Arc<dyn CallListener>>,
    /// The readers of events.
    pub(crate) events: Arc<EventHub>,
    /// The recording of calls.
    pub(crate) recording: Option<Recording>,
    /// The tape that answers calls instead of drivers.
    pub(crate) tape: Option<Tape>,
    pub(crate) secrets: Option<Arc<dyn SecretStore>>,
    pub(crate) buckets: Option<Arc<dyn Buckets>>,
    /// `None` in a build without the feature `http`.
    pub(crate) transport: Option<Transport>,
    /// The directories behind the policy's workspaces.
    pub(crate) workspaces: Workspaces,
    /// The properties of this machine that drivers need.
    pub(crate) machine: Machine,
}

//! What the embedder gave to all calls of a host: policy, limits, and the
//! services behind grants.

use std::sync::Arc;

use toolward_egress::Transport;
use toolward_keyvalue::Store;
use toolward_policy::{Machine, Policy};

use crate::approval::Approver;
use crate::listener::CallListener;
use crate::secrets::SecretStore;
use crate::workspace::Workspaces;
use toolward_policy::Limits;

/// Everything beyond bundles that calls depend on.
pub(crate) struct Services {
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// Hear of every call that ends.
    pub(crate) listeners: Vec<Arc<dyn CallListener>>,
    pub(crate) secrets: Option<Arc<dyn SecretStore>>,
    pub(crate) buckets: Option<Arc<Store>>,
    pub(crate) transport: Transport,
    /// The directories behind the policy's workspaces.
    pub(crate) workspaces: Workspaces,
    /// What this host has for drivers.
    pub(crate) machine: Machine,
}

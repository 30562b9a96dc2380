//! State in this process and on this machine.

pub(crate) mod approvals;
#[cfg(feature = "sqlite")]
pub(crate) mod buckets;
mod calls;
mod keys;
pub(crate) mod leases;

use std::future::ready;
use std::sync::Mutex;
use std::time::Instant;

use self::approvals::{DenialBackoff, Denials, PendingApprovals, RememberedApprovals};
use self::keys::LocalKeys;
use crate::BoxFuture;
use crate::error::StateError;
use crate::keys::{Binding, Keys, Unsealed};

/// The state of the hosts of one process. Its operations never end with [`StateError::Unknown`].
pub struct Local {
    calls: Mutex<calls::Memory>,
    keys: LocalKeys,
    /// The denied tools.
    backoff: DenialBackoff,
    /// The open questions.
    pending: PendingApprovals,
    remembered: RememberedApprovals,
    served: Mutex<leases::Withdrawals>,
}

impl Local {
    /// Creates the state with the installation's secret for [ids](Keys::id_hash), which all
    /// processes of an installation should share; by default it is random. Denials are remembered
    /// while the process runs, and with `denials` also afterwards.
    pub fn new(id_secret: Option<[u8; 32]>, denials: Option<Denials>) -> Self {
        Self {
            calls: Mutex::default(),
            keys: LocalKeys::new(id_secret),
            backoff: DenialBackoff::new(denials),
            pending: PendingApprovals::default(),
            remembered: RememberedApprovals::default(),
            served: Mutex::default(),
        }
    }
}

impl Keys for Local {
    fn seal<'a>(
        &'a self,
        binding: Binding<'a>,
        text: Vec<u8>,
        until: Instant,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<String, StateError>> {
        let sealed = self.keys.sealed(binding, text, until);
        let sealed =
            sealed.ok_or_else(|| StateError::Failed("there is no key to seal with".into()));
        Box::pin(ready(sealed))
    }

    fn unseal<'a>(
        &'a self,
        binding: Binding<'a>,
        token: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Unsealed, StateError>> {
        Box::pin(ready(Ok(self.keys.open(binding, token))))
    }

    fn id_hash(
        &self,
        message: Vec<u8>,
        _deadline: Instant,
    ) -> BoxFuture<'_, Result<[u8; 32], StateError>> {
        Box::pin(ready(Ok(self.keys.id_hash(&message))))
    }
}

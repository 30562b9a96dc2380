//! Secrets as a guest meets them: placeholders, and, where policy says so, the
//! values. What was given out is remembered, to be kept out of all that the
//! call shows.

use std::sync::{Arc, Mutex, PoisonError};

use toolward_egress::{SecretValues, ValueError};
use toolward_policy::{Grant, SecretGrant};
use zeroize::Zeroizing;

use crate::redact::Redactor;
use crate::secrets::{SecretError, SecretStore, SecretValue};

/// Bytes of a value that a guest may store.
const STORED: usize = 64 << 10;

/// What a guest is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Denied,
    Missing,
    Failed,
}

/// The secrets of one call.
pub(crate) struct CallSecrets {
    granted: Vec<SecretGrant>,
    store: Option<Arc<dyn SecretStore>>,
    principal: String,
    /// Values that were used: none of them may be shown.
    used: Mutex<Vec<SecretValue>>,
}

impl CallSecrets {
    pub(crate) fn new(
        grant: &Grant,
        store: Option<Arc<dyn SecretStore>>,
        principal: &str,
    ) -> Arc<Self> {
        Arc::new(Self {
            granted: grant.secrets().to_vec(),
            store,
            principal: principal.to_owned(),
            used: Mutex::default(),
        })
    }

    fn grant(&self, slug: &str) -> Option<&SecretGrant> {
        self.granted.iter().find(|grant| grant.slug == slug)
    }

    /// Whether a guest may have a placeholder for this secret.
    pub(crate) fn may_use(&self, slug: &str) -> Result<(), Refused> {
        let grant = self
            .grant(slug)
            .filter(|grant| grant.binding.is_some())
            .ok_or(Refused::Denied)?;
        self.value(grant).map(drop)
    }

    /// The value, for a guest that may see it.
    pub(crate) fn reveal(&self, slug: &str) -> Result<Vec<u8>, Refused> {
        let grant = self
            .grant(slug)
            .filter(|grant| grant.reveal)
            .ok_or(Refused::Denied)?;
        Ok(self.value(grant)?.bytes().to_vec())
    }

    /// Stores a value in the publisher's own space.
    pub(crate) fn store(&self, slug: &str, value: Vec<u8>) -> Result<(), Refused> {
        let grant = self
            .grant(slug)
            .filter(|grant| grant.store)
            .ok_or(Refused::Denied)?;
        let value = SecretValue::new(value);
        if value.bytes().len() > STORED {
            return Err(Refused::Failed);
        }
        let store = self.store.as_ref().ok_or(Refused::Failed)?;
        self.remember(value.clone());
        store
            .put(&grant.publisher, &self.principal, slug, value)
            .map_err(|error| failed(slug, &error))
    }

    fn value(&self, grant: &SecretGrant) -> Result<SecretValue, Refused> {
        let store = self.store.as_ref().ok_or(Refused::Missing)?;
        let value = store
            .get(&grant.publisher, &self.principal, &grant.slug)
            .map_err(|error| failed(&grant.slug, &error))?
            .ok_or(Refused::Missing)?;
        self.remember(value.clone());
        Ok(value)
    }

    fn remember(&self, value: SecretValue) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.iter().any(|known| known.bytes() == value.bytes()) {
            used.push(value);
        }
    }

    /// What keeps the used values out of what is shown; `None` where none was used.
    pub(crate) fn redactor(&self) -> Option<Redactor> {
        if self.granted.is_empty() {
            return None;
        }
        Redactor::new(self.used())
    }

    /// The values that this call used.
    pub(crate) fn used(&self) -> Vec<SecretValue> {
        self.used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn failed(slug: &str, error: &SecretError) -> Refused {
    tracing::warn!(slug, %error, "a secret could not be read or stored");
    Refused::Failed
}

impl SecretValues for CallSecrets {
    fn get(&self, slug: &str) -> Result<Zeroizing<Vec<u8>>, ValueError> {
        let value = self
            .grant(slug)
            .ok_or(Refused::Denied)
            .and_then(|grant| self.value(grant));
        match value {
            Ok(value) => Ok(Zeroizing::new(value.bytes().to_vec())),
            Err(Refused::Denied) => Err(ValueError::new("it is not granted")),
            Err(Refused::Missing) => Err(ValueError::new("it has no value")),
            Err(Refused::Failed) => Err(ValueError::new("it could not be read")),
        }
    }
}

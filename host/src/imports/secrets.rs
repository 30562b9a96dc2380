//! Secrets for a driver: placeholders, and values if policy allows them. Used values are redacted
//! in everything that the call shows.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use toolward_egress::{SecretValues, ValueError};
use toolward_policy::{ContextText, Grant, LimitName, SecretGrant, own};
use toolward_sandbox::exceeded::{self, Exceeded};
use toolward_sandbox::violations::RedactText;
use toolward_support::helper::lock;
use zeroize::Zeroizing;

use super::SecretError;
use crate::redact::Redactor;
use crate::secrets::{self, SecretStore, SecretValue};

/// The most bytes of a value that a guest may store.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// Counts the secrets that a call and its nested calls store.
#[derive(Debug, Default)]
pub(crate) struct StoredSecrets {
    count: AtomicU64,
    bytes: AtomicU64,
}

/// The secrets of one call.
pub(crate) struct CallSecrets {
    granted: Vec<SecretGrant>,
    store: Option<Arc<dyn SecretStore>>,
    principal: String,
    stores: Arc<StoredSecrets>,
    /// Redacts the used values; `None` if no value was used.
    used: Mutex<Option<Arc<Redactor>>>,
}

toolward_support::opaque!(CallSecrets);

impl CallSecrets {
    pub(crate) fn new(
        grant: &Grant,
        store: Option<Arc<dyn SecretStore>>,
        principal: &str,
        stores: Arc<StoredSecrets>,
    ) -> Arc<Self> {
        Arc::new(Self {
            granted: grant.secrets().to_vec(),
            store,
            principal: principal.to_owned(),
            stores,
            used: Mutex::default(),
        })
    }

    /// Also redacts the secrets that earlier drivers of the call used.
    pub(crate) fn keep_out_earlier(&self, earlier: &Redactor) {
        let earlier = earlier.hidden();
        self.remember(earlier.map(|(slug, value)| (slug, value.clone())));
    }

    /// Also redacts these texts of the call's context.
    pub(crate) fn keep_out(&self, texts: &[(String, ContextText)]) {
        self.remember(texts.iter().map(|(name, text)| {
            let value = SecretValue::new(text.as_str().as_bytes().to_vec());
            (name.as_str(), value)
        }));
    }

    /// The grant of this secret, if the grant lets the driver do this with it.
    fn grant(
        &self,
        slug: &str,
        allows: impl Fn(&SecretGrant) -> bool,
    ) -> Result<&SecretGrant, SecretError> {
        let grant = self.granted.iter().find(|grant| grant.slug == slug);
        grant
            .filter(|grant| allows(grant))
            .ok_or(SecretError::Denied)
    }

    /// Checks that a guest may have a placeholder for this secret, and that the secret has a value.
    pub(crate) fn may_use(&self, slug: &str) -> Result<(), SecretError> {
        let grant = self.grant(slug, |grant| grant.binding.is_some())?;
        self.value(grant).map(drop)
    }

    /// Returns the value to a guest that may see it.
    pub(crate) fn reveal(&self, slug: &str) -> Result<Vec<u8>, SecretError> {
        let grant = self.grant(slug, |grant| grant.reveal)?;
        Ok(self.value(grant)?.bytes().to_vec())
    }

    /// Stores a value in the space of the grant's publisher.
    ///
    /// Fails with [`SecretError::Ends`], which ends the guest, if the guest stores too much.
    pub(crate) async fn store(&self, slug: &str, value: Vec<u8>) -> Result<(), SecretError> {
        let value = SecretValue::new(value);
        let grant = self.grant(slug, |grant| grant.store)?;
        let count = &self.stores.count;
        exceeded::take(count, LimitName::SecretStores, 1, own::SECRET_STORES).map_err(ended)?;
        let Some(store) = self.store.clone() else {
            return Err(SecretError::Failed);
        };
        if value.bytes().len() > MAX_VALUE_BYTES {
            return Err(SecretError::Failed);
        }
        let (stored, bytes) = (&self.stores.bytes, value.bytes().len() as u64);
        let most = own::SECRET_STORE_BYTES;
        exceeded::take(stored, LimitName::SecretStoreBytes, bytes, most).map_err(ended)?;
        self.remember([(slug, value.clone())]);
        let (publisher, principal) = (grant.publisher.clone(), self.principal.clone());
        let own = slug.to_owned();
        // Blocks on the disk.
        let put = move || store.put(&publisher, &principal, &own, value);
        let kept = tokio::task::spawn_blocking(put)
            .await
            .unwrap_or_else(|error| {
                Err(secrets::SecretError(format!("storing it failed: {error}")))
            });
        kept.map_err(|error| failed(slug, &error))
    }

    fn value(&self, grant: &SecretGrant) -> Result<SecretValue, SecretError> {
        let store = self.store.as_ref().ok_or(SecretError::Missing)?;
        let value = store
            .get(&grant.publisher, &self.principal, &grant.slug)
            .map_err(|error| failed(&grant.slug, &error))?
            .ok_or(SecretError::Missing)?;
        self.remember([(grant.slug.as_str(), value.clone())]);
        Ok(value)
    }

    fn remember<'v>(&self, values: impl IntoIterator<Item = (&'v str, SecretValue)>) {
        let mut used = lock(&self.used);
        if let Some(more) = Redactor::with(used.as_deref(), values) {
            *used = Some(Arc::new(more));
        }
    }

    /// The redactor for the used values; `None` if none was used.
    pub(crate) fn redactor(&self) -> Option<Arc<Redactor>> {
        lock(&self.used).clone()
    }
}

fn ended(exceeded: Exceeded) -> SecretError {
    SecretError::Ends(exceeded.into())
}

fn failed(slug: &str, error: &secrets::SecretError) -> SecretError {
    tracing::warn!(slug, %error, "a secret could not be read or stored");
    SecretError::Failed
}

impl RedactText for CallSecrets {
    fn redacted(&self, text: &str) -> Option<String> {
        let redactor = self.redactor()?;
        let mut text = text.to_owned();
        redactor.text(&mut text);
        Some(text)
    }
}

impl SecretValues for CallSecrets {
    fn get(&self, slug: &str) -> Result<Zeroizing<Vec<u8>>, ValueError> {
        let grant = self.grant(slug, |_| true);
        match grant.and_then(|grant| self.value(grant)) {
            Ok(value) => Ok(Zeroizing::new(value.bytes().to_vec())),
            Err(SecretError::Denied) => Err(ValueError::new("it is not granted")),
            Err(SecretError::Missing) => Err(ValueError::new("it has no value")),
            Err(SecretError::Failed | SecretError::Ends(_)) => {
                Err(ValueError::new("it could not be read"))
            }
        }
    }
}

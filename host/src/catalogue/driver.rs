//! A driver of a loaded bundle: its bytes until they are compiled, and the
//! compiled component from then on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolward_bundle::component::Function;
use toolward_bundle::content::DriverEntry;
use toolward_contract::driver::Driver;
use toolward_signing::Digest;

use super::preparation::Preparation;
use crate::api::violations::Reported;
use crate::health::Health;
use crate::withdrawal::Withdrawal;

/// The driver of a bundle, prepared at its first call.
pub(crate) struct LoadedDriver {
    pub(crate) driver: Arc<Driver>,
    pub(crate) bundle: Arc<str>,
    pub(crate) publisher: Arc<str>,
    /// `driver.id`, shared with the metadata of each call.
    pub(crate) id: Arc<str>,
    pub(crate) withdrawal: Arc<Withdrawal>,
    /// The verified bytes, until they are compiled.
    wasm: Mutex<Option<Arc<[u8]>>>,
    pub(crate) digest: Option<Digest>,
    /// The functions that it calls in the world `wit`, by name.
    pub(crate) functions: BTreeMap<String, Arc<Function>>,
    /// Bytes that the instances of its core modules take.
    pub(crate) instance_bytes: u64,
    pub(crate) preparation: Preparation,
    pub(crate) reported: Reported,
    pub(crate) health: Health,
}

impl LoadedDriver {
    pub(super) fn new(
        entry: DriverEntry,
        bundle: &str,
        publisher: &str,
        withdrawal: &Arc<Withdrawal>,
    ) -> Self {
        let component = entry.component;
        let instance_bytes = component
            .as_ref()
            .map_or(0, |component| component.surface.instance_bytes);
        let (digest, wasm, functions) = match component {
            Some(component) => (
                Some(component.digest),
                Some(component.bytes),
                component.functions,
            ),
            None => (None, None, BTreeMap::new()),
        };
        Self {
            id: entry.driver.id.as_str().into(),
            driver: entry.driver,
            bundle: bundle.into(),
            publisher: publisher.into(),
            withdrawal: withdrawal.clone(),
            wasm: Mutex::new(wasm),
            digest,
            functions,
            instance_bytes,
            preparation: Preparation::default(),
            reported: Reported::default(),
            health: Health::default(),
        }
    }

    /// The component's bytes, until it is compiled.
    pub(crate) fn wasm(&self) -> Option<Arc<[u8]>> {
        self.wasm
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether it is compiled, so that a call need not wait.
    pub(crate) fn is_ready(&self) -> bool {
        self.digest.is_none() || self.preparation.is_ready()
    }

    /// Frees the component's bytes once it is compiled.
    pub(crate) fn drop_wasm(&self) {
        *self.wasm.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

//! The values that origins may know, and so may echo in any response: those that
//! policy ties to them, whether this call sends them or another call did.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::scrub::Patterns;
use super::{Secret, SecretValues};
use crate::error::SecretError;
use crate::pool::Key;

/// What the origins that one call sends to may know.
pub(crate) struct KnownSecrets {
    values: Arc<dyn SecretValues>,
    known: Mutex<Vec<(Key, Arc<Secret>)>>,
    count: AtomicUsize,
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownSecrets")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl KnownSecrets {
    pub(crate) fn new(values: Arc<dyn SecretValues>) -> KnownSecrets {
        KnownSecrets {
            values,
            known: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// The value of a secret that `key` may know from now on; the same one for
    /// all of the call.
    pub(crate) fn load(&self, slug: &str, key: &Key) -> Result<Arc<Secret>, SecretError> {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all
            .iter()
            .find(|(own, secret)| own == key && secret.slug == slug);
        if let Some((_, secret)) = known {
            return Ok(Arc::clone(secret));
        }
        let secret = Arc::new(Secret::load(&*self.values, slug)?);
        all.push((key.clone(), Arc::clone(&secret)));
        self.count.fetch_add(1, Ordering::SeqCst);
        Ok(secret)
    }

    /// Grows with every value of a further origin.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// The name of a secret that `key` may know.
    pub(crate) fn any(&self, key: &Key) -> Option<String> {
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut here = all.iter().filter(|(own, _)| own == key);
        here.next().map(|(_, secret)| secret.slug.clone())
    }

    /// What to scrub from a response of `key`; `None`: it knows nothing.
    pub(crate) fn patterns(&self, key: &Key) -> Option<Arc<Patterns>> {
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let here = all.iter().filter(|(own, _)| own == key);
        let here: Vec<&Secret> = here.map(|(_, secret)| &**secret).collect();
        (!here.is_empty()).then(|| Arc::new(Patterns::of(here)))
    }
}

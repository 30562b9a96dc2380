//! The values that a call has put in so far, and where they went: an origin that
//! knows a value may echo it in any response from then on.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::scrub::Patterns;
use super::{Secret, SecretValues};
use crate::error::SecretError;
use crate::pool::Key;

/// What was sent in one call.
pub(crate) struct SentSecrets {
    values: Arc<dyn SecretValues>,
    sent: Mutex<Vec<(Key, Arc<Secret>)>>,
    count: AtomicUsize,
}

impl fmt::Debug for SentSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentSecrets")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl SentSecrets {
    pub(crate) fn new(values: Arc<dyn SecretValues>) -> SentSecrets {
        SentSecrets {
            values,
            sent: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// The value of a secret that is about to go to `key`.
    pub(crate) fn load(&self, slug: &str, key: &Key) -> Result<Arc<Secret>, SecretError> {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sent
            .iter()
            .find(|(own, secret)| own == key && secret.slug == slug);
        if let Some((_, secret)) = known {
            return Ok(Arc::clone(secret));
        }
        let secret = Arc::new(Secret::load(&*self.values, slug)?);
        sent.push((key.clone(), Arc::clone(&secret)));
        self.count.fetch_add(1, Ordering::SeqCst);
        Ok(secret)
    }

    /// Grows with every value that goes to a new place.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// What to scrub from a response of `key`; `None`: nothing was sent there.
    pub(crate) fn patterns(&self, key: &Key) -> Option<Arc<Patterns>> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let here = sent.iter().filter(|(own, _)| own == key);
        let here: Vec<&Secret> = here.map(|(_, secret)| &**secret).collect();
        (!here.is_empty()).then(|| Arc::new(Patterns::of(here)))
    }
}

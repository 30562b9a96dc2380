//! The values that an origin may know and echo in any response, because policy ties them to the
//! origin, and this or another call may have sent them.

use std::sync::{Arc, Mutex};

use toolward_support::helper::lock;

use super::scrub::Patterns;
use super::{LoadedSecret, SecretValues};
use crate::authority::Origin;
use crate::error::{SecretError, SecretProblem};

/// The most bytes of memory for searching values in one call. A value of 2 KiB takes some 6 MiB,
/// and a value of 40 bytes takes 120 KiB. A driver that may store a secret chooses the value, and
/// thus the memory that its forms take.
const MAX_SEARCH_BYTES: u64 = 24 << 20;

/// The values that the origins of one call may know.
pub(crate) struct SentSecrets {
    values: Arc<dyn SecretValues>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    secrets: Vec<(Origin, Arc<LoadedSecret>)>,
    /// The bytes of memory for searching these values.
    memory: u64,
    /// The current patterns of each origin that has sent a response since its last value was added.
    patterns: Vec<(Origin, Arc<Patterns>)>,
}

impl Known {
    /// The secrets that `origin` may know.
    fn of(&self, origin: &Origin) -> impl Iterator<Item = &Arc<LoadedSecret>> {
        let here = self.secrets.iter().filter(move |(own, _)| own == origin);
        here.map(|(_, secret)| secret)
    }

    fn secret(&self, slug: &str, origin: &Origin) -> Option<Arc<LoadedSecret>> {
        self.of(origin).find(|secret| secret.slug == slug).cloned()
    }

    /// The memory of an origin's current patterns that stays in use after they are replaced: an
    /// unread response holds the patterns that it started with.
    fn superseded(&self, origin: &Origin) -> u64 {
        let mut patterns = self.patterns.iter().filter(|(own, _)| own == origin);
        if !patterns.any(|(_, patterns)| Arc::strong_count(patterns) > 1) {
            return 0;
        }
        let here = self.of(origin);
        here.fold(0, |sum, secret| sum.saturating_add(secret.memory()))
    }

    /// Counts the memory for searching a value of `origin`, and of its patterns that are still
    /// held. Fails if the sum is too large.
    fn take(&mut self, secret: &LoadedSecret, origin: &Origin) -> Result<(), SecretError> {
        let memory = self.memory.saturating_add(secret.memory());
        let memory = memory.saturating_add(self.superseded(origin));
        if memory > MAX_SEARCH_BYTES {
            let problem = SecretProblem::TooMuchMemory;
            let detail =
                format!("with it, the call's secrets take {memory} of {MAX_SEARCH_BYTES} bytes");
            return Err(SecretError::new(&secret.slug, problem, detail));
        }
        self.memory = memory;
        Ok(())
    }
}

impl SentSecrets {
    pub(crate) fn new(values: Arc<dyn SecretValues>) -> SentSecrets {
        let known = Mutex::default();
        SentSecrets { values, known }
    }

    /// Loads the value of a secret, which `origin` may know from now on. The value stays the same
    /// during the call.
    pub(crate) fn load(
        &self,
        slug: &str,
        origin: &Origin,
    ) -> Result<Arc<LoadedSecret>, SecretError> {
        if let Some(secret) = lock(&self.known).secret(slug, origin) {
            return Ok(secret);
        }
        // Loaded without the lock, since a store may take long.
        let secret = Arc::new(LoadedSecret::load(&*self.values, slug)?);
        let mut all = lock(&self.known);
        if let Some(secret) = all.secret(slug, origin) {
            return Ok(secret);
        }
        all.take(&secret, origin)?;
        all.secrets.push((origin.clone(), Arc::clone(&secret)));
        all.patterns.retain(|(own, _)| own != origin);
        Ok(secret)
    }

    /// The bytes of memory for searching the values.
    pub(crate) fn memory(&self) -> u64 {
        lock(&self.known).memory
    }

    /// The number of loaded values; a value counts once for each origin. The number only grows.
    pub(crate) fn count(&self) -> usize {
        lock(&self.known).secrets.len()
    }

    /// The name of a secret that `origin` may know.
    pub(crate) fn any(&self, origin: &Origin) -> Option<String> {
        let all = lock(&self.known);
        all.of(origin).next().map(|secret| secret.slug.clone())
    }

    /// The patterns to scrub from a response of `origin`; `None` if the origin knows no value. They
    /// are reused until `origin` may know more.
    pub(crate) fn patterns(&self, origin: &Origin) -> Option<Arc<Patterns>> {
        let mut all = lock(&self.known);
        if let Some((_, patterns)) = all.patterns.iter().find(|(own, _)| own == origin) {
            return Some(Arc::clone(patterns));
        }
        let here: Vec<&[u8]> = all.of(origin).map(|secret| secret.value()).collect();
        if here.is_empty() {
            return None;
        }
        let patterns = Arc::new(Patterns::of_values(here));
        all.patterns.push((origin.clone(), Arc::clone(&patterns)));
        Some(patterns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::ValueError;
    use zeroize::Zeroizing;

    struct Named;

    impl SecretValues for Named {
        fn get(&self, slug: &str) -> Result<Zeroizing<Vec<u8>>, ValueError> {
            Ok(Zeroizing::new(format!("the value of {slug}").into_bytes()))
        }
    }

    fn origin(host: &str) -> Origin {
        Origin {
            https: true,
            host: host.to_owned(),
            port: 443,
        }
    }

    struct Long;

    impl SecretValues for Long {
        fn get(&self, _: &str) -> Result<Zeroizing<Vec<u8>>, ValueError> {
            Ok(Zeroizing::new(b"\"x".repeat(2000)))
        }
    }

    #[test]
    fn what_it_takes_to_look_for_values_is_counted_and_bounded() {
        let secrets = SentSecrets::new(Arc::new(Long));
        let here = origin("here.example");
        assert_eq!(secrets.memory(), 0);
        secrets.load("first", &here).unwrap();
        let one = secrets.memory();
        assert!(one > 1 << 20, "{one}");
        secrets.load("first", &here).unwrap();
        assert_eq!(secrets.memory(), one, "once");
        let refused = (0..100).find_map(|n| secrets.load(&format!("s{n}"), &here).err());
        assert_eq!(refused.unwrap().problem, SecretProblem::TooMuchMemory);
        assert!(secrets.memory() <= MAX_SEARCH_BYTES);
    }

    #[test]
    fn patterns_are_made_once_until_an_origin_may_know_more() {
        let secrets = SentSecrets::new(Arc::new(Named));
        let (here, there) = (origin("here.example"), origin("there.example"));
        assert!(secrets.patterns(&here).is_none());
        secrets.load("first", &here).unwrap();
        let first = secrets.patterns(&here).unwrap();
        secrets.load("first", &here).unwrap();
        secrets.load("other", &there).unwrap();
        assert!(secrets.patterns(&there).is_some());
        assert!(Arc::ptr_eq(&first, &secrets.patterns(&here).unwrap()));
        assert!(first.scrub(b"the value of second").is_none());

        secrets.load("second", &here).unwrap();
        let second = secrets.patterns(&here).unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        for value in [&b"the value of first"[..], b"the value of second"] {
            assert_eq!(second.scrub(value).unwrap(), b"[secret]");
        }
        assert!(second.scrub(b"the value of other").is_none());
    }

    #[test]
    fn patterns_that_a_response_still_holds_count_beside_those_that_replace_them() {
        let here = origin("here.example");
        let memory = |held: bool| {
            let secrets = SentSecrets::new(Arc::new(Named));
            secrets.load("first", &here).unwrap();
            let first = secrets.memory();
            let patterns = secrets.patterns(&here).filter(|_| held);
            secrets.load("second", &here).unwrap();
            drop(patterns);
            (first, secrets.memory())
        };
        let (first, held) = memory(true);
        let (_, released) = memory(false);
        assert_eq!(held, released + first);
    }
}

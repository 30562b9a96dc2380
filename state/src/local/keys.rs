//! Keys of this process: they live as long as it, but for the secret of the installation.

#[cfg(feature = "sealing")]
mod aead;
#[cfg(not(feature = "sealing"))]
#[path = "keys/absent.rs"]
mod aead;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use self::aead::{NONCE_LEN, SealingKey};
use crate::keys::{Binding, Unsealed};
use crate::outcome::StateError;

/// Open tokens of one principal. The oldest is dropped first, which harms that principal
/// alone.
const MAX_OPEN: usize = 256;
/// Bytes of a token: longer than any that is made here.
const MAX_TOKEN_BYTES: usize = 512 << 10;

type Id = [u8; NONCE_LEN];
/// Tokens of one principal and when they expire, in the order of sealing.
type Open = VecDeque<(Id, Instant)>;

/// Seals and opens.
pub(super) struct LocalKeys {
    /// `None` if the system has no random numbers, or without the feature `sealing`: then nothing is sealed.
    sealing: Option<SealingKey>,
    ids: Zeroizing<[u8; 32]>,
    /// Sealed and not yet used tokens, by principal.
    open: Mutex<HashMap<Arc<str>, Open>>,
}

impl Default for LocalKeys {
    /// With a random secret for ids: processes give drivers different keys for the same id.
    fn default() -> Self {
        let mut ids = [0; 32];
        // Without randomness keys still differ between ids, but can be guessed.
        let _ = getrandom::fill(&mut ids);
        Self::with_ids(ids)
    }
}

impl LocalKeys {
    pub(super) fn with_ids(ids: [u8; 32]) -> Self {
        Self {
            sealing: SealingKey::random(),
            ids: Zeroizing::new(ids),
            open: Mutex::default(),
        }
    }

    pub(super) fn id_hash(&self, message: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.ids, message).as_bytes()
    }

    pub(super) fn seal(
        &self,
        binding: Binding<'_>,
        text: Vec<u8>,
        until: Instant,
    ) -> Result<String, StateError> {
        let sealed = self.sealed(binding, text, until);
        sealed.ok_or_else(|| StateError::Failed("there is no key to seal with".into()))
    }

    fn sealed(&self, binding: Binding<'_>, mut text: Vec<u8>, until: Instant) -> Option<String> {
        let mut id: Id = [0; NONCE_LEN];
        getrandom::fill(&mut id).ok()?;
        let key = self.sealing.as_ref()?;
        key.seal(id, &binding.bytes(), &mut text)?;
        self.remember(binding.principal, id, until);
        let mut token = Vec::with_capacity(text.len().saturating_add(NONCE_LEN));
        token.extend_from_slice(&id);
        token.append(&mut text);
        Some(URL_SAFE_NO_PAD.encode(token))
    }

    pub(super) fn open(&self, binding: Binding<'_>, token: &str) -> Unsealed {
        let Some((id, text)) = self.opened(binding, token) else {
            return Unsealed::Foreign;
        };
        // Only an authentic token is used up: an edited copy costs its owner nothing.
        match self.take(binding.principal, &id) {
            Some(until) => Unsealed::Text(text, until),
            None => Unsealed::Spent,
        }
    }

    fn opened(&self, binding: Binding<'_>, token: &str) -> Option<(Id, Vec<u8>)> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let token = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (id, sealed) = token.split_first_chunk()?;
        let mut text = sealed.to_vec();
        let key = self.sealing.as_ref()?;
        key.open(*id, &binding.bytes(), &mut text)?;
        Some((*id, text))
    }

    fn remember(&self, principal: &str, id: Id, until: Instant) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.entry(Arc::from(principal)).or_default();
        if own.len() >= MAX_OPEN {
            own.pop_front();
        }
        own.push_back((id, until));
    }

    /// Uses up a token and returns its expiry.
    fn take(&self, principal: &str, id: &Id) -> Option<Instant> {
        let now = Instant::now();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.get_mut(principal)?;
        own.retain(|(_, until)| *until > now);
        let found = own.iter().position(|(known, _)| known == id);
        let taken = found.and_then(|found| own.remove(found));
        if own.is_empty() {
            open.remove(principal);
        }
        taken.map(|(_, until)| until)
    }
}

#[cfg(all(test, feature = "sealing"))]
mod tests {
    use std::time::Duration;

    use super::*;

    const INPUT: [u8; 32] = [1; 32];
    const OTHER_INPUT: [u8; 32] = [2; 32];
    const TIMEOUT: Duration = Duration::from_secs(600);

    fn binding([principal, kind, name]: [&'static str; 3]) -> Binding<'static> {
        Binding {
            principal,
            subject: [kind, name],
            input: &INPUT,
        }
    }

    fn later() -> Instant {
        Instant::now() + TIMEOUT
    }

    #[expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]
    fn sealed(keys: &LocalKeys, principal: &'static str) -> String {
        let binding = binding([principal, "call", "notes.append"]);
        keys.seal(binding, b"the text".to_vec(), later()).unwrap()
    }

    /// The text that a token opens to.
    fn text(keys: &LocalKeys, of: [&'static str; 3], token: &str) -> Result<Vec<u8>, Unsealed> {
        match keys.open(binding(of), token) {
            Unsealed::Text(text, _) => Ok(text),
            refused => Err(refused),
        }
    }

    const ALICE: [&str; 3] = ["alice", "call", "notes.append"];

    #[test]
    fn a_token_opens_once() {
        let keys = LocalKeys::default();
        let token = sealed(&keys, "alice");
        assert_eq!(text(&keys, ALICE, &token), Ok(b"the text".to_vec()));
        assert_eq!(text(&keys, ALICE, &token), Err(Unsealed::Spent));
    }

    #[test]
    fn a_token_opens_for_the_same_principal_subject_and_input_only() {
        let keys = LocalKeys::default();
        let token = sealed(&keys, "alice");
        for other in [
            ["bob", "call", "notes.append"],
            ["alice", "prompt", "notes.append"],
            ["alice", "call", "notes.remove"],
            ["alicecall", "", "notes.append"],
        ] {
            let refused = text(&keys, other, &token);
            assert_eq!(refused, Err(Unsealed::Foreign), "{other:?}");
        }
        let other = Binding {
            input: &OTHER_INPUT,
            ..binding(ALICE)
        };
        assert_eq!(keys.open(other, &token), Unsealed::Foreign);
        assert!(text(&keys, ALICE, &token).is_ok(), "still unused");
    }

    #[test]
    fn a_token_that_was_edited_or_made_elsewhere_does_not_open() {
        let keys = LocalKeys::default();
        let token = sealed(&keys, "alice");
        let foreign = |token: &str| {
            assert_eq!(text(&keys, ALICE, token), Err(Unsealed::Foreign), "{token}");
        };
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        for place in 0..bytes.len() {
            let mut edited = bytes.clone();
            edited[place] ^= 1;
            foreign(&URL_SAFE_NO_PAD.encode(edited));
        }
        for edited in [
            "",
            "AAAA",
            "not base64!",
            &format!("{token}-TAMPERED"),
            token.split_at(1).1,
            &"A".repeat(MAX_TOKEN_BYTES + 1),
            &sealed(&LocalKeys::default(), "alice"),
        ] {
            foreign(edited);
        }
        assert!(text(&keys, ALICE, &token).is_ok(), "still unused");
    }

    #[test]
    fn a_token_gets_too_old() {
        let keys = LocalKeys::default();
        let past = Instant::now();
        let token = keys.seal(binding(ALICE), Vec::new(), past).unwrap();
        assert_eq!(text(&keys, ALICE, &token), Err(Unsealed::Spent));
        assert!(keys.open.lock().unwrap().is_empty());
    }

    #[test]
    fn a_token_tells_until_when_it_was_good_and_one_sealed_after_it_may_end_before_it() {
        let keys = LocalKeys::default();
        let until = later();
        let long = keys.seal(binding(ALICE), b"long".to_vec(), until).unwrap();
        let past = Instant::now();
        let short = keys.seal(binding(ALICE), b"short".to_vec(), past).unwrap();
        assert_eq!(keys.open(binding(ALICE), &short), Unsealed::Spent);
        let opened = Unsealed::Text(b"long".to_vec(), until);
        assert_eq!(keys.open(binding(ALICE), &long), opened);
    }

    #[test]
    fn a_principal_that_leaves_many_open_loses_its_own_oldest_only() {
        let keys = LocalKeys::default();
        let bobs = sealed(&keys, "bob");
        let first = sealed(&keys, "alice");
        let rest: Vec<String> = (0..MAX_OPEN).map(|_| sealed(&keys, "alice")).collect();
        assert_eq!(text(&keys, ALICE, &first), Err(Unsealed::Spent));
        assert!(text(&keys, ALICE, &rest[0]).is_ok());
        let bob = ["bob", "call", "notes.append"];
        assert!(text(&keys, bob, &bobs).is_ok());
        assert!(keys.open.lock().unwrap()["alice"].len() < MAX_OPEN);
    }

    #[test]
    fn what_is_sealed_can_not_be_read() {
        let token = sealed(&LocalKeys::default(), "alice");
        let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("text") && !text.contains("alice"));
    }
}

//! `requestState`: state that a client carries for the server. It is sealed, so that the
//! client can neither read nor change it, bound to its principal and its request, and
//! valid once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// What a state is bound to. It opens for an equal binding only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding<'a> {
    pub(crate) principal: &'a str,
    /// The kind of request, and the name in it.
    pub(crate) subject: [&'a str; 2],
    /// Digest of the request's input.
    pub(crate) input: &'a blake3::Hash,
}

/// Why a state does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateError {
    /// Not sealed here, changed since, or bound to something else.
    Foreign,
    /// Used before, or expired.
    Spent,
}

/// How long a person has to answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// Open states of one principal. The oldest is dropped first, which harms that principal
/// alone.
const MAX_OPEN: usize = 256;
/// Bytes of a sealed state: longer than any that is made here.
const MAX_STATE_BYTES: usize = 512 << 10;

type Id = [u8; NONCE_LEN];
/// States of one principal and when they expire, in the order of sealing.
type Open = VecDeque<(Id, Instant)>;

/// Seals and opens. The key lives as long as the process.
pub(crate) struct Sealer {
    /// `None` where the system has no random numbers: then nothing is sealed.
    key: Option<LessSafeKey>,
    timeout: Duration,
    /// Sealed and not yet used states, by principal.
    open: Mutex<HashMap<Arc<str>, Open>>,
}

impl Sealer {
    pub(crate) fn new(timeout: Duration) -> Self {
        let mut bytes = zeroize::Zeroizing::new([0; 32]);
        let key = getrandom::fill(bytes.as_mut_slice())
            .ok()
            .and_then(|()| UnboundKey::new(&CHACHA20_POLY1305, bytes.as_slice()).ok());
        Self {
            key: key.map(LessSafeKey::new),
            timeout,
            open: Mutex::default(),
        }
    }

    /// When a state that is sealed now expires.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.timeout)
    }

    /// Seals a state that expires at `until`; `None` where the system has no random
    /// numbers.
    pub(crate) fn seal(
        &self,
        binding: Binding<'_>,
        mut state: Vec<u8>,
        until: Instant,
    ) -> Option<String> {
        let mut id: Id = [0; NONCE_LEN];
        getrandom::fill(&mut id).ok()?;
        let nonce = Nonce::assume_unique_for_key(id);
        let key = self.key.as_ref()?;
        key.seal_in_place_append_tag(nonce, Aad::from(binding.bytes()), &mut state)
            .ok()?;
        self.remember(binding.principal, id, until);
        let mut token = Vec::with_capacity(state.len().saturating_add(NONCE_LEN));
        token.extend_from_slice(&id);
        token.append(&mut state);
        Some(URL_SAFE_NO_PAD.encode(token))
    }

    /// Opens a state, once. Returns its expiry as well: a repeated question expires no
    /// later.
    pub(crate) fn open(
        &self,
        binding: Binding<'_>,
        token: &str,
    ) -> Result<(Vec<u8>, Instant), StateError> {
        if token.len() > MAX_STATE_BYTES {
            return Err(StateError::Foreign);
        }
        let token = URL_SAFE_NO_PAD.decode(token);
        let token = token.map_err(|_not_base64| StateError::Foreign)?;
        let (id, sealed) = token.split_first_chunk().ok_or(StateError::Foreign)?;
        let mut state = sealed.to_vec();
        let key = self.key.as_ref().ok_or(StateError::Foreign)?;
        let nonce = Nonce::assume_unique_for_key(*id);
        let opened = key.open_in_place(nonce, Aad::from(binding.bytes()), &mut state);
        let length = opened.map_err(|_unspecified| StateError::Foreign)?.len();
        state.truncate(length);
        // Only an authentic state is used up: an edited copy costs its owner nothing.
        match self.take(binding.principal, id) {
            Some(until) => Ok((state, until)),
            None => Err(StateError::Spent),
        }
    }

    fn remember(&self, principal: &str, id: Id, until: Instant) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.entry(Arc::from(principal)).or_default();
        if own.len() >= MAX_OPEN {
            own.pop_front();
        }
        own.push_back((id, until));
    }

    /// Uses up a state and returns its expiry.
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

    /// When the states of a principal expire.
    #[cfg(test)]
    pub(crate) fn deadlines(&self, principal: &str) -> Vec<Instant> {
        let open = self.open.lock().unwrap();
        let own = open.get(principal).into_iter().flatten();
        own.map(|(_, until)| *until).collect()
    }
}

impl Binding<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"toolward-mcp state 1".to_vec();
        let [kind, name] = self.subject;
        for text in [self.principal, kind, name] {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(self.input.as_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: &[u8] = b"{}";

    fn opened(
        sealer: &Sealer,
        [principal, kind, name]: [&str; 3],
        input: &[u8],
        token: &str,
    ) -> Result<Vec<u8>, StateError> {
        let binding = Binding {
            principal,
            subject: [kind, name],
            input: &blake3::hash(input),
        };
        sealer.open(binding, token).map(|(state, _)| state)
    }

    fn sealed(sealer: &Sealer, principal: &str) -> String {
        let binding = Binding {
            principal,
            subject: ["call", "notes.append"],
            input: &blake3::hash(INPUT),
        };
        let until = sealer.deadline().unwrap();
        sealer.seal(binding, b"the state".to_vec(), until).unwrap()
    }

    const ALICE: [&str; 3] = ["alice", "call", "notes.append"];

    #[test]
    fn a_state_opens_once() {
        let sealer = Sealer::new(ANSWER_TIMEOUT);
        let token = sealed(&sealer, "alice");
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &token),
            Ok(b"the state".to_vec())
        );
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &token),
            Err(StateError::Spent)
        );
    }

    #[test]
    fn a_state_opens_for_the_same_principal_subject_and_input_only() {
        let sealer = Sealer::new(ANSWER_TIMEOUT);
        let token = sealed(&sealer, "alice");
        for other in [
            ["bob", "call", "notes.append"],
            ["alice", "prompt", "notes.append"],
            ["alice", "call", "notes.remove"],
            ["alicecall", "", "notes.append"],
        ] {
            let refused = opened(&sealer, other, INPUT, &token);
            assert_eq!(refused, Err(StateError::Foreign), "{other:?}");
        }
        let refused = opened(&sealer, ALICE, b"{\"path\": \"/etc\"}", &token);
        assert_eq!(refused, Err(StateError::Foreign));
        assert!(
            opened(&sealer, ALICE, INPUT, &token).is_ok(),
            "still unused"
        );
    }

    #[test]
    fn a_state_that_was_edited_or_made_elsewhere_does_not_open() {
        let sealer = Sealer::new(ANSWER_TIMEOUT);
        let token = sealed(&sealer, "alice");
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        for place in 0..bytes.len() {
            let mut edited = bytes.clone();
            edited[place] ^= 1;
            let edited = URL_SAFE_NO_PAD.encode(edited);
            assert_eq!(
                opened(&sealer, ALICE, INPUT, &edited),
                Err(StateError::Foreign)
            );
        }
        for edited in [
            "",
            "AAAA",
            "not base64!",
            &format!("{token}-TAMPERED"),
            token.split_at(1).1,
        ] {
            assert_eq!(
                opened(&sealer, ALICE, INPUT, edited),
                Err(StateError::Foreign)
            );
        }
        let huge = "A".repeat(MAX_STATE_BYTES + 1);
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &huge),
            Err(StateError::Foreign)
        );
        let elsewhere = sealed(&Sealer::new(ANSWER_TIMEOUT), "alice");
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &elsewhere),
            Err(StateError::Foreign)
        );
        assert!(
            opened(&sealer, ALICE, INPUT, &token).is_ok(),
            "still unused"
        );
    }

    #[test]
    fn a_state_gets_too_old() {
        let sealer = Sealer::new(Duration::ZERO);
        let token = sealed(&sealer, "alice");
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &token),
            Err(StateError::Spent)
        );
        assert!(sealer.open.lock().unwrap().is_empty());
    }

    #[test]
    fn a_state_tells_until_when_it_was_good_and_one_sealed_after_it_may_end_before_it() {
        let sealer = Sealer::new(ANSWER_TIMEOUT);
        let long = sealed(&sealer, "alice");
        let [until] = sealer.deadlines("alice").try_into().unwrap();
        let binding = Binding {
            principal: "alice",
            subject: ["call", "notes.append"],
            input: &blake3::hash(INPUT),
        };
        let past = Instant::now();
        let short = sealer.seal(binding, b"the state".to_vec(), past).unwrap();
        assert_eq!(sealer.open(binding, &short), Err(StateError::Spent));
        assert_eq!(
            sealer.open(binding, &long),
            Ok((b"the state".to_vec(), until))
        );
    }

    #[test]
    fn a_principal_that_leaves_many_open_loses_its_own_oldest_only() {
        let sealer = Sealer::new(ANSWER_TIMEOUT);
        let bobs = sealed(&sealer, "bob");
        let first = sealed(&sealer, "alice");
        let rest: Vec<String> = (0..MAX_OPEN).map(|_| sealed(&sealer, "alice")).collect();
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &first),
            Err(StateError::Spent)
        );
        assert!(opened(&sealer, ALICE, INPUT, &rest[0]).is_ok());
        let bob = ["bob", "call", "notes.append"];
        assert!(opened(&sealer, bob, INPUT, &bobs).is_ok());
        assert!(sealer.open.lock().unwrap()["alice"].len() < MAX_OPEN);
    }

    #[test]
    fn what_is_sealed_can_not_be_read() {
        let token = sealed(&Sealer::new(ANSWER_TIMEOUT), "alice");
        let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("state") && !text.contains("alice"));
    }
}

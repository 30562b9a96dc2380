//! State that a client carries for the server: sealed, so that it can neither read
//! nor change it, bound to whose it is and what it is for, and good for once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// What a state is bound to. It opens for the same only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) principal: &'a str,
    /// What is asked for: a kind of request, and the name in it.
    pub(crate) subject: [&'a str; 2],
    /// Digest of the request's input.
    pub(crate) input: &'a blake3::Hash,
}

/// Why a state does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsealable {
    /// Not sealed here, or changed since, or for somebody or something else.
    Foreign,
    /// Used before, or too old.
    Spent,
}

/// How long a person has to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// States of one principal that may be open at once; the oldest goes first, which
/// is a matter of that principal alone.
const OPEN: usize = 256;
/// Bytes of a sealed state that are looked at: more than any that is made here.
const LONGEST: usize = 512 << 10;

type Id = [u8; NONCE_LEN];
/// States of one principal and when they are too old, in the order of sealing.
type Open = VecDeque<(Id, Instant)>;

/// Seals and opens. The key lives as long as the process.
pub(crate) struct Sealer {
    /// `None` where the system gives no randomness: then nothing is sealed.
    key: Option<LessSafeKey>,
    patience: Duration,
    /// What was sealed and not yet used, by principal.
    open: Mutex<HashMap<Arc<str>, Open>>,
}

impl Sealer {
    pub(crate) fn new(patience: Duration) -> Self {
        let mut bytes = zeroize::Zeroizing::new([0; 32]);
        let key = getrandom::fill(bytes.as_mut_slice())
            .ok()
            .and_then(|()| UnboundKey::new(&CHACHA20_POLY1305, bytes.as_slice()).ok());
        Self {
            key: key.map(LessSafeKey::new),
            patience,
            open: Mutex::default(),
        }
    }

    /// When what is asked now is too old.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.patience)
    }

    /// Seals a state that opens until then; `None` where the system gives no
    /// randomness.
    pub(crate) fn seal(
        &self,
        bound: Bound<'_>,
        mut state: Vec<u8>,
        until: Instant,
    ) -> Option<String> {
        let mut id: Id = [0; NONCE_LEN];
        getrandom::fill(&mut id).ok()?;
        let nonce = Nonce::assume_unique_for_key(id);
        let key = self.key.as_ref()?;
        key.seal_in_place_append_tag(nonce, Aad::from(bound.bytes()), &mut state)
            .ok()?;
        self.note(bound.principal, id, until);
        let mut token = Vec::with_capacity(state.len().saturating_add(NONCE_LEN));
        token.extend_from_slice(&id);
        token.append(&mut state);
        Some(URL_SAFE_NO_PAD.encode(token))
    }

    /// Opens a state, once. With it goes until when it would have: what it leads to
    /// is no newer.
    pub(crate) fn open(
        &self,
        bound: Bound<'_>,
        token: &str,
    ) -> Result<(Vec<u8>, Instant), Unsealable> {
        if token.len() > LONGEST {
            return Err(Unsealable::Foreign);
        }
        let token = URL_SAFE_NO_PAD.decode(token);
        let token = token.map_err(|_not_base64| Unsealable::Foreign)?;
        let (id, sealed) = token.split_first_chunk().ok_or(Unsealable::Foreign)?;
        let mut state = sealed.to_vec();
        let key = self.key.as_ref().ok_or(Unsealable::Foreign)?;
        let nonce = Nonce::assume_unique_for_key(*id);
        let opened = key.open_in_place(nonce, Aad::from(bound.bytes()), &mut state);
        let length = opened.map_err(|_unspecified| Unsealable::Foreign)?.len();
        state.truncate(length);
        // Only what is whole uses it up: an edited copy costs its owner nothing.
        match self.take(bound.principal, id) {
            Some(until) => Ok((state, until)),
            None => Err(Unsealable::Spent),
        }
    }

    fn note(&self, principal: &str, id: Id, until: Instant) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.entry(Arc::from(principal)).or_default();
        if own.len() >= OPEN {
            own.pop_front();
        }
        own.push_back((id, until));
    }

    /// Until when a state that was not used yet would have been good.
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

    /// Until when the states of a principal are good.
    #[cfg(test)]
    pub(crate) fn deadlines(&self, principal: &str) -> Vec<Instant> {
        let open = self.open.lock().unwrap();
        let own = open.get(principal).into_iter().flatten();
        own.map(|(_, until)| *until).collect()
    }
}

impl Bound<'_> {
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
    ) -> Result<Vec<u8>, Unsealable> {
        let bound = Bound {
            principal,
            subject: [kind, name],
            input: &blake3::hash(input),
        };
        sealer.open(bound, token).map(|(state, _)| state)
    }

    fn sealed(sealer: &Sealer, principal: &str) -> String {
        let bound = Bound {
            principal,
            subject: ["call", "notes.append"],
            input: &blake3::hash(INPUT),
        };
        let until = sealer.deadline().unwrap();
        sealer.seal(bound, b"the state".to_vec(), until).unwrap()
    }

    const ALICE: [&str; 3] = ["alice", "call", "notes.append"];

    #[test]
    fn a_state_opens_once() {
        let sealer = Sealer::new(PATIENCE);
        let token = sealed(&sealer, "alice");
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &token),
            Ok(b"the state".to_vec())
        );
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &token),
            Err(Unsealable::Spent)
        );
    }

    #[test]
    fn a_state_opens_for_the_same_principal_subject_and_input_only() {
        let sealer = Sealer::new(PATIENCE);
        let token = sealed(&sealer, "alice");
        for other in [
            ["bob", "call", "notes.append"],
            ["alice", "prompt", "notes.append"],
            ["alice", "call", "notes.remove"],
            ["alicecall", "", "notes.append"],
        ] {
            let refused = opened(&sealer, other, INPUT, &token);
            assert_eq!(refused, Err(Unsealable::Foreign), "{other:?}");
        }
        let refused = opened(&sealer, ALICE, b"{\"path\": \"/etc\"}", &token);
        assert_eq!(refused, Err(Unsealable::Foreign));
        assert!(
            opened(&sealer, ALICE, INPUT, &token).is_ok(),
            "still unused"
        );
    }

    #[test]
    fn a_state_that_was_edited_or_made_elsewhere_does_not_open() {
        let sealer = Sealer::new(PATIENCE);
        let token = sealed(&sealer, "alice");
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        for place in 0..bytes.len() {
            let mut edited = bytes.clone();
            edited[place] ^= 1;
            let edited = URL_SAFE_NO_PAD.encode(edited);
            assert_eq!(
                opened(&sealer, ALICE, INPUT, &edited),
                Err(Unsealable::Foreign)
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
                Err(Unsealable::Foreign)
            );
        }
        let huge = "A".repeat(LONGEST + 1);
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &huge),
            Err(Unsealable::Foreign)
        );
        let elsewhere = sealed(&Sealer::new(PATIENCE), "alice");
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &elsewhere),
            Err(Unsealable::Foreign)
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
            Err(Unsealable::Spent)
        );
        assert!(sealer.open.lock().unwrap().is_empty());
    }

    #[test]
    fn a_state_tells_until_when_it_was_good_and_one_sealed_after_it_may_end_before_it() {
        let sealer = Sealer::new(PATIENCE);
        let long = sealed(&sealer, "alice");
        let [until] = sealer.deadlines("alice").try_into().unwrap();
        let bound = Bound {
            principal: "alice",
            subject: ["call", "notes.append"],
            input: &blake3::hash(INPUT),
        };
        let past = Instant::now();
        let short = sealer.seal(bound, b"the state".to_vec(), past).unwrap();
        assert_eq!(sealer.open(bound, &short), Err(Unsealable::Spent));
        assert_eq!(
            sealer.open(bound, &long),
            Ok((b"the state".to_vec(), until))
        );
    }

    #[test]
    fn a_principal_that_leaves_many_open_loses_its_own_oldest_only() {
        let sealer = Sealer::new(PATIENCE);
        let bobs = sealed(&sealer, "bob");
        let first = sealed(&sealer, "alice");
        let rest: Vec<String> = (0..OPEN).map(|_| sealed(&sealer, "alice")).collect();
        assert_eq!(
            opened(&sealer, ALICE, INPUT, &first),
            Err(Unsealable::Spent)
        );
        assert!(opened(&sealer, ALICE, INPUT, &rest[0]).is_ok());
        let bob = ["bob", "call", "notes.append"];
        assert!(opened(&sealer, bob, INPUT, &bobs).is_ok());
        assert!(sealer.open.lock().unwrap()["alice"].len() < OPEN);
    }

    #[test]
    fn what_is_sealed_can_not_be_read() {
        let token = sealed(&Sealer::new(PATIENCE), "alice");
        let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("state") && !text.contains("alice"));
    }
}

//! Keys of this process. Except for the secret of the installation, they live as long as the
//! process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
#[cfg(feature = "sealing")]
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use toolward_support::helper::lock;
use zeroize::Zeroizing;

use crate::keys::{Binding, Unsealed};

/// The most open tokens of one principal. The oldest is dropped first, which affects only this
/// principal.
const MAX_OPEN: usize = 256;
/// The most bytes of a token that is opened.
const MAX_TOKEN_BYTES: usize = 512 << 10;

/// The number of a token, which is the nonce of its seal.
type Id = [u8; 12];
/// Tokens of one principal and when they expire, in the order of sealing.
type Open = VecDeque<(Id, Instant)>;

/// The keys for sealing and for ids, and the open tokens.
pub(super) struct LocalKeys {
    /// `None` if the system has no random numbers, or without the feature `sealing`. Then nothing
    /// is sealed.
    sealing: Option<SealingKey>,
    ids: Zeroizing<[u8; 32]>,
    /// Sealed and not yet used tokens, by principal.
    open: Mutex<HashMap<Arc<str>, Open>>,
}

impl LocalKeys {
    /// Creates the keys. Without a secret for ids, the secret is random. Each process then derives
    /// other keys from the same id.
    pub(super) fn new(ids: Option<[u8; 32]>) -> Self {
        let ids = ids.unwrap_or_else(|| {
            let mut ids = [0; 32];
            // Without randomness, the keys of different ids still differ, but can be guessed.
            let _ = getrandom::fill(&mut ids);
            ids
        });
        Self {
            sealing: SealingKey::random(),
            ids: Zeroizing::new(ids),
            open: Mutex::default(),
        }
    }

    pub(super) fn id_hash(&self, message: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.ids, message).as_bytes()
    }

    /// A token, which can be opened once, until `until`. `None` without a key for sealing.
    pub(super) fn sealed(
        &self,
        binding: Binding<'_>,
        mut text: Vec<u8>,
        until: Instant,
    ) -> Option<String> {
        let mut id = Id::default();
        getrandom::fill(&mut id).ok()?;
        let key = self.sealing.as_ref()?;
        key.seal(id, &binding.bytes(), &mut text)?;
        self.remember(binding.principal, id, until);
        Some(URL_SAFE_NO_PAD.encode([id.as_slice(), &text].concat()))
    }

    pub(super) fn open(&self, binding: Binding<'_>, token: &str) -> Unsealed {
        let Some((id, text)) = self.opened(binding, token) else {
            return Unsealed::Foreign;
        };
        // Only an authentic token is used up. An edited copy leaves the original valid.
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
        let mut open = lock(&self.open);
        let own = open.entry(Arc::from(principal)).or_default();
        if own.len() >= MAX_OPEN {
            own.pop_front();
        }
        own.push_back((id, until));
    }

    /// Uses up a token and returns its expiry.
    fn take(&self, principal: &str, id: &Id) -> Option<Instant> {
        let now = Instant::now();
        let mut open = lock(&self.open);
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

/// Authenticated encryption with a key that lives as long as the process.
#[cfg(feature = "sealing")]
struct SealingKey(LessSafeKey);

#[cfg(feature = "sealing")]
impl SealingKey {
    /// A random key; `None` if the system has no random numbers.
    fn random() -> Option<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(bytes.as_mut_slice()).ok()?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, bytes.as_slice()).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Seals a text in place, with a number that is used once.
    fn seal(&self, once: Id, binding: &[u8], text: &mut Vec<u8>) -> Option<()> {
        let (nonce, binding) = (Nonce::assume_unique_for_key(once), Aad::from(binding));
        let sealed = self.0.seal_in_place_append_tag(nonce, binding, text);
        sealed.ok()
    }

    /// Opens a text in place; `None` if it was not sealed with this key and binding.
    fn open(&self, once: Id, binding: &[u8], text: &mut Vec<u8>) -> Option<()> {
        let (nonce, binding) = (Nonce::assume_unique_for_key(once), Aad::from(binding));
        let opened = self.0.open_in_place(nonce, binding, text);
        let length = opened.ok()?.len();
        text.truncate(length);
        Some(())
    }
}

/// Without the feature `sealing`, no key can be created.
#[cfg(not(feature = "sealing"))]
enum SealingKey {}

#[cfg(not(feature = "sealing"))]
impl SealingKey {
    fn random() -> Option<Self> {
        None
    }

    fn seal(&self, _: Id, _: &[u8], _: &mut Vec<u8>) -> Option<()> {
        match *self {}
    }

    fn open(&self, _: Id, _: &[u8], _: &mut Vec<u8>) -> Option<()> {
        match *self {}
    }
}

#[cfg(all(test, feature = "sealing"))]
mod tests;

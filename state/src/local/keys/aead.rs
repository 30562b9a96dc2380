//! Authenticated encryption under a key that lives as long as the process.

pub(super) use ring::aead::NONCE_LEN;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// A key that seals texts.
pub(super) struct SealingKey(LessSafeKey);

impl SealingKey {
    /// A random key; `None` if the system has no random numbers.
    pub(super) fn random() -> Option<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(bytes.as_mut_slice()).ok()?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, bytes.as_slice()).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Seals a text in its place, under a number that is used once.
    pub(super) fn seal(
        &self,
        once: [u8; NONCE_LEN],
        binding: &[u8],
        text: &mut Vec<u8>,
    ) -> Option<()> {
        let nonce = Nonce::assume_unique_for_key(once);
        let sealed = self
            .0
            .seal_in_place_append_tag(nonce, Aad::from(binding), text);
        sealed.ok()
    }

    /// Opens a text in its place; `None` if it was not sealed with this key and binding.
    pub(super) fn open(
        &self,
        once: [u8; NONCE_LEN],
        binding: &[u8],
        text: &mut Vec<u8>,
    ) -> Option<()> {
        let nonce = Nonce::assume_unique_for_key(once);
        let opened = self.0.open_in_place(nonce, Aad::from(binding), text);
        let length = opened.ok()?.len();
        text.truncate(length);
        Some(())
    }
}

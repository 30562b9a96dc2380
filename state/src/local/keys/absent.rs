//! Stands for `aead` in a build without the feature `sealing`: there is no key.

use std::convert::Infallible;

pub(super) const NONCE_LEN: usize = 12;

pub(super) struct SealingKey(Infallible);

impl SealingKey {
    pub(super) fn random() -> Option<Self> {
        None
    }

    pub(super) fn seal(&self, _: [u8; NONCE_LEN], _: &[u8], _: &mut Vec<u8>) -> Option<()> {
        match self.0 {}
    }

    pub(super) fn open(&self, _: [u8; NONCE_LEN], _: &[u8], _: &mut Vec<u8>) -> Option<()> {
        match self.0 {}
    }
}

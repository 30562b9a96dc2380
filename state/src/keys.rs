//! Secrets of the host: sealed texts that a client carries for the host, and keys that are derived
//! from ids.

use std::time::Instant;

use crate::BoxFuture;
use crate::error::StateError;

/// The host's keys. Every process that shares the keys can open sealed texts.
pub trait Keys: Send + Sync {
    /// Seals a text in a token, whose bearer can neither read nor change the text. The token opens
    /// once, until `until`, for an equal binding.
    ///
    /// Repeating the operation makes another token.
    ///
    /// # Errors
    ///
    /// [`StateError`]; [`StateError::Failed`] if no key or no random numbers are available.
    fn seal<'a>(
        &'a self,
        binding: Binding<'a>,
        text: Vec<u8>,
        until: Instant,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<String, StateError>>;

    /// Opens a token. A repetition may find that the token was used.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn unseal<'a>(
        &'a self,
        binding: Binding<'a>,
        token: &'a str,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Unsealed, StateError>>;

    /// A keyed hash of a message under the installation's secret for ids. All processes that share
    /// the secret compute the same hash.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn id_hash(
        &self,
        message: Vec<u8>,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<[u8; 32], StateError>>;
}

/// What a sealed text is bound to.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// The principal.
    pub principal: &'a str,
    /// The kind of request, and the name in the request.
    pub subject: [&'a str; 2],
    /// A digest of the request's input.
    pub input: &'a [u8; 32],
}

impl Binding<'_> {
    /// The binding as bytes: equal only for equal bindings.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"toolward state 1".to_vec();
        let [kind, name] = self.subject;
        for text in [self.principal, kind, name] {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(self.input);
        bytes
    }
}

/// The result of opening a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsealed {
    /// The text, and the time until which the token was valid. A text that is sealed in its place
    /// must not expire later.
    Text(Vec<u8>, Instant),
    /// It was not sealed with these keys, was changed since, or is bound to something else.
    Foreign,
    /// It was used before, has expired, or was dropped for newer tokens of its principal.
    Spent,
}

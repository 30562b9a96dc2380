//! Secrets of the host: texts that a client carries for it, and the keys that follow from ids.

use std::time::Instant;

use crate::BoxFuture;
use crate::error::StateError;

/// The host's keys. What is sealed can be opened by every process that shares them.
pub trait Keys: Send + Sync {
    /// Seals a text, so that its bearer can neither read nor change it. It opens once, until `until`, for an equal
    /// binding.
    ///
    /// Repeating it makes another token.
    ///
    /// # Errors
    ///
    /// [`StateError`]; [`StateError::Failed`] if the system has no random numbers.
    fn seal<'a>(
        &'a self,
        binding: Binding<'a>,
        text: Vec<u8>,
        until: Instant,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<String, StateError>>;

    /// Opens a token. Repeating it may find the token used.
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

    /// A keyed hash of a message under the installation's secret for ids: the same in all processes that share it.
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
    /// The kind of request, and the name in it.
    pub subject: [&'a str; 2],
    /// A digest of the request's input.
    pub input: &'a [u8; 32],
}

impl Binding<'_> {
    /// The binding as bytes: equal for equal bindings only.
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

/// What a token opens to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsealed {
    /// The text, and until when it would have opened: a text that is sealed in its place expires no later.
    Text(Vec<u8>, Instant),
    /// It was not sealed with these keys, was changed since, or is bound to something else.
    Foreign,
    /// It was used before, or is expired.
    Spent,
}

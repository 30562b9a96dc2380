//! Where the values of secrets come from, and where those go that drivers
//! store. The values themselves are never shown: not in errors, not in
//! `Debug`.

mod sources;

use std::fmt;

pub use sources::{Sources, read_file};

use zeroize::Zeroizing;

/// The value of a secret; overwritten when it is dropped.
#[derive(Clone)]
pub struct SecretValue(Zeroizing<Vec<u8>>);

impl SecretValue {
    /// Takes a value over.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(..)")
    }
}

/// Why a secret could not be read or stored. Says what failed, never the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SecretError(pub String);

/// Keeps secrets, each in its publisher's own space. Called while a guest
/// waits: answer quickly.
pub trait SecretStore: Send + Sync {
    /// The value of `slug` for tools of `publisher`, called by `principal`;
    /// `None` where there is none.
    ///
    /// # Errors
    ///
    /// When there is one that can't be read, or may not be: a file that others
    /// may read, for instance.
    fn get(
        &self,
        publisher: &str,
        principal: &str,
        slug: &str,
    ) -> Result<Option<SecretValue>, SecretError>;

    /// Keeps a value that a driver stores (`mutates: secret:slug`).
    ///
    /// # Errors
    ///
    /// When it can't be kept.
    fn put(
        &self,
        publisher: &str,
        principal: &str,
        slug: &str,
        value: SecretValue,
    ) -> Result<(), SecretError>;
}

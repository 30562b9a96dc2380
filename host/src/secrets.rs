//! Stores of secrets. Errors and `Debug` never show values.

mod sources;

pub use sources::{Sources, read_file};

use zeroize::Zeroizing;

/// The value of a secret; overwritten when it is dropped.
#[derive(Clone)]
pub struct SecretValue(Zeroizing<Vec<u8>>);

impl SecretValue {
    /// A secret with this value.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

toolward_support::opaque!(SecretValue);

/// Why a secret could not be read or stored. Must not contain the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SecretError(pub String);

/// A store of secrets, which are separate for each publisher. A guest waits while a method runs, so
/// return quickly.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use toolward_host::Host;
/// use toolward_host::secrets::{SecretError, SecretStore, SecretValue};
///
/// /// Keeps secrets of each publisher and principal in memory.
/// #[derive(Default)]
/// struct InMemory(Mutex<HashMap<[String; 3], SecretValue>>);
///
/// impl SecretStore for InMemory {
///     fn get(
///         &self,
///         publisher: &str,
///         principal: &str,
///         slug: &str,
///     ) -> Result<Option<SecretValue>, SecretError> {
///         let all = self.0.lock().map_err(|error| SecretError(error.to_string()))?;
///         Ok(all.get(&[publisher, principal, slug].map(str::to_owned)).cloned())
///     }
///
///     fn put(
///         &self,
///         publisher: &str,
///         principal: &str,
///         slug: &str,
///         value: SecretValue,
///     ) -> Result<(), SecretError> {
///         let mut all = self.0.lock().map_err(|error| SecretError(error.to_string()))?;
///         all.insert([publisher, principal, slug].map(str::to_owned), value);
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), toolward_host::HostError> {
/// let host = Host::builder().secrets(InMemory::default()).build()?;
/// # Ok(())
/// # }
/// ```
pub trait SecretStore: Send + Sync {
    /// The value of `slug` for tools of `publisher`, called by `principal`; `None` if no value
    /// exists.
    ///
    /// # Errors
    ///
    /// If the value can't be read, or is not protected well enough, for example in a file that
    /// others may read.
    fn get(
        &self,
        publisher: &str,
        principal: &str,
        slug: &str,
    ) -> Result<Option<SecretValue>, SecretError>;

    /// Whether a value exists, which decides whether a driver can serve a call. For a value that
    /// can't be read, a store may return either result. Default: whether [`SecretStore::get`]
    /// returns a value.
    fn has(&self, publisher: &str, principal: &str, slug: &str) -> bool {
        matches!(self.get(publisher, principal, slug), Ok(Some(_)))
    }

    /// Stores a value from a driver (`mutates: secret:slug`).
    ///
    /// # Errors
    ///
    /// If the value can't be stored.
    fn put(
        &self,
        publisher: &str,
        principal: &str,
        slug: &str,
        value: SecretValue,
    ) -> Result<(), SecretError>;
}

//! Secrets that the contract names in `requires.secrets` and the operator
//! grants. A driver normally never sees one: it sends a placeholder, which the
//! host replaces on the way to the hosts tied to the secret.
//!
//! Outside a component (a driver's own tests) every secret is denied, but those of
//! [`testing::Grants`].

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::Error;
use crate::bindings::toolward::driver::secrets as wit;
#[cfg(not(target_family = "wasm"))]
use crate::testing;

/// Text for an outgoing header, that the host replaces by the secret. It is
/// good for this call only, and useless elsewhere.
///
/// # Errors
/// `unauthorised` where the secret isn't declared or granted, `auth_required`
/// where the operator has no value for it, `upstream_error` where the store fails.
pub fn placeholder(slug: &str) -> Result<String, Error> {
    #[cfg(target_family = "wasm")]
    let answer = wit::placeholder(slug);
    #[cfg(not(target_family = "wasm"))]
    let answer = testing::secret(slug)
        .map(|_| format!("placeholder:{slug}"))
        .ok_or(wit::SecretError::Denied);
    answer.map_err(|error| explain(slug, error))
}

/// The secret itself, which takes a policy line of its own.
///
/// # Errors
/// As [`placeholder`].
pub fn reveal(slug: &str) -> Result<Vec<u8>, Error> {
    #[cfg(target_family = "wasm")]
    let answer = wit::reveal(slug);
    #[cfg(not(target_family = "wasm"))]
    let answer = testing::secret(slug).ok_or(wit::SecretError::Denied);
    answer.map_err(|error| explain(slug, error))
}

/// Stores a new value, where the contract declares `mutates: secret:<slug>`.
///
/// # Errors
/// As [`placeholder`].
pub fn store(slug: &str, value: &[u8]) -> Result<(), Error> {
    #[cfg(target_family = "wasm")]
    let answer = wit::store(slug, value);
    #[cfg(not(target_family = "wasm"))]
    let answer = testing::store_secret(slug, value).ok_or(wit::SecretError::Denied);
    answer.map_err(|error| explain(slug, error))
}

fn explain(slug: &str, error: wit::SecretError) -> Error {
    match error {
        wit::SecretError::Denied => Error::new(
            "unauthorised",
            format!("the secret {slug} is not declared, or not granted for this"),
        ),
        wit::SecretError::Missing => Error::new(
            "auth_required",
            format!("the secret {slug} is granted, but has no value"),
        ),
        wit::SecretError::Failed => Error::new(
            "upstream_error",
            format!("the store of the secret {slug} failed"),
        ),
    }
}

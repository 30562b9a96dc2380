//! Secrets that the contract or the driver names in `requires.secrets`, and that the operator
//! grants. A driver normally never sees a secret: it sends a placeholder, which the host replaces
//! in requests to the servers that the secret is tied to.
//!
//! Outside a component (in a driver's own tests), only the secrets of [`testing::Grants`] are
//! granted.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::Error;
use crate::bindings::toolward::driver::secrets as wit;
#[cfg(not(target_family = "wasm"))]
use crate::testing;

/// A text for the header or query parameter that the secret is tied to. The host replaces it with
/// the secret. It works only in this call.
///
/// # Errors
/// `unauthorised` if the secret isn't declared or granted, `auth_required` if the operator has no
/// value for it, `upstream_error` if the store fails.
pub fn placeholder(slug: &str) -> Result<String, Error> {
    #[cfg(target_family = "wasm")]
    let answer = wit::placeholder(slug);
    #[cfg(not(target_family = "wasm"))]
    let answer = testing::secret(slug)
        .map(|_| format!("placeholder:{slug}"))
        .ok_or(wit::SecretError::Denied);
    answer.map_err(|error| explain(slug, error))
}

/// The secret itself, which needs a separate permission in the policy.
///
/// # Errors
/// The errors of [`placeholder`].
pub fn reveal(slug: &str) -> Result<Vec<u8>, Error> {
    #[cfg(target_family = "wasm")]
    let answer = wit::reveal(slug);
    #[cfg(not(target_family = "wasm"))]
    let answer = testing::secret(slug).ok_or(wit::SecretError::Denied);
    answer.map_err(|error| explain(slug, error))
}

/// Stores a new value, if the contract declares `mutates: secret:<slug>`.
///
/// # Errors
/// The errors of [`placeholder`].
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

//! Secrets: guests hold placeholders; values are injected into requests and redacted from
//! responses.

mod automaton;
mod encodings;
mod entities;
pub(crate) mod inject;
pub(crate) mod placeholder;
mod readings;
mod scan;
pub mod scrub;
pub(crate) mod sent_secrets;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri};
use toolward_contract::url_path::percent_encoded;
use zeroize::Zeroizing;

use crate::error::{SecretError, SecretProblem};
use crate::headers;

/// The minimum length of a value. Shorter values occur in responses by chance and are easy to
/// guess.
const MIN_VALUE_BYTES: usize = 8;

/// The source of values. It is called before the first request to an origin that a secret is tied
/// to, and again before each further request until a value exists. Implementations may cache.
///
/// ```
/// use std::collections::HashMap;
/// use toolward_egress::{SecretValues, ValueError};
/// use zeroize::Zeroizing;
///
/// struct Fixed(HashMap<String, Zeroizing<Vec<u8>>>);
///
/// impl SecretValues for Fixed {
///     fn get(&self, slug: &str) -> Result<Zeroizing<Vec<u8>>, ValueError> {
///         self.0.get(slug).cloned().ok_or_else(|| ValueError::new("it is not set"))
///     }
/// }
/// ```
pub trait SecretValues: Send + Sync {
    /// The value of a secret.
    ///
    /// # Errors
    /// Why the secret has no value.
    fn get(&self, slug: &str) -> Result<Zeroizing<Vec<u8>>, ValueError>;
}

/// Why a secret has no value, as text for people. It never contains the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(String);

impl ValueError {
    /// Creates an error with this reason.
    pub fn new(reason: impl Into<String>) -> ValueError {
        ValueError(reason.into())
    }
}

/// A source in which no secret has a value.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

impl SecretValues for NoSecrets {
    fn get(&self, _slug: &str) -> Result<Zeroizing<Vec<u8>>, ValueError> {
        Err(ValueError::new("this host has no secrets"))
    }
}

/// A value that was loaded to be injected and searched for.
pub(crate) struct LoadedSecret {
    pub(crate) slug: String,
    value: Zeroizing<Vec<u8>>,
}

impl LoadedSecret {
    pub(crate) fn load(values: &dyn SecretValues, slug: &str) -> Result<LoadedSecret, SecretError> {
        let refused = |problem, detail| SecretError::new(slug, problem, detail);
        let value = values
            .get(slug)
            .map_err(|error| refused(SecretProblem::Unavailable, error.to_string()))?;
        if value.len() < MIN_VALUE_BYTES {
            return Err(refused(SecretProblem::TooShort, String::new()));
        }
        if !headers::is_plain(&value) {
            return Err(refused(SecretProblem::NotAHeaderValue, String::new()));
        }
        Ok(LoadedSecret {
            slug: slug.to_owned(),
            value,
        })
    }

    /// The most bytes of memory that the search for the value takes.
    pub(crate) fn memory(&self) -> u64 {
        encodings::max_bytes(&self.value).saturating_mul(automaton::NODE)
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.value
    }

    /// The target with the value, percent-encoded, in its parameter `name`. The target's memory is
    /// wiped with its last clone.
    pub(crate) fn target(&self, target: &Uri, name: &str) -> Result<Uri, SecretError> {
        // Has room for the whole text, since a vector that grows leaves copies behind.
        let length = target.path().len() + target.query().map_or(0, str::len) + 1;
        let mut text = Zeroizing::new(Vec::with_capacity(length + 3 * self.value.len()));
        text.extend_from_slice(target.path().as_bytes());
        let mut separator = b'?';
        for pair in target.query().unwrap_or_default().split('&') {
            text.push(separator);
            separator = b'&';
            if pair.split_once('=').is_none_or(|(own, _)| own != name) {
                text.extend_from_slice(pair.as_bytes());
                continue;
            }
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            for piece in percent_encoded(&self.value) {
                text.extend_from_slice(piece.as_bytes());
            }
        }
        let target = PathAndQuery::from_maybe_shared(Bytes::from_owner(text));
        target.map(Uri::from).map_err(|_| self.unusable())
    }

    fn unusable(&self) -> SecretError {
        SecretError::new(&self.slug, SecretProblem::NotAHeaderValue, String::new())
    }

    /// A header value of `prefix` and the secret, which is hidden in debug output and wiped with
    /// its last clone.
    pub(crate) fn header(&self, prefix: &[u8]) -> Result<HeaderValue, SecretError> {
        let mut text = Zeroizing::new(Vec::with_capacity(prefix.len() + self.value.len()));
        text.extend_from_slice(prefix);
        text.extend_from_slice(&self.value);
        let header = HeaderValue::from_maybe_shared(Bytes::from_owner(text));
        let mut header = header.map_err(|_| self.unusable())?;
        header.set_sensitive(true);
        Ok(header)
    }
}

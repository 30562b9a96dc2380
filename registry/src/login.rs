//! A name and a password for a registry.

use std::fmt;

use secrecy::SecretString;

use crate::failure::{Failure, Reason};

/// A name and a password.
#[derive(Clone)]
pub struct Login {
    username: String,
    password: SecretString,
}

impl Login {
    /// A login.
    ///
    /// # Errors
    /// [`Reason::CredentialsInvalid`] for a name with a colon (RFC 7617, section 2), or none.
    pub fn new(username: impl Into<String>, password: SecretString) -> Result<Self, Failure> {
        let username = username.into();
        if username.is_empty() || username.contains(':') || username.chars().any(char::is_control) {
            return Err(invalid().expected("a user name without a colon"));
        }
        Ok(Self { username, password })
    }

    /// The name.
    #[must_use]
    pub fn username(&self) -> &str {
        &self.username
    }

    pub(crate) fn password(&self) -> &SecretString {
        &self.password
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

pub(crate) fn invalid() -> Failure {
    Failure::new(Reason::CredentialsInvalid)
}

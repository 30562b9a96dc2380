//! Names of files that a policy refers to.

use crate::error::{self, PolicyError, quoted};

/// Checks that a text can name a file. The host finds out where it leads.
pub(crate) fn check(key: &str, name: &str) -> Result<(), PolicyError> {
    if !name.is_empty() && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(PolicyError::new(
        &error::WRONG_VALUE,
        format!("expected `{key}` to name a file, found {}", quoted(name)),
    ))
}

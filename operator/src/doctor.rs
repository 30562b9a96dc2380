//! Checks of this machine and of the operator's files: whether what is configured would
//! work. Each check does what it speaks of.

mod machine;
mod policy;
mod store;

use serde::Serialize;

use crate::error::Error;

pub use machine::{cache, configuration, confinement, engine, publishers, system_calls};
pub use policy::{policy, unknown_publishers};
pub use store::installed;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It works.
    Ok,
    /// Something is missing that not everybody needs.
    Note,
    /// Something does not work as it should.
    Warning,
    /// Something does not work.
    Error,
}

/// One check and its outcome.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// What was checked, such as `confinement`.
    pub name: &'static str,
    /// How it ended.
    pub state: State,
    /// What was found. May hold untrusted text.
    pub message: String,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Check {
    /// A check that ended so.
    pub fn new(name: &'static str, state: State, message: impl Into<String>) -> Self {
        Self {
            name,
            state,
            message: message.into(),
            hint: None,
        }
    }

    /// Adds the next step.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.maybe_hint(Some(hint.into()))
    }

    /// Adds the next step, if there is one.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// A check that failed with this error.
    fn failed(name: &'static str, error: Error) -> Self {
        let hint = error.hints.into_iter().next();
        Self::new(name, State::Error, error.message).maybe_hint(hint)
    }
}

/// The permissions of a file, in octal digits.
fn mode(path: &std::path::Path) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).map_or_else(
        |_| "unknown".to_owned(),
        |metadata| format!("{:04o}", metadata.permissions().mode() & 0o7777),
    )
}

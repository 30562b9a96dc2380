//! Checks that the configuration works on this machine. Each check tries the operation
//! it reports on.

mod lasting_changes;
mod ledger;
mod machine;
mod policy;
mod programs;
mod store;

use serde::Serialize;

use crate::error::Error;

pub use lasting_changes::lasting_changes;
pub use ledger::ledger;
pub use machine::{
    cache, configuration, confinement, engine, memory_reset, publishers, system_calls,
};
pub use policy::{policy, policy_warnings, unused_rule_warnings, unused_rules};
pub use programs::programs;
pub use store::installed;

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It works.
    Ok,
    /// Something optional is missing.
    Note,
    /// It does not work as it should.
    Warning,
    /// It does not work.
    Error,
}

/// One check and its outcome.
///
/// ```no_run
/// use toolward_operator::doctor::{self, State};
///
/// for check in [doctor::engine(), doctor::memory_reset(), doctor::confinement()] {
///     if check.state != State::Ok {
///         println!("{}: {}", check.name, check.message);
///     }
/// }
/// ```
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// What was checked, such as `confinement`.
    pub name: &'static str,
    /// The outcome.
    pub state: State,
    /// What was found. May hold untrusted text.
    pub message: String,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Check {
    /// A check with this outcome.
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
    pub fn maybe_hint(self, hint: Option<impl Into<String>>) -> Self {
        let hint = hint.map(Into::into);
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

//! Checks that the configuration works on this machine. Each check tries the operation
//! it reports on.

mod machine;
mod policy;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde::Serialize;
use toolward_ledger::Reader;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::installed::{self, StoreLocation, next_step};
use crate::lasting_changes::LastingChanges;
use crate::report::Report;
use crate::trust::Trust;

pub use machine::{
    cache, configuration, confinement, engine, memory_reset, publishers, system_calls,
};
pub use policy::{policy, policy_warnings, unused_rule_warnings, unused_rules};

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
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
/// use toolward_operator::doctor::{self, CheckState};
///
/// for check in [doctor::engine(), doctor::memory_reset(), doctor::confinement()] {
///     if check.state != CheckState::Ok {
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
    pub state: CheckState,
    /// What was found. May hold untrusted text.
    pub message: String,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Check {
    pub(crate) fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, CheckState::Ok, message)
    }

    fn note(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, CheckState::Note, message)
    }

    pub(crate) fn warning(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, CheckState::Warning, message)
    }

    pub(crate) fn error(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, CheckState::Error, message)
    }

    /// A check with this outcome.
    pub fn new(name: &'static str, state: CheckState, message: impl Into<String>) -> Self {
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

    /// The outcome of a check, or that it failed with this error.
    pub(crate) fn of(name: &'static str, checked: Result<Self>) -> Self {
        checked.unwrap_or_else(|error| {
            let hint = error.hints.into_iter().next();
            Self::error(name, error.message).maybe_hint(hint)
        })
    }
}

/// The permissions of a file or directory.
fn permissions(path: &Path) -> Option<u32> {
    let metadata = path.metadata().ok()?;
    Some(metadata.permissions().mode() & 0o7777)
}

/// The permissions in octal digits.
fn mode(path: &Path) -> String {
    permissions(path).map_or_else(|| "unknown".to_owned(), |mode| format!("{mode:04o}"))
}

/// How many lasting changes are shown, the newest.
const MAX_CHANGES: usize = 10;

/// One note for each of the newest lasting changes; none without a state directory. A person other than the one who
/// confirmed them sees them here.
pub fn lasting_changes(environment: &Environment) -> Vec<Check> {
    const NAME: &str = "changes";
    let Ok(changes) = LastingChanges::of(environment) else {
        return Vec::new();
    };
    match changes.all() {
        Ok(all) => {
            let newest = all.iter().skip(all.len().saturating_sub(MAX_CHANGES));
            newest
                .map(|one| Check::note(NAME, one.to_string()))
                .collect()
        }
        Err(error) => vec![Check::of(NAME, Err(error))],
    }
}

/// Checks whether calls are recorded, and whether the ledger can be read. `ledger verify` checks its contents.
pub fn ledger(trust: &Trust, environment: &Environment) -> Check {
    const NAME: &str = "ledger";
    let check = || {
        let settings = trust.ledger(environment)?;
        if settings.off {
            let off = "calls are not recorded: `[ledger]` says `off = true`";
            return Ok(Check::note(NAME, off));
        }
        let directory = settings.directory(environment)?;
        let shown = directory.display();
        if !directory.join("records.sqlite").exists() {
            return Ok(Check::ok(
                NAME,
                format!("calls will be recorded in {shown}"),
            ));
        }
        Reader::open(&directory, None)?;
        Ok(Check::ok(NAME, format!("calls are recorded in {shown}")))
    };
    Check::of(NAME, check())
}

/// One check of the store, and one for each bundle that is not loaded.
pub fn installed(
    store: &StoreLocation,
    trust: &Trust,
    environment: &Environment,
    report: &dyn Report,
) -> Vec<Check> {
    const NAME: &str = "installed";
    let check = || {
        let Some(store) = store.existing(environment)? else {
            return Ok(vec![Check::ok(NAME, "nothing is installed")]);
        };
        let examined = installed::examined(&store, trust, environment, report)?;
        let sound = examined
            .iter()
            .filter(|one| one.content().is_some())
            .count();
        let message = format!("{sound} of {} installed bundles verify", examined.len());
        let mut checks = vec![Check::ok(NAME, message)];
        checks.extend(examined.iter().filter_map(|one| {
            let (id, failure) = (&one.installed.id, one.refusal()?);
            let message = format!("{id} is not loaded: {} ({})", failure.message, failure.code);
            Some(Check::warning(NAME, message).hint(next_step(id)))
        }));
        Ok(checks)
    };
    check().unwrap_or_else(|failure: Error| {
        let message = format!("{} ({})", failure.message, failure.code);
        let hint = failure.hints.into_iter().next();
        vec![Check::error(NAME, message).maybe_hint(hint)]
    })
}

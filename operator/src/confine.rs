//! Confines this process before it runs guests, as configured in `[confine]`.

use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toolward_contract::diagnostic::{Diagnostic, Position, Severity};
use toolward_host::Broker;
use toolward_host::confine::{Confinement, SystemCalls};

use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::report::Report;
use crate::trust::Trust;

/// The code for an invalid `[confine]`.
const INVALID_CODE: Code = Code::ConfineSettingInvalid;
const INVALID_HINT: &str = "`[confine]` has `system_calls`, which is \"allow-list\" (the default) or \
    \"deny-list\"; it stands in toolward.toml, or in the file of --config";

/// Confines this process to what `confinement` allows, and to reading the broker's
/// artifacts. `[confine]` of the configuration chooses the list of system calls.
///
/// Call it after the host is made and the broker started, and before the runtime: a
/// process with more than one thread is refused.
///
/// ```no_run
/// use toolward_host::{Broker, Host};
/// use toolward_operator::trust::Trust;
/// use toolward_operator::{Environment, Silent, confine};
///
/// # fn confined(host: &Host, broker: &Broker) -> Result<(), toolward_operator::Error> {
/// let (trust, environment) = (Trust::default(), Environment::of_process());
/// let keep = host.requirements().confinement();
/// confine::apply(keep, broker, &trust, &environment, &Silent)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the configuration can't be read, or the kernel refuses.
pub fn apply(
    confinement: Confinement,
    broker: &Broker,
    trust: &Trust,
    environment: &Environment,
    report: &dyn Report,
) -> Result<(), Error> {
    let confinement = match broker.artifacts() {
        Some(path) => confinement.read(path),
        None => confinement,
    };
    let calls = trust.system_calls(environment)?;
    if calls == SystemCalls::DenyList {
        report.warning(
            "`[confine] system_calls = \"deny-list\"`: whoever escapes the sandbox may make every \
             system call that is not known to do harm",
        );
    }
    let confined = confinement.system_calls(calls).apply()?;
    if let Some(warning) = confined.warning() {
        report.warning(&warning.to_string());
    }
    Ok(())
}

#[derive(Deserialize)]
struct Raw {
    confine: Option<RawConfine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfine {
    system_calls: Option<RawSystemCalls>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawSystemCalls {
    AllowList,
    DenyList,
}

/// The setting in `[confine]` of a configuration; `None` without such a table.
pub(crate) fn setting(text: &str, path: &Path) -> Result<Option<SystemCalls>, Error> {
    let text = toolward_fields::without_mark(text);
    let raw: Raw =
        toml::from_str(text).map_err(|error| invalid(text, path, error.span(), error.message()))?;
    Ok(raw.confine.map(|confine| match confine.system_calls {
        Some(RawSystemCalls::DenyList) => SystemCalls::DenyList,
        Some(RawSystemCalls::AllowList) | None => SystemCalls::AllowList,
    }))
}

/// Refuses `[confine]` in a file from `--policy`, where it would have no effect.
pub(crate) fn refuse_setting(text: &str, path: &Path) -> Result<(), Error> {
    match setting(text, path)? {
        None => Ok(()),
        Some(_) => {
            let found = "expected no `[confine]` in a file of --policy";
            Err(invalid(
                text,
                path,
                text.find("[confine").map(|at| at..at),
                found,
            ))
        }
    }
}

fn invalid(text: &str, path: &Path, span: Option<Range<usize>>, problem: &str) -> Error {
    let at = Position::of_offset(text, span.map_or(0, |span| span.start));
    let problem = problem.lines().collect::<Vec<_>>().join(", ");
    let message = format!("{}:{at}: {problem}", path.display());
    let failure = Error::usage(INVALID_CODE, message).hint(INVALID_HINT);
    failure.with_diagnostics(vec![Diagnostic {
        code: INVALID_CODE.code(),
        severity: Severity::Error,
        message: problem,
        file: path.display().to_string(),
        line: at.line,
        column: at.column,
        hint: Some(INVALID_HINT.to_owned()),
        excerpt: None,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_read_and_what_means_nothing_is_an_error_with_its_place() {
        let path = Path::new("toolward.toml");
        let read = |text: &str| setting(text, path);
        assert_eq!(read("[defaults]\n").unwrap(), None);
        for (text, expected) in [
            ("[confine]\n", SystemCalls::AllowList),
            (
                "[confine]\nsystem_calls = \"allow-list\"\n",
                SystemCalls::AllowList,
            ),
            (
                "[confine]\nsystem_calls = \"deny-list\"\n",
                SystemCalls::DenyList,
            ),
        ] {
            assert_eq!(read(text).unwrap(), Some(expected), "{text}");
            let failure = refuse_setting(text, path).unwrap_err();
            assert_eq!(failure.code, INVALID_CODE.code());
        }
        for (text, place) in [
            (
                "[confine]\nsystem_calls = \"none\"\n",
                "toolward.toml:2:16:",
            ),
            ("[confine]\nsystem_calls = false\n", "toolward.toml:2:16:"),
            (
                "\n[confine]\nsystem_cals = \"deny-list\"\n",
                "toolward.toml:3:1:",
            ),
            ("confine = 1\n", "toolward.toml:1:11:"),
            ("[[confine]]\n", "toolward.toml:1:"),
        ] {
            let failure = read(text).unwrap_err();
            assert_eq!(failure.code, INVALID_CODE.code(), "{text}");
            assert!(failure.message.starts_with(place), "{}", failure.message);
        }
    }
}

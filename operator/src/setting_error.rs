//! What is wrong with a setting of `toolward.toml`: in words, with its place and the next step.

use std::path::Path;

use toolward_contract::diagnostic::{Diagnostic, Position, Severity};
use toolward_fields::{Content, Problem, Span, nearest};

use crate::error::{Code, Error};

/// What is wrong, where, and the next step.
pub(crate) struct SettingError {
    message: String,
    at: Span,
    hint: Option<String>,
}

/// The hint for a word that is none of those known.
pub(crate) fn did_you_mean<'k>(
    found: &str,
    known: impl Iterator<Item = &'k str> + Clone,
    what: &str,
) -> String {
    match nearest(found, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the {what} are: {}", known.collect::<Vec<_>>().join(", ")),
    }
}

impl SettingError {
    pub(crate) fn new(message: impl Into<String>, at: Span) -> Self {
        Self {
            message: message.into(),
            at,
            hint: None,
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl From<Problem<'_, Span>> for SettingError {
    fn from(problem: Problem<'_, Span>) -> Self {
        match problem {
            Problem::Missing { name, within, at } => {
                Self::new(format!("expected `{name}` in {within}, found none"), at)
            }
            Problem::Unknown {
                key,
                within,
                at,
                known,
                ..
            } => Self::new(format!("expected a key of {within}, found {key:?}"), at)
                .hint(did_you_mean(key, known.iter().map(String::as_str), "keys")),
            Problem::Type {
                name,
                expected,
                found,
            } => {
                let expected = expected.in_toml();
                let message = format!(
                    "expected `{name}` to be {expected}, found {}",
                    found.kind().in_toml()
                );
                Self::new(message, found.at.clone())
            }
            Problem::Integer { name, range, found } => {
                let number = match &found.content {
                    Content::Number(number) => number.to_string(),
                    _ => found.kind().in_toml().to_owned(),
                };
                let (least, most) = (range.start(), range.end());
                let message = format!(
                    "expected `{name}` to be a whole number from {least} to {most}, found {number}"
                );
                Self::new(message, found.at.clone())
            }
        }
    }
}

/// The error with this code for a setting of the file at `path`, which has this text.
pub(crate) fn invalid(code: Code, text: &str, path: &Path, wrong: SettingError) -> Error {
    let at = Position::of_offset(text, wrong.at.start);
    let problem = wrong.message.lines().collect::<Vec<_>>().join(", ");
    let message = format!("{}:{at}: {problem}", path.display());
    let failure = Error::usage(code, message).maybe_hint(wrong.hint.clone());
    failure.with_diagnostics(vec![Diagnostic {
        code: code.code(),
        severity: Severity::Error,
        message: problem,
        file: path.display().to_string(),
        line: at.line,
        column: at.column,
        hint: wrong.hint,
        excerpt: None,
    }])
}

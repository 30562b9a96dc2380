//! The errors of a policy: a stable code, a place, the expected and the found value, and a hint.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use toolward_contract::diagnostic::Position;
use toolward_support::report::{Code, codes};

/// Why a policy is refused. No part of a refused policy applies.
///
/// Its [`Display`](fmt::Display) form is one line without the hint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct PolicyError {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The table of the error, for policies built in code.
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip)]
    span: Option<Range<usize>>,
}

/// Makes errors with a code.
pub(crate) trait Refuse {
    fn error(&self, message: impl Into<String>) -> PolicyError;

    /// An error `expected …, found …` about a text of the policy.
    fn expected(&self, expected: impl fmt::Display, found: &str) -> PolicyError {
        self.error(format!("expected {expected}, found {}", quoted(found)))
    }
}

impl Refuse for Code {
    fn error(&self, message: impl Into<String>) -> PolicyError {
        PolicyError {
            code: self.code,
            message: message.into(),
            ..PolicyError::default()
        }
    }
}

impl PolicyError {
    pub(crate) fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the place that the error is about, in bytes of the policy's text. If a place was set
    /// before, it is more precise and stays.
    pub(crate) fn at(mut self, span: Range<usize>) -> Self {
        self.span.get_or_insert(span);
        self
    }

    /// Sets the table that the error is about.
    pub(crate) fn of(mut self, table: impl fmt::Display) -> Self {
        self.table.get_or_insert_with(|| table.to_string());
        self
    }

    /// Converts the byte position to a line and a column.
    pub(crate) fn placed(mut self, text: &str) -> Self {
        if let Some(span) = &self.span {
            let at = Position::of_offset(text, span.start);
            self.line = usize::try_from(at.line).ok();
            self.column = usize::try_from(at.column).ok();
        }
        self
    }

    /// Stable kebab-case code, one of [`CODES`].
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The message with the expected and the found value.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about the error, if that is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Line, from 1; `None` for a policy that was built in code, or if the error is not about a
    /// single place.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Column in characters, from 1.
    pub fn column(&self) -> Option<usize> {
        self.column
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column, &self.table) {
            (Some(line), Some(column), _) => write!(f, "line {line}, column {column}: ")?,
            (_, _, Some(table)) => write!(f, "{table}: ")?,
            _ => {}
        }
        write!(f, "{}", self.message)
    }
}

/// Text of a policy file for a message: quoted, shortened, on one line.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 80;
    toolward_support::text::quoted(text, MAX_SHOWN_CHARS)
}

codes! {
    pub(crate) const Code;

    SYNTAX = "policy-syntax", "The text is not valid TOML.";
    TOO_LARGE = "policy-too-large", "More than 1 MiB of text, 4096 rules, 1024 tables of any other kind, or 1024 entries in a list.";
    UNKNOWN_KEY = "policy-unknown-key", "An unknown key or table.";
    MISSING_KEY = "policy-missing-key", "A required key is missing.";
    WRONG_TYPE = "policy-wrong-type", "A value of the wrong type.";
    WRONG_VALUE = "policy-wrong-value", "The value is out of range, not one of the choices, or does not go with the rest of its table.";
    PUBLISHER = "policy-publisher", "Not a valid name of a publisher. `publisher` may be `*` only in a `[[deny]]`.";
    TOOL = "policy-tool", "Not a valid id or pattern of tools, bundles or prompts: `*` stands for whole segments only.";
    CAPABILITY = "policy-capability", "Not a valid capability, or a capability of an unknown class.";
    NEVER_GRANTED = "policy-never-granted", "A capability that no rule can give: `tool:*`, `secret:*`, or `external:…` in `requires` (it belongs in `mutates`). Or a rule has `action` together with a key that is allowed only in rules without `action`.";
    REVEAL = "policy-reveal", "`reveal` names a secret that the rule does not give.";
    WORKSPACE = "policy-workspace", "Not a plain virtual path, or not an absolute directory.";
    WORKSPACE_OVERLAP = "policy-workspace-overlap", "Two workspaces overlap, and are not both `shared`.";
    SECRET = "policy-secret", "A secret's source or use is incomplete or contradicts itself.";
    CONTEXT = "policy-context", "A `[[context]]` that is not for exactly one tool, has an invalid principal or value, or names a `driver_publisher` other than its `publisher` but no `driver`.";
    EXEC = "policy-exec", "An `[[exec]]` without exactly one tool and one program, or with invalid values.";
    ORIGIN = "policy-origin", "Not of the form `https://host[:port]`.";
    HEADER = "policy-header", "Not a header that a secret may be sent in, or that a guest may set.";
    PARAMETER = "policy-parameter", "Not the name of a query parameter that a secret may be sent in.";
    METHOD = "policy-method", "Not a method that a secret may be sent with.";
    PATH = "policy-path", "Not a plain absolute URL path.";
    HOST = "policy-host", "Not a host pattern.";
    ADDRESS = "policy-address", "Not an IP address or network.";
    FILE = "policy-file", "Not a path of a resource: `*` stands for whole segments only.";
    LIMIT = "policy-limit", "Not a known limit, or a value that the limit does not allow.";
    DUPLICATE = "policy-duplicate", "Two tables for the same thing.";
}

//! Where a value comes from, and its text once it was looked up.

use std::fmt;

use serde_json::Value;

use crate::error::{self, PolicyError, quoted};
use crate::file_name;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextSource {
    /// It is written in the policy.
    Written(Value),
    /// An environment variable of the host.
    Env(String),
    /// A file, as written: relative to the policy's file.
    File(String),
}

impl ContextSource {
    pub(super) fn check(&self) -> Result<(), PolicyError> {
        match self {
            Self::Written(_) => Ok(()),
            Self::File(name) => file_name::check("file", name),
            Self::Env(name) => {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if !name.is_empty() && name.chars().all(plain) {
                    return Ok(());
                }
                Err(PolicyError::new(
                    &error::CONTEXT,
                    format!(
                        "expected `env` to name environment variables, found {}",
                        quoted(name)
                    ),
                ))
            }
        }
    }
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ContextText(String);

impl ContextText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for ContextText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for ContextText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContextText(..)")
    }
}

/// One value of a `[[context]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextValue {
    source: ContextSource,
    /// What was found there, or why nothing was.
    found: Option<Result<ContextText, String>>,
}

impl ContextValue {
    /// A value that is not looked up yet.
    #[must_use]
    pub fn new(source: ContextSource) -> Self {
        Self {
            source,
            found: None,
        }
    }

    /// Where it comes from.
    #[must_use]
    pub fn source(&self) -> &ContextSource {
        &self.source
    }

    /// Its text, where it comes from a variable or a file.
    pub(super) fn text(&self) -> Result<&ContextText, &str> {
        match &self.found {
            Some(Ok(text)) => Ok(text),
            Some(Err(problem)) => Err(problem),
            None => Err("it was not looked up"),
        }
    }

    /// Why it could not be looked up, if it had to be.
    pub(super) fn problem(&self) -> Option<&str> {
        match &self.source {
            ContextSource::Written(_) => None,
            _ => self.text().err(),
        }
    }

    /// Looks it up, unless it is written in the policy.
    pub(crate) fn look_up(
        &mut self,
        look: &mut dyn FnMut(&ContextSource) -> Result<String, String>,
    ) {
        if !matches!(self.source, ContextSource::Written(_)) {
            self.found = Some(look(&self.source).map(ContextText));
        }
    }

    /// Where a relative file lies.
    pub(crate) fn file(&mut self) -> Option<&mut String> {
        match &mut self.source {
            ContextSource::File(name) => Some(name),
            _ => None,
        }
    }
}

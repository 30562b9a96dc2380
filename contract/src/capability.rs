//! The vocabulary of declarations and policies: `class:scope`. This module decides which capability
//! covers which. It grants nothing.

mod class;
mod host;
mod path;
mod set;

use std::fmt;
use std::str::FromStr;

use class::ScopeForm;

pub use class::{Backing, Class, Import, ImportRefusal};
pub use host::HostPattern;
pub use path::PathPattern;
pub use set::CapabilitySet;

/// One `class:scope`, normalised.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability {
    class: Class,
    scope: Scope,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Scope {
    Host(HostPattern),
    Path(PathPattern),
    /// Everything of the class.
    Any,
    Name(String),
}

/// Why a text is not a valid capability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CapabilityError {
    message: String,
}

impl CapabilityError {
    /// The stable kebab-case code.
    pub fn code(&self) -> &'static str {
        crate::codes::CAPABILITY_INVALID.code
    }
}

/// The longest class, and the longest name in a scope, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The longest scope of a class that this host does not know, in bytes.
const MAX_UNKNOWN_BYTES: usize = 1024;

impl Capability {
    /// Reads `class:scope`.
    ///
    /// # Errors
    /// If the text has no colon, the class or the scope is not valid, or the class is spelled as in
    /// tools.json (`net` instead of `network`).
    pub fn parse(text: &str) -> Result<Capability, CapabilityError> {
        let fail = |message: String| Err(CapabilityError { message });
        let Some((class, scope)) = text.split_once(':') else {
            return fail(format!("expected `class:scope`, found {text:?}"));
        };
        let plain =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        if !class.starts_with(|c: char| c.is_ascii_lowercase())
            || !class.chars().all(plain)
            || class.len() > MAX_NAME_BYTES
        {
            return fail(format!(
                "expected a class of lower-case letters before the colon, found {text:?}"
            ));
        }
        if let Some(meant) = Class::of_tools_json(class) {
            return fail(format!(
                "expected `{meant}:{scope}`, found `{class}:`, which only tools.json spells so"
            ));
        }
        Capability::of(Class::parse(class), scope)
    }

    /// Reads `class:word` if the class is known and the word is not one of its scopes, such as
    /// `workspace:metadata`. Returns a capability of an unknown class with that name, which counts
    /// as a change and grants nothing. Returns `None` for any other text.
    pub fn of_no_scope(text: &str) -> Option<Capability> {
        let (class, scope) = text.split_once(':')?;
        let is_unknown = matches!(Class::parse(class), Class::Other(_));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let word =
            scope.len() <= MAX_NAME_BYTES && scope.starts_with(plain) && scope.chars().all(plain);
        if is_unknown || !word || Capability::parse(text).is_ok() {
            return None;
        }
        Capability::of(Class::Other(class.to_owned()), scope).ok()
    }

    /// A capability of a class.
    ///
    /// # Errors
    /// If the scope is not valid for the class.
    pub fn of(class: Class, scope: &str) -> Result<Capability, CapabilityError> {
        let fail = |message: String| CapabilityError { message };
        let scope = match class.scope() {
            ScopeForm::Host => Scope::Host(HostPattern::parse(scope).map_err(fail)?),
            ScopeForm::Path => Scope::Path(PathPattern::parse(scope).map_err(fail)?),
            ScopeForm::Name | ScopeForm::Slug | ScopeForm::ToolId if scope == "*" => Scope::Any,
            ScopeForm::Name => Scope::Name(name(scope, false).map_err(fail)?),
            ScopeForm::Slug => Scope::Name(name(scope, true).map_err(fail)?),
            ScopeForm::ToolId => {
                let id =
                    crate::id::ToolId::relaxed(scope).map_err(|error| fail(error.to_string()))?;
                Scope::Name(id.to_string())
            }
            ScopeForm::OneOf(words) => {
                if !words.iter().any(|(word, _)| *word == scope) {
                    return Err(fail(format!("expected {}, found {scope:?}", one_of(words))));
                }
                Scope::Name(scope.to_owned())
            }
            ScopeForm::Unknown => {
                let printable = |c: char| !c.is_control() && !c.is_whitespace();
                if scope.is_empty()
                    || scope.len() > MAX_UNKNOWN_BYTES
                    || !scope.chars().all(printable)
                {
                    return Err(fail(format!(
                        "expected a scope without spaces after the colon, found {scope:?}"
                    )));
                }
                Scope::Name(scope.to_owned())
            }
        };
        Ok(Capability { class, scope })
    }

    /// The class.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// The text after the colon, normalised.
    pub fn scope(&self) -> String {
        match &self.scope {
            Scope::Host(host) => host.to_string(),
            Scope::Path(path) => path.to_string(),
            Scope::Any => "*".to_owned(),
            Scope::Name(name) => name.clone(),
        }
    }

    /// `class:scope` with the port as it was written, even if it is the default port. Earlier
    /// versions wrote a bundle's surface (what a model or a policy sees of it) in this form.
    pub fn as_written(&self) -> String {
        match self.host().map(|host| (host, host.written_port())) {
            Some((host, Some(port))) => format!("{}:{}:{port}", self.class, host.host()),
            _ => self.to_string(),
        }
    }

    /// The host pattern, if this is a network capability.
    pub fn host(&self) -> Option<&HostPattern> {
        match &self.scope {
            Scope::Host(host) => Some(host),
            _ => None,
        }
    }

    /// The path pattern, if this is a workspace capability.
    pub fn path(&self) -> Option<&PathPattern> {
        match &self.scope {
            Scope::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Whether its scope is `*`, or for a host `*` with a port. Only another wildcard covers a
    /// wildcard.
    pub fn is_wildcard(&self) -> bool {
        match &self.scope {
            Scope::Host(host) => host.name == host::HostName::Any,
            Scope::Any => true,
            Scope::Path(_) | Scope::Name(_) => false,
        }
    }

    /// Whether a grant of `self` includes `other`. Reflexive and transitive. A capability of an
    /// unknown class covers only itself.
    pub fn covers(&self, other: &Capability) -> bool {
        self.class == other.class
            && match (&self.scope, &other.scope) {
                (Scope::Host(a), Scope::Host(b)) => a.covers(b),
                (Scope::Path(a), Scope::Path(b)) => a.covers(b),
                (Scope::Any, _) => true,
                (Scope::Name(a), Scope::Name(b)) => a == b,
                _ => false,
            }
    }

    /// Whether a deny of this capability applies to `declared`: true if something may fall under
    /// both. In doubt, a deny matches more, whereas [`Capability::intersect`] gives less.
    pub fn overlaps(&self, declared: &Capability) -> bool {
        self.class == declared.class
            && match (&self.scope, &declared.scope) {
                (Scope::Host(a), Scope::Host(b)) => a.overlaps(b),
                (Scope::Path(a), Scope::Path(b)) => a.overlaps(b),
                _ => self.covers(declared) || declared.covers(self),
            }
    }

    /// A capability that both cover; `None` if they share nothing. If no pattern describes the
    /// common part of two path patterns, the result is smaller than that part, or `None`.
    pub fn intersect(&self, other: &Capability) -> Option<Capability> {
        if self.class != other.class {
            return None;
        }
        let scope = match (&self.scope, &other.scope) {
            (Scope::Host(a), Scope::Host(b)) => Scope::Host(a.intersect(b)?),
            (Scope::Path(a), Scope::Path(b)) => Scope::Path(a.intersect(b)?),
            _ if self.covers(other) => other.scope.clone(),
            _ if other.covers(self) => self.scope.clone(),
            _ => return None,
        };
        Some(Capability {
            class: self.class.clone(),
            scope,
        })
    }
}

/// The words, joined for a message.
fn one_of(words: &[(&str, &str)]) -> String {
    let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn name(scope: &str, slashes: bool) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let part = |part: &str| {
        !part.is_empty()
            && part.chars().all(plain)
            && part.chars().any(|c| c.is_ascii_alphanumeric())
    };
    let fits = scope.split('/').all(part) && (slashes || !scope.contains('/'));
    if fits && scope.len() <= MAX_NAME_BYTES {
        return Ok(scope.to_owned());
    }
    let also = slashes.then_some(", with `/` between parts");
    let also = also.unwrap_or_default();
    Err(format!(
        "expected a name of letters, digits, `.`, `_` and `-`{also}, found {scope:?}"
    ))
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.class, self.scope())
    }
}

impl FromStr for Capability {
    type Err = CapabilityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Capability::parse(text)
    }
}

impl serde::Serialize for Capability {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Capability {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Capability::parse(&text).map_err(serde::de::Error::custom)
    }
}

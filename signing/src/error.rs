//! Why something was refused: a stable code, and what was expected, found, where, and what to do.
//! One type for the whole crate; no wording is decided anywhere else than in the table of kinds.

mod kind;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeStruct, Serializer};

pub use kind::ErrorKind;

/// A refusal: nothing was changed, nothing half-written stays behind.
///
/// Its [`Display`](fmt::Display) form is one line without the hint, e.g.
/// `the content differs from the manifest's digest (driver.wasm): expected …, found …`.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal(Box<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    kind: ErrorKind,
    place: Option<String>,
    expected: Option<Cow<'static, str>>,
    found: Option<String>,
    hint: Option<String>,
    source: Source,
}

/// The error of the operating system behind a refusal. Two refusals are equal regardless of it.
#[derive(Clone, Default)]
struct Source(Option<Arc<std::io::Error>>);

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Source {}

impl Refusal {
    /// A refusal of this kind, without particulars yet.
    #[must_use]
    pub fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Parts {
            kind,
            place: None,
            expected: None,
            found: None,
            hint: None,
            source: Source::default(),
        }))
    }

    /// Says where: a file, `file:line:column`, or the name of a key. An earlier place stays.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.0.place.get_or_insert_with(|| place.into());
        self
    }

    /// Says what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<Cow<'static, str>>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    /// Says what was found instead. Hostile text goes through a quoting first.
    #[must_use]
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.0.found = Some(found.into());
        self
    }

    /// Replaces the kind's general advice with advice for this case.
    #[must_use]
    pub fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Why, as a value to match on.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The stable kebab-case code, e.g. `digest-mismatch`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// One sentence, the same for each refusal with this code.
    #[must_use]
    pub fn message(&self) -> &'static str {
        self.0.kind.message()
    }

    /// Where: a file of the bundle, `file:line:column`, or the name of a key.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        self.0.place.as_deref()
    }

    /// What was expected.
    #[must_use]
    pub fn expected_text(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// What was found instead.
    #[must_use]
    pub fn found_text(&self) -> Option<&str> {
        self.0.found.as_deref()
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        Some(self.0.hint.as_deref().unwrap_or(self.0.kind.hint()))
    }

    /// A refusal because the operating system reported an error at `place`.
    #[must_use]
    pub fn io(place: impl Into<String>, error: std::io::Error) -> Self {
        Self::unplaced_io(error).at(place)
    }

    /// As [`Refusal::io`], where a caller knows the place.
    pub(crate) fn unplaced_io(error: std::io::Error) -> Self {
        let mut refusal = Self::new(ErrorKind::Io).found(error.to_string());
        refusal.0.source = Source(Some(Arc::new(error)));
        refusal
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        if let Some(place) = self.place() {
            write!(f, " ({place})")?;
        }
        match (self.expected_text(), self.found_text()) {
            (Some(expected), Some(found)) => write!(f, ": expected {expected}, found {found}"),
            (Some(expected), None) => write!(f, ": expected {expected}"),
            (None, Some(found)) => write!(f, ": found {found}"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refusal[{}]: {self}", self.code())
    }
}

impl std::error::Error for Refusal {
    /// The error of the operating system, if one is the reason. A parser's error is not kept: it quotes hostile text.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.0.as_deref()?;
        Some(source)
    }
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Refusal", 6)?;
        fields.serialize_field("code", self.code())?;
        fields.serialize_field("message", self.message())?;
        fields.serialize_field("place", &self.place())?;
        fields.serialize_field("expected", &self.expected_text())?;
        fields.serialize_field("found", &self.found_text())?;
        fields.serialize_field("hint", &self.hint())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_is_kebab_case_and_used_once() {
        let mut seen = HashSet::new();
        for kind in ErrorKind::ALL {
            let code = kind.code();
            assert!(seen.insert(code), "{code} comes twice");
            assert!(code.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
            assert!(!kind.message().is_empty() && !kind.hint().is_empty());
        }
    }

    #[test]
    fn the_error_of_the_operating_system_is_the_source_of_a_refusal() {
        use std::error::Error as _;
        let refusal = Refusal::io("driver.wasm", std::io::ErrorKind::NotFound.into());
        let source = refusal.source().unwrap();
        let source = source.downcast_ref::<std::io::Error>().unwrap();
        assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
        assert_eq!(refusal, refusal.clone());
        assert!(Refusal::new(ErrorKind::KeyInvalid).source().is_none());
    }

    #[test]
    fn a_refusal_says_what_where_expected_found_and_what_to_do() {
        let refusal = Refusal::new(ErrorKind::SizeMismatch)
            .at("driver.wasm")
            .at("ignored: the first place is the closest")
            .expected("3 bytes")
            .found("4 bytes");
        assert_eq!(
            refusal.to_string(),
            "a file has another size than the manifest says (driver.wasm): expected 3 bytes, found 4 bytes"
        );
        let json = serde_json::to_value(&refusal).unwrap();
        assert_eq!(json["code"], "size-mismatch");
        assert_eq!(json["place"], "driver.wasm");
        assert!(json["hint"].is_string());
    }
}

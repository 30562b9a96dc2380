//! Errors for programs and for people. [`codes!`] declares a crate's stable codes, each with its
//! meaning and advice; the book's pages are generated from these tables. A [`Report`] has the code
//! of a refusal, its place, the expected and the found value, and a hint. Errors with fields are
//! enums that the same macro declares.

mod codes;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeStruct, Serializer};

pub use crate::codes;
#[doc(hidden)]
pub use codes::AsSource;
pub use codes::{Code, Coded, Kind, Severity};

/// A refusal or a failure. `C` is the crate's table of codes.
///
/// Its [`Display`](fmt::Display) form is one line without the hint, e.g.
/// `the content differs from the manifest's digest (driver.wasm): expected …, found …`.
/// Two reports are equal regardless of their sources.
#[derive(Clone)]
pub struct Report<C>(Box<Parts<C>>);

#[derive(Clone)]
struct Parts<C> {
    kind: C,
    place: Option<String>,
    expected: Option<Cow<'static, str>>,
    found: Option<String>,
    hint: Option<String>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl<C: Kind> Report<C> {
    /// A report of this kind, without details.
    #[must_use]
    pub fn new(kind: impl Into<C>) -> Self {
        Self(Box::new(Parts {
            kind: kind.into(),
            place: None,
            expected: None,
            found: None,
            hint: None,
            source: None,
        }))
    }

    /// Sets the place: a file, `file:line:column`, the name of a key, an address without its query.
    /// An earlier place stays.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.0.place.get_or_insert_with(|| place.into());
        self
    }

    /// Sets the expected value.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<Cow<'static, str>>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    /// Sets the found value. The caller must quote hostile text first, and must not pass a secret.
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

    /// Adds the error of the layer below: its text becomes the found value, and the error becomes
    /// the source. Not for errors that quote hostile text, such as a parser's.
    #[must_use]
    pub fn caused_by(mut self, error: impl Error + Send + Sync + 'static) -> Self {
        self.0.found = Some(error.to_string());
        self.0.source = Some(Arc::new(error));
        self
    }

    /// The same report under a kind of another table. `self` becomes its source.
    pub fn under<D: Kind>(self, kind: impl Into<D>) -> Report<D> {
        let parts = &*self.0;
        Report(Box::new(Parts {
            kind: kind.into(),
            place: parts.place.clone(),
            expected: parts.expected.clone(),
            found: parts.found.clone(),
            hint: parts.hint.clone(),
            source: Some(Arc::new(self)),
        }))
    }

    /// The kind, to match on.
    pub fn kind(&self) -> C {
        self.0.kind
    }

    /// The stable code, e.g. `digest-mismatch`.
    pub fn code(&self) -> &'static str {
        self.0.kind.row().code
    }

    /// One sentence, the same for each report with this code.
    pub fn message(&self) -> &'static str {
        self.0.kind.row().meaning
    }

    /// The place: a file, `file:line:column`, the name of a key, an address without its query.
    pub fn place(&self) -> Option<&str> {
        self.0.place.as_deref()
    }

    /// The expected value.
    pub fn expected_text(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// The found value.
    pub fn found_text(&self) -> Option<&str> {
        self.0.found.as_deref()
    }

    /// The hint at what to do.
    pub fn hint(&self) -> Option<&str> {
        let advice = Some(self.0.kind.row().advice).filter(|advice| !advice.is_empty());
        self.0.hint.as_deref().or(advice)
    }

    fn texts(&self) -> [Option<&str>; 4] {
        [
            self.place(),
            self.expected_text(),
            self.found_text(),
            self.hint(),
        ]
    }
}

impl<C: Kind> PartialEq for Report<C> {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.texts() == other.texts()
    }
}

impl<C: Kind> Eq for Report<C> {}

impl<C: Kind> Coded for Report<C> {
    fn code(&self) -> &'static str {
        self.code()
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint().map(Cow::from)
    }
}

impl<C: Kind> fmt::Display for Report<C> {
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

impl<C: Kind> fmt::Debug for Report<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {self}", self.code())
    }
}

impl<C: Kind> Error for Report<C> {
    /// The error of the layer below, if it is the reason.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}

impl<C: Kind> Serialize for Report<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Report", 6)?;
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
    use crate::report::{Code, Severity};

    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Row(&'static Code);

    impl Kind for Row {
        fn row(self) -> &'static Code {
            self.0
        }
    }

    const IO: Row = Row(&Code {
        code: "io",
        severity: Severity::Error,
        exit: "",
        meaning: "a file could not be read",
        advice: "check its path",
    });
    const SIZE: Row = Row(&Code {
        code: "size-mismatch",
        severity: Severity::Error,
        exit: "",
        meaning: "a file has another size",
        advice: "",
    });

    #[test]
    fn a_report_says_what_where_expected_found_and_what_to_do() {
        let report = Report::<Row>::new(SIZE)
            .at("driver.wasm")
            .at("ignored: the first place is the closest")
            .expected("3 bytes")
            .found("4 bytes");
        assert_eq!(
            report.to_string(),
            "a file has another size (driver.wasm): expected 3 bytes, found 4 bytes"
        );
        assert_eq!(report.hint(), None);
        let json = serde_json::to_string(&report.hinted("pack it again")).unwrap();
        assert_eq!(
            json,
            r#"{"code":"size-mismatch","message":"a file has another size","place":"driver.wasm","expected":"3 bytes","found":"4 bytes","hint":"pack it again"}"#
        );
    }

    #[test]
    fn the_error_of_the_layer_below_is_the_source_of_a_report() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let report = Report::<Row>::new(IO).caused_by(missing);
        assert_eq!(report.hint(), Some("check its path"));
        let source = report.source().unwrap();
        let source = source.downcast_ref::<std::io::Error>().unwrap();
        assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
        assert_eq!(report.found_text(), Some(source.to_string().as_str()));
    }

    #[test]
    fn a_report_under_another_kind_has_the_first_as_its_source() {
        let first = Report::<Row>::new(SIZE).at("driver.wasm");
        let second: Report<Row> = first.clone().under(IO);
        assert_eq!(second.to_string(), "a file could not be read (driver.wasm)");
        assert_eq!(second.source().unwrap().downcast_ref(), Some(&first));
    }
}

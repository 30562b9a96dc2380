//! Request methods.

/// A request method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// GET
    Get,
    /// HEAD
    Head,
    /// OPTIONS
    Options,
    /// POST
    Post,
    /// PUT
    Put,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
}

impl Method {
    pub(super) const NAMES: &[&str] = &["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

    const ALL: &[(&str, Method)] = &[
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("OPTIONS", Method::Options),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("PATCH", Method::Patch),
        ("DELETE", Method::Delete),
    ];

    /// Reads a method in upper case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Method> {
        Method::ALL
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, method)| *method)
    }

    /// The method in upper case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Method::ALL
            .iter()
            .find(|(_, method)| *method == self)
            .map_or("", |(name, _)| name)
    }

    /// Whether it only reads (RFC 9110, section 9.2.1): allowed by `requires.network` alone.
    #[must_use]
    pub fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options)
    }

    /// Whether the input is its body where nothing else is said. A body of DELETE has no meaning
    /// that servers agree about (RFC 9110, section 9.3.5).
    pub(crate) fn sends_input(self) -> bool {
        matches!(self, Method::Post | Method::Put | Method::Patch)
    }

    pub(crate) fn takes_body(self) -> bool {
        !self.is_safe()
    }
}

//! Why documents can't be served together.

/// Why documents can't be served together. Display: one line; see also
/// [`DocumentsError::code`] and [`DocumentsError::hint`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentsError {
    /// Two of them would go by one name or URI.
    #[error("the {kind} {name:?} is in {first} and in {second}")]
    Clash {
        /// `prompt`, `resource` or `template`.
        kind: &'static str,
        /// The name or URI. Untrusted, but printable ASCII.
        name: String,
        /// A file, its bundle and publisher.
        first: String,
        /// Another.
        second: String,
    },
}

impl DocumentsError {
    /// The stable name of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Clash { .. } => "document-clash",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Clash { .. } => {
                "take it from the [[document]] of one of them, or serve one bundle less"
            }
        }
    }
}

//! Why documents can't be served together.

use toolward_support::report::codes;

/// Why documents can't be served together. Display: one line; see also
/// [`DocumentsError::code`] and [`DocumentsError::hint`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentsError {
    /// Two documents have one name or URI.
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

codes! {
    for DocumentsError {
        Self::Clash { .. } = "document-clash",
            "take it from the [[document]] of one of them, or serve one bundle less";
    }
}

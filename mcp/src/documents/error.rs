//! Why documents can't be served together.

use toolward_support::report::codes;

codes! {
    /// Why documents, or the features of a host, can't be served together.
    ///
    /// ```
    /// use toolward_mcp::DocumentsError;
    ///
    /// fn explain(error: &DocumentsError) -> String {
    ///     match error {
    ///         DocumentsError::Clash { name, .. } => format!("two documents are called {name}"),
    ///         _ => format!("{error} ({}): {}", error.code(), error.hint().unwrap_or_default()),
    ///     }
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum DocumentsError: Error {
        /// `kind` is `prompt`, `resource` or `template`. The name or URI is untrusted, but printable ASCII. `first` and
        /// `second` are a file, its bundle and publisher.
        Clash { kind: &'static str, name: String, first: String, second: String } = "document-clash" ["2"],
            "two prompts or resources would have one name or URI",
            ("the {kind} {name:?} is in {first} and in {second}")
            => "take it from the [[document]] of one of them, or serve one bundle less";
    }
}

//! Checks tool definitions of AML (another format for tools), `<tool_id>.tool.md`, by AML's rules
//! and lints. No host loads a definition: `toolward import aml` makes a bundle from it.

mod codes;
mod definition;
mod fields;
mod lints;
mod rules;

use toolward_bundle::codes::FILE_NOT_UTF8;
use toolward_bundle::locate::{about_file, text_of};
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::front_matter;

use fields::Findings;

pub use codes::CODES;
pub(crate) use definition::{Credentials, Definition, Transport};
pub(crate) use rules::{Behaviour, Lifecycle, SPEC_VERSION};

/// The suffix of a definition's file name.
pub const EXTENSION: &str = ".tool.md";

/// Returns all findings about a definition by AML's rules, sorted by their positions in the file.
///
/// ```
/// let source = "---\ntool_id: send-email\nversion: \"1\"\n---\n";
/// let found = toolward_adapters::aml::check("send-email.tool.md", source);
/// let version = found.iter().find(|one| one.code == "aml-version-invalid").unwrap();
/// assert_eq!((version.line, version.column), (3, 10));
/// ```
pub fn check(file: &str, source: &str) -> Vec<Diagnostic> {
    let parsed = front_matter::read(file, source);
    let found = parsed.diagnostics;
    let Some(document) = parsed.value else {
        return found;
    };
    let mut findings = Findings { file, found };
    lints::check_names(&document, &mut findings);
    rules::check(&document, &mut findings);
    lints::check(&document, &mut findings);
    findings.found.sort_by_key(Diagnostic::position);
    findings.found
}

/// Returns the finding that `import` leaves a valid definition out, with the reason.
pub(crate) fn not_imported(file: &str, why: &str) -> Diagnostic {
    let message = format!("`import` makes no tool of it: {why}");
    let hint = "correct that, or keep the definition for hosts of AML only";
    about_file(file, &codes::NOT_IMPORTED, message, hint)
}

/// Calls [`check`] for a file's bytes.
pub(crate) fn check_bytes(file: &str, bytes: &[u8]) -> Vec<Diagnostic> {
    match text_of(file, &FILE_NOT_UTF8, bytes) {
        Ok(source) => check(file, source),
        Err(found) => vec![found],
    }
}

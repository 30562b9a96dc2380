//! Keywords and defaults in schemas that have no effect.

use toolward_bundle::codes;
use toolward_bundle::documents::Located;
use toolward_bundle::files::Files;
use toolward_bundle::index::TOOLS_JSON;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::index::IndexEntry;
use toolward_contract::schema::{Schema, SchemaWarningKind};
use toolward_contract::tool::Tool;

use super::Places;

/// Looks through the schemas of a contract.
pub(super) fn check(tool: &Located<Tool>, files: &Files, diagnostics: &mut Vec<Diagnostic>) {
    let contract = &tool.value;
    let schemas = [
        ("/inputs", Some(&contract.inputs)),
        ("/outputs", Some(&contract.outputs)),
        ("/contextSchema", contract.context_schema.as_ref()),
    ];
    report(&tool.path, &schemas, diagnostics, || {
        Places::of(files, &tool.path)
    });
}

/// Looks through the schemas of an entry of tools.json.
pub(super) fn check_entry(entry: &IndexEntry, pointer: &str, diagnostics: &mut Vec<Diagnostic>) {
    let (input, result) = (
        format!("{pointer}/input_schema"),
        format!("{pointer}/result_schema"),
    );
    let schemas = [
        (input.as_str(), Some(&entry.input_schema)),
        (result.as_str(), Some(&entry.result_schema)),
    ];
    report(TOOLS_JSON, &schemas, diagnostics, || Places::only(entry.at));
}

fn report(
    path: &str,
    schemas: &[(&str, Option<&Schema>)],
    diagnostics: &mut Vec<Diagnostic>,
    places: impl Fn() -> Places,
) {
    for (pointer, schema) in schemas {
        let warnings = schema.map(Schema::warnings).unwrap_or_default();
        if warnings.is_empty() {
            continue;
        }
        let places = places();
        diagnostics.extend(warnings.into_iter().map(|found| {
            let pointer = format!("{pointer}{}", found.path);
            let message = format!("at {pointer}: {}", found.message);
            let at = places.at(&pointer);
            let code = match found.kind {
                SchemaWarningKind::UnknownKeyword => &codes::SCHEMA_KEYWORD_UNKNOWN,
                SchemaWarningKind::InvalidDefault => &codes::SCHEMA_DEFAULT_INVALID,
            };
            Diagnostic::new(code, path, at, message).with_hint(found.hint)
        }));
    }
}

//! Keywords and defaults in schemas that have no effect, and inputs that clients can't use as they are.

use toolward_bundle::codes;
use toolward_bundle::documents::Located;
use toolward_bundle::files::Files;
use toolward_bundle::index::TOOLS_JSON;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::index::IndexEntry;
use toolward_contract::schema::{Schema, SchemaWarning, SchemaWarningKind};
use toolward_contract::tool::{McpSchemas, Tool};

use super::Places;

/// Looks through the schemas of a contract.
pub(super) fn check(tool: &Located<Tool>, files: &Files, diagnostics: &mut Vec<Diagnostic>) {
    let contract = &tool.value;
    let mut inputs = contract.inputs.warnings();
    if contract.mcp_schemas == McpSchemas::Plain {
        inputs.extend(contract.inputs.input_warnings());
    }
    let context = contract.context_schema.as_ref();
    let schemas = [
        ("/inputs", inputs),
        ("/outputs", contract.outputs.warnings()),
        (
            "/contextSchema",
            context.map(Schema::warnings).unwrap_or_default(),
        ),
    ];
    report(&tool.path, schemas, diagnostics, || {
        Places::of(files, &tool.path)
    });
}

/// Looks through the schemas of an entry of tools.json.
pub(super) fn check_entry(entry: &IndexEntry, pointer: &str, diagnostics: &mut Vec<Diagnostic>) {
    let (input, result) = (
        format!("{pointer}/input_schema"),
        format!("{pointer}/result_schema"),
    );
    let mut inputs = entry.input_schema.warnings();
    inputs.extend(entry.input_schema.input_warnings());
    let schemas = [
        (input.as_str(), inputs),
        (result.as_str(), entry.result_schema.warnings()),
    ];
    report(TOOLS_JSON, schemas, diagnostics, || Places::only(entry.at));
}

fn report<const N: usize>(
    path: &str,
    schemas: [(&str, Vec<SchemaWarning>); N],
    diagnostics: &mut Vec<Diagnostic>,
    places: impl Fn() -> Places,
) {
    for (pointer, warnings) in schemas {
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
                SchemaWarningKind::RootComposed => &codes::SCHEMA_ROOT_COMPOSED,
                SchemaWarningKind::ReferenceKept => &codes::SCHEMA_REFERENCE_KEPT,
            };
            Diagnostic::new(code, path, at, message).with_hint(found.hint)
        }));
    }
}

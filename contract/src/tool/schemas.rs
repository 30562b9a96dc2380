//! The schemas of a contract, and its examples, which they check. Running examples is the host's.

use serde_json::Value;

use super::{CONTEXT_PIN, ToolExample};
use crate::Scope;
use crate::codes;
use crate::diagnostic::Code;
use crate::schema::{Schema, SchemaError};
use crate::source::{Content, FieldReader, MappingReader, Node, Spelling, nearest};

/// The schemas of inputs, which must be an object, and outputs.
pub(super) fn schemas(
    fields: &mut MappingReader<'_>,
    scope: &dyn Scope,
) -> (Option<Schema>, Option<Schema>) {
    let (inputs_key, outputs_key) = match fields.spelling() {
        Spelling::Snake => ("inputs", "outputs"),
        Spelling::Camel => ("input_schema", "output_schema"),
    };
    let field = fields.required(inputs_key);
    let inputs = field.as_ref().and_then(|field| schema(field, scope));
    let outputs = fields.required(outputs_key);
    let outputs = outputs.and_then(|field| schema(&field, scope));
    let kind = inputs
        .as_ref()
        .and_then(|inputs| inputs.value().get("type"));
    if let (Some(field), Some(kind)) = (field, kind)
        && kind != "object"
    {
        let name = &field.name;
        let message = format!("expected `{name}` to describe an object, found type {kind}");
        fields
            .report
            .add(&codes::INPUTS_NOT_OBJECT, field.place("/type"), message);
    }
    (inputs, outputs)
}

/// A schema, compiled.
pub(crate) fn schema(field: &FieldReader<'_>, scope: &dyn Scope) -> Option<Schema> {
    let label = &field.name;
    if !matches!(field.content, Content::Mapping(_)) {
        let found = field.kind();
        let message = format!("expected `{label}` to be a JSON Schema, found {found}");
        return field.refuse(&codes::WRONG_TYPE, message);
    }
    let value = field.to_value();
    if let Some(schema) = scope.compiled(&value) {
        return Some(schema);
    }
    match Schema::compile(&value, scope) {
        Ok(schema) => Some(schema),
        Err(SchemaError {
            missing: Some(id), ..
        }) if scope.is_schema_unread(&id) => {
            field.report.follows();
            None
        }
        Err(error) => {
            // An error in another document is reported at the reference.
            let at = match error.document {
                None => field.place(&error.path),
                Some(_) => field.at,
            };
            let near = |id: &String| {
                let known = scope.schemas();
                nearest(id, known.iter().map(String::as_str)).map(str::to_owned)
            };
            let near = error.missing.as_ref().and_then(near);
            let hint = near.map(|near| format!("did you mean `schema:{near}`?"));
            field
                .report
                .add_with_hint(error.info, at, format!("in `{label}`: {error}"), hint);
            None
        }
    }
}

/// `contextSchema` at the top or below `metadata`; both only if equal.
pub(super) fn context_schema<'n>(
    fields: &mut MappingReader<'n>,
    below_metadata: Option<&'n Node>,
    scope: &dyn Scope,
) -> Option<Schema> {
    let top = fields.take("contextSchema");
    if let (Some(top), Some(inner)) = (&top, below_metadata)
        && top.to_value() != inner.to_value()
    {
        let message =
            "expected `contextSchema` and `metadata.contextSchema` to be equal, found two schemas";
        fields
            .report
            .add(&codes::CONTEXT_SCHEMA_CONFLICT, inner.at, message);
        return None;
    }
    let field = top.or_else(|| {
        Some(FieldReader::new(
            "contextSchema",
            below_metadata?,
            fields.report,
        ))
    })?;
    let pin = field.get("properties").and_then(|all| all.get(CONTEXT_PIN));
    if let Some(pin) = pin {
        let message = format!(
            "expected members that a driver gets, found `{CONTEXT_PIN}`: it picks the driver of a call, and hosts take it out"
        );
        field
            .report
            .add(&codes::CONTEXT_MEMBER_RESERVED, pin.at, message);
    }
    schema(&field, scope)
}

/// The examples, checked against the schemas. The host runs them.
pub(super) fn examples(
    fields: &mut MappingReader<'_>,
    inputs: Option<&Schema>,
    outputs: Option<&Schema>,
) -> Vec<ToolExample> {
    let mut examples: Vec<ToolExample> = Vec::new();
    for item in fields.items("examples") {
        let Some(mut fields) = item.fields() else {
            continue;
        };
        let name = fields.require("name", |field| {
            let name = field.text()?;
            if examples.iter().any(|other| other.name == name) {
                let message =
                    format!("expected examples with different names, found {name:?} again");
                field.note(&codes::EXAMPLE_DUPLICATE_NAME, message);
            }
            Some(name.to_owned())
        });
        let (input, output) = (fields.required("input"), fields.take("output"));
        let note = fields.read("note", |field| field.text().map(str::to_owned));
        fields.unknown();
        let input =
            input.map(|field| checked(&field, inputs, "input", &codes::EXAMPLE_INPUT_INVALID));
        let output =
            output.map(|field| checked(&field, outputs, "output", &codes::EXAMPLE_OUTPUT_INVALID));
        if let (Some(name), Some(input)) = (name, input) {
            examples.push(ToolExample {
                name,
                input,
                output,
                note,
            });
        }
    }
    examples
}

fn checked(field: &FieldReader<'_>, schema: Option<&Schema>, part: &str, code: &Code) -> Value {
    let value = field.to_value();
    if let Some(Err(violation)) = schema.map(|schema| schema.validate(&value)) {
        let at = field.node.place(&violation.instance_path);
        let message =
            format!("expected the {part} of the example to satisfy `{part}s`, found: {violation}");
        field.report.add(code, at, message);
    }
    value
}

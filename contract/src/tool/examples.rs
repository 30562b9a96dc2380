//! A contract's examples, checked against its schemas. Running them is the host's.

use super::Example;
use crate::codes;
use crate::diagnostic::Code;
use crate::diagnostic::Report;
use crate::schema::Schema;
use crate::source::{Field, Fields, Node};

pub(super) fn read(
    field: &Field<'_>,
    inputs: Option<&Schema>,
    outputs: Option<&Schema>,
    report: &mut Report<'_>,
) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for item in report.read(field.items()).unwrap_or_default() {
        let Some(mut fields) = report.read(Fields::of(&item)) else {
            continue;
        };
        let name = report.read(fields.required("name")).and_then(|field| {
            let name = report.read(field.text())?;
            if examples.iter().any(|other| other.name == name) {
                let message =
                    format!("expected examples with different names, found {name:?} again");
                report.add(&codes::EXAMPLE_DUPLICATE_NAME, field.at, message);
            }
            Some(name.to_owned())
        });
        let input = report
            .read(fields.required("input"))
            .map(|field| field.node);
        let output = fields.take("output").map(|field| field.node);
        let note = fields.take("note");
        let note = note.and_then(|field| report.read(field.text()).map(str::to_owned));
        report.unknown(fields);
        if let (Some(input), Some(schema)) = (input, inputs) {
            check(
                input,
                schema,
                "input",
                &codes::EXAMPLE_INPUT_INVALID,
                report,
            );
        }
        if let (Some(output), Some(schema)) = (output, outputs) {
            check(
                output,
                schema,
                "output",
                &codes::EXAMPLE_OUTPUT_INVALID,
                report,
            );
        }
        if let (Some(name), Some(input)) = (name, input) {
            examples.push(Example {
                name,
                input: input.to_value(),
                output: output.map(Node::to_value),
                note,
            });
        }
    }
    examples
}

fn check(node: &Node, schema: &Schema, part: &str, info: &Code, report: &mut Report<'_>) {
    if let Err(violation) = schema.validate(&node.to_value()) {
        let at = node.place(&violation.instance_path);
        report.add(
            info,
            at,
            format!("expected the {part} of the example to satisfy `{part}s`, found: {violation}"),
        );
    }
}

//! A contract's examples, checked against its schemas. Running them is the host's.

use super::Example;
use crate::codes::{self, CodeInfo};
use crate::diagnostic::Report;
use crate::schema::Schema;
use crate::source::{Fields, Node, list, text};

pub(super) fn read(
    node: &Node,
    inputs: Option<&Schema>,
    outputs: Option<&Schema>,
    report: &mut Report<'_>,
) -> Vec<Example> {
    let items = list(node, "examples", report).unwrap_or_default();
    let mut examples: Vec<Example> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(mut fields) = Fields::of(item, &format!("examples[{index}]"), report) else {
            continue;
        };
        let name = fields.required("name", report).and_then(|node| {
            let name = text(node, &fields.name("name"), report)?;
            if examples.iter().any(|other| other.name == name) {
                let message =
                    format!("expected examples with different names, found {name:?} again");
                report.add(&codes::EXAMPLE_DUPLICATE_NAME, node.at, message);
            }
            Some(name.to_owned())
        });
        let input = fields.required("input", report);
        let output = fields.take("output");
        let note = fields
            .take("note")
            .and_then(|node| text(node, &fields.name("note"), report))
            .map(str::to_owned);
        fields.finish(report);
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

fn check(node: &Node, schema: &Schema, part: &str, info: &CodeInfo, report: &mut Report<'_>) {
    if let Err(violation) = schema.validate(&node.to_value()) {
        let at = node.place(&violation.instance_path);
        report.add(
            info,
            at,
            format!("expected the {part} of the example to satisfy `{part}s`, found: {violation}"),
        );
    }
}

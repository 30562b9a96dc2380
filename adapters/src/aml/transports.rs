//! The tables of AML's transports, without `rest-api`: which fields each requires, and which values it lists.

use toolward_contract::diagnostic::Position;

use super::codes;
use super::fields::{Fields, Findings, is_empty, present};

/// A field of a table.
struct Row {
    field: &'static str,
    required: bool,
    /// Empty: any text.
    values: &'static [&'static str],
}

const fn row(field: &'static str, required: bool, values: &'static [&'static str]) -> Row {
    Row {
        field,
        required,
        values,
    }
}

const YES: bool = true;
const NO: bool = false;

const LAMBDA: &[Row] = &[
    row("provider", YES, &["aws", "gcp", "azure"]),
    row("function_id", YES, &[]),
    row("invocation_type", YES, &["RequestResponse", "Event"]),
    row("payload_format", NO, &["json", "raw"]),
];
const MCP: &[Row] = &[
    row("url", YES, &[]),
    row("tool_name", YES, &[]),
    row("protocol_version", NO, &[]),
];
const MESSAGE_QUEUE: &[Row] = &[
    row("provider", YES, &["aws", "gcp", "azure", "kafka"]),
    row("queue_url", YES, &[]),
    row("message_format", NO, &["json", "avro"]),
    row("response_queue_url", NO, &[]),
];
const ENGINES: &[&str] = &[
    "postgresql",
    "mysql",
    "mssql",
    "bigquery",
    "snowflake",
    "rds-data-api",
];
const DATABASE: &[Row] = &[
    row("engine", YES, ENGINES),
    row("query_method", YES, &["parameterised-sql", "orm"]),
];

/// Checks a transport against the table of its protocol; `at` is the transport's position.
pub(super) fn check(
    protocol: &str,
    transport: &mut Fields<'_>,
    at: Position,
    findings: &mut Findings<'_>,
) {
    let table = match protocol {
        "lambda" => LAMBDA,
        "mcp" => MCP,
        "message-queue" => MESSAGE_QUEUE,
        "database" => DATABASE,
        _ => return,
    };
    for row in table {
        match present(transport, row.field).filter(|field| !is_empty(field)) {
            None if row.required => {
                let name = transport.name_of(row.field);
                findings.missing(&codes::TRANSPORT_INCOMPLETE, &name, at);
            }
            None => {}
            Some(field) if row.values.is_empty() => {
                findings.text(&field, &codes::FIELD_TYPE, "text");
            }
            Some(field) => {
                findings.one_of(&field, &codes::VALUE_UNKNOWN, row.values);
            }
        }
    }
}

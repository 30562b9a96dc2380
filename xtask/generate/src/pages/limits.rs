//! The page of limits: the host's defaults and what they mean.

use std::fmt::Write as _;

use toolward_bundle::component::MAX_CORE_INSTANCES;
use toolward_host::{Limit, Limits};

use super::GENERATED;

/// One row: name, default, maximum, meaning.
type Row = (&'static str, String, String, &'static str);

/// The limits that contract or driver may ask for.
fn asked_for(limits: &Limits) -> [Row; 14] {
    [
        row(
            "fuel",
            limits.fuel,
            count,
            "`limits.fuel` in DRIVER.md. About one unit per instruction, all attempts together. The default is 20 G for each second of the operator's default `timeout_ms`, more than an interpreter spends in that time: as a rule the clock ends an endless loop",
        ),
        row(
            "timeout_ms",
            // Also what a contract that gives no `timeout_ms` asks for.
            Limit {
                default: limits.default_timeout,
                maximum: limits.timeout,
            },
            milliseconds,
            "`timeout_ms` of the contract, `timeout_override_ms` of the driver. From dispatch to the result, retries included; waiting for a slot, for a person and compiling lie before it",
        ),
        row(
            "memory_bytes",
            limits.memory_bytes,
            bytes,
            "`limits.memory_mib` in DRIVER.md. All memories of a call together, and [what the host \
             holds for it](host-memory.md)",
        ),
        row(
            "output_bytes",
            limits.output_bytes,
            bytes,
            "`limits.output_bytes` in DRIVER.md. Structured output and content blocks together",
        ),
        row(
            "stdio_bytes",
            limits.stdio_bytes,
            bytes,
            "`limits.stdio_bytes` in DRIVER.md. Captured standard output, and as much standard error",
        ),
        row(
            "log_records",
            limits.log_records,
            count,
            "`limits.log_records` in DRIVER.md. Log records of a call",
        ),
        row(
            "resources",
            limits.resources,
            count,
            "`limits.resources` in DRIVER.md. Streams, pollables and other handles at once",
        ),
        row(
            "http_requests",
            limits.http_requests,
            count,
            "`limits.http_requests` in DRIVER.md. HTTP requests under way at once",
        ),
        row(
            "http_requests_total",
            limits.http_requests_total,
            count,
            "nobody. HTTP requests of a call altogether, those of tools that it calls included",
        ),
        row(
            "http_body_bytes",
            limits.http_body_bytes,
            bytes,
            "`limits.http_body_bytes` in DRIVER.md. One body, sent or received",
        ),
        row(
            "http_timeout_ms",
            limits.http_timeout,
            milliseconds,
            "`limits.http_timeout_ms` in DRIVER.md. One exchange; what is left of the deadline where that is less",
        ),
        row(
            "egress_bytes",
            limits.egress_bytes,
            bytes,
            "nobody. All that a call sends and receives over HTTP, those of tools that it calls included",
        ),
        row(
            "workspace_bytes",
            limits.workspace_bytes,
            bytes,
            "`limits.workspace_bytes` in DRIVER.md. What a call may add to its workspaces",
        ),
        row(
            "workspace_files",
            limits.workspace_files,
            count,
            "`limits.workspace_files` in DRIVER.md. Files and directories that a call may create",
        ),
    ]
}

/// The limits that are the operator's alone.
fn fixed(limits: &Limits) -> Vec<(&'static str, String, &'static str)> {
    vec![
        (
            "nested_calls",
            count(limits.nested_calls.maximum),
            "calls of other tools within one call, at any depth; `limits.nested_calls` in DRIVER.md lowers it",
        ),
        (
            "nested_depth",
            count(limits.nested_depth),
            "how deep calls of tools by tools may nest",
        ),
        (
            "log_bytes",
            bytes(limits.log_bytes),
            "messages and fields of all log records of a call",
        ),
        (
            "table_elements",
            count(limits.table_elements),
            "elements of all tables of a call",
        ),
        (
            "input_bytes",
            bytes(limits.input_bytes as u64),
            "the input's text, counted before it is parsed",
        ),
        (
            "json_depth",
            count(limits.json_depth as u64),
            "nesting of input, context and output",
        ),
        (
            "json_values",
            count(limits.json_values as u64),
            "scalars, arrays and objects in input, context and output each",
        ),
        (
            "component_bytes",
            bytes(limits.component_bytes as u64),
            "a driver's component, counted before it is compiled",
        ),
        (
            "open_files",
            count(limits.open_files),
            "files and directories that a call holds open at once",
        ),
        (
            "directory_entries",
            count(limits.directory_entries),
            "directory entries that a call may read; only an embedder sets it",
        ),
        (
            "bucket_bytes",
            bytes(limits.bucket_bytes),
            "keys and values of one key-value bucket",
        ),
        (
            "bucket_keys",
            count(limits.bucket_keys),
            "keys of one key-value bucket",
        ),
        (
            "concurrency",
            count(limits.concurrency),
            "calls that run at once",
        ),
        (
            "concurrency_per_tool",
            count(limits.concurrency_per_tool),
            "of these, calls of one tool",
        ),
        (
            "concurrency_per_publisher",
            count(limits.concurrency_per_publisher),
            "of these, calls of tools of one publisher",
        ),
        (
            "concurrency_per_principal",
            count(limits.concurrency_per_principal),
            "of these, calls of one principal",
        ),
        (
            "queue",
            count(limits.queue),
            "calls that wait; one more is `rate_limited`",
        ),
    ]
}

/// The limits that nobody sets.
fn own() -> [(&'static str, String, &'static str); 10] {
    [
        ("`stack`", bytes(512 << 10), "call stack of a guest"),
        (
            "`host_call_bytes`",
            bytes(256 << 10),
            "what a guest hands over in one call of the host",
        ),
        (
            "`bucket_operations`",
            count(10_000_u32),
            "operations on buckets of a call, all attempts and nested calls together",
        ),
        (
            "`bucket_traffic`",
            bytes(64 << 20),
            "keys and values that a call reads and writes in buckets, all attempts and nested calls together",
        ),
        (
            "`secret_stores`",
            count(16_u32),
            "secrets that a call, with the tools that it calls, stores",
        ),
        (
            "`secret_store_bytes`",
            bytes(256 << 10),
            "their values together; one value has at most 64 KiB",
        ),
        (
            "`long_checks`",
            count(1024_u32),
            "checks of large inputs and outputs that wait for a thread, and as many of one principal; \
             [more about them](../serve-http.md#what-calls-may-fill)",
        ),
        (
            "core instances",
            count(MAX_CORE_INSTANCES),
            "of a component; `check`, `pack` and `install` count them, too",
        ),
        ("memories", count(4_u32), "of a component"),
        ("tables", count(16_u32), "of a component"),
    ]
}

pub(super) fn page() -> String {
    let limits = Limits::default();
    let mut page = format!(
        "{GENERATED}# Limits\n\n\
         What one call may spend. Contract and driver may ask for less or more than the default; they get \
         `min(what they ask for or the default, the operator's maximum)`. The operator sets both in \
         [`[limits]`](../policy.md) of the policy, an embedder in `toolward_host::Limits`, where `timeout_ms` and \
         `http_timeout_ms` are durations without `_ms`, and the default of `timeout_ms` is `default_timeout`.\n\n\
         | limit | default | maximum | asked for by |\n|---|---|---|---|\n"
    );
    for (name, default, maximum, meaning) in asked_for(&limits) {
        let _ = writeln!(page, "| `{name}` | {default} | {maximum} | {meaning}. |");
    }
    page.push_str("\nThe rest is the operator's alone:\n\n| limit | value | |\n|---|---|---|\n");
    for (name, value, meaning) in fixed(&limits) {
        let _ = writeln!(page, "| `{name}` | {value} | {meaning} |");
    }
    page.push_str(
        "\nA call that hits a limit ends with an error whose `limit` field gives the name, what was used and \
         what was allowed, and whose hint says what to raise. There `memory_bytes` is called `memory`, \
         `output_bytes` `output`, and `stdio_bytes` `stdout` or `stderr`; an input \
         that is too large or too deep is `input_invalid`, without that field. Timeout, fuel, requests altogether \
         and egress cover all attempts; everything else is counted anew for each. Starting a component is guest \
         code and lies inside every limit.\n\n\
         The host's own limits can't be set:\n\n| limit | value | |\n|---|---|---|\n",
    );
    for (name, value, meaning) in own() {
        let _ = writeln!(page, "| {name} | {value} | {meaning} |");
    }
    page
}

fn milliseconds(time: std::time::Duration) -> String {
    format!("{} s", time.as_secs())
}

fn row<T>(
    name: &'static str,
    limit: Limit<T>,
    show: impl Fn(T) -> String,
    meaning: &'static str,
) -> Row {
    (name, show(limit.default), show(limit.maximum), meaning)
}

fn count(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

fn bytes(number: u64) -> String {
    match number {
        _ if number.is_multiple_of(1 << 20) => format!("{} MiB", number >> 20),
        _ if number.is_multiple_of(1 << 10) => format!("{} KiB", number >> 10),
        _ => count(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_all_limits_that_can_be_set() {
        let source = std::fs::read_to_string(crate::root().join("host/src/limits.rs")).unwrap();
        let (_, fields) = source.split_once("pub struct Limits {").unwrap();
        let (fields, _) = fields.split_once("\n}").unwrap();
        let names = fields.lines().filter_map(|line| {
            let (name, _) = line.trim().strip_prefix("pub ")?.split_once(':')?;
            Some(name)
        });
        let page = page();
        let policy = toolward_policy::LimitSettings::names().map(str::to_owned);
        for name in names.map(str::to_owned).chain(policy) {
            let name = match name.as_str() {
                "timeout" | "http_timeout" => format!("{name}_ms"),
                "default_timeout" => "timeout_ms".to_owned(),
                name => name.to_owned(),
            };
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
    }
}

//! `ledger show` and `ledger prove`: one call, or one row.

use serde_json::Map;
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::record::{Content, Record};
use toolward_ledger::{Filter, PayloadState, Reader, Row};

use super::list::{Ids, line};
use super::{CallOrRow, Which, id, json_of, no_row, principal};
use crate::output::raw;
use crate::prelude::*;

/// Longest payload that is shown to people, in characters.
const MAX_SHOWN_CHARS: usize = 4000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The number of a row, or the id of a call
    #[arg(value_parser = id, value_name = "ID")]
    id: CallOrRow,

    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct Prove {
    /// The number of a row, or the id of a call: its last row
    #[arg(value_parser = id, value_name = "ID")]
    id: CallOrRow,

    #[command(flatten)]
    which: Which,
}

impl Arguments {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let reader = self.which.find(environment)?.reader(output)?;
        let rows = rows(&reader, self.id)?;
        if output.json() {
            let rows = rows.iter().map(|row| value(row, &reader));
            let rows = rows.collect::<Result<Vec<_>>>()?;
            return output.value(&json!({ "ok": true, "rows": rows }));
        }
        for row in &rows {
            print(row, &reader, output)?;
        }
        Ok(())
    }
}

impl Prove {
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        let reader = self.which.find(environment)?.reader(output)?;
        let seq = match self.id {
            CallOrRow::Row(seq) => seq,
            id => rows(&reader, id)?.last().map_or(0, |row| row.seq),
        };
        let proof = reader.prove(seq)?;
        match output.json() {
            true => output.value(&json!({ "ok": true, "seq": seq, "proof": proof })),
            false => raw(proof.as_bytes()),
        }
    }
}

/// The rows about it, oldest first; there is one at least.
fn rows(reader: &Reader, id: CallOrRow) -> Result<Vec<Row>> {
    let invocation = match id {
        CallOrRow::Row(seq) => return Ok(vec![reader.row(seq)?]),
        CallOrRow::Call(invocation) => invocation,
    };
    let listed = reader.list(&Filter {
        invocation: Some(invocation),
        ..Filter::default()
    })?;
    let mut rows: Vec<Row> = listed.into_iter().map(|listed| listed.row).collect();
    rows.reverse();
    match rows.is_empty() {
        true => Err(no_row(format!("of the call {invocation}"))),
        false => Ok(rows),
    }
}

/// Where the record says what it has of each payload.
fn contents(record: &Record) -> impl Iterator<Item = (PayloadKind, &Content)> {
    let (call, outcome) = (record.event.call(), record.event.outcome());
    let input = call.and_then(|call| call.input.as_ref());
    let context = call.and_then(|call| call.context.as_ref());
    let output = outcome.and_then(|outcome| outcome.output.as_ref());
    let detail = outcome.and_then(|outcome| outcome.detail.as_ref());
    let all = [
        (PayloadKind::Input, input),
        (PayloadKind::Context, context),
        (PayloadKind::Output, output),
        (PayloadKind::Detail, detail),
    ];
    all.into_iter()
        .filter_map(|(kind, content)| Some((kind, content?)))
}

fn value(row: &Row, reader: &Reader) -> Result<Value> {
    let mut payloads = Map::new();
    let mut name = None;
    if let Ok(record) = row.read() {
        for (kind, content) in contents(&record) {
            let shown = match reader.payload_state(content, kind)? {
                PayloadState::Kept(bytes) => match serde_json::from_slice::<Value>(&bytes) {
                    Ok(value) => json!({ "state": "kept", "value": value }),
                    Err(_) => match String::from_utf8(bytes) {
                        Ok(text) => json!({ "state": "kept", "text": text }),
                        Err(error) => json!({ "state": "kept", "bytes": error.as_bytes().len() }),
                    },
                },
                PayloadState::NotKept => json!({ "state": "not-kept" }),
                PayloadState::Gone => json!({ "state": "gone" }),
                PayloadState::Changed => json!({ "state": "changed" }),
            };
            payloads.insert(kind.as_str().to_owned(), shown);
        }
        name = principal(&record, reader)?;
    }
    Ok(json!({
        "seq": row.seq, "leaf": row.leaf, "record": json_of(row),
        "principal": name, "payloads": payloads,
    }))
}

fn print(row: &Row, reader: &Reader, output: &mut Output) -> Result {
    let record = match row.read() {
        Ok(record) => record,
        Err(_) if row.record.is_none() => {
            return output.line(format_args!("{:>8}  (its record was pruned)", row.seq));
        }
        Err(error) => return Err(error.into()),
    };
    let name = principal(&record, reader)?;
    output.line(line(row.seq, &record, name.as_deref(), Ids::Whole))?;
    let mut fields = Vec::new();
    flatten("", &json_of(row).unwrap_or_default(), &mut fields);
    for (name, value) in fields {
        let (name, value) = (
            visible_line(&name, 200),
            visible_line(&value, MAX_SHOWN_CHARS),
        );
        output.line(format_args!("          {name:<28}  {value}"))?;
    }
    for (kind, content) in contents(&record) {
        let shown = match reader.payload_state(content, kind)? {
            PayloadState::Kept(bytes) => match String::from_utf8(bytes) {
                Ok(text) => visible_line(&text, MAX_SHOWN_CHARS),
                Err(_) => "(not text)".to_owned(),
            },
            PayloadState::NotKept => "(not kept)".to_owned(),
            PayloadState::Gone => "(erased, or older than payloads are kept)".to_owned(),
            PayloadState::Changed => "(CHANGED: not what was recorded)".to_owned(),
        };
        let (kind, size) = (kind.as_str(), content.size.get());
        output.line(format_args!("  {kind:<8}  {size} bytes: {shown}"))?;
    }
    Ok(())
}

/// The fields of a record, each with the names of those around it before its own.
fn flatten(name: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let inner = match name {
                    "" => key.clone(),
                    name => format!("{name}.{key}"),
                };
                flatten(&inner, member, fields);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (at, item) in items.iter().enumerate() {
                flatten(&format!("{name}.{at}"), item, fields);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            fields.push((name.to_owned(), items.join(", ")));
        }
        leaf => fields.push((name.to_owned(), text(leaf))),
    }
}

fn text(leaf: &Value) -> String {
    let text = leaf.as_str().map(str::to_owned);
    text.unwrap_or_else(|| leaf.to_string())
}

//! `ledger show`, `prove` and `replay`: show one call or one row, prove a row, and show the results
//! of recorded calls.

use toolward_ledger::payload::PayloadKind;
use toolward_ledger::record::{Content, Record};
use toolward_ledger::{DamagedRow, Filter, PayloadState, Reader, RecordedCall, Row};
use toolward_operator::replay::{Replay, ReplayedCall};

use super::list::{Ids, line};
use super::{CallOrRow, Rows, Which, id, json_of, no_row, principal, rows as range, shown_time};
use crate::prelude::*;

/// Longest payload or result that is shown to people, in characters.
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
    /// The number of a row, or the id of a call to prove the call's last row
    #[arg(value_parser = id, value_name = "ID")]
    id: CallOrRow,

    #[command(flatten)]
    which: Which,
}

impl Arguments {
    pub(super) fn run(&self, context: &Context) -> Result {
        let reader = self.which.find(context)?.reader(context)?;
        let rows = rows(&reader, self.id)?;
        if context.json() {
            let rows = rows.iter().map(|row| value(row, &reader));
            let rows = rows.collect::<Result<Vec<_>>>()?;
            return context.value(&json!({ "ok": true, "rows": rows }));
        }
        for row in &rows {
            print(row, &reader, context)?;
        }
        Ok(())
    }
}

impl Prove {
    pub(super) fn run(&self, context: &Context) -> Result {
        let reader = self.which.find(context)?.reader(context)?;
        let seq = match self.id {
            CallOrRow::Row(seq) => seq,
            id => rows(&reader, id)?.last().map_or(0, |row| row.seq),
        };
        let proof = reader.prove(seq)?;
        match context.json() {
            true => context.value(&json!({ "ok": true, "seq": seq, "proof": proof })),
            false => raw(proof.as_bytes()),
        }
    }
}

/// Returns the row, or the rows about the call, oldest first. There is at least one.
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

/// Returns what the record states about each payload.
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

fn print(row: &Row, reader: &Reader, context: &Context) -> Result {
    let record = match row.read() {
        Ok(record) => record,
        Err(_) if row.record.is_none() => {
            return context.line(format_args!("{:>8}  (its record was pruned)", row.seq));
        }
        Err(error) => return Err(error.into()),
    };
    let name = principal(&record, reader)?;
    context.line(line(row.seq, &record, name.as_deref(), Ids::Whole))?;
    let mut fields = Vec::new();
    flatten("", &json_of(row).unwrap_or_default(), &mut fields);
    for (name, value) in fields {
        let name = visible_line(&name, 200);
        let value = visible_line(&value, MAX_SHOWN_CHARS);
        context.line(format_args!("          {name:<28}  {value}"))?;
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
        context.line(format_args!("  {kind:<8}  {size} bytes: {shown}"))?;
    }
    Ok(())
}

/// Flattens the fields of a record. The name of a field starts with the names of the fields around
/// it.
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

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// The id of a call, the number of one of its rows, or rows as FROM..TO
    ///
    /// FROM..TO means the calls that ended in row FROM or later, and before row TO. FROM or TO may
    /// be left out.
    #[arg(value_parser = what, value_name = "ID|FROM..TO")]
    what: What,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

/// Which calls.
#[derive(Debug, Clone, Copy)]
enum What {
    One(CallOrRow),
    Rows(Rows),
}

fn what(text: &str) -> Result<What, String> {
    match text.contains("..") {
        true => range(text).map(What::Rows),
        false => id(text).map(What::One),
    }
}

impl ReplayArguments {
    pub(super) fn run(&self, context: &Context) -> Result<Exit> {
        let found = self.which.find(context)?;
        let reader = found.reader(context)?;
        let store = self.store.shown(context)?;
        let replay = Replay::new(&reader, &found.settings, store.as_ref())?;
        let mut exit = Exit::Fine;
        let mut show = |found: Result<RecordedCall, DamagedRow>| {
            let call = match found {
                Ok(call) => call,
                Err(damaged) => {
                    exit = Exit::Failed;
                    return row_missing(&damaged, context);
                }
            };
            let replayed = replay.of(call)?;
            if !replayed.is_whole {
                exit = Exit::Failed;
            }
            match context.json() {
                true => context.value(&replayed.value),
                false => print_replayed(&replayed, context),
            }
        };
        // If a single call is named, damage of its rows is an error.
        match self.what {
            What::Rows(Rows { from, to }) => {
                reader.calls_and_damage::<Failure>(from, to.unwrap_or(u64::MAX), show)?;
            }
            What::One(CallOrRow::Call(invocation)) => show(Ok(reader.call(invocation)?))?,
            What::One(CallOrRow::Row(seq)) => {
                let invocation = reader.row(seq)?.read()?.invocation();
                let missing = || no_row(format!("row {seq} is about no call"));
                show(Ok(reader.call(invocation.ok_or_else(missing)?)?))?;
            }
        }
        Ok(exit)
    }
}

fn row_missing(damaged: &DamagedRow, context: &Context) -> Result {
    let DamagedRow { seq, error } = damaged;
    let missing = json!({ "why": "changed", "message": error.to_string() });
    let value = json!({ "rows": [seq], "missing": { "row": missing } });
    context.result(&value, format_args!("{seq:>8}  row missing: {error}"))
}

fn print_replayed(replayed: &ReplayedCall, context: &Context) -> Result {
    let call = &replayed.call;
    let last = call.rows().last().unwrap_or_default();
    let tool = call.call.as_ref().and_then(|call| call.tool.as_ref());
    let tool = tool.map_or("-", |tool| tool.id.as_str());
    let mut head = format!("{last:>8}  {}  {tool}", shown_time(call.at));
    let call_id = call.invocation.to_string();
    let unsigned = (!replayed.signed).then_some("(no checkpoint covers it)");
    let more = [replayed.principal.as_deref(), Some(&call_id), unsigned];
    for more in more.into_iter().flatten() {
        head.push_str("  ");
        head.push_str(&visible_line(more, 200));
    }
    context.line(head)?;
    for text in &replayed.lines {
        let text = visible_line(text, MAX_SHOWN_CHARS);
        context.line(format_args!("          {text}"))?;
    }
    Ok(())
}

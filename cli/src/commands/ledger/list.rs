//! `ledger list`: lists rows, newest first. For people, rows about calls come before all other
//! rows.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};

use serde::Serialize;
use toolward_ledger::record::{Code as RecordCode, Event, Number, Record};
use toolward_ledger::{Filter, ListedRow, Reader};

use super::{Which, json_of, principal, shown_time, time};
use crate::prelude::*;
use crate::progress::SHOW_DELAY;

/// Rows that are looked up at once.
const PAGE_ROWS: u32 = 1000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only rows about this principal: a name, or `local` for you
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,

    /// Only calls of this tool: an id, or id@version
    #[arg(long, value_name = "ID")]
    tool: Option<String>,

    /// Only rows with this error code, as a call's result or as the reason why rows are missing
    #[arg(long, value_parser = code, value_name = "CODE")]
    code: Option<RecordCode>,

    /// Only starts of calls that may change something
    #[arg(long)]
    mutating: bool,

    /// Only rows since this time
    ///
    /// A date, a time or an age: 2026-05-01, 2026-05-01T12:00:00Z, 30m, 12h or 7d.
    #[arg(long, value_parser = time, value_name = "TIME")]
    since: Option<Number>,

    /// List at most this many rows
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: u32,

    #[command(flatten)]
    which: Which,
}

fn code(text: &str) -> Result<RecordCode, String> {
    RecordCode::parse(text).map_err(|_| "not an error code".to_owned())
}

impl Arguments {
    pub(super) fn run(&self, context: &Context) -> Result {
        let found = self.which.find(context)?;
        let reader = found.reader(context)?;
        let reader = filled(reader, context)?;
        let mut filter = Filter {
            principal: self.principal.clone(),
            tool: self.tool.clone(),
            code: self.code.clone(),
            mutating: self.mutating,
            since: self.since,
            ..Filter::default()
        };
        let mut left = self.limit;
        let mut shown = Shown::default();
        while left > 0 {
            filter.limit = left.min(PAGE_ROWS);
            let rows = reader.list(&filter)?;
            filter.before = rows.last().map(|last| last.row.seq);
            for row in &rows {
                print(row, &reader, &mut shown, context)?;
            }
            let read = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            left = left.saturating_sub(read);
            if read < filter.limit {
                break;
            }
        }
        shown.end(context)
    }
}

/// The list for people: rows about calls under a header, as they are read; then all other rows.
#[derive(Default)]
struct Shown {
    has_calls: bool,
    of_commands: Vec<String>,
}

impl Shown {
    fn call(&mut self, line: &str, context: &Context) -> Result {
        if !self.has_calls {
            context.line("     row  time                  kind          tool, on whose behalf, outcome, call")?;
        }
        self.has_calls = true;
        context.line(line)
    }

    fn end(self, context: &Context) -> Result {
        if self.of_commands.is_empty() {
            return Ok(());
        }
        let above = if self.has_calls { "\n" } else { "" };
        context.line(format!("{above}rows of commands, and of the ledger itself"))?;
        for line in self.of_commands {
            context.line(line)?;
        }
        Ok(())
    }
}

/// Returns the reader after its index has all rows. That takes seconds after a million new rows.
fn filled(reader: Reader, context: &Context) -> Result<Reader> {
    let bar = Arc::new(Bar::new("reading new rows", context.tells()));
    let (done, wait) = channel();
    let spinning = Arc::clone(&bar);
    // If no thread can be started, no progress is shown.
    let spinner = std::thread::Builder::new().spawn(move || {
        if wait.recv_timeout(SHOW_DELAY) == Err(RecvTimeoutError::Timeout) {
            spinning.spin();
            // Waits until the other end is dropped.
            let _: Result<(), _> = wait.recv();
        }
    });
    let filled = reader.list(&Filter {
        limit: 1,
        ..Filter::default()
    });
    drop::<std::sync::mpsc::Sender<()>>(done);
    let _ = spinner.map(std::thread::JoinHandle::join);
    bar.clear();
    filled?;
    Ok(reader)
}

fn print(listed: &ListedRow, reader: &Reader, shown: &mut Shown, context: &Context) -> Result {
    let seq = listed.row.seq;
    let Some(record) = &listed.record else {
        if context.json() {
            return context.value(&json!({ "seq": seq, "record": null }));
        }
        shown.of_commands.push(format!("{seq:>8}  (no record)"));
        return Ok(());
    };
    let name = principal(record, reader)?;
    if context.json() {
        let mut value = json!({ "seq": seq, "record": json_of(&listed.row) });
        if let (Some(name), Some(fields)) = (name, value.as_object_mut()) {
            fields.insert("principal".to_owned(), name.into());
        }
        return context.value(&value);
    }
    let line = line(seq, record, name.as_deref(), Ids::Short);
    if record.invocation().is_some() || record.event.person().is_some() {
        return shown.call(&line, context);
    }
    shown.of_commands.push(line);
    Ok(())
}

/// How the id of a call is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ids {
    /// The end of the id, which differs from call to call.
    Short,
    Whole,
}

/// Characters of a short id.
const SHORT_ID_CHARS: usize = 8;

/// Formats a record as one line, even if a name contains line breaks.
pub(super) fn line(seq: u64, record: &Record, principal: Option<&str>, ids: Ids) -> String {
    let (at, kind) = (shown_time(record.at), record.event.kind());
    let mut line = format!("{seq:>8}  {at}  {kind:<12}");
    let mut add = |text: &str| {
        line.push_str("  ");
        line.push_str(&visible_line(text, 200));
    };
    let approval = matches!(record.event, Event::Approval(_));
    if approval || record.event.call().is_some() {
        add(record.event.tool().map_or("-", |tool| tool.as_str()));
        if let Some(principal) = principal {
            add(principal);
        }
    }
    if let Some(outcome) = record.event.outcome() {
        add(outcome.code.as_ref().map_or("ok", RecordCode::as_str));
    }
    match &record.event {
        Event::Opened(body) => add(body.build.as_str()),
        Event::Approval(body) => {
            add(&word(body.event));
            if let Some(answer) = body.answer {
                add(&word(answer));
            }
            if let Some(scope) = &body.scope {
                add(&format!("for the {}", scope.as_str()));
            }
            if let Some(until) = body.until {
                add(&format!("until {}", shown_time(until)));
            }
        }
        Event::Trust(body) => {
            add(&word(body.action));
            add(body.id.as_str());
            let version = body.version.as_ref();
            add(version.map_or("-", |version| version.as_str()));
        }
        Event::Gap(body) => {
            let (missing, why) = (body.missing.get(), body.why.as_str());
            add(&format!("{missing} rows missing: {why}"));
        }
        Event::Erased(body) => add(&format!("{} payloads", body.payloads.get())),
        Event::Pruned(body) => add(&format!("rows before {}", body.to.get())),
        Event::RefusedMore(body) => {
            let count: u64 = body.codes.values().map(|number| number.get()).sum();
            add(&format!("{count} refusals"));
        }
        _ => {}
    }
    if let Some(invocation) = record.invocation() {
        let whole = invocation.to_string();
        let cut = whole.len().saturating_sub(SHORT_ID_CHARS);
        match (ids, whole.get(cut..)) {
            (Ids::Short, Some(end)) => add(&format!("…{end}")),
            _ => add(&whole),
        }
    }
    line.trim_end().to_owned()
}

/// Returns the text that stands for an enum's value in a record.
fn word(word: impl Serialize) -> String {
    let value = serde_json::to_value(word).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

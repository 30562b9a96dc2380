//! Calls, each put together from its rows.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::append::{integer, unsigned};
use crate::error::Error;
use crate::payload::PayloadKind;
use crate::reader::{Filter, Reader, Row};
use crate::record::{Call, Content, Event, Invocation, Number, Outcome, Record};
use crate::tree::leaf_hash;

/// The code of a call whose driver asked something.
const INPUT_REQUIRED: &str = "toolward:input_required";
/// Rows that are read at once.
const PAGE_ROWS: u64 = 256;

/// A call, by its rows. Each of them fits its leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// Its id.
    pub invocation: Invocation,
    /// The row of its start, if it has one.
    pub started: Option<u64>,
    /// What is known of the call; none if its row was pruned.
    pub call: Option<Call>,
    /// How it ended.
    pub end: EndRow,
    /// When its last row was made, in microseconds since 1970.
    pub at: Number,
}

/// A row that differs from what was recorded: its record does not fit its leaf, or is not a record.
#[derive(Clone, Debug)]
pub struct DamagedRow {
    /// The row.
    pub seq: u64,
    /// What is wrong with it.
    pub error: Error,
}

/// How a call ended, and its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndRow {
    /// After it was dispatched.
    Ended(u64, Outcome),
    /// Before it was dispatched.
    Refused(u64, Outcome),
    /// From a cassette: nothing was dispatched.
    Replayed(u64, Outcome),
    /// With its process.
    Abandoned(u64),
    /// Not yet, or its row is missing.
    Unknown,
}

impl EndRow {
    /// The row.
    pub fn row(&self) -> Option<u64> {
        match self {
            Self::Ended(row, _) | Self::Refused(row, _) | Self::Replayed(row, _) => Some(*row),
            Self::Abandoned(row) => Some(*row),
            Self::Unknown => None,
        }
    }

    /// Whether the call ended with a question, after which it may be resumed.
    pub(crate) fn asks(&self) -> bool {
        let code = self.outcome().and_then(|outcome| outcome.code.as_ref());
        code.is_some_and(|code| code.as_str() == INPUT_REQUIRED)
    }

    /// How the call ended, by the row.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Ended(_, outcome) | Self::Refused(_, outcome) | Self::Replayed(_, outcome) => {
                Some(outcome)
            }
            Self::Abandoned(_) | Self::Unknown => None,
        }
    }
}

impl RecordedCall {
    /// Its rows, in order: one or two.
    pub fn rows(&self) -> impl Iterator<Item = u64> + use<> {
        self.started.into_iter().chain(self.end.row())
    }

    /// Whether payloads of it are kept that are not kept of other calls: it was recorded that it starts. What a
    /// person was asked about is not in these rows.
    pub fn matters(&self) -> bool {
        self.started.is_some()
    }

    /// What the rows say of a payload.
    pub fn content(&self, kind: PayloadKind) -> Option<&Content> {
        crate::recorder::content(self.call.as_ref(), self.end.outcome(), kind)
    }
}

impl Reader {
    /// A call, by its id.
    ///
    /// # Errors
    /// [`Error::NoRow`] if no row is about it, [`Error::Differs`] if a row differs from what was recorded; the errors
    /// of [`Reader::list`].
    pub fn call(&self, invocation: Invocation) -> Result<RecordedCall, Error> {
        let listed = self.list(&Filter {
            invocation: Some(invocation),
            ..Filter::default()
        })?;
        let mut found = None;
        for row in listed.iter().rev() {
            let Some(record) = read(&row.row)? else {
                continue;
            };
            found = add(found, invocation, row.row.seq, record);
        }
        let missing = || Error::NoRow(format!("of the call {invocation}").into());
        found.ok_or_else(missing)
    }

    /// Calls `each` with the calls that ended in the rows from `from` on, up to `to`, in that order; calls without
    /// an end that started there come last. Pruned rows are passed over, and so are rows that were added about a
    /// call after its end. The ids of all calls of these rows are kept in memory.
    ///
    /// # Errors
    /// Those of [`Reader::call`] and of `each`.
    pub fn calls<E: From<Error>>(
        &self,
        from: u64,
        to: u64,
        mut each: impl FnMut(RecordedCall) -> Result<(), E>,
    ) -> Result<(), E> {
        self.calls_and_damage(from, to, |found| match found {
            Ok(call) => each(call),
            Err(damaged) => Err(damaged.error.into()),
        })
    }

    /// [`Reader::calls`], with the rows between them that are damaged. Of a call that such a row is about, the other
    /// rows count alone.
    ///
    /// # Errors
    /// Those of the files and of `each`.
    pub fn calls_and_damage<E: From<Error>>(
        &self,
        from: u64,
        to: u64,
        mut each: impl FnMut(Result<RecordedCall, DamagedRow>) -> Result<(), E>,
    ) -> Result<(), E> {
        let to = to.min(self.size()?);
        let mut over = Over {
            reader: self,
            from,
            index: None,
            calls: HashMap::new(),
        };
        let mut open: HashMap<Invocation, RecordedCall> = HashMap::new();
        let mut page = from;
        while page < to {
            let next = page.saturating_add(PAGE_ROWS).min(to);
            for row in self.rows(page, next)? {
                let record = match undamaged(read(&row))? {
                    Ok(Some(record)) => record,
                    Ok(None) => continue,
                    Err(error) => {
                        let seq = row.seq;
                        each(Err(DamagedRow { seq, error }))?;
                        continue;
                    }
                };
                let Some(invocation) = record.event.of_call() else {
                    continue;
                };
                if over.contains(invocation)? {
                    continue;
                }
                let ends = !matches!(record.event, Event::Started(_));
                let before = open.remove(&invocation);
                let Some(mut call) = add(before, invocation, row.seq, record) else {
                    continue;
                };
                if !ends {
                    open.insert(invocation, call);
                    continue;
                }
                if call.call.is_none() {
                    // It started before these rows, or its start is damaged.
                    call = undamaged(self.call(invocation))?.unwrap_or(call);
                    if call.end.row() != Some(row.seq) {
                        continue;
                    }
                }
                if !call.end.asks() {
                    over.calls.insert(invocation, true);
                }
                each(Ok(call))?;
            }
            page = next;
        }
        let mut open: Vec<RecordedCall> = open.into_values().collect();
        open.sort_by_key(|call| call.started);
        for call in open {
            let call = undamaged(self.call(call.invocation))?.unwrap_or(call);
            // Those that ended later belong to the rows in which they did.
            if call.end == EndRow::Unknown {
                each(Ok(call))?;
            }
        }
        Ok(())
    }
}

/// Tells damage of a row from all other errors.
fn undamaged<T>(read: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match read {
        Err(error @ (Error::Differs(_) | Error::Record(_))) => Ok(Err(error)),
        Err(error) => Err(error),
        Ok(read) => Ok(Ok(read)),
    }
}

/// Which calls have ended, so that rows about them that come later say nothing.
struct Over<'a> {
    reader: &'a Reader,
    /// Rows before this one are looked up.
    from: u64,
    index: Option<Connection>,
    calls: HashMap<Invocation, bool>,
}

impl Over<'_> {
    fn contains(&mut self, invocation: Invocation) -> Result<bool, Error> {
        if let Some(known) = self.calls.get(&invocation) {
            return Ok(*known);
        }
        let found = self.from > 0 && self.ended_before(invocation)?;
        self.calls.insert(invocation, found);
        Ok(found)
    }

    fn ended_before(&mut self, invocation: Invocation) -> Result<bool, Error> {
        let index = match self.index.take() {
            Some(index) => index,
            None => self.reader.bring_up_to_date()?,
        };
        let index = self.index.insert(index);
        let mut rows = index.prepare_cached(
            "SELECT seq FROM row WHERE invocation = ?1 AND seq < ?2 ORDER BY seq",
        )?;
        let rows = rows.query_map((*invocation.0.as_bytes(), integer(self.from)), |row| {
            row.get(0)
        })?;
        let mut call = None;
        for seq in rows {
            let seq = unsigned(seq?)?;
            if let Ok(Some(record)) = undamaged(read(&self.reader.row(seq)?))? {
                call = add(call, invocation, seq, record);
            }
        }
        Ok(call.is_some_and(|call| call.end != EndRow::Unknown && !call.end.asks()))
    }
}

/// The record of a row, if it was not pruned; it must fit the leaf.
fn read(row: &Row) -> Result<Option<Record>, Error> {
    let Some(record) = &row.record else {
        return Ok(None);
    };
    match leaf_hash(record) == row.leaf {
        true => Ok(Some(Record::parse(record)?)),
        false => Err(Error::Differs("a row is not the one that was recorded")),
    }
}

/// Adds what a row has of a call. The first end counts, unless the call asked a question and was resumed: a process
/// that was taken over can add rows about calls that have ended.
fn add(
    before: Option<RecordedCall>,
    invocation: Invocation,
    seq: u64,
    record: Record,
) -> Option<RecordedCall> {
    if record.event.of_call().is_none() {
        return before;
    }
    let mut call = before.unwrap_or(RecordedCall {
        invocation,
        started: None,
        call: None,
        end: EndRow::Unknown,
        at: record.at,
    });
    if call.end != EndRow::Unknown && !call.end.asks() {
        return Some(call);
    }
    match record.event {
        Event::Started(body) => {
            call.started = Some(seq);
            call.call = Some(body.call);
        }
        Event::Ended(body) => {
            call.call = body.call.or(call.call);
            call.end = EndRow::Ended(seq, body.outcome);
        }
        Event::Refused(body) => {
            call.call = Some(body.call);
            call.end = EndRow::Refused(seq, body.outcome);
        }
        Event::Replayed(body) => {
            call.call = Some(body.call);
            call.end = EndRow::Replayed(seq, body.outcome);
        }
        Event::Abandoned(_) => call.end = EndRow::Abandoned(seq),
        _ => {}
    }
    call.at = record.at;
    Some(call)
}

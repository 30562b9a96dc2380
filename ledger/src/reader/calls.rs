//! Calls, each assembled from its rows.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::append::{integer, unsigned};
use crate::error::Error;
use crate::payload::PayloadKind;
use crate::reader::{Filter, Reader, Row};
use crate::record::{Call, Content, Event, Invocation, Number, Outcome, Record};
use crate::tree::leaf_hash;

/// The code of a call whose driver asked questions.
const INPUT_REQUIRED: &str = "toolward:input_required";
/// The number of rows that are read at once.
const PAGE_ROWS: u64 = 256;

/// A call, assembled from its rows. Each row matches its leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// Its id.
    pub invocation: Invocation,
    /// The row of its latest start, if the start was recorded.
    pub started: Option<u64>,
    /// The facts of the call; `None` if the row that has them is missing, pruned or damaged.
    pub call: Option<Call>,
    /// How it ended.
    pub end: EndRow,
    /// The time of its last row, in microseconds since 1970.
    pub at: Number,
}

/// A damaged row: its record does not match its leaf, or is not a record.
#[derive(Clone, Debug)]
pub struct DamagedRow {
    /// The row.
    pub seq: u64,
    /// The damage of the row.
    pub error: Error,
}

/// How a call ended, and its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndRow {
    /// The call ended after it was dispatched, or got the reply of an earlier call.
    Ended(u64, Outcome),
    /// The call ended before it was dispatched.
    Refused(u64, Outcome),
    /// The call was answered from a cassette, and nothing was dispatched.
    Replayed(u64, Outcome),
    /// The call ended with its process, or did not run because its start was recorded too late.
    Abandoned(u64),
    /// The call has not ended, or the row of its end is missing.
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

    /// How the call ended, according to the row.
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
    /// The rows of its latest start and its latest end, of which at least one exists.
    pub fn rows(&self) -> impl Iterator<Item = u64> + use<> {
        self.started.into_iter().chain(self.end.row())
    }

    /// Whether the call's start was recorded. Then the call may change something, so more of its
    /// payloads are kept. More are also kept for a call that a person was asked about, but a call's
    /// rows do not show this.
    pub fn matters(&self) -> bool {
        self.started.is_some()
    }

    /// The size and the commitment of a payload, from the rows.
    pub fn content(&self, kind: PayloadKind) -> Option<&Content> {
        crate::recorder::content(self.call.as_ref(), self.end.outcome(), kind)
    }
}

impl Reader {
    /// A call, by its id. If a call has more than 10,000 rows, only the newest 10,000 are read.
    ///
    /// # Errors
    /// [`Error::NoRow`] if no row is about the call, [`Error::Differs`] or [`Error::Record`] if a
    /// row is damaged; and the errors of [`Reader::list`].
    pub fn call(&self, invocation: Invocation) -> Result<RecordedCall, Error> {
        let listed = self.list(&Filter {
            invocation: Some(invocation),
            limit: u32::MAX,
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

    /// Calls `each` with the calls that ended in the rows from `from` up to `to`, in the order of
    /// their ends. Calls that started in these rows and have no end come last. Skips pruned rows,
    /// and rows that were added about a call after its end. Keeps the ids of all calls of these
    /// rows in memory.
    ///
    /// # Errors
    /// The errors of [`Reader::call`] and of `each`.
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

    /// Like [`Reader::calls`], but also passes the damaged rows to `each`. A call with a damaged
    /// row is assembled from its other rows.
    ///
    /// # Errors
    /// Errors of the files and of `each`.
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
                    // The call started before these rows, or its start is damaged.
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
            // Calls that ended later belong to the rows in which they ended.
            if call.end == EndRow::Unknown {
                each(Ok(call))?;
            }
        }
        Ok(())
    }
}

/// Separates damage of a row (the inner error) from all other errors.
fn undamaged<T>(read: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match read {
        Err(error @ (Error::Differs(_) | Error::Record(_))) => Ok(Err(error)),
        Err(error) => Err(error),
        Ok(read) => Ok(Ok(read)),
    }
}

/// The calls that have ended. Later rows about them are ignored.
struct Over<'a> {
    reader: &'a Reader,
    /// Rows before this one are looked up in the index.
    from: u64,
    index: Option<Connection>,
    /// Whether each call that was looked up has ended.
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

/// The record of a row; `None` if it was pruned. Fails if the record does not match the leaf.
fn read(row: &Row) -> Result<Option<Record>, Error> {
    let Some(record) = &row.record else {
        return Ok(None);
    };
    match leaf_hash(record) == row.leaf {
        true => Ok(Some(Record::parse(record)?)),
        false => Err(Error::Differs("a row is not the one that was recorded")),
    }
}

/// Adds a row to its call. Rows after the call's end are ignored, since a compromised process can
/// add them; only a call that ended with a question can continue.
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

//! Records: one line of JSON each, in the canonical form of RFC 8785. This module does no I/O.
//!
//! Keys and values are ASCII, numbers are integers, and a line has at most 4 KiB: if lists make it
//! longer, their ends are left out and counted (`cut`). [`Record::parse`] accepts a line only in
//! exactly the spelling that this module writes.

mod kinds;
mod names;
mod wire;

use std::cell::Cell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolward_support::json;

pub use kinds::{
    Abandoned, Answer, Approval, ApprovalEvent, Attempt, Call, Closed, Content, Ended, Erased, Gap,
    NOT_DISPATCHED, Native, Opened, Outcome, Part, Pruned, Refused, RefusedMore, Rejected,
    Replayed, Started, Trust, TrustAction,
};
pub use names::{
    Action, Code, Hash, Hex, Id, Invocation, NativeId, Number, Person, Rule, Session, Tool,
    TraceParent, Version, Word,
};
pub(crate) use wire::Wire;

/// The most bytes of a record.
pub const MAX_RECORD_BYTES: usize = 4096;
/// The initial capacity of a line, which suffices for most lines. It is below 1 KiB, since from 1
/// KiB on glibc's `malloc` first consolidates its free chunks, which takes time.
const LINE_CAPACITY_BYTES: usize = 1000;
/// The version of the records.
const FORMAT: u8 = 1;

/// Why a line is not a record, or a value may not be in one. The error does not contain the
/// rejected text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A name that does not have the form of its kind.
    #[error("not a name of the kind {0}")]
    Name(&'static str),
    /// More than [`MAX_RECORD_BYTES`].
    #[error("longer than 4096 bytes")]
    Long,
    /// The line is not a record of any kind in this version.
    #[error("not a record")]
    Kind,
    /// The line does not have the fields of its kind, or is not in canonical form.
    #[error("not a record of the kind `{kind}` (column {column})")]
    Grammar {
        /// The kind that the line names.
        kind: &'static str,
        /// The column of the error, from 1; 0 if only the form is not canonical.
        column: usize,
    },
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time in microseconds since 1970, by the clock of the process that records it.
    pub at: Number,
    /// The session that recorded it.
    pub session: Session,
    /// What happened.
    pub event: Event,
}

/// The fields of a line, in the order of its keys.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a, B> {
    at: Number,
    body: B,
    kind: &'a str,
    session: Session,
    v: u8,
}

/// The keys that determine the kind of a line.
#[derive(Deserialize)]
struct Head<'a> {
    kind: &'a str,
    v: u8,
}

macro_rules! events {
    ($($(#[$outer:meta])* $name:ident($body:ty) = $kind:literal;)+) => {
        /// What happened.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Event { $($(#[$outer])* $name($body),)+ }

        impl Event {
            /// All kinds of records.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// The kind of the record.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$name(_) => $kind,)+ }
            }

            fn line(&self, at: Number, session: Session) -> Vec<u8> {
                match self { $(
                    Self::$name(body) => line(&Line { at, body, kind: $kind, session, v: FORMAT }),
                )+ }
            }
        }

        /// The kinds as numbers.
        enum Kind { $($name,)+ }

        impl Wire for Event {
            fn put(&self, to: &mut Vec<u8>) {
                match self { $(
                    Self::$name(body) => {
                        to.push(Kind::$name as u8);
                        body.put(to);
                    }
                )+ }
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let [kind] = Wire::take(from)?;
                $(if kind == Kind::$name as u8 {
                    return $name::take(from).map(|body| Self::$name(body.into()));
                })+
                None
            }
        }

        impl Record {
            fn read(bytes: &[u8], kind: &str) -> Result<Self, RecordError> {
                match kind {
                    $($kind => {
                        let line: Line<'_, $body> = serde_json::from_slice(bytes)
                            .map_err(|error| RecordError::Grammar { kind: $kind, column: error.column() })?;
                        if line.kind != $kind || line.v != FORMAT {
                            return Err(RecordError::Kind);
                        }
                        Ok(Self { at: line.at, session: line.session, event: Event::$name(line.body) })
                    })+
                    _ => Err(RecordError::Kind),
                }
            }
        }
    };
}

events! {
    /// `opened`
    Opened(Opened) = "opened";
    /// `started`
    Started(Box<Started>) = "started";
    /// `ended`
    Ended(Box<Ended>) = "ended";
    /// `refused`
    Refused(Box<Refused>) = "refused";
    /// `replayed`
    Replayed(Box<Replayed>) = "replayed";
    /// `refused-more`
    RefusedMore(RefusedMore) = "refused-more";
    /// `trust`
    Trust(Trust) = "trust";
    /// `approval`
    Approval(Approval) = "approval";
    /// `abandoned`
    Abandoned(Abandoned) = "abandoned";
    /// `gap`
    Gap(Gap) = "gap";
    /// `erased`
    Erased(Erased) = "erased";
    /// `pruned`
    Pruned(Pruned) = "pruned";
    /// `closed`
    Closed(Closed) = "closed";
}

/// The kind that the end of a line states, if the line ends in the form of [`Record::encode`].
/// Reading from the end avoids parsing the line twice. [`Record::read`] checks that the line has
/// this kind.
fn stated_kind(line: &[u8]) -> Option<&str> {
    const SESSION: &[u8] = b"\",\"session\":\"";
    const END: &[u8] = b"\",\"v\":1}";
    let (before, _session) = line.strip_suffix(END)?.split_last_chunk::<32>()?;
    let kind = before.strip_suffix(SESSION)?;
    let start = kind.iter().rposition(|byte| *byte == b'"')?;
    std::str::from_utf8(kind.get(start + 1..)?).ok()
}

/// Serialises a line. This would fail only for maps with keys that are not text, and records have
/// no such maps.
fn line<B: Serialize>(line: &Line<'_, B>) -> Vec<u8> {
    json::write(Vec::with_capacity(LINE_CAPACITY_BYTES), line).unwrap_or_default()
}

impl Record {
    /// The line, without a line feed. If its lists make it longer than [`MAX_RECORD_BYTES`], their
    /// ends are left out and counted.
    pub fn encode(&self) -> Vec<u8> {
        self.event.encode(self.at, self.session)
    }

    /// Reads a line that [`Record::encode`] wrote; any other line is refused, even another spelling
    /// of the same values.
    ///
    /// # Errors
    /// Why the line is not a record.
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        let record = Self::of_row(bytes)?;
        if record.event.line(record.at, record.session) != bytes {
            let kind = record.event.kind();
            return Err(RecordError::Grammar { kind, column: 0 });
        }
        Ok(record)
    }

    /// Reads a line in any spelling. This suffices for a row of a ledger, since the row's leaf
    /// covers the line's exact bytes.
    pub(crate) fn of_row(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.len() > MAX_RECORD_BYTES {
            return Err(RecordError::Long);
        }
        if let Some(kind) = stated_kind(bytes) {
            return Self::read(bytes, kind);
        }
        let head: Head<'_> = serde_json::from_slice(bytes).map_err(|_| RecordError::Kind)?;
        match head.v {
            FORMAT => Self::read(bytes, head.kind),
            _ => Err(RecordError::Kind),
        }
    }

    /// The call that the record is about, if any.
    pub fn invocation(&self) -> Option<Invocation> {
        match &self.event {
            Event::Approval(body) => body.invocation,
            Event::Erased(body) => body.invocation,
            event => event.of_call(),
        }
    }
}

impl Event {
    /// The invocation that the record starts or ends, the call's facts, and how the call ended.
    fn parts(&self) -> (Option<Invocation>, Option<&Call>, Option<&Outcome>) {
        match self {
            Self::Started(body) => (Some(body.invocation), Some(&body.call), None),
            Self::Ended(body) => {
                let outcome = Some(&body.outcome);
                (Some(body.invocation), body.call.as_ref(), outcome)
            }
            Self::Refused(body) => (Some(body.invocation), Some(&body.call), Some(&body.outcome)),
            Self::Replayed(body) => (Some(body.invocation), Some(&body.call), Some(&body.outcome)),
            Self::Abandoned(body) => (Some(body.invocation), None, None),
            _ => (None, None, None),
        }
    }

    pub(crate) fn parts_mut(&mut self) -> (Option<&mut Call>, Option<&mut Outcome>) {
        match self {
            Self::Started(body) => (Some(&mut body.call), None),
            Self::Ended(body) => (body.call.as_mut(), Some(&mut body.outcome)),
            Self::Refused(body) => (Some(&mut body.call), Some(&mut body.outcome)),
            Self::Replayed(body) => (Some(&mut body.call), Some(&mut body.outcome)),
            _ => (None, None),
        }
    }

    /// The call that the record starts or ends.
    pub(crate) fn of_call(&self) -> Option<Invocation> {
        self.parts().0
    }

    /// The facts of the call in the record.
    pub fn call(&self) -> Option<&Call> {
        self.parts().1
    }

    /// How the call ended, if it did.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.parts().2
    }

    /// The id of the principal that the record is about.
    pub fn person(&self) -> Option<Person> {
        match self {
            Self::RefusedMore(body) => body.person,
            Self::Approval(body) => body.person,
            Self::Erased(body) => body.person,
            event => event.call().and_then(|call| call.person),
        }
    }

    /// The tool that the record is about, with its version.
    pub fn tool(&self) -> Option<&Tool> {
        match self {
            Self::Approval(body) => body.tool.as_ref(),
            event => event.call()?.tool.as_ref().map(|tool| &tool.id),
        }
    }

    /// See [`Record::encode`].
    pub(crate) fn encode(&self, at: Number, session: Session) -> Vec<u8> {
        let mut bytes = self.line(at, session);
        if bytes.len() > MAX_RECORD_BYTES {
            let mut event = self.clone();
            while bytes.len() > MAX_RECORD_BYTES && event.shorten() {
                bytes = event.line(at, session);
            }
        }
        bytes
    }

    /// Halves the list with the most entries, and counts the removed entries. Returns false if all
    /// lists are empty.
    pub(crate) fn shorten(&mut self) -> bool {
        let mut lists: Vec<(&Cell<Number>, &mut dyn Shorten)> = Vec::new();
        match self {
            Self::Opened(body) => lists.push((Cell::from_mut(&mut body.cut), &mut body.bundles)),
            Self::RefusedMore(body) => lists.push((Cell::from_mut(&mut body.cut), &mut body.codes)),
            event => {
                let (call, outcome) = event.parts_mut();
                if let Some(call) = call {
                    let cut = Cell::from_mut(&mut call.cut);
                    lists.push((cut, &mut call.mutates));
                    lists.push((cut, &mut call.rejected));
                    lists.push((cut, &mut call.rules));
                }
                if let Some(outcome) = outcome {
                    let cut = Cell::from_mut(&mut outcome.cut);
                    lists.push((cut, &mut outcome.attempts));
                    lists.push((cut, &mut outcome.violations));
                }
            }
        }
        match lists.into_iter().max_by_key(|(_, list)| list.entries()) {
            Some((cut, list)) if list.entries() > 0 => {
                let count = cut.get().get().saturating_add(list.halve() as u64);
                cut.set(Number::from(count));
                true
            }
            _ => false,
        }
    }
}

/// A list of a record. While the record is too long, its longest list loses its second half.
/// `halve` returns the number of removed entries.
trait Shorten {
    fn entries(&self) -> usize;
    fn halve(&mut self) -> usize;
}

impl<T> Shorten for Vec<T> {
    fn entries(&self) -> usize {
        self.len()
    }

    fn halve(&mut self) -> usize {
        self.split_off(self.len() / 2).len()
    }
}

impl<K: Ord> Shorten for BTreeMap<K, Number> {
    fn entries(&self) -> usize {
        self.len()
    }

    fn halve(&mut self) -> usize {
        let cut = self.len().div_ceil(2);
        (0..cut).filter_map(|_| self.pop_last()).count()
    }
}

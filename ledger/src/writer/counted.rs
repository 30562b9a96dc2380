//! Rows that are counted instead of written. If a row can't be written and no caller awaits it, it
//! is counted. Awaited rows of ended calls are held in reserve until they can be written, up to 64
//! KiB; beyond that, they are counted, too. Only the first few refusals and questions of a
//! principal in a second get separate rows. All others become one row with counts by code. They are
//! counted on arrival, so that a flood takes no room in the queue.

use std::collections::{BTreeMap, HashMap};
use std::mem::size_of;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::record::{ApprovalEvent, Code, Event, Gap, Number, RefusedMore};
use crate::recorder::Entry;

/// The most bytes of rows that are held in reserve.
const RESERVE_BYTES: usize = 64 * 1024;

/// The rows in reserve, and the count of lost rows.
#[derive(Default)]
pub(super) struct Late {
    pub(super) rows: Vec<Entry>,
    bytes: usize,
    pub(super) missing: Option<Gap>,
}

impl Late {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.missing.is_none()
    }

    /// Holds the row of an ended call in reserve, or counts it if the reserve is full.
    pub(super) fn hold(&mut self, mut entry: Entry, error: &Error) {
        // Only the record is held, without its payloads.
        entry.payloads = Vec::new();
        let weight = size_of::<Entry>() + entry.weight();
        if self.bytes.saturating_add(weight) > RESERVE_BYTES {
            self.count(&entry, error);
            return;
        }
        if let Event::Ended(body) = &mut entry.event {
            body.outcome.late = true;
        }
        self.bytes += weight;
        self.rows.push(entry);
    }

    /// Counts a lost row.
    pub(super) fn count(&mut self, entry: &Entry, error: &Error) {
        self.count_all(1, entry.at, error);
    }

    /// Counts rows that have been lost since `since`.
    pub(super) fn count_all(&mut self, count: u64, since: Number, error: &Error) {
        let Ok(why) = Code::parse(error.code()) else {
            return;
        };
        let missing = self.missing.get_or_insert(Gap {
            missing: Number::default(),
            since,
            why,
        });
        missing.missing = Number::from(missing.missing.get().saturating_add(count));
        missing.since = missing.since.min(since);
    }

    /// Notes that the rows in reserve were written.
    pub(super) fn written(&mut self) {
        self.rows.clear();
        self.bytes = 0;
    }
}

/// How long refusals are counted together.
const WINDOW: Duration = Duration::from_secs(1);
/// The most refusals and questions of a principal in a window that get separate rows.
const ROWS: u32 = 10;
/// The most principals that are counted separately. All others are counted together.
const PRINCIPALS: usize = 4096;
/// The most codes that are counted separately.
const CODES: usize = 24;
/// The code under which all other codes are counted. Like [`QUESTIONS`], it has a form that no code
/// of a host or a driver has: with a hyphen and without a colon.
const OTHER: &str = "other-codes";
/// The code under which questions for approval are counted.
const QUESTIONS: &str = "approval-asked";

/// The refusals and questions of the last second.
#[derive(Default)]
pub(super) struct Refusals {
    windows: HashMap<Option<Arc<str>>, Window>,
}

struct Window {
    end: Instant,
    rows: u32,
    since: Number,
    codes: BTreeMap<Code, Number>,
}

impl Refusals {
    /// Counts a refusal or a question. Returns the entry if it gets a separate row, as all other
    /// entries do.
    pub(super) fn take(&mut self, entry: Entry, now: Instant) -> Option<Entry> {
        let code = match &entry.event {
            Event::Refused(body) => body.outcome.code.clone(),
            Event::Approval(body) if body.event == ApprovalEvent::Asked => {
                Code::parse(QUESTIONS).ok()
            }
            _ => return Some(entry),
        };
        let mut principal = entry.principal.clone();
        if self.windows.len() >= PRINCIPALS && !self.windows.contains_key(&principal) {
            principal = None;
        }
        let window = self.windows.entry(principal).or_insert_with(|| Window {
            end: now + WINDOW,
            rows: 0,
            since: entry.at,
            codes: BTreeMap::new(),
        });
        if window.rows < ROWS {
            window.rows += 1;
            return Some(entry);
        }
        if window.codes.is_empty() {
            window.since = entry.at;
        }
        let known = |code: &Code| window.codes.len() < CODES || window.codes.contains_key(code);
        let code = code.filter(known).or_else(|| Code::parse(OTHER).ok());
        if let Some(code) = code {
            window.codes.entry(code).or_default().add(1);
        }
        None
    }

    /// Removes the windows that have ended, or all windows if `all` is set. Returns the rows with
    /// their counts.
    pub(super) fn ended(&mut self, now: Instant, all: bool) -> Vec<Entry> {
        let ended = self
            .windows
            .extract_if(|_, window| all || window.end <= now);
        let counted = ended.filter(|(_, window)| !window.codes.is_empty());
        let entries = counted.map(|(principal, window)| {
            let mut entry = Entry::new(Event::RefusedMore(RefusedMore {
                codes: window.codes,
                cut: Number::default(),
                person: None,
                since: window.since,
            }));
            entry.principal = principal;
            entry
        });
        entries.collect()
    }

    /// When the next window ends.
    pub(super) fn next(&self) -> Option<Instant> {
        self.windows.values().map(|window| window.end).min()
    }
}

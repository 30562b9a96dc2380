//! Refusals of one principal and questions to them, beyond a few a second, become one row with counts by code. They
//! are counted where they arrive, so that a flood takes no room in the queue.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::entry::Entry;
use crate::record::{ApprovalEvent, Code, Event, Number, RefusedMore};

/// How long refusals are counted together.
const WINDOW: Duration = Duration::from_secs(1);
/// Refusals of a window that have rows of their own.
const ROWS: u32 = 10;
/// Principals that are counted apart; those of all others are counted together.
const PRINCIPALS: usize = 4096;
/// Codes that are counted apart.
const CODES: usize = 24;
/// What the others are counted as. No code of a host or a driver has this form, and none that of [`QUESTIONS`].
const OTHER: &str = "other-codes";
/// What questions for approval are counted as.
const QUESTIONS: &str = "approval-asked";

/// The refusals of the last second.
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
    /// Takes in an entry; gives it back if it gets a row of its own.
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

    /// The rows of the windows that have ended; of all at the end.
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

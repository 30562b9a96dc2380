//! What could not be written: rows of ended calls, held in reserve until they can be, and the count of all others.

use std::mem::size_of;

use crate::entry::{Entry, Missing};
use crate::error::Error;
use crate::record::{Event, Number};

/// Bytes of rows that are held in reserve.
const RESERVE_BYTES: usize = 64 * 1024;

/// What could not be written.
#[derive(Default)]
pub(super) struct Late {
    rows: Vec<Entry>,
    bytes: usize,
    missing: Option<Missing>,
}

impl Late {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.missing.is_none()
    }

    /// Holds the row of an ended call in reserve, or counts it where there is no room.
    pub(super) fn hold(&mut self, mut entry: Entry, error: &Error) {
        // The record is all that is held: its payloads are gone.
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

    /// Counts a row that is lost.
    pub(super) fn count(&mut self, entry: &Entry, error: &Error) {
        self.count_all(1, entry.at, error);
    }

    /// Counts rows that are lost since then.
    pub(super) fn count_all(&mut self, count: u64, since: Number, error: &Error) {
        let why = error.code();
        let missing = self.missing.get_or_insert(Missing {
            count: 0,
            since,
            why,
        });
        missing.count = missing.count.saturating_add(count);
        missing.since = missing.since.min(since);
    }

    pub(super) fn rows(&mut self) -> &mut Vec<Entry> {
        &mut self.rows
    }

    pub(super) fn missing(&self) -> Option<&Missing> {
        self.missing.as_ref()
    }

    /// The rows in reserve were written.
    pub(super) fn written(&mut self) {
        self.rows.clear();
        self.bytes = 0;
    }

    /// The count was written.
    pub(super) fn counted(&mut self) {
        self.missing = None;
    }
}

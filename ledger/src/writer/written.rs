//! Which rows a session wrote of its latest calls.

use std::collections::VecDeque;

use crate::record::{Event, Invocation};

/// Rows that are remembered. Two of a call, so that those of the last 32 calls are among them.
pub(crate) const MAX_ROWS: usize = 64;

/// The rows that a session wrote of its latest calls, without calls that tools made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenRows {
    /// The ledger: see [`Verifier::origin`](crate::checkpoint::Verifier::origin).
    pub origin: String,
    /// The call and the number of each row, at most 64, in order.
    pub rows: VecDeque<(Invocation, u64)>,
}

impl WrittenRows {
    /// The rows of a call.
    pub fn of(&self, invocation: Invocation) -> impl Iterator<Item = u64> + '_ {
        let rows = self
            .rows
            .iter()
            .filter(move |(call, _)| *call == invocation);
        rows.map(|(_, seq)| *seq)
    }

    pub(super) fn add(&mut self, row: CallRow, seq: u64) {
        let is_own = match row.is_nested {
            Some(is_nested) => !is_nested,
            None => self.of(row.invocation).next().is_some(),
        };
        if !is_own {
            return;
        }
        if self.rows.len() >= MAX_ROWS {
            self.rows.pop_front();
        }
        self.rows.push_back((row.invocation, seq));
    }
}

/// What is remembered of a row.
#[derive(Clone, Copy)]
pub(super) struct CallRow {
    invocation: Invocation,
    /// Whether a tool made the call; `None` if the row does not state it.
    is_nested: Option<bool>,
}

impl CallRow {
    /// `None` for a row that neither starts nor ends a call.
    pub(super) fn of(event: &Event) -> Option<Self> {
        Some(Self {
            invocation: event.of_call()?,
            is_nested: event.call().map(|call| call.parent.is_some()),
        })
    }
}

//! Decides which rows are written when the room for records runs short. The session's rows are
//! counted by principal, to find the principals that fill the room.

use std::collections::HashMap;
use std::sync::Arc;

use crate::recorder::Entry;
use crate::writer::queue::QueuedRow;

/// How much of the room for records is taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RecordRoom {
    Ample,
    /// All rows are written, except for principals that have written too much: for them,
    /// [`Self::Ended`] applies.
    Shared,
    /// Rows for which a caller waits are written, and other rows are counted.
    Short,
    /// Only awaited rows of ended calls are written.
    Ended,
    None,
}

impl RecordRoom {
    /// The room that is left if `percent` percent are taken.
    pub(super) fn left(percent: u64) -> Self {
        match percent {
            ..80 => Self::Ample,
            80..90 => Self::Shared,
            90..95 => Self::Short,
            95..100 => Self::Ended,
            _ => Self::None,
        }
    }
}

/// Whether a row is written.
pub(super) fn fits(row: &QueuedRow, room: RecordRoom, shares: &PrincipalShares) -> bool {
    let room = match room {
        RecordRoom::Shared if shares.has_most(&row.entry) => RecordRoom::Ended,
        room => room,
    };
    match (room, row.reply.is_some()) {
        (RecordRoom::Ample | RecordRoom::Shared, _) | (RecordRoom::Short, true) => true,
        (RecordRoom::Ended, true) => row.is_ended(),
        (RecordRoom::Short | RecordRoom::Ended, false) | (RecordRoom::None, _) => false,
    }
}

/// The number of rows that each principal of a session has written.
#[derive(Default)]
pub(super) struct PrincipalShares {
    by_principal: HashMap<Arc<str>, u64>,
    total: u64,
}

impl PrincipalShares {
    pub(super) fn add(&mut self, entry: &Entry) {
        let Some(principal) = &entry.principal else {
            return;
        };
        let rows = self.by_principal.entry(principal.clone()).or_default();
        *rows = rows.saturating_add(1);
        self.total = self.total.saturating_add(1);
    }

    /// Whether the entry's principal has written more than 1.5 times its equal share. Always false
    /// for a single principal.
    pub(super) fn has_most(&self, entry: &Entry) -> bool {
        let rows = entry
            .principal
            .as_ref()
            .and_then(|name| self.by_principal.get(name));
        let rows = rows.copied().unwrap_or_default();
        let principals = self.by_principal.len() as u64;
        rows.saturating_mul(principals).saturating_mul(2) > self.total.saturating_mul(3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Closed, Event};

    #[test]
    fn whoever_has_written_most_is_known_and_one_alone_is_not_meant() {
        let of = |name: &str| Entry::new(Event::Closed(Closed { why: None })).principal(name);
        let mut shares = PrincipalShares::default();
        for _ in 0..100 {
            shares.add(&of("greedy"));
        }
        assert!(!shares.has_most(&of("greedy")));
        for _ in 0..10 {
            shares.add(&of("modest"));
        }
        assert!(shares.has_most(&of("greedy")));
        assert!(!shares.has_most(&of("modest")) && !shares.has_most(&of("new")));
        for _ in 0..40 {
            shares.add(&of("modest"));
        }
        assert!(!shares.has_most(&of("greedy")));
    }
}

//! Records that would be too long: the longest list loses its second half.

use std::collections::BTreeMap;

use crate::record::Event;
use crate::record::names::Number;

/// A list of a record, and the field that counts what it lost.
trait Shorten {
    fn entries(&self) -> usize;
    fn halve(&mut self, cut: &mut Number);
}

impl<T> Shorten for Vec<T> {
    fn entries(&self) -> usize {
        self.len()
    }

    fn halve(&mut self, cut: &mut Number) {
        let kept = self.len() / 2;
        cut.add(self.len() - kept);
        self.truncate(kept);
    }
}

impl<K: Ord> Shorten for BTreeMap<K, Number> {
    fn entries(&self) -> usize {
        self.len()
    }

    fn halve(&mut self, cut: &mut Number) {
        for _ in 0..self.len().div_ceil(2) {
            self.pop_last();
            cut.add(1);
        }
    }
}

impl Event {
    /// Halves the list with most entries; false if all are empty.
    pub(super) fn shorten(&mut self) -> bool {
        match self {
            Self::Opened(body) => longest(&mut [(&mut body.bundles, &mut body.cut)]),
            Self::RefusedMore(body) => longest(&mut [(&mut body.codes, &mut body.cut)]),
            _ => self.shorten_call(),
        }
    }

    fn shorten_call(&mut self) -> bool {
        let (call, outcome) = match self {
            Self::Started(body) => (Some(&mut body.call), None),
            Self::Ended(body) => (body.call.as_mut(), Some(&mut body.outcome)),
            Self::Refused(body) => (Some(&mut body.call), Some(&mut body.outcome)),
            Self::Replayed(body) => (Some(&mut body.call), Some(&mut body.outcome)),
            _ => (None, None),
        };
        // One count for all lists of a part: taken out while they are compared.
        let mut cuts = [Number::default(); 5];
        let [first, second, third, fourth, fifth] = &mut cuts;
        let mut lists: Vec<(&mut dyn Shorten, &mut Number)> = Vec::new();
        let mut totals = Vec::new();
        if let Some(call) = call {
            lists.push((&mut call.mutates, first));
            lists.push((&mut call.rejected, second));
            lists.push((&mut call.rules, third));
            totals.push((&mut call.cut, 0..3));
        }
        if let Some(outcome) = outcome {
            lists.push((&mut outcome.attempts, fourth));
            lists.push((&mut outcome.violations, fifth));
            totals.push((&mut outcome.cut, 3..5));
        }
        let shortened = longest(&mut lists);
        for (total, range) in totals {
            for cut in cuts.get(range).unwrap_or_default() {
                *total = Number::from(total.get().saturating_add(cut.get()));
            }
        }
        shortened
    }
}

fn longest(lists: &mut [(&mut dyn Shorten, &mut Number)]) -> bool {
    match lists.iter_mut().max_by_key(|(list, _)| list.entries()) {
        Some((list, cut)) if list.entries() > 0 => {
            list.halve(cut);
            true
        }
        _ => false,
    }
}

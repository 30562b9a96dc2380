//! The positions of a text: how each can be read, and where a pattern may begin.
//!
//! Where no pattern has begun, two characters nearly always rule out that one begins:
//! so each escape is decoded once, without running the automaton.

use super::automaton::Automaton;
use super::reading::{Reading, may_escape};
use super::readings::Readings;

/// Positions whose readings are cached: a place is read first behind the escape before
/// it, and then by itself.
const CACHED_POSITIONS: usize = 4;

/// Bytes that are searched one by one before a block search begins.
const NEAR_BYTES: usize = 8;

/// A text, of which there may be more.
pub(super) struct Positions<'t> {
    text: &'t [u8],
    more: bool,
    /// Where the next escape may begin, once a search came near it.
    escape: usize,
    kept: [Kept; CACHED_POSITIONS],
}

#[derive(Clone, Copy, Default)]
struct Kept {
    /// The place behind the one that these are the readings of; 0: there is none.
    after: usize,
    decided: bool,
    readings: Readings,
}

impl<'t> Positions<'t> {
    pub(super) fn of(text: &'t [u8], more: bool) -> Positions<'t> {
        Positions {
            text,
            more,
            escape: 0,
            kept: [Kept::default(); CACHED_POSITIONS],
        }
    }

    /// How the text can be read at a place. `None`: it ends there, or there may be
    /// more that it depends on.
    #[inline]
    pub(super) fn at(&mut self, at: usize) -> Option<&Readings> {
        let kept = self.kept.get_mut(at % CACHED_POSITIONS)?;
        if kept.after != at + 1 {
            kept.after = at + 1;
            let rest = self.text.get(at..).unwrap_or_default();
            kept.decided = kept.readings.read(rest, self.more);
        }
        kept.decided.then_some(&kept.readings)
    }

    /// Whether a pattern may begin with this reading of a place.
    #[inline]
    pub(super) fn begins(&mut self, automaton: &Automaton, at: usize, reading: Reading) -> bool {
        let next = at + usize::from(reading.next);
        match self.text.get(next).copied() {
            Some(byte) if !may_escape(byte) => automaton.begins_with(reading.byte, byte),
            Some(_) if automaton.begins(reading.byte) => self.at(next).is_none_or(|seconds| {
                seconds.may_be(|byte| automaton.begins_with(reading.byte, byte))
            }),
            _ => automaton.begins(reading.byte),
        }
    }

    /// The first place from `at` on where a pattern may begin, or whose readings are
    /// not decided.
    #[inline]
    pub(super) fn next_start(&mut self, automaton: &Automaton, at: usize) -> usize {
        let mut at = at;
        // Where the run of bytes began that stand for themselves.
        let mut run = at.saturating_sub(NEAR_BYTES);
        loop {
            let Some(byte) = self.text.get(at).copied() else {
                return at;
            };
            if !may_escape(byte) {
                if at - run >= NEAR_BYTES {
                    at = self.skip(automaton, at);
                    run = at;
                } else if self.begins(automaton, at, Reading::literal(byte)) {
                    return at;
                } else {
                    at += 1;
                }
                continue;
            }
            let Some(readings) = self.at(at) else {
                return at;
            };
            if !readings.may_be(|byte| automaton.begins(byte)) {
                at += 1;
                run = at;
                continue;
            }
            let readings = *readings;
            for reading in readings.as_slice() {
                if self.begins(automaton, at, *reading) {
                    return at;
                }
            }
            at += 1;
            run = at;
        }
    }

    /// Skips text without escapes in which no pattern begins.
    #[inline]
    fn skip(&mut self, automaton: &Automaton, at: usize) -> usize {
        if self.escape <= at {
            self.escape = next_escape(self.text, at);
        }
        automaton.skip(self.text.get(..self.escape).unwrap_or_default(), at)
    }
}

#[inline]
fn next_escape(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    // An escape is mostly followed by another.
    let mut near = rest.iter().take(NEAR_BYTES);
    if let Some(near) = near.position(|byte| may_escape(*byte)) {
        return from + near;
    }
    let next = memchr::memchr3(b'%', b'\\', b'&', rest);
    next.map_or(text.len(), |next| from + next)
}

//! How a text can be read, at one place: each byte as itself, and each escape of
//! percent-encoding, JSON and HTML as what it stands for.
//!
//! Nothing is decided here: what looks like an escape may be one, or a separate
//! text next to a value. All readings are returned, and the search follows each.

use super::automaton::Automaton;
use super::entities::{self, ENTITIES};
use super::escapes::{self, EscapeEnd, EscapeReading, MAX_DIGITS, Single, may_escape};

/// Readings of one place. There are five at most in practice; the room bounds the work.
const MAX_READINGS: usize = 12;

/// How the start of a text can be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readings {
    list: [EscapeReading; MAX_READINGS],
    length: usize,
}

impl Default for Readings {
    fn default() -> Readings {
        Readings {
            list: [EscapeReading::default(); MAX_READINGS],
            length: 0,
        }
    }
}

impl Readings {
    /// Those of the start of `text`, with an escape undone, and one in it. `false`:
    /// they depend on what follows, of which there may be `more`.
    #[inline(never)]
    pub(crate) fn read(&mut self, text: &[u8], more: bool) -> bool {
        if let Some((escapes, length)) = escapes::read_common(text) {
            let [literal, first, second, third, ..] = &mut self.list;
            *literal = EscapeReading::literal(text.first().copied().unwrap_or_default());
            [*first, *second, *third] = escapes;
            self.length = length + 1;
            return true;
        }
        self.read_any(text, more)
    }

    fn read_any(&mut self, text: &[u8], more: bool) -> bool {
        self.length = 0;
        let Some(single) = escapes::read(text) else {
            return false;
        };
        if single.end == EscapeEnd::Short && more {
            return false;
        }
        for (free, reading) in self.list.iter_mut().zip(single.as_slice()) {
            *free = *reading;
            self.length += 1;
        }
        let escapes = single.escapes();
        if single.end == EscapeEnd::Nested || escapes.iter().any(|escape| may_escape(escape.byte)) {
            return self.read_nested(text, &single, more);
        }
        true
    }

    fn read_nested(&mut self, text: &[u8], single: &Single, more: bool) -> bool {
        let mut reader = Reader {
            text,
            undecided: false,
            out: self,
        };
        // No character was escaped on the way to an end that is settled.
        let begun = if single.end == EscapeEnd::Nested {
            single.as_slice()
        } else {
            single.escapes()
        };
        for first in begun {
            let next = usize::from(first.next);
            match first.byte {
                b'%' => reader.hexadecimal(next, 2, 0),
                b'\\' => reader.backslash(next),
                b'&' => reader.reference(next),
                _ => {}
            }
        }
        !reader.undecided || !more
    }

    #[inline]
    fn add(&mut self, reading: EscapeReading) {
        if self.as_slice().contains(&reading) {
            return;
        }
        if let Some(free) = self.list.get_mut(self.length) {
            *free = reading;
            self.length += 1;
        }
    }

    /// Keeps the readings for which `keep` is true.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(EscapeReading) -> bool) {
        let mut kept = 0;
        for at in 0..self.length {
            let Some(reading) = self.list.get(at).copied() else {
                break;
            };
            if keep(reading)
                && let Some(free) = self.list.get_mut(kept)
            {
                *free = reading;
                kept += 1;
            }
        }
        self.length = kept;
    }

    /// Whether one of their bytes may be such. A guess: it may be one of a place that
    /// was read before. Nearly all places have few readings, and a branch for each is
    /// slower than looking at more than there are.
    #[inline]
    pub(crate) fn may_be(&self, such: impl Fn(u8) -> bool) -> bool {
        let [first, second, third, fourth, rest @ ..] = &self.list;
        let few = such(first.byte) | such(second.byte) | such(third.byte) | such(fourth.byte);
        few || self.length > 4 && rest.iter().any(|reading| such(reading.byte))
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[EscapeReading] {
        self.list.get(..self.length).unwrap_or_default()
    }
}

/// Reads an escape of whose characters each may be escaped once.
struct Reader<'a> {
    text: &'a [u8],
    /// Whether it may go on behind the text.
    undecided: bool,
    out: &'a mut Readings,
}

impl Reader<'_> {
    /// The characters that may be at one place, and where the text continues after each.
    #[inline]
    fn at(&mut self, at: usize) -> impl Iterator<Item = (usize, u8)> + use<> {
        let rest = self.text.get(at..).unwrap_or_default();
        let single = match rest.first() {
            Some(byte) if may_escape(*byte) => escapes::read(rest).unwrap_or(Single::NONE),
            Some(byte) => Single::literal(*byte),
            None => Single::NONE,
        };
        self.undecided |= single.end == EscapeEnd::Short;
        single
            .into_iter()
            .map(move |reading| (at + usize::from(reading.next), reading.byte))
    }

    fn add(&mut self, next: usize, value: u32) {
        if let Some(reading) = EscapeReading::ascii(next, value) {
            self.out.add(reading);
        }
    }

    /// `left` hexadecimal digits.
    fn hexadecimal(&mut self, at: usize, left: u8, value: u32) {
        let (mut at, mut left, mut value) = (at, left, value);
        while left > 0 {
            // Most digits are not escaped.
            let Some(byte) = self.text.get(at).filter(|byte| !may_escape(**byte)) else {
                break;
            };
            let Some(digit) = escapes::digit(*byte, 16) else {
                return;
            };
            (at, left, value) = (at + 1, left - 1, (value << 4) | digit);
        }
        let Some(left) = left.checked_sub(1) else {
            self.add(at, value);
            return;
        };
        for (next, byte) in self.at(at) {
            if let Some(digit) = escapes::digit(byte, 16) {
                self.hexadecimal(next, left, (value << 4) | digit);
            }
        }
    }

    fn backslash(&mut self, at: usize) {
        for (next, byte) in self.at(at) {
            match byte {
                b'u' => self.hexadecimal(next, 4, 0),
                b'x' => self.hexadecimal(next, 2, 0),
                byte => {
                    if let Some(byte) = escapes::simple(byte) {
                        self.add(next, u32::from(byte));
                    }
                }
            }
        }
    }

    fn reference(&mut self, at: usize) {
        for (next, byte) in self.at(at) {
            match byte {
                b'#' => self.number(next),
                letter if letter.is_ascii_alphabetic() => {
                    self.name(next, 1, entities::starting(letter, 0, 0..ENTITIES.len()));
                }
                _ => {}
            }
        }
    }

    fn number(&mut self, at: usize) {
        self.digits(at, 10, MAX_DIGITS, 0);
        for (next, byte) in self.at(at) {
            if matches!(byte, b'x' | b'X') {
                self.digits(next, 16, MAX_DIGITS, 0);
            }
        }
    }

    /// `left` digits at most; `;` may be missing.
    fn digits(&mut self, at: usize, radix: u32, left: u8, value: u32) {
        let begun = left < MAX_DIGITS;
        let mut ends = begun;
        for (next, byte) in self.at(at) {
            if let Some(digit) = escapes::digit(byte, radix) {
                ends = false;
                if let Some(left) = left.checked_sub(1) {
                    let value = value.saturating_mul(radix).saturating_add(digit);
                    self.digits(next, radix, left, value);
                }
            } else if byte == b';' && begun {
                ends = false;
                self.add(next, value);
            }
        }
        if ends {
            self.add(at, value);
        }
    }

    /// The rest of a name, of which `known` letters lead to `range`.
    fn name(&mut self, at: usize, known: usize, range: std::ops::Range<usize>) {
        let names = ENTITIES.get(range.clone()).unwrap_or_default();
        let Some(first) = names.first() else {
            return;
        };
        let whole = Some(first).filter(|first| first.name.len() == known);
        if let Some(entity) = whole.filter(|entity| entity.bare) {
            self.add(at, u32::from(entity.byte));
        }
        for (next, byte) in self.at(at) {
            if byte.is_ascii_alphabetic() {
                self.name(
                    next,
                    known + 1,
                    entities::starting(byte, known, range.clone()),
                );
            } else if let Some(entity) = whole.filter(|_| byte == b';') {
                self.add(next, u32::from(entity.byte));
            }
        }
    }
}

/// Positions whose readings are cached: a place is read first behind the escape before
/// it, and then by itself.
const CACHED_POSITIONS: usize = 4;

/// Bytes that are searched one by one before a block search starts.
const NEAR_BYTES: usize = 8;

/// A text, of which there may be more.
pub(super) struct Positions<'t> {
    text: &'t [u8],
    more: bool,
    /// Where the next escape may start, once a search came near it.
    escape: usize,
    kept: [Kept; CACHED_POSITIONS],
}

#[derive(Clone, Copy, Default)]
struct Kept {
    /// The place behind the place of these readings; 0: none.
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

    /// Whether a pattern may start with this reading of a place.
    #[inline]
    pub(super) fn begins(
        &mut self,
        automaton: &Automaton,
        at: usize,
        reading: EscapeReading,
    ) -> bool {
        let next = at + usize::from(reading.next);
        match self.text.get(next).copied() {
            Some(byte) if !may_escape(byte) => automaton.begins_with(reading.byte, byte),
            Some(_) if automaton.begins(reading.byte) => self.at(next).is_none_or(|seconds| {
                seconds.may_be(|byte| automaton.begins_with(reading.byte, byte))
            }),
            _ => automaton.begins(reading.byte),
        }
    }

    /// The first place from `at` on where a pattern may start, or whose readings are
    /// not decided.
    #[inline]
    pub(super) fn next_start(&mut self, automaton: &Automaton, at: usize) -> usize {
        let mut at = at;
        // Where the run of bytes started that stand for themselves.
        let mut run = at.saturating_sub(NEAR_BYTES);
        loop {
            let Some(byte) = self.text.get(at).copied() else {
                return at;
            };
            if !may_escape(byte) {
                if at - run >= NEAR_BYTES {
                    at = self.skip(automaton, at);
                    run = at;
                } else if self.begins(automaton, at, EscapeReading::literal(byte)) {
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

    /// Skips text without escapes in which no pattern starts.
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

#[cfg(test)]
mod tests;

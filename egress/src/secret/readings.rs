//! Finds how a text can be read at one place: each byte as itself, and each escape of
//! percent-encoding, JSON and HTML as the character that it stands for.
//!
//! No reading is preferred: text that looks like an escape may be an escape, or literal text in or
//! next to a secret's value. All readings are returned, and the search follows each.

use super::automaton::Automaton;
use super::entities::{self, ENTITIES};

/// The most readings of one place. In practice a place has at most five; this bounds the work.
const MAX_READINGS: usize = 12;

/// How many levels of escapes are undone: an escape, and an escape within it.
const LEVELS: u8 = 2;

/// The most digits of a numeric character reference. HTML allows any number of zeros, but the text
/// that is held back while a reference may continue must be bounded.
const MAX_DIGITS: u8 = 8;

/// Whether an escape may start with this byte.
fn may_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// The value of a byte as a digit.
fn digit(byte: u8, radix: u32) -> Option<u32> {
    char::from(byte).to_digit(radix)
}

/// A byte that the text may stand for at a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EscapeReading {
    /// Where the text continues after this byte, counted from the place.
    pub(crate) next: u16,
    pub(crate) byte: u8,
}

impl EscapeReading {
    /// A byte as itself.
    fn literal(byte: u8) -> EscapeReading {
        EscapeReading { next: 1, byte }
    }
}

/// The readings of the start of a text. The byte itself comes first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Readings {
    list: [EscapeReading; MAX_READINGS],
    length: usize,
}

impl Readings {
    /// Reads the start of `text` with escapes undone, up to an escape within an escape. Returns
    /// false if `text` is empty, or if the readings depend on text that may follow (`more`).
    #[inline(never)]
    fn read(&mut self, text: &[u8], more: bool) -> bool {
        let reader = Reader::of(text, 0, LEVELS);
        *self = reader.out;
        !(text.is_empty() || reader.undecided && more)
    }

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
        let all = *self;
        self.length = 0;
        for reading in all.as_slice() {
            if keep(*reading) {
                self.add(*reading);
            }
        }
    }

    /// Whether one of the bytes may satisfy `such`. Always checks the first four entries, even if
    /// fewer are in use, since this is faster than a branch for each. So the result may also be
    /// true because of an unused entry.
    pub(crate) fn may_be(&self, such: impl Fn(u8) -> bool) -> bool {
        let [first, second, third, fourth, rest @ ..] = &self.list;
        let few = such(first.byte) | such(second.byte) | such(third.byte) | such(fourth.byte);
        few || self.length > 4 && rest.iter().any(|reading| such(reading.byte))
    }

    pub(crate) fn as_slice(&self) -> &[EscapeReading] {
        self.list.get(..self.length).unwrap_or_default()
    }
}

/// Reads one place, whose characters may be escaped themselves.
struct Reader<'a> {
    text: &'a [u8],
    start: usize,
    /// How deep the characters may be escaped.
    levels: u8,
    /// Whether the escape may continue after the text.
    undecided: bool,
    /// Whether a character of this place may start an escape that was not undone, because no levels
    /// were left.
    nests: bool,
    out: Readings,
}

impl<'a> Reader<'a> {
    fn of(text: &'a [u8], start: usize, levels: u8) -> Self {
        let mut reader = Self {
            text,
            start,
            levels,
            undecided: false,
            nests: false,
            out: Readings::default(),
        };
        let Some(byte) = text.get(start).copied() else {
            reader.undecided = true;
            return reader;
        };
        reader.out.add(EscapeReading::literal(byte));
        if !may_escape(byte) {
            return reader;
        }
        let Some(levels) = levels.checked_sub(1) else {
            reader.nests = true;
            return reader;
        };
        if levels > 0 {
            reader = Self::of(text, start, levels);
            let mut escapes = reader.out.as_slice().iter().skip(1);
            if !reader.nests && !escapes.any(|escape| may_escape(escape.byte)) {
                return reader;
            }
        }
        reader.levels = levels;
        let begun = reader.out;
        for first in begun.as_slice() {
            let next = start + usize::from(first.next);
            match first.byte {
                b'%' => reader.hexadecimal(next, 2, 0),
                b'\\' => reader.backslash(next),
                b'&' => reader.reference(next),
                _ => {}
            }
        }
        reader
    }

    /// The characters that may be at one place, and where the text continues after each.
    fn at(&mut self, at: usize) -> impl Iterator<Item = (usize, u8)> + use<> {
        let Reader {
            undecided,
            nests,
            out: Readings { list, length },
            ..
        } = Reader::of(self.text, at, self.levels);
        self.undecided |= undecided;
        self.nests |= nests;
        let readings = list.into_iter().take(length);
        readings.map(move |reading| (at + usize::from(reading.next), reading.byte))
    }

    /// Adds a reading. Characters beyond ASCII are left out, since no secret's value contains them.
    fn add(&mut self, next: usize, value: u32) {
        let byte = u8::try_from(value).ok().filter(u8::is_ascii);
        if let (Some(byte), Ok(next)) = (byte, u16::try_from(next - self.start)) {
            self.out.add(EscapeReading { next, byte });
        }
    }

    /// Reads `left` hexadecimal digits.
    fn hexadecimal(&mut self, at: usize, left: u8, value: u32) {
        let Some(left) = left.checked_sub(1) else {
            self.add(at, value);
            return;
        };
        for (next, byte) in self.at(at) {
            if let Some(digit) = digit(byte, 16) {
                self.hexadecimal(next, left, (value << 4) | digit);
            }
        }
    }

    /// Reads the character after a backslash, as in JSON (RFC 8259 section 7), and in the strings
    /// of most languages.
    fn backslash(&mut self, at: usize) {
        for (next, byte) in self.at(at) {
            let byte = match byte {
                b'u' => {
                    self.hexadecimal(next, 4, 0);
                    continue;
                }
                b'x' => {
                    self.hexadecimal(next, 2, 0);
                    continue;
                }
                b'"' | b'\'' | b'\\' | b'/' => byte,
                b'b' => 8,
                b'f' => 12,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                _ => continue,
            };
            self.add(next, u32::from(byte));
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

    /// Reads at most `left` digits; `;` may be missing.
    fn digits(&mut self, at: usize, radix: u32, left: u8, value: u32) {
        let begun = left < MAX_DIGITS;
        let mut ends = begun;
        for (next, byte) in self.at(at) {
            if let Some(digit) = digit(byte, radix) {
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

    /// Reads the rest of a name. The entities in `range` have its first `known` letters.
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

/// How many positions have cached readings. Cached, since an escape may be read twice: first as the
/// continuation of the preceding character, and then by itself.
const CACHED_POSITIONS: usize = 4;

/// The number of bytes that are searched one by one before a block search starts.
const NEAR_BYTES: usize = 8;

/// A text that may continue.
pub(super) struct Positions<'t> {
    text: &'t [u8],
    more: bool,
    /// Where the next escape may start. Searched for again once it has been passed.
    escape: usize,
    kept: [Kept; CACHED_POSITIONS],
}

#[derive(Clone, Copy, Default)]
struct Kept {
    /// The place of these readings plus one; 0 if unused.
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

    /// The readings of the text at a place. `None` if the text ends there, or if the readings
    /// depend on text that may follow.
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

    /// The first place from `at` on where a pattern may start, or whose readings are not decided.
    pub(super) fn next_start(&mut self, automaton: &Automaton, at: usize) -> usize {
        let mut at = at;
        // The start of the current run of bytes without escapes.
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
    fn skip(&mut self, automaton: &Automaton, at: usize) -> usize {
        if self.escape <= at {
            self.escape = next_escape(self.text, at);
        }
        automaton.skip(self.text.get(..self.escape).unwrap_or_default(), at)
    }
}

fn next_escape(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    // Escapes often follow each other closely, so the nearest bytes are checked first.
    let mut near = rest.iter().take(NEAR_BYTES);
    if let Some(near) = near.position(|byte| may_escape(*byte)) {
        return from + near;
    }
    let next = memchr::memchr3(b'%', b'\\', b'&', rest);
    next.map_or(text.len(), |next| from + next)
}

#[cfg(test)]
mod tests;

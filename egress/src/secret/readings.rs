//! How a text can be read, at one place: each byte as itself, and each escape of
//! percent-encoding, JSON and HTML as what it stands for.
//!
//! Nothing is decided here: what looks like an escape may be one, or a text of its
//! own beside a value. All readings are returned, and the search follows each.

use super::common_escapes;
use super::entities::{self, ENTITIES};
use super::reading::{Reading, may_escape};
use super::single_escape::{self, End, MAX_DIGITS, Single};

/// Readings of one place. There are five at most in practice; the room bounds the work.
const MAX_READINGS: usize = 12;

/// How the start of a text can be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readings {
    list: [Reading; MAX_READINGS],
    length: usize,
}

impl Default for Readings {
    fn default() -> Readings {
        Readings {
            list: [Reading::default(); MAX_READINGS],
            length: 0,
        }
    }
}

impl Readings {
    /// Those of the start of `text`, with an escape undone, and one in it. `false`:
    /// they depend on what follows, of which there may be `more`.
    #[inline(never)]
    pub(crate) fn read(&mut self, text: &[u8], more: bool) -> bool {
        if let Some((escapes, length)) = common_escapes::read(text) {
            let [literal, first, second, third, ..] = &mut self.list;
            *literal = Reading::literal(text.first().copied().unwrap_or_default());
            [*first, *second, *third] = escapes;
            self.length = length + 1;
            return true;
        }
        self.read_any(text, more)
    }

    fn read_any(&mut self, text: &[u8], more: bool) -> bool {
        self.length = 0;
        let Some(single) = single_escape::read(text) else {
            return false;
        };
        if single.end == End::Short && more {
            return false;
        }
        for (free, reading) in self.list.iter_mut().zip(single.as_slice()) {
            *free = *reading;
            self.length += 1;
        }
        let escapes = single.escapes();
        if single.end == End::Nested || escapes.iter().any(|escape| may_escape(escape.byte)) {
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
        let begun = if single.end == End::Nested {
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
    fn add(&mut self, reading: Reading) {
        if self.as_slice().contains(&reading) {
            return;
        }
        if let Some(free) = self.list.get_mut(self.length) {
            *free = reading;
            self.length += 1;
        }
    }

    /// Keeps those that `keep` says yes to.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(Reading) -> bool) {
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
    pub(crate) fn as_slice(&self) -> &[Reading] {
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
            Some(byte) if may_escape(*byte) => single_escape::read(rest).unwrap_or(Single::NONE),
            Some(byte) => Single::literal(*byte),
            None => Single::NONE,
        };
        self.undecided |= single.end == End::Short;
        single
            .into_iter()
            .map(move |reading| (at + usize::from(reading.next), reading.byte))
    }

    fn add(&mut self, next: usize, value: u32) {
        if let Some(reading) = Reading::ascii(next, value) {
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
            let Some(digit) = single_escape::digit(*byte, 16) else {
                return;
            };
            (at, left, value) = (at + 1, left - 1, (value << 4) | digit);
        }
        let Some(left) = left.checked_sub(1) else {
            self.add(at, value);
            return;
        };
        for (next, byte) in self.at(at) {
            if let Some(digit) = single_escape::digit(byte, 16) {
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
                    if let Some(byte) = single_escape::simple(byte) {
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
            if let Some(digit) = single_escape::digit(byte, radix) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn readings(text: &[u8], more: bool) -> Option<Readings> {
        let mut readings = Readings::default();
        readings.read(text, more).then_some(readings)
    }

    proptest! {
        #[test]
        fn an_escape_is_read_alike_alone_and_where_others_may_stand_in_it(
            text in "[%\\\\&]([0-9a-fA-F#xXu;\\\"nltamp]{0,8}|#x?[0-9]{1,10}[;a]?|(amp|lt|quot|plus|GT|verbar)[;a]?)",
        ) {
            let single = single_escape::read(text.as_bytes()).unwrap();
            let mut all = Readings::default();
            let mut begun = Single::literal(text.as_bytes()[0]);
            begun.end = End::Nested;
            all.read_nested(text.as_bytes(), &begun, false);
            for reading in single.escapes() {
                prop_assert!(all.as_slice().contains(reading), "{:?}", reading);
            }
            // Nor are there others, as long as no character is escaped.
            if single.end != End::Nested {
                let once = |reading: &Reading| single.as_slice().contains(reading);
                prop_assert!(all.as_slice().iter().all(once), "{:?}", all);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_common_is_read_as_everything_is(
            text in "(%|%25|%%|\\\\{1,4}|(\\\\){1,2}u00|(\\\\){1,2}x|&|&#|&#x|&#1|&amp;|&lt;|&quot;|&gt;)([0-9a-zA-Z#;\"/]|%|\\\\|&|&amp;|&#|&num|%25){0,8}",
        ) {
            let text = text.as_bytes();
            if let Some((escapes, length)) = common_escapes::read(text) {
                let mut all = Readings::default();
                prop_assert!(all.read_any(text, false));
                prop_assert_eq!(&all.as_slice()[1..], &escapes[..length]);
                let read = readings(text, true).unwrap_or_default();
                prop_assert_eq!(read.as_slice(), all.as_slice());
            }
        }
    }

    #[track_caller]
    fn reads(text: &str, byte: u8) {
        let all = readings(text.as_bytes(), false).unwrap();
        let whole = Reading {
            next: u16::try_from(text.len()).unwrap(),
            byte,
        };
        assert!(all.as_slice().contains(&whole), "{text}: {all:?}");
        // Neither is a part of it taken for all.
        for end in 1..text.len() {
            let part = &text.as_bytes()[..end];
            assert!(
                readings(part, true).is_none() || text.as_bytes()[end] == b';',
                "{}",
                part.escape_ascii()
            );
        }
    }

    #[test]
    fn each_escape_is_read_alone_and_in_another() {
        let alone = [
            "%2B",
            "%2b",
            "\\u002B",
            "\\u002b",
            "\\x2b",
            "&#43;",
            "&#043;",
            "&#x2B;",
            "&#X2b;",
            "&#x00002b;",
            "&plus;",
        ];
        for text in alone {
            reads(text, b'+');
            let inside = [
                text.replace('%', "%25"),
                text.replace('\\', "\\\\"),
                text.replace('\\', "\\u005c"),
                text.replace('&', "&amp;"),
                text.replace('&', "%26")
                    .replace('#', "%23")
                    .replace(';', "%3B"),
                text.replace('&', "\\u0026"),
                text.bytes().map(|byte| format!("%{byte:02x}")).collect(),
                text.bytes().map(|byte| format!("&#{byte};")).collect(),
                text.bytes().map(|byte| format!("\\u{byte:04X}")).collect(),
            ];
            for text in inside {
                reads(&text, b'+');
            }
        }
        for (text, byte) in [
            ("\\\"", b'"'),
            ("\\'", b'\''),
            ("\\\\", b'\\'),
            ("\\/", b'/'),
            ("\\t", b'\t'),
            ("\\\\\\\"", b'"'),
            ("&DiacriticalGrave;", b'`'),
            ("&verbar;", b'|'),
            ("&vert;", b'|'),
            ("&#39", b'\''),
            ("&lt", b'<'),
        ] {
            let all = readings(text.as_bytes(), false).unwrap();
            let whole = |reading: &Reading| usize::from(reading.next) == text.len();
            assert!(
                all.as_slice()
                    .iter()
                    .any(|reading| whole(reading) && reading.byte == byte),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_escape_is_itself() {
        for text in [
            "%",
            "%4",
            "%g1",
            "%%",
            "\\",
            "\\q",
            "\\u12",
            "&",
            "&;",
            "&#;",
            "&#x;",
            "&foo;",
            "&plus",
            "&#300;",
            "\\u0130",
            "a%41",
            "&#000000043;",
        ] {
            let all = readings(text.as_bytes(), false)
                .unwrap()
                .as_slice()
                .to_vec();
            let itself = Reading {
                next: 1,
                byte: text.as_bytes()[0],
            };
            assert_eq!(all, [itself], "{text}");
        }
    }

    #[test]
    fn what_may_go_on_is_undecided_and_no_longer_than_the_longest_escape() {
        for text in [
            "%", "%2", "%25", "%252", "\\", "\\u", "\\u00", "&", "&#", "&#x0", "&Diacri", "&amp",
            "&am%70",
        ] {
            assert!(readings(text.as_bytes(), true).is_none(), "{text}");
        }
        for text in ["%%%", "% ", "\\q", "&foo ", "&#x000000000", "abc"] {
            assert!(readings(text.as_bytes(), true).is_some(), "{text}");
        }
    }
}

//! Escapes of percent-encoding, JSON and HTML, none of whose characters is escaped
//! itself: nearly all are such, and are read in one go; the common ones without the general reader.

use super::entities;

/// Digits of a numeric character reference. HTML allows any number of zeros; the
/// text that is held back while one may go on is bounded.
pub(super) const MAX_DIGITS: u8 = 8;

/// Letters of the longest name in HTML.
const MAX_NAME_LETTERS: usize = 16;

/// What the start of a text can be read as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Single {
    /// The byte itself, the escape, and the escape without `;`.
    list: [EscapeReading; 3],
    length: u8,
    pub(crate) end: EscapeEnd,
}

/// Where the escape was at its end, or was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EscapeEnd {
    /// At a byte that settles it.
    Settled,
    /// At the text's end: what follows may go on with it.
    Short,
    /// At a byte that may start an escape itself, which may continue it.
    Nested,
}

impl Single {
    /// A byte as itself.
    #[inline]
    pub(super) fn literal(byte: u8) -> Single {
        Single {
            list: [EscapeReading::literal(byte); 3],
            length: 1,
            end: EscapeEnd::Settled,
        }
    }

    /// What is behind the text's end.
    pub(super) const NONE: Single = Single {
        list: [EscapeReading { next: 0, byte: 0 }; 3],
        length: 0,
        end: EscapeEnd::Short,
    };

    #[inline]
    pub(super) fn as_slice(&self) -> &[EscapeReading] {
        self.list
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }

    /// All but the byte itself.
    #[inline]
    pub(super) fn escapes(&self) -> &[EscapeReading] {
        self.as_slice().get(1..).unwrap_or_default()
    }

    #[inline]
    pub(super) fn into_iter(self) -> impl Iterator<Item = EscapeReading> {
        self.list.into_iter().take(usize::from(self.length))
    }

    #[inline]
    fn add(&mut self, next: usize, value: u32) {
        if let Some(reading) = EscapeReading::ascii(next, value)
            && let Some(free) = self.list.get_mut(usize::from(self.length))
        {
            *free = reading;
            self.length += 1;
        }
    }

    /// The byte at a place that an escape can have. `None`: the escape ends there.
    #[inline]
    fn byte(&mut self, text: &[u8], at: usize) -> Option<u8> {
        let byte = text.get(at).copied();
        match byte {
            None => self.end = EscapeEnd::Short,
            Some(byte) if may_escape(byte) => self.end = EscapeEnd::Nested,
            Some(_) => {}
        }
        byte
    }

    #[inline]
    fn hexadecimal(&mut self, text: &[u8], start: usize, digits: usize) {
        let mut value = 0;
        for at in start..start + digits {
            let byte = self.byte(text, at);
            let Some(digit) = byte.and_then(|byte| digit(byte, 16)) else {
                return;
            };
            value = (value << 4) | digit;
        }
        self.add(start + digits, value);
    }

    #[inline]
    fn backslash(&mut self, text: &[u8]) {
        match self.byte(text, 1) {
            Some(b'u') => self.hexadecimal(text, 2, 4),
            Some(b'x') => self.hexadecimal(text, 2, 2),
            Some(byte) => {
                if let Some(byte) = simple(byte) {
                    self.add(2, u32::from(byte));
                }
            }
            None => {}
        }
    }

    fn number(&mut self, text: &[u8]) {
        let (radix, start) = match self.byte(text, 2) {
            Some(b'x' | b'X') => (16, 3),
            _ => (10, 2),
        };
        let mut value: u32 = 0;
        for at in start..=start + usize::from(MAX_DIGITS) {
            let byte = self.byte(text, at);
            if let Some(digit) = byte.and_then(|byte| digit(byte, radix)) {
                value = value.saturating_mul(radix).saturating_add(digit);
                continue;
            }
            if at > start {
                self.add(at + usize::from(byte == Some(b';')), value);
            }
            return;
        }
    }

    fn name(&mut self, text: &[u8]) {
        let mut end = 1;
        while end <= MAX_NAME_LETTERS + 1
            && self
                .byte(text, end)
                .is_some_and(|byte| byte.is_ascii_alphabetic())
        {
            end += 1;
        }
        let letters = text.get(1..end).unwrap_or_default();
        if text.get(end) == Some(&b';')
            && let Some(byte) = entities::find(letters)
        {
            self.add(end + 1, u32::from(byte));
        }
        if let Some(entity) = entities::find_bare(letters) {
            self.add(entity.name.len() + 1, u32::from(entity.byte));
        }
    }
}

/// By a byte: the digit that it is, or [`NO_DIGIT`].
#[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
static DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        let byte = b"0123456789abcdef"[digit];
        digits[byte as usize] = digit as u8;
        digits[byte.to_ascii_uppercase() as usize] = digit as u8;
        digit += 1;
    }
    digits
};

const NO_DIGIT: u8 = u8::MAX;

/// The value of two hexadecimal digits; none of a character in ASCII if they are
/// other bytes.
#[inline]
pub(super) fn pair(high: u8, low: u8) -> u32 {
    let digit = |byte| DIGITS.get(usize::from(byte)).copied().unwrap_or(NO_DIGIT);
    let (high, low) = (u32::from(digit(high)), u32::from(digit(low)));
    (high << 4) | low | ((low & 0xf0) << 4)
}

/// The digit that a byte is.
#[inline]
pub(super) fn digit(byte: u8, radix: u32) -> Option<u32> {
    let digit = DIGITS.get(usize::from(byte)).copied().unwrap_or(NO_DIGIT);
    Some(u32::from(digit)).filter(|digit| *digit < radix)
}

/// What a letter or sign after a backslash stands for in JSON (RFC 8259 section 7),
/// and in the strings of most languages.
#[inline]
pub(super) fn simple(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\'' | b'\\' | b'/' => byte,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

/// Reads the start of `text`.
#[inline]
pub(super) fn read(text: &[u8]) -> Option<Single> {
    let first = text.first().copied()?;
    let mut single = Single::literal(first);
    match first {
        b'%' => single.hexadecimal(text, 1, 2),
        b'\\' => single.backslash(text),
        b'&' => match single.byte(text, 1) {
            Some(b'#') => single.number(text),
            Some(letter) if letter.is_ascii_alphabetic() => single.name(text),
            _ => {}
        },
        _ => {}
    }
    Some(single)
}

/// Whether an escape may start with this byte.
#[inline]
pub(crate) fn may_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// A byte that the text stands for there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EscapeReading {
    /// Where the text continues.
    pub(crate) next: u16,
    pub(crate) byte: u8,
}

impl EscapeReading {
    /// A byte as itself.
    #[inline]
    pub(crate) fn literal(byte: u8) -> EscapeReading {
        EscapeReading { next: 1, byte }
    }

    /// A character beyond ASCII has no reading: no value has one.
    #[inline]
    pub(super) fn ascii(next: usize, value: u32) -> Option<EscapeReading> {
        let byte = u8::try_from(value).ok().filter(u8::is_ascii)?;
        let next = u16::try_from(next).ok()?;
        Some(EscapeReading { next, byte })
    }
}

const NONE: EscapeReading = EscapeReading { next: 0, byte: 0 };

/// How the start of `text` can be read other than as the byte itself, and in how many ways.
/// `None`: that takes a look at the whole (`readings.rs`).
#[inline]
pub(super) fn read_common(text: &[u8]) -> Option<([EscapeReading; 3], usize)> {
    match text {
        [b'%', rest @ ..] => percent(rest),
        [b'\\', rest @ ..] => backslash(rest),
        [b'&', rest @ ..] => reference(rest),
        [_, ..] => Some(none()),
        [] => None,
    }
}

fn none() -> ([EscapeReading; 3], usize) {
    ([NONE; 3], 0)
}

/// One escape that stands for this character, if it starts no other.
#[inline]
fn one(next: usize, value: u32) -> Option<([EscapeReading; 3], usize)> {
    let reading = EscapeReading::ascii(next, value)?;
    (!may_escape(reading.byte)).then_some(([reading, NONE, NONE], 1))
}

#[inline]
fn percent(rest: &[u8]) -> Option<([EscapeReading; 3], usize)> {
    let itself = EscapeReading {
        next: 3,
        byte: b'%',
    };
    match rest {
        [b'2', b'5', high, low, ..] => match EscapeReading::ascii(5, pair(*high, *low)) {
            Some(reading) => Some(([itself, reading, NONE], 2)),
            // Not a digit, independent of what follows.
            None if [*high, *low] == *b"%2" && rest.get(4) == Some(&b'5') => {
                Some(([itself, NONE, NONE], 1))
            }
            None => None,
        },
        // The second one may start an escape, but of no digit.
        [b'%', third, ..] if *third != b'3' && *third != b'4' && *third != b'6' => Some(none()),
        [high, low, ..] => one(3, pair(*high, *low)),
        _ => None,
    }
}

#[inline]
fn backslash(rest: &[u8]) -> Option<([EscapeReading; 3], usize)> {
    let itself = |next| EscapeReading { next, byte: b'\\' };
    match rest {
        [b'\\', b'\\', b'\\', ..] => Some(([itself(2), itself(3), itself(4)], 3)),
        [b'\\', b'\\', fourth, ..] if is_short(*fourth) => {
            Some(match simple(*fourth).and_then(simple) {
                Some(byte) => ([itself(2), itself(3), EscapeReading { next: 4, byte }], 3),
                None => ([itself(2), itself(3), NONE], 2),
            })
        }
        [b'\\', third, ..] if is_short(*third) => Some(match simple(*third) {
            Some(byte) => ([itself(2), EscapeReading { next: 3, byte }, NONE], 2),
            None => ([itself(2), NONE, NONE], 1),
        }),
        [b'\\', b'u', b'0', b'0', high, low, ..] => {
            let reading = EscapeReading::ascii(7, pair(*high, *low))?;
            // The first backslash may go on with the second's character.
            let ends = is_short(reading.byte) && simple(reading.byte).is_none();
            ends.then_some(([itself(2), reading, NONE], 2))
        }
        [b'u', b'0', b'0', high, low, ..] => one(6, pair(*high, *low)),
        [b'x', high, low, ..] => one(4, pair(*high, *low)),
        [letter, ..] => one(2, u32::from(simple(*letter)?)),
        [] => None,
    }
}

/// Whether this ends an escape with a backslash, or is not part of one.
#[inline]
fn is_short(byte: u8) -> bool {
    !may_escape(byte) && byte != b'u' && byte != b'x'
}

#[inline]
fn reference(rest: &[u8]) -> Option<([EscapeReading; 3], usize)> {
    // The second is the one without `;`.
    let named = |byte, next| {
        Some((
            [
                EscapeReading { next, byte },
                EscapeReading {
                    next: next - 1,
                    byte,
                },
                NONE,
            ],
            2,
        ))
    };
    match rest {
        [b'#', b'x', high, low, b';', ..] => one(6, pair(*high, *low)),
        [b'#', tens, ones, b';', ..] => one(5, digit(*tens, 10)? * 10 + digit(*ones, 10)?),
        [b'#', b'1', tens, ones, b';', ..] => {
            one(6, 100 + digit(*tens, 10)? * 10 + digit(*ones, 10)?)
        }
        [b'l', b't', b';', ..] => named(b'<', 4),
        [b'g', b't', b';', ..] => named(b'>', 4),
        [b'q', b'u', b'o', b't', b';', ..] => named(b'"', 6),
        // No name but `num` stands for what a reference continues with.
        [b'a', b'm', b'p', b';', b'&', letter, ..]
            if letter.is_ascii_alphabetic() && *letter != b'n' =>
        {
            named(b'&', 5)
        }
        _ => None,
    }
}

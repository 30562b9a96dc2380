//! One escape of percent-encoding, JSON or HTML, none of whose characters is escaped
//! itself: nearly all are such, and are read in one go.

use super::entities;
use super::reading::{Reading, may_escape};

/// Digits of a numeric character reference. HTML allows any number of zeros; the
/// text that is held back while one may go on is bounded.
pub(super) const MAX_DIGITS: u8 = 8;

/// Letters of the longest name in HTML.
const MAX_NAME_LETTERS: usize = 16;

/// The names that HTML knows without `;`, for compatibility.
const BARE: &[(&[u8], u8)] = &[
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"amp", b'&'),
    (b"quot", b'"'),
    (b"LT", b'<'),
    (b"GT", b'>'),
    (b"AMP", b'&'),
    (b"QUOT", b'"'),
];

/// What the start of a text can be read as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Single {
    /// The byte itself, the escape, and the escape without `;`.
    list: [Reading; 3],
    length: u8,
    pub(crate) end: End,
}

/// Where the escape was at its end, or was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// At a byte that settles it.
    Settled,
    /// At the text's end: what follows may go on with it.
    Short,
    /// At a byte that may begin an escape itself, which may go on with it.
    Nested,
}

impl Single {
    /// A byte as itself.
    #[inline]
    pub(super) fn literal(byte: u8) -> Single {
        Single {
            list: [Reading::literal(byte); 3],
            length: 1,
            end: End::Settled,
        }
    }

    /// What is behind the text's end.
    pub(super) const NONE: Single = Single {
        list: [Reading { next: 0, byte: 0 }; 3],
        length: 0,
        end: End::Short,
    };

    #[inline]
    pub(super) fn as_slice(&self) -> &[Reading] {
        self.list
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }

    /// All but the byte itself.
    #[inline]
    pub(super) fn escapes(&self) -> &[Reading] {
        self.as_slice().get(1..).unwrap_or_default()
    }

    #[inline]
    pub(super) fn into_iter(self) -> impl Iterator<Item = Reading> {
        self.list.into_iter().take(usize::from(self.length))
    }

    #[inline]
    fn add(&mut self, next: usize, value: u32) {
        if let Some(reading) = Reading::ascii(next, value)
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
            None => self.end = End::Short,
            Some(byte) if may_escape(byte) => self.end = End::Nested,
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
        let [b'l' | b'g' | b'a' | b'q' | b'L' | b'G' | b'A' | b'Q', ..] = letters else {
            return;
        };
        if let Some((name, byte)) = BARE.iter().find(|(name, _)| letters.starts_with(name)) {
            self.add(name.len() + 1, u32::from(*byte));
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

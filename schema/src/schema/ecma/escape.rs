//! What a backslash and the characters after it stand for.

use std::fmt::Write as _;

use super::Cursor;

type Ranges = &'static [(u32, u32)];

const DIGITS: Ranges = &[(0x30, 0x39)];
const WORD: Ranges = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
/// ECMA-262's `WhiteSpace` with its `LineTerminator`s.
const SPACE: Ranges = &[
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
];
/// Half of a surrogate pair: no text has one.
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);

/// `\d`, `\w`, `\s`, and what matches all else: `\D`, `\W`, `\S`.
pub(super) struct ClassEscape {
    ranges: Ranges,
    negated: bool,
}

impl ClassEscape {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Option<Self> {
        let (ranges, negated) = match cursor.peek()? {
            'd' => (DIGITS, false),
            'D' => (DIGITS, true),
            'w' => (WORD, false),
            'W' => (WORD, true),
            's' => (SPACE, false),
            'S' => (SPACE, true),
            _ => return None,
        };
        cursor.next();
        Some(Self { ranges, negated })
    }

    pub(super) fn push_ranges(&self, out: &mut String) {
        if !self.negated {
            for (first, last) in self.ranges {
                push_range(*first, *last, out);
            }
            return;
        }
        let mut next = 0;
        for (first, last) in self.ranges {
            if next < *first {
                push_range(next, first - 1, out);
            }
            next = last + 1;
        }
        push_range(next, u32::from(char::MAX), out);
    }
}

pub(super) enum Escape<'p> {
    /// `\b` or `\B`, in the syntax of the engine.
    Boundary(&'static str),
    Class(ClassEscape),
    /// `p{…}` or `P{…}`, which the engine reads alike.
    Property(&'p str),
    /// A code point, possibly half of a surrogate pair.
    Character(u32),
}

impl<'p> Escape<'p> {
    /// Reads what follows a backslash.
    pub(super) fn read(cursor: &mut Cursor<'p>) -> Result<Self, String> {
        if let Some(class) = ClassEscape::read(cursor) {
            return Ok(Self::Class(class));
        }
        if matches!(cursor.peek(), Some('p' | 'P')) {
            return property(cursor).map(Self::Property);
        }
        let c = cursor.next().ok_or("a `\\` at the end")?;
        match c {
            // Words are of ASCII letters.
            'b' => Ok(Self::Boundary(r"(?-u:\b)")),
            'B' => Ok(Self::Boundary(r"(?-u:\B)")),
            'k' => Err("a back-reference `\\k`".to_owned()),
            '1'..='9' => Err(format!("a back-reference `\\{c}`")),
            c => character(c, cursor).map(Self::Character),
        }
    }
}

/// The code point of an escape whose first character is read.
pub(super) fn character(c: char, cursor: &mut Cursor<'_>) -> Result<u32, String> {
    let invalid = || format!("an invalid escape `\\{c}`");
    Ok(match c {
        't' => 0x09,
        'n' => 0x0A,
        'v' => 0x0B,
        'f' => 0x0C,
        'r' => 0x0D,
        '0' if !cursor.peek().is_some_and(|c| c.is_ascii_digit()) => 0,
        'c' => {
            let letter = cursor.next().filter(char::is_ascii_alphabetic);
            u32::from(letter.ok_or_else(invalid)?) % 32
        }
        'x' => cursor.hex(2).ok_or_else(invalid)?,
        'u' => unicode(cursor).ok_or_else(invalid)?,
        c if !c.is_alphanumeric() => u32::from(c),
        _ => return Err(invalid()),
    })
}

/// The code point after `\u`: `{…}`, four digits, or a surrogate pair of two such.
fn unicode(cursor: &mut Cursor<'_>) -> Option<u32> {
    if cursor.eat("{") {
        let digits = cursor.until('}')?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u32::from_str_radix(digits, 16).ok().filter(|_| plain)?;
        return (value <= u32::from(char::MAX)).then_some(value);
    }
    let lead = cursor.hex(4)?;
    let mut ahead = cursor.clone();
    if (0xD800..=0xDBFF).contains(&lead)
        && ahead.eat("\\u")
        && let Some(trail @ 0xDC00..=0xDFFF) = ahead.hex(4)
    {
        *cursor = ahead;
        return Some(0x1_0000 + ((lead - 0xD800) << 10) + (trail - 0xDC00));
    }
    Some(lead)
}

/// `p{…}` or `P{…}`: a name, or a name with a value.
pub(super) fn property<'p>(cursor: &mut Cursor<'p>) -> Result<&'p str, String> {
    let start = cursor.clone();
    cursor.next();
    let words = match cursor.eat("{") {
        true => cursor.until('}').unwrap_or_default(),
        false => "",
    };
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if !words.splitn(2, '=').all(word) {
        return Err("a `\\p` without the name of a property in braces".to_owned());
    }
    Ok(start.up_to(cursor))
}

/// A range, without surrogates.
pub(super) fn push_range(first: u32, last: u32, out: &mut String) {
    let (lead, trail) = SURROGATES;
    for (first, last) in [(first, last.min(lead - 1)), (first.max(trail + 1), last)] {
        if first > last {
            continue;
        }
        push_code(first, out);
        if first < last {
            out.push('-');
            push_code(last, out);
        }
    }
}

fn push_code(code: u32, out: &mut String) {
    match char::from_u32(code) {
        Some(c) if c.is_ascii_alphanumeric() => out.push(c),
        _ => {
            let _ = write!(out, "\\u{{{code:X}}}");
        }
    }
}

//! Translates escapes (a backslash and the characters after it) and classes (`[…]`). The characters
//! of a class are written as ranges, since `&&` and similar sequences have a meaning in the
//! engine's syntax but not in ECMA-262.

use std::fmt::Write as _;

use super::{ANYTHING, Cursor, NOTHING};

/// ECMA-262's `WhiteSpace` with its `LineTerminator`s, as the inside of a class.
const SPACE: &str = r"\u{9}-\u{D}\u{20}\u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";
/// The halves of surrogate pairs, which no text contains.
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);

pub(super) enum Escape {
    /// `\b` or `\B`, in the syntax of the engine.
    Boundary(&'static str),
    /// `\d`, `\w`, `\s` or `\p{…}`, or the opposite of one, in the syntax of the engine.
    Class(String),
    /// A code point, possibly half of a surrogate pair.
    Character(u32),
}

impl Escape {
    /// Reads an escape, whose backslash is already read.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, String> {
        let c = cursor.next().ok_or("a `\\` at the end")?;
        Ok(match c {
            'd' => Self::Class("[0-9]".to_owned()),
            'D' => Self::Class("[^0-9]".to_owned()),
            'w' => Self::Class("[0-9A-Z_a-z]".to_owned()),
            'W' => Self::Class("[^0-9A-Z_a-z]".to_owned()),
            's' => Self::Class(format!("[{SPACE}]")),
            'S' => Self::Class(format!("[^{SPACE}]")),
            'p' | 'P' => Self::Class(property(c, cursor)?),
            // Only ASCII characters count as word characters.
            'b' => Self::Boundary(r"(?-u:\b)"),
            'B' => Self::Boundary(r"(?-u:\B)"),
            'k' => return Err("a back-reference `\\k`".to_owned()),
            '1'..='9' => return Err(format!("a back-reference `\\{c}`")),
            c => Self::Character(character(c, cursor)?),
        })
    }
}

/// Translates a class, whose `[` is already read.
pub(super) fn class(cursor: &mut Cursor<'_>, out: &mut String) -> Result<(), String> {
    const HYPHEN: u32 = 0x2D;
    let negated = cursor.eat("^");
    let mut items = String::new();
    while let Some(atom) = atom(cursor)? {
        if !cursor.starts_with("-") || cursor.starts_with("-]") {
            push_atom(&atom, &mut items);
            continue;
        }
        cursor.next();
        let end = self::atom(cursor)?.ok_or("a class that is not closed")?;
        match (&atom, &end) {
            (Escape::Character(first), Escape::Character(last)) if first <= last => {
                push_range(*first, *last, &mut items);
            }
            (Escape::Character(_), Escape::Character(_)) => {
                return Err("a range that ends before it starts".to_owned());
            }
            // A class like `\w` can't be the end of a range, so the hyphen is literal.
            _ => {
                push_atom(&atom, &mut items);
                push_range(HYPHEN, HYPHEN, &mut items);
                push_atom(&end, &mut items);
            }
        }
    }
    match (items.is_empty(), negated) {
        (true, true) => out.push_str(ANYTHING),
        (true, false) => out.push_str(NOTHING),
        (false, _) => {
            out.push_str(if negated { "[^" } else { "[" });
            out.push_str(&items);
            out.push(']');
        }
    }
    Ok(())
}

/// The next atom; `None` at the end of the class. A class has no back-references and no boundaries,
/// so `\b` is a character.
fn atom(cursor: &mut Cursor<'_>) -> Result<Option<Escape>, String> {
    let c = cursor.next().ok_or("a class that is not closed")?;
    Ok(match c {
        ']' => None,
        '\\' if cursor.eat("b") => Some(Escape::Character(0x08)),
        '\\' if cursor.peek().is_some_and(|c| "Bk123456789".contains(c)) => {
            let c = cursor.next().unwrap_or_default();
            Some(Escape::Character(character(c, cursor)?))
        }
        '\\' => Some(Escape::read(cursor)?),
        c => Some(Escape::Character(u32::from(c))),
    })
}

fn push_atom(atom: &Escape, out: &mut String) {
    match atom {
        Escape::Boundary(text) => out.push_str(text),
        Escape::Class(text) => out.push_str(text),
        Escape::Character(code) => push_range(*code, *code, out),
    }
}

/// The code point of an escape, whose first character is already read.
fn character(c: char, cursor: &mut Cursor<'_>) -> Result<u32, String> {
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

/// The code point after `\u`: `{…}`, four digits, or a surrogate pair of two escapes.
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

/// Reads the rest of `\p{…}` or `\P{…}` after the letter: the name of a property, or a name with a
/// value. The engine has the same syntax.
fn property(c: char, cursor: &mut Cursor<'_>) -> Result<String, String> {
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
    Ok(format!("\\{c}{{{words}}}"))
}

/// Writes a range, without surrogates.
fn push_range(first: u32, last: u32, out: &mut String) {
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

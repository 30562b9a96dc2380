//! Classes: `[…]`, and escapes such as `\d`. All are written as ranges: in the engine's syntax a class within a class,
//! `&&` and the like have a meaning that they don't have in ECMA-262.

use std::fmt::Write as _;

use super::cursor::Cursor;
use super::escape::{character, property};
use super::{ANYTHING, NOTHING};

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

enum Atom<'p> {
    Character(u32),
    Class(ClassEscape),
    Property(&'p str),
}

/// Translates a class whose `[` is read.
pub(super) fn translate(cursor: &mut Cursor<'_>, out: &mut String) -> Result<(), String> {
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
            (Atom::Character(first), Atom::Character(last)) if first <= last => {
                push_range(*first, *last, &mut items);
            }
            (Atom::Character(_), Atom::Character(_)) => {
                return Err("a range that ends before it starts".to_owned());
            }
            // A class has no first and no last character: the hyphen stands for itself.
            _ => {
                push_atom(&atom, &mut items);
                push_atom(&Atom::Character(u32::from('-')), &mut items);
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

/// The next atom; `None` at the end of the class.
fn atom<'p>(cursor: &mut Cursor<'p>) -> Result<Option<Atom<'p>>, String> {
    let c = cursor.next().ok_or("a class that is not closed")?;
    match c {
        ']' => return Ok(None),
        '\\' => {}
        c => return Ok(Some(Atom::Character(u32::from(c)))),
    }
    if let Some(class) = ClassEscape::read(cursor) {
        return Ok(Some(Atom::Class(class)));
    }
    if matches!(cursor.peek(), Some('p' | 'P')) {
        return Ok(Some(Atom::Property(property(cursor)?)));
    }
    let code = match cursor.next().ok_or("a `\\` at the end")? {
        'b' => 0x08,
        c => character(c, cursor)?,
    };
    Ok(Some(Atom::Character(code)))
}

fn push_atom(atom: &Atom<'_>, out: &mut String) {
    match atom {
        Atom::Character(code) => push_range(*code, *code, out),
        Atom::Class(class) => class.push_ranges(out),
        Atom::Property(text) => {
            out.push('\\');
            out.push_str(text);
        }
    }
}

/// A range, without surrogates.
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

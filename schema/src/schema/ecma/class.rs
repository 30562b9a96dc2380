//! Classes: `[…]`. All are written as ranges: in the engine's syntax a class within a class, `&&` and the like have a
//! meaning that they don't have in ECMA-262.

use super::escape::{ClassEscape, character, property, push_range};
use super::{ANYTHING, Cursor, NOTHING};

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

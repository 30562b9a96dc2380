//! Patterns of JSON Schema are regular expressions of ECMA-262 with the flag `u`. This module
//! translates them to the syntax of the validator's engine, in which `.`, `\b`, `\<` and others
//! differ, and refuses constructs that the engine does not have.
//!
//! Unpaired brackets and braces, and a hyphen after a class escape, are literal, as without that
//! flag.

mod escape;

#[cfg(test)]
mod tests;

use escape::Escape;

/// The translation of `.`: all characters except ECMA-262's line terminators.
const DOT: &str = r"[^\n\r\u{2028}\u{2029}]";
const ANYTHING: &str = r"[\u{0}-\u{10FFFF}]";
const NOTHING: &str = r"[^\u{0}-\u{10FFFF}]";

/// Translates a pattern.
///
/// # Errors
/// The part of the pattern that is not ECMA-262 or can't be matched in linear time.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        cursor: Cursor::new(pattern),
        out: String::with_capacity(pattern.len()),
        groups: Vec::new(),
        dot_all: false,
        repeatable: false,
    };
    while let Some(c) = translator.cursor.next() {
        translator.term(c)?;
    }
    match translator.groups.is_empty() {
        true => Ok(translator.out),
        false => Err("a group that is not closed".to_owned()),
    }
}

struct Translator<'p> {
    cursor: Cursor<'p>,
    out: String,
    /// For each open group, whether `.` matched line terminators outside it.
    groups: Vec<bool>,
    /// Whether `.` matches line terminators.
    dot_all: bool,
    /// Whether a quantifier may follow.
    repeatable: bool,
}

impl Translator<'_> {
    fn term(&mut self, c: char) -> Result<(), String> {
        let repeatable = std::mem::replace(&mut self.repeatable, true);
        match c {
            '.' if self.dot_all => self.out.push_str(ANYTHING),
            '.' => self.out.push_str(DOT),
            '\\' => self.escape()?,
            '[' => escape::class(&mut self.cursor, &mut self.out)?,
            '(' => {
                self.open()?;
                self.repeatable = false;
            }
            ')' => {
                let outside = self.groups.pop();
                self.dot_all = outside.ok_or("a `)` without `(`")?;
                self.out.push(c);
            }
            '^' | '$' | '|' => {
                self.out.push(c);
                self.repeatable = false;
            }
            '*' | '+' | '?' => self.quantifier(c.encode_utf8(&mut [0; 4]), repeatable)?,
            '{' => match self.cursor.braces() {
                Some(braces) => self.quantifier(&format!("{{{braces}"), repeatable)?,
                None => push_literal('{', &mut self.out),
            },
            c => push_literal(c, &mut self.out),
        }
        Ok(())
    }

    fn quantifier(&mut self, text: &str, repeatable: bool) -> Result<(), String> {
        if !repeatable {
            return Err(format!("a quantifier `{text}` with nothing to repeat"));
        }
        self.out.push_str(text);
        if self.cursor.eat("?") {
            self.out.push('?');
        }
        self.repeatable = false;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        match Escape::read(&mut self.cursor)? {
            Escape::Boundary(text) => {
                self.out.push_str(text);
                self.repeatable = false;
            }
            Escape::Class(text) => self.out.push_str(&text),
            Escape::Character(code) => match char::from_u32(code) {
                Some(c) => push_literal(c, &mut self.out),
                // No text contains half of a surrogate pair, so nothing matches it.
                None => self.out.push_str(NOTHING),
            },
        }
        Ok(())
    }

    /// Opens a group, whose `(` is already read. The group's name is dropped, since nothing refers
    /// to it.
    fn open(&mut self) -> Result<(), String> {
        self.groups.push(self.dot_all);
        if !self.cursor.eat("?") {
            self.out.push('(');
            return Ok(());
        }
        for (opening, construct) in [
            ("=", "a look-ahead `(?=`"),
            ("!", "a look-ahead `(?!`"),
            ("<=", "a look-behind `(?<=`"),
            ("<!", "a look-behind `(?<!`"),
        ] {
            if self.cursor.eat(opening) {
                return Err(construct.to_owned());
            }
        }
        if self.cursor.eat("<") {
            self.cursor.group_name()?;
            self.out.push('(');
            return Ok(());
        }
        self.modifiers()
    }

    /// Reads `:`, or modifiers as in `ims-ims:` (ES2025).
    fn modifiers(&mut self) -> Result<(), String> {
        let mut seen = String::new();
        let mut sets = true;
        self.out.push_str("(?");
        while !self.cursor.eat(":") {
            match self.cursor.next() {
                Some('-') if sets => sets = false,
                Some(c @ ('i' | 's')) if !seen.contains(c) => {
                    seen.push(c);
                    if c == 's' {
                        self.dot_all = sets;
                        continue;
                    }
                    self.out.push_str(if sets { "i" } else { "-i" });
                }
                // `m` can't be translated: the engine has one line terminator, ECMA-262 has four.
                Some('m') => return Err("the modifier `m`".to_owned()),
                Some(c) => return Err(format!("`(?` before `{c}`")),
                None => return Err("a group that is not closed".to_owned()),
            }
        }
        self.out.push(':');
        Ok(())
    }
}

/// Writes a literal character outside a class.
fn push_literal(c: char, out: &mut String) {
    if r"\^$.*+?()[]{}|".contains(c) {
        out.push('\\');
    }
    out.push(c);
}

/// A cursor over a pattern, with readers for parts of the syntax that are used in several places.
#[derive(Clone)]
pub(super) struct Cursor<'p> {
    rest: &'p str,
}

impl<'p> Cursor<'p> {
    fn new(pattern: &'p str) -> Self {
        Self { rest: pattern }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut rest = self.rest.chars();
        let c = rest.next();
        self.rest = rest.as_str();
        c
    }

    fn starts_with(&self, text: &str) -> bool {
        self.rest.starts_with(text)
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads the text up to `end`, and `end` itself.
    fn until(&mut self, end: char) -> Option<&'p str> {
        let (text, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(text)
    }

    /// Reads exactly `digits` hexadecimal digits.
    fn hex(&mut self, digits: usize) -> Option<u32> {
        let (text, rest) = self.rest.split_at_checked(digits)?;
        let plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u32::from_str_radix(text, 16).ok().filter(|_| plain)?;
        self.rest = rest;
        Some(value)
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`, whose `{` is already read. If another text follows, nothing
    /// is read.
    fn braces(&mut self) -> Option<&'p str> {
        let (inner, rest) = self.rest.split_once('}')?;
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
        if !number(least) || !(most.is_empty() || number(most)) {
            return None;
        }
        let braces = self.rest.get(..=inner.len())?;
        self.rest = rest;
        Some(braces)
    }

    /// Reads the name of a group, whose `<` is already read.
    fn group_name(&mut self) -> Result<&'p str, String> {
        let name = self.until('>').unwrap_or_default();
        let fits = |c: char| c.is_alphanumeric() || "$_\\{}\u{200C}\u{200D}".contains(c);
        let first = name.chars().next();
        if first.is_none_or(char::is_numeric) || !name.chars().all(fits) {
            return Err("a group with an invalid name".to_owned());
        }
        Ok(name)
    }
}

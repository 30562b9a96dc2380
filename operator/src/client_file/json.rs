//! The entry in JSON, with or without comments. Its place is found in a copy of the text in which
//! comments and trailing commas are replaced by spaces. The copy has the same length, so offsets in
//! it are valid in the client's text.

use std::ops::Range;

use serde::Serialize as _;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Deserializer, Value};

use super::{ClientFileForm, ServerEntry};
use crate::lasting_changes::{newline, replaced};

/// The indentation of a file that has none.
const INDENT: &str = "  ";

pub(super) fn parse(form: ClientFileForm, text: &str) -> Result<Value, String> {
    serde_json::from_str(&plain(form, text)).map_err(|error| error.to_string())
}

/// Returns the text with the entry; `None` if the entry can't be added or replaced. [`parse`] must
/// accept the text.
pub(super) fn put(entry: &ServerEntry<'_>, text: &str) -> Option<String> {
    let newline = newline(text);
    if text.trim_ascii().is_empty() {
        let block = serde_json::json!({ entry.table: { entry.name: entry.value } });
        return Some(format!("{}\n", pretty(&block, INDENT)?));
    }
    let plain = plain(entry.form, text);
    let open = skip(&plain, 0);
    let root = object(&plain, open)?;
    let unit = root
        .first()
        .and_then(|first| indent_before(text, first.key.start))
        .filter(|unit| !unit.is_empty())
        .unwrap_or(INDENT);
    let target = |open, members| Target {
        text,
        newline,
        unit,
        open,
        members,
    };
    let Some(servers) = only(&root, entry.table)? else {
        let block = serde_json::json!({ entry.name: entry.value });
        return target(open, &root).with(entry.table, &block);
    };
    let members = object(&plain, servers.value.start)?;
    let target = target(servers.value.start, &members);
    match only(&members, entry.name)? {
        None => target.with(entry.name, entry.value),
        Some(old) => {
            let value = target.value(entry.value, indent_before(text, old.key.start))?;
            replaced(text, &old.value, &value)
        }
    }
}

/// An object of the text to which a member is added.
struct Target<'a> {
    text: &'a str,
    newline: &'a str,
    unit: &'a str,
    /// The offset of its `{`.
    open: usize,
    members: &'a [Member],
}

impl Target<'_> {
    /// Returns the text with one more member, after the last one.
    fn with(&self, key: &str, value: &Value) -> Option<String> {
        let (text, newline) = (self.text, self.newline);
        let key = Value::from(key);
        if let (Some(first), Some(last)) = (self.members.first(), self.members.last()) {
            let indent = indent_before(text, first.key.start);
            let value = self.value(value, indent)?;
            let added = match indent {
                Some(indent) => format!(",{newline}{indent}{key}: {value}"),
                None => format!(", {key}: {value}"),
            };
            return replaced(text, &(last.value.end..last.value.end), &added);
        }
        // The object is empty. The member goes after `{`, before any comment.
        let line = text.get(..self.open)?.rsplit('\n').next()?;
        let base = indent_of(line);
        let indent = format!("{base}{}", self.unit);
        let value = self.value(value, Some(&indent))?;
        let inside = self.open.checked_add(1)?;
        let rest = text.get(inside..)?;
        let between = rest.get(..rest.find('}')?)?;
        let end = match between.contains('\n') {
            true => String::new(),
            false => format!("{newline}{base}"),
        };
        let added = format!("{newline}{indent}{key}: {value}{end}");
        // If there are only spaces between the braces, they are replaced.
        let blank = between.chars().all(|c| c == ' ');
        let until = inside.checked_add(if blank { between.len() } else { 0 })?;
        replaced(text, &(inside..until), &added)
    }

    /// Formats a value with the file's indentation. `indent` is the white space before its key;
    /// `None` if the key does not start a line: then the value is formatted on one line.
    fn value(&self, value: &Value, indent: Option<&str>) -> Option<String> {
        let Some(indent) = indent else {
            return Some(value.to_string());
        };
        let lines = pretty(value, self.unit)?;
        Some(lines.replace('\n', &format!("{}{indent}", self.newline)))
    }
}

fn pretty(value: &Value, unit: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = Serializer::with_formatter(&mut bytes, formatter);
    value.serialize(&mut serializer).ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns the white space between the start of the line and this offset; `None` if the line has
/// other text before the offset, or is the first line.
fn indent_before(text: &str, at: usize) -> Option<&str> {
    let (line, indent) = text
        .get(..at)?
        .rsplit_once('\n')
        .map(|(_, line)| (line, indent_of(line)))?;
    (line == indent).then_some(indent)
}

fn indent_of(line: &str) -> &str {
    let rest = line.trim_start_matches([' ', '\t']);
    line.strip_suffix(rest).unwrap_or_default()
}

/// Returns the member with this key; `None` if two members have it, since clients differ in which
/// one counts.
fn only<'m>(members: &'m [Member], key: &str) -> Option<Option<&'m Member>> {
    let mut named = members.iter().filter(|member| member.name == key);
    let first = named.next();
    named.next().is_none().then_some(first)
}

/// A member of an object, with the places of key and value.
struct Member {
    name: String,
    key: Range<usize>,
    value: Range<usize>,
}

/// The byte at this offset.
fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

/// The first offset from `at` on that is not white space.
fn skip(text: &str, mut at: usize) -> usize {
    while matches!(byte(text, at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// The JSON value at this offset, and its end.
fn read<T: DeserializeOwned>(text: &str, at: usize) -> Option<(T, usize)> {
    let mut values = Deserializer::from_str(text.get(at..)?).into_iter();
    let value = values.next()?.ok()?;
    Some((value, at.checked_add(values.byte_offset())?))
}

/// The members of the object that starts at `open`; `None` if none starts there.
fn object(text: &str, open: usize) -> Option<Vec<Member>> {
    let mut members = Vec::new();
    if byte(text, open)? != b'{' {
        return None;
    }
    let mut at = skip(text, open + 1);
    while byte(text, at)? != b'}' {
        let (name, end) = read(text, at)?;
        let key = at..end;
        let start = skip(text, skip(text, end) + 1);
        let (_, end) = read::<IgnoredAny>(text, start)?;
        members.push(Member {
            name,
            key,
            value: start..end,
        });
        at = skip(text, end);
        if byte(text, at)? == b',' {
            at = skip(text, at + 1);
        }
    }
    Some(members)
}

/// Replaces with spaces the comments and trailing commas that the form allows.
fn plain(form: ClientFileForm, text: &str) -> String {
    if form == ClientFileForm::Json {
        return text.to_owned();
    }
    let mut plain = text.as_bytes().to_vec();
    let blank = |plain: &mut Vec<u8>, range: Range<usize>| {
        for byte in plain.get_mut(range).into_iter().flatten() {
            if !matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    };
    let mut at = 0;
    let mut comma = None;
    while let Some(found) = byte(text, at) {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let comment = if rest.starts_with(b"//") {
            let end = rest.iter().position(|byte| *byte == b'\n');
            Some(end.unwrap_or(rest.len()))
        } else if rest.starts_with(b"/*") {
            let end = rest.windows(2).skip(2).position(|two| two == b"*/");
            let Some(end) = end else {
                // A comment without an end makes the text invalid.
                return text.to_owned();
            };
            Some(end + 4)
        } else {
            None
        };
        if let Some(length) = comment {
            blank(&mut plain, at..at + length);
            at += length;
            continue;
        }
        match found {
            b'}' | b']' => {
                if let Some(comma) = comma.take().filter(|_| form == ClientFileForm::Jsonc) {
                    blank(&mut plain, comma..comma + 1);
                }
            }
            b',' => comma = Some(at),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => comma = None,
        }
        at = match found {
            b'"' => read::<String>(text, at).map_or(text.len(), |(_, end)| end),
            _ => at + 1,
        };
    }
    // Only whole characters were replaced by spaces.
    String::from_utf8(plain).unwrap_or_default()
}

//! Strict JSON: the parser of every input, output and index document. Schemas are checked
//! elsewhere.
//!
//! JSON does not define the meaning of duplicate keys, huge integers and deep nesting, so two
//! readers could see different documents. This parser refuses all three.

mod located;
mod parse;
pub mod weight;

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use serde_json::{Map, Number, Value};

use crate::diagnostic::{Code, Diagnostic, Position};

pub use located::located;
pub use parse::{Breach, JsonRules, inspect, parse, parse_within, read_part};

/// The largest integer that a double holds exactly together with its neighbours: 2^53 − 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// `serde_json`'s own limit on nested arrays and objects, which applies even if [`Limits::depth`]
/// is larger.
const PARSER_DEPTH: usize = 127;

/// The limits of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of the text in bytes, checked before parsing.
    pub bytes: usize,
    /// Nested arrays and objects; a scalar has depth 0. At most 127.
    pub depth: usize,
    /// The total number of values: scalars, arrays and objects, not keys. This limits the memory of
    /// the parsed value, which for small values is about fifty times the size of the text.
    pub values: usize,
}

impl Default for Limits {
    /// 1 MiB, 64 levels, 250,000 values.
    fn default() -> Self {
        Limits {
            bytes: 1 << 20,
            depth: 64,
            values: 250_000,
        }
    }
}

/// The rule that a text broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// Not JSON (RFC 8259), or not UTF-8.
    Syntax,
    /// There is more text after the value.
    TrailingData,
    /// A key occurs twice in one object.
    DuplicateKey,
    /// More levels than [`Limits::depth`].
    TooDeep,
    /// More bytes than [`Limits::bytes`].
    TooLarge,
    /// More values than [`Limits::values`].
    TooMany,
    /// More memory than [`parse_within`] may use.
    TooMuchMemory,
    /// An integer outside ±(2^53 − 1).
    IntegerRange,
    /// A key that serde_json reserves for internal use.
    ReservedKey,
}

/// The error for a text that is not accepted as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (line {line}, column {column})")]
pub struct JsonError {
    /// The broken rule.
    pub kind: JsonErrorKind,
    /// The expected and the found value, without the place.
    pub message: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1. For a value that was not parsed from text, line and column are 1.
    pub column: u32,
}

impl JsonError {
    /// Stable kebab-case code.
    pub fn code(&self) -> &'static str {
        self.info().code
    }

    /// The finding for a file with this text. The finding's column counts characters.
    pub fn diagnostic(&self, file: &str, text: &[u8]) -> Diagnostic {
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let before = lines.take(usize::try_from(self.line - 1).unwrap_or(usize::MAX));
        let start: usize = before.map(<[u8]>::len).sum();
        let column = usize::try_from(self.column - 1).unwrap_or(usize::MAX);
        let at = Position::of_offset(text, start.saturating_add(column));
        Diagnostic::new(self.info(), file, at, self.message.clone())
    }

    /// The table row of its code.
    pub fn info(&self) -> &'static Code {
        use crate::codes as c;
        match self.kind {
            JsonErrorKind::Syntax => &c::JSON_SYNTAX,
            JsonErrorKind::TrailingData => &c::JSON_TRAILING_DATA,
            JsonErrorKind::DuplicateKey => &c::JSON_DUPLICATE_KEY,
            JsonErrorKind::TooDeep => &c::JSON_TOO_DEEP,
            JsonErrorKind::TooLarge => &c::JSON_TOO_LARGE,
            JsonErrorKind::TooMany | JsonErrorKind::TooMuchMemory => &c::JSON_TOO_MANY,
            JsonErrorKind::IntegerRange => &c::JSON_INTEGER_RANGE,
            JsonErrorKind::ReservedKey => &c::JSON_RESERVED_KEY,
        }
    }

    fn new(
        kind: JsonErrorKind,
        message: impl Into<String>,
        (line, column): (usize, usize),
    ) -> Self {
        let place = |n: usize| u32::try_from(n.max(1)).unwrap_or(u32::MAX);
        JsonError {
            kind,
            message: message.into(),
            line: place(line),
            column: place(column),
        }
    }
}

/// Checks an already built value against the rules of [`parse`].
///
/// # Errors
/// The first broken rule; the place is always 1:1.
pub fn check(value: &Value, limits: &Limits) -> Result<(), JsonError> {
    measure(value, limits).map(|_| ())
}

/// The size of a value that is within the limits.
#[derive(Debug)]
pub struct JsonSize {
    /// Bytes of its text.
    pub bytes: usize,
    /// The total number of values.
    pub values: usize,
}

/// As [`check`]; also returns how much of the limits the value takes.
///
/// # Errors
/// As [`check`].
pub fn measure(value: &Value, limits: &Limits) -> Result<JsonSize, JsonError> {
    let mut values = limits.values;
    check_level(value, limits.depth, &mut values, limits)?;
    let mut counter = Counter { left: limits.bytes };
    serde_json::to_writer(&mut counter, value)
        .map_err(|_| too_large(limits.bytes.saturating_add(1), limits))?;
    Ok(JsonSize {
        bytes: limits.bytes.saturating_sub(counter.left),
        values: limits.values.saturating_sub(values),
    })
}

fn check_level(
    value: &Value,
    left: usize,
    values: &mut usize,
    limits: &Limits,
) -> Result<(), JsonError> {
    *values = values
        .checked_sub(1)
        .ok_or_else(|| too_many(limits, (1, 1)))?;
    let below = || left.checked_sub(1).ok_or_else(|| too_deep(limits, (1, 1)));
    match value {
        Value::Number(number) if !number_in_range(number) => Err(JsonError::new(
            JsonErrorKind::IntegerRange,
            integer_message(number),
            (1, 1),
        )),
        Value::Array(items) => {
            let left = below()?;
            items
                .iter()
                .try_for_each(|item| check_level(item, left, values, limits))
        }
        Value::Object(members) => {
            let left = below()?;
            members.iter().try_for_each(|(key, item)| {
                if is_reserved(key) {
                    let message = reserved_message(key);
                    return Err(JsonError::new(JsonErrorKind::ReservedKey, message, (1, 1)));
                }
                check_level(item, left, values, limits)
            })
        }
        _ => Ok(()),
    }
}

/// The items of an array, the values of an object's members, or nothing.
pub fn parts(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().into_iter().flatten();
    items.chain(value.as_object().into_iter().flat_map(Map::values))
}

/// The name of a value's type for messages, with its article.
pub fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// Whether a number is a float, or an integer within ±[`MAX_SAFE_INTEGER`].
pub fn number_in_range(number: &Number) -> bool {
    match (number.as_u64(), number.as_i64()) {
        (Some(positive), _) => positive <= MAX_SAFE_INTEGER,
        (None, Some(negative)) => negative.unsigned_abs() <= MAX_SAFE_INTEGER,
        (None, None) => true,
    }
}

/// Whether `serde_json` reserves a key. With the feature `raw_value`, which other crates enable, an
/// object with such a key is replaced by the JSON in the key's text value: a second document that
/// no schema has checked and no person has seen.
fn is_reserved(key: &str) -> bool {
    key.starts_with("$serde_json::private::")
}

fn reserved_message(key: &str) -> String {
    format!("expected a key that the parser does not keep for itself, found {key:?}")
}

fn twice_message(key: &str) -> String {
    format!("expected each key once, found {key:?} twice in one object")
}

fn integer_message(number: impl fmt::Display) -> String {
    format!(
        "expected an integer from -(2^53-1) to 2^53-1, found {number}; send larger ones as strings"
    )
}

fn too_large(found: usize, limits: &Limits) -> JsonError {
    let message = format!(
        "expected at most {} bytes of JSON, found {found}",
        limits.bytes
    );
    JsonError::new(JsonErrorKind::TooLarge, message, (1, 1))
}

fn too_deep(limits: &Limits, place: (usize, usize)) -> JsonError {
    let message = format!(
        "expected at most {} nested arrays and objects, found more",
        limits.depth.min(PARSER_DEPTH)
    );
    JsonError::new(JsonErrorKind::TooDeep, message, place)
}

fn too_many(limits: &Limits, place: (usize, usize)) -> JsonError {
    let message = format!("expected at most {} values, found more", limits.values);
    JsonError::new(JsonErrorKind::TooMany, message, place)
}

/// Whether the text of a value has at most this many bytes.
pub fn is_within(value: &Value, bytes: usize) -> bool {
    serde_json::to_writer(Counter { left: bytes }, value).is_ok()
}

struct Counter {
    left: usize,
}

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The texts and numbers within a value, each once, without the names of members.
pub fn texts(value: &Value) -> BTreeSet<String> {
    fn add(value: &Value, all: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => {
                all.insert(text.clone());
            }
            Value::Number(number) => {
                all.insert(number.to_string());
            }
            other => parts(other).for_each(|part| add(part, all)),
        }
    }
    let mut all = BTreeSet::new();
    add(value, &mut all);
    all
}

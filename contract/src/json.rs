//! Strict JSON: what every input, output and index document is parsed with. Not a schema check.
//!
//! JSON leaves open what duplicate keys, huge integers and deep nesting mean, and two readers that
//! choose differently see two documents. Here they are refused.

mod error;
mod inspect;
pub mod weight;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::io;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

pub use error::{JsonError, JsonErrorKind};
pub use inspect::{Breach, Rules, inspect};

/// The largest integer that a double holds exactly together with its neighbours: 2^53 − 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// How deep `serde_json` follows arrays and objects, whatever [`Limits::depth`] says.
const PARSER_DEPTH: usize = 127;

/// What a document may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of the text in bytes, checked before parsing.
    pub bytes: usize,
    /// Nested arrays and objects; a scalar has depth 0. At most 127.
    pub depth: usize,
    /// Values in all: each scalar, array, object and member. Bounds the memory that the parsed
    /// value takes, which for small values is some fifty times that of the text.
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

/// Parses one JSON text.
///
/// # Errors
/// The first rule broken, with its place. Nothing is read beyond `limits.bytes`.
pub fn parse(text: &[u8], limits: &Limits) -> Result<Value, JsonError> {
    let mut unlimited = u64::MAX;
    parse_within(text, limits, &mut unlimited)
}

/// [`parse`], where the value may take at most `memory` bytes, from which what it takes is
/// subtracted. Counted as [`weight::value`] does: each place and text before it is made.
///
/// # Errors
/// As [`parse`]; [`JsonErrorKind::TooMuchMemory`] where the value takes more. `memory` is then
/// unchanged.
pub fn parse_within(text: &[u8], limits: &Limits, memory: &mut u64) -> Result<Value, JsonError> {
    if text.len() > limits.bytes {
        return Err(too_large(text.len(), limits));
    }
    let state = State {
        broken: Cell::new(None),
        huge: Cell::new(false),
        values: Cell::new(limits.values),
        memory: Cell::new(*memory),
        limits: *limits,
    };
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Seed {
        state: &state,
        left: limits.depth,
    }
    .deserialize(&mut reader)
    .map_err(|error| state.explain(&error))?;
    reader.end().map_err(|error| {
        let kind = if error.is_syntax() {
            JsonErrorKind::TrailingData
        } else {
            JsonErrorKind::Syntax
        };
        JsonError::new(
            kind,
            "expected the end of the text after the value, found more",
            (error.line(), error.column()),
        )
    })?;
    // serde_json reads an integer literal beyond 64 bits as a float: only the text can tell.
    if state.huge.get() {
        find_huge_integer(text)?;
    }
    *memory = state.memory.get();
    Ok(value)
}

/// Holds an already built value to the same rules as [`parse`].
///
/// # Errors
/// The first rule broken; the place is always 1:1.
pub fn check(value: &Value, limits: &Limits) -> Result<(), JsonError> {
    measure(value, limits).map(|_| ())
}

/// What a value within limits takes.
pub(crate) struct Spent {
    pub(crate) bytes: usize,
    pub(crate) values: usize,
}

/// [`check`], and how much of the limits the value takes.
pub(crate) fn measure(value: &Value, limits: &Limits) -> Result<Spent, JsonError> {
    let mut values = limits.values;
    check_level(value, limits.depth, &mut values, limits)?;
    let mut counter = Counter { left: limits.bytes };
    serde_json::to_writer(&mut counter, value)
        .map_err(|_| too_large(limits.bytes.saturating_add(1), limits))?;
    Ok(Spent {
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

/// Whether a number is a float, or an integer that a double holds exactly.
pub(crate) fn number_in_range(number: &Number) -> bool {
    match (number.as_u64(), number.as_i64()) {
        (Some(positive), _) => positive <= MAX_SAFE_INTEGER,
        (None, Some(negative)) => negative.unsigned_abs() <= MAX_SAFE_INTEGER,
        (None, None) => true,
    }
}

/// Whether `serde_json::Value` does not read a key as what it is. With the feature `raw_value`, which other
/// crates turn on, an object with such a key becomes whatever JSON its text holds: a second document that
/// no schema and no person has seen.
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

/// What the visitors note on the side: serde's error type carries only a text.
struct State {
    broken: Cell<Option<JsonErrorKind>>,
    huge: Cell<bool>,
    /// How many more values there may be.
    values: Cell<usize>,
    /// How many more bytes they may take.
    memory: Cell<u64>,
    limits: Limits,
}

impl State {
    fn refuse<E: serde::de::Error>(&self, kind: JsonErrorKind, message: impl fmt::Display) -> E {
        self.broken.set(Some(kind));
        E::custom(message)
    }

    fn take<E: serde::de::Error>(&self, bytes: u64) -> Result<(), E> {
        match self.memory.get().checked_sub(bytes) {
            Some(left) => self.memory.set(left),
            None => {
                let message = "expected values that take less memory, found more";
                return Err(self.refuse(JsonErrorKind::TooMuchMemory, message));
            }
        }
        Ok(())
    }

    fn explain(&self, error: &serde_json::Error) -> JsonError {
        let place = (error.line(), error.column());
        let text = error.to_string();
        // serde_json appends the place; ours is kept apart.
        let text = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(message, _)| message);
        match self.broken.get() {
            Some(JsonErrorKind::TooDeep) => too_deep(&self.limits, place),
            Some(JsonErrorKind::TooMany) => too_many(&self.limits, place),
            Some(kind) => JsonError::new(kind, text, place),
            None if text == "recursion limit exceeded" => too_deep(&self.limits, place),
            None => JsonError::new(
                JsonErrorKind::Syntax,
                format!("expected JSON, found: {text}"),
                place,
            ),
        }
    }
}

#[derive(Clone, Copy)]
struct Seed<'s> {
    state: &'s State,
    left: usize,
}

impl Seed<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Seed { left, ..self }),
            None => Err(self.state.refuse(JsonErrorKind::TooDeep, "too deep")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        match self.state.values.get().checked_sub(1) {
            Some(left) => self.state.values.set(left),
            None => return Err(self.state.refuse(JsonErrorKind::TooMany, "too many values")),
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value > MAX_SAFE_INTEGER {
            return Err(self
                .state
                .refuse(JsonErrorKind::IntegerRange, integer_message(value)));
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > MAX_SAFE_INTEGER {
            return Err(self
                .state
                .refuse(JsonErrorKind::IntegerRange, integer_message(value)));
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        if value.abs() >= 9.0e18 {
            self.state.huge.set(true);
        }
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.state.take(weight::string(value))?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.state.take(weight::string(&value))?;
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let seed = self.deeper()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(seed)? {
            self.state.take(weight::item(array.len()))?;
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let seed = self.deeper()?;
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if is_reserved(&key) {
                let message = reserved_message(&key);
                return Err(self.state.refuse(JsonErrorKind::ReservedKey, message));
            }
            let own = weight::entry(object.len());
            self.state.take(own.saturating_add(weight::string(&key)))?;
            if object.is_empty() {
                // `weight::entry` has counted these places.
                object = Map::with_capacity(weight::PLACES);
            }
            match object.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(members.next_value_seed(seed)?);
                }
                Entry::Occupied(taken) => {
                    let message = twice_message(taken.key());
                    return Err(self.state.refuse(JsonErrorKind::DuplicateKey, message));
                }
            }
        }
        Ok(Value::Object(object))
    }
}

/// Looks for an integer literal out of range in a text known to be JSON.
fn find_huge_integer(text: &[u8]) -> Result<(), JsonError> {
    let (mut line, mut line_start, mut at) = (1, 0, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\n' => {
                line += 1;
                line_start = at + 1;
            }
            b'"' => at = end_of_string(text, at),
            b'-' | b'0'..=b'9' => {
                let rest = text.get(at..).unwrap_or_default();
                let length = rest
                    .iter()
                    .take_while(|b| matches!(b, b'-' | b'+' | b'.' | b'0'..=b'9' | b'e' | b'E'))
                    .count();
                let token = rest.get(..length).unwrap_or_default();
                let digits = token.iter().filter(|b| b.is_ascii_digit()).count();
                // What fits into 64 bits was range-checked as a number.
                let integer = digits == token.len() - usize::from(byte == b'-');
                if integer && digits > 18 && !fits_64_bits(token) {
                    let literal: String = token.iter().take(40).map(|&b| char::from(b)).collect();
                    return Err(JsonError::new(
                        JsonErrorKind::IntegerRange,
                        integer_message(literal),
                        (line, at - line_start + 1),
                    ));
                }
                at += length.saturating_sub(1);
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

fn fits_64_bits(token: &[u8]) -> bool {
    let text = std::str::from_utf8(token).unwrap_or_default();
    text.parse::<u64>().is_ok() || text.parse::<i64>().is_ok()
}

/// The index of the quote that closes the string opened at `at`.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}
/// The texts and numbers within a value, each once; no names of members.
#[must_use]
pub fn texts(value: &Value) -> BTreeSet<String> {
    fn add(value: &Value, all: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => {
                all.insert(text.clone());
            }
            Value::Number(number) => {
                all.insert(number.to_string());
            }
            Value::Array(items) => items.iter().for_each(|item| add(item, all)),
            Value::Object(members) => members.values().for_each(|member| add(member, all)),
            Value::Null | Value::Bool(_) => {}
        }
    }
    let mut all = BTreeSet::new();
    add(value, &mut all);
    all
}

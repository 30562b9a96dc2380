//! The strict parser. It can also check a text on behalf of another parser, without building a
//! value; the rules may then apply to only a part of the text.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::{
    JsonError, JsonErrorKind, Limits, MAX_SAFE_INTEGER, PARSER_DEPTH, integer_message, is_reserved,
    reserved_message, too_deep, too_large, too_many, twice_message, weight,
};

/// Parses one JSON text.
///
/// # Errors
/// The first broken rule, with its place. A text longer than `limits.bytes` is not read.
pub fn parse(text: &[u8], limits: &Limits) -> Result<Value, JsonError> {
    let mut unlimited = u64::MAX;
    parse_within(text, limits, &mut unlimited)
}

/// As [`parse`], for a value of at most `memory` bytes. The bytes of the value are subtracted from
/// `memory`. They are counted as by [`weight::value`], and before they are allocated.
///
/// # Errors
/// As [`parse`]; [`JsonErrorKind::TooMuchMemory`] if the value takes more. `memory` is then
/// unchanged.
pub fn parse_within(text: &[u8], limits: &Limits, memory: &mut u64) -> Result<Value, JsonError> {
    if text.len() > limits.bytes {
        return Err(too_large(text.len(), limits));
    }
    let state = State::new(*limits, *memory);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let seed = state.seed::<true>(&JsonRules::Strict(""), limits.depth);
    let value = seed.deserialize(&mut reader);
    let value = value.map_err(|error| state.explain(&error))?;
    reader.end().map_err(|error| {
        let kind = match error.is_syntax() {
            true => JsonErrorKind::TrailingData,
            false => JsonErrorKind::Syntax,
        };
        let message = "expected the end of the text after the value, found more";
        JsonError::new(kind, message, (error.line(), error.column()))
    })?;
    // serde_json reads an integer literal beyond 64 bits as a float, so the text must be searched
    // for one.
    if state.huge.get() {
        find_huge_integer(text)?;
    }
    *memory = state.memory.get();
    Ok(value)
}

/// The rules for a value in a text that [`inspect`] checks.
#[derive(Clone, Copy, Debug)]
pub enum JsonRules<'r> {
    /// Each object may have a key only once, and no key that `serde_json` reserves. Integers may
    /// have up to 64 bits.
    Keys,
    /// The rules of [`parse`], without its [`Limits`]. The text is the part's name in a [`Breach`].
    Strict(&'static str),
    /// Rules for the members of an object, by name. [`JsonRules::Keys`] applies to all other
    /// members, and to a value that is not an object.
    Members(&'r [(&'r str, JsonRules<'r>)]),
}

/// A rule that a text broke, and the part of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The name of the [`JsonRules::Strict`] part; `None` outside such parts.
    pub part: Option<&'static str>,
    /// The rule, and its place in the whole text.
    pub error: JsonError,
}

/// Checks a text against rules without building a value. An integer beyond 64 bits is refused in
/// every part. Bytes and values are not limited; nesting beyond 127 levels is refused.
///
/// # Errors
/// The first rule broken, with its place.
pub fn inspect(text: &[u8], rules: &JsonRules<'_>) -> Result<(), Breach> {
    let state = State::new(UNLIMITED, u64::MAX);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let seed = state.seed::<false>(rules, usize::MAX);
    let walked = seed.deserialize(&mut reader);
    walked.and_then(|_| reader.end()).map_err(|error| Breach {
        part: state.part.get(),
        error: state.explain(&error),
    })?;
    if state.huge.get() {
        find_huge_integer(text).map_err(|error| Breach {
            part: state.huge_in.get(),
            error,
        })?;
    }
    Ok(())
}

/// Reads a part of a text and checks it against `rules`, as [`inspect`] does for a whole text. A
/// float of 9e18 or more in magnitude is refused, without its place: it may be an integer beyond 64
/// bits, which the reader has converted.
///
/// # Errors
/// The first broken rule, as the reader's error.
pub fn read_part<'de, D: Deserializer<'de>>(
    reader: D,
    rules: &JsonRules<'_>,
) -> Result<Value, D::Error> {
    let state = State::new(UNLIMITED, u64::MAX);
    let seed = state.seed::<true>(rules, usize::MAX);
    let value = seed.deserialize(reader)?;
    match state.huge.get() {
        true => Err(D::Error::custom("a number beyond 64 bits")),
        false => Ok(value),
    }
}

/// No limits, except the parser's limit on depth.
const UNLIMITED: Limits = Limits {
    bytes: usize::MAX,
    depth: PARSER_DEPTH,
    values: usize::MAX,
};

/// What is left of the limits, and details of an error. The visitors record the details here, since
/// serde's error type contains only a text.
#[derive(Default)]
struct State {
    broken: Cell<Option<JsonErrorKind>>,
    /// The strict part in which a rule was broken.
    part: Cell<Option<&'static str>>,
    /// Whether the text has a float so large that it may be an integer beyond 64 bits, which
    /// `serde_json` has converted. `huge_in` is the last strict part with such a float.
    huge: Cell<bool>,
    huge_in: Cell<Option<&'static str>>,
    /// How many more values there may be.
    values: Cell<usize>,
    /// How many more bytes the values may take.
    memory: Cell<u64>,
    limits: Limits,
}

impl State {
    fn new(limits: Limits, memory: u64) -> Self {
        State {
            values: Cell::new(limits.values),
            memory: Cell::new(memory),
            limits,
            ..State::default()
        }
    }

    fn seed<'s, const BUILDS: bool>(
        &'s self,
        rules: &'s JsonRules<'s>,
        left: usize,
    ) -> Seed<'s, BUILDS> {
        Seed {
            state: self,
            rules,
            left,
        }
    }

    fn explain(&self, error: &serde_json::Error) -> JsonError {
        let place = (error.line(), error.column());
        let text = error.to_string();
        // serde_json appends the place to its message, but the place is a separate field here.
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

/// Reads a value, and builds it if `BUILDS`.
#[derive(Clone, Copy)]
struct Seed<'s, const BUILDS: bool> {
    state: &'s State,
    rules: &'s JsonRules<'s>,
    left: usize,
}

impl<const BUILDS: bool> Seed<'_, BUILDS> {
    fn refuse<E: Error>(&self, kind: JsonErrorKind, message: impl fmt::Display) -> E {
        if let JsonRules::Strict(part) = *self.rules {
            self.state.part.set(Some(part));
        }
        self.state.broken.set(Some(kind));
        E::custom(message)
    }

    fn take<E: Error>(&self, bytes: u64) -> Result<(), E> {
        let left = self.state.memory.get().checked_sub(bytes).ok_or_else(|| {
            let message = "expected values that take less memory, found more";
            self.refuse(JsonErrorKind::TooMuchMemory, message)
        })?;
        self.state.memory.set(left);
        Ok(())
    }

    fn deeper<E: Error>(self) -> Result<Self, E> {
        let left = self.left.checked_sub(1);
        let left = left.ok_or_else(|| self.refuse(JsonErrorKind::TooDeep, "too deep"))?;
        Ok(Seed { left, ..self })
    }

    fn of_member(self, name: &str) -> Self {
        let rules = match self.rules {
            JsonRules::Members(members) => {
                let named = members.iter().find(|(member, _)| *member == name);
                named.map_or(&JsonRules::Keys, |(_, rules)| rules)
            }
            _ => self.rules,
        };
        Self { rules, ..self }
    }

    fn of_item(self) -> Self {
        let rules = match self.rules {
            JsonRules::Members(_) => &JsonRules::Keys,
            _ => self.rules,
        };
        Self { rules, ..self }
    }

    fn check_integer<E: Error>(self, magnitude: u64, written: impl fmt::Display) -> Result<(), E> {
        match self.rules {
            JsonRules::Strict(_) if magnitude > MAX_SAFE_INTEGER => {
                Err(self.refuse(JsonErrorKind::IntegerRange, integer_message(written)))
            }
            _ => Ok(()),
        }
    }
}

impl<'de, const BUILDS: bool> DeserializeSeed<'de> for Seed<'_, BUILDS> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        let left = self.state.values.get().checked_sub(1);
        let left = left.ok_or_else(|| self.refuse(JsonErrorKind::TooMany, "too many values"))?;
        self.state.values.set(left);
        reader.deserialize_any(self)
    }
}

impl<'de, const BUILDS: bool> Visitor<'de> for Seed<'_, BUILDS> {
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

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.check_integer(value, value)?;
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.check_integer(value.unsigned_abs(), value)?;
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        if value.abs() >= 9.0e18 {
            self.state.huge.set(true);
            if let JsonRules::Strict(part) = *self.rules {
                self.state.huge_in.set(Some(part));
            }
        }
        let number = Number::from_f64(value).map(Value::Number);
        number.ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        if !BUILDS {
            return Ok(Value::Null);
        }
        self.take(weight::string(value))?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let seed = self.deeper()?.of_item();
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(seed)? {
            if BUILDS {
                self.take(weight::item(array.len()))?;
                array.push(item);
            }
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let seed = self.deeper()?;
        let twice = |key: &str| self.refuse(JsonErrorKind::DuplicateKey, twice_message(key));
        let (mut object, mut seen) = (Map::new(), HashSet::new());
        while let Some(key) = members.next_key_seed(Key)? {
            if is_reserved(&key) {
                return Err(self.refuse(JsonErrorKind::ReservedKey, reserved_message(&key)));
            }
            let member = seed.of_member(&key);
            if !BUILDS {
                if let Some(key) = seen.replace(key) {
                    return Err(twice(&key));
                }
                members.next_value_seed(member)?;
                continue;
            }
            let own = weight::entry(object.len());
            self.take(own.saturating_add(weight::string(&key)))?;
            if object.is_empty() {
                // `weight::entry` has already counted these places.
                object = Map::with_capacity(weight::PLACES);
            }
            match object.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(members.next_value_seed(member)?);
                }
                Entry::Occupied(taken) => return Err(twice(taken.key())),
            }
        }
        Ok(Value::Object(object))
    }
}

/// A key, borrowed from the text if it has no escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// Searches a text that is known to be JSON for an integer literal beyond 64 bits.
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
                // An integer that fits into 64 bits was range-checked as a number.
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

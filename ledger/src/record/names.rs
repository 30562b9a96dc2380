//! The values that may be in a record: names of closed grammars, bytes in hexadecimal, and numbers.
//! Each type checks its value when it is created, so that no free text of a caller, guest or server
//! gets into a record.

use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::record::RecordError;
use crate::record::wire::Wire;

/// The largest integer that JSON readers of all languages agree on (RFC 8785, section 3.2.2.3).
const MAX_NUMBER: u64 = (1 << 53) - 1;

macro_rules! names {
    ($($(#[$outer:meta])* $name:ident, $max:literal, $grammar:expr;)+) => { $(
        $(#[$outer])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a name.
            ///
            /// # Errors
            /// If the text has another form.
            pub fn parse(text: &str) -> Result<Self, RecordError> {
                let grammar: fn(&str) -> bool = $grammar;
                if (1..=$max).contains(&text.len()) && grammar(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(RecordError::Name(stringify!($name)))
                }
            }

            /// The name as text: ASCII, without quotes, spaces and control characters.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <&str>::deserialize(deserializer)?;
                Self::parse(text).map_err(D::Error::custom)
            }
        }

        impl Wire for $name {
            fn put(&self, to: &mut Vec<u8>) {
                const { assert!($max <= u8::MAX) };
                to.push(self.0.len() as u8);
                to.extend_from_slice(self.0.as_bytes());
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let [length] = Wire::take(from)?;
                let text = from.split_off(..usize::from(length))?;
                Self::parse(std::str::from_utf8(text).ok()?).ok()
            }
        }
    )+ };
}

names! {
    /// The id of a bundle, a publisher or a driver: `text.stats`.
    Id, 80, |text| lower(text, b"._-");
    /// A tool with its version, or its major version: `text.stats@1.4.0`.
    Tool, 145, |text| text.split_once('@').is_some_and(|(id, version)| {
        id.len() <= 80 && lower(id, b"._-") && is_version(version)
    });
    /// A version of a program or a bundle: `1.4.0-rc.1`.
    Version, 64, is_version;
    /// A code of a result, from the host or from a driver: `toolward:canceled`.
    Code, 128, |text| lower(text, b"_:.-");
    /// A word of a closed set that the host knows: a class, a stage, a limit.
    Word, 40, |text| lower(text, b"_-");
    /// An action that a tool declares under `mutates`: `storage:commit`.
    Action, 80, |text| text.strip_prefix('@').map_or_else(|| lower(text, b"._:/-"), |rest| lower(rest, b"._:/-"));
    /// A rule of the policy by its kind and place: `grant:3`.
    Rule, 24, |text| lower(text, b":");
    /// The id of a call in its caller's protocol, such as the id of a request: `call_7fK2`.
    NativeId, 128, |text| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/+=@|".contains(&byte));
    /// A parent of W3C Trace Context: `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
    TraceParent, 55, is_trace_parent;
}

impl TraceParent {
    /// Reads a `traceparent` (W3C Trace Context, section 3.2). From a version later than `00`, only
    /// the fields that all versions share are kept.
    ///
    /// # Errors
    /// If the text has another form.
    pub fn read(text: &str) -> Result<Self, RecordError> {
        let (known, more) = text.split_at_checked(55).unwrap_or((text, ""));
        match more.is_empty() || more.starts_with('-') && !known.starts_with("00") {
            true => Self::parse(known),
            false => Err(RecordError::Name("TraceParent")),
        }
    }

    /// The id of the trace.
    pub fn trace_id(&self) -> &str {
        self.0.get(3..35).unwrap_or_default()
    }

    /// The id of the caller's span.
    pub fn span_id(&self) -> &str {
        self.0.get(36..52).unwrap_or_default()
    }
}

/// Whether the text consists of version, trace, span and flags. Version `ff`, and ids of only
/// zeros, are not valid.
fn is_trace_parent(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut part = |length, forbidden| {
        parts.next().is_some_and(|part| {
            let is_hexadecimal = part.bytes().all(|byte| digit(byte).is_some());
            part.len() == length && is_hexadecimal && part.bytes().any(|byte| byte != forbidden)
        })
    };
    part(2, b'f') && part(32, b'0') && part(16, b'0') && part(2, b' ')
}

/// Whether `text` starts with a lower-case letter or a digit, and contains only lower-case letters,
/// digits and `others`.
fn lower(text: &str, others: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| plain(&first))
        && bytes.all(|byte| plain(&byte) || others.contains(&byte))
}

fn is_version(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-'))
}

/// `N` bytes, at most 32, written as lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hex<const N: usize>(pub [u8; N]);

/// A SHA-256 or BLAKE3 digest.
pub type Hash = Hex<32>;
/// The random id that stands for a principal.
pub type Person = Hex<16>;
/// The random id of a session, which is one writer from its opening to its end.
pub type Session = Hex<16>;

impl<const N: usize> Hex<N> {
    /// Takes bytes; `None` if they are not exactly `N`.
    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Reads exactly `2 N` lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != N || !rest.is_empty() {
            return None;
        }
        let mut bytes = [0; N];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(bytes))
    }
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// The digits of at most 32 bytes.
struct Digits {
    text: [u8; 64],
    length: usize,
}

impl Digits {
    fn of(bytes: &[u8]) -> Self {
        let mut text = [0; 64];
        for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
            // Does not use `map` of arrays, since it is not inlined, and most of a record is
            // hexadecimal digits.
            *pair = [letter(byte >> 4), letter(byte & 15)];
        }
        let length = (2 * bytes.len()).min(64);
        Self { text, length }
    }

    fn as_str(&self) -> &str {
        let text = self.text.get(..self.length).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}

const fn letter(value: u8) -> u8 {
    value + if value < 10 { b'0' } else { b'a' - 10 }
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Digits::of(&self.0).as_str())
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Digits::of(&self.0).as_str())
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        Self::parse(text).ok_or_else(|| D::Error::custom("not hexadecimal digits"))
    }
}

impl<const N: usize> Wire for Hex<N> {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Wire::take(from).map(Self)
    }
}

/// The id of an invocation: a UUID, in lower case with dashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Invocation(pub(crate) uuid::Uuid);

impl Invocation {
    /// Creates it from the 16 bytes of a UUID.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(uuid::Uuid::from_bytes(bytes))
    }

    /// Reads a UUID.
    ///
    /// # Errors
    /// If the text is not a UUID in lower case with dashes.
    pub fn parse(text: &str) -> Result<Self, RecordError> {
        let lower = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
        match uuid::Uuid::try_parse(text) {
            Ok(uuid) if lower => Ok(Self(uuid)),
            _ => Err(RecordError::Name("Invocation")),
        }
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.hyphenated(), f)
    }
}

impl Serialize for Invocation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = uuid::Uuid::encode_buffer();
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut text))
    }
}

impl<'de> Deserialize<'de> for Invocation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(<&str>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Wire for Invocation {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.as_bytes().put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Wire::take(from).map(Self::from_bytes)
    }
}

/// An integer from 0 to 2^53 − 1. A larger `u64` becomes 2^53 − 1; a larger number in JSON is
/// refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Number(u64);

impl Number {
    /// The integer.
    pub const fn get(self) -> u64 {
        self.0
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0 == 0
    }

    pub(crate) fn add(&mut self, more: usize) {
        *self = Self::from(self.0.saturating_add(more as u64));
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self(value.min(MAX_NUMBER))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            value if value <= MAX_NUMBER => Ok(Self(value)),
            _ => Err(D::Error::custom("a larger integer than 2^53 - 1")),
        }
    }
}

impl Wire for Number {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let value = u64::take(from)?;
        (value <= MAX_NUMBER).then_some(Self(value))
    }
}

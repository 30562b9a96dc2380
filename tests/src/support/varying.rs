//! Finds the values in a text that differ from run to run.

/// The start of a machine's directory. [`LETTERS`] letters or digits follow.
pub(crate) const DIRECTORY: &str = "/tmp/.tmp";
const LETTERS: usize = 6;

/// Text before a port.
const HOSTS: [&str; 2] = ["127.0.0.1:", "localhost:"];

/// The form of a time in RFC 3339. A fraction of the second may follow.
const TIME: &str = "0000-00-00T00:00:00";

/// The form of a UUID (RFC 9562).
const ID: &str = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";

/// The form of a digest that people compare.
const FINGERPRINT: &str =
    "hhhh hhhh hhhh hhhh hhhh hhhh hhhh hhhh hhhh hhhh hhhh hhhh hhhh hhhh hhhh hhhh";

/// The least number of digits of a digest or key id.
const DIGEST: usize = 16;

/// The least number of characters of encoded bytes.
const BASE64: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Directory,
    Port,
    Time,
    Id,
    Digest,
    Base64,
}

/// The position of a value, its kind, and its text.
pub(crate) type Value<'a> = (usize, Kind, &'a str);

/// The values in a text, in order.
pub(crate) fn values(text: &str) -> Vec<Value<'_>> {
    let mut values = Vec::new();
    let mut end = 0;
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        let starts = !before.is_ascii_alphanumeric();
        before = character;
        if at < end || !starts {
            continue;
        }
        let rest = text.get(at..).unwrap();
        if let Some((kind, length)) = value(rest) {
            values.push((at, kind, rest.get(..length).unwrap()));
            end = at + length;
        }
    }
    values
}

/// The value that a text starts with, and its length.
fn value(text: &str) -> Option<(Kind, usize)> {
    let count = |text: &str, is: fn(&char) -> bool| text.chars().take_while(is).count();
    if let Some(rest) = text.strip_prefix(DIRECTORY) {
        let letters = count(rest, char::is_ascii_alphanumeric);
        return (letters == LETTERS).then_some((Kind::Directory, DIRECTORY.len() + letters));
    }
    if let Some(host) = HOSTS.iter().find(|host| text.starts_with(**host)) {
        let rest = text.get(host.len()..).unwrap();
        let digits = count(rest, char::is_ascii_digit);
        return (digits > 0).then_some((Kind::Port, host.len() + digits));
    }
    if fits(text, TIME) {
        let rest = text.get(TIME.len()..).unwrap();
        let fraction = rest
            .strip_prefix('.')
            .map(|rest| 1 + count(rest, char::is_ascii_digit));
        return Some((Kind::Time, TIME.len() + fraction.unwrap_or_default()));
    }
    for (kind, shape) in [(Kind::Id, ID), (Kind::Digest, FINGERPRINT)] {
        if fits(text, shape) {
            return Some((kind, shape.len()));
        }
    }
    let digits = count(text, char::is_ascii_hexdigit);
    let encoded = count(text, |one| {
        one.is_ascii_alphanumeric() || "+/=-_".contains(*one)
    });
    let bytes = text.get(..encoded).unwrap();
    // Encoded bytes have letters of both cases, unlike most long paths and option names.
    let both = bytes.contains(|one: char| one.is_ascii_uppercase())
        && bytes.contains(|one: char| one.is_ascii_lowercase());
    match encoded >= BASE64 && both {
        true => Some((Kind::Base64, encoded)),
        false => (digits >= DIGEST).then_some((Kind::Digest, digits)),
    }
}

/// Whether the start of a text has this shape, in which `0` is a digit and `h` a hexadecimal digit.
fn fits(text: &str, shape: &str) -> bool {
    let fits = |(byte, shape): (u8, u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        b'h' => byte.is_ascii_hexdigit(),
        other => byte == other,
    };
    text.len() >= shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

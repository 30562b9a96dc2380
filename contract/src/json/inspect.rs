//! The rules of [`parse`](super::parse) for a text that another parser reads: nothing is built, and the
//! rules may hold for a part of it only.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{
    JsonError, JsonErrorKind, Limits, State, find_huge_integer, integer_message, is_reserved,
    reserved_message, twice_message,
};

/// Which rules hold for a value of a text that [`inspect`] looks at.
#[derive(Clone, Copy, Debug)]
pub enum Rules<'r> {
    /// Each key once in every object. Integers may have any size.
    Keys,
    /// Those of [`parse`](super::parse), but for its [`Limits`]. A [`Breach`] names the part.
    Strict(&'static str),
    /// For an object: the rules for its members by name, and [`Rules::Keys`] for all others. For any other
    /// value [`Rules::Keys`].
    Members(&'r [(&'r str, Rules<'r>)]),
}

/// A rule that a text broke, and in which part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The name of the [`Rules::Strict`] part; `None` elsewhere.
    pub part: Option<&'static str>,
    /// The rule, and its place in the whole text.
    pub error: JsonError,
}

/// Holds a text to rules without building a value. An integer beyond 64 bits is refused wherever it stands.
/// Bytes and values are not counted; nesting beyond 127 levels is refused.
///
/// # Errors
/// The first rule broken, with its place.
pub fn inspect(text: &[u8], rules: &Rules<'_>) -> Result<(), Breach> {
    let state = State {
        broken: Cell::new(None),
        huge: Cell::new(false),
        values: Cell::new(usize::MAX),
        memory: Cell::new(u64::MAX),
        limits: Limits {
            bytes: usize::MAX,
            depth: 127,
            values: usize::MAX,
        },
    };
    let (part, huge_in) = (Cell::new(None), Cell::new(None));
    let walk = Walk {
        state: &state,
        part: &part,
        huge_in: &huge_in,
        rules: *rules,
    };
    let mut reader = serde_json::Deserializer::from_slice(text);
    let walked = walk.deserialize(&mut reader).and_then(|()| reader.end());
    walked.map_err(|error| Breach {
        part: part.get(),
        error: state.explain(&error),
    })?;
    if state.huge.get() {
        find_huge_integer(text).map_err(|error| Breach {
            part: huge_in.get(),
            error,
        })?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Walk<'s> {
    state: &'s State,
    /// The strict part in which a rule was broken.
    part: &'s Cell<Option<&'static str>>,
    /// The last strict part that has a number beyond 64 bits.
    huge_in: &'s Cell<Option<&'static str>>,
    rules: Rules<'s>,
}

impl Walk<'_> {
    fn refuse<E: Error>(&self, kind: JsonErrorKind, message: impl fmt::Display) -> E {
        if let Rules::Strict(part) = self.rules {
            self.part.set(Some(part));
        }
        self.state.refuse(kind, message)
    }

    fn of_member(self, name: &str) -> Self {
        let rules = match self.rules {
            Rules::Strict(part) => Rules::Strict(part),
            Rules::Keys => Rules::Keys,
            Rules::Members(members) => members
                .iter()
                .find(|(member, _)| *member == name)
                .map_or(Rules::Keys, |(_, rules)| *rules),
        };
        Self { rules, ..self }
    }

    fn of_item(self) -> Self {
        let rules = match self.rules {
            Rules::Members(_) => Rules::Keys,
            rules => rules,
        };
        Self { rules, ..self }
    }

    fn integer<E: Error>(self, magnitude: u64, written: impl fmt::Display) -> Result<(), E> {
        match self.rules {
            Rules::Strict(_) if magnitude > super::MAX_SAFE_INTEGER => {
                Err(self.refuse(JsonErrorKind::IntegerRange, integer_message(written)))
            }
            _ => Ok(()),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _value: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.integer(value, value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.integer(value.unsigned_abs(), value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        if value.abs() >= 9.0e18 {
            self.state.huge.set(true);
            if let Rules::Strict(part) = self.rules {
                self.huge_in.set(Some(part));
            }
        }
        Ok(())
    }

    fn visit_str<E>(self, _value: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.of_item())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = members.next_key_seed(Key)? {
            if is_reserved(&key) {
                return Err(self.refuse(JsonErrorKind::ReservedKey, reserved_message(&key)));
            }
            let member = self.of_member(&key);
            if let Some(key) = seen.replace(key) {
                return Err(self.refuse(JsonErrorKind::DuplicateKey, twice_message(&key)));
            }
            members.next_value_seed(member)?;
        }
        Ok(())
    }
}

/// A key, borrowed from the text where it has no escapes.
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

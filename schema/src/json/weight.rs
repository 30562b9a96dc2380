//! Estimates the memory of values. Small values take far more than their text: `{"a":0}` in an
//! array is eight bytes of text, and about 400 bytes in memory. The estimates are meant to be
//! higher than the allocated memory.

use std::mem::size_of;

use serde_json::Value;

/// The overhead of an allocation, including the rounding of allocators.
const ALLOCATION: u64 = 32;

/// The minimum capacity of a list or an object that is not empty.
pub(super) const PLACES: usize = 4;

/// The size of a value's place in a list: the least memory that a value takes.
pub const ITEM: u64 = size_of::<Value>() as u64;

/// The size of an entry's place in an object: hash, key, value, and index.
const ENTRY: u64 = ITEM + size_of::<String>() as u64 + 24;

/// The bytes that a value owns, without its own place, which its container counts.
pub fn value(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => string(text),
        Value::Array(items) if items.is_empty() => 0,
        Value::Array(items) => items.iter().fold(places(items.len(), ITEM), |sum, item| {
            sum.saturating_add(self::value(item))
        }),
        Value::Object(fields) if fields.is_empty() => 0,
        Value::Object(fields) => {
            let own = places(fields.len(), ENTRY).saturating_add(ALLOCATION);
            fields.iter().fold(own, |sum, (key, field)| {
                sum.saturating_add(string(key))
                    .saturating_add(self::value(field))
            })
        }
    }
}

/// The bytes of a text in its own allocation.
pub fn string(text: &str) -> u64 {
    (text.len() as u64).saturating_add(ALLOCATION)
}

/// How many more bytes a list takes when its item at `index` is added.
pub(super) fn item(index: usize) -> u64 {
    grown(index, ITEM)
}

/// How many more bytes an object takes when its entry at `index` is added, without key and value.
pub(super) fn entry(index: usize) -> u64 {
    let own = if index == 0 { ALLOCATION } else { 0 };
    grown(index, ENTRY).saturating_add(own)
}

/// How many more bytes the places take when the place at `index` is needed.
fn grown(index: usize, size: u64) -> u64 {
    match index {
        0 => places(1, size),
        _ if index < PLACES || !index.is_power_of_two() => 0,
        _ => (index as u64).saturating_mul(size),
    }
}

/// The bytes of `count` places. The capacity doubles when more are needed.
fn places(count: usize, size: u64) -> u64 {
    let places = count.max(PLACES).checked_next_power_of_two();
    (places.unwrap_or(usize::MAX) as u64)
        .saturating_mul(size)
        .saturating_add(ALLOCATION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{JsonErrorKind, Limits, parse, parse_within};
    use serde_json::json;

    #[test]
    fn parsing_counts_what_a_value_weighs_and_refuses_one_byte_less() {
        let limits = Limits::default();
        let list = |item: &str, count| format!("[{}{item}]", format!("{item},").repeat(count));
        for text in [
            "7".to_owned(),
            list("0", 0),
            list("0", 3),
            list("0", 4),
            list("0", 1000),
            list("{\"a\":0}", 100),
            list("[[],{},\"text\"]", 100),
            format!(
                "{{{}\"z\":\"zz\"}}",
                (0..40)
                    .map(|n| format!("\"{n}\":[{n}],"))
                    .collect::<String>()
            ),
        ] {
            let weight = value(&parse(text.as_bytes(), &limits).unwrap());
            let mut memory = weight.saturating_add(7);
            parse_within(text.as_bytes(), &limits, &mut memory).unwrap();
            assert_eq!(memory, 7, "{text}");
            if let Some(mut less) = weight.checked_sub(1) {
                let error = parse_within(text.as_bytes(), &limits, &mut less).unwrap_err();
                assert_eq!(error.kind, JsonErrorKind::TooMuchMemory, "{text}");
            }
        }
    }

    #[test]
    fn small_values_weigh_more_than_their_text() {
        assert_eq!(value(&json!(7)), 0);
        let list = json!(vec![0; 1000]);
        assert!(value(&list) >= 1000 * ITEM, "{}", value(&list));
        let objects = json!(vec![json!({"a": 0}); 1000]);
        let text = objects.to_string().len() as u64;
        assert!(value(&objects) > 50 * text, "{}", value(&objects));
        assert!(value(&objects) < 200 * text, "{}", value(&objects));
    }

    #[test]
    fn a_long_text_weighs_what_it_is() {
        let text = json!("x".repeat(1 << 20));
        assert_eq!(value(&text), (1 << 20) + ALLOCATION);
    }
}

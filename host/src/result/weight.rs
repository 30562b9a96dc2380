//! What values take in the host's memory. Small ones take far more than their
//! text: `{"a":0}` in an array is eight bytes of it, and some 800 in memory.

use std::mem::size_of;

use serde_json::Value;

use crate::observer::LogRecord;

/// What an allocation takes beside its bytes, rounded up to what allocators give.
const ALLOCATION: u64 = 32;

/// The least places that a list or an object has, once it has any.
const PLACES: usize = 4;

/// The place of a value in a list.
const ITEM: u64 = size_of::<Value>() as u64;

/// The place of an entry in an object: hash, key and value, and its index.
const ENTRY: u64 = ITEM + size_of::<String>() as u64 + 24;

/// The least that one value of many takes: its place in a list, which doubles as
/// it grows.
pub(crate) const LEAST: u64 = 64;

/// Bytes behind a value; its own place is counted by whoever holds it.
pub(crate) fn value(value: &Value) -> u64 {
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

/// A record that a driver logged, and its copy on the way to whoever listens.
pub(crate) fn record(record: &LogRecord) -> u64 {
    (size_of::<LogRecord>() as u64)
        .saturating_add(string(&record.message))
        .saturating_add(value(&record.fields))
        .saturating_mul(2)
}

fn string(text: &str) -> u64 {
    (text.len() as u64).saturating_add(ALLOCATION)
}

/// So many places that double as more are needed.
fn places(count: usize, size: u64) -> u64 {
    let places = count.max(PLACES).checked_next_power_of_two();
    (places.unwrap_or(usize::MAX) as u64)
        .saturating_mul(size)
        .saturating_add(ALLOCATION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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

//! Digests of values: equal for equal values, regardless of the order of their members.

use std::sync::OnceLock;

use serde_json::{Map, Value};

/// BLAKE3 of the members of an object.
pub fn object(members: &Map<String, Value>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    add_object(&mut hasher, members);
    hasher.finalize()
}

/// BLAKE3 of any value. A short value can be guessed from its digest.
pub(crate) fn value(value: &Value) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    add(&mut hasher, value);
    hasher.finalize()
}

/// BLAKE3 of any value under a random key of this process. Equal for equal values as long as the
/// process runs; a short value can't be guessed from it.
pub fn secret(value: &Value) -> [u8; 32] {
    static KEY: OnceLock<[u8; 32]> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = [0; 32];
        // Without randomness the digest is still correct, but the value can be guessed from it.
        let _ = getrandom::fill(&mut key);
        key
    });
    let mut hasher = blake3::Hasher::new_keyed(key);
    add(&mut hasher, value);
    *hasher.finalize().as_bytes()
}

/// BLAKE3 of texts, each with its length.
pub(crate) fn texts<const N: usize>(texts: [&str; N]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize()
}

fn add(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Object(members) => add_object(hasher, members),
        Value::Array(items) => {
            head(hasher, b'[', items.len());
            for item in items {
                add(hasher, item);
            }
        }
        Value::String(text) => add_text(hasher, b'"', text),
        Value::Number(number) => add_text(hasher, b'0', &number.to_string()),
        Value::Bool(true) => head(hasher, b't', 0),
        Value::Bool(false) => head(hasher, b'f', 0),
        Value::Null => head(hasher, b'n', 0),
    }
}

fn add_object(hasher: &mut blake3::Hasher, members: &Map<String, Value>) {
    head(hasher, b'{', members.len());
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    for (name, member) in sorted {
        add_text(hasher, b'k', name);
        add(hasher, member);
    }
}

fn add_text(hasher: &mut blake3::Hasher, kind: u8, text: &str) {
    head(hasher, kind, text.len());
    hasher.update(text.as_bytes());
}

fn head(hasher: &mut blake3::Hasher, kind: u8, length: usize) {
    hasher.update(&[kind]);
    hasher.update(&(length as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_members_does_not_count_and_all_else_does() {
        let of = |text: &str| secret(&serde_json::from_str(text).unwrap());
        assert_eq!(
            of(r#"{"a": 1, "b": [true]}"#),
            of(r#"{"b": [true], "a": 1}"#)
        );
        let all = [
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": [1]}),
            json!({"a": {"": 1}}),
            json!({"a": null}),
            json!({"a": true}),
            json!({"a": false}),
            json!({}),
            json!([]),
            json!(["a", "b"]),
            json!(["ab"]),
            json!(["b", "a"]),
            json!(""),
        ];
        let digests: std::collections::HashSet<_> = all.iter().map(secret).collect();
        assert_eq!(digests.len(), all.len());
    }
}

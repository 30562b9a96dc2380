//! Sanitises JSON values from publishers and callers for clients to show: escapes their
//! texts and bounds their size. Not for the results of tools, which are data.

use serde_json::{Map, Value};
use toolward_bundle::text::{is_plain, visible, visible_line};

/// Characters of all texts of one value, and items of its lists and objects.
const MAX_TEXT_CHARS: usize = 16 << 10;
const MAX_ITEMS: usize = 1000;
/// Characters of a member's name.
const MAX_NAME_CHARS: usize = 200;
/// Levels of nesting.
const MAX_DEPTH: usize = 32;

/// Replaces what exceeds a limit.
const TRUNCATED: &str = "…";

/// A value that can be shown.
pub(crate) fn value(value: Value) -> Value {
    let mut remaining = Remaining {
        text: MAX_TEXT_CHARS,
        items: MAX_ITEMS,
    };
    remaining.value(value, MAX_DEPTH)
}

/// What is left of the limits.
struct Remaining {
    text: usize,
    items: usize,
}

impl Remaining {
    fn value(&mut self, value: Value, depth: usize) -> Value {
        let Some(depth) = depth.checked_sub(1) else {
            return TRUNCATED.into();
        };
        match value {
            Value::String(text) => {
                let shown = match is_plain(&text, self.text) {
                    true => text,
                    false => visible(&text, self.text),
                };
                self.text = self.text.saturating_sub(shown.chars().count());
                shown.into()
            }
            Value::Array(items) => {
                let mut shown = Vec::new();
                for item in items {
                    if !self.take() {
                        shown.push(TRUNCATED.into());
                        break;
                    }
                    shown.push(self.value(item, depth));
                }
                shown.into()
            }
            Value::Object(members) => {
                let mut shown = Map::with_capacity(members.len().min(MAX_ITEMS));
                for (name, member) in members {
                    if !self.take() {
                        shown.insert(TRUNCATED.to_owned(), TRUNCATED.into());
                        break;
                    }
                    let name = match is_plain(&name, MAX_NAME_CHARS) {
                        true => name,
                        false => visible_line(&name, MAX_NAME_CHARS),
                    };
                    self.text = self.text.saturating_sub(name.chars().count());
                    let member = self.value(member, depth);
                    shown.insert(name, member);
                }
                shown.into()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    /// Takes an item; `false` where the limit is reached.
    fn take(&mut self) -> bool {
        let left = self.items.checked_sub(1).filter(|_| self.text > 0);
        self.items = left.unwrap_or_default();
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_and_names_are_made_visible_at_every_level() {
        let hidden = "a\u{202e}b\u{1b}[2J\n";
        let shown = value(json!({ hidden: [hidden, {"x": hidden}], "n": 7, "t": true }));
        let visible = "a\\u{202e}b\\e[2J\n";
        let name = "a\\u{202e}b\\e[2J\\n";
        assert_eq!(
            shown,
            json!({ name: [visible, {"x": visible}], "n": 7, "t": true })
        );
    }

    #[test]
    fn what_is_ordinary_stays_as_it_is() {
        let ordinary = json!({"path": "/docs/naïve 猫.txt", "sizes": [1, 2.5, null]});
        assert_eq!(value(ordinary.clone()), ordinary);
    }

    #[test]
    fn what_is_too_long_too_many_or_too_deep_is_cut() {
        let long = value(json!({"a": "x".repeat(MAX_TEXT_CHARS + 100), "b": "gone"}));
        assert!(long.to_string().len() < MAX_TEXT_CHARS + 200);
        assert!(long.get("b").is_none() && long.get(TRUNCATED).is_some());
        let many = value(json!(vec![0; MAX_ITEMS + 100]));
        assert_eq!(many.as_array().unwrap().len(), MAX_ITEMS + 1);
        let mut deep = json!("deep");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let shown = value(deep).to_string();
        assert!(
            shown.contains(TRUNCATED) && !shown.contains("deep"),
            "{shown}"
        );
    }
}

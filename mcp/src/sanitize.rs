//! Sanitises JSON values from publishers and callers for clients to show: escapes their texts and
//! bounds their size. It is not for the results of tools, which are data.

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

/// Returns a value that can be shown. A value that needs no change is not copied.
pub(crate) fn value(mut value: Value) -> Value {
    let mut remaining = Remaining {
        text: MAX_TEXT_CHARS,
        items: MAX_ITEMS,
    };
    remaining.value(&mut value, MAX_DEPTH);
    value
}

/// The remaining part of the limits.
struct Remaining {
    text: usize,
    items: usize,
}

impl Remaining {
    fn value(&mut self, value: &mut Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            *value = TRUNCATED.into();
            return;
        };
        match value {
            Value::String(text) => {
                if !is_plain(text, self.text) {
                    *text = visible(text, self.text);
                }
                self.text = self.text.saturating_sub(text.chars().count());
            }
            Value::Array(items) => {
                for at in 0..items.len() {
                    if !self.take() {
                        items.truncate(at);
                        items.push(TRUNCATED.into());
                        break;
                    }
                    if let Some(item) = items.get_mut(at) {
                        self.value(item, depth);
                    }
                }
            }
            Value::Object(members) => self.members(members, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn members(&mut self, members: &mut Map<String, Value>, depth: usize) {
        let mut cut = false;
        if !members.keys().all(|name| is_plain(name, MAX_NAME_CHARS)) {
            // Escapes at most as many names as may be shown. Names that are equal after escaping
            // count once.
            let most = self.items.saturating_add(1);
            cut = members.len() > most;
            let some = std::mem::take(members).into_iter().take(most);
            let shown = some.map(|(name, member)| match is_plain(&name, MAX_NAME_CHARS) {
                true => (name, member),
                false => (visible_line(&name, MAX_NAME_CHARS), member),
            });
            *members = shown.collect();
        }
        let mut kept = 0_usize;
        for (name, member) in members.iter_mut() {
            if !self.take() {
                break;
            }
            kept = kept.saturating_add(1);
            self.text = self.text.saturating_sub(name.chars().count());
            self.value(member, depth);
        }
        if kept < members.len() || cut {
            *members = std::mem::take(members).into_iter().take(kept).collect();
            members.insert(TRUNCATED.to_owned(), TRUNCATED.into());
        }
    }

    /// Takes an item; `false` if the limit is reached.
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

//! A schema on its way to a model: without what is internal, with the text of its
//! author made safe, and, if need be, inside another schema. Values on that way, too.

use serde_json::{Map, Value};

use super::inline::inline;
use super::walk::for_each_child_mut;
use super::{plain, view};

/// Keywords for people and models, without meaning for validation.
const PROSE: [&str; 3] = ["title", "description", "$comment"];

/// Keywords about the document, out of place inside another one. A nested `$id`
/// would change what `#` means.
const DOCUMENT: [&str; 2] = ["$id", "$schema"];

/// Asks clients to send an argument as an HTTP header too, for what stands between
/// (MCP 2026-07-28, "x-mcp-header").
const HEADER: &str = "x-mcp-header";

/// The model's view of a closed schema that stands at the JSON pointer `at`, its
/// prose as `show` shows it.
pub(super) fn view(closed: &Value, at: &str, show: &dyn Fn(&str) -> String) -> Value {
    placed(view::without_internal(closed), at, show)
}

/// [`view`] with references inlined as far as possible.
pub(super) fn inlined(closed: &Value, at: &str, show: &dyn Fn(&str) -> String) -> Value {
    placed(inline(&view::without_internal(closed)), at, show)
}

/// [`inlined`] as one plain object; `None` if the schema accepts no object.
pub(super) fn plain(closed: &Value, show: &dyn Fn(&str) -> String) -> Option<Map<String, Value>> {
    let mut copy = Value::Object(plain::plain(&inline(&view::without_internal(closed)))?);
    change(&mut copy, "", show);
    match copy {
        Value::Object(keywords) => Some(keywords),
        _ => None,
    }
}

fn placed(mut copy: Value, at: &str, show: &dyn Fn(&str) -> String) -> Value {
    if let Value::Object(keywords) = &mut copy
        && !at.is_empty()
    {
        keywords.retain(|keyword, _| !DOCUMENT.contains(&keyword.as_str()));
    }
    change(&mut copy, at, show);
    copy
}

/// Takes the value at a JSON pointer out of another one.
pub(super) fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        *value = Value::Null;
        return;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.shift_remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            let item = name.parse().ok().and_then(|at: usize| items.get_mut(at));
            if let Some(item) = item {
                *item = Value::Null;
            }
        }
        _ => {}
    }
}

fn change(schema: &mut Value, at: &str, show: &dyn Fn(&str) -> String) {
    if view::Mark::Sensitive.is_on(schema)
        && let Value::Object(keywords) = schema
    {
        // What is between may log it.
        keywords.shift_remove(HEADER);
    }
    for keyword in PROSE {
        if let Some(Value::String(text)) = schema.get_mut(keyword) {
            *text = show(text);
        }
    }
    for keyword in ["$ref", "$dynamicRef"] {
        if let Some(Value::String(target)) = schema.get_mut(keyword)
            && let Some(pointer) = target.strip_prefix('#')
            && (pointer.is_empty() || pointer.starts_with('/'))
        {
            *target = format!("#{at}{pointer}");
        }
    }
    for_each_child_mut(schema, |child| change(child, at, show));
}

//! What a schema takes and how a value misses it, in words for people and models. Not validation.

use serde_json::Value;
use toolward_fields::nearest;

use super::view;

/// Properties that a message names.
const MAX_NAMED: usize = 16;
/// Keywords that are followed to the object whose properties are meant, so that a reference to itself ends.
const MAX_STEPS: usize = 64;

/// Several violations as one line: the JSON pointer of each, where it is not the value as a whole, and what is expected.
///
/// ```
/// use toolward_contract::schema::in_words;
///
/// let found = [("", "\"text\" is a required property"), ("/top", "0 is less than the minimum of 1")];
/// assert_eq!(in_words(found), "\"text\" is a required property; `/top`: 0 is less than the minimum of 1");
/// ```
pub fn in_words<'v>(violations: impl IntoIterator<Item = (&'v str, &'v str)>) -> String {
    let words = violations.into_iter().map(|(path, message)| match path {
        "" => message.to_owned(),
        path => format!("`{path}`: {message}"),
    });
    words.collect::<Vec<_>>().join("; ")
}

/// The properties of an object schema that a caller sees, each with its type: `` `text` (string, required), `top`
/// (integer)``. `None` where it names none.
pub(super) fn takes(shown: &Value) -> Option<String> {
    let properties = shown.get("properties")?.as_object()?;
    let required: Vec<&str> = texts(shown.get("required")).collect();
    let mut named: Vec<String> = properties
        .iter()
        .take(MAX_NAMED)
        .map(|(name, property)| {
            let kinds: Vec<&str> = match property.get("type") {
                Some(Value::String(kind)) => vec![kind.as_str()],
                several => texts(several).collect(),
            };
            let mut marks = match kinds.is_empty() {
                true => Vec::new(),
                false => vec![kinds.join(" or ")],
            };
            if required.contains(&name.as_str()) {
                marks.push("required".to_owned());
            }
            match marks.is_empty() {
                true => format!("`{name}`"),
                false => format!("`{name}` ({})", marks.join(", ")),
            }
        })
        .collect();
    if properties.len() > MAX_NAMED {
        named.push(format!(
            "{} more",
            properties.len().saturating_sub(MAX_NAMED)
        ));
    }
    (!named.is_empty()).then(|| named.join(", "))
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str)
}

/// What to write instead of properties that a schema does not allow. `at` is the pointer of the keyword that forbids
/// them; references are steps of it. Nothing for what lies in the value itself, unless a name is near: [`takes`] names
/// all of those.
pub(super) fn instead(shown: &Value, at: &str, unexpected: &[String]) -> Option<String> {
    let (object, _keyword) = at.rsplit_once('/')?;
    let mut schema = shown;
    for step in object.split('/').skip(1).take(MAX_STEPS) {
        let step = step.replace("~1", "/").replace("~0", "~");
        schema = match (step.as_str(), schema) {
            ("$ref" | "$dynamicRef", _) => view::resolve(shown, schema.get(&step)?.as_str()?)?,
            (_, Value::Array(items)) => items.get(step.parse::<usize>().ok()?)?,
            (_, other) => other.get(&step)?,
        };
    }
    let properties = schema.get("properties")?.as_object()?;
    let known = || properties.keys().map(String::as_str);
    let near: Vec<String> = unexpected
        .iter()
        .take(MAX_NAMED)
        .filter_map(|name| nearest(name, known()))
        .map(|name| format!("`{name}`"))
        .collect();
    if !near.is_empty() {
        return Some(format!("did you mean {}?", near.join(", ")));
    }
    if object.is_empty() {
        return None;
    }
    let mut allowed: Vec<String> = known()
        .take(MAX_NAMED)
        .map(|name| format!("`{name}`"))
        .collect();
    if properties.len() > MAX_NAMED {
        allowed.push("…".to_owned());
    }
    match allowed.is_empty() {
        true => None,
        false => Some(format!("allowed are {}", allowed.join(", "))),
    }
}

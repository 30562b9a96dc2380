//! The properties of a schema, for lints and as text for people and models. This is an
//! approximation and is not used for validation.

use std::collections::BTreeSet;

use serde_json::Value;
use toolward_support::fields::nearest;

use super::Schema;
use super::walk::{Applies, children, resolve, unescape};

/// Names of the properties of an object schema.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// All names in any branch.
    pub names: BTreeSet<String>,
    /// The names that every valid value must have.
    pub required: BTreeSet<String>,
    /// Whether the schema names no properties, so that any name may be valid.
    pub open: bool,
}

impl Shape {
    pub(super) fn of(closed: &Value) -> Shape {
        let mut shape = Shape::default();
        shape.collect(closed, closed, true, 0);
        // A schema without names describes its properties by patterns or not at all.
        shape.open = shape.names.is_empty();
        shape
    }

    fn collect(&mut self, schema: &Value, root: &Value, certain: bool, hops: usize) {
        if hops > 16 {
            return;
        }
        if certain {
            let required = texts(schema.get("required"));
            self.required.extend(required.map(str::to_owned));
        }
        let target = schema.get("$ref").and_then(Value::as_str);
        if let Some(target) = target.and_then(|target| resolve(root, target)) {
            self.collect(target, root, certain, hops + 1);
        }
        for child in children(schema) {
            match child.applies {
                Applies::Property(name) => {
                    self.names.insert(name.to_owned());
                }
                Applies::InPlace if child.keyword != "not" => {
                    let certain = certain && child.keyword == "allOf";
                    self.collect(child.schema, root, certain, hops + 1);
                }
                _ => {}
            }
        }
    }

    /// Whether the schema names properties, but not this one.
    pub fn lacks(&self, name: &str) -> bool {
        !self.open && !self.names.contains(name)
    }

    /// If a name can't be dropped: what a dropped name must be, as a word for the message.
    pub fn refuses_drop(&self, name: &str) -> Option<&'static str> {
        if self.required.contains(name) {
            Some("optional")
        } else if self.lacks(name) {
            Some("known")
        } else {
            None
        }
    }
}

/// How many properties a message names.
const MAX_NAMED: usize = 16;
/// How many steps are followed to the object with the properties. Recursive references can make the
/// path long.
const MAX_STEPS: usize = 64;

/// Several violations as one line: each message after the JSON pointer of its part of the value.
///
/// ```
/// use toolward_schema::schema::in_words;
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

impl Schema {
    /// The properties that a caller may set, each with its type, as one line; `None` if the schema
    /// names no properties.
    pub fn takes(&self) -> Option<String> {
        let shown = self.model_view();
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
                let kinds = kinds.join(" or ");
                match (kinds.as_str(), required.contains(&name.as_str())) {
                    ("", false) => format!("`{name}`"),
                    ("", true) => format!("`{name}` (required)"),
                    (kinds, false) => format!("`{name}` ({kinds})"),
                    (kinds, true) => format!("`{name}` ({kinds}, required)"),
                }
            })
            .collect();
        if properties.len() > MAX_NAMED {
            let more = properties.len().saturating_sub(MAX_NAMED);
            named.push(format!("{more} more"));
        }
        (!named.is_empty()).then(|| named.join(", "))
    }
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str)
}

/// A hint for properties that a schema does not allow. `at` is the pointer of the keyword that
/// forbids them, with references as steps. For the top level of the value, the hint only names
/// similar properties, since [`Schema::takes`] lists all of them.
pub(super) fn instead(shown: &Value, at: &str, unexpected: &[String]) -> Option<String> {
    let (object, _keyword) = at.rsplit_once('/')?;
    let mut schema = shown;
    for step in object.split('/').skip(1).take(MAX_STEPS) {
        let step = unescape(step);
        schema = match (step.as_str(), schema) {
            ("$ref" | "$dynamicRef", _) => resolve(shown, schema.get(&step)?.as_str()?)?,
            (_, Value::Array(items)) => items.get(step.parse::<usize>().ok()?)?,
            (_, other) => other.get(&step)?,
        };
    }
    let properties = schema.get("properties")?.as_object()?;
    let known = || properties.keys().map(String::as_str);
    let quoted = |name: &str| format!("`{name}`");
    let near = unexpected
        .iter()
        .take(MAX_NAMED)
        .filter_map(|name| nearest(name, known()));
    let near: Vec<String> = near.map(quoted).collect();
    if !near.is_empty() {
        return Some(format!("did you mean {}?", near.join(", ")));
    }
    if object.is_empty() {
        return None;
    }
    let mut allowed: Vec<String> = known().take(MAX_NAMED).map(quoted).collect();
    if properties.len() > MAX_NAMED {
        allowed.push("…".to_owned());
    }
    (!allowed.is_empty()).then(|| format!("allowed are {}", allowed.join(", ")))
}

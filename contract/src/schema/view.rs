//! Marks in a schema, `x-internal`, `x-sensitive` and `writeOnly`: who may see what. Not validation.

use std::collections::{HashMap, HashSet};

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::walk::{Applies, Child, children, escape, for_each_child_mut};

/// Which marks a schema uses at all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    pub(super) internal: bool,
    pub(super) sensitive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Internal,
    Sensitive,
}

impl Mark {
    pub(super) fn is_on(self, schema: &Value) -> bool {
        let mut keywords = schema.as_object().into_iter().flatten();
        keywords.any(|(keyword, value)| *value == Value::Bool(true) && self.is_set_by(keyword))
    }

    /// Whether this is the keyword of the mark.
    pub(super) fn is_set_by(self, keyword: &str) -> bool {
        match self {
            Mark::Internal => keyword == "x-internal",
            Mark::Sensitive => matches!(keyword, "x-sensitive" | "writeOnly"),
        }
    }
}

impl Marks {
    /// Looks everywhere, also where no keyword leads: a reference may point there.
    pub(super) fn of(value: &Value) -> Marks {
        let here = Marks {
            internal: Mark::Internal.is_on(value),
            sensitive: Mark::Sensitive.is_on(value),
        };
        let inner: Box<dyn Iterator<Item = &Value>> = match value {
            Value::Array(items) => Box::new(items.iter()),
            Value::Object(members) => Box::new(members.values()),
            _ => return here,
        };
        inner.map(Marks::of).fold(here, |a, b| Marks {
            internal: a.internal || b.internal,
            sensitive: a.sensitive || b.sensitive,
        })
    }
}

/// Pointers of the subschemas that are marked, found as [`Marks::of`] finds them.
pub(super) fn marked_schemas(value: &Value, mark: Mark, at: &str, found: &mut Vec<String>) {
    if mark.is_on(value) {
        found.push(at.to_owned());
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                marked_schemas(item, mark, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                marked_schemas(member, mark, &format!("{at}/{}", escape(name)), found);
            }
        }
        _ => {}
    }
}

/// Keywords that say nothing of which values are valid; nor do those that begin with `x-`.
pub(super) const ANNOTATIONS: [&str; 8] = [
    "$comment",
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// A copy without the keywords that say nothing of which values are valid.
///
/// ```
/// use serde_json::json;
/// use toolward_contract::schema::without_annotations;
///
/// let schema = json!({ "items": { "type": "string", "title": "Name" }, "x-note": 1 });
/// assert_eq!(without_annotations(&schema), json!({ "items": { "type": "string" } }));
/// ```
#[must_use]
pub fn without_annotations(schema: &Value) -> Value {
    let mut copy = schema.clone();
    remove_annotations(&mut copy);
    copy
}

fn remove_annotations(schema: &mut Value) {
    if let Value::Object(keywords) = schema {
        keywords.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()) && !key.starts_with("x-"));
    }
    for_each_child_mut(schema, remove_annotations);
}

/// A copy without the properties marked internal, and without their names in `required`.
pub(super) fn without_internal(schema: &Value) -> Value {
    let mut copy = schema.clone();
    remove_internal(&mut copy, schema);
    copy
}

fn remove_internal(schema: &mut Value, root: &Value) {
    if let Value::Object(keywords) = schema {
        let mut hidden: Vec<String> = Vec::new();
        if let Some(Value::Object(properties)) = keywords.get_mut("properties") {
            properties.retain(|name, property| {
                let internal = is_internal(property, root, 0);
                if internal {
                    hidden.push(name.clone());
                }
                !internal
            });
        }
        for keyword in ["required", "examples", "default"] {
            match keywords.get_mut(keyword) {
                Some(Value::Array(items)) => {
                    items.retain(|item| {
                        !item
                            .as_str()
                            .is_some_and(|name| hidden.iter().any(|h| h == name))
                    });
                    items.iter_mut().for_each(|item| forget(item, &hidden));
                }
                Some(other) => forget(other, &hidden),
                None => {}
            }
        }
        for keyword in ["dependentRequired", "dependentSchemas"] {
            if let Some(Value::Object(members)) = keywords.get_mut(keyword) {
                members.retain(|name, _| !hidden.contains(name));
                for names in members.values_mut().filter_map(Value::as_array_mut) {
                    names.retain(|name| {
                        !name
                            .as_str()
                            .is_some_and(|name| hidden.iter().any(|h| h == name))
                    });
                }
            }
        }
    }
    for_each_child_mut(schema, |child| remove_internal(child, root));
}

fn forget(value: &mut Value, hidden: &[String]) {
    if let Value::Object(members) = value {
        members.retain(|name, _| !hidden.contains(name));
    }
}

fn is_internal(property: &Value, root: &Value, hops: usize) -> bool {
    let target = || {
        property
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| resolve(root, target))
    };
    Mark::Internal.is_on(property)
        || (hops < 16 && target().is_some_and(|target| is_internal(target, root, hops + 1)))
}

/// What a reference within a closed document points at.
pub(super) fn resolve<'r>(root: &'r Value, reference: &str) -> Option<&'r Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return root.pointer(&percent_decoded(fragment));
    }
    find_anchor(root, fragment)
}

fn find_anchor<'r>(schema: &'r Value, name: &str) -> Option<&'r Value> {
    let named = |keyword| schema.get(keyword).and_then(Value::as_str) == Some(name);
    if named("$anchor") || named("$dynamicAnchor") {
        return Some(schema);
    }
    children(schema)
        .into_iter()
        .find_map(|child| find_anchor(child.schema, name))
}

fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let hex = |b: Option<u8>| {
            b.and_then(|b| char::from(b).to_digit(16))
                .and_then(|d| u8::try_from(d).ok())
        };
        match (byte, hex(ahead.next()), hex(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(high * 16 + low);
                rest = ahead;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Pointers of the values in `instance` that some branch of the schema marks.
pub(super) fn marked(
    root: &Value,
    instance: &Value,
    mark: Mark,
    patterns: &Patterns,
) -> Vec<String> {
    let mut search = Search {
        root,
        patterns,
        mark,
        seen: HashSet::new(),
        found: Vec::new(),
    };
    search.visit(root, instance, "");
    search.found.sort();
    search.found.dedup();
    search.found
}

/// The patterns of `patternProperties`, compiled. One that the engine here does not read fits every
/// name: rather too much hidden than too little.
#[derive(Default)]
pub(super) struct Patterns {
    compiled: HashMap<String, Option<Regex>>,
}

impl Patterns {
    pub(super) fn of(closed: &Value) -> Patterns {
        let mut patterns = Patterns::default();
        patterns.collect(closed);
        patterns
    }

    fn collect(&mut self, value: &Value) {
        for pattern in value
            .get("patternProperties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|members| members.keys())
        {
            let regex = super::ecma::translate(pattern).ok();
            let regex = regex.and_then(|regex| {
                let limited = RegexBuilder::new(&regex)
                    .size_limit(super::MAX_PATTERN_BYTES)
                    .build();
                limited.ok()
            });
            self.compiled.entry(pattern.clone()).or_insert(regex);
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => members.values().for_each(|member| self.collect(member)),
            _ => {}
        }
    }

    fn fit(&self, pattern: &str, name: &str) -> bool {
        let regex = self.compiled.get(pattern).and_then(Option::as_ref);
        regex.is_none_or(|regex| regex.is_match(name))
    }
}

struct Search<'r> {
    root: &'r Value,
    patterns: &'r Patterns,
    mark: Mark,
    /// Schema (by address) and pointer: each pair is looked at once, whatever leads there.
    seen: HashSet<(usize, String)>,
    found: Vec<String>,
}

impl Search<'_> {
    /// Whether a subschema is about parts of a value that have no place of their own: names of an object's
    /// members, and a document within a text. Where these may be sensitive, the whole value is.
    fn hides_whole(&self, child: &Child<'_>, instance: &Value) -> bool {
        self.mark == Mark::Sensitive
            && match child.keyword {
                "contentSchema" => instance.is_string(),
                "propertyNames" => {
                    let marks = Marks::of(child.schema);
                    let refers = child.schema.get("$ref").is_some();
                    instance.is_object() && (marks.sensitive || refers)
                }
                _ => false,
            }
    }

    fn visit(&mut self, schema: &Value, instance: &Value, pointer: &str) {
        if !self
            .seen
            .insert((std::ptr::from_ref(schema).addr(), pointer.to_owned()))
        {
            return;
        }
        if self.mark.is_on(schema) {
            self.found.push(pointer.to_owned());
        }
        for keyword in ["$ref", "$dynamicRef"] {
            if let Some(target) = schema
                .get(keyword)
                .and_then(Value::as_str)
                .and_then(|target| resolve(self.root, target))
            {
                self.visit(target, instance, pointer);
            }
        }
        for child in children(schema) {
            match child.applies {
                _ if self.hides_whole(&child, instance) => {
                    // Names can't be hidden one by one, and a text has no parts.
                    self.found.push(pointer.to_owned());
                }
                Applies::InPlace => self.visit(child.schema, instance, pointer),
                Applies::Property(name) => {
                    if let Some(value) = instance.get(name) {
                        self.visit(child.schema, value, &format!("{pointer}/{}", escape(name)));
                    }
                }
                Applies::Inside if child.keyword != "propertyNames" => match instance {
                    Value::Array(items) => {
                        for (index, item) in items.iter().enumerate() {
                            self.visit(child.schema, item, &format!("{pointer}/{index}"));
                        }
                    }
                    Value::Object(members) => {
                        let inner = members.iter().filter(|(name, _)| match child.keyword {
                            "additionalProperties" => schema
                                .get("properties")
                                .and_then(|named| named.get(name))
                                .is_none(),
                            "patternProperties" => child
                                .key
                                .as_deref()
                                .is_none_or(|pattern| self.patterns.fit(pattern, name)),
                            _ => true,
                        });
                        for (name, member) in inner {
                            self.visit(
                                child.schema,
                                member,
                                &format!("{pointer}/{}", escape(name)),
                            );
                        }
                    }
                    _ => {}
                },
                Applies::Inside | Applies::Nowhere => {}
            }
        }
    }
}

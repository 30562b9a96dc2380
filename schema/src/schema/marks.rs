//! Marks in a schema: `x-internal` for parts of values that only the host may see, `x-sensitive`
//! and `writeOnly` for parts that no log may contain. Marks do not affect validation.

use std::collections::{HashMap, HashSet};

use regex::Regex;
use serde_json::{Map, Value};

use super::compile::compile_pattern;
use super::walk::{Applies, Child, address, children, escape, find_part, targets, unescape};
use super::{Schema, ecma};
use crate::json::parts;

/// Replaces a sensitive value wherever a person, a record or a log would see it. The ledger stores
/// this text on disk.
pub const HIDDEN: &str = "[hidden]";

impl Schema {
    /// Whether some part of the schema is marked `x-internal`.
    pub fn has_internal(&self) -> bool {
        self.inner.has_internal
    }

    /// Whether some part of the schema is marked `writeOnly` or `x-sensitive`.
    pub fn has_sensitive(&self) -> bool {
        self.inner.has_sensitive
    }

    /// JSON pointers of the values in `instance` that the schema marks `writeOnly` or
    /// `x-sensitive`, in any of its branches. No ledger, log or trace may contain these values.
    pub fn sensitive_paths(&self, instance: &Value) -> Vec<String> {
        match self.has_sensitive() {
            true => self.marked(instance, SchemaMark::Sensitive),
            false => Vec::new(),
        }
    }

    /// JSON pointers of the values in `instance` that the schema marks `x-internal`. A model should
    /// not send such values.
    pub fn internal_paths(&self, instance: &Value) -> Vec<String> {
        match self.has_internal() {
            true => self.marked(instance, SchemaMark::Internal),
            false => Vec::new(),
        }
    }

    /// Pointers of the values in `instance` that some branch of the schema marks.
    fn marked(&self, instance: &Value, mark: SchemaMark) -> Vec<String> {
        let mut search = Search {
            root: &self.inner.closed,
            patterns: &self.inner.patterns,
            mark,
            seen: HashSet::new(),
            found: Vec::new(),
        };
        search.visit(search.root, instance, "");
        search.found.sort();
        search.found.dedup();
        search.found
    }

    /// JSON pointers of the subschemas of [`Schema::closed`] that are marked `x-internal`.
    pub fn internal_fields(&self) -> Vec<String> {
        self.marked_fields(SchemaMark::Internal)
    }

    /// JSON pointers of the subschemas of [`Schema::closed`] that are marked `writeOnly` or
    /// `x-sensitive`.
    pub fn sensitive_fields(&self) -> Vec<String> {
        self.marked_fields(SchemaMark::Sensitive)
    }

    fn marked_fields(&self, mark: SchemaMark) -> Vec<String> {
        let mut found = Vec::new();
        find_part(&self.inner.closed, |at, value| {
            found.extend(mark.is_on(value).then(|| at.to_owned()));
            None::<()>
        });
        found
    }

    /// `instance` without the values marked `x-internal`, as a model may see it. Marked items of a
    /// list become `null`, so that the other items keep their positions.
    pub fn outward_value(&self, mut instance: Value) -> Value {
        for path in self.internal_paths(&instance) {
            remove(&mut instance, &path);
        }
        instance
    }

    /// `instance` as people, records and logs may see it: with [`HIDDEN`] for each sensitive value.
    /// The specification Agent Tool calls this the observable input.
    pub fn observable(&self, instance: &Value) -> Value {
        let mut copy = instance.clone();
        for path in self.sensitive_paths(instance) {
            if let Some(value) = copy.pointer_mut(&path) {
                *value = HIDDEN.into();
            }
        }
        copy
    }
}

/// A mark in a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaMark {
    Internal,
    Sensitive,
}

impl SchemaMark {
    pub(super) fn is_on(self, schema: &Value) -> bool {
        let mut keywords = schema.as_object().into_iter().flatten();
        keywords.any(|(keyword, value)| *value == Value::Bool(true) && self.is_set_by(keyword))
    }

    /// Whether this is the keyword of the mark.
    pub(super) fn is_set_by(self, keyword: &str) -> bool {
        match self {
            SchemaMark::Internal => keyword == "x-internal",
            SchemaMark::Sensitive => matches!(keyword, "x-sensitive" | "writeOnly"),
        }
    }

    /// Whether any schema below a value has the mark. The search covers all parts, since a
    /// reference may point to a place that no keyword leads to.
    pub(super) fn is_within(self, value: &Value) -> bool {
        self.is_on(value) || parts(value).any(|part| self.is_within(part))
    }
}

/// Removes the value at a JSON pointer.
fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        *value = Value::Null;
        return;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.shift_remove(&unescape(name));
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

/// The compiled patterns of `patternProperties`. A pattern that the engine can't compile matches
/// every name, so that too much is hidden rather than too little.
#[derive(Default)]
pub(super) struct NamePatterns {
    compiled: HashMap<String, Option<Regex>>,
}

impl NamePatterns {
    pub(super) fn of(closed: &Value) -> Self {
        let mut patterns = Self::default();
        patterns.collect(closed);
        patterns
    }

    fn collect(&mut self, value: &Value) {
        let named = value.get("patternProperties").and_then(Value::as_object);
        for pattern in named.into_iter().flat_map(Map::keys) {
            let regex = ecma::translate(pattern).ok();
            let regex = regex.and_then(|regex| compile_pattern(&regex).ok());
            self.compiled.entry(pattern.clone()).or_insert(regex);
        }
        parts(value).for_each(|part| self.collect(part));
    }

    fn fit(&self, pattern: &str, name: &str) -> bool {
        let regex = self.compiled.get(pattern).and_then(Option::as_ref);
        regex.is_none_or(|regex| regex.is_match(name))
    }
}

struct Search<'r> {
    root: &'r Value,
    patterns: &'r NamePatterns,
    mark: SchemaMark,
    /// The visited pairs of schema (by address) and pointer. Each pair is visited once.
    seen: HashSet<(usize, String)>,
    found: Vec<String>,
}

impl Search<'_> {
    /// Whether a subschema applies to parts of a value that have no pointer: the names of an
    /// object's members, or a document within a text. If such a part may be sensitive, the whole
    /// value is hidden.
    fn hides_whole(&self, child: &Child<'_>, instance: &Value) -> bool {
        self.mark == SchemaMark::Sensitive
            && match child.keyword {
                "contentSchema" => instance.is_string(),
                "propertyNames" => {
                    let refers = child.schema.get("$ref").is_some();
                    instance.is_object() && (refers || self.mark.is_within(child.schema))
                }
                _ => false,
            }
    }

    fn visit_member(&mut self, schema: &Value, name: &str, member: &Value, pointer: &str) {
        self.visit(schema, member, &format!("{pointer}/{}", escape(name)));
    }

    fn visit(&mut self, schema: &Value, instance: &Value, pointer: &str) {
        let place = (address(schema), pointer.to_owned());
        if !self.seen.insert(place) {
            return;
        }
        if self.mark.is_on(schema) {
            self.found.push(pointer.to_owned());
        }
        for target in targets(schema, self.root) {
            self.visit(target, instance, pointer);
        }
        for child in children(schema) {
            match child.applies {
                _ if self.hides_whole(&child, instance) => {
                    // Names can't be hidden individually, and a text has no parts with a pointer.
                    self.found.push(pointer.to_owned());
                }
                Applies::InPlace => self.visit(child.schema, instance, pointer),
                Applies::Property(name) => {
                    if let Some(value) = instance.get(name) {
                        self.visit_member(child.schema, name, value, pointer);
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
                            "additionalProperties" => {
                                let named = schema.get("properties");
                                named.and_then(|named| named.get(name)).is_none()
                            }
                            "patternProperties" => {
                                let pattern = child.key.as_deref();
                                pattern.is_none_or(|pattern| self.patterns.fit(pattern, name))
                            }
                            _ => true,
                        });
                        for (name, member) in inner {
                            self.visit_member(child.schema, name, member, pointer);
                        }
                    }
                    _ => {}
                },
                Applies::Inside | Applies::Nowhere => {}
            }
        }
    }
}

//! Whether every value of one schema is a value of another, keyword by keyword (JSON Schema 2020-12). What can't be
//! told is said to be so.

mod bounds;
mod place;

use std::collections::BTreeSet;

use serde_json::Value;
use toolward_contract::schema::without_annotations;

use self::place::{Place, refers_elsewhere, target};

/// Pairs of schemas that are compared.
const MAX_PAIRS: usize = 10_000;

/// Levels of schemas that are compared. A contract's schemas may be 64 deep.
const MAX_DEPTH: usize = 128;

/// Keywords that are the same in both, or of which nothing can be told, with the types of the values that they concern.
const WHOLE: [(&str, &[&str]); 19] = [
    ("$dynamicRef", &[]),
    ("allOf", &[]),
    ("contains", &["array"]),
    ("dependentRequired", &["object"]),
    ("dependentSchemas", &["object"]),
    ("else", &[]),
    ("format", &["string"]),
    ("if", &[]),
    ("maxContains", &["array"]),
    ("minContains", &["array"]),
    ("multipleOf", &["number", "integer"]),
    ("not", &[]),
    ("pattern", &["string"]),
    ("patternProperties", &["object"]),
    ("prefixItems", &["array"]),
    ("propertyNames", &["object"]),
    ("then", &[]),
    ("unevaluatedItems", &["array"]),
    ("unevaluatedProperties", &["object"]),
];

/// Keywords that let values through which another one would judge.
const OPENING: [(&str, &str); 3] = [
    ("patternProperties", "additionalProperties"),
    ("prefixItems", "items"),
    ("minContains", "contains"),
];

/// A value of the inner schema that is not one of the outer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    /// JSON pointer into the inner schema.
    pub(super) inner: String,
    /// JSON pointer into the outer schema.
    pub(super) outer: String,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// The outer schema has no such type.
    Type(String),
    /// The outer schema lists other values.
    Values,
    /// The outer schema has a narrower bound.
    Bound(&'static str),
    /// The outer schema requires a property that may be missing.
    Required(String),
    /// The outer schema forbids a property.
    Property(String),
    /// The outer schema forbids properties that it does not name.
    Others,
    /// The keyword differs, and what follows can't be told.
    Unclear(&'static str),
}

impl What {
    /// The keyword that says so.
    pub(super) fn keyword(&self) -> &'static str {
        match self {
            Self::Type(_) => "type",
            Self::Values => "enum",
            Self::Bound(keyword) | Self::Unclear(keyword) => keyword,
            Self::Required(_) => "required",
            Self::Property(_) | Self::Others => "additionalProperties",
        }
    }
}

/// Where values of `inner` are none of `outer`. Properties that only one of them names, and that the other allows,
/// are no difference.
pub(super) fn differences(inner: &Value, outer: &Value) -> Vec<Difference> {
    let (inner, outer) = (without_annotations(inner), without_annotations(outer));
    let definitions = ["$defs", "definitions"];
    let mut comparison = Comparison {
        roots: (&inner, &outer),
        same_definitions: definitions
            .iter()
            .all(|key| inner.get(key) == outer.get(key))
            && !refers_elsewhere(&inner, &definitions)
            && !refers_elsewhere(&outer, &definitions),
        followed: BTreeSet::new(),
        left: MAX_PAIRS,
        found: Vec::new(),
    };
    comparison.compare(&Place::root(&inner), &Place::root(&outer));
    let mut found = comparison.found;
    // A definition is reached by each reference to it.
    let mut told = BTreeSet::new();
    found.retain(|one| told.insert(one.clone()));
    found
}

struct Comparison<'s> {
    roots: (&'s Value, &'s Value),
    /// Whether equal references mean equal schemas.
    same_definitions: bool,
    /// The pairs of references that are being followed.
    followed: BTreeSet<(String, String)>,
    left: usize,
    found: Vec<Difference>,
}

impl<'s> Comparison<'s> {
    fn add(&mut self, inner: &Place<'_>, outer: &Place<'_>, what: What) {
        self.found.push(Difference {
            inner: inner.pointer.clone(),
            outer: outer.pointer.clone(),
            what,
        });
    }

    fn compare(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        if self.same_definitions && inner.schema == outer.schema
            || inner.schema == &Value::Bool(false)
            || outer.allows_all()
        {
            return;
        }
        let deep = inner.depth.max(outer.depth) > MAX_DEPTH;
        let Some(left) = self.left.checked_sub(1).filter(|_| !deep) else {
            return self.add(inner, outer, What::Unclear("$ref"));
        };
        self.left = left;
        if outer.schema == &Value::Bool(false) {
            return self.add(inner, outer, What::Type("any value".to_owned()));
        }
        if inner.get("$ref").is_some() || outer.get("$ref").is_some() {
            return self.follow(inner, outer);
        }
        for keyword in ["anyOf", "oneOf"] {
            if self.is_same(keyword, inner, outer) {
                continue;
            }
            // What stands beside the branches holds for each of them.
            let alone = inner.get("type").is_none() && inner.get("properties").is_none();
            if let Some(Value::Array(branches)) = inner.get(keyword).filter(|_| alone) {
                for (index, branch) in branches.iter().enumerate() {
                    let branch = inner.below(&format!("{keyword}/{index}"), branch);
                    self.compare(&branch, outer);
                }
                return;
            }
            if let Some(Value::Array(branches)) = outer.get(keyword) {
                self.branches(keyword, branches, inner, outer);
            }
        }
        self.values(inner, outer);
        self.bounds(inner, outer);
        self.object(inner, outer);
        self.array(inner, outer);
        self.whole(inner, outer);
    }

    /// Whether both have the same keyword, or none.
    fn is_same(&self, keyword: &str, inner: &Place<'_>, outer: &Place<'_>) -> bool {
        let (one, other) = (inner.get(keyword), outer.get(keyword));
        one == other
            && (self.same_definitions || one.is_none_or(|value| !refers_elsewhere(value, &[])))
    }

    fn follow(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        let (inner_root, outer_root) = self.roots;
        let (Some(one), Some(other)) = (target(inner, inner_root), target(outer, outer_root))
        else {
            return self.add(inner, outer, What::Unclear("$ref"));
        };
        let pair = (one.pointer.clone(), other.pointer.clone());
        if self.followed.insert(pair.clone()) {
            self.compare(&one, &other);
            self.followed.remove(&pair);
        }
    }

    /// One branch that takes all values is enough; of `oneOf` the others have to take none of them.
    fn branches(
        &mut self,
        keyword: &'static str,
        branches: &'s [Value],
        inner: &Place<'s>,
        outer: &Place<'s>,
    ) {
        let before = self.found.len();
        for (index, branch) in branches.iter().enumerate() {
            let place = outer.below(&format!("{keyword}/{index}"), branch);
            self.compare(inner, &place);
            let fits = self.found.len() == before;
            self.found.truncate(before);
            let others = || branches.iter().enumerate().filter(|(at, _)| *at != index);
            if fits
                && (keyword == "anyOf"
                    || others().all(|(_, other)| Place::root(other).is_apart_from(inner)))
            {
                return;
            }
        }
        self.add(inner, outer, What::Unclear(keyword));
    }

    fn values(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        let mut missing: BTreeSet<&str> = inner.types().into_iter().collect();
        let allowed = outer.types();
        let numbers = allowed.contains(&"number");
        missing.retain(|name| !(allowed.contains(name) || numbers && *name == "integer"));
        if !missing.is_empty() {
            let missing: Vec<&str> = missing.into_iter().collect();
            return self.add(inner, outer, What::Type(missing.join(" or ")));
        }
        if let Some(listed) = outer.values() {
            let all = inner.values();
            if all.is_none_or(|all| all.iter().any(|value| !listed.contains(value))) {
                self.add(inner, outer, What::Values);
            }
        }
    }

    fn object(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        if !inner.may_be(&["object"]) || inner.values().is_some() {
            return;
        }
        let required = outer.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !inner.requires(name) {
                self.add(inner, outer, What::Required(name.to_owned()));
            }
        }
        let others = outer.get("additionalProperties");
        for (name, schema) in inner.properties() {
            let own = inner.property(name, schema);
            let named = outer.get("properties").and_then(|all| all.get(name));
            match (named, others) {
                (Some(named), _) => self.compare(&own, &outer.property(name, named)),
                (None, Some(Value::Bool(false))) => {
                    self.add(&own, outer, What::Property(name.clone()));
                }
                (None, Some(others)) => {
                    self.compare(&own, &outer.below("additionalProperties", others));
                }
                (None, None) => {}
            }
        }
        self.others(inner, outer);
    }

    /// Properties that one of them does not name.
    fn others(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        let (own, others) = (
            inner.get("additionalProperties"),
            outer.get("additionalProperties"),
        );
        if let Some(own @ Value::Object(_)) = own {
            let own = inner.below("additionalProperties", own);
            for (name, schema) in outer.properties() {
                if inner
                    .get("properties")
                    .is_none_or(|all| all.get(name).is_none())
                {
                    self.compare(&own, &outer.property(name, schema));
                }
            }
            if let Some(others) = others {
                self.compare(&own, &outer.below("additionalProperties", others));
            }
            return;
        }
        match others {
            _ if own == Some(&Value::Bool(false)) => {}
            Some(Value::Bool(false)) => self.add(inner, outer, What::Others),
            Some(Value::Object(members)) if !members.is_empty() => {
                self.add(inner, outer, What::Unclear("additionalProperties"));
            }
            _ => {}
        }
    }

    fn array(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        let Some(outer_items) = outer.get("items").filter(|_| inner.may_be(&["array"])) else {
            return;
        };
        let outer = outer.below("items", outer_items);
        match inner.get("items") {
            Some(items) => self.compare(&inner.below("items", items), &outer),
            None if !outer.allows_all() && inner.values().is_none() => {
                self.add(inner, &outer, What::Unclear("items"));
            }
            None => {}
        }
    }

    fn whole(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        for (keyword, types) in WHOLE {
            let concerned = types.is_empty() || inner.may_be(types);
            if concerned && outer.get(keyword).is_some() && !self.is_same(keyword, inner, outer) {
                self.add(inner, outer, What::Unclear(keyword));
            }
        }
        let closes = |keyword: &str| outer.get(keyword).is_some_and(|one| !place::is_open(one));
        for (opening, closing) in OPENING {
            if inner.get(opening).is_some() && outer.get(opening).is_none() && closes(closing) {
                self.add(inner, outer, What::Unclear(opening));
            }
        }
        for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
            // What it leaves depends on all that stands beside it.
            if closes(keyword)
                && self.is_same(keyword, inner, outer)
                && inner.schema != outer.schema
            {
                self.add(inner, outer, What::Unclear(keyword));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn found(inner: Value, outer: Value) -> Vec<What> {
        let found = differences(&inner, &outer).into_iter();
        found.map(|difference| difference.what).collect()
    }

    #[test]
    fn each_keyword_narrows_and_widens() {
        let object = |name: &str, schema: Value| {
            let properties = json!({ name: schema });
            json!({ "type": "object", "properties": properties })
        };
        // Each pair: the wider first. All values of the narrower are values of the wider, and not the other way round.
        for (wide, narrow, what) in [
            (
                json!({}),
                json!({ "type": "string" }),
                What::Type("array or boolean or null or number or object".to_owned()),
            ),
            (
                json!({ "type": "number" }),
                json!({ "type": "integer" }),
                What::Type("number".to_owned()),
            ),
            (
                json!({ "type": ["string", "null"] }),
                json!({ "type": "string" }),
                What::Type("null".to_owned()),
            ),
            (
                json!({ "enum": ["a", "b"] }),
                json!({ "enum": ["a"] }),
                What::Values,
            ),
            (
                json!({ "type": "string" }),
                json!({ "const": "a" }),
                What::Values,
            ),
            (
                json!({ "minimum": 1 }),
                json!({ "minimum": 2 }),
                What::Bound("minimum"),
            ),
            (
                json!({ "maxLength": 9 }),
                json!({ "maxLength": 8 }),
                What::Bound("maxLength"),
            ),
            (
                json!({ "type": "array" }),
                json!({ "type": "array", "uniqueItems": true }),
                What::Bound("uniqueItems"),
            ),
            (
                object("a", json!({})),
                json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] }),
                What::Required("a".to_owned()),
            ),
            (
                object("a", json!({})),
                object("a", json!({ "minimum": 3 })),
                What::Bound("minimum"),
            ),
            (
                json!({ "type": "object" }),
                json!({ "type": "object", "additionalProperties": false }),
                What::Others,
            ),
            (
                json!({ "items": { "maximum": 5 } }),
                json!({ "items": { "maximum": 4 } }),
                What::Bound("maximum"),
            ),
            (
                json!({ "type": "string" }),
                json!({ "type": "string", "pattern": "a" }),
                What::Unclear("pattern"),
            ),
            (
                json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
                json!({ "type": "string" }),
                What::Type("null".to_owned()),
            ),
        ] {
            assert_eq!(
                found(narrow.clone(), wide.clone()),
                [],
                "{narrow} in {wide}"
            );
            assert_eq!(
                found(wide.clone(), narrow.clone()),
                [what],
                "{wide} in {narrow}"
            );
        }
    }

    #[test]
    fn a_change_that_breaks_is_found_whatever_its_form() {
        let list = |items: Value| json!({ "type": "array", "items": items });
        for (old, new) in [
            (
                json!({ "properties": { "i": { "$ref": "#/definitions/I" } }, "definitions": { "I": { "type": "string" } } }),
                json!({ "properties": { "i": { "$ref": "#/definitions/I" } }, "definitions": { "I": { "type": "integer" } } }),
            ),
            (
                json!({ "patternProperties": { "^x-": {} }, "additionalProperties": false }),
                json!({ "additionalProperties": false }),
            ),
            (
                json!({ "prefixItems": [{ "type": "string" }], "items": { "type": "integer" } }),
                list(json!({ "type": "integer" })),
            ),
            (
                json!({ "properties": { "a": {}, "b": {} }, "unevaluatedProperties": false }),
                json!({ "properties": { "a": {} }, "unevaluatedProperties": false }),
            ),
            (
                json!({ "type": ["string", "null"], "enum": ["a", null] }),
                json!({ "type": "string", "enum": ["a", null] }),
            ),
            (
                json!({ "enum": [1, 2, 3] }),
                json!({ "type": "integer", "minimum": 2 }),
            ),
            (
                json!({ "enum": ["low", "medium"] }),
                json!({ "type": "string", "maxLength": 3 }),
            ),
            (
                json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }] }),
                json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }, { "type": "number" }] }),
            ),
            (
                json!({ "type": "object", "additionalProperties": { "type": "string" } }),
                json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "additionalProperties": { "type": "string" } }),
            ),
        ] {
            assert!(
                !found(old.clone(), new.clone()).is_empty(),
                "{old} to {new}"
            );
        }
    }

    #[test]
    fn a_change_that_is_compatible_is_none() {
        for (old, new) in [
            (
                json!({ "type": "string" }),
                json!({ "type": ["string", "integer"], "minimum": 1 }),
            ),
            (
                json!({ "type": "string" }),
                json!({ "type": ["string", "object"], "required": ["a"], "additionalProperties": false }),
            ),
            (
                json!({ "type": "integer", "minimum": 5 }),
                json!({ "type": "integer", "exclusiveMinimum": 0 }),
            ),
            (
                json!({ "type": "number", "exclusiveMinimum": 0 }),
                json!({ "type": "number", "minimum": 0 }),
            ),
            (
                json!({ "allOf": [{ "type": "object", "description": "a" }] }),
                json!({ "allOf": [{ "type": "object", "description": "b" }] }),
            ),
            (
                json!({ "$ref": "#/$defs/r", "default": 1, "$defs": { "r": { "type": "integer" } } }),
                json!({ "$ref": "#/$defs/r", "default": 2, "$defs": { "r": { "type": "integer", "title": "R" } } }),
            ),
            (
                json!({ "type": "object" }),
                json!({ "type": "object", "additionalProperties": {} }),
            ),
            (json!({ "const": 1.0 }), json!({ "type": "integer" })),
            (json!({ "enum": ["a"] }), json!({ "enum": ["a", "b"] })),
            (
                json!({ "oneOf": [{ "type": "integer" }] }),
                json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }] }),
            ),
            (json!({ "type": "string" }), json!({ "type": ["string"] })),
        ] {
            assert_eq!(found(old.clone(), new.clone()), [], "{old} to {new}");
        }
    }

    #[test]
    fn properties_that_one_side_adds_are_no_difference_unless_the_other_forbids_them() {
        let one = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let two = json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": {} } });
        assert_eq!(found(one.clone(), two.clone()), []);
        assert_eq!(found(two.clone(), one.clone()), []);
        let mut closed = one;
        closed["additionalProperties"] = json!(false);
        let forbidden = What::Property("b".to_owned());
        assert_eq!(found(two, closed), [forbidden, What::Others]);
    }

    #[test]
    fn references_are_followed_once() {
        let tree = |leaf: Value| {
            json!({
                "$ref": "#/$defs/tree",
                "$defs": { "tree": { "type": "object", "properties": {
                    "leaf": leaf, "next": { "$ref": "#/$defs/tree" },
                } } },
            })
        };
        let (wide, narrow) = (tree(json!({})), tree(json!({ "type": "string" })));
        assert_eq!(found(narrow.clone(), wide.clone()), []);
        let all = differences(&wide, &narrow);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].outer, "/$defs/tree/properties/leaf");
    }

    #[test]
    fn schemas_that_double_at_each_step_are_compared_in_bounded_time() {
        let bomb = |leaf: &str| {
            let mut definitions = Map::new();
            for step in 0..40 {
                let next = json!({ "$ref": format!("#/$defs/s{}", step + 1) });
                let both = json!({ "anyOf": [next.clone(), { "items": next }] });
                definitions.insert(format!("s{step}"), both);
            }
            definitions.insert("s40".to_owned(), json!({ "type": leaf }));
            json!({ "anyOf": [{ "$ref": "#/$defs/s0" }], "$defs": definitions })
        };
        let found = differences(&bomb("string"), &bomb("number"));
        assert!(found.len() <= MAX_PAIRS);
    }
}

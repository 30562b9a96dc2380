//! Whether every value of one schema is a value of another, keyword by keyword (JSON Schema 2020-12). What can't be
//! told is said to be so.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Pairs of schemas that are compared.
const MAX_PAIRS: usize = 10_000;

/// Levels of schemas that are compared. A contract's schemas may be 64 deep.
const MAX_DEPTH: usize = 128;

/// Keywords with a lowest value, and with a highest.
const LOWER: [&str; 5] = [
    "minimum",
    "exclusiveMinimum",
    "minLength",
    "minItems",
    "minProperties",
];
const UPPER: [&str; 5] = [
    "maximum",
    "exclusiveMaximum",
    "maxLength",
    "maxItems",
    "maxProperties",
];

/// Keywords that are the same in both, or of which nothing can be told.
const WHOLE: [&str; 18] = [
    "allOf",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "format",
    "if",
    "maxContains",
    "minContains",
    "multipleOf",
    "not",
    "pattern",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

const TYPES: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];

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

/// Where values of `inner` are none of `outer`. Properties that only one of them names, and that the other allows,
/// are no difference.
pub(super) fn differences(inner: &Value, outer: &Value) -> Vec<Difference> {
    let mut comparison = Comparison {
        roots: (inner, outer),
        same_definitions: inner.get("$defs") == outer.get("$defs"),
        followed: BTreeSet::new(),
        left: MAX_PAIRS,
        found: Vec::new(),
    };
    comparison.compare(&Place::root(inner), &Place::root(outer));
    let mut found = comparison.found;
    // A definition is reached by each reference to it.
    let mut told = BTreeSet::new();
    found.retain(|one| told.insert(one.clone()));
    found
}

/// A schema and the pointer to it.
struct Place<'s> {
    schema: &'s Value,
    pointer: String,
    depth: usize,
}

impl<'s> Place<'s> {
    fn root(schema: &'s Value) -> Self {
        Self {
            schema,
            pointer: String::new(),
            depth: 0,
        }
    }

    fn below(&self, keyword: &str, schema: &'s Value) -> Self {
        Self {
            schema,
            pointer: format!("{}/{keyword}", self.pointer),
            depth: self.depth + 1,
        }
    }

    fn property(&self, name: &str, schema: &'s Value) -> Self {
        let name = name.replace('~', "~0").replace('/', "~1");
        self.below(&format!("properties/{name}"), schema)
    }

    fn get(&self, keyword: &str) -> Option<&'s Value> {
        self.schema.get(keyword)
    }

    fn properties(&self) -> impl Iterator<Item = (&'s String, &'s Value)> + use<'s> {
        let properties = self.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(Map::iter)
    }

    fn requires(&self, name: &str) -> bool {
        let required = self.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|one| one == name))
    }

    /// The values that it lists.
    fn values(&self) -> Option<Vec<&'s Value>> {
        match (self.get("const"), self.get("enum")) {
            (Some(one), _) => Some(vec![one]),
            (None, Some(Value::Array(values))) => Some(values.iter().collect()),
            _ => None,
        }
    }

    /// The types of its values; `integer` stands beside the six.
    fn types(&self) -> Vec<&'s str> {
        match (self.get("type"), self.values()) {
            (_, Some(values)) => values.into_iter().map(type_of).collect(),
            (Some(Value::String(name)), None) => vec![name],
            (Some(Value::Array(names)), None) => names.iter().filter_map(Value::as_str).collect(),
            _ => TYPES.to_vec(),
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

struct Comparison<'s> {
    roots: (&'s Value, &'s Value),
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
            || outer.schema == &Value::Bool(true)
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
                self.any_of(keyword, branches, inner, outer);
            }
        }
        self.values(inner, outer);
        self.bounds(inner, outer);
        self.object(inner, outer);
        self.array(inner, outer);
        for keyword in WHOLE {
            if outer.get(keyword).is_some() && !self.is_same(keyword, inner, outer) {
                self.add(inner, outer, What::Unclear(keyword));
            }
        }
    }

    /// Whether both have the same keyword, or none.
    fn is_same(&self, keyword: &str, inner: &Place<'_>, outer: &Place<'_>) -> bool {
        let (one, other) = (inner.get(keyword), outer.get(keyword));
        one == other && (self.same_definitions || one.is_none_or(|value| !refers(value)))
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

    /// One branch that takes all values is enough.
    fn any_of(
        &mut self,
        keyword: &'static str,
        branches: &'s [Value],
        inner: &Place<'s>,
        outer: &Place<'s>,
    ) {
        let before = self.found.len();
        for (index, branch) in branches.iter().enumerate() {
            let branch = outer.below(&format!("{keyword}/{index}"), branch);
            self.compare(inner, &branch);
            if self.found.len() == before {
                return;
            }
            self.found.truncate(before);
        }
        self.add(inner, outer, What::Unclear(keyword));
    }

    fn values(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        let allowed = outer.types();
        let numbers = allowed.contains(&"number");
        let mut missing: Vec<&str> = inner.types();
        missing.retain(|name| !(allowed.contains(name) || numbers && *name == "integer"));
        missing.dedup();
        if !missing.is_empty() {
            return self.add(inner, outer, What::Type(missing.join(" or ")));
        }
        if let Some(listed) = outer.values() {
            let all = inner.values();
            if all.is_none_or(|all| all.iter().any(|value| !listed.contains(value))) {
                self.add(inner, outer, What::Values);
            }
        }
    }

    fn bounds(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        if inner.values().is_some() {
            return;
        }
        let number = |place: &Place<'_>, keyword: &str| place.get(keyword).and_then(Value::as_f64);
        for keyword in LOWER {
            if let Some(least) = number(outer, keyword)
                && number(inner, keyword).is_none_or(|own| own < least)
                && !(keyword.starts_with("min") && keyword != "minimum" && least <= 0.0)
            {
                self.add(inner, outer, What::Bound(keyword));
            }
        }
        for keyword in UPPER {
            if let Some(most) = number(outer, keyword)
                && number(inner, keyword).is_none_or(|own| own > most)
            {
                self.add(inner, outer, What::Bound(keyword));
            }
        }
        if outer.get("uniqueItems") == Some(&Value::Bool(true))
            && inner.get("uniqueItems") != Some(&Value::Bool(true))
        {
            self.add(inner, outer, What::Bound("uniqueItems"));
        }
    }

    fn object(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        let required = outer.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !inner.requires(name) {
                self.add(inner, outer, What::Required(name.to_owned()));
            }
        }
        let others = outer.get("additionalProperties");
        let closed = others == Some(&Value::Bool(false));
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
        match (inner.get("additionalProperties"), others) {
            (Some(Value::Bool(false)), _) | (_, None) => {}
            (Some(own @ Value::Object(_)), Some(others)) => self.compare(
                &inner.below("additionalProperties", own),
                &outer.below("additionalProperties", others),
            ),
            (_, Some(_)) if closed => self.add(inner, outer, What::Others),
            (_, Some(Value::Object(_))) => {
                self.add(inner, outer, What::Unclear("additionalProperties"));
            }
            _ => {}
        }
    }

    fn array(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        let Some(outer_items) = outer.get("items") else {
            return;
        };
        let outer = outer.below("items", outer_items);
        match inner.get("items") {
            Some(items) => self.compare(&inner.below("items", items), &outer),
            None if inner.types().contains(&"array") && outer_items != &Value::Bool(true) => {
                self.add(inner, &outer, What::Unclear("items"));
            }
            None => {}
        }
    }
}

/// Where a schema's reference leads, if it is within its document and stands alone; the schema itself if it has none.
fn target<'s>(place: &Place<'s>, root: &'s Value) -> Option<Place<'s>> {
    let Some(reference) = place.get("$ref") else {
        return Some(Place {
            pointer: place.pointer.clone(),
            ..*place
        });
    };
    const ANNOTATIONS: [&str; 6] = [
        "$defs",
        "$ref",
        "$schema",
        "description",
        "examples",
        "title",
    ];
    let alone = place.schema.as_object()?.keys();
    let pointer = reference.as_str()?.strip_prefix('#')?;
    (alone.clone().all(|key| ANNOTATIONS.contains(&key.as_str()))).then_some(())?;
    Some(Place {
        schema: root.pointer(pointer)?,
        pointer: pointer.to_owned(),
        depth: place.depth + 1,
    })
}

/// Whether there is a reference in it.
fn refers(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(refers),
        Value::Object(object) => object.contains_key("$ref") || object.values().any(refers),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

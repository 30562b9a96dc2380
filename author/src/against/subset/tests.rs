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
    // Each pair has the wider schema first. All values of the narrower schema are values of the
    // wider one, but not the reverse.
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
            What::Added("pattern"),
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

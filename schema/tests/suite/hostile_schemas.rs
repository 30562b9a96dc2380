//! Schemas written to hang, exhaust or mislead the host.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolward_schema::NoScope;
use toolward_schema::schema::{Schema, SchemaError};

fn compile(value: &Value) -> Result<Schema, SchemaError> {
    Schema::compile(value, &NoScope)
}

fn code(value: &Value) -> &'static str {
    compile(value).expect_err("the schema is hostile").code()
}

fn nested(depth: usize, end: Value) -> Value {
    (0..depth).fold(end, |inner, _| json!({ "a": inner }))
}

fn within(limit: Duration, what: impl FnOnce()) {
    let start = Instant::now();
    what();
    assert!(start.elapsed() < limit, "took {:?}", start.elapsed());
}

#[test]
fn a_reference_to_itself_in_place_is_refused() {
    assert_eq!(code(&json!({ "$ref": "#" })), "schema-loop");
    assert_eq!(code(&json!({ "allOf": [{ "$ref": "#" }] })), "schema-loop");
    let mutual = json!({
        "$ref": "#/$defs/a",
        "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/b" }] }, "b": { "not": { "$ref": "#/$defs/a" } } }
    });
    assert_eq!(code(&mutual), "schema-loop");
    let anchor = json!({ "$dynamicAnchor": "self", "if": { "$dynamicRef": "#self" } });
    assert_eq!(code(&anchor), "schema-loop");
}

#[test]
fn recursion_into_the_value_is_fine() {
    let tree = json!({
        "type": "object",
        "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" }, "leaves": { "type": "array", "items": { "$ref": "#" } } },
        "additionalProperties": false
    });
    let schema = compile(&tree).expect("a tree is a usual schema");
    assert!(
        schema
            .validate(&json!({ "left": { "leaves": [{}, { "right": {} }] } }))
            .is_ok()
    );
    assert!(
        schema
            .validate(&json!({ "left": { "leaves": [{}, { "middle": {} }] } }))
            .is_err()
    );
}

#[test]
fn references_that_fan_out_are_refused() {
    let mut definitions = serde_json::Map::new();
    for step in 0..40 {
        let next = format!("#/$defs/d{}", step + 1);
        definitions.insert(
            format!("d{step}"),
            json!({ "allOf": [{ "$ref": next }, { "$ref": next }] }),
        );
    }
    definitions.insert("d40".to_owned(), json!({ "type": "object" }));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
    within(Duration::from_secs(5), || {
        assert_eq!(code(&schema), "schema-cost")
    });
}

#[test]
fn references_that_fan_out_below_each_other_are_refused() {
    let mut definitions = serde_json::Map::new();
    for step in 0..40 {
        let next = json!({ "properties": { "a": { "$ref": format!("#/$defs/d{}", step + 1) } } });
        definitions.insert(format!("d{step}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("d40".to_owned(), json!({ "type": "object" }));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
    within(Duration::from_secs(5), || {
        assert_eq!(code(&schema), "schema-cost")
    });
}

#[test]
fn a_schema_that_recurses_twice_for_the_same_part_is_checked_in_time() {
    let twice = json!({ "properties": { "a": { "$ref": "#" } } });
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let mut schema = json!({ "type": "object" });
        schema[keyword] = json!([twice, twice]);
        let schema = compile(&schema).expect("recursion is allowed");
        within(Duration::from_secs(5), || {
            schema.validate(&nested(60, json!({}))).unwrap_or_default();
            assert!(schema.validate(&nested(60, json!(1))).is_err());
            assert_eq!(schema.violations(&nested(60, json!(1)), 5).len(), 1);
        });
    }
}

#[test]
fn unevaluated_properties_in_a_recursive_schema_are_checked_in_time() {
    let twice = json!({ "properties": { "a": { "$ref": "#" } } });
    let schema =
        json!({ "type": "object", "allOf": [twice, twice], "unevaluatedProperties": false });
    let schema = compile(&schema).expect("recursion is allowed");
    within(Duration::from_secs(5), || {
        assert!(schema.validate(&nested(60, json!({}))).is_ok());
        assert!(schema.validate(&nested(60, json!(1))).is_err());
    });
}

#[test]
fn nothing_outside_the_document_is_referred_to() {
    for target in [
        "https://example.com/s.json",
        "file:///etc/passwd",
        "other.json",
        "/absolute",
        "urn:x:y",
        "//host/x",
    ] {
        assert_eq!(code(&json!({ "$ref": target })), "schema-ref", "{target}");
    }
    // A schema that is below no keyword for schemas; only a reference leads to it.
    let hidden =
        json!({ "$ref": "#/x-hidden", "x-hidden": { "$ref": "https://example.com/s.json" } });
    assert_eq!(code(&hidden), "schema-ref");
    assert_eq!(code(&json!({ "$ref": "#/$defs/none" })), "schema-ref");
    let rebased = json!({ "$defs": { "a": { "$id": "https://example.com/", "$ref": "#/x" } } });
    assert_eq!(code(&rebased), "schema-ref");
}

#[test]
fn patterns_never_backtrack() {
    for pattern in ["(?=a)b", r"(a)\1", "(?<!x)y"] {
        assert_eq!(
            code(&json!({ "pattern": pattern })),
            "schema-pattern",
            "{pattern}"
        );
    }
    assert_eq!(
        code(&json!({ "patternProperties": { "(?!a)": {} } })),
        "schema-pattern"
    );
    assert_eq!(
        code(&json!({ "pattern": "a{1000}{1000}" })),
        "schema-pattern"
    );
    assert_eq!(
        code(&json!({ "pattern": "a".repeat(1025) })),
        "schema-pattern"
    );
    let schema = compile(&json!({ "pattern": "^(a+)+$" })).expect("linear here");
    let text = json!("a".repeat(100_000) + "b");
    within(Duration::from_secs(2), || {
        assert!(schema.validate(&text).is_err())
    });
}

#[test]
fn size_and_depth_are_capped() {
    let long: Vec<u32> = (0..20_000).collect();
    assert_eq!(code(&json!({ "enum": long })), "schema-too-large");
    assert_eq!(
        code(&json!({ "description": "x".repeat(300_000) })),
        "schema-too-large"
    );
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "items": inner }));
    assert_eq!(code(&deep), "schema-too-deep");
}

#[test]
fn the_deepest_schemas_are_compiled_on_the_stack_of_any_thread() {
    let compile = || {
        for keyword in ["items", "not", "if"] {
            let deep = |leaf| (0..60).fold(leaf, |inner, _| json!({ keyword: inner }));
            assert!(Schema::compile(&deep(json!({ "minLength": 1 })), &NoScope).is_ok());
            assert_eq!(code(&deep(json!({ "minLength": "1" }))), "schema-invalid");
        }
    };
    // The default stack size of Rust threads.
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(compile).unwrap().join().unwrap();
}

/// Schemas of real keywords with valid and invalid values, including references into themselves.
fn schemas() -> impl Strategy<Value = Value> {
    let reference = prop::sample::select(vec![
        "#",
        "#/$defs/a",
        "#/$defs/b",
        "#/properties/a",
        "#a",
        "#/allOf/0",
        "schema:a",
        "#/%24defs/a",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!({ "type": "object" })),
        Just(json!({ "type": ["integer", "null"], "minimum": 1 })),
        Just(json!({ "enum": [1, "a", null] })),
        Just(json!({ "$anchor": "a" })),
        Just(json!({ "pattern": "^a{1,3}$", "x-sensitive": true })),
        Just(json!({ "required": ["a"], "x-internal": true })),
        Just(json!(1)),
        reference.prop_map(|target| json!({ "$ref": target })),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let single = prop::sample::select(vec![
            "items",
            "not",
            "if",
            "then",
            "additionalProperties",
            "unevaluatedProperties",
            "propertyNames",
            "contains",
        ]);
        let list = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
        let map = prop::sample::select(vec![
            "properties",
            "$defs",
            "patternProperties",
            "dependentSchemas",
        ]);
        let keys = prop::sample::select(vec!["a", "b", "a/b"]);
        prop_oneof![
            (single, inner.clone()).prop_map(|(keyword, schema)| json!({ keyword: schema })),
            (list, prop::collection::vec(inner.clone(), 1..4))
                .prop_map(|(keyword, schemas)| json!({ keyword: schemas })),
            (map, prop::collection::vec((keys, inner.clone()), 1..4)).prop_map(
                |(keyword, members)| {
                    let members: serde_json::Map<String, Value> = members
                        .into_iter()
                        .map(|(key, schema)| (key.to_owned(), schema))
                        .collect();
                    json!({ keyword: members })
                }
            ),
            (inner.clone(), inner).prop_map(|(a, b)| match (a, b) {
                (Value::Object(mut a), Value::Object(b)) => {
                    a.extend(b);
                    Value::Object(a)
                }
                (a, _) => a,
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_schema_makes_it_panic_or_hang(schema in schemas(), leaf in prop::sample::select(vec![json!({}), json!(1), json!("a"), json!([1, {}]), json!(null)]), depth in 0..20_usize) {
        let Ok(schema) = compile(&schema) else { return Ok(()) };
        let value = nested(depth, leaf);
        let start = Instant::now();
        let valid = schema.validate(&value).is_ok();
        prop_assert_eq!(valid, schema.violations(&value, 3).is_empty());
        let (view, shown) = (schema.model_view(), schema.observable(&value));
        let _ = (schema.internal_paths(&value), schema.shape(), shown);
        // The view for a model is a valid schema, too, unless a reference pointed into a removed
        // part.
        if !schema.has_internal() {
            prop_assert!(compile(&view).is_ok());
        }
        prop_assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_schema_that_applies_too_often_to_each_value_is_refused_even_where_it_is_finite() {
    let all = |of: &str| json!({ "allOf": vec![json!({ "$ref": of }); 35] });
    let fan = json!({
        "type": "array", "items": { "$ref": "#/$defs/b" },
        "$defs": { "a": all("#/$defs/c"), "b": all("#/$defs/a"), "c": { "type": "integer" } },
    });
    let error = Schema::compile(&fan, &NoScope).expect_err("35 times 35 at each item");
    assert_eq!(error.code(), "schema-cost");
}

#[test]
fn a_pattern_that_compiles_to_a_large_machine_is_refused() {
    for pattern in ["[ab]*a[ab]{1000}[cd]", "\\p{L}{100}"] {
        let schema = json!({ "type": "string", "pattern": pattern });
        let error = Schema::compile(&schema, &NoScope).expect_err(pattern);
        assert_eq!(error.code(), "schema-pattern", "{pattern}");
    }
    let usual = json!({ "pattern": "^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$" });
    assert!(Schema::compile(&usual, &NoScope).is_ok());
}

#[test]
fn patterns_weigh_more_than_other_values() {
    let weight = |schema: Value| {
        Schema::compile(&schema, &NoScope)
            .expect("a schema")
            .weight()
    };
    let plain = weight(json!({ "type": "string", "minLength": 1 }));
    assert!(weight(json!({ "type": "string", "pattern": "^a$" })) > plain + 90);
    assert!(weight(json!({ "patternProperties": { "^a$": {}, "^b$": {} } })) > plain + 190);
}

#[test]
fn many_patterns_for_one_text_are_refused_and_for_many_texts_are_not() {
    let pattern = |n: usize| json!({ "pattern": format!("^[ab]*a[ab]{{300}}{n}") });
    let patterns = |n: usize| (0..n).map(pattern).collect::<Vec<_>>();
    let all = |n: usize| json!({ "allOf": patterns(n) });
    let names = |n: usize| {
        let names: Map<String, Value> = (0..n).map(|n| (format!("^a{n}"), json!({}))).collect();
        json!({ "patternProperties": names })
    };
    for schema in [all(40), names(40)] {
        let error = Schema::compile(&schema, &NoScope).expect_err("40 for each text");
        assert_eq!(error.code(), "schema-cost");
    }
    for schema in [all(5), names(5)] {
        assert!(Schema::compile(&schema, &NoScope).is_ok(), "{schema}");
    }
    let texts: Map<String, Value> = (0..40).map(|n| (format!("p{n}"), pattern(n))).collect();
    let apart = json!({ "properties": texts });
    assert!(Schema::compile(&apart, &NoScope).is_ok());
}

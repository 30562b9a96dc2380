//! Schemas in the form for MCP clients: references inlined, and the input as one plain object.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolward_schema::NoScope;
use toolward_schema::schema::{Schema, SchemaWarningKind};

fn schema(value: &Value) -> Schema {
    Schema::compile(value, &NoScope).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn inlined(value: &Value) -> Value {
    schema(value).inlined_view("", &str::to_owned)
}

fn plain(value: &Value) -> Value {
    let object = schema(value).plain_view(&str::to_owned);
    Value::Object(object.expect("it accepts objects"))
}

#[test]
fn what_references_lead_to_stands_in_their_place() {
    let written = json!({
        "type": "object",
        "properties": {
            "from": { "$ref": "#/$defs/place", "description": "Where it starts." },
            "to": { "$ref": "#place" },
            "again": { "$ref": "#/properties/from" },
            "near": { "$ref": "#/$defs/place", "properties": { "x": { "minimum": 0 } } },
            "token": { "$ref": "#/$defs/token", "writeOnly": false },
        },
        "$defs": {
            "number": { "$comment": "of metres", "type": "number" },
            "place": { "$anchor": "place", "type": "object", "description": "A place.",
                "properties": { "x": { "$ref": "#/$defs/number" } } },
            "token": { "type": "string", "writeOnly": true },
        },
    });
    let place = |description: &str| {
        json!({ "type": "object", "description": description,
            "properties": { "x": { "$comment": "of metres", "type": "number" } } })
    };
    let token = json!({ "type": "string", "writeOnly": true });
    assert_eq!(
        inlined(&written),
        json!({
            "type": "object",
            "properties": {
                "from": place("Where it starts."),
                "to": place("A place."),
                "again": place("Where it starts."),
                "near": { "properties": { "x": { "minimum": 0 } }, "allOf": [place("A place.")] },
                "token": { "writeOnly": false, "allOf": [token] },
            },
        })
    );
    assert!(schema(&written).input_warnings().is_empty());
}

#[test]
fn a_recursive_reference_stays_and_the_others_do_not() {
    let written = json!({
        "type": "object",
        "properties": {
            "tree": { "$ref": "#/$defs/a%20node" },
            "list": { "type": "object", "properties": { "next": { "$ref": "#/properties/list" } } },
            "self": { "$ref": "#" },
            "leaf": { "$ref": "#/$defs/leaf" },
        },
        "$defs": {
            "a node": { "type": "array", "items": { "anyOf": [{ "$ref": "#/$defs/a%20node" }, { "$ref": "#/$defs/leaf" }] } },
            "leaf": { "type": "string" },
            "unused": { "items": { "$ref": "#/$defs/unused" } },
        },
    });
    let list = json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/list" } } });
    let leaf = json!({ "type": "string" });
    let shown = inlined(&written);
    assert_eq!(
        shown,
        json!({
            "type": "object",
            "properties": {
                "tree": { "$ref": "#/$defs/a_20node" },
                "list": list,
                "self": { "$ref": "#" },
                "leaf": leaf,
            },
            "$defs": {
                "a_20node": { "type": "array", "items": { "anyOf": [{ "$ref": "#/$defs/a_20node" }, leaf] } },
                "list": list,
            },
        })
    );
    let [warning] = &schema(&written).input_warnings()[..] else {
        panic!("one warning");
    };
    assert_eq!(warning.kind, SchemaWarningKind::ReferenceKept);
    assert!(warning.message.contains("itself"), "{}", warning.message);
    // References of a schema inside another schema point to its new place.
    let inside = schema(&written).inlined_view("/properties/input", &str::to_owned);
    assert_eq!(inside["properties"]["self"]["$ref"], "#/properties/input");
    assert_eq!(
        inside["properties"]["tree"]["$ref"],
        "#/properties/input/$defs/a_20node"
    );
}

/// Definitions, each of which has properties with these names that refer to the definition below.
/// The lowest has a long text.
fn levels(count: usize, names: &[&str]) -> Value {
    let mut definitions = serde_json::Map::new();
    definitions.insert(
        "0".to_owned(),
        json!({ "type": "string", "description": "x".repeat(1000) }),
    );
    for level in 1..count {
        let below = json!({ "$ref": format!("#/$defs/{}", level - 1) });
        let properties: Value = names.iter().map(|name| (*name, below.clone())).collect();
        definitions.insert(level.to_string(), json!({ "properties": properties }));
    }
    let top = json!({ "$ref": format!("#/$defs/{}", count - 1) });
    json!({ "type": "object", "properties": { "top": top }, "$defs": definitions })
}

#[test]
fn references_stay_if_what_they_refer_to_is_too_large() {
    let small = inlined(&levels(4, &["a", "b"]));
    assert!(!small.to_string().contains("$ref"), "{small}");
    let written = levels(7, &["a", "b"]);
    let large = inlined(&written);
    assert!(large.to_string().len() < 2 * written.to_string().len());
    let value = json!({ "top": { "a": { "a": { "a": { "a": { "b": { "a": 1 } } } } } } });
    assert!(schema(&written).validate(&value).is_err());
    assert!(schema(&large).validate(&value).is_err());
    let [warning] = &schema(&written).input_warnings()[..] else {
        panic!("one warning");
    };
    assert_eq!(warning.kind, SchemaWarningKind::ReferenceKept);
    assert!(!warning.message.contains("itself"), "{}", warning.message);
}

#[test]
fn many_references_to_parts_of_one_name_are_listed_in_time() {
    let mut properties = serde_json::Map::new();
    for number in 0..1000 {
        let reference = json!({ "$ref": format!("#/properties/p{number}/items") });
        properties.insert(
            format!("p{number}"),
            json!({ "items": { "const": number } }),
        );
        properties.insert(format!("q{number}"), reference);
    }
    let written = json!({ "type": "object", "properties": properties });
    let start = Instant::now();
    let shown = inlined(&written);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(
        shown["$defs"].as_object().map(serde_json::Map::len),
        Some(1000)
    );
    let value = json!({ "q7": 7, "q999": 999 });
    assert!(schema(&shown).validate(&value).is_ok());
    assert!(schema(&shown).validate(&json!({ "q7": 8 })).is_err());
}

#[test]
fn a_composition_at_the_root_is_shown_as_one_object() {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "number" });
    for (written, shown) in [
        // Branches that differ by the value of a property.
        (
            json!({ "oneOf": [
                { "type": "object", "required": ["kind", "x"], "additionalProperties": false,
                    "properties": { "kind": { "const": "a" }, "x": text } },
                { "type": "object", "required": ["kind", "y"], "additionalProperties": false,
                    "properties": { "kind": { "const": "b" }, "y": number } },
                { "type": "string" },
            ] }),
            json!({ "type": "object", "required": ["kind"], "additionalProperties": false,
                "properties": { "kind": { "enum": ["a", "b"] }, "x": text, "y": number } }),
        ),
        // Branches that only have `required`.
        (
            json!({ "type": "object", "properties": { "x": text, "y": number },
                "anyOf": [{ "required": ["x"] }, { "required": ["y"] }], "additionalProperties": false }),
            json!({ "type": "object", "properties": { "x": text, "y": number }, "additionalProperties": false }),
        ),
        // Objects that all parts accept.
        (
            json!({ "unevaluatedProperties": false, "allOf": [
                { "$ref": "#/$defs/paged" },
                { "properties": { "x": text, "page": { "minimum": 1 } }, "required": ["x"] },
            ], "$defs": { "paged": { "properties": { "page": { "type": "integer" } }, "required": ["page"] } } }),
            json!({ "type": "object", "required": ["page", "x"], "additionalProperties": false,
                "properties": { "page": { "type": "integer", "minimum": 1 }, "x": text } }),
        ),
        // A condition adds no requirement that does not always apply.
        (
            json!({ "type": "object", "properties": { "kind": text }, "required": ["kind"],
                "if": { "properties": { "kind": { "const": "a" }, "other": { "const": 1 } } },
                "then": { "properties": { "x": text }, "required": ["x"] },
                "else": { "properties": { "y": number } } }),
            json!({ "type": "object", "required": ["kind"],
                "properties": { "kind": text, "x": text, "y": number, "other": {} } }),
        ),
        // A property that no branch can have is not shown.
        (
            json!({ "type": "object", "properties": { "x": text }, "additionalProperties": false,
                "anyOf": [{ "properties": { "y": text } }, { "properties": { "x": { "minLength": 1 } } }] }),
            json!({ "type": "object", "additionalProperties": false,
                "properties": { "x": { "type": "string", "minLength": 1 } } }),
        ),
        (
            json!({ "not": { "required": ["z"] }, "dependentSchemas": { "x": { "properties": { "y": text }, "required": ["y"] } } }),
            json!({ "type": "object", "properties": { "y": text } }),
        ),
        (
            json!({ "properties": { "x": text }, "enum": [{ "x": "a" }, null] }),
            json!({ "type": "object", "properties": { "x": text } }),
        ),
        // A reference at the root, as generators write it.
        (
            json!({ "$ref": "#/$defs/Input", "type": "object", "$defs": { "Input": {
                "type": "object", "properties": { "x": text }, "additionalProperties": false } } }),
            json!({ "type": "object", "properties": { "x": text }, "additionalProperties": false }),
        ),
        (
            json!({ "$ref": "#/$defs/node", "$defs": { "node": {
                "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } } }),
            json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } }, "$defs": { "node": {
                "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } } }),
        ),
    ] {
        assert_eq!(plain(&written), shown, "{written}");
    }
    for none in [
        json!({ "anyOf": [{ "type": "string" }, { "type": "array" }] }),
        json!({ "enum": ["a", "b"] }),
        json!(false),
    ] {
        assert_eq!(schema(&none).plain_view(&str::to_owned), None, "{none}");
        assert!(schema(&none).input_warnings().is_empty(), "{none}");
    }
}

#[test]
fn a_composition_at_the_root_is_warned_of() {
    for (keyword, value) in [
        (
            "oneOf",
            json!([{ "required": ["a"] }, { "required": ["b"] }]),
        ),
        (
            "anyOf",
            json!([{ "required": ["a"] }, { "required": ["b"] }]),
        ),
        ("allOf", json!([{ "required": ["a"] }])),
        ("if", json!({ "required": ["a"] })),
        ("not", json!({ "required": ["a"] })),
        ("dependentSchemas", json!({ "a": { "required": ["b"] } })),
        ("enum", json!([{ "a": 1 }])),
    ] {
        let warnings = schema(&json!({ "type": "object", keyword: value })).input_warnings();
        let [warning] = &warnings[..] else {
            panic!("{keyword}: {warnings:?}");
        };
        assert_eq!(warning.kind, SchemaWarningKind::RootComposed);
        assert_eq!(warning.path, format!("/{keyword}"));
        assert!(warning.message.contains(keyword), "{}", warning.message);
    }
    let nested = json!({ "type": "object", "properties": { "x": { "oneOf": [{ "type": "string" }, { "type": "null" }] } } });
    assert!(schema(&nested).input_warnings().is_empty());
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": "integer", "minimum": 1 })),
        Just(json!({ "const": "a" })),
        Just(json!({ "$ref": "#/$defs/d" })),
        Just(json!({ "$ref": "#/$defs/r" })),
    ]
}

/// An object schema that describes every property, so that no branch leaves open a property that
/// another describes.
fn object() -> impl Strategy<Value = Value> {
    let required = prop::collection::vec(prop_oneof![Just("x"), Just("y")], 0..2);
    let rest = prop_oneof![Just(None), Just(Some(false)), Just(Some(true))];
    (leaf(), leaf(), required, rest).prop_map(|(x, y, required, rest)| {
        let mut object =
            json!({ "type": "object", "properties": { "x": x, "y": y }, "required": required });
        if let (Some(rest), Some(keywords)) = (rest, object.as_object_mut()) {
            keywords.insert("additionalProperties".to_owned(), rest.into());
        }
        object
    })
}

fn composed() -> impl Strategy<Value = Value> {
    object().prop_recursive(3, 12, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            (object(), list.clone()).prop_map(|(mut own, list)| {
                own["anyOf"] = list.into();
                own
            }),
            (object(), list.clone()).prop_map(|(mut own, list)| {
                own["allOf"] = list.into();
                own
            }),
            list.prop_map(|list| json!({ "oneOf": list })),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(one, two, three)| json!({ "if": one, "then": two, "else": three })),
        ]
    })
}

fn instance() -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        Just(json!("a")),
        Just(json!("b")),
        Just(json!(3)),
        Just(json!(["a", ["b"]])),
        Just(json!(null)),
    ];
    let name = prop_oneof![Just("x"), Just("y"), Just("z")];
    prop::collection::btree_map(name, value, 0..4).prop_map(|members| json!(members))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn what_is_shown_accepts_what_the_host_accepts(
        mut written in composed(),
        instances in prop::collection::vec(instance(), 16),
    ) {
        written["$defs"] = json!({
            "d": { "type": ["string", "null"] },
            "r": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "$ref": "#/$defs/r" } }] },
        });
        let real = schema(&written);
        let same = schema(&real.inlined_view("", &str::to_owned));
        let plain = real.plain_view(&str::to_owned).map(Value::Object);
        for instance in instances {
            let accepted = real.validate(&instance).is_ok();
            prop_assert_eq!(accepted, same.validate(&instance).is_ok(), "{}", instance);
            if accepted {
                let plain = plain.as_ref().map(schema);
                let shown = plain.map(|plain| plain.validate(&instance));
                prop_assert!(matches!(shown, Some(Ok(()))), "{} {:?}", instance, shown);
            }
        }
    }
}

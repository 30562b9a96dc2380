//! Validation with compiled schemas, and the violations that a model sees.

use std::sync::Arc;

use serde_json::{Value, json};
use toolward_contract::action::{Action, Reference};
use toolward_contract::schema::{HIDDEN, Schema};
use toolward_contract::{NoScope, SchemaScope, Scope};

fn schema(value: &Value) -> Schema {
    Schema::compile(value, &NoScope).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn common_formats_are_asserted() {
    for (format, good, bad) in [
        ("date-time", "2026-04-28T20:00:00Z", "2026-04-28"),
        ("date", "2026-04-28", "28.04.2026"),
        ("time", "20:00:00Z", "8pm"),
        ("duration", "PT5M", "5 minutes"),
        ("email", "a@example.com", "example.com"),
        ("hostname", "a.example.com", "a b"),
        ("ipv4", "192.0.2.1", "192.0.2"),
        ("ipv6", "::1", "1::2::3"),
        ("uri", "https://example.com/a?b", "not a uri"),
        ("uri-reference", "/a/b", "a b"),
        ("uuid", "0190163d-8694-739b-aea5-966c26f8ad91", "0190163d"),
        ("json-pointer", "/a/0", "a/0"),
        ("regex", "^a+$", "(a"),
    ] {
        let schema = schema(&json!({ "type": "string", "format": format }));
        assert!(schema.validate(&json!(good)).is_ok(), "{format} {good}");
        assert!(schema.validate(&json!(bad)).is_err(), "{format} {bad}");
    }
    assert!(
        schema(&json!({ "format": "house-number" }))
            .validate(&json!("x"))
            .is_ok()
    );
}

#[test]
fn a_violation_says_where_and_what() {
    let schema = schema(
        &json!({ "type": "object", "properties": { "a/b": { "type": "array", "items": { "type": "integer" } } } }),
    );
    let violation = schema
        .validate(&json!({ "a/b": [1, "x"] }))
        .expect_err("a text is no integer");
    assert_eq!(violation.instance_path, "/a~1b/1");
    assert_eq!(violation.schema_path, "/properties/a~1b/items/type");
    assert_eq!(violation.message, "\"x\" is not of type \"integer\"");
    assert_eq!(
        schema
            .violations(&json!({ "a/b": ["x", "y", "z"] }), 2)
            .len(),
        2
    );
    assert!(schema.violations(&json!({}), 2).is_empty());
}

#[test]
fn messages_quote_neither_long_nor_sensitive_values() {
    let schema = schema(&json!({
        "type": "object",
        "properties": { "token": { "type": "string", "writeOnly": true, "maxLength": 3 }, "text": { "maxLength": 3 } },
        "additionalProperties": false,
    }));
    for value in [
        json!({ "token": "hunter2" }),
        json!({ "token": 1234567 }),
        json!({ "token": "hunter2", "extra": 1 }),
    ] {
        for violation in schema.violations(&value, 10) {
            assert!(
                !violation.message.contains("hunter2") && !violation.message.contains("1234567"),
                "{violation}"
            );
        }
    }
    let long = schema
        .validate(&json!({ "text": "x".repeat(10_000) }))
        .expect_err("too long");
    assert!(long.message.len() < 200, "{long}");
}

#[test]
fn a_model_sees_no_internal_property() {
    let schema = schema(&json!({
        "type": "object",
        "properties": {
            "q": { "type": "string" },
            "trace": { "type": "string", "x-internal": true },
            "shared": { "$ref": "#/$defs/hidden" },
            "inner": { "type": "object", "properties": { "x": { "x-internal": true }, "y": {} }, "required": ["x", "y"] },
        },
        "required": ["q", "trace"],
        "examples": [{ "q": "a", "trace": "t" }],
        "$defs": { "hidden": { "x-internal": true } },
    }));
    assert!(schema.has_internal());
    let view = schema.model_view();
    assert_eq!(
        view["properties"]
            .as_object()
            .expect("an object")
            .keys()
            .collect::<Vec<_>>(),
        ["q", "inner"]
    );
    assert_eq!(view["required"], json!(["q"]));
    assert_eq!(view["examples"], json!([{ "q": "a" }]));
    assert_eq!(view["properties"]["inner"]["required"], json!(["y"]));
    assert!(
        !view["properties"]["inner"]["properties"]
            .as_object()
            .expect("an object")
            .contains_key("x")
    );
    assert_eq!(
        schema.internal_paths(&json!({ "q": "a", "trace": "t", "inner": { "x": 1 } })),
        ["/inner/x", "/trace"]
    );
    assert_eq!(
        schema.internal_fields(),
        [
            "/properties/trace",
            "/properties/inner/properties/x",
            "/$defs/hidden"
        ]
    );
    assert_eq!(schema.sensitive_fields(), [""; 0]);
    assert_eq!(
        schema.outward_value(json!({ "q": "a", "trace": "t", "inner": { "x": 1, "y": 2 } })),
        json!({ "q": "a", "inner": { "y": 2 } })
    );
}

#[test]
fn a_schema_inside_another_one_keeps_its_references_and_shows_its_prose_safely() {
    let schema = schema(&json!({
        "$id": "https://a.example/tree",
        "type": "object",
        "title": "a tree",
        "properties": {
            "children": { "type": "array", "items": { "$ref": "#" } },
            "leaf": { "$ref": "#/$defs/leaf", "description": "a leaf" },
            "named": { "$ref": "#leaf" },
            "trace": { "x-internal": true },
            "title": { "const": "a tree" },
        },
        "$defs": { "leaf": { "$anchor": "leaf", "$comment": "green" } },
    }));
    let view = schema.outward_view("/properties/result", &str::to_uppercase);
    assert_eq!(
        view,
        json!({
            "type": "object",
            "title": "A TREE",
            "properties": {
                "children": { "type": "array", "items": { "$ref": "#/properties/result" } },
                "leaf": { "$ref": "#/properties/result/$defs/leaf", "description": "A LEAF" },
                "named": { "$ref": "#leaf" },
                "title": { "const": "a tree" },
            },
            "$defs": { "leaf": { "$anchor": "leaf", "$comment": "GREEN" } },
        })
    );
    let alone = schema.outward_view("", &str::to_owned);
    assert_eq!(alone, schema.model_view());
}

#[test]
fn a_sensitive_value_is_asked_for_in_no_header() {
    let schema = schema(&json!({
        "type": "object",
        "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "token": { "type": "string", "x-mcp-header": "Token", "x-sensitive": true },
        },
    }));
    let view = schema.outward_view("", &str::to_owned);
    assert_eq!(
        view["properties"]["region"]["x-mcp-header"],
        json!("Region")
    );
    assert_eq!(view["properties"]["token"].get("x-mcp-header"), None);
}

#[test]
fn sensitive_values_are_found_in_every_branch() {
    let schema = schema(&json!({
        "type": "object",
        "properties": {
            "list": { "type": "array", "items": { "$ref": "#/$defs/account" } },
            "one": { "anyOf": [{ "type": "string" }, { "x-sensitive": true }] },
            "plain": { "type": "string" },
        },
        "patternProperties": { "^secret": { "writeOnly": true } },
        "$defs": { "account": { "properties": { "user": {}, "password": { "writeOnly": true }, "next": { "$ref": "#/$defs/account" } } } },
    }));
    let value = json!({
        "list": [{ "user": "u", "password": "p", "next": { "password": "q" } }],
        "one": "1", "secret-a": "s",
    });
    let paths = schema.sensitive_paths(&value);
    for path in [
        "/list/0/password",
        "/list/0/next/password",
        "/one",
        "/secret-a",
    ] {
        assert!(
            paths.iter().any(|found| found == path),
            "{path} in {paths:?}"
        );
    }
    let shown = schema.observable(&value);
    assert_eq!(
        shown["list"][0],
        json!({ "user": "u", "password": HIDDEN, "next": { "password": HIDDEN } })
    );
    assert_eq!(shown["one"], HIDDEN);
}

#[test]
fn what_may_be_sensitive_is_hidden_wherever_the_schema_says_so() {
    let marked = json!({ "x-sensitive": true });
    let secret = json!({ "a": "s3cret", "plain": 1 });
    // Each row has a value (`a`, `[a]` or `{"a": a}`) and a schema for it.
    for (value, keywords) in [
        (json!("s3cret"), json!({ "allOf": [{}, marked] })),
        (
            json!("s3cret"),
            json!({ "anyOf": [true, { "$ref": "#/$defs/mark" }] }),
        ),
        (
            json!("s3cret"),
            json!({ "oneOf": [{ "type": "string", "writeOnly": true }] }),
        ),
        (
            json!("s3cret"),
            json!({ "if": { "type": "number" }, "then": marked }),
        ),
        (json!("s3cret"), json!({ "if": true, "else": marked })),
        (json!("s3cret"), json!({ "if": marked })),
        (
            json!("s3cret"),
            json!({ "not": { "type": "number", "x-sensitive": true } }),
        ),
        (json!("s3cret"), json!({ "$ref": "#/$defs/chain" })),
        (
            json!("s3cret"),
            json!({ "contentSchema": { "$ref": "#/$defs/mark" } }),
        ),
        (json!(["s3cret"]), json!({ "items": marked })),
        (json!([0, "s3cret"]), json!({ "prefixItems": [{}, marked] })),
        (
            json!([0, "s3cret"]),
            json!({ "prefixItems": [{}], "unevaluatedItems": marked }),
        ),
        (json!(["s3cret"]), json!({ "contains": marked })),
        (secret.clone(), json!({ "properties": { "a": marked } })),
        (secret.clone(), json!({ "additionalProperties": marked })),
        (secret.clone(), json!({ "unevaluatedProperties": marked })),
        (
            secret.clone(),
            json!({ "patternProperties": { "^a$": marked } }),
        ),
        (
            secret.clone(),
            json!({ "dependentSchemas": { "a": { "properties": { "a": marked } } } }),
        ),
        (
            secret.clone(),
            json!({ "propertyNames": { "maxLength": 9, "writeOnly": true } }),
        ),
        (
            json!({ "s3cret": 1 }),
            json!({ "propertyNames": { "$ref": "#/$defs/mark" } }),
        ),
        (secret.clone(), marked.clone()),
    ] {
        let mut document = json!({
            "type": "object",
            "properties": { "value": keywords },
            "$defs": { "mark": { "writeOnly": true }, "chain": { "$ref": "#/$defs/mark" } },
        });
        let shown = schema(&document).observable(&json!({ "value": value }));
        assert!(!shown.to_string().contains("s3cret"), "{keywords}: {shown}");
        assert!(shown.to_string().contains(HIDDEN), "{keywords}: {shown}");
        // A value that is not marked is shown.
        document["$defs"] = json!({});
        document["properties"] = json!({ "value": {} });
        let input = json!({ "value": value });
        assert_eq!(schema(&document).observable(&input), input);
    }
}

struct Shared;

impl SchemaScope for Shared {
    fn schema(&self, id: &str) -> Option<Value> {
        match id {
            "point" => Some(
                json!({ "$id": "https://example.com/point", "type": "object", "properties": { "x": { "$ref": "#/$defs/n" } }, "$defs": { "n": { "type": "number" } } }),
            ),
            "line" => Some(json!({ "type": "array", "items": { "$ref": "schema:point" } })),
            "loop" => Some(json!({ "allOf": [{ "$ref": "schema:loop" }] })),
            "tree" => Some(
                json!({ "type": "object", "properties": { "child": { "$ref": "#" } }, "additionalProperties": false }),
            ),
            "anchored" => Some(json!({ "$anchor": "here" })),
            "old" => Some(json!({ "$schema": "http://json-schema.org/draft-07/schema#" })),
            "../etc/passwd" => panic!("asked for a path"),
            _ => None,
        }
    }
}

impl Scope for Shared {
    fn action(&self, _reference: &Reference) -> Option<Arc<Action>> {
        None
    }
}

#[test]
fn shared_schemas_are_taken_in_so_that_the_result_stands_alone() {
    let value = json!({ "properties": { "line": { "$ref": "schema:line" }, "n": { "$ref": "schema:point#/$defs/n" }, "own": { "$ref": "#/$defs/own" } }, "$defs": { "own": { "type": "boolean" } } });
    let schema = Schema::compile(&value, &Shared).expect("all is known");
    assert_eq!(schema.value(), &value);
    let closed = schema.closed().to_string();
    assert!(
        !closed.contains("\"schema:point\"}") && !closed.contains("example.com"),
        "{closed}"
    );
    let alone = Schema::compile(schema.closed(), &NoScope).expect("it stands alone");
    for schema in [&schema, &alone] {
        assert!(
            schema
                .validate(&json!({ "line": [{ "x": 1 }], "n": 2, "own": true }))
                .is_ok()
        );
        for wrong in [
            json!({ "line": [{ "x": "1" }] }),
            json!({ "n": "2" }),
            json!({ "own": 1 }),
        ] {
            assert!(schema.validate(&wrong).is_err(), "{wrong}");
        }
    }
    let tree = Schema::compile(&json!({ "$ref": "schema:tree" }), &Shared)
        .expect("recursion into the value");
    assert!(tree.validate(&json!({ "child": { "child": {} } })).is_ok());
    assert!(tree.validate(&json!({ "child": { "other": {} } })).is_err());
}

#[test]
fn shared_schemas_are_held_to_the_same_rules() {
    for (target, code) in [
        ("schema:none", "schema-ref"),
        ("schema:../etc/passwd", "schema-ref"),
        ("schema:", "schema-ref"),
        ("schema:loop", "schema-loop"),
        ("schema:anchored", "schema-ref"),
        ("schema:old", "schema-dialect"),
        ("schema:point#/none", "schema-ref"),
    ] {
        let error = Schema::compile(&json!({ "$ref": target }), &Shared).expect_err(target);
        assert_eq!(error.code(), code, "{target}: {error}");
    }
}

#[test]
fn patterns_follow_ecma_262_and_are_shown_as_their_author_wrote_them() {
    let document = json!({
        "type": "object",
        "properties": { "line": { "pattern": "^.$" }, "pattern": { "type": "integer" } },
        "patternProperties": { "\\bid\\b": { "type": "integer" }, ".": {}, "[^\n\r\u{2028}\u{2029}]": true },
        "additionalProperties": false,
    });
    let schema = Schema::compile(&document, &NoScope).expect("valid");
    assert_eq!(schema.value(), &document);
    assert_eq!(schema.closed(), &document);
    for line in ["\u{85}", "\u{1F600}"] {
        assert!(
            schema.validate(&json!({ "line": line })).is_ok(),
            "{line:?}"
        );
    }
    let refused = schema.validate(&json!({ "line": "\u{2028}" })).unwrap_err();
    assert!(refused.message.contains("\"^.$\""), "{}", refused.message);
    // `\b` is a boundary of ASCII letters only.
    let refused = schema.validate(&json!({ "\u{ef}id": "x" })).unwrap_err();
    assert_eq!(refused.schema_path, "/patternProperties/\\bid\\b/type");
    assert!(schema.validate(&json!({ "\n": 1 })).is_err());
}

#[test]
fn a_refused_pattern_is_refused_for_its_own_reason() {
    let reason = |pattern: &str| {
        let schema = json!({ "properties": { "a": { "pattern": pattern } } });
        let error = Schema::compile(&schema, &NoScope).expect_err(pattern);
        assert_eq!(error.code(), "schema-pattern");
        assert_eq!(error.path, "/properties/a/pattern");
        error.message
    };
    for (pattern, named) in [
        ("(?<=a)b", "found a look-behind `(?<=`"),
        (r"(a)\1", r"found a back-reference `\1`"),
        ("a{1000}{1000}", "found a quantifier"),
        (r"^\p{L}{100}$", "at most 48 KiB"),
        (r"\p{Nonsense}", "this host knows"),
        ("a(", "found a group that is not closed"),
    ] {
        let message = reason(pattern);
        assert!(message.contains(named), "{pattern}: {message}");
    }
    let fine = [
        r"^[^]*$",
        r"^\0$",
        r"[\b]",
        r"^\ud83d\ude00$",
        "(?<year$>\\d{4})",
        r"^[\w-.]+@[\w.-]+$",
    ];
    for pattern in fine {
        Schema::compile(&json!({ "pattern": pattern }), &NoScope)
            .unwrap_or_else(|error| panic!("{pattern}: {error}"));
    }
}

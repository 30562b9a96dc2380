//! `response_extract`: the values that paths select, invalid paths, and the limit of an evaluation.

use serde_json::{Value, json};
use toolward_contract::driver::{ExtractError, JsonPath, OutputPlace};
use toolward_contract::json::Limits;

fn extract(path: &str, body: &Value) -> Result<Value, &'static str> {
    let path = JsonPath::parse(path).unwrap_or_else(|expected| panic!("{path}: {expected}"));
    let found = OutputPlace::Extract(path).extract(body, &Limits::default());
    found.map_err(|error| error.code())
}

#[test]
fn a_path_selects_what_the_specification_says() {
    let body = json!({
        "data": [
            { "kind": "text", "text": "a", "n": 1, "in": { "on": true } },
            { "kind": "image", "url": "u", "n": 2.0 },
            { "kind": "text", "text": null, "n": 2 },
            5,
        ],
        "result": { "image": { "url": "u" } }, "a-b": { "é": 1 }, "none": null, "empty": [],
    });
    for (path, expected) in [
        ("$", body.clone()),
        ("$.result.image.url", json!("u")),
        ("$.data[0].text", json!("a")),
        ("$.a-b.é", json!(1)),
        ("$.none", Value::Null),
        ("$.data[*].text", json!(["a", null])),
        ("$.data[*].kind", json!(["text", "image", "text"])),
        ("$.empty[*].x", json!([])),
        ("$.data[?(@.kind=='text')].n", json!([1, 2])),
        (
            "$.data[?(@.kind == \"image\")]",
            json!([{ "kind": "image", "url": "u", "n": 2.0 }]),
        ),
        ("$.data[?(@.n==2)].kind", json!(["image", "text"])),
        ("$.data[?(@.in.on==true)].kind", json!(["text"])),
        ("$.data[?(@.kind=='none')]", json!([])),
        // As in RFC 9535, an index applies to each selected item.
        ("$.data[?(@.kind=='text')][0]", json!([])),
    ] {
        assert_eq!(extract(path, &body), Ok(expected), "{path}");
    }
    let twice =
        json!([{ "a": [{ "k": 1, "v": "x" }, { "k": 2 }] }, { "a": [{ "k": 1, "v": "y" }] }, {}]);
    assert_eq!(
        extract("$[*].a[?(@.k==1)].v", &twice),
        Ok(json!(["x", "y"]))
    );
    for path in [
        "$.gone",
        "$.data[9]",
        "$.result[0]",
        "$.result[*]",
        "$.none.x",
        "$.result[?(@.a==1)]",
        "$.data.kind",
    ] {
        assert_eq!(extract(path, &body), Err("http-response-missing"), "{path}");
    }
}

#[test]
fn what_is_no_path_is_refused_when_it_is_read() {
    for path in [
        "",
        "data",
        ".data",
        "$data",
        "$.",
        "$..a",
        "$.a..b",
        "$.a.",
        "$[",
        "$[]",
        "$[-1]",
        "$[1:2]",
        "$[0,1]",
        "$['a']",
        "$[1234567890]",
        "$.a[*][*]",
        "$.a[?(@.b==1)][?(@.c==1)]",
        "$.a[?(@.b=='x]",
        "$.a[?(@.b)]",
        "$.a[?(@.b>1)]",
        "$.a[?(@.b=~/x/)]",
        "$.a[?(@=='x')]",
        "$.a[?(@.b==[1])]",
        "$.a[?(@.b==@.c)]",
        "$.a[?(@.b=='x' || 1==1)]",
        "$.a b",
        "$.a[?(@.b=='\\u0061')]",
        "$.*",
        "$.a\n",
        "$ ",
        "$.a[?(@.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q==1)]",
    ] {
        assert!(JsonPath::parse(path).is_err(), "{path:?}");
    }
}

#[test]
fn a_path_looks_at_a_bounded_number_of_values() {
    let limits = |values: usize| Limits {
        values,
        ..Limits::default()
    };
    let body = json!({ "a": vec![json!({ "b": "x".repeat(100) }); 100] });
    let select = |path: &str, limits: &Limits| {
        OutputPlace::Extract(JsonPath::parse(path).expect("a path")).extract(&body, limits)
    };
    assert!(select("$.a[*].b", &limits(400)).is_ok());
    let Err(ExtractError::TooManySteps { allowed: 150 }) = select("$.a[*].b", &limits(150)) else {
        panic!("it looked further")
    };
    let error = select("$.a[?(@.b.c.d=='x')]", &limits(250)).expect_err("too many");
    assert_eq!(error.code(), "http-response-too-many");
    let few = Limits {
        bytes: 1000,
        ..Limits::default()
    };
    let error = select("$.a[*].b", &few).expect_err("too large");
    assert_eq!(error.code(), "json-too-large");
    let flat = Limits {
        depth: 1,
        ..Limits::default()
    };
    assert!(select("$.a[*].b", &flat).is_ok() && select("$.a[*]", &flat).is_err());
}

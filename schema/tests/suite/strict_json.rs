//! Strict JSON, compared with serde_json where both must agree.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolward_schema::json::{JsonError, JsonErrorKind, JsonRules, Limits, check, inspect, parse};

fn refused(text: &str) -> JsonError {
    parse(text.as_bytes(), &Limits::default()).expect_err(text)
}

#[test]
fn what_is_plain_json_is_read_as_serde_reads_it() {
    for text in [
        "null",
        " [1, -2, 3.5, 1e10, -0.0, \"\\u00e9\\n\", {\"a\":{}}] ",
        "9007199254740991",
        "-9007199254740991",
        "1e300",
        "\"12345678901234567890\"",
    ] {
        let expected: Value = serde_json::from_str(text).expect(text);
        assert_eq!(
            parse(text.as_bytes(), &Limits::default()).expect(text),
            expected
        );
    }
}

#[test]
fn a_key_twice_is_refused_with_its_place() {
    let error = refused("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}");
    assert_eq!((error.code(), error.line), ("json-duplicate-key", 2));
    assert!(error.message.contains("\"c\""), "{error}");
    // An escaped key equals the unescaped key.
    assert_eq!(
        refused(r#"{"a": 1, "\u0061": 2}"#).code(),
        "json-duplicate-key"
    );
}

#[test]
fn integers_that_a_double_cannot_hold_are_refused_however_long() {
    for text in [
        "9007199254740992",
        "-9007199254740992",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        "[1, {\"a\\\"\": 123456789012345678901234567890}]",
    ] {
        assert_eq!(refused(text).code(), "json-integer-range", "{text}");
    }
    // Floats and digits in a string are not integers.
    for text in [
        "1e22",
        "12345678901234567890.5",
        "{\"12345678901234567890123\": \"-12345678901234567890123\", \"n\": 1e20}",
    ] {
        assert!(parse(text.as_bytes(), &Limits::default()).is_ok(), "{text}");
    }
    let error = refused("[\n  1e30, 99999999999999999999]");
    assert_eq!((error.line, error.column), (2, 9));
}

#[test]
fn depth_counts_arrays_and_objects() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(parse(nested(64).as_bytes(), &Limits::default()).is_ok());
    assert_eq!(refused(&nested(65)).code(), "json-too-deep");
    assert_eq!(refused(&"[".repeat(100_000)).code(), "json-too-deep");
    // The parser also has a fixed limit.
    let limits = Limits {
        depth: 1000,
        ..Limits::default()
    };
    assert!(parse(nested(127).as_bytes(), &limits).is_ok());
    let error = parse(nested(128).as_bytes(), &limits).expect_err("too deep");
    assert_eq!(error.code(), "json-too-deep");
    assert!(error.to_string().contains("at most 127 nested"), "{error}");
}

#[test]
fn size_is_checked_before_parsing() {
    let limits = Limits {
        bytes: 4,
        ..Limits::default()
    };
    assert!(parse(b"1234", &limits).is_ok());
    assert_eq!(
        parse(b"?????", &limits).expect_err("too large").code(),
        "json-too-large"
    );
}

#[test]
fn values_are_counted_while_they_are_read_and_in_a_built_value() {
    let limits = Limits {
        values: 4,
        ..Limits::default()
    };
    for text in ["[1, 2, 3]", "{\"a\": {\"b\": []}, \"c\": 1}"] {
        assert!(parse(text.as_bytes(), &limits).is_ok(), "{text}");
    }
    for text in [
        "[1, 2, 3, 4]",
        "[[[[[]]]]]",
        "{\"a\": {\"b\": [1]}, \"c\": 1}",
    ] {
        let error = parse(text.as_bytes(), &limits).expect_err(text);
        assert_eq!(error.code(), "json-too-many", "{text}");
        let built = serde_json::from_str(text).expect("JSON");
        let error = check(&built, &limits).expect_err(text);
        assert_eq!(error.code(), "json-too-many", "{text}");
    }
}

#[test]
fn what_is_not_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "[1,]",
        "{'a':1}",
        "// x\n1",
        "NaN",
        "Infinity",
        "01",
        "+1",
        ".5",
        "\"\\ud800\"",
        "\"\t\"",
        "\u{feff}1",
        "1e999",
    ] {
        assert_eq!(refused(text).code(), "json-syntax", "{text:?}");
    }
    assert_eq!(
        parse(b"\"\xff\"", &Limits::default())
            .expect_err("not UTF-8")
            .code(),
        "json-syntax"
    );
    assert_eq!(refused("1 2").code(), "json-trailing-data");
    assert_eq!(refused("{}\n}").code(), "json-trailing-data");
}

#[test]
fn values_are_held_to_the_same_rules() {
    assert!(
        check(
            &json!({ "a": [1, 2.5, -9_007_199_254_740_991_i64] }),
            &Limits::default()
        )
        .is_ok()
    );
    let code = |value: &Value, limits: Limits| check(value, &limits).expect_err("refused").code();
    assert_eq!(
        code(&json!([9_007_199_254_740_992_u64]), Limits::default()),
        "json-integer-range"
    );
    assert_eq!(
        code(
            &json!([[[]]]),
            Limits {
                depth: 2,
                ..Limits::default()
            }
        ),
        "json-too-deep"
    );
    assert_eq!(
        code(
            &json!("12345"),
            Limits {
                bytes: 6,
                ..Limits::default()
            }
        ),
        "json-too-large"
    );
    assert!(
        check(
            &json!("1234"),
            &Limits {
                bytes: 6,
                ..Limits::default()
            }
        )
        .is_ok()
    );
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(".*", inner, 0..6)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn text_and_value_are_judged_alike(value in values()) {
        let text = value.to_string();
        let (parsed, checked) = (parse(text.as_bytes(), &Limits::default()), check(&value, &Limits::default()));
        prop_assert_eq!(parsed.as_ref().err().map(JsonError::code), checked.as_ref().err().map(JsonError::code));
        if let Ok(parsed) = parsed {
            prop_assert_eq!(parsed, value);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let ours = parse(&bytes, &Limits::default());
        if ours.is_ok() {
            prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok());
        }
    }

    #[test]
    fn no_json_like_text_makes_it_panic(text in r#"([\[\]{},:"\\eE.+\-0-9a ]|null|true|\\u[0-9a-f]{4}){0,60}"#) {
        let _ = parse(text.as_bytes(), &Limits::default());
    }
}

#[test]
fn a_key_that_serde_json_keeps_for_itself_is_refused_in_texts_and_in_values() {
    // A parser without this check would read another document than the text shows.
    let text = r#"{"a": {"$serde_json::private::RawValue": "{\"b\": 1, \"b\": 2}"}}"#;
    assert_eq!(refused(text).code(), "json-reserved-key");
    let value = json!({ "a": { "$serde_json::private::Number": "1" } });
    let error = check(&value, &Limits::default()).unwrap_err();
    assert_eq!(error.code(), "json-reserved-key");
    assert!(parse(br#"{"$serde_json": 1}"#, &Limits::default()).is_ok());
}

#[test]
fn what_is_inspected_is_held_to_the_rules_of_its_part() {
    let rules = JsonRules::Members(&[
        ("strict", JsonRules::Strict("strict")),
        (
            "deep",
            JsonRules::Members(&[("strict", JsonRules::Strict("deep"))]),
        ),
    ]);
    let broken = |text: &str| {
        let breach = inspect(text.as_bytes(), &rules).err();
        breach.map(|breach| (breach.part, breach.error.code()))
    };
    let (twice, range) = ("json-duplicate-key", "json-integer-range");
    for (text, expected) in [
        (r#"{"a": 9007199254740993, "strict": [1]}"#, None),
        (r#"{"a": 18446744073709551615, "strict": [1e300]}"#, None),
        (r#"[{"strict": 9007199254740993}]"#, None),
        (r#"{"a": {"b": 1, "b": 2}}"#, Some((None, twice))),
        (r#"{"strict": {}, "strict": {}}"#, Some((None, twice))),
        (
            r#"{"strict": [{"b": 1, "\u0062": 2}]}"#,
            Some((Some("strict"), twice)),
        ),
        (
            r#"{"strict": [9007199254740992]}"#,
            Some((Some("strict"), range)),
        ),
        (
            r#"{"deep": {"strict": -9007199254740992}}"#,
            Some((Some("deep"), range)),
        ),
        (
            r#"{"strict": {"n": 99999999999999999999}}"#,
            Some((Some("strict"), range)),
        ),
        (r#"{"a": 99999999999999999999}"#, Some((None, range))),
        (r#"{"a": }"#, Some((None, "json-syntax"))),
        (r"{} 1", Some((None, "json-syntax"))),
    ] {
        assert_eq!(broken(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn inspecting_all_of_a_text_finds_what_parsing_it_finds(text in "[\\[\\]{},:\"ab019.e-]{0,24}") {
        let parsed = parse(text.as_bytes(), &Limits::default()).map(|_| ()).map_err(|error| error.kind);
        let inspected = inspect(text.as_bytes(), &JsonRules::Strict("all")).map_err(|breach| breach.error.kind);
        let same = match (parsed, inspected) {
            // The parser and the inspection report text after a value differently.
            (Err(JsonErrorKind::TrailingData), Err(JsonErrorKind::Syntax)) => true,
            (parsed, inspected) => parsed == inspected,
        };
        prop_assert!(same);
    }
}

use super::*;

fn form(fields: Value) -> Result<Form, String> {
    Form::read(&json!({"type": "object", "properties": fields}))
}

fn answers(field: Value, answer: Value) -> bool {
    let form = form(json!({"x": field})).expect("a form");
    form.check(&json!({"x": answer})).is_ok()
}

#[test]
fn each_kind_of_field_takes_its_own_answers_only() {
    let choices = json!([{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]);
    for (field, right, wrong) in [
        (json!({"type": "string"}), json!("x"), json!(1)),
        (
            json!({"type": "string", "minLength": 2, "maxLength": 3}),
            json!("ab"),
            json!("a"),
        ),
        (
            json!({"type": "string", "format": "email"}),
            json!("a@b.example"),
            json!("a"),
        ),
        (
            json!({"type": "string", "format": "date"}),
            json!("2026-02-28"),
            json!("2026-02-30"),
        ),
        (
            json!({"type": "string", "format": "uri"}),
            json!("https://a.example"),
            json!("no uri"),
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("a"),
            json!("c"),
        ),
        (
            json!({"type": "string", "enum": ["a"], "enumNames": ["A"]}),
            json!("a"),
            json!("A"),
        ),
        (
            json!({"type": "string", "oneOf": choices}),
            json!("b"),
            json!("B"),
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(1),
            json!(1.5),
        ),
        (json!({"type": "integer", "minimum": 1}), json!(2), json!(0)),
        (
            json!({"type": "number", "maximum": 1.5}),
            json!(1.5),
            json!(1.6),
        ),
        (json!({"type": "boolean"}), json!(true), json!("true")),
        (
            json!({"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["a"]}}),
            json!(["a"]),
            json!([]),
        ),
        (
            json!({"type": "array", "items": {"anyOf": choices}}),
            json!(["b"]),
            json!(["c"]),
        ),
    ] {
        assert!(answers(field.clone(), right.clone()), "{field}: {right}");
        assert!(!answers(field.clone(), wrong.clone()), "{field}: {wrong}");
    }
}

#[test]
fn an_answer_has_every_required_field_and_no_field_of_its_own() {
    let form = Form::read(&json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a"],
    }))
    .expect("a form");
    assert_eq!(form.check(&json!({"a": ""})), Ok(()));
    assert!(form.check(&json!({"b": ""})).is_err());
    assert!(form.check(&json!({"a": "", "c": ""})).is_err());
    assert!(form.check(&json!("a")).is_err());
}

#[test]
fn what_is_more_than_a_flat_form_is_refused() {
    for field in [
        json!({"type": "object", "properties": {}}),
        json!({"type": "array", "items": {"type": "object"}}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "null"}),
        json!({"type": ["string", "null"]}),
        json!({"type": "string", "pattern": "(a+)+$"}),
        json!({"type": "string", "format": "password"}),
        json!({"type": "string", "$ref": "#"}),
        json!({"type": "string", "enum": []}),
        json!({"type": "string", "enum": [1]}),
        json!({"type": "string", "enum": ["a\u{202e}b"]}),
        json!({"type": "string", "enum": ["a"], "oneOf": [{"const": "a", "title": "A"}]}),
        json!({"type": "string", "enum": ["a"], "enumNames": []}),
        json!({"type": "string", "oneOf": [{"const": "a"}]}),
        json!({"type": "string", "minLength": -1}),
        json!({"type": "integer", "minimum": 0.5}),
        json!({"type": "boolean", "default": "yes"}),
        json!({"type": "string", "default": "a\u{202e}b"}),
        json!({"type": "string", "default": "a\nb"}),
        json!({"type": "string", "default": "x".repeat(201)}),
        json!({"type": "string", "description": "x".repeat(WORDS + 1)}),
        json!(true),
    ] {
        assert!(form(json!({"x": field.clone()})).is_err(), "{field}");
    }
    for schema in [
        json!({"type": "array"}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}, "required": ["x"]}),
        json!({"type": "object", "properties": {}, "additionalProperties": true}),
        json!({"type": "object", "properties": {}, "allOf": []}),
        json!({"type": "object", "properties": {"a\u{e0041}": {"type": "string"}}}),
        json!(null),
    ] {
        assert!(Form::read(&schema).is_err(), "{schema}");
    }
    let many: Map<String, Value> = (0..=FIELDS)
        .map(|number| (format!("f{number}"), json!({"type": "boolean"})))
        .collect();
    assert!(form(Value::Object(many)).is_err());
}

#[test]
fn a_field_to_type_a_credential_into_is_refused() {
    for (name, words) in [
        ("password", json!({})),
        ("api_key", json!({})),
        ("githubToken", json!({})),
        ("value", json!({"title": "Your passphrase"})),
        (
            "value",
            json!({"description": "The API key of the account"}),
        ),
        ("PIN", json!({})),
        ("card-number", json!({})),
    ] {
        let mut field = json!({"type": "string"});
        for (key, text) in words.as_object().expect("words") {
            field[key] = text.clone();
        }
        assert!(
            form(json!({name: field.clone()})).is_err(),
            "{name}: {field}"
        );
    }
}

#[test]
fn a_field_that_only_speaks_of_credentials_is_allowed() {
    for (name, field) in [
        ("revoke_token", json!({"type": "boolean"})),
        (
            "secret",
            json!({"type": "string", "enum": ["first", "second"]}),
        ),
        ("max_tokens", json!({"type": "integer"})),
        (
            "username",
            json!({"type": "string", "description": "User's response"}),
        ),
        ("pinned", json!({"type": "string"})),
    ] {
        assert!(
            form(json!({name: field.clone()})).is_ok(),
            "{name}: {field}"
        );
    }
}

//! Requests in the form of AIP-31: filling in their templates, and the structure that no value
//! changes.

use serde_json::{Value, json};
use toolward_contract::driver::{
    Driver, HeaderPiece, HttpCall, Method, RenderError, RenderErrorKind, Rendered, Values,
};

const BODY: usize = 1 << 20;

/// A driver with these fields and one entry with this `metadata.http`, both in JSON.
fn driver(fields: &Value, request: &Value) -> Driver {
    let mut document = json!({
        "name": "Sample", "id": "sample-http", "description": "Carries it out.", "version": "1.0.0", "kind": "http",
        "base_url": "https://a.example", "network": { "egress": ["a.example"] },
        "implements": [{ "tool": "sample.tool", "version": "1.x", "metadata": { "http": request } }],
    });
    let more = fields.as_object().expect("fields").clone();
    document.as_object_mut().expect("fields").extend(more);
    Driver::parse("DRIVER.md", &format!("---\n{document}\n---\n"))
        .into_result()
        .unwrap_or_else(|found| panic!("{found:?}"))
}

fn call(request: &Value) -> HttpCall {
    let driver = driver(&json!({}), request);
    driver.implements[0].http.clone().expect("a request")
}

fn render(request: &Value, input: &Value, context: &Value) -> Result<Rendered, RenderError> {
    call(request).render(Values { input, context }, BODY)
}

fn target(request: &Value, input: &Value) -> Result<String, RenderErrorKind> {
    render(request, input, &Value::Null)
        .map(|rendered| rendered.path_and_query)
        .map_err(|error| error.kind())
}

fn body(template: &Value, input: &Value) -> Result<Value, RenderErrorKind> {
    let request = json!({ "endpoint": "/", "body_template": template });
    let rendered = render(&request, input, &json!({ "user": { "id": 7 } }));
    let rendered = rendered.map_err(|error| error.kind())?;
    Ok(serde_json::from_slice(&rendered.body.expect("a body")).expect("JSON"))
}

fn text(text: &str) -> Vec<HeaderPiece> {
    vec![HeaderPiece::Text(text.to_owned())]
}

#[test]
fn a_request_goes_below_the_path_of_the_base_url_and_to_its_host() {
    let fields = json!({
        "base_url": "https://A.example:8443/api/v%202/",
        "network": { "egress": ["b.example", "a.example:8443", "*.c.example"] },
    });
    let driver = driver(&fields, &json!({ "endpoint": "/items/${input.id}" }));
    assert_eq!(
        driver.origin().map(ToString::to_string),
        Some("a.example:8443".to_owned())
    );
    // The driver requests no other host.
    assert_eq!(driver.egress.to_string(), "[network:a.example:8443]");
    let call = driver.implements[0].http.as_ref().expect("a request");
    let rendered = call.render(&json!({ "id": "x y" }), BODY).expect("it fits");
    assert_eq!(rendered.path_and_query, "/api/v%202/items/x%20y");
    let error = call
        .render(&json!({ "id": ".." }), BODY)
        .expect_err("it would leave");
    assert_eq!(error.kind(), RenderErrorKind::InputUnfit);
}

#[test]
fn an_entry_without_method_has_the_drivers_and_a_driver_without_one_has_post() {
    let method = |fields: Value, request: Value| {
        let driver = driver(&fields, &request);
        let call = driver.implements[0].http.as_ref().expect("a request");
        (call.method, call.body.is_some())
    };
    let plain = json!({ "endpoint": "/" });
    let get = json!({ "default_method": "GET" });
    assert_eq!(method(json!({}), plain.clone()), (Method::Post, true));
    assert_eq!(method(get.clone(), plain), (Method::Get, false));
    let delete = json!({ "endpoint": "/", "method": "DELETE" });
    assert_eq!(method(get, delete), (Method::Delete, false));
}

#[test]
fn headers_of_an_entry_go_before_those_of_the_driver() {
    let fields = json!({
        "default_headers": { "Authorization": "Bearer ${secrets.KEY}", "X-Kind": "${input.kind}", "Content-Type": "application/json" },
    });
    let headers = |request: Value| {
        let driver = driver(&fields, &request);
        let call = driver.implements[0].http.as_ref().expect("a request");
        let rendered = call.render(&json!({ "kind": "a" }), BODY).expect("it fits");
        (rendered.headers, rendered.idempotency_key_header)
    };
    let secret = || {
        vec![
            HeaderPiece::Text("Bearer ".to_owned()),
            HeaderPiece::Secret("KEY".to_owned()),
        ]
    };
    let (found, key) = headers(json!({
        "endpoint": "/", "headers": { "x-kind": "b", "X-More": "c" }, "idempotency_key_header": "Idempotency-Key",
    }));
    assert_eq!(
        found,
        [
            ("authorization".to_owned(), secret()),
            ("content-type".to_owned(), text("application/json")),
            ("x-kind".to_owned(), text("b")),
            ("x-more".to_owned(), text("c")),
        ]
    );
    assert_eq!(key.as_deref(), Some("idempotency-key"));
    // A request without a body has no `content-type`.
    let (found, key) = headers(json!({ "endpoint": "/", "method": "GET" }));
    assert_eq!(
        found,
        [
            ("authorization".to_owned(), secret()),
            ("x-kind".to_owned(), text("a"))
        ]
    );
    assert_eq!(key, None);
}

#[test]
fn parameters_are_encoded_by_name_and_value() {
    let request = json!({
        "endpoint": "/find", "method": "GET",
        "query_template": { "page[size]": "1 0", "q&a": "x=${input.q}", "left": "${input.none}", "empty": "", "key": "${secrets.MAPS_KEY}" },
    });
    let input = json!({ "q": "&b=c#%é ${secrets.MAPS_KEY}" });
    let rendered = render(&request, &input, &Value::Null).expect("it fits");
    let value = "%26b%3Dc%23%25%C3%A9%20%24%7Bsecrets.MAPS_KEY%7D";
    assert_eq!(
        rendered.path_and_query,
        format!("/find?page%5Bsize%5D=1%200&q%26a=x%3D{value}&empty=")
    );
    assert_eq!(
        rendered.query_secrets,
        [("key".to_owned(), "MAPS_KEY".to_owned())]
    );
    assert!(call(&request).secrets().into_iter().eq(["MAPS_KEY"]));
}

#[test]
fn a_default_stands_in_for_what_is_not_there_or_null() {
    let template = json!({
        "text": "${input.a | default('x')}", "number": "${input.a | default(1.5)}", "off": "${input.a | default(false)}",
        "within": "a ${input.a | default('x')} b", "literal": "${input.a | default('${input.b}')}", "gone": "${input.a}",
    });
    let stands_in = json!({
        "text": "x", "number": 1.5, "off": false, "within": "a x b", "literal": "${input.b}",
    });
    assert_eq!(
        body(&template, &json!({ "b": "no" })),
        Ok(stands_in.clone())
    );
    let mut null = stands_in;
    null["gone"] = Value::Null;
    assert_eq!(body(&template, &json!({ "a": null })), Ok(null));
    let given =
        json!({ "text": 0, "number": 0, "off": 0, "within": "a 0 b", "literal": 0, "gone": 0 });
    assert_eq!(body(&template, &json!({ "a": 0 })), Ok(given));
    let request = json!({ "endpoint": "/${input.a | default('b c')}", "query_template": { "q": "${input.a | default('')}" } });
    assert_eq!(target(&request, &json!({})), Ok("/b%20c?q=".to_owned()));
    // A default must obey the rules of its position, too.
    let dots = json!({ "endpoint": "/a/${input.a | default('..')}" });
    assert_eq!(target(&dots, &json!({})), Err(RenderErrorKind::InputUnfit));
}

#[test]
fn json_makes_a_text_of_any_value() {
    let template = json!({ "a": "${input.a | json}", "b": "is ${input.a | json}", "c": "${input.c | default('x') | json}" });
    let expected = json!({ "a": "{\"x\":[1,null]}", "b": "is {\"x\":[1,null]}", "c": "\"x\"" });
    assert_eq!(
        body(&template, &json!({ "a": { "x": [1, null] } })),
        Ok(expected)
    );
    let request = json!({ "endpoint": "/", "method": "GET", "query_template": { "filter": "${input.a | json}" } });
    assert_eq!(
        target(&request, &json!({ "a": { "x": ["&"] } })),
        Ok("/?filter=%7B%22x%22%3A%5B%22%26%22%5D%7D".to_owned())
    );
}

#[test]
fn the_context_is_another_source_than_the_input() {
    let request = json!({
        "endpoint": "/${context.tenant}/${input.tenant}", "headers": { "X-User": "${context.user.id}" },
        "body_template": { "a": "${context.user}", "none": "${context.none}" },
    });
    let context = json!({ "tenant": "t1", "user": { "id": 7 } });
    let rendered = render(&request, &json!({ "tenant": "t2" }), &context).expect("it fits");
    assert_eq!(rendered.path_and_query, "/t1/t2");
    assert_eq!(rendered.headers[0], ("x-user".to_owned(), text("7")));
    assert_eq!(rendered.body.expect("a body"), b"{\"a\":{\"id\":7}}");
    assert!(
        call(&request)
            .context()
            .into_iter()
            .eq(["none", "tenant", "user"])
    );
    assert!(call(&request).inputs().into_iter().eq(["tenant"]));
    let error = render(&request, &json!({ "tenant": "t2" }), &json!({})).expect_err("no context");
    assert_eq!(
        error.to_string(),
        "expected the context `tenant` to be there for the path"
    );
}

#[test]
fn no_value_leaves_its_place() {
    let at = |place: &str| match place {
        "path" => json!({ "endpoint": "/a/${input.v}/b" }),
        "query" => {
            json!({ "endpoint": "/", "method": "GET", "query_template": { "q": "${input.v}", "r": "1" } })
        }
        "header" => json!({ "endpoint": "/", "method": "GET", "headers": { "X-V": "${input.v}" } }),
        _ => json!({ "endpoint": "/", "body_template": { "v": "t ${input.v}", "w": "1" } }),
    };
    let long = "x".repeat(64 << 10);
    let (unfit, kind, large) = (
        RenderErrorKind::InputUnfit,
        RenderErrorKind::InputType,
        RenderErrorKind::TooLarge,
    );
    let texts = [
        ("a\r\nX-Evil: 1", Some(unfit), None, Some(unfit)),
        ("\"};'", None, None, None),
        ("%2e%2e%2f%00", None, None, None),
        ("..", Some(unfit), None, None),
        ("../../admin", Some(unfit), None, None),
        ("?x=1&y=2#z", None, None, None),
        ("${secrets.KEY}${input.w}", None, None, None),
        ("", Some(unfit), None, None),
        (" a", None, None, Some(unfit)),
        ("é\u{202e}", None, None, Some(unfit)),
        (&long, Some(large), Some(large), Some(large)),
    ];
    for (value, path, query, header) in texts {
        let input = json!({ "v": value });
        for (place, expected) in [
            ("path", path),
            ("query", query),
            ("header", header),
            ("body", None),
        ] {
            let found = render(&at(place), &input, &Value::Null);
            let shown: String = value.chars().take(30).collect();
            let what = format!("{shown:?} in the {place}");
            let Ok(rendered) = found else {
                assert_eq!(found.err().map(|error| error.kind()), expected, "{what}");
                continue;
            };
            assert_eq!(expected, None, "{what}");
            assert!(rendered.query_secrets.is_empty());
            let url = format!("https://a.example{}", rendered.path_and_query);
            let url = url::Url::parse(&url).expect("a URL");
            match place {
                "path" => assert_eq!(url.path_segments().expect("a path").count(), 3, "{what}"),
                "query" => {
                    let pairs: Vec<_> = url.query_pairs().into_owned().collect();
                    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
                    assert_eq!(pairs, [pair("q", value), pair("r", "1")], "{what}");
                }
                "header" => assert_eq!(
                    rendered.headers,
                    [("x-v".to_owned(), text(value))],
                    "{what}"
                ),
                _ => {
                    let body: Value =
                        serde_json::from_slice(&rendered.body.expect("a body")).expect("JSON");
                    assert_eq!(
                        body,
                        json!({ "v": format!("t {value}"), "w": "1" }),
                        "{what}"
                    );
                }
            }
        }
    }
    for value in [json!({}), json!([1]), Value::Null] {
        for place in ["path", "query", "header", "body"] {
            let error =
                render(&at(place), &json!({ "v": value }), &Value::Null).expect_err("no text");
            assert_eq!(error.kind(), kind, "{value} in the {place}");
        }
    }
    for (place, expected) in [
        ("path", true),
        ("query", false),
        ("header", false),
        ("body", true),
    ] {
        let found = render(&at(place), &json!({}), &Value::Null);
        assert_eq!(found.is_err(), expected, "nothing in the {place}");
    }
}

#[test]
fn placeholders_and_auth_declare_their_secrets_and_those_of_the_old_form_do_not() {
    let secrets = |fields: Value, request: Value| {
        let driver = driver(&fields, &request);
        driver.requires.secrets().collect::<Vec<_>>()
    };
    let fields = json!({
        "default_headers": { "X-A": "${secrets.OPENAI_API_KEY}" }, "auth": { "state": { "env": ["REFRESH_TOKEN"] } },
        "requires": { "secrets": ["own"] },
    });
    let request = json!({
        "endpoint": "/", "headers": { "X-B": "${secrets.team/key}" }, "query_template": { "k": "${secrets.k.1}" },
    });
    assert_eq!(
        secrets(fields, request),
        ["OPENAI_API_KEY", "REFRESH_TOKEN", "k.1", "own", "team/key"]
    );
    let old = json!({ "endpoint": "/", "headers": { "X-B": "${secret.key}" } });
    assert!(secrets(json!({}), old).is_empty());
}

//! Declarative requests: the request from an input, and the changes that no input can make to it.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolward_contract::driver::{
    Driver, HeaderPiece, HttpCall, Method, OutputPlace, RenderError, RenderErrorKind, Rendered,
};
use toolward_contract::json::Limits;

const BODY: usize = 1 << 20;

/// The request of a driver whose `metadata.http` is `request`, in JSON.
fn call(request: &Value) -> HttpCall {
    let source = format!(
        "---\nname: Sample\nid: sample-driver\ndescription: Carries it out.\nversion: 1.0.0\nkind: http\nnetwork: {{ egress: [a.example] }}\nimplements:\n  - tool: sample.tool\n    version: 1.x\n    metadata: {}\n---\n",
        json!({ "http": request })
    );
    let driver = Driver::parse("DRIVER.md", &source)
        .into_result()
        .unwrap_or_else(|found| panic!("{found:?}"));
    driver.implements[0].http.clone().expect("a request")
}

fn render(request: &Value, input: &Value) -> Result<Rendered, RenderError> {
    call(request).render(input, BODY)
}

fn url(endpoint: &str, input: &Value) -> Result<String, RenderErrorKind> {
    render(&json!({ "endpoint": endpoint }), input)
        .map(|rendered| rendered.path_and_query)
        .map_err(|error| error.kind())
}

fn body(template: &Value, input: &Value) -> Result<Value, RenderErrorKind> {
    let request = json!({ "endpoint": "/", "method": "POST", "body_template": template });
    let rendered = render(&request, input).map_err(|error| error.kind())?;
    Ok(serde_json::from_slice(&rendered.body.expect("a body")).expect("JSON"))
}

#[test]
fn each_position_of_a_url_is_encoded_for_what_it_is() {
    let input =
        json!({ "id": "a b/c", "q": "x&y=z?#%+é", "n": 1.5, "yes": true, "o": { "p": "~-._" } });
    for (endpoint, expected) in [
        ("/", "/"),
        ("/v1/", "/v1/"),
        ("/v1/${input.n}/${input.yes}", "/v1/1.5/true"),
        ("/v1/x${input.o.p}y", "/v1/x~-._y"),
        ("/v1?q=${input.q}", "/v1?q=x%26y%3Dz%3F%23%25%2B%C3%A9"),
        (
            "/v1?id=p:${input.id}&flag&b=%20",
            "/v1?id=p:a%20b%2Fc&flag&b=%20",
        ),
    ] {
        assert_eq!(url(endpoint, &input), Ok(expected.to_owned()), "{endpoint}");
    }
}

#[test]
fn without_a_template_the_body_is_the_input() {
    let input = json!({ "b": [1, "x"], "a": null });
    for method in ["POST", "PUT", "PATCH"] {
        let request = json!({ "endpoint": "/", "method": method });
        let rendered = render(&request, &input).unwrap();
        assert_eq!(rendered.body.unwrap(), input.to_string().into_bytes());
        let json = HeaderPiece::Text("application/json".to_owned());
        assert_eq!(
            rendered.headers,
            [("content-type".to_owned(), vec![json])],
            "{method}"
        );
        let error = call(&request).render(&input, 4).unwrap_err();
        assert_eq!(error.kind(), RenderErrorKind::TooLarge);
    }
    for method in ["GET", "HEAD", "OPTIONS", "DELETE"] {
        let request = json!({ "endpoint": "/", "method": method });
        assert_eq!(render(&request, &input).unwrap().body, None, "{method}");
    }
}

#[test]
fn a_parameter_without_its_input_is_left_out_and_a_segment_is_not() {
    let endpoint = "/v1?a=${input.a}&b=${input.b}&c=1";
    assert_eq!(
        url(endpoint, &json!({ "b": "2" })),
        Ok("/v1?b=2&c=1".to_owned())
    );
    assert_eq!(url("/v1?a=${input.a}", &json!({})), Ok("/v1".to_owned()));
    for endpoint in ["/${input.a}", "/v1?a=x${input.a}"] {
        assert_eq!(
            url(endpoint, &json!({})),
            Err(RenderErrorKind::InputMissing),
            "{endpoint}"
        );
    }
}

#[test]
fn an_input_can_not_walk_the_path() {
    for value in [
        "", ".", "..", "/", "a/b", "../x", "..\\x", "a\\", "\0", "a\nb", "a\u{85}b",
    ] {
        assert_eq!(
            url("/v1/${input.a}/x", &json!({ "a": value })),
            Err(RenderErrorKind::InputUnfit),
            "{value:?}"
        );
    }
    // Dots are also refused together with literal text of the driver.
    for (endpoint, value) in [
        ("/.${input.a}", "."),
        ("/%2e${input.a}", "."),
        ("/%2E%2E${input.a}", ""),
    ] {
        assert_eq!(
            url(endpoint, &json!({ "a": value })),
            Err(RenderErrorKind::InputUnfit),
            "{endpoint} {value:?}"
        );
    }
    // Values are also refused that are dots to a server that decodes twice, or that drops the part
    // after a semicolon.
    for value in ["%2e%2e", "%252E.", "..;a=b", "..%3bx"] {
        assert_eq!(
            url("/${input.a}", &json!({ "a": value })),
            Err(RenderErrorKind::InputUnfit),
            "{value}"
        );
    }
    assert_eq!(
        url("/${input.a}", &json!({ "a": "100%;." })),
        Ok("/100%25%3B.".to_owned())
    );
    assert_eq!(
        url("/${input.a}", &json!({ "a": "..." })),
        Ok("/...".to_owned())
    );
}

#[test]
fn lists_objects_and_null_have_no_place_in_a_url_or_header() {
    for value in [json!([1]), json!({ "b": 1 }), Value::Null] {
        let input = json!({ "a": value });
        for endpoint in ["/${input.a}", "/?q=${input.a}"] {
            assert_eq!(
                url(endpoint, &input),
                Err(RenderErrorKind::InputType),
                "{endpoint} {input}"
            );
        }
        let request = json!({ "endpoint": "/", "headers": { "x-a": "${input.a}" } });
        let error = render(&request, &input).expect_err("no text");
        assert_eq!(error.code(), "http-input-type");
    }
}

#[test]
fn a_header_takes_printable_ascii_and_its_secrets_by_position() {
    let request = json!({
        "endpoint": "/",
        "headers": {
            "Authorization": "Bearer ${secret.key}", "X-Ids": "${input.a}, ${input.b}", "X-Left-Out": "${input.none}",
        },
    });
    let text = |text: &str| HeaderPiece::Text(text.to_owned());
    let rendered = render(&request, &json!({ "a": "${secret.key}", "b": 2 })).expect("it fits");
    assert_eq!(
        rendered.headers,
        [
            (
                "authorization".to_owned(),
                vec![text("Bearer "), HeaderPiece::Secret("key".to_owned())]
            ),
            // A placeholder in an input is text like any other.
            ("x-ids".to_owned(), vec![text("${secret.key}, 2")]),
        ]
    );
    assert!(call(&request).secrets().into_iter().eq(["key"]));
    assert!(call(&request).inputs().into_iter().eq(["a", "b", "none"]));
    for value in ["a\r\nx-b: c", "a\nb", "\r", "a\0", "\t", "é", "\u{7f}"] {
        let error = render(&request, &json!({ "a": value, "b": 2 })).expect_err("unfit");
        assert_eq!(error.kind(), RenderErrorKind::InputUnfit, "{value:?}");
        assert!(!error.to_string().contains(value), "{error}");
    }
}

#[test]
fn a_body_keeps_the_types_of_its_inputs() {
    let template = json!({ "one": "${input.a}", "text": "a is ${input.a}", "list": ["${input.l}", 1, null], "not": "${input.none}", "$${": true });
    let input = json!({ "a": 5, "l": [{ "x": "\"" }] });
    let expected =
        json!({ "one": 5, "text": "a is 5", "list": [[{ "x": "\"" }], 1, null], "$${": true });
    assert_eq!(body(&template, &input), Ok(expected));
    assert_eq!(
        body(&json!("${input.a}"), &json!({ "a": null })),
        Ok(Value::Null)
    );
    for (template, input, kind) in [
        (
            json!(["${input.none}"]),
            json!({}),
            RenderErrorKind::InputMissing,
        ),
        (
            json!("${input.none}"),
            json!({}),
            RenderErrorKind::InputMissing,
        ),
        (
            json!({ "a": "x${input.none}" }),
            json!({}),
            RenderErrorKind::InputMissing,
        ),
        (
            json!({ "a": "x${input.a}" }),
            json!({ "a": [] }),
            RenderErrorKind::InputType,
        ),
    ] {
        assert_eq!(body(&template, &input), Err(kind), "{template}");
    }
}

#[test]
fn a_body_is_json_unless_the_driver_says_what_kind() {
    let content_type = |headers: Value, method: &str| {
        let mut request = json!({ "endpoint": "/", "method": method, "headers": headers });
        if method == "PUT" {
            request["body_template"] = json!({});
        }
        let rendered = render(&request, &json!({})).expect("it fits");
        let found = rendered
            .headers
            .into_iter()
            .find(|(name, _)| name == "content-type");
        found.map(|(_, value)| value)
    };
    let text = |text: &str| Some(vec![HeaderPiece::Text(text.to_owned())]);
    assert_eq!(content_type(json!({}), "PUT"), text("application/json"));
    // Without a template, the body is the input itself.
    assert_eq!(content_type(json!({}), "POST"), text("application/json"));
    assert_eq!(content_type(json!({}), "GET"), None);
    let own = json!({ "Content-Type": "application/merge-patch+json" });
    assert_eq!(
        content_type(own, "PUT"),
        text("application/merge-patch+json")
    );
}

#[test]
fn a_repeated_input_does_not_make_a_request_grow_without_end() {
    let large = json!({ "a": "x".repeat(1 << 20) });
    let many = "${input.a}".repeat(32);
    let requests = [
        json!({ "endpoint": format!("/{many}") }),
        json!({ "endpoint": format!("/?q={many}") }),
        json!({ "endpoint": "/", "headers": { "x-a": many } }),
        json!({ "endpoint": "/", "method": "POST", "body_template": many }),
        json!({ "endpoint": "/", "method": "POST", "body_template": vec!["${input.a}"; 1000] }),
    ];
    for request in requests {
        let error = render(&request, &large).expect_err("too large");
        assert_eq!(error.kind(), RenderErrorKind::TooLarge);
    }
    let exact = json!({ "endpoint": "/", "method": "POST", "body_template": "${input.a}" });
    let (four, call) = (json!({ "a": "xx" }), call(&exact));
    assert!(call.render(&four, 4).is_ok());
    assert!(call.render(&four, 3).is_err());
}

#[test]
fn the_origin_is_the_drivers_and_of_http_drivers_only() {
    let origin = |kind: &str| {
        let source = format!(
            "---\nname: Sample\nid: sample-driver\ndescription: Carries it out.\nversion: 1.0.0\nkind: {kind}\nnetwork: {{ egress: ['A.example:8443'] }}\nimplements:\n  - {{ tool: sample.tool, version: 1.x, metadata: {{ http: {{ endpoint: / }} }} }}\n---\n"
        );
        let driver = Driver::parse("DRIVER.md", &source).value.expect("valid");
        driver.origin().map(ToString::to_string)
    };
    assert_eq!(origin("http"), Some("a.example:8443".to_owned()));
    assert_eq!(origin("mcp"), None);
}

#[test]
fn options_only_reads_and_has_no_body() {
    let request = json!({ "endpoint": "/", "method": "OPTIONS" });
    let rendered = render(&request, &json!({})).expect("it fits");
    assert_eq!((rendered.method, rendered.body), (Method::Options, None));
    assert!(Method::Options.is_safe() && !Method::Delete.is_safe());
}

#[test]
fn an_output_is_taken_where_the_driver_says() {
    let limits = Limits::default();
    let answer = json!({ "data": { "a": [1, 2] }, "at": "now" });
    let extract = |response: OutputPlace| response.extract(&answer, &limits);
    assert_eq!(extract(OutputPlace::Whole), Ok(answer.clone()));
    assert_eq!(
        extract(OutputPlace::Pointer("/data/a/1".to_owned())),
        Ok(json!(2))
    );
    let error = extract(OutputPlace::Pointer("/data/b".to_owned())).expect_err("not there");
    assert_eq!(error.code(), "http-response-missing");
    let parts = [("x", "/data/a"), ("gone", "/nowhere"), ("all", "")];
    let outputs = parts
        .map(|(name, at)| (name.to_owned(), at.to_owned()))
        .to_vec();
    assert_eq!(
        extract(OutputPlace::Outputs(outputs)),
        Ok(json!({ "x": [1, 2], "all": answer }))
    );
    assert_eq!(
        OutputPlace::Whole.extract(&Value::Null, &limits),
        Ok(Value::Null)
    );
}

#[test]
fn outputs_that_name_one_part_again_and_again_stay_within_the_limits() {
    let answer = json!({ "a": "x".repeat(1000) });
    let outputs = |count: usize| {
        let parts = (0..count).map(|n| (format!("o{n}"), "/a".to_owned()));
        OutputPlace::Outputs(parts.collect())
    };
    let limits = Limits {
        bytes: 10_000,
        ..Limits::default()
    };
    assert!(outputs(9).extract(&answer, &limits).is_ok());
    let error = outputs(1000)
        .extract(&answer, &limits)
        .expect_err("too large");
    assert_eq!(error.code(), "json-too-large");
    let few = Limits {
        values: 20,
        ..Limits::default()
    };
    let error = outputs(100).extract(&answer, &few).expect_err("too many");
    assert_eq!(error.code(), "json-too-many");
    let flat = Limits {
        depth: 1,
        ..Limits::default()
    };
    let deep = json!({ "a": [1] });
    assert!(OutputPlace::Whole.extract(&deep, &flat).is_err());
    assert!(
        OutputPlace::Pointer("/a".to_owned())
            .extract(&deep, &flat)
            .is_ok()
    );
    assert!(outputs(1).extract(&deep, &flat).is_err());
}

fn hostile() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[./\\\\%:@?#&=;\r\n\t 0-9a-f]{0,12}",
        Just("..".to_owned()),
        Just("//evil.example/".to_owned()),
        Just("\r\nhost: evil.example".to_owned()),
        Just("@evil.example".to_owned()),
    ];
    prop_oneof![
        8 => text.prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => Just(json!(null)),
        1 => Just(json!([1])),
    ]
}

proptest! {
    /// The result is read with the WHATWG URL parser, the most lenient one.
    #[test]
    fn no_input_changes_the_structure_of_a_request(a in hostile(), b in hostile(), c in hostile()) {
        let request = json!({
            "endpoint": "/v1/${input.a}/x${input.b}?q=${input.c}&fixed=1&p=${input.a}${input.b}",
            "method": "POST",
            "headers": { "x-a": "${input.a}", "x-b": "b ${input.b}" },
            "body_template": { "a": "${input.a}", "t": "${input.b}", "k": { "c": "${input.c}" } },
        });
        let input = json!({ "a": a, "b": b, "c": c });
        if let Ok(rendered) = render(&request, &input) {
            let url = url::Url::parse(&format!("https://a.example:8443{}", rendered.path_and_query)).expect("a URL");
            prop_assert_eq!(url.origin().ascii_serialization(), "https://a.example:8443");
            prop_assert_eq!((url.username(), url.password(), url.fragment()), ("", None, None));
            let segments: Vec<&str> = url.path_segments().expect("a path").collect();
            prop_assert_eq!(segments.len(), 3);
            prop_assert_eq!(segments[0], "v1");
            let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
            let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
            prop_assert_eq!(query, [
                ("q".to_owned(), text(&input["c"])),
                ("fixed".to_owned(), "1".to_owned()),
                ("p".to_owned(), text(&input["a"]) + &text(&input["b"])),
            ]);
            for (name, pieces) in &rendered.headers {
                for piece in pieces {
                    let HeaderPiece::Text(text) = piece else { panic!("{name}: a secret out of an input") };
                    prop_assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b)), "{:?}", text);
                }
            }
            let body: Value = serde_json::from_slice(&rendered.body.expect("a body")).expect("JSON");
            let expected = json!({ "a": input["a"], "t": input["b"], "k": { "c": input["c"] } });
            prop_assert_eq!(body, expected);
        }
    }

    #[test]
    fn no_template_and_no_input_make_rendering_panic(
        path in "(/[a-z%2e.${input.a}]{0,16}){1,3}(\\?[a-z=&${input.b}]{0,16})?",
        value in hostile(),
    ) {
        let members: Map<String, Value> = [("a".to_owned(), value.clone()), ("b".to_owned(), value)].into_iter().collect();
        let mut call = call(&json!({ "endpoint": "/" }));
        if let Ok(endpoint) = toolward_contract::driver::Endpoint::parse(&path) {
            let segments = endpoint.segments.len();
            call.endpoint = endpoint;
            if let Ok(rendered) = call.render(&Value::Object(members), BODY) {
                let path = rendered.path_and_query.split('?').next().unwrap_or_default();
                prop_assert_eq!(path.split('/').count(), segments + 1);
                prop_assert!(!path.starts_with("//"));
            }
        }
    }
}

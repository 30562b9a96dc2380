//! Drivers: ranges, limits, mapping, the requests of declarative drivers.

use std::time::Duration;

use serde_json::{Value, json};
use toolward_contract::driver::{
    Driver, DriverLimits, Endpoint, OutputPlace, SlotSource, Template, TemplatePart, TemplateSlot,
};
use toolward_contract::tool::{Backoff, Tool};
use toolward_contract::{NoScope, Severity};

fn driver(entry: &str, extra: &str) -> Driver {
    let source = format!(
        "---\nname: Sample\nid: sample-driver\ndescription: Carries it out.\nversion: 1.0.0\nkind: component\ncomponent: driver.wasm\nimplements:\n  - tool: sample.tool\n{entry}{extra}---\n"
    );
    Driver::parse("DRIVER.md", &source)
        .into_result()
        .unwrap_or_else(|found| panic!("{found:?}"))
}

#[test]
fn version_ranges_are_npms() {
    let serves = |range: &str, version: &str| {
        let driver = driver(&format!("    version: \"{range}\"\n"), "");
        driver
            .implements_tool("sample.tool", &version.parse().expect("a version"))
            .is_some()
    };
    for (range, version) in [
        ("^1.2.0", "1.9.0"),
        ("1.2.3", "1.2.3"),
        (">=1.2.0 <2.0.0", "1.5.0"),
        ("1.x || 3.x", "3.1.0"),
        ("~1.2.0", "1.2.9"),
        ("1.0.0 - 1.5.0", "1.3.0"),
        ("*", "7.0.0"),
    ] {
        assert!(serves(range, version), "{range} {version}");
    }
    for (range, version) in [
        ("^1.2.0", "2.0.0"),
        ("1.2.3", "1.2.4"),
        (">=1.2.0 <2.0.0", "2.0.0"),
        ("1.x || 3.x", "2.0.0"),
        ("^1.0.0", "1.1.0-beta.1"),
    ] {
        assert!(!serves(range, version), "{range} {version}");
    }
    assert!(
        driver("    version: 1.x\n", "")
            .implements_tool("other.tool", &semver::Version::new(1, 0, 0))
            .is_none()
    );
}

#[test]
fn a_field_without_effect_is_warned_of_and_so_is_one_that_logs_in() {
    let found = |extra: &str| {
        let source = format!(
            "---\nname: Sample\nid: sample-driver\ndescription: Carries it out.\nversion: 1.0.0\n\
             kind: component\ncomponent: driver.wasm\nimplements:\n  - tool: sample.tool\n    \
             version: 1.x\n{extra}---\n"
        );
        let parsed = Driver::parse("DRIVER.md", &source);
        let found = parsed.diagnostics.iter();
        let found: Vec<_> = found
            .map(|one| (one.code, one.severity, one.line))
            .collect();
        (parsed.into_result().is_ok(), found)
    };
    let warned = ("driver-field-without-effect", Severity::Warning, 11);
    assert_eq!(found("health_check: { path: / }\n"), (true, vec![warned]));
    // A policy can choose drivers by these fields.
    for field in ["region: eu\n", "region: [eu, us]\n", "policy_tags: [pii]\n"] {
        assert_eq!(found(field), (true, vec![]), "{field}");
    }
    let warned = ("driver-auth-unsupported", Severity::Warning, 11);
    for field in [
        "login: { url: 'https://a.example' }",
        "refresh: {}",
        "expiry: {}",
    ] {
        let auth = format!("auth: {{ {field} }}\n");
        assert_eq!(found(&auth), (true, vec![warned]), "{auth}");
    }
    let unknown = ("unknown-field", Severity::Error, 11);
    assert_eq!(found("auth: { type: bearer }\n"), (false, vec![unknown]));
    assert_eq!(found(""), (true, vec![]));
}

#[test]
fn a_retry_without_its_first_pause_waits_a_moment() {
    let source = "---\nname: Sample\nid: sample.tool\ndescription: Does it.\nversion: 1.0.0\ninputs: {}\noutputs: {}\n\
                  retry: { max_attempts: 3, backoff: exponential }\n---\n";
    let tool = Tool::parse("TOOL.md", source, &NoScope).into_result();
    let retry = tool.expect("a contract").retry.expect("a retry");
    assert_eq!(retry.initial, Duration::from_millis(100));
    let own = driver(
        "    version: 1.x\n    retry_override: { max_attempts: 2, backoff: fixed }\n",
        "retry_override: { max_attempts: 2, backoff: fixed, initial_ms: 0 }\n",
    );
    let entry = own.implements[0].retry.expect("a retry");
    assert_eq!(entry.initial, Duration::from_millis(100));
    assert_eq!(own.retry_override.expect("a retry").initial, Duration::ZERO);
}

#[test]
fn each_part_of_a_cost_is_the_entrys_or_else_the_drivers_or_else_the_contracts() {
    let tool = Tool::parse(
        "TOOL.md",
        "---\nname: Sample\nid: sample.tool\ndescription: Does it.\nversion: 1.0.0\n\
         inputs: { type: object }\noutputs: { type: object }\ncost_class: metered\n---\n",
        &NoScope,
    );
    let tool = tool.into_result().expect("a contract");
    let cost = |entry: &str, extra: &str| {
        let line = |text: &str| format!("cost_override: {{ {text} }}\n");
        let entry = format!("    version: 1.x\n    {}", line(entry));
        let driver = driver(&entry, &line(extra));
        driver.cost(&tool, &driver.implements[0]).to_string()
    };
    let all = "cost_units_per_call: 4, cost_class: expensive, currency: USD";
    for (entry, extra, expected) in [
        ("", "", "unpriced, metered"),
        ("", "cost_units_per_call: 4", "4, metered"),
        ("", all, "4 USD, expensive"),
        ("cost_units_per_call: 0", all, "0 USD, expensive"),
        ("cost_class: trivial", all, "4 USD"),
        ("currency: EUR", all, "4 EUR, expensive"),
        ("currency: EUR", "", "unpriced, metered"),
        (
            "cost_units_per_call: 0.5, cost_class: metered, currency: JPY",
            all,
            "0.5 JPY, metered",
        ),
    ] {
        assert_eq!(cost(entry, extra), expected, "{entry:?} {extra:?}");
    }
}

#[test]
fn a_cost_is_finite_and_not_negative_wherever_it_stands() {
    for value in [
        "cost_units_per_call: -1",
        "cost_units_per_call: -.inf",
        "cost_units_per_call: .inf",
        "cost_units_per_call: .nan",
        "cost_units_per_call: 1e999",
        "cost_units_per_call: free",
        "cost_class: cheap",
        "currency: usd",
        "currency: EURO",
        "currency: 1",
        "per_call: 1",
    ] {
        let line = format!("cost_override: {{ {value} }}\n");
        for (entry, extra) in [(&*format!("    {line}"), ""), ("", &*line)] {
            let source = format!(
                "---\nname: Sample\nid: sample-driver\ndescription: Carries it out.\nversion: 1.0.0\n\
                 kind: component\ncomponent: driver.wasm\nimplements:\n  - tool: sample.tool\n    \
                 version: 1.x\n{entry}{extra}---\n"
            );
            let parsed = Driver::parse("DRIVER.md", &source);
            assert!(parsed.into_result().is_err(), "{source}");
        }
    }
}

#[test]
fn missing_egress_is_no_network() {
    assert!(driver("    version: 1.x\n", "").egress.is_empty());
    assert!(
        driver("    version: 1.x\n", "network: { egress: [] }\n")
            .egress
            .is_empty()
    );
    assert_eq!(
        driver(
            "    version: 1.x\n",
            "network: { egress: ['*.a.example'] }\n"
        )
        .egress
        .to_string(),
        "[network:*.a.example]"
    );
}

#[test]
fn each_limit_is_the_one_that_was_asked_for() {
    let names = [
        "fuel",
        "memory_mib",
        "output_bytes",
        "stdio_bytes",
        "log_records",
        "resources",
        "http_requests",
        "http_body_bytes",
        "http_timeout_ms",
        "workspace_bytes",
        "workspace_files",
        "nested_calls",
    ];
    let lines = names.iter().zip(11..);
    let text: String = lines.map(|(name, n)| format!("  {name}: {n}\n")).collect();
    let limits = driver("    version: 1.x\n", &format!("limits:\n{text}")).limits;
    let found = [
        limits.fuel,
        limits.memory_mib,
        limits.output_bytes,
        limits.stdio_bytes,
        limits.log_records,
        limits.resources,
        limits.http_requests,
        limits.http_body_bytes,
        limits.http_timeout_ms,
        limits.workspace_bytes,
        limits.workspace_files,
        limits.nested_calls,
    ];
    assert!(found.into_iter().eq((11..23).map(Some)), "{found:?}");
    assert_eq!(
        driver("    version: 1.x\n", "").limits,
        DriverLimits::default()
    );
}

#[test]
fn the_tightest_timeout_and_the_nearest_retry_hold() {
    let source = "---\nname: Sample\nid: sample.tool\ndescription: Does something small.\nversion: 1.0.0\ninputs: {}\noutputs: {}\ntimeout_ms: 5000\nretry: { max_attempts: 9, backoff: fixed, initial_ms: 1 }\n---\n";
    let tool = Tool::parse("TOOL.md", source, &NoScope)
        .into_result()
        .expect("valid");
    let check = |entry: &str, extra: &str| {
        let driver = driver(&format!("    version: 1.x\n{entry}"), extra);
        let entry = &driver.implements[0];
        (
            driver.timeout(&tool, entry),
            driver.retry(&tool, entry).map(|retry| retry.max_attempts),
        )
    };
    assert_eq!(check("", ""), (Duration::from_millis(5000), Some(9)));
    let retry = |n: u32| {
        format!("retry_override: {{ max_attempts: {n}, backoff: fixed, initial_ms: 1 }}\n")
    };
    assert_eq!(
        check("", &format!("timeout_override_ms: 4000\n{}", retry(2))),
        (Duration::from_millis(4000), Some(2))
    );
    let own = format!("    timeout_override_ms: 3000\n    {}", retry(3));
    assert_eq!(
        check(&own, &format!("timeout_override_ms: 4000\n{}", retry(2))),
        (Duration::from_millis(3000), Some(3))
    );
}

fn mapped(mapping: &str, input: Value) -> Result<Value, String> {
    let driver = driver(&format!("    version: 1.x\n    mapping: {mapping}\n"), "");
    driver.implements[0]
        .mapping
        .apply(input)
        .map_err(|error| error.to_string())
}

#[test]
fn a_retry_of_a_driver_may_leave_out_all_but_its_attempts() {
    let driver = driver(
        "    version: 1.x\n",
        "retry_override: { max_attempts: 3 }\n",
    );
    let retry = driver.retry_override.expect("a retry");
    assert_eq!((retry.max_attempts, retry.backoff), (3, Backoff::Fixed));
    assert_eq!(retry.initial, Duration::from_millis(100));
}

#[test]
fn mapping_renames_and_leaves_the_rest() {
    let input = json!({ "productUrl": "u", "n": 1 });
    assert_eq!(mapped("{}", input.clone()), Ok(input.clone()));
    assert_eq!(
        mapped("{ url: productUrl }", input.clone()),
        Ok(json!({ "url": "u", "n": 1 }))
    );
    assert_eq!(
        mapped("{ a: n, b: n, c: none }", input),
        Ok(json!({ "a": 1, "b": 1, "productUrl": "u" }))
    );
}

#[test]
fn transforms_do_what_their_names_say() {
    let one = |transform: &str, value: Value| {
        mapped(
            &format!("{{ b: {{ from: a, transform: {transform} }} }}"),
            json!({ "a": value }),
        )
        .map(|v| v["b"].clone())
    };
    for (transform, from, to) in [
        ("trim", json!(" x "), json!("x")),
        ("lowercase", json!("ÀB"), json!("àb")),
        ("uppercase", json!("ab"), json!("AB")),
        ("to_string", json!(1.5), json!("1.5")),
        ("to_string", json!(true), json!("true")),
        ("to_number", json!(" 12 "), json!(12)),
        ("to_json", json!({ "x": [1] }), json!("{\"x\":[1]}")),
        ("from_json", json!("{\"x\":[1]}"), json!({ "x": [1] })),
        ("join_commas", json!(["a", "b"]), json!("a,b")),
        ("split_commas", json!("a, b"), json!(["a", "b"])),
        ("split_commas", json!(""), json!([])),
        ("wrap", json!(1), json!([1])),
    ] {
        assert_eq!(one(transform, from.clone()), Ok(to), "{transform} {from}");
    }
    for (transform, from) in [
        ("trim", json!(1)),
        ("to_string", json!([])),
        ("to_number", json!("x")),
        ("from_json", json!("{\"a\":1,\"a\":2}")),
        ("join_commas", json!([1])),
        ("split_commas", json!(1)),
    ] {
        assert!(one(transform, from.clone()).is_err(), "{transform} {from}");
    }
}

#[test]
fn a_placeholder_stays_in_its_segment() {
    let endpoint =
        Endpoint::parse("/v1/a${input.id}b/${input.x.y}?q=${input.q}&flag").expect("valid");
    assert_eq!(endpoint.segments.len(), 3);
    let part = |name: &str| {
        let path = name.split('.').map(str::to_owned).collect();
        TemplatePart::Value(TemplateSlot::new(SlotSource::Input, path))
    };
    assert_eq!(
        endpoint.segments[1].parts,
        [
            TemplatePart::Literal("a".to_owned()),
            part("id"),
            TemplatePart::Literal("b".to_owned())
        ]
    );
    assert_eq!(endpoint.segments[2].parts, [part("x.y")]);
    assert_eq!(
        endpoint.query,
        [
            (
                "q".to_owned(),
                Template {
                    parts: vec![part("q")]
                }
            ),
            ("flag".to_owned(), Template::default())
        ]
    );
    assert!(Endpoint::parse("/").is_ok() && Endpoint::parse("/a/").is_ok());
    for text in [
        "",
        "a",
        "//a",
        "/a//b",
        "/a/../b",
        "/a/%2E./b",
        "/a#b",
        "/a b",
        "/a\\b",
        "/a%2",
        "/ä",
        "/a?=1",
        "/a?x=1#y",
        "http://a/b",
    ] {
        assert!(Endpoint::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_doubled_dollar_is_literal() {
    let parts = Template::parse("a $${b} ${input.c} $d")
        .expect("valid")
        .parts;
    let literal = |text: &str| TemplatePart::Literal(text.to_owned());
    assert_eq!(
        parts,
        [
            literal("a ${b} "),
            TemplatePart::Value(TemplateSlot::new(SlotSource::Input, vec!["c".to_owned()])),
            literal(" $d")
        ]
    );
    for header in ["Bearer ${secrets.a/b}", "Bearer ${secret.a/b}"] {
        let header = Template::parse(header).expect("valid");
        assert_eq!(header.secrets().collect::<Vec<_>>(), ["a/b"]);
    }
    for text in [
        "${",
        "${}",
        "${input}",
        "${input.}",
        "${input.a b}",
        "${secret.*}",
        "${secret.}",
        "${env.X}",
        "${input.a${input.b}}",
    ] {
        assert!(Template::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_response_is_taken_whole_or_in_parts() {
    let response = |text: &str| {
        let source = format!(
            "---\nname: Sample\nid: sample-driver\ndescription: Carries it out.\nversion: 1.0.0\nkind: http\nnetwork: {{ egress: [a.example] }}\nimplements:\n  - tool: sample.tool\n    version: 1.x\n    metadata: {{ http: {{ endpoint: /v1{text} }} }}\n---\n"
        );
        let driver = Driver::parse("DRIVER.md", &source)
            .into_result()
            .unwrap_or_else(|found| panic!("{found:?}"));
        driver.implements[0]
            .http
            .clone()
            .expect("a request")
            .response
    };
    assert_eq!(response(""), OutputPlace::Whole);
    assert_eq!(
        response(", response: { pointer: /data }"),
        OutputPlace::Pointer("/data".to_owned())
    );
    assert_eq!(
        response(", response: { outputs: { a: /b } }"),
        OutputPlace::Outputs(vec![("a".to_owned(), "/b".to_owned())])
    );
}

#[test]
fn the_variables_of_auth_are_secrets_that_the_driver_needs() {
    let auth = "auth: { ref: ./SECRETS.md, state: { env: [API_KEY, other/key] } }\nrequires: { secrets: [third] }\n";
    let driver = driver("    version: 1.x\n", auth);
    let secrets: Vec<String> = driver.requires.secrets().collect();
    assert_eq!(secrets, ["API_KEY", "other/key", "third"]);
    assert_eq!(driver.auth.expect("as written")["ref"], "./SECRETS.md");
}

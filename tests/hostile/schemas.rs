//! Contracts whose schemas refer outside, or make checking a value too expensive.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolward_bundle::content::Content;
use toolward_host::{Host, Request};

use crate::server::Server;
use crate::world::{Bundle, Guest, cache};

const TOOL: &str = "hostile.schema";

/// Returns a bundle whose tool has this input schema, and the bundle's content or an error.
fn taking(schema: &str) -> (Bundle, Result<Content, String>) {
    let bundle = Bundle::of(TOOL, Guest::Plain, "", "");
    bundle.write(
        &format!("tools/{TOOL}/TOOL.md"),
        format!(
            "---\nname: Hostile\nid: {TOOL}\ndescription: Does what it is told.\n\
             version: 1.0.0\ninputs: {schema}\noutputs:\n  type: object\n---\n"
        ),
    );
    let content = bundle.read();
    (bundle, content)
}

fn field(schema: Value) -> Value {
    json!({"type": "object", "properties": {"do": {"type": "string"}, "value": schema}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_points_elsewhere_is_refused_and_nothing_is_fetched() {
    let server = Server::saying("{}");
    let port = server.port();
    for reference in [
        format!("http://127.0.0.1:{port}/schema.json"),
        format!("https://127.0.0.1:{port}/schema.json"),
        "file:///etc/passwd".to_owned(),
        "other.json".to_owned(),
        "../../../etc/passwd".to_owned(),
    ] {
        for schema in [
            field(json!({"$ref": reference})),
            field(json!({"$dynamicRef": reference})),
            field(
                json!({"allOf": [{"$id": format!("http://127.0.0.1:{port}/"), "$ref": reference}]}),
            ),
        ] {
            let (_bundle, content) = taking(&schema.to_string());
            assert!(content.is_err(), "{schema}");
        }
    }
    server.assert_untouched("a reference");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_that_could_backtrack_is_checked_in_time_or_refused() {
    for pattern in [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "^(.*a){20}$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
    ] {
        let schema = field(json!({"type": "string", "pattern": pattern}));
        let (_bundle, content) = taking(&schema.to_string());
        let Ok(content) = content else {
            continue;
        };
        let host = Host::builder()
            .bundle(content)
            .cache(cache())
            .build()
            .unwrap();
        let input = json!({"do": "echo", "value": format!("{}!", "a".repeat(50_000))});
        let started = Instant::now();
        let reply = host.call(Request::with_value(TOOL, input)).await;
        assert!(started.elapsed() < Duration::from_secs(60), "{pattern}");
        assert_eq!(
            reply.result.unwrap_err().code.as_str(),
            "input_invalid",
            "{pattern}"
        );
        assert_eq!(reply.metadata.attempts, 0);
    }
    // Back references and lookaround can't be checked without backtracking.
    for pattern in ["^(a+)\\1$", "^(?=a)b", "^(?<!a)b"] {
        let (_bundle, content) =
            taking(&field(json!({"type": "string", "pattern": pattern})).to_string());
        assert!(content.is_err(), "{pattern}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_is_too_deep_is_refused() {
    let started = Instant::now();
    for depth in [1000, 10_000, 30_000] {
        let text = format!("{}{{}}{}", "{\"not\":".repeat(depth), "}".repeat(depth));
        let (_bundle, content) = taking(&text);
        assert!(content.is_err(), "{depth}");
    }
    assert!(started.elapsed() < Duration::from_secs(60));
}

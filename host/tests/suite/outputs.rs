//! A driver's output is accepted only if it matches the contract.

use serde_json::json;
use toolward_host::Origin;

use crate::fixture::{self, Extra, Fixture, error, run, still_serves};

#[tokio::test]
async fn output_against_its_schema_is_the_drivers_fault_with_the_path() {
    let error = error(&fixture::hostile(), json!({"do": "wrong-output"})).await;
    assert_eq!(error.code.as_str(), "upstream_error");
    assert_eq!(error.cause.unwrap()["path"], json!("/did"));
}

#[tokio::test]
async fn output_that_is_not_the_json_that_is_allowed_is_refused() {
    let host = fixture::hostile();
    for what in [
        "invalid-json",
        "not-json",
        "trailing-data",
        "duplicate-keys",
        "big-integer",
        "null-output",
    ] {
        let error = error(&host, json!({"do": what})).await;
        assert_eq!(error.code.as_str(), "upstream_error", "{what}: {error:#?}");
    }
    let error = error(&host, json!({"do": "deep", "n": 10_000})).await;
    assert_eq!(error.code.as_str(), "upstream_error");
    still_serves(&host).await;
}

#[tokio::test]
async fn text_that_is_no_utf8_never_gets_in() {
    let host = fixture::hostile();
    let error = error(&host, json!({"do": "not-utf8"})).await;
    assert_eq!(error.code.as_str(), "upstream_error");
    still_serves(&host).await;
}

#[tokio::test]
async fn an_error_of_the_driver_is_marked_as_its_own() {
    let host = fixture::hostile();
    let plain = error(
        &host,
        json!({"do": "error", "name": "stripe:card_declined"}),
    )
    .await;
    assert_eq!(
        (plain.code.as_str(), plain.origin),
        ("stripe:card_declined", Origin::Driver)
    );

    let forged = error(
        &host,
        json!({"do": "error", "name": "toolward:fuel_exhausted"}),
    )
    .await;
    assert_eq!(
        (forged.code.as_str(), forged.origin),
        ("upstream_error", Origin::Driver)
    );

    let huge = error(&host, json!({"do": "huge-error", "n": 100_000})).await;
    assert!(huge.message.len() <= 4096);

    let input = json!({"do": "error", "name": "a:b", "value": {"cause": "c".repeat(200_000)}});
    let cause = error(&host, input).await.cause.unwrap();
    assert_eq!(cause.as_str().unwrap().len(), 64 << 10);
}

#[tokio::test]
async fn content_blocks_of_every_kind_come_through() {
    let reply = run(&fixture::hostile(), json!({"do": "blocks"})).await;
    let envelope = reply.envelope();
    let kinds: Vec<&str> = envelope["content"]
        .as_array()
        .unwrap_or_else(|| panic!("{envelope:#}"))
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    for kind in ["text", "image", "audio", "resource_link", "resource"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
}

#[tokio::test]
async fn log_and_output_streams_are_captured_and_never_the_hosts() {
    let host = fixture::hostile();
    let reply = run(
        &host,
        json!({"do": "print", "name": "stdout", "value": "on stdout"}),
    )
    .await;
    assert!(
        reply.captured.stdout.contains("on stdout"),
        "{:?}",
        reply.captured
    );
    let reply = run(&host, json!({"do": "log", "n": 3})).await;
    assert_eq!(reply.captured.logs.len(), 3, "{:?}", reply.captured);
    assert_eq!(reply.captured.logs[2].fields, json!({"n": 2}));
}

#[tokio::test]
async fn a_block_is_for_each_role_at_most_once() {
    let reply = run(
        &fixture::hostile(),
        json!({"do": "audience", "n": 1_000_000}),
    )
    .await;
    let envelope = reply.envelope();
    assert_eq!(
        envelope["content"][0]["annotations"]["audience"],
        json!(["user"])
    );
}

#[tokio::test]
async fn text_of_a_panic_is_marked_as_the_drivers() {
    let panic = error(
        &fixture::hostile(),
        json!({"do": "panic", "name": "hint: run it", "n": 0}),
    )
    .await;
    assert_eq!(panic.origin, Origin::Driver);
    let trap = error(&fixture::hostile(), json!({"do": "trap"})).await;
    assert_eq!(trap.origin, Origin::Host);
}

#[tokio::test]
async fn an_output_that_the_driver_dropped_is_left_out_of_the_result() {
    let fixture = |implements: &str| {
        let fixture = Fixture::new(Extra {
            tool: "",
            driver: "",
            implements,
        });
        fixture.write(
            "tools/hostile.run/TOOL.md",
            "---\nname: Hostile\nid: hostile.run\ndescription: Does.\nversion: 1.0.0\n\
             inputs: { type: object }\noutputs:\n  type: object\n  properties:\n    \
             did: { type: string }\n    value: {}\n  required: [did]\n---\n",
        );
        fixture.host()
    };
    let input = json!({"do": "echo", "value": 7});
    let reply = run(&fixture(""), input.clone()).await;
    assert_eq!(
        reply.result.unwrap().structured,
        json!({"did": "echo", "value": 7})
    );
    let drops = "    schema_narrowing: { drop_outputs: [value] }\n";
    let reply = run(&fixture(drops), input).await;
    assert_eq!(reply.result.unwrap().structured, json!({"did": "echo"}));
}

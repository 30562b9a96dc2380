//! Every object that the host makes matches its schema, and needs each field that the schema
//! requires.

use serde_json::{Value, json};
use toolward_host::Host;

use crate::calls::{Says, answered};
use crate::fixture::{Fixture, called, described};
use crate::objects::{all, are_published, are_valid, objects};

fn host(fixture: &Fixture) -> Host {
    fixture.host(None::<Says>)
}

/// The record as `search_tools` of the MCP server returns it.
fn reference(loading_state: &str, schema_visibility: &str) -> Value {
    let reference = json!({
        "schema_version": "0.2.0", "tool_id": "test.run", "name": "test_run", "namespace": "test", "source": "acme",
        "schema_visibility": schema_visibility, "loading_state": loading_state, "reason": "keywords",
        "pending_provider_or_server": "acme",
    });
    json!({ "deferred_tools": [reference] })
}

#[tokio::test]
async fn each_object_matches_its_schema_and_needs_each_required_field() {
    let fixture = Fixture::new();
    let host = host(&fixture);
    let mut found = Vec::new();
    for tool in host.tools() {
        found.extend(objects(&described(&host, tool.contract.id.as_str())));
    }
    for (tool, input) in [
        ("test.run", json!({ "do": "progress", "n": 2 })),
        ("test.run", json!({ "do": "error", "name": "test:failed" })),
        ("test.run", json!({ "do": 7 })),
        ("test.asks", json!({ "do": "echo" })),
        ("test.missing", json!({ "do": "echo" })),
        ("test.denied", json!({ "do": "echo" })),
        ("test.alone", json!({ "do": "echo" })),
        ("test.none", json!({})),
    ] {
        found.extend(objects(&called(&host, tool, input).await));
    }
    for records in answered(&fixture).await {
        found.extend(objects(&records));
    }
    found.extend(objects(&reference("deferred", "deferred")));
    found.extend(objects(&reference("unavailable", "internal")));
    are_valid(&found);
    are_published(&found);
    let made = found.iter().map(|(object, _)| *object).collect();
    assert_eq!(all(), made);
}

/// Without this test, a schema that allows everything would not be noticed.
#[test]
fn a_record_of_the_wrong_kind_matches_no_other_schema() {
    let record = json!({ "schema_version": "0.2.0", "tool_id": "a", "protocol": "mcp" });
    let wrong = std::panic::catch_unwind(|| are_valid(&[("tool_external_mapping", record)]));
    assert!(wrong.is_err(), "an MCP mapping without a name");
}

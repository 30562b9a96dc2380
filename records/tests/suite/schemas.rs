//! Every object that the host makes matches its schema, and needs each field that the
//! schema requires.

use serde_json::{Value, json};
use toolward_host::Host;
use toolward_records::{DeferredTool, LoadingState, SchemaVersion, SchemaVisibility};

use crate::calls::{Says, answered};
use crate::fixture::{Fixture, called, described};
use crate::objects::{all, are_published, are_valid, objects};

fn host(fixture: &Fixture) -> Host {
    fixture.host(None::<Says>)
}

fn reference(loading_state: LoadingState, schema_visibility: SchemaVisibility) -> Value {
    let reference = DeferredTool {
        schema_version: SchemaVersion,
        tool_id: "test.run".to_owned(),
        name: "test_run".to_owned(),
        namespace: "test".to_owned(),
        title: None,
        summary: None,
        search_hint: None,
        source: "acme".to_owned(),
        schema_visibility,
        loading_state,
        reason: "keywords".to_owned(),
        pending_provider_or_server: Some("acme".to_owned()),
    };
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
    found.extend(objects(&reference(
        LoadingState::Deferred,
        SchemaVisibility::Deferred,
    )));
    found.extend(objects(&reference(
        LoadingState::Unavailable,
        SchemaVisibility::Internal,
    )));
    are_valid(&found);
    are_published(&found);
    let made = found.iter().map(|(object, _)| *object).collect();
    assert_eq!(all(), made);
}

/// Nothing here would notice a schema that allows everything.
#[test]
fn a_record_of_the_wrong_kind_matches_no_other_schema() {
    let record = json!({ "schema_version": "0.2.0", "tool_id": "a", "protocol": "mcp" });
    let wrong = std::panic::catch_unwind(|| are_valid(&[("tool_external_mapping", record)]));
    assert!(wrong.is_err(), "an MCP mapping without a name");
}

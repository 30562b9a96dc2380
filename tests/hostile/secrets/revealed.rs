//! A value that the guest may read is removed from everything that the call shows.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolward_host::{LogRecord, Observer, Progress, Request};

use super::{TOOL, Terms, USUAL, VALUE, World};
use crate::vault::Vault;

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_revealed_only_where_policy_says_so() {
    let world = World::new().await;
    let reply = world
        .run(json!({"do": "secrets", "op": "reveal", "slug": "token"}))
        .await;
    assert_eq!(reply.metadata.violations[0].kind.as_str(), "secret");
    let got = reply.result.unwrap().structured;
    assert_eq!(got["value"]["err"], json!("denied"), "{got}");
}

/// Stores the reports that it gets.
#[derive(Default)]
struct Listener(Mutex<String>);

impl Observer for Listener {
    fn progress(&self, progress: &Progress) {
        *self.0.lock().unwrap() += &format!("{progress:?}");
    }

    fn log(&self, record: &LogRecord) {
        *self.0.lock().unwrap() += &format!("{record:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revealed_value_is_kept_out_of_everything_that_the_call_shows() {
    let terms = Terms {
        more: "reveal = [\"token\"]\n",
        ..USUAL
    };
    let world = World::on(Vault::saying("fine").await, &terms);
    let mark = "${reveal:token}";
    for input in [
        json!({"do": "secrets", "op": "reveal", "slug": "token"}),
        json!({"do": "echo", "value": format!("a {mark} b")}),
        json!({"do": "echo", "value": [{"deep": [mark]}]}),
        json!({"do": "log-text", "name": mark, "value": format!("{{\"a\":\"{mark}\"}}")}),
        json!({"do": "progress-text", "name": mark}),
        json!({"do": "print", "name": "stdout", "value": mark}),
        json!({"do": "print", "name": "stderr", "value": mark}),
        json!({"do": "error", "name": "hostile:x", "value": {"message": mark, "cause": format!("{{\"a\":\"{mark}\"}}")}}),
        json!({"do": "panic", "name": mark}),
    ] {
        let listener = Arc::new(Listener::default());
        let request = Request::with_value(TOOL, input.clone()).observer(listener.clone());
        let reply = world.host.call(request).await;
        let heard = listener.0.lock().unwrap().clone();
        let shown = format!("{} {:?} {heard}", reply.envelope(), reply.captured);
        assert!(!shown.contains(VALUE), "{input}: {shown}");
        assert!(shown.contains("[secret]"), "{input}: it was there: {shown}");
    }
    // A guest that may read a value can't send it itself, even to the secret's origin.
    let input = json!({"do": "http", "url": world.vault.url("/repos/x"), "headers": [["authorization", format!("Bearer {mark}")]]});
    let got = world.value(input).await;
    assert!(got["err"].is_string(), "{got}");
    world
        .vault
        .assert_not_told(VALUE, "a header that is not the guest's to set");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revealed_value_is_no_subject_of_a_violation_and_no_code() {
    let terms = Terms {
        more: "reveal = [\"token\"]\n",
        ..USUAL
    };
    let world = World::on(Vault::saying("fine").await, &terms);
    let mark = "${reveal:token}";
    for input in [
        json!({"do": "call-tool", "tool": format!("a.{mark}"), "input": {}}),
        json!({"do": "secrets", "op": "store", "slug": mark}),
        json!({"do": "http", "url": format!("https://{mark}.test/")}),
    ] {
        let reply = world.run(input.clone()).await;
        let subject = &reply.metadata.violations[0].subject;
        assert!(subject.contains("[secret]"), "{input}: {subject}");
    }
    let input = json!({"do": "error", "name": format!("x:{mark}"), "value": {}});
    let error = world.run(input).await.result.unwrap_err();
    assert_eq!(error.code.as_str(), "upstream_error", "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revealed_value_is_not_handed_to_another_tool() {
    let terms = Terms {
        more: "reveal = [\"token\"]\n",
        ..USUAL
    };
    let world = World::on(Vault::saying("fine").await, &terms);
    let escaped: String = VALUE
        .chars()
        .map(|c| format!("\\u{:04x}", c as u32))
        .collect();
    for input in [
        json!({"do": "call-tool", "tool": "other.tool", "input": {
            "do": "echo", "value": "Bearer ${reveal:token}",
        }}),
        json!({"do": "steps", "steps": [
            {"do": "secrets", "op": "reveal", "slug": "token"},
            {"do": "call-tool", "tool": "other.tool",
             "raw": format!("{{\"do\": \"echo\", \"value\": \"{escaped}\"}}")},
        ]}),
    ] {
        let reply = world.run(input.clone()).await;
        let violation = &reply.metadata.violations[0];
        assert_eq!(violation.kind.as_str(), "secret", "{input}");
        assert_eq!(violation.subject, "token", "{input}");
        let got = reply.result.unwrap().structured.to_string();
        assert!(got.contains("unauthorised"), "{input}: {got}");
    }
}

//! The records of calls: each way to end has its state, its class, and the decision's source.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolward_adapters::records::Recorder;
use toolward_host::{
    Answer, Answerable, ApprovalRequest, Approver, Host, Request, Resume, Verdict,
};

use crate::fixture::{Fixture, called, recorded};

/// A person who always gives this verdict.
pub(crate) struct Says(pub(crate) Verdict);

impl Approver for Says {
    fn ask<'a>(
        &'a self,
        _: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        let verdict = self.0.clone();
        Box::pin(async move { verdict })
    }
}

/// Returns the records of a call that asks, and of the same call with the answer.
pub(crate) async fn answered(fixture: &Fixture) -> [Value; 2] {
    let host = fixture.host(None::<Says>);
    let recorder = Recorder::new();
    let (tool, input) = ("test.form", json!({ "do": "ask" }));
    let forms = Answerable {
        form: true,
        ..Answerable::default()
    };
    let request = Request::with_value(tool, input.clone()).answerable(forms);
    let mut reply = host.call(request.clone()).await;
    let first = recorded(&host, &recorder, &reply, tool, &input);
    let asked = *reply.asked.take().unwrap();
    let answers = vec![("q".to_owned(), Answer::Accepted(json!({ "ok": true })))];
    let reply = host.call(request.resume(Resume { asked, answers })).await;
    [first, recorded(&host, &recorder, &reply, tool, &input)]
}

fn host(fixture: &Fixture) -> Host {
    fixture.host(None::<Says>)
}

/// Returns the status of the invocation and of the result, the error class, and the recoverability.
fn ending(records: &Value) -> [&str; 4] {
    [
        &records["tool_invocation"]["status"],
        &records["tool_result"]["status"],
        &records["tool_error"]["error_class"],
        &records["tool_error"]["recoverability"],
    ]
    .map(|value| value.as_str().unwrap_or("-"))
}

#[tokio::test]
async fn each_ending_has_its_state() {
    let fixture = Fixture::new();
    let host = host(&fixture);
    for (tool, input, expected) in [
        (
            "test.run",
            json!({ "do": "echo" }),
            ["succeeded", "completed", "-", "-"],
        ),
        (
            "test.run",
            json!({ "do": 7 }),
            [
                "schema_parse_failed",
                "rejected",
                "schema_validation_failed",
                "change_arguments",
            ],
        ),
        (
            "test.run",
            json!({ "do": "trap" }),
            ["failed", "failed", "execution_failed", "none"],
        ),
        (
            "test.run",
            json!({ "do": "error", "name": "partial_failure" }),
            ["failed", "failed", "partial_failure", "none"],
        ),
        (
            "test.asks",
            json!({ "do": "echo" }),
            ["denied", "rejected", "approval_rejected", "none"],
        ),
        (
            "test.missing",
            json!({ "do": "echo" }),
            ["blocked", "rejected", "capability_gap", "change_policy"],
        ),
        (
            "test.denied",
            json!({ "do": "echo" }),
            ["blocked", "rejected", "policy_blocked", "change_policy"],
        ),
        (
            "test.alone",
            json!({ "do": "echo" }),
            ["blocked", "rejected", "dependency_unavailable", "setup"],
        ),
        (
            "test.none",
            json!({}),
            ["failed", "rejected", "unknown_tool", "change_arguments"],
        ),
    ] {
        let records = called(&host, tool, input.clone()).await;
        assert_eq!(ending(&records), expected, "{tool} {input}: {records:#}");
        let is_error = expected.first() != Some(&"succeeded");
        assert_eq!(records["tool_result"]["is_error"], json!(is_error));
    }
}

#[tokio::test]
async fn the_states_of_a_call_lead_to_the_one_in_which_it_ended() {
    let fixture = Fixture::new();
    let host = host(&fixture);
    let ready = ["planned", "selected", "arguments_ready"];
    let unheard_of = ["planned", "failed"];
    for (tool, input, rest) in [
        (
            "test.run",
            json!({ "do": "echo" }),
            &["queued", "running", "succeeded"][..],
        ),
        (
            "test.run",
            json!({ "do": "trap" }),
            &["queued", "running", "failed"],
        ),
        // No person can be asked.
        ("test.asks", json!({ "do": "echo" }), &["denied"]),
        (
            "test.missing",
            json!({ "do": "echo" }),
            &["denied", "blocked"],
        ),
    ] {
        let records = called(&host, tool, input).await;
        let expected = [&ready[..], rest].concat();
        assert_eq!(states(&records), expected, "{records:#}");
        let invocation = &records["tool_invocation"];
        assert_eq!(invocation["status"], *expected.last().unwrap());
        for event in records["tool_event"].as_array().unwrap() {
            assert_eq!(event["invocation_id"], invocation["invocation_id"]);
        }
    }
    let asking = fixture.host(Some(Says(Verdict::Denied(None))));
    let records = called(&asking, "test.asks", json!({ "do": "echo" })).await;
    let expected = [&ready[..], &["awaiting_approval", "denied"]].concat();
    assert_eq!(states(&records), expected);
    let records = called(&host, "test.run", json!({ "do": 7 })).await;
    assert_eq!(
        states(&records),
        ["planned", "selected", "schema_parse_failed"]
    );
    let records = called(&host, "test.none", json!({})).await;
    assert_eq!(states(&records), unheard_of);
}

fn states(records: &Value) -> Vec<&str> {
    let states = records["tool_invocation"]["status_transitions"]
        .as_array()
        .unwrap();
    let states = states.iter().map(|one| one["status"].as_str().unwrap());
    states.collect()
}

#[tokio::test]
async fn a_deadline_that_passes_is_its_own_state() {
    let fixture = Fixture::new();
    let host = host(&fixture);
    let input = json!({ "do": "sleep", "n": 600_000 });
    let request = Request::with_value("test.run", input.clone());
    let recorder = Recorder::new();
    let reply = host.call(request.timeout(Duration::from_millis(200))).await;
    let records = recorded(&host, &recorder, &reply, "test.run", &input);
    assert_eq!(ending(&records), ["timed_out", "failed", "timeout", "none"]);
    let took = &records["tool_invocation"]["telemetry_refs"][0];
    assert!(took["duration_ms"].as_f64().unwrap() >= 200.0, "{took}");
}

#[tokio::test]
async fn a_call_that_asks_is_partial_and_keeps_its_id_with_the_answer() {
    let [asked, answered] = answered(&Fixture::new()).await;
    assert_eq!(
        ending(&asked),
        ["needs_input", "partial", "setup_required", "retry"]
    );
    assert_eq!(ending(&answered), ["succeeded", "completed", "-", "-"]);
    for field in ["invocation_id", "created_at"] {
        let [first, second] = [&asked, &answered].map(|one| &one["tool_invocation"][field]);
        assert!(first.is_string());
        assert_eq!(first, second, "{field}");
    }
}

#[tokio::test]
async fn a_decision_says_who_decided() {
    let fixture = Fixture::new();
    let decided = |verdict: Option<Verdict>, tool: &'static str| {
        let fixture = &fixture;
        async move {
            let recorder = Recorder::new();
            let approver = verdict.map(|verdict| recorder.approver(Says(verdict)));
            let host = fixture.host(approver);
            let request = Request::with_value(tool, json!({ "do": "echo" }));
            let request = request.observer(Arc::new(recorder.clone()));
            let reply = host.call(request).await;
            let records = recorded(&host, &recorder, &reply, tool, &json!({}));
            let decision = &records["tool_permission_decision"];
            ["behavior", "mode", "source"]
                .map(|field| decision[field].as_str().unwrap_or("-").to_owned())
        }
    };
    for (verdict, tool, expected) in [
        (None, "test.run", ["allow", "policy", "policy"]),
        (None, "test.missing", ["deny", "policy", "policy"]),
        (None, "test.denied", ["deny", "policy", "policy"]),
        (
            Some(Verdict::Approved),
            "test.asks",
            ["allow", "approval", "person"],
        ),
        (
            Some(Verdict::Denied(None)),
            "test.asks",
            ["deny", "approval", "person"],
        ),
        (
            Some(Verdict::Unavailable),
            "test.asks",
            ["deny", "approval", "nobody"],
        ),
        (
            Some(Verdict::Unanswered),
            "test.asks",
            ["deny", "approval", "nobody"],
        ),
        (
            Some(Verdict::Withdrawn),
            "test.asks",
            ["deny", "approval", "person"],
        ),
        (
            Some(Verdict::Answered {
                approved: false,
                remembered: None,
            }),
            "test.asks",
            ["deny", "approval", "person"],
        ),
        (
            Some(Verdict::Later),
            "test.asks",
            ["ask", "approval", "person"],
        ),
        // No decision was made about a missing tool.
        (None, "test.none", ["-", "-", "-"]),
        (None, "test.alone", ["-", "-", "-"]),
    ] {
        let shown = format!("{tool} {verdict:?}");
        assert_eq!(decided(verdict, tool).await, expected, "{shown}");
    }
}

#[tokio::test]
async fn progress_is_numbered_and_of_a_hundred() {
    let fixture = Fixture::new();
    let records = called(
        &host(&fixture),
        "test.run",
        json!({ "do": "progress", "n": 4 }),
    )
    .await;
    let reports = records["tool_progress"].as_array().unwrap();
    let seen: Vec<(u64, f64)> = reports
        .iter()
        .map(|one| {
            (
                one["sequence"].as_u64().unwrap(),
                one["percent"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(seen, [(1, 25.0), (2, 50.0), (3, 75.0), (4, 100.0)]);
    let invocation = &records["tool_invocation"]["invocation_id"];
    assert!(
        reports
            .iter()
            .all(|one| one["invocation_id"] == *invocation)
    );
}

#[tokio::test]
async fn the_input_is_seen_without_what_is_sensitive() {
    let fixture = Fixture::new();
    let input = json!({ "do": "echo", "password": "hunter2" });
    let records = called(&host(&fixture), "test.run", input).await;
    let seen = &records["tool_invocation"]["observable_input"];
    assert_eq!(seen, &json!({ "do": "echo", "password": "[hidden]" }));
    // Without a contract, the sensitive parts are unknown.
    let records = called(
        &host(&fixture),
        "test.none",
        json!({ "password": "hunter2" }),
    )
    .await;
    assert!(!records.to_string().contains("hunter2"), "{records}");
}

#[tokio::test]
async fn a_null_is_a_result_and_a_model_sees_no_internal_field() {
    let fixture = Fixture::new();
    let host = host(&fixture);
    let input = json!({ "do": "echo", "value": "inside" });
    let records = called(&host, "test.run", input).await;
    let result = &records["tool_result"];
    assert_eq!(
        result["structured_content"],
        json!({ "did": "echo", "value": "inside" })
    );
    let text = result["model_facing_content"][0]["text"].as_str().unwrap();
    assert_eq!(text, r#"{"did":"echo"}"#);
    // A failure has no output at all, rather than a null output.
    let records = called(&host, "test.run", json!({ "do": "trap" })).await;
    let result = records["tool_result"].as_object().unwrap();
    assert!(!result.contains_key("structured_content"), "{result:?}");
    let text = result["model_facing_content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("upstream_error: "), "{text}");
}

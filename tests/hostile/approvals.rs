//! An approval covers the tools that the question named, and no others.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolward_host::{ApprovalRequest, Approver, Host, Verdict};

use crate::world::{Bundle, Guest, value};

/// Approves the first question and denies all others.
#[derive(Clone, Default)]
struct Once {
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
}

impl Approver for Once {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(request.clone());
        let verdict = match asked.len() {
            1 => Verdict::Approved,
            _ => Verdict::Denied(None),
        };
        Box::pin(std::future::ready(verdict))
    }
}

/// `a.caller` may call `r.reader` and the writing tools `w00.writer` to `w21.writer`.
fn many_writers(notes: &std::path::Path, person: &Once) -> (Bundle, Host) {
    let writers: Vec<String> = (0..22).map(|n| format!("w{n:02}.writer")).collect();
    let called = writers.join(", ");
    let mut bundle = Bundle::of(
        "a.caller",
        Guest::Plain,
        &format!("requires:\n  tools: [r.reader, {called}]\n"),
        "",
    )
    .with("r.reader", Guest::Plain, "", "");
    for id in &writers {
        let writes = "mutates: [\"workspace:/notes\"]\napproval: on-mutate\n";
        bundle = bundle.with(id, Guest::Plain, writes, "");
    }
    let given: Vec<String> = (writers.iter())
        .map(|id| format!("\"tool:{id}\""))
        .collect();
    let host = bundle
        .builder(&format!(
            "[[workspace]]\npath = \"/notes\"\ndirectory = {:?}\n\
             [[grant]]\npublisher = \"PUBLISHER\"\nmutates = [\"workspace:/notes\"]\n\
             requires = [\"tool:r.reader\", {}]\n",
            notes.display().to_string(),
            given.join(", ")
        ))
        .approver(person.clone())
        .build()
        .unwrap();
    (bundle, host)
}

fn write_by(tool: &str) -> Value {
    json!({"do": "call-tool", "tool": tool, "input": {
        "do": "std-fs", "op": "write", "path": "/notes/written", "text": "x",
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_the_question_had_no_room_for_is_asked_about_itself() {
    let notes = tempfile::tempdir().unwrap();
    let person = Once::default();
    let (_bundle, host) = many_writers(notes.path(), &person);
    let got = value(&host, "a.caller", write_by("w21.writer")).await;
    assert_eq!(got["err"], json!("toolward:approval_denied"), "{got}");
    assert!(!notes.path().join("written").exists());
    let asked = person.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    let chain = &asked[0].chain;
    assert_eq!(chain.len(), 20);
    for tool in chain {
        assert_eq!(tool.effects, ["changes workspace:/notes"], "{tool:?}");
    }
    let apart = ["w20.writer@1", "w21.writer@1", "r.reader@1"];
    assert_eq!(asked[0].apart, apart);
    assert_eq!(asked[1].tool, "w21.writer@1.0.0");
    assert_eq!(asked[1].called_by, ["a.caller@1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_the_question_named_is_not_asked_about_again() {
    let notes = tempfile::tempdir().unwrap();
    let person = Once::default();
    let (_bundle, host) = many_writers(notes.path(), &person);
    let got = value(&host, "a.caller", write_by("w19.writer")).await;
    assert!(got["ok"].is_object(), "{got}");
    assert!(notes.path().join("written").exists());
    assert_eq!(person.asked.lock().unwrap().len(), 1);
}

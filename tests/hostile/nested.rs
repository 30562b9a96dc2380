//! Tools that call tools: cycles, floods, deadlines, slots, and laundering.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolward_host::{ApprovalRequest, Approver, Host, Limit, Limits, Verdict};

use crate::world::{Bundle, Guest, call, error, value};

/// `a.tool` may call `b.tool` and `b.tool` may call `a.tool`.
fn pair(limits: Limits) -> (Bundle, Host) {
    let bundle = Bundle::of(
        "a.tool",
        Guest::Plain,
        "timeout_ms: 60000\nrequires:\n  tools: [b.tool, a.tool]\n",
        "",
    )
    .with(
        "b.tool",
        Guest::Plain,
        "timeout_ms: 60000\nrequires:\n  tools: [a.tool, b.tool]\n",
        "",
    )
    .with("c.tool", Guest::Plain, "", "");
    let host = bundle
        .builder(
            "[[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"tool:a.tool\", \"tool:b.tool\"]\n",
        )
        .limits(limits)
        .build()
        .unwrap();
    (bundle, host)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_tool_answers_and_another_does_not() {
    let (_bundle, host) = pair(Limits::default());
    let inner = json!({"do": "call-tool", "tool": "b.tool", "input": {"do": "echo", "value": 7}});
    let got = value(&host, "a.tool", inner).await;
    assert_eq!(got["ok"]["value"], json!(7), "{got}");

    let reply = call(
        &host,
        "a.tool",
        json!({"do": "call-tool", "tool": "c.tool", "input": {"do": "echo", "value": 7}}),
    )
    .await;
    assert_eq!(reply.metadata.violations_total, 1);
    let got = reply.result.unwrap().structured;
    assert_eq!(got["value"]["err"], json!("unauthorised"), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cycle_ends_at_the_depth_limit() {
    let (_bundle, host) = pair(Limits::default());
    let got = value(
        &host,
        "a.tool",
        json!({"do": "nest", "chain": ["b.tool", "a.tool"]}),
    )
    .await;
    let mut depth = 0;
    let mut at = &got;
    while at["ok"].is_object() {
        at = &at["ok"]["value"];
        depth += 1;
    }
    assert_eq!(depth, 8, "{got}");
    assert_eq!(at["err"], json!("rate_limited"), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_calls_ends_at_the_roots_limit_however_it_fans_out() {
    let (_bundle, host) = pair(Limits::default());
    let leaf = json!({"do": "call-tool", "tool": "a.tool", "input": {"do": "echo", "value": 1}, "times": 30});
    let got = value(
        &host,
        "a.tool",
        json!({"do": "call-tool", "tool": "b.tool", "input": leaf, "times": 30}),
    )
    .await;
    // At most 64 calls, at all levels together. Further calls get an error.
    let text = got.to_string();
    assert!(text.contains("rate_limited"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_called_tool_does_not_outlive_its_callers_deadline() {
    let (_bundle, host) = pair(Limits {
        timeout: Limit::fixed(Duration::from_millis(500)),
        // Only the clock must end it, however fast the machine is.
        fuel: Limit::fixed(u64::MAX / 2),
        ..Limits::default()
    });
    let _ = host.prepare().await;
    for inner in [json!({"do": "sleep", "n": 600_000}), json!({"do": "loop"})] {
        let started = Instant::now();
        let error = error(
            &host,
            "a.tool",
            json!({"do": "call-tool", "tool": "b.tool", "input": inner}),
        )
        .await;
        assert_eq!(error.code.as_str(), "timeout", "{error:?}");
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn called_tools_spend_their_callers_fuel() {
    let (_bundle, host) = pair(Limits {
        fuel: Limit::fixed(40_000_000),
        ..Limits::default()
    });
    let input = json!({"do": "call-tool", "tool": "b.tool", "input": {"do": "echo", "value": 1}});
    let one = call(&host, "a.tool", input.clone()).await;
    let alone = call(&host, "b.tool", json!({"do": "echo", "value": 1})).await;
    assert!(one.metadata.fuel > alone.metadata.fuel);

    let error = error(
        &host,
        "a.tool",
        json!({"do": "call-tool", "tool": "b.tool", "input": {"do": "loop"}, "times": 5}),
    )
    .await;
    assert_eq!(error.code.as_str(), "toolward:fuel_exhausted", "{error:?}");
}

/// After a long call the host makes a guest yield by setting its fuel. If the host did that while
/// the guest grows its memory for the answer, the guest would get its spent fuel back.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_grows_its_memory_after_a_long_call_gets_no_fuel_back() {
    let (_bundle, host) = pair(Limits {
        nested_depth: 32,
        ..Limits::default()
    });
    let spent = |steps: Value| {
        let host = host.clone();
        async move {
            let reply = call(&host, "a.tool", json!({"do": "steps", "steps": steps})).await;
            reply.result.unwrap();
            reply.metadata.fuel
        }
    };
    let mut before = 0;
    for depth in [1, 2, 4, 8, 12, 16, 20, 24] {
        let chain = vec!["a.tool"; depth];
        let nest = json!({"do": "nest", "chain": chain, "last": {"do": "echo", "value": 1}});
        let fuel = spent(json!([nest])).await;
        assert!(fuel > before, "{fuel} at {depth} levels, {before} at fewer");
        // The guest's first call to the host starts the time of its turn.
        let more = spent(json!([{"do": "progress", "n": 1}, nest])).await;
        assert!(more > fuel, "{more} at {depth} levels, {fuel} for less");
        before = fuel;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_caller_gives_its_slot_so_that_one_slot_is_enough() {
    let (_bundle, host) = pair(Limits {
        concurrency: 1,
        concurrency_per_tool: 1,
        concurrency_per_publisher: 1,
        concurrency_per_principal: 1,
        ..Limits::default()
    });
    let nest = json!({
        "do": "call-tool", "tool": "b.tool", "input": {"do": "echo", "value": "deep"},
    });
    let got = value(&host, "a.tool", nest).await;
    assert_eq!(got["ok"]["value"], json!("deep"), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_wait_for_each_others_slots_all_end() {
    let (_bundle, host) = pair(Limits {
        concurrency: 2,
        ..Limits::default()
    });
    let _ = host.prepare().await;
    let calls = (0..16).map(|_| {
        let host = host.clone();
        tokio::spawn(async move {
            call(
                &host,
                "a.tool",
                json!({"do": "nest", "chain": ["b.tool", "a.tool", "b.tool"], "last": {"do": "echo", "value": 1}}),
            )
            .await
        })
    });
    let started = Instant::now();
    for task in calls.collect::<Vec<_>>() {
        // No call hangs or is rejected.
        task.await.unwrap().result.unwrap();
    }
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(
        value(&host, "c.tool", json!({"do": "echo", "value": 1})).await,
        json!(1),
        "the slots are back"
    );
}

/// Gives a fixed answer, and stores the questions.
#[derive(Clone)]
struct Person {
    says: Verdict,
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
}

impl Person {
    fn who_says(says: Verdict) -> Self {
        Self {
            says,
            asked: Arc::default(),
        }
    }
}

impl Approver for Person {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> std::pin::Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        self.asked.lock().unwrap().push(request.clone());
        Box::pin(std::future::ready(self.says.clone()))
    }
}

/// `reader.tool` declares no change, but calls `writer.tool`, which declares one.
fn laundering(notes: &std::path::Path, person: Person) -> (Bundle, Host) {
    let bundle = Bundle::of(
        "reader.tool",
        Guest::Plain,
        "requires:\n  tools: [writer.tool]\n",
        "",
    )
    .with(
        "writer.tool",
        Guest::Plain,
        "mutates: [\"workspace:/notes\"]\napproval: on-mutate\n",
        "",
    );
    let policy = format!(
        "[[workspace]]\npath = \"/notes\"\ndirectory = {:?}\n\
         [[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"tool:writer.tool\"]\n\
         mutates = [\"workspace:/notes\"]\n",
        notes.display().to_string()
    );
    let host = bundle.builder(&policy).approver(person).build().unwrap();
    (bundle, host)
}

fn write_through() -> Value {
    json!({"do": "call-tool", "tool": "writer.tool", "input": {
        "do": "std-fs", "op": "write", "path": "/notes/laundered", "text": "x",
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_tool_that_calls_a_writing_one_is_asked_about_as_one_that_writes() {
    let notes = tempfile::tempdir().unwrap();
    let person = Person::who_says(Verdict::Denied(None));
    let (_bundle, host) = laundering(notes.path(), person.clone());
    let error = error(&host, "reader.tool", write_through()).await;
    assert_eq!(error.code.as_str(), "toolward:approval_denied", "{error:?}");
    assert!(!notes.path().join("laundered").exists());
    let asked = person.asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    let chain: Vec<&str> = (asked[0].chain.iter())
        .map(|one| one.tool.as_str())
        .collect();
    assert_eq!(chain, ["writer.tool@1"], "{:?}", asked[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_that_named_the_chain_covers_it_and_is_asked_for_once() {
    let notes = tempfile::tempdir().unwrap();
    let person = Person::who_says(Verdict::Approved);
    let (_bundle, host) = laundering(notes.path(), person.clone());
    let got = value(&host, "reader.tool", write_through()).await;
    assert!(got["ok"].is_object(), "{got}");
    assert!(notes.path().join("laundered").exists());
    assert_eq!(person.asked.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_person_sees_exactly_the_input_that_the_tool_gets() {
    let notes = tempfile::tempdir().unwrap();
    let person = Person::who_says(Verdict::Approved);
    let (_bundle, host) = laundering(notes.path(), person.clone());
    let input = json!({"do": "echo", "value": {"b": 1, "a": [1, 2]}});
    let got = value(&host, "writer.tool", input.clone()).await;
    assert_eq!(got, input["value"]);
    assert_eq!(person.asked.lock().unwrap()[0].input, input);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_to_ask_means_no() {
    let notes = tempfile::tempdir().unwrap();
    let person = Person::who_says(Verdict::Unavailable);
    let (_bundle, host) = laundering(notes.path(), person);
    let input = json!({"do": "std-fs", "op": "write", "path": "/notes/x", "text": "x"});
    let error = error(&host, "writer.tool", input).await;
    assert_eq!(error.code.as_str(), "toolward:approval_denied", "{error:?}");
    assert!(!notes.path().join("x").exists());
}

/// Two tools may write to the workspace. The driver of the first has a low limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_called_tool_writes_no_more_than_its_root_may() {
    let notes = tempfile::tempdir().unwrap();
    let writes = "mutates: [\"workspace:/notes\"]\napproval: on-mutate\n";
    let bundle = Bundle::of(
        "modest.tool",
        Guest::Plain,
        &format!("requires:\n  tools: [writer.tool]\n{writes}"),
        "limits:\n  workspace_bytes: 1000\n",
    )
    .with("writer.tool", Guest::Plain, writes, "");
    let host = bundle.host(&format!(
        "[[workspace]]\npath = \"/notes\"\ndirectory = {:?}\n\
         [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\n\
         requires = [\"tool:writer.tool\"]\nmutates = [\"workspace:/notes\"]\n",
        notes.path().display().to_string()
    ));
    let write = |name: &str, bytes: usize| {
        json!({
            "do": "std-fs", "op": "write", "path": format!("/notes/{name}"),
            "text": "x".repeat(bytes),
        })
    };
    let through = |input| json!({"do": "call-tool", "tool": "writer.tool", "input": input});
    let got = value(&host, "modest.tool", through(write("small", 900))).await;
    assert!(got["ok"].is_object(), "{got}");
    let got = value(&host, "modest.tool", through(write("large", 5000))).await;
    assert_eq!(got["err"], json!("toolward:limit_exceeded"), "{got}");
    let large = std::fs::metadata(notes.path().join("large"));
    assert!(large.is_ok_and(|large| large.len() <= 1000));
    let got = value(&host, "writer.tool", write("alone", 5000)).await;
    assert!(got.is_object(), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_hides_no_writing_tool_from_whoever_approves() {
    let notes = tempfile::tempdir().unwrap();
    let person = Person::who_says(Verdict::Approved);
    let bundle = Bundle::of(
        "reader.tool",
        Guest::Plain,
        "requires:\n  tools: [harmless.alias]\n",
        "",
    )
    .with(
        "writer.tool",
        Guest::Plain,
        "mutates: [\"workspace:/notes\"]\napproval: on-mutate\nmetadata:\n  toolward:\n    \
         aliases: [harmless.alias]\n",
        "",
    );
    let policy = format!(
        "[[workspace]]\npath = \"/notes\"\ndirectory = {:?}\n\
         [[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"tool:harmless.alias\"]\n\
         mutates = [\"workspace:/notes\"]\n",
        notes.path().display().to_string()
    );
    let host = bundle
        .builder(&policy)
        .approver(person.clone())
        .build()
        .unwrap();
    let mut input = write_through();
    input["tool"] = json!("harmless.alias");
    let got = value(&host, "reader.tool", input.clone()).await;
    assert_eq!(got["err"], json!("not_found"), "{got}");
    assert!(!notes.path().join("laundered").exists());
    assert!(person.asked.lock().unwrap().is_empty());

    // An outside caller may use the alias. The person is asked about the tool itself.
    value(&host, "harmless.alias", input["input"].clone()).await;
    assert_eq!(person.asked.lock().unwrap()[0].tool, "writer.tool@1.0.0");
}

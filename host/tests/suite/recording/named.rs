//! Calls with ids of their callers: each id runs once, and its repetitions get the first reply.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolward_host::{
    Answer, Answerable, ApprovalRequest, Approver, ErrorClass, ErrorCode, Host, Reply, Request,
    Resume, SharedState, Verdict,
};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::Event;
use toolward_policy::Policy;

use super::{World, kinds};
use crate::fixture::{Extra, Fixture};

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// An input whose output differs between runs.
fn clock() -> Value {
    json!({"do": "clock"})
}

async fn named(host: &Host, tool: &str, input: Value, id: &str) -> Reply {
    let request = Request::with_value(tool, input).principal("ada");
    host.call(request.named(id)).await
}

fn value(reply: &Reply) -> &Value {
    match &reply.result {
        Ok(output) => &output.structured["value"],
        Err(error) => panic!("{error:#?}"),
    }
}

fn code(reply: &Reply) -> &str {
    match &reply.result {
        Ok(output) => panic!("an output: {}", output.structured),
        Err(error) => error.code.as_str(),
    }
}

#[tokio::test]
async fn a_repeated_id_gets_the_reply_of_the_first_call_and_runs_nothing() {
    let world = World::new(Keep::All);
    let recorded = world.host();
    let alone = world.builder().build().unwrap();
    for (host, tool) in [
        (&recorded, "hostile.changes"),
        (&recorded, "hostile.reads"),
        (&alone, "hostile.changes"),
        (&alone, "hostile.reads"),
    ] {
        let id = new_id();
        let first = named(host, tool, clock(), &id).await;
        let again = named(host, tool, clock(), &id).await;
        assert_eq!(value(&first), value(&again));
        let meta = &again.metadata;
        assert_eq!(meta.repeats.as_ref(), Some(&first.metadata.invocation));
        assert_eq!(
            again.envelope()["meta"]["repeats"],
            first.metadata.invocation
        );
        assert!(first.envelope()["meta"].get("repeats").is_none());
        assert_ne!(meta.invocation, first.metadata.invocation);
        assert!(meta.invocation != id && first.metadata.invocation != id);
        assert_eq!((meta.attempts, meta.fuel), (0, 0));
        assert_eq!(meta.driver, first.metadata.driver);
        // Another id is another call.
        assert_ne!(
            value(&first),
            value(&named(host, tool, clock(), &new_id()).await)
        );
    }
}

#[tokio::test]
async fn a_failure_is_repeated_like_a_success() {
    let world = World::new(Keep::Asked);
    let (host, id) = (world.host(), new_id());
    let input = json!({"do": "trap"});
    let first = named(&host, "hostile.changes", input.clone(), &id).await;
    let again = named(&host, "hostile.changes", input, &id).await;
    assert_eq!(first.result, again.result);
    assert_eq!(code(&again), "upstream_error");
    assert_eq!(again.metadata.repeats, Some(first.metadata.invocation));
}

#[tokio::test]
async fn a_repetition_has_a_row_that_names_the_call_whose_reply_it_got() {
    let world = World::new(Keep::All);
    let (host, id) = (world.host(), new_id());
    let first = named(&host, "hostile.changes", clock(), &id).await;
    let again = named(&host, "hostile.changes", clock(), &id).await;
    let events = world.events();
    let [Event::Started(_), Event::Ended(_), Event::Ended(row)] = &events[..] else {
        panic!("{events:#?}");
    };
    assert_eq!(row.invocation.to_string(), again.metadata.invocation);
    let repeats = row.outcome.repeats.unwrap().to_string();
    assert_eq!(repeats, first.metadata.invocation);
    assert!(row.call.is_some() && row.outcome.attempts.is_empty());
    assert!(row.outcome.output.is_none(), "it is with the first call");
    assert!(world.reader().verify(&[]).unwrap().holds());
}

#[tokio::test]
async fn another_input_context_or_answer_of_an_id_is_refused() {
    let world = World::new(Keep::Asked);
    let alone = world.builder().build().unwrap();
    for host in [&world.host(), &alone] {
        let id = new_id();
        named(host, "hostile.changes", json!({"do": "echo", "n": 1}), &id).await;
        let other = named(host, "hostile.changes", json!({"do": "echo", "n": 2}), &id).await;
        assert_eq!(code(&other), "input_invalid");
        assert_eq!(other.metadata.attempts, 0);
        // The order of members does not matter.
        let same = named(host, "hostile.changes", json!({"n": 1, "do": "echo"}), &id).await;
        assert!(same.metadata.repeats.is_some());
    }
}

#[tokio::test]
async fn an_id_is_known_to_its_principal_tool_and_session_only() {
    let world = World::new(Keep::Asked);
    let (host, id) = (world.host(), new_id());
    let request =
        |tool: &str, principal: &str| Request::with_value(tool, clock()).principal(principal);
    let all = [
        request("hostile.changes", "ada").named(&id),
        request("hostile.changes", "eve").named(&id),
        request("hostile.run", "ada").named(&id),
        request("hostile.changes", "ada").named_within(&id, "one"),
        request("hostile.changes", "ada").named_within(&id, "two"),
    ];
    let mut values = Vec::new();
    for request in &all {
        let reply = host.call(request.clone()).await;
        assert!(reply.metadata.repeats.is_none());
        assert!(!values.contains(value(&reply)));
        values.push(value(&reply).clone());
    }
    for (request, value) in all.into_iter().zip(values) {
        assert_eq!(*self::value(&host.call(request).await), value);
    }
}

#[tokio::test]
async fn after_a_restart_what_changes_something_is_not_run_again() {
    let world = World::new(Keep::Asked);
    let (id, reads) = (new_id(), new_id());
    let host = world.host();
    named(&host, "hostile.changes", clock(), &id).await;
    let read = named(&host, "hostile.reads", clock(), &reads).await;
    drop(host);
    let before = world.events().len();

    // A new host, like another process, has only the ledger.
    let host = world.host();
    let again = named(&host, "hostile.changes", clock(), &id).await;
    let error = again.result.clone().unwrap_err();
    assert_eq!(error.code, ErrorCode::ALREADY_RUN);
    assert_eq!(error.class, ErrorClass::ExecutionFailed);
    assert!(!error.retryable);
    assert_eq!(again.metadata.attempts, 0);
    let other = named(&host, "hostile.changes", json!({"do": "echo"}), &id).await;
    assert_eq!(code(&other), "input_invalid");
    assert_eq!(kinds(&world.events()[before..]), ["refused", "refused"]);
    // A call that changes nothing runs again.
    let again = named(&host, "hostile.reads", clock(), &reads).await;
    assert_ne!(value(&read), value(&again));
    assert!(again.metadata.repeats.is_none());
}

#[tokio::test]
async fn a_call_that_changes_something_through_other_tools_is_not_run_again() {
    let world = World::new(Keep::Asked);
    let id = new_id();
    let below = json!({"do": "tool", "name": "hostile.changes", "value": {"do": "echo"}});
    let first = named(&world.host(), "hostile.run", below.clone(), &id).await;
    assert!(first.result.is_ok(), "{:?}", first.result);
    let rows = ["started", "started", "ended", "ended"];
    assert_eq!(kinds(&world.events()), rows);
    let again = named(&world.host(), "hostile.run", below, &id).await;
    assert_eq!(code(&again), "toolward:already_run");
    assert_eq!(kinds(&world.events()[rows.len()..]), ["refused"]);
}

#[tokio::test]
async fn of_two_processes_with_one_ledger_one_runs_each_id() {
    let world = World::new(Keep::Asked);
    let hosts = [world.host(), world.host()];
    for _ in 0..20 {
        let id = new_id();
        let [one, two] = &hosts;
        let (one, two) = tokio::join!(
            named(one, "hostile.changes", clock(), &id),
            named(two, "hostile.changes", clock(), &id),
        );
        let (ran, other) = match one.result.is_ok() {
            true => (one, two),
            false => (two, one),
        };
        assert_eq!(ran.metadata.attempts, 1);
        assert_eq!(code(&other), "toolward:already_run");
        assert_eq!(other.metadata.attempts, 0);
    }
    let events = world.events();
    let started = kinds(&events)
        .iter()
        .filter(|kind| **kind == "started")
        .count();
    assert_eq!(started, 20);
}

#[tokio::test]
async fn while_the_first_call_runs_others_wait_for_its_reply() {
    let world = World::new(Keep::Asked);
    let alone = world.builder().build().unwrap();
    for host in [&world.host(), &alone] {
        let id = new_id();
        let steps = json!({"do": "steps", "steps": [{"do": "sleep", "n": 300}, clock()]});
        let call = || named(host, "hostile.changes", steps.clone(), &id);
        let (one, two, three) = tokio::join!(call(), call(), call());
        assert_eq!(value(&one), value(&two));
        assert_eq!(value(&one), value(&three));
        let runs = [&one, &two, &three];
        let runs = runs.iter().filter(|reply| reply.metadata.repeats.is_none());
        assert_eq!(runs.count(), 1);
        // Another input is refused at once.
        let id = new_id();
        let sleeps = json!({"do": "sleep", "n": 60_000});
        tokio::select! {
            biased;
            _ = named(host, "hostile.changes", sleeps.clone(), &id) => panic!("it ended"),
            other = async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                named(host, "hostile.changes", clock(), &id).await
            } => assert_eq!(code(&other), "input_invalid"),
        }
    }
}

#[tokio::test]
async fn a_wait_ends_with_the_time_of_the_call_that_waits() {
    let world = World::new(Keep::Asked);
    let (host, id) = (world.host(), new_id());
    let sleeps = json!({"do": "sleep", "n": 60_000});
    let first = named(&host, "hostile.changes", sleeps.clone(), &id);
    let second = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let request = Request::with_value("hostile.changes", sleeps.clone());
        let request = request.principal("ada").named(&id);
        host.call(request.timeout(Duration::from_millis(100))).await
    };
    tokio::select! {
        _ = first => panic!("it ended"),
        second = second => assert_eq!(code(&second), "timeout"),
    }
}

#[tokio::test]
async fn a_first_call_that_was_dropped_leaves_its_id_used_if_it_changes_something() {
    let world = World::new(Keep::Asked);
    let alone = world.builder().build().unwrap();
    for host in [&world.host(), &alone] {
        for (tool, expected) in [
            ("hostile.changes", Some("toolward:already_run")),
            ("hostile.reads", None),
        ] {
            // Compiles the driver, so that no call below waits for the compiler.
            named(host, tool, clock(), &new_id()).await;
            let id = new_id();
            let slow = json!({"do": "steps", "steps": [{"do": "sleep", "n": 1_000}, clock()]});
            let first = named(host, tool, slow.clone(), &id);
            let waits = async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                named(host, tool, slow.clone(), &id).await
            };
            let dropped = tokio::time::timeout(Duration::from_millis(500), first);
            let (dropped, waited) = tokio::join!(dropped, waits);
            assert!(dropped.is_err());
            for reply in [waited, named(host, tool, slow.clone(), &id).await] {
                match expected {
                    Some(expected) => assert_eq!(code(&reply), expected, "{tool}"),
                    None => assert!(reply.result.is_ok(), "{tool}"),
                }
            }
        }
    }
}

/// Always gives this verdict, and counts how often it is asked.
struct Says(Verdict, AtomicUsize);

impl Approver for Says {
    fn ask<'a>(
        &'a self,
        _: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { self.0.clone() })
    }
}

#[tokio::test]
async fn each_call_of_an_id_is_approved_and_a_denial_leaves_it_unused() {
    let fixture = Fixture::new(Extra {
        tool: "approval: always\n",
        ..Extra::default()
    });
    let (host, id) = (fixture.host(), new_id());
    let says = |verdict| Arc::new(Says(verdict, AtomicUsize::new(0)));
    let (yes, no) = (says(Verdict::Approved), says(Verdict::Denied(None)));
    let call = async |approver: &Arc<Says>| {
        let request = Request::with_value("hostile.run", clock()).named(&id);
        host.call(request.approver(approver.clone())).await
    };
    assert_eq!(code(&call(&no).await), "toolward:approval_denied");
    let first = call(&yes).await;
    assert!(first.metadata.repeats.is_none());
    // A stored reply is not returned if a person denies the call.
    assert_eq!(code(&call(&no).await), "toolward:approval_denied");
    assert_eq!(value(&call(&yes).await), value(&first));
    assert_eq!(yes.1.load(Ordering::Relaxed), 2);
    assert_eq!(no.1.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn what_ends_before_a_driver_starts_leaves_its_id_unused() {
    let world = World::new(Keep::Asked);
    let fails = Arc::new(super::failing::Fails {
        writer: world.writer.clone(),
        started: true.into(),
        ended: false.into(),
    });
    let (host, id) = (world.with_recorder(fails.clone()), new_id());
    let refused = named(&host, "hostile.changes", clock(), &id).await;
    assert_eq!(code(&refused), "toolward:unrecorded");
    fails.started.store(false, Ordering::Relaxed);
    let first = named(&host, "hostile.changes", clock(), &id).await;
    assert!(first.result.is_ok() && first.metadata.repeats.is_none());
}

#[tokio::test]
async fn each_resumption_of_an_id_runs_once() {
    let fixture = Fixture::new(Extra {
        tool: "requires: { user: [form] }\n",
        ..Extra::default()
    });
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = format!(
        "[[grant]]\npublisher = {publisher:?}\npreapproved = true\nrequires = [\"user:form\"]\n"
    );
    let policy = Policy::from_toml(&policy).unwrap();
    let host = fixture.builder().policy(policy).build().unwrap();
    let forms = Answerable {
        form: true,
        ..Answerable::default()
    };
    let id = new_id();
    let request = || {
        let request = Request::with_value("hostile.run", json!({"do": "ask"}));
        request.answerable(forms).named(&id)
    };
    let asked = *host.call(request()).await.asked.unwrap();
    let resume = |answer| Resume {
        asked: asked.clone(),
        answers: vec![("q".to_owned(), answer)],
    };
    let first = host.call(request().resume(resume(Answer::Declined))).await;
    assert_eq!(value(&first)["answers"][0]["declined"], true);
    assert!(first.metadata.repeats.is_none());
    let again = host.call(request().resume(resume(Answer::Declined))).await;
    assert_eq!(
        again.metadata.repeats,
        Some(first.metadata.invocation.clone())
    );
    assert_eq!(value(&again), value(&first));
    let other = host.call(request().resume(resume(Answer::Cancelled))).await;
    assert_eq!(code(&other), "input_invalid");
}

#[tokio::test]
async fn drivers_get_a_key_that_says_nothing_of_the_id_and_stays_with_the_installation() {
    let world = World::new(Keep::Asked);
    let id = new_id();
    let with = |secret: [u8; 32]| {
        let state = SharedState::keyed(secret);
        world.builder().shared_state(&state).build().unwrap()
    };
    // Without a ledger the call runs again, but its service can detect the repetition.
    let key = async |host: Host, principal: &str| {
        let request = Request::with_value("hostile.changes", json!({"do": "flaky"}));
        let reply = host.call(request.principal(principal).named(&id)).await;
        let key = value(&reply)["idempotency_key"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(key != reply.metadata.invocation && key != id);
        key
    };
    let first = key(with([1; 32]), "ada").await;
    assert_eq!(key(with([1; 32]), "ada").await, first);
    assert_ne!(key(with([1; 32]), "eve").await, first);
    assert_ne!(key(with([2; 32]), "ada").await, first);
    assert_ne!(
        key(world.builder().build().unwrap(), "ada").await,
        key(world.builder().build().unwrap(), "ada").await,
        "a random secret for each"
    );
}

#[tokio::test]
async fn an_id_that_is_not_a_uuid_of_version_7_is_refused() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    for id in ["", "1", "0190f5fe-7c00-4a00-8000-000000000000"] {
        let reply = named(&host, "hostile.run", clock(), id).await;
        let error = reply.result.unwrap_err();
        assert_eq!(error.code, ErrorCode::INPUT_INVALID);
        assert!(error.message.contains("UUIDv7"), "{}", error.message);
    }
    let old = "0190f5fe-7c00-7a00-8000-000000000000";
    let reply = named(&host, "hostile.run", clock(), old).await;
    let message = reply.result.unwrap_err().message;
    assert!(message.contains("more than a day old"), "{message}");
    assert_eq!(kinds(&world.events()), ["refused"; 4]);
}

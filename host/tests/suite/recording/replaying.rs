//! Calls are answered from a tape of recorded calls, and no driver runs.

use serde_json::json;
use toolward_host::{CallStage, ErrorCode, Host, HostBuilder, Origin, Reply, Request, Tape};
use toolward_ledger::Selection;
use toolward_ledger::cassette::Cassette;
use toolward_ledger::payload::Keep;
use toolward_ledger::record::Event;

use super::{World, call, kinds};

/// The calls that a world recorded.
fn cassette(world: &World) -> Cassette {
    world.writer.close().unwrap();
    let selection = Selection {
        all: true,
        ..Selection::default()
    };
    let reader = world.reader();
    let export = reader.cassette(&selection).unwrap();
    Cassette::read(&export.bytes, Some(reader.verifier())).unwrap()
}

fn tape(world: &World) -> Tape {
    Tape::new(cassette(world), |_| Some("ada".to_owned()))
}

fn host(world: &World, tape: &Tape) -> Host {
    let builder = world.builder().recorder(world.writer.clone());
    builder.replaying(tape).build().unwrap()
}

fn value(reply: &Reply) -> &serde_json::Value {
    &reply.result.as_ref().unwrap().structured
}

#[tokio::test]
async fn the_same_calls_get_the_recorded_results_in_their_order_each_once() {
    let (before, today) = (World::new(Keep::All), World::new(Keep::All));
    let live = before.host();
    let input = json!({"do": "call"});
    let first = call(&live, "hostile.run", input.clone()).await;
    let changed = call(
        &live,
        "hostile.changes",
        json!({"do": "echo", "value": {"a": 1, "b": 2}}),
    )
    .await;
    let second = call(&live, "hostile.run", input.clone()).await;
    assert_ne!(
        value(&first),
        value(&second),
        "the driver returns the call's id"
    );
    let tape = tape(&before);
    assert_eq!(tape.left(), 3);
    let host = host(&today, &tape);
    for recorded in [&first, &second] {
        let reply = call(&host, "hostile.run", input.clone()).await;
        assert_eq!(value(&reply), value(recorded));
        let replayed = reply.metadata.replayed.as_ref().unwrap();
        assert_eq!(replayed.invocation, recorded.metadata.invocation);
        assert_eq!(
            (reply.metadata.attempts, reply.metadata.fuel),
            (0, 0),
            "no driver ran"
        );
    }
    // Properties in another order are the same input.
    let reply = call(
        &host,
        "hostile.changes",
        json!({"value": {"b": 2, "a": 1}, "do": "echo"}),
    )
    .await;
    assert_eq!(value(&reply), value(&changed));
    let none = call(&host, "hostile.run", input).await.result.unwrap_err();
    assert_eq!(none.code, ErrorCode::NO_ROUTE);
    assert_eq!(none.cause, Some(json!({ "left": 0 })));
    assert_eq!(tape.left(), 0);
    // Each replayed call has a row of the kind `replayed`, even if its tool changes something.
    let events = today.events();
    assert_eq!(
        kinds(&events),
        ["replayed", "replayed", "replayed", "refused"]
    );
    let Event::Replayed(row) = &events[2] else {
        panic!("{events:#?}");
    };
    assert_eq!(row.of.to_string(), changed.metadata.invocation);
    assert_eq!(row.outcome.stage.as_str(), CallStage::Replay.as_str());
    let origin = before.reader().verifier().origin().to_owned();
    assert!(origin.ends_with(&row.ledger.to_string()), "{origin}");
    assert!(today.reader().verify(&[]).unwrap().holds());
}

#[tokio::test]
async fn another_input_is_told_what_was_nearest_and_a_loose_tape_takes_the_next() {
    let (before, today) = (World::new(Keep::All), World::new(Keep::All));
    let live = before.host();
    for n in [1, 2] {
        let reply = call(
            &live,
            "hostile.run",
            json!({"do": "echo", "value": n, "n": n}),
        )
        .await;
        assert!(reply.result.is_ok());
    }
    let cassette = cassette(&before);
    let id = cassette.calls[1].invocation.to_string();
    let tape = Tape::new(cassette.clone(), |_| Some("ada".to_owned()));
    let strict = host(&today, &tape);
    let other = json!({"do": "echo", "value": 3, "n": 2});
    let error = call(&strict, "hostile.run", other.clone())
        .await
        .result
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::NO_ROUTE);
    let cause = error.cause.unwrap();
    assert_eq!(cause["left"], 2);
    assert_eq!(cause["nearest"]["invocation"], id);
    assert_eq!(cause["nearest"]["differs"], json!(["value"]));
    assert_eq!(tape.left(), 2, "what was not given is not used up");
    // Another principal learns nothing about the recorded call.
    let request = Request::with_value("hostile.run", json!({"do": "echo", "value": 1, "n": 1}));
    let error = strict
        .call(request.principal("eve"))
        .await
        .result
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::NO_ROUTE);
    assert_eq!(error.cause, Some(json!({ "left": 0 })));
    let loose = host(
        &today,
        &Tape::new(cassette, |_| Some("ada".to_owned())).loose(),
    );
    let reply = call(&loose, "hostile.run", other.clone()).await;
    assert_eq!(value(&reply)["value"], 1, "the next, not the nearest");
    assert_eq!(reply.metadata.replayed.unwrap().differs, ["value", "n"]);
    // A recorded call with the exact input is used first.
    let exact = call(
        &loose,
        "hostile.run",
        json!({"do": "echo", "value": 2, "n": 2}),
    )
    .await;
    assert!(exact.metadata.replayed.unwrap().differs.is_empty());
    let error = call(&loose, "hostile.run", other).await.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::NO_ROUTE);
}

#[tokio::test]
async fn todays_policy_and_schema_hold_and_approval_is_not_asked_for() {
    let (before, today) = (World::new(Keep::All), World::new(Keep::All));
    let live = before.host();
    let input = json!({"do": "echo", "value": 1});
    for _ in 0..4 {
        let reply = call(&live, "hostile.changes", input.clone()).await;
        assert!(reply.result.is_ok());
    }
    let tape = tape(&before);
    let with = |builder: HostBuilder| builder.replaying(&tape).build().unwrap();
    let publisher = format!("dev:{}", today.fixture.path().display());
    let asks = format!("[[grant]]\npublisher = {publisher:?}\nmutates = [\"database:counters\"]\n");
    let asks = toolward_policy::Policy::from_toml(&asks).unwrap();
    let asking = today.fixture.builder().policy(asks);
    let asked = call(&asking.build().unwrap(), "hostile.changes", input.clone()).await;
    let code = asked.result.unwrap_err().code;
    assert_eq!(
        code,
        ErrorCode::APPROVAL_DENIED,
        "a live call is asked about"
    );
    let asks = format!("[[grant]]\npublisher = {publisher:?}\nmutates = [\"database:counters\"]\n");
    let asks = toolward_policy::Policy::from_toml(&asks).unwrap();
    let replayed = with(today.fixture.builder().policy(asks));
    assert!(
        call(&replayed, "hostile.changes", input.clone())
            .await
            .result
            .is_ok()
    );
    let denied = with(today.fixture.builder());
    let denied = call(&denied, "hostile.changes", input.clone()).await;
    assert_eq!(denied.result.unwrap_err().code, ErrorCode::UNAUTHORISED);
    assert!(denied.metadata.replayed.is_none());
    assert_eq!(tape.left(), 3, "what is denied uses nothing up");
    today.fixture.write(
        "tools/hostile.changes/TOOL.md",
        "---\nname: Hostile\nid: hostile.changes\ndescription: Does what it is told.\nversion: 1.0.0\n\
         inputs:\n  type: object\noutputs:\n  type: object\n  required: [more]\n\
         mutates: [\"database:counters\"]\n---\n",
    );
    let narrower = with(today.builder());
    let error = call(&narrower, "hostile.changes", input)
        .await
        .result
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::UPSTREAM_ERROR);
}

#[tokio::test]
async fn failures_come_back_with_code_and_message_and_sensitive_inputs_match_as_hidden() {
    const SENSITIVE: &str =
        "inputs:\n  type: object\n  properties:\n    token: { type: string, x-sensitive: true }\n";
    let before = World::with(Keep::All, SENSITIVE);
    let today = World::with(Keep::All, SENSITIVE);
    let live = before.host();
    let failing = json!({"do": "error", "name": "hostile:broken", "value": {"message": "no luck"}});
    let failed = call(&live, "hostile.run", failing.clone())
        .await
        .result
        .unwrap_err();
    let input = |token: &str| json!({"do": "count", "token": token});
    let recorded = call(&live, "hostile.run", input("one")).await;
    assert!(recorded.result.is_ok(), "{recorded:?}");
    let host = host(&today, &tape(&before));
    let error = call(&host, "hostile.run", failing)
        .await
        .result
        .unwrap_err();
    assert_eq!((error.code, error.message), (failed.code, failed.message));
    assert_eq!((error.class, error.origin), (failed.class, Origin::Driver));
    let reply = call(&host, "hostile.run", input("two")).await;
    assert_eq!(value(&reply), value(&recorded));
}

//! One row for each end of a call, with its facts and its costs.

use serde_json::json;
use toolward_host::{ErrorCode, Request};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::Event;

use super::{World, call, give_up, kinds};

#[tokio::test]
async fn a_call_that_changes_nothing_has_one_row_with_all_that_it_was() {
    let world = World::new(Keep::Asked);
    let host = world.builder();
    let host = host.policy_digest([9; 32]).recorder(world.writer.clone());
    let host = host.build().unwrap();
    let reply = call(&host, "hostile.run", json!({"do": "echo"})).await;
    assert!(reply.result.is_ok());
    assert_eq!(reply.metadata.recorded, None);
    let events = world.events();
    let [Event::Ended(row)] = &events[..] else {
        panic!("{events:#?}");
    };
    assert_eq!(row.invocation.to_string(), reply.metadata.invocation);
    let (call, outcome) = (row.call.as_ref().unwrap(), &row.outcome);
    let (tool, driver) = (call.tool.as_ref().unwrap(), call.driver.as_ref().unwrap());
    assert_eq!(tool.id.as_str(), "hostile.run@1.0.0");
    assert_eq!(driver.id.as_str(), "hostile");
    for (publisher, bundle) in [
        (&tool.publisher, tool.bundle),
        (&driver.publisher, driver.bundle),
    ] {
        assert_eq!(publisher.as_str(), "dev_unsigned");
        assert_eq!(Some(&*bundle.to_string()), reply.metadata.bundle.as_deref());
    }
    assert_eq!(call.policy.unwrap().0, [9; 32]);
    assert_eq!(call.rules.len(), 1);
    assert_eq!(call.rules[0].as_str(), "grant:1");
    assert!(call.surface.is_some() && call.person.is_some());
    assert!(call.mutates.is_empty() && call.parent.is_none() && call.root.is_none());
    // Only the sizes are recorded, since no person was asked.
    let input = call.input.as_ref().unwrap();
    assert_eq!((input.commitment, input.size.get()), (None, 13));
    assert!(outcome.output.as_ref().unwrap().commitment.is_none());
    assert_eq!(outcome.attempts.len(), 1);
    assert_eq!(outcome.attempts[0].driver.as_str(), "hostile");
    assert!(outcome.attempts[0].code.is_none() && outcome.attempts[0].us.get() > 0);
    assert!(outcome.code.is_none() && outcome.class.is_none() && outcome.detail.is_none());
    assert_eq!(outcome.fuel.get(), reply.metadata.fuel);
    assert_eq!(outcome.memory.get(), reply.metadata.peak_memory);
    assert_eq!(outcome.stage.as_str(), "run");
    assert!(outcome.us >= outcome.attempts[0].us);
    assert!(world.reader().verify(&[]).unwrap().holds());
}

#[tokio::test]
async fn a_call_that_a_tool_makes_names_its_parent_and_the_first_of_the_chain() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    let below = json!({"do": "tool", "name": "hostile.changes", "value": {"do": "echo"}});
    let reply = call(&host, "hostile.run", below).await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
    let events = world.events();
    let [
        Event::Started(started),
        Event::Ended(below),
        Event::Ended(outer),
    ] = &events[..]
    else {
        panic!("{events:#?}");
    };
    assert_eq!(started.invocation, below.invocation);
    assert!(below.call.is_none());
    assert_eq!(started.call.parent, Some(outer.invocation));
    assert_eq!(started.call.root, Some(outer.invocation));
    assert_eq!(started.call.mutates[0].as_str(), "database:counters");
    assert_eq!(outer.invocation.to_string(), reply.metadata.invocation);
}

#[tokio::test]
async fn refusals_have_their_code_class_and_stage() {
    let world = World::new(Keep::All);
    let host = world.host();
    for (tool, input, code, stage) in [
        ("hostile.unknown", json!({}), "not_found", "resolve"),
        (
            "hostile.run",
            json!("no object"),
            "input_invalid",
            "validate",
        ),
        ("hostile.closed", json!({}), "unauthorised", "authorise"),
    ] {
        let before = world.events().len();
        let reply = call(&host, tool, input).await;
        let error = reply.result.unwrap_err();
        let events = world.events();
        let [Event::Refused(row)] = &events[before..] else {
            panic!("{events:#?}");
        };
        let outcome = &row.outcome;
        assert_eq!(error.code.as_str(), code);
        assert_eq!(outcome.code.as_ref().unwrap().as_str(), code);
        let class = serde_json::to_value(error.class).unwrap();
        assert_eq!(outcome.class.as_ref().unwrap().as_str(), class);
        assert_eq!(outcome.origin.as_ref().unwrap().as_str(), "host");
        assert_eq!(outcome.stage.as_str(), stage);
        assert_eq!(row.call.tool.is_none(), stage == "resolve");
        let detail = outcome.detail.as_ref().unwrap().commitment.unwrap();
        let detail = world.reader().payload(&detail).unwrap().unwrap();
        let detail: serde_json::Value = serde_json::from_slice(&detail.bytes).unwrap();
        assert_eq!(detail["message"], error.message);
    }
}

#[tokio::test]
async fn limits_and_violations_are_counted_by_their_names() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    let request = Request::with_value("hostile.run", json!({"do": "huge-result", "n": 8_000_000}));
    let reply = host.call(request).await;
    let error = reply.result.unwrap_err();
    let steps = json!({"do": "steps", "steps": [
        {"do": "std-fs", "op": "read", "path": "/etc/passwd"},
        {"do": "tool", "name": "hostile.none", "value": {}},
    ]});
    let reply = call(&host, "hostile.run", steps).await;
    let events = world.events();
    let [Event::Ended(limited), Event::Ended(tried)] = &events[..] else {
        panic!("{events:#?}");
    };
    let limit = limited.outcome.limit.as_ref().unwrap();
    assert_eq!(limit.as_str(), error.limit.unwrap().limit.as_str());
    let own = &tried.outcome.violations;
    let counted: u64 = own.values().map(|count| count.get()).sum();
    assert_eq!(counted, reply.metadata.violations_total);
    assert!(counted > 0 && own.keys().any(|kind| kind.as_str() == "tool"));
}

#[tokio::test]
async fn whoever_drops_a_call_leaves_a_row_that_says_whether_it_had_started() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    // Compiles the driver, so that no call below waits for the compiler.
    assert!(
        call(&host, "hostile.run", json!({"do": "echo"}))
            .await
            .result
            .is_ok()
    );
    assert!(
        call(&host, "hostile.changes", json!({"do": "echo"}))
            .await
            .result
            .is_ok()
    );
    let before = world.events().len();
    let sleeps = json!({"do": "sleep", "n": 60_000});
    give_up(&host, "hostile.run", sleeps.clone()).await;
    give_up(&host, "hostile.changes", sleeps).await;
    let events = world.events();
    let events = &events[before..];
    assert_eq!(kinds(events), ["ended", "started", "ended"]);
    for event in events {
        let Event::Ended(row) = event else { continue };
        let code = ErrorCode::CANCELED;
        assert_eq!(row.outcome.code.as_ref().unwrap().as_str(), code.as_str());
        let reason = row.outcome.cancel_reason.as_ref();
        assert_eq!(reason.map(|reason| reason.as_str()), Some("caller"));
        let attempts = &row.outcome.attempts;
        assert_eq!(attempts.len(), 1, "it was dispatched");
        assert_eq!(attempts[0].code.as_ref().unwrap().as_str(), code.as_str());
        assert!(attempts[0].us.get() > 100_000);
    }
}

#[tokio::test]
async fn names_with_line_feeds_escapes_and_reversed_text_end_as_one_row_of_one_line() {
    let world = World::new(Keep::All);
    let host = world.host();
    let forged = "x\n{\"kind\":\"ended\"}\u{1b}[2J\u{202e}\"";
    let request = Request::with_value(forged, json!({})).principal(forged);
    assert!(host.call(request).await.result.is_err());
    let reply = call(
        &host,
        "hostile.run",
        json!({"do": "error", "name": forged, "value": {"message": forged}}),
    )
    .await;
    assert!(reply.result.is_err());
    assert_eq!(kinds(&world.events()), ["refused", "ended"]);
    let reader = world.reader();
    for seq in 0..reader.size().unwrap() {
        let line = reader.row(seq).unwrap().record.unwrap();
        assert!(line.iter().all(|byte| (b' '..=b'~').contains(byte)));
        assert!(!String::from_utf8(line).unwrap().contains("2J"));
    }
}

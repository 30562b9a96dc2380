//! Calls that are refused before they reach the host are recorded like those that the host refuses.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use toolward_host::{
    CallError, CallEventKind, CallFacts, CallListener, CallStage, ErrorClass, ErrorCode,
    EventFilter, Heard, Host, PrincipalId, RefusedCall,
};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::{Event, Native};

use super::World;

fn unknown(message: &str) -> CallError {
    CallError::new(ErrorCode::NOT_FOUND, ErrorClass::UnknownTool, message)
}

async fn refused(host: &Host, name: &str, tool: Option<&str>, error: &CallError) {
    let call = RefusedCall {
        principal: "ada",
        name,
        tool,
        native: &Native::default(),
        error,
    };
    host.refused(call).await;
}

/// Remembers the calls that ended.
#[derive(Default)]
struct Ended(Mutex<Vec<CallFacts>>);

impl CallListener for Ended {
    fn finished(&self, call: &CallFacts) {
        self.0.lock().unwrap().push(call.clone());
    }
}

#[tokio::test]
async fn a_call_that_does_not_reach_the_host_has_a_row_events_and_a_listener() {
    let world = World::new(Keep::Asked);
    let ended = Arc::new(Ended::default());
    let builder = world.builder().listener(ended.clone());
    let host = builder.recorder(world.writer.clone()).build().unwrap();
    let not_loaded = CallError::new(
        ErrorCode::SCHEMA_NOT_LOADED,
        ErrorClass::SchemaNotLoaded,
        "was not loaded",
    );
    let unfit = CallError::new(
        ErrorCode::INPUT_INVALID,
        ErrorClass::InvalidArguments,
        "expected the property `input`",
    );
    let blocked = CallError::new(
        ErrorCode::UNAUTHORISED,
        ErrorClass::PolicyBlocked,
        "is blocked here",
    );
    let tool = Some("hostile.run");
    for (tool, error, stage) in [
        (
            None,
            unknown("there is no tool \"run\""),
            CallStage::Resolve,
        ),
        // A tool that is gone is not known either.
        (Some("hostile.gone"), not_loaded.clone(), CallStage::Resolve),
        (tool, not_loaded, CallStage::Validate),
        (tool, unfit, CallStage::Validate),
        (tool, blocked, CallStage::Authorise),
    ] {
        let before = world.events().len();
        let mut events = host.events(EventFilter::principal("ada"));
        let mut foreign = host.events(EventFilter::principal("bob"));
        refused(&host, "run", tool, &error).await;
        let written = world.events();
        let [Event::Refused(row)] = &written[before..] else {
            panic!("{written:#?}");
        };
        let outcome = &row.outcome;
        assert_eq!(outcome.code.as_ref().unwrap().as_str(), error.code.as_str());
        let class = serde_json::to_value(error.class).unwrap();
        assert_eq!(outcome.class.as_ref().unwrap().as_str(), class);
        assert_eq!(outcome.stage.as_str(), stage.as_str());
        assert!(outcome.attempts.is_empty() && row.call.driver.is_none());
        assert!(row.call.person.is_some());
        let found = row.call.tool.as_ref().map(|tool| tool.id.as_str());
        let known = (stage != CallStage::Resolve).then_some("hostile.run@1.0.0");
        assert_eq!(found, known);

        let mut last = None;
        while let Some(Heard::Event(event)) = events.try_next() {
            assert_eq!(event.principal, PrincipalId::of("ada"));
            assert_eq!(event.invocation, row.invocation.to_string());
            last = Some(event);
        }
        assert!(foreign.try_next().is_none());
        let last = last.unwrap();
        assert_eq!(last.tool.as_deref(), known.map(|_| "hostile.run@1"));
        let CallEventKind::Failed { code, class, .. } = last.kind else {
            panic!("{last:?}");
        };
        assert_eq!((code, class), (error.code.as_str(), error.class));
        let heard = std::mem::take(&mut *ended.0.lock().unwrap());
        let [heard] = &heard[..] else {
            panic!("{heard:#?}");
        };
        assert_eq!(
            (heard.stage, heard.error.as_ref()),
            (stage, Some(&error.code))
        );
        assert_eq!((&*heard.principal, heard.attempts), ("ada", 0));
    }
    assert!(world.reader().verify(&[]).unwrap().holds());
}

#[tokio::test]
async fn what_a_caller_calls_a_tool_is_payload_and_its_row_is_one_line() {
    let world = World::new(Keep::All);
    let host = world.host();
    let forged = "x\n{\"kind\":\"ended\"}\u{1b}[2J\u{202e}\"";
    refused(&host, forged, None, &unknown("there is no tool")).await;
    let long = "n".repeat(200_000);
    refused(&host, &long, None, &unknown("there is no tool")).await;
    let events = world.events();
    let [Event::Refused(row), Event::Refused(long)] = &events[..] else {
        panic!("{events:#?}");
    };
    let reader = world.reader();
    let detail = row.outcome.detail.as_ref().unwrap().commitment.unwrap();
    let detail = reader.payload(&detail).unwrap().unwrap();
    let detail: Value = serde_json::from_slice(&detail.bytes).unwrap();
    assert_eq!(detail["tool"], forged);
    assert_eq!(detail["message"], "there is no tool");
    let long = long.outcome.detail.as_ref().unwrap();
    assert!(long.commitment.is_none() && long.size.get() > 200_000);
    for seq in 0..reader.size().unwrap() {
        let line = reader.row(seq).unwrap().record.unwrap();
        assert!(line.len() <= 4096);
        assert!(line.iter().all(|byte| (b' '..=b'~').contains(byte)));
        let line = String::from_utf8(line).unwrap();
        assert!(!line.contains("2J") && !line.contains("nnnn"));
    }
}

/// How large the ledger is.
fn size(world: &World) -> u64 {
    let files = std::fs::read_dir(world.directory()).unwrap();
    let lengths = files.map(|file| file.unwrap().metadata().unwrap().len());
    lengths.sum()
}

#[tokio::test]
async fn a_flood_of_calls_that_do_not_reach_the_host_adds_less_than_a_megabyte() {
    let (count, seconds) = match std::env::var_os("TOOLWARD_LONG") {
        Some(_) => (100_000_u32, 10),
        None => (10_000, 1),
    };
    let world = World::new(Keep::All);
    let host = world.host();
    let error = unknown("there is no tool");
    let begun = Instant::now();
    for number in 0..count {
        refused(&host, &format!("tool_{number}"), None, &error).await;
        // Spreads the calls evenly over `seconds`, as a client would.
        let due = Duration::from_secs(seconds).mul_f64(f64::from(number) / f64::from(count));
        if let Some(early) = due.checked_sub(begun.elapsed())
            && early > Duration::from_millis(5)
        {
            tokio::time::sleep(early).await;
        }
    }
    world.writer.close().unwrap();
    let (size, took) = (size(&world), begun.elapsed());
    println!("{count} calls in {took:?}: {size} bytes");
    assert!(size < 1024 * 1024, "{size} bytes in {took:?}");
    let mut counted = 0;
    for event in world.written() {
        match event {
            Event::Refused(_) => counted += 1,
            Event::RefusedMore(body) => {
                assert!(body.person.is_some());
                counted += body.codes.values().map(|number| number.get()).sum::<u64>();
            }
            Event::Closed(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(counted, u64::from(count), "none is lost");
    assert!(world.reader().verify(&[]).unwrap().holds());
}

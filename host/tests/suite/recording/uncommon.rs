//! Calls that resume, calls that fall to another driver, and a full queue.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;
use toolward_host::{Answer, Answerable, Limits, Request, Resume};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::Event;
use toolward_ledger::{Durability, Entry, Given, Pending, Recorder, Writer};
use toolward_policy::Policy;

use super::{World, call, kinds};
use crate::fixture::{Extra, Fixture, hostile_wasm};

/// A policy that lets the fixture's tools change things and ask.
fn policy(fixture: &Fixture, more: &str) -> Policy {
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = format!(
        "{more}[[grant]]\npublisher = {publisher:?}\npreapproved = true\n\
         requires = [\"user:form\"]\nmutates = [\"database:things\"]\n"
    );
    Policy::from_toml(&policy).unwrap()
}

#[tokio::test]
async fn each_part_of_a_call_that_asks_starts_and_ends_under_one_id() {
    let world = World::new(Keep::Asked);
    let fixture = Fixture::new(Extra {
        tool: "requires: { user: [form] }\nmutates: [\"database:things\"]\n",
        ..Extra::default()
    });
    let builder = fixture.builder().policy(policy(&fixture, ""));
    let host = builder.recorder(world.writer.clone()).build().unwrap();
    let forms = Answerable {
        form: true,
        ..Answerable::default()
    };
    let request = || Request::with_value("hostile.run", json!({"do": "ask"})).answerable(forms);
    let asked = *host.call(request()).await.asked.unwrap();
    let resume = Resume {
        asked,
        answers: vec![("q".to_owned(), Answer::Declined)],
    };
    let reply = host.call(request().resume(resume)).await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
    assert_eq!(reply.metadata.recorded, Some(true));
    let events = world.written();
    let [
        Event::Started(start),
        Event::Ended(asks),
        Event::Started(resumes),
        Event::Ended(ended),
    ] = &events[..]
    else {
        panic!("{events:#?}");
    };
    let code = asks.outcome.code.as_ref().map(|code| code.as_str());
    assert_eq!(code, Some("toolward:input_required"));
    assert!(ended.outcome.code.is_none());
    let id = start.invocation;
    assert_eq!(
        [asks.invocation, resumes.invocation, ended.invocation],
        [id; 3]
    );
    assert_eq!(ended.outcome.attempts.len(), 1, "its own part");
    drop(world.writer.close());
    // Nothing is left unfinished.
    let reader = world.reader();
    assert!(!kinds(&super::written(&reader)).contains(&"abandoned"));
}

#[tokio::test]
async fn a_call_that_falls_to_another_driver_is_recorded_once_with_the_one_that_runs() {
    let world = World::new(Keep::Asked);
    let fixture = Fixture::new(Extra {
        tool: "default_implementation: large\nmutates: [\"database:things\"]\n",
        ..Extra::default()
    });
    // The first driver can't be used, because it is larger than a component may be.
    fixture.driver("large", "hostile.run", Extra::default());
    let large = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/guests/hostile-kv/drivers/hostile-kv/driver.wasm");
    let large = std::fs::read(large).unwrap();
    let small = hostile_wasm().metadata().unwrap().len() as usize;
    assert!(large.len() > small);
    fixture.write("drivers/large/driver.wasm", large);
    let limits = Limits {
        component_bytes: small,
        ..Limits::default()
    };
    let policy = policy(&fixture, "[resolve]\nfallback = true\n");
    let builder = fixture.builder().policy(policy).limits(limits);
    let host = builder.recorder(world.writer.clone()).build().unwrap();
    let reply = call(&host, "hostile.run", json!({"do": "echo"})).await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
    assert_eq!(reply.metadata.tried.len(), 2);
    // No driver takes over from one that ran and failed, since both may change something.
    let failed = call(&host, "hostile.run", json!({"do": "trap"})).await;
    assert!(failed.result.is_err());
    let events = world.written();
    assert_eq!(kinds(&events), ["started", "ended", "started", "ended"]);
    for pair in events.chunks(2) {
        let [Event::Started(start), Event::Ended(end)] = pair else {
            panic!("{pair:#?}");
        };
        let driver = &start.call.driver.as_ref().unwrap().id;
        assert_eq!(driver.as_str(), "hostile");
        let attempts: Vec<_> = end
            .outcome
            .attempts
            .iter()
            .map(|one| one.driver.as_str())
            .collect();
        assert_eq!(attempts, ["hostile"]);
    }
}

/// A recorder whose queue has room for one row per permit.
struct Full {
    writer: Arc<Writer>,
    room: Arc<Semaphore>,
}

impl Recorder for Full {
    fn append(&self, entry: Entry, durability: Durability) -> Pending {
        let (writer, room) = (self.writer.clone(), self.room.clone());
        Pending::later(async move {
            room.acquire().await.unwrap().forget();
            writer.append(entry, durability).await
        })
    }

    fn flush(&self) -> Pending {
        self.writer.flush()
    }

    fn given(&self, given: Given) -> Pending {
        self.writer.given(given)
    }
}

#[tokio::test]
async fn while_the_queue_is_full_calls_wait_and_no_row_is_lost() {
    let world = World::new(Keep::Asked);
    let room = Arc::new(Semaphore::new(0));
    let host = world.with_recorder(Arc::new(Full {
        writer: world.writer.clone(),
        room: room.clone(),
    }));
    let soon = Duration::from_millis(300);
    for (tool, rows) in [("hostile.changes", 2), ("hostile.reads", 1)] {
        let before = world.events().len();
        let call = call(&host, tool, json!({"do": "echo"}));
        let mut call = std::pin::pin!(call);
        for _ in 0..rows {
            let waits = tokio::time::timeout(soon, &mut call).await;
            assert!(waits.is_err(), "{tool} does not wait");
            room.add_permits(1);
        }
        assert!(call.await.result.is_ok(), "{tool}");
        assert_eq!(world.events().len(), before + rows, "{tool}");
    }
    // A call that is cancelled while its start waits for room has started nothing.
    let before = world.events().len();
    super::give_up(&host, "hostile.changes", json!({"do": "echo"})).await;
    room.add_permits(1);
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while world.events().len() == before && std::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let events = world.events();
    let [Event::Ended(row)] = &events[before..] else {
        panic!("{events:#?}");
    };
    assert!(row.outcome.attempts.is_empty());
    let code = row.outcome.code.as_ref().map(|code| code.as_str());
    assert_eq!(code, Some("toolward:canceled"));
}

//! A ledger that can't be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use toolward_host::{ErrorClass, ErrorCode};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::Event;
use toolward_ledger::{Durability, Entry, Error, Given, Pending, Recorder, Writer};

use super::{World, call, kinds};

/// A recorder that refuses rows of the chosen kinds.
pub(super) struct Fails {
    pub(super) writer: Arc<Writer>,
    pub(super) started: AtomicBool,
    pub(super) ended: AtomicBool,
}

impl Recorder for Fails {
    fn append(&self, entry: Entry, durability: Durability) -> Pending {
        let fails = match entry.event() {
            Event::Started(_) => self.started.load(Ordering::Relaxed),
            Event::Ended(_) => self.ended.load(Ordering::Relaxed),
            _ => false,
        };
        match fails {
            true => Pending::ready(Err(Error::Full)),
            false => self.writer.append(entry, durability),
        }
    }

    fn flush(&self) -> Pending {
        self.writer.flush()
    }

    fn given(&self, given: Given) -> Pending {
        self.writer.given(given)
    }
}

#[tokio::test]
async fn what_can_not_be_recorded_is_not_done_and_what_changes_nothing_goes_on() {
    let world = World::new(Keep::Asked);
    let fails = Arc::new(Fails {
        writer: world.writer.clone(),
        started: true.into(),
        ended: false.into(),
    });
    let host = world.with_recorder(fails.clone());
    let reply = call(&host, "hostile.changes", json!({"do": "echo"})).await;
    let error = reply.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::UNRECORDED);
    assert_eq!(error.class, ErrorClass::DependencyUnavailable);
    assert!(error.retryable);
    assert_eq!((reply.metadata.attempts, reply.metadata.fuel), (0, 0));
    let reply = call(&host, "hostile.run", json!({"do": "echo"})).await;
    assert!(reply.result.is_ok());
    assert_eq!(kinds(&world.events()), ["refused", "ended"]);

    // Once rows can be written again, the call is made.
    fails.started.store(false, Ordering::Relaxed);
    let reply = call(&host, "hostile.changes", json!({"do": "echo"})).await;
    assert!(reply.result.is_ok());
}

#[tokio::test]
async fn a_result_whose_end_is_not_recorded_says_so() {
    let world = World::new(Keep::Asked);
    let host = world.with_recorder(Arc::new(Fails {
        writer: world.writer.clone(),
        started: false.into(),
        ended: true.into(),
    }));
    let reply = call(&host, "hostile.changes", json!({"do": "echo"})).await;
    assert!(reply.result.is_ok());
    assert_eq!(reply.metadata.recorded, Some(false));
    assert_eq!(reply.envelope()["meta"]["recorded"], false);
    let reply = call(&host, "hostile.run", json!({"do": "echo"})).await;
    assert!(reply.result.is_ok() && reply.metadata.recorded.is_none());
}

#[tokio::test]
async fn a_ledger_that_is_closed_stops_what_changes_something_and_nothing_else() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    world.writer.close().unwrap();
    let reply = call(&host, "hostile.changes", json!({"do": "echo"})).await;
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::UNRECORDED);
    let reply = call(&host, "hostile.run", json!({"do": "echo"})).await;
    assert!(reply.result.is_ok());
}

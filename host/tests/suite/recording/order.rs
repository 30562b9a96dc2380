//! The order in which rows get to the disk.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::json;
use toolward_host::{Observer, Progress, Request};
use toolward_ledger::Reader;
use toolward_ledger::payload::Keep;

use super::{World, call, kinds, written};

/// Reads the ledger's files while the guest runs.
struct Looks {
    directory: PathBuf,
    seen: Mutex<Vec<&'static str>>,
}

impl Observer for Looks {
    fn progress(&self, _: &Progress) {
        let reader = Reader::open(&self.directory, None).unwrap();
        *self.seen.lock().unwrap() = kinds(&written(&reader));
    }
}

#[tokio::test]
async fn a_call_that_changes_something_is_on_the_disk_before_its_guest_does_anything() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    for (tool, before) in [("hostile.run", &[][..]), ("hostile.changes", &["started"])] {
        let looks = Arc::new(Looks {
            directory: world.directory(),
            seen: Mutex::default(),
        });
        let known = world.events().len();
        let request = Request::with_value(tool, json!({"do": "progress", "n": 1}));
        let reply = host.call(request.observer(looks.clone())).await;
        assert!(reply.result.is_ok(), "{:?}", reply.result);
        let seen = looks.seen.lock().unwrap().clone();
        assert_eq!(&seen[known..], before, "{tool}");
    }
}

#[tokio::test]
async fn the_end_of_such_a_call_is_on_the_disk_before_its_reply() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    let reply = call(&host, "hostile.changes", json!({"do": "echo"})).await;
    assert_eq!(kinds(&world.written()), ["started", "ended"]);
    assert_eq!(reply.metadata.recorded, Some(true));
    assert!(reply.envelope()["meta"].get("recorded").is_none());
    let reply = call(&host, "hostile.changes", json!({"do": "trap"})).await;
    assert_eq!(world.written().len(), 4);
    assert!(reply.result.is_err() && reply.metadata.recorded == Some(true));

    let queues = world.builder().queue_ended_rows();
    let queues = queues.recorder(world.writer.clone()).build().unwrap();
    let reply = call(&queues, "hostile.changes", json!({"do": "echo"})).await;
    assert_eq!(reply.metadata.recorded, None);
    assert_eq!(kinds(&world.events()[4..]), ["started", "ended"]);
}

#[tokio::test]
async fn a_result_is_persisted_once_bytes_of_it_are_on_the_disk() {
    for (keep, tool, done, expected) in [
        (Keep::All, "hostile.run", "echo", false),
        (Keep::All, "hostile.changes", "echo", true),
        (Keep::All, "hostile.changes", "trap", false),
        (Keep::Asked, "hostile.changes", "echo", false),
        (Keep::None, "hostile.changes", "echo", false),
    ] {
        let world = World::new(keep);
        let host = world.host();
        let mut events = host.events(toolward_host::EventFilter::all());
        drop(call(&host, tool, json!({ "do": done })).await);
        let mut last = None;
        while let Some(toolward_host::Heard::Event(event)) = events.try_next() {
            last = Some(event.kind.class());
        }
        let persisted = last == Some("tool.result.persisted");
        assert_eq!(persisted, expected, "{tool} {done}");
    }
}

//! An operation ends at its deadline, even if another process holds the store.

use std::time::{Duration, Instant};

use toolward_state::Store;

use crate::process::Other;
use crate::{Place, bucket, check, in_seconds};

const SOON: Duration = Duration::from_millis(80);

#[test]
fn a_write_waits_for_another_process_until_the_deadline_and_reads_go_on() {
    let place = Place::new();
    let store = place.open();
    let own = bucket(&store, "acme", "alice", "b");
    own.set("key", b"old").unwrap();
    let mut other = Other::start("hold", &place.file());
    other.line_with("locked");

    let start = Instant::now();
    let hasty = own.clone().until(start + SOON);
    let error = hasty.set("key", b"new").expect_err("locked");
    assert_eq!(error.code(), "store-busy");
    assert!(start.elapsed() >= SOON);
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(own.get("key").unwrap().unwrap(), b"old");

    // A dead process does not hold the store.
    drop(other);
    own.set("key", b"new").unwrap();
    assert_eq!(own.get("key").unwrap().unwrap(), b"new");
    check(&store);
}

#[test]
fn nothing_is_read_or_written_after_the_deadline() {
    let store = Store::in_memory().unwrap();
    let own = bucket(&store, "acme", "alice", "b");
    own.set("key", b"old").unwrap();
    let late = own.clone().until(Instant::now());
    for refused in [
        late.get("key").map(drop),
        late.list_keys(None).map(drop),
        late.set("key", b"new"),
        late.delete("key"),
        late.increment("number", 1).map(drop),
    ] {
        assert_eq!(refused.expect_err("late").code(), "store-deadline");
    }
    assert_eq!(own.get("key").unwrap().unwrap(), b"old");
    assert_eq!(own.get("number").unwrap(), None);
}

#[test]
fn work_that_takes_too_long_is_broken_off_and_undone() {
    let place = Place::new();
    let store = place.open();
    let own = bucket(&store, "acme", "alice", "b");
    let pairs: Vec<_> = (0..1000).map(|n| (n.to_string(), vec![7; 1000])).collect();
    own.set_many(&pairs).unwrap();
    let mut broken_off = 0;
    for microseconds in (50..20_000).step_by(173) {
        let end = Instant::now() + Duration::from_micros(microseconds);
        let result = own
            .clone()
            .until(end)
            .delete_many(&pairs.iter().map(|(key, _)| key).collect::<Vec<_>>());
        match result {
            Ok(()) => own.set_many(&pairs).unwrap(),
            Err(error) => {
                assert_eq!(error.code(), "store-deadline");
                broken_off += 1;
            }
        }
        assert_eq!(crate::all_keys(&own).len(), 1000);
    }
    assert!(broken_off > 0);
    store.check(in_seconds(60)).unwrap();
}

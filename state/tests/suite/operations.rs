//! Tests the effect of each operation, and its refusals.

use toolward_state::{Access, Error, Limits, Store};

use crate::bucket::OpenBucket as _;

use crate::{all_keys, bucket, check};

#[test]
fn a_value_is_what_was_set_last_and_nothing_after_it_was_deleted() {
    let store = Store::in_memory().unwrap();
    let own = bucket(&store, "acme", "alice", "b");
    assert_eq!(own.get("key").unwrap(), None);
    own.set("key", b"one").unwrap();
    own.set("key", b"\0\xff").unwrap();
    assert_eq!(own.get("key").unwrap().unwrap(), b"\0\xff");
    own.set("empty", b"").unwrap();
    assert_eq!(own.get("empty").unwrap().unwrap(), b"");
    assert!(own.exists("empty").unwrap());
    own.delete("key").unwrap();
    own.delete("key").unwrap();
    assert_eq!(own.get("key").unwrap(), None);
    assert!(!own.exists("key").unwrap());
    check(&store);
}

#[test]
fn values_of_many_keys_come_in_the_order_asked_for() {
    let store = Store::in_memory().unwrap();
    let own = bucket(&store, "acme", "alice", "b");
    own.set_many(&[("a", "1"), ("b", "2"), ("a", "3")]).unwrap();
    let values = own.get_many(&["b", "none", "a", "b"]).unwrap();
    let values: Vec<_> = values.iter().map(|value| value.as_deref()).collect();
    assert_eq!(values, [Some(&b"2"[..]), None, Some(b"3"), Some(b"2")]);
    own.delete_many(&["a", "none", "a"]).unwrap();
    assert_eq!(all_keys(&own), ["b"]);
    check(&store);
}

#[test]
fn nothing_at_all_can_be_asked_for_set_and_deleted() {
    let store = Store::in_memory().unwrap();
    let own = bucket(&store, "acme", "alice", "b");
    assert!(own.get_many::<&str>(&[]).unwrap().is_empty());
    own.set_many::<&str, &str>(&[]).unwrap();
    own.delete_many::<&str>(&[]).unwrap();
    check(&store);
}

#[test]
fn a_number_is_incremented_and_anything_else_refused_and_kept() {
    let store = Store::in_memory().unwrap();
    let own = bucket(&store, "acme", "alice", "b");
    assert_eq!(own.increment("n", 5).unwrap(), 5);
    assert_eq!(own.increment("n", 0).unwrap(), 5);
    assert_eq!(own.get("n").unwrap().unwrap(), b"5");
    own.set("n", b"18446744073709551614").unwrap();
    assert_eq!(own.increment("n", 1).unwrap(), u64::MAX);
    for text in [
        "18446744073709551615",
        "18446744073709551616",
        "",
        "-1",
        "+1",
        " 1",
        "1\n",
        "1.0",
        "0x1",
        "١",
        "text",
    ] {
        own.set("n", text.as_bytes()).unwrap();
        let error = own.increment("n", 1).expect_err(text);
        assert_eq!(error.code(), "not-a-number", "{text:?}");
        assert_eq!(own.get("n").unwrap().unwrap(), text.as_bytes());
    }
    own.set("n", b"\xff").unwrap();
    assert!(own.increment("n", 1).is_err());
    check(&store);
}

#[test]
fn a_bucket_opened_for_reading_changes_nothing() {
    let store = Store::in_memory().unwrap();
    let own = bucket(&store, "acme", "alice", "b");
    own.set("key", b"1").unwrap();
    let reading = store.bucket("acme", "alice", "b", Access::Read, Limits::default());
    for refused in [
        reading.set("key", b"2"),
        reading.set("new", b"2"),
        reading.set_many(&[("key", "2")]),
        reading.delete("key"),
        reading.delete_many(&["key"]),
        reading.increment("key", 1).map(drop),
    ] {
        assert!(matches!(refused, Err(Error::ReadOnly)));
    }
    assert_eq!(reading.get("key").unwrap().unwrap(), b"1");
    assert_eq!(all_keys(&reading), ["key"]);
}

#[test]
fn a_batch_that_fails_midway_changes_nothing() {
    let store = Store::in_memory().unwrap();
    let limits = Limits {
        bucket_keys: 2,
        ..Limits::default()
    };
    let own = store.bucket("acme", "alice", "b", Access::Write, limits);
    own.set("a", b"old").unwrap();
    own.set_many(&[("a", "new"), ("b", ""), ("c", "")])
        .expect_err("too many");
    assert_eq!(all_keys(&own), ["a"]);
    assert_eq!(own.get("a").unwrap().unwrap(), b"old");
    check(&store);
}

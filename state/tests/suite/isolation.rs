//! No bucket reaches another, for any owners, principals, names and keys.

use toolward_state::Store;

use crate::bucket::OpenBucket as _;

use crate::{all_keys, bucket, check};

/// Parts that would collide if anything joined, cleaned, folded or truncated them.
const PARTS: [&str; 22] = [
    "",
    "a",
    "A",
    "b",
    "a/b",
    "a:b",
    "a\0b",
    "a\0",
    "\0",
    "..",
    "../a",
    ".",
    "a.b",
    "a b",
    " a",
    "%",
    "_",
    "*",
    "a'; DROP TABLE entry; --",
    "ä",
    "a\u{308}",
    "\u{10ffff}",
];

#[test]
fn every_owner_principal_and_name_has_a_bucket_of_its_own() {
    let store = Store::in_memory().unwrap();
    let all: Vec<_> = PARTS
        .iter()
        .flat_map(|owner| PARTS.iter().map(move |principal| (owner, principal)))
        .flat_map(|(owner, principal)| PARTS.iter().map(move |name| (owner, principal, name)))
        .collect();
    for (n, (owner, principal, name)) in all.iter().enumerate() {
        bucket(&store, owner, principal, name)
            .set("key", n.to_string().as_bytes())
            .unwrap();
    }
    for (n, (owner, principal, name)) in all.iter().enumerate() {
        let own = bucket(&store, owner, principal, name);
        let value = own.get("key").unwrap().expect("a value");
        assert_eq!(
            value,
            n.to_string().as_bytes(),
            "{owner:?} {principal:?} {name:?}"
        );
        assert_eq!(own.list_keys(None).unwrap().keys, ["key"]);
    }
    check(&store);
}

#[test]
fn nothing_is_seen_or_changed_through_another_publisher_principal_or_bucket() {
    let store = Store::in_memory().unwrap();
    let own = bucket(&store, "acme", "alice", "counters");
    own.set("key", b"own").unwrap();
    own.set("number", b"1").unwrap();
    for other in [
        bucket(&store, "evil", "alice", "counters"),
        bucket(&store, "acme", "mallory", "counters"),
        bucket(&store, "acme", "alice", "others"),
    ] {
        assert_eq!(other.get("key").unwrap(), None);
        assert!(!other.exists("key").unwrap());
        assert_eq!(other.get_many(&["key", "number"]).unwrap(), [None, None]);
        assert!(other.list_keys(None).unwrap().keys.is_empty());
        other.delete("key").unwrap();
        assert_eq!(other.increment("number", 7).unwrap(), 7);
        other.set("key", b"other").unwrap();
        other.delete_many(&["key", "number"]).unwrap();
    }
    assert_eq!(own.get("key").unwrap().unwrap(), b"own");
    assert_eq!(own.get("number").unwrap().unwrap(), b"1");
    check(&store);
}

#[test]
fn a_cursor_tells_nothing_of_other_buckets() {
    let store = Store::in_memory().unwrap();
    let cursor = |name: &str| {
        let limits = toolward_state::Limits {
            page_keys: 1,
            ..Default::default()
        };
        let own = store.bucket("acme", "alice", name, toolward_state::Access::Write, limits);
        own.set("a", b"").unwrap();
        own.set("b", b"").unwrap();
        own.list_keys(None).unwrap().cursor
    };
    let before = cursor("first");
    for n in 0..100 {
        bucket(&store, "other", "bob", "b")
            .set(&n.to_string(), b"")
            .unwrap();
    }
    assert_eq!(cursor("second"), before);
}

#[test]
fn a_cursor_of_one_bucket_or_of_nobody_gives_nothing_of_another() {
    let store = Store::in_memory().unwrap();
    bucket(&store, "acme", "alice", "secret")
        .set("key", b"")
        .unwrap();
    let own = bucket(&store, "evil", "mallory", "own");
    for cursor in [0, 1, 2, u64::MAX, i64::MAX as u64, i64::MAX as u64 + 1] {
        assert!(own.list_keys(Some(cursor)).unwrap().keys.is_empty());
    }
}

#[test]
fn keys_are_told_apart_byte_by_byte() {
    let store = Store::in_memory().unwrap();
    let own = bucket(&store, "acme", "alice", "keys");
    for (n, key) in PARTS.iter().enumerate() {
        own.set(key, n.to_string().as_bytes()).unwrap();
    }
    for (n, key) in PARTS.iter().enumerate() {
        assert_eq!(
            own.get(key).unwrap().unwrap(),
            n.to_string().as_bytes(),
            "{key:?}"
        );
    }
    assert_eq!(all_keys(&own), PARTS);
    own.delete("%").unwrap();
    own.delete("a\0").unwrap();
    assert_eq!(all_keys(&own).len(), PARTS.len() - 2);
    check(&store);
}

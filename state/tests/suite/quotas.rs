//! Values that are too large are refused, with the used and the allowed amount.

use toolward_state::{Access, Error, Limits, Store};

use crate::bucket::{Bucket, OpenBucket as _};
use crate::{all_keys, check};

const SMALL: Limits = Limits {
    key_bytes: 4,
    value_bytes: 8,
    bucket_keys: 3,
    bucket_bytes: 24,
    buckets: 2,
    batch_keys: 4,
    batch_bytes: 20,
    page_keys: 2,
    page_bytes: 100,
};

fn small(store: &Store, name: &str) -> Bucket {
    store.bucket("acme", "alice", name, Access::Write, SMALL)
}

/// Asserts that an operation was refused for its size and not for a quota.
fn too_large<T: std::fmt::Debug>(result: Result<T, Error>) -> (&'static str, u64, u64) {
    match result.expect_err("too large") {
        Error::TooLarge {
            limit,
            used,
            allowed,
        } => (limit, used, allowed),
        other => panic!("expected a size, found {other}"),
    }
}

fn quota<T: std::fmt::Debug>(result: Result<T, Error>) -> (&'static str, u64, u64) {
    match result.expect_err("beyond the quota") {
        Error::Quota {
            limit,
            used,
            allowed,
        } => (limit, used, allowed),
        other => panic!("expected a quota, found {other}"),
    }
}

#[test]
fn a_key_that_is_too_large_is_refused_by_every_operation() {
    let store = Store::in_memory().unwrap();
    let own = small(&store, "b");
    own.set("äää", b"").expect_err("six bytes");
    let refusal = ("key_bytes", 5, 4);
    assert_eq!(too_large(own.get("12345")), refusal);
    assert_eq!(too_large(own.exists("12345")), refusal);
    assert_eq!(too_large(own.get_many(&["1", "12345"])), refusal);
    assert_eq!(too_large(own.set("12345", b"")), refusal);
    assert_eq!(
        too_large(own.set_many(&[("1", ""), ("12345", "")])),
        refusal
    );
    assert_eq!(too_large(own.increment("12345", 1)), refusal);
    assert_eq!(too_large(own.delete("12345")), refusal);
    assert_eq!(too_large(own.delete_many(&["1", "12345"])), refusal);
    own.set("1234", b"").unwrap();
    assert_eq!(all_keys(&own), ["1234"]);
}

#[test]
fn a_value_that_is_too_large_is_refused_and_one_that_just_fits_is_not() {
    let store = Store::in_memory().unwrap();
    let own = small(&store, "b");
    assert_eq!(too_large(own.set("a", &[0; 9])), ("value_bytes", 9, 8));
    assert!(all_keys(&own).is_empty());
    own.set("a", &[0; 8]).unwrap();
}

#[test]
fn a_batch_has_so_many_keys_and_bytes_and_no_more() {
    let store = Store::in_memory().unwrap();
    let own = small(&store, "b");
    let five = ["a", "b", "c", "d", "e"];
    assert_eq!(too_large(own.get_many(&five)), ("batch_keys", 5, 4));
    assert_eq!(too_large(own.delete_many(&five)), ("batch_keys", 5, 4));
    assert_eq!(
        too_large(own.set_many(&five.map(|key| (key, "")))),
        ("batch_keys", 5, 4)
    );
    let large = [("a", [0; 8]), ("b", [0; 8]), ("c", [0; 8])];
    assert_eq!(too_large(own.set_many(&large)), ("batch_bytes", 27, 20));
    assert!(all_keys(&own).is_empty());
    own.set("a", &[0; 8]).unwrap();
    // A value that is requested several times counts each time.
    assert_eq!(
        too_large(own.get_many(&["a", "a", "a"])),
        ("batch_bytes", 24, 20)
    );
    own.get_many(&["a", "a"]).unwrap();
}

#[test]
fn a_bucket_holds_so_many_keys_and_takes_another_after_one_was_deleted() {
    let store = Store::in_memory().unwrap();
    let own = small(&store, "b");
    for key in ["a", "b", "c"] {
        own.set(key, b"").unwrap();
    }
    assert_eq!(quota(own.set("d", b"")), ("bucket_keys", 4, 3));
    assert_eq!(quota(own.increment("d", 1)), ("bucket_keys", 4, 3));
    own.set("a", b"1").unwrap();
    assert_eq!(own.increment("a", 1).unwrap(), 2);
    own.delete("b").unwrap();
    own.set("d", b"").unwrap();
    assert_eq!(all_keys(&own), ["a", "c", "d"]);
    check(&store);
}

#[test]
fn a_bucket_holds_so_many_bytes_of_keys_and_values_together() {
    let store = Store::in_memory().unwrap();
    let own = small(&store, "b");
    own.set("aaaa", &[0; 8]).unwrap();
    own.set("bbbb", &[0; 7]).unwrap();
    assert_eq!(quota(own.set("c", b"1")), ("bucket_bytes", 25, 24));
    own.set("bbbb", &[0; 8]).unwrap();
    assert_eq!(quota(own.set("c", b"")), ("bucket_bytes", 25, 24));
    own.set("bbbb", b"").unwrap();
    own.set("c", &[0; 7]).unwrap();
    check(&store);
}

#[test]
fn a_bucket_beyond_a_lowered_quota_can_be_read_and_shrunk_and_not_grown() {
    let store = Store::in_memory().unwrap();
    let own = small(&store, "b");
    own.set_many(&[("a", "1234"), ("b", "1234"), ("c", "1")])
        .unwrap();
    let lowered = store.bucket(
        "acme",
        "alice",
        "b",
        Access::Write,
        Limits {
            bucket_bytes: 4,
            bucket_keys: 1,
            ..SMALL
        },
    );
    assert_eq!(lowered.get("a").unwrap().unwrap(), b"1234");
    assert_eq!(quota(lowered.set("a", b"12345")), ("bucket_bytes", 13, 4));
    lowered.set("a", b"123").unwrap();
    lowered.delete("b").unwrap();
    assert_eq!(quota(lowered.set("b", b"")), ("bucket_keys", 3, 1));
    check(&store);
}

#[test]
fn a_publisher_and_principal_have_so_many_buckets_that_hold_something() {
    let store = Store::in_memory().unwrap();
    small(&store, "one").set("a", b"").unwrap();
    small(&store, "two").set("a", b"").unwrap();
    assert_eq!(
        quota(small(&store, "three").set("a", b"")),
        ("buckets", 3, 2)
    );
    // Other principals have their own count, and reading creates no bucket.
    store
        .bucket("acme", "bob", "three", Access::Write, SMALL)
        .set("a", b"")
        .unwrap();
    store
        .bucket("other", "alice", "three", Access::Write, SMALL)
        .set("a", b"")
        .unwrap();
    assert_eq!(small(&store, "four").get("a").unwrap(), None);
    small(&store, "one").delete("a").unwrap();
    small(&store, "three").set("a", b"").unwrap();
    check(&store);
}

#[test]
fn a_page_has_so_many_keys_and_bytes_and_one_key_at_least() {
    let store = Store::in_memory().unwrap();
    let own = small(&store, "b");
    own.set_many(&[("aaa", ""), ("bb", ""), ("c", "")]).unwrap();
    let pages = |page_keys, page_bytes| {
        let limits = Limits {
            page_keys,
            page_bytes,
            ..SMALL
        };
        let own = store.bucket("acme", "alice", "b", Access::Read, limits);
        let mut pages = Vec::new();
        let mut cursor = None;
        loop {
            let page = own.list_keys(cursor).unwrap();
            pages.push(page.keys.len());
            cursor = page.cursor;
            if cursor.is_none() {
                return pages;
            }
        }
    };
    assert_eq!(pages(2, 100), [2, 1]);
    assert_eq!(pages(3, 100), [3]);
    assert_eq!(pages(3, 5), [2, 1]);
    assert_eq!(pages(3, 3), [1, 2]);
    assert_eq!(pages(0, 0), [1, 1, 1]);
}

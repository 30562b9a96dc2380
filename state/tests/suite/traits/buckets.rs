//! Tests every implementation of [`Buckets`].

use std::time::{Duration, Instant};

use toolward_state::{
    Access, BucketOperation as Op, BucketReply as Reply, BucketScope, Buckets, Error, Limits, Store,
};

use super::{Remote, over_both};

over_both! {
    Store::in_memory().unwrap(), Remote::new();
    a_value_is_what_was_set_last,
    a_bucket_is_reached_by_its_owner_principal_and_name_alone,
    pages_have_each_key_once,
    a_batch_that_fails_changes_nothing,
    a_bucket_opened_for_reading_is_not_changed,
    increments_of_many_at_once_all_count,
    nothing_happens_after_the_deadline,
}

fn scope(name: &str) -> BucketScope {
    BucketScope {
        owner: "acme".to_owned(),
        principal: "alice".to_owned(),
        name: name.to_owned(),
        access: Access::Write,
        limits: Limits {
            bucket_keys: 5,
            value_bytes: 40,
            page_keys: 2,
            ..Limits::default()
        },
    }
}

/// Repeats an operation while its outcome is unknown. This is safe for all operations except
/// increments.
async fn done(
    buckets: &dyn Buckets,
    scope: &BucketScope,
    operation: impl Fn() -> Op,
) -> Result<Reply, Error> {
    loop {
        let deadline = Instant::now() + Duration::from_secs(20);
        match buckets.operate(scope.clone(), operation(), deadline).await {
            Err(Error::Unknown) => {}
            known => return known,
        }
    }
}

async fn set(buckets: &dyn Buckets, scope: &BucketScope, key: &str, value: &str) {
    let set = || Op::Set(key.to_owned(), value.as_bytes().to_vec());
    assert_eq!(done(buckets, scope, set).await.unwrap(), Reply::Done);
}

async fn get(buckets: &dyn Buckets, scope: &BucketScope, key: &str) -> Option<String> {
    let reply = done(buckets, scope, || Op::Get(key.to_owned())).await;
    match reply.unwrap() {
        Reply::Value(value) => value.map(|value| String::from_utf8(value).unwrap()),
        other => panic!("{other:?}"),
    }
}

async fn a_value_is_what_was_set_last(buckets: &dyn Buckets) {
    let own = scope("b");
    assert_eq!(get(buckets, &own, "key").await, None);
    set(buckets, &own, "key", "one").await;
    set(buckets, &own, "key", "two").await;
    assert_eq!(get(buckets, &own, "key").await.as_deref(), Some("two"));
    let keys = || Op::GetMany(vec!["none".to_owned(), "key".to_owned()]);
    let values = done(buckets, &own, keys).await.unwrap();
    let two = ("key".to_owned(), b"two".to_vec());
    assert_eq!(values, Reply::Values(vec![None, Some(two)]));
    let delete = || Op::Delete("key".to_owned());
    done(buckets, &own, delete).await.unwrap();
    let exists = done(buckets, &own, || Op::Exists("key".to_owned())).await;
    assert_eq!(exists.unwrap(), Reply::Exists(false));
}

async fn a_bucket_is_reached_by_its_owner_principal_and_name_alone(buckets: &dyn Buckets) {
    let own = scope("b");
    set(buckets, &own, "key", "own").await;
    for other in [
        BucketScope {
            owner: "other".to_owned(),
            ..own.clone()
        },
        BucketScope {
            principal: "bob".to_owned(),
            ..own.clone()
        },
        scope("c"),
    ] {
        assert_eq!(get(buckets, &other, "key").await, None);
        set(buckets, &other, "key", "other").await;
    }
    assert_eq!(get(buckets, &own, "key").await.as_deref(), Some("own"));
}

async fn pages_have_each_key_once(buckets: &dyn Buckets) {
    let own = scope("b");
    for key in ["c", "a", "d", "b", "e"] {
        set(buckets, &own, key, "").await;
    }
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        match done(buckets, &own, || Op::Keys { cursor }).await.unwrap() {
            Reply::Keys { keys, cursor: next } => {
                all.extend(keys);
                cursor = next;
            }
            other => panic!("{other:?}"),
        }
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(all, ["c", "a", "d", "b", "e"]);
}

async fn a_batch_that_fails_changes_nothing(buckets: &dyn Buckets) {
    let own = scope("b");
    set(buckets, &own, "a", "old").await;
    let many = || {
        let keys = ["a", "b", "c", "d", "e", "f"];
        Op::SetMany(keys.map(|key| (key.to_owned(), Vec::new())).to_vec())
    };
    let error = done(buckets, &own, many).await.expect_err("six keys");
    assert_eq!(error.code(), "quota-exceeded");
    let large = || Op::Set("a".to_owned(), vec![0; 41]);
    let error = done(buckets, &own, large).await.expect_err("41 bytes");
    assert_eq!(error.code(), "too-large");
    assert_eq!(get(buckets, &own, "a").await.as_deref(), Some("old"));
    assert_eq!(get(buckets, &own, "b").await, None);
}

async fn a_bucket_opened_for_reading_is_not_changed(buckets: &dyn Buckets) {
    let own = scope("b");
    set(buckets, &own, "a", "1").await;
    let reader = BucketScope {
        access: Access::Read,
        ..own.clone()
    };
    let writes: [fn() -> Op; 3] = [
        || Op::Set("a".to_owned(), Vec::new()),
        || Op::Delete("a".to_owned()),
        || Op::Increment("a".to_owned(), 1),
    ];
    for write in writes {
        let error = done(buckets, &reader, write).await.expect_err("reads only");
        assert_eq!(error.code(), "bucket-read-only");
    }
    assert_eq!(get(buckets, &reader, "a").await.as_deref(), Some("1"));
}

async fn increments_of_many_at_once_all_count(buckets: &dyn Buckets) {
    let own = &scope("b");
    let deadline = Instant::now() + Duration::from_secs(20);
    let each = (0..20).map(|_| async move {
        let operation = Op::Increment("n".to_owned(), 1);
        buckets.operate(own.clone(), operation, deadline).await
    });
    let (mut known, mut unknown) = (Vec::new(), 0);
    for reply in futures_util::future::join_all(each).await {
        match reply {
            Ok(Reply::Number(number)) => known.push(number),
            Err(Error::Unknown) => unknown += 1,
            other => panic!("{other:?}"),
        }
    }
    let sum: u64 = get(buckets, own, "n").await.unwrap().parse().unwrap();
    assert!((20 - unknown..=20).contains(&sum), "{sum}, {unknown}");
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len() as u64, 20 - unknown, "each sum is given once");
}

async fn nothing_happens_after_the_deadline(buckets: &dyn Buckets) {
    let own = scope("b");
    set(buckets, &own, "a", "old").await;
    let late = Op::Set("a".to_owned(), b"new".to_vec());
    let refused = buckets.operate(own.clone(), late, Instant::now()).await;
    assert_eq!(refused.expect_err("late").code(), "store-deadline");
    assert_eq!(get(buckets, &own, "a").await.as_deref(), Some("old"));
}

#[tokio::test]
async fn whoever_waits_sets_the_time_and_what_was_sent_may_still_happen() {
    let remote = Remote::new();
    let (own, slow) = (scope("b"), remote.slow(Duration::from_secs(3600)));
    let soon = Instant::now() + Duration::from_millis(20);
    let sent = Op::Set("a".to_owned(), b"1".to_vec());
    let error = slow.operate(own.clone(), sent, soon).await;
    assert_eq!(error.expect_err("no answer").code(), "store-unknown");
    assert_eq!(get(&remote, &own, "a").await.as_deref(), Some("1"));
}

//! Tests buckets with the requests of a driver.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use toolward_policy::{BucketGrant, LimitName, OnViolation};
use toolward_sandbox::violations::Reported;
use toolward_state::{BucketOperation as Operation, Limits as StoreLimits, Store};

#[expect(dead_code, reason = "the tests of buckets use all of it")]
#[path = "../../../../state/tests/suite/bucket.rs"]
mod stored_bucket;

use self::stored_bucket::OpenBucket as _;
use super::*;
use crate::imports::GuestEnd;

/// The buckets of a call.
struct Attempt {
    grants: Vec<BucketGrant>,
    store: Option<Arc<Store>>,
    limits: BucketLimits,
    counters: Arc<BucketCounters>,
    deadline: Instant,
    violations: Violations,
}

fn grant(name: &str, write: bool) -> BucketGrant {
    BucketGrant {
        name: name.to_owned(),
        owner: "acme".to_owned(),
        write,
    }
}

fn in_seconds(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

impl Attempt {
    fn new(store: &Arc<Store>, grants: &[BucketGrant]) -> Self {
        Self::with(store, grants, BucketLimits::default(), Arc::default())
    }

    fn with(
        store: &Arc<Store>,
        grants: &[BucketGrant],
        limits: BucketLimits,
        counters: Arc<BucketCounters>,
    ) -> Self {
        Self {
            grants: grants.to_vec(),
            store: Some(store.clone()),
            limits,
            counters,
            deadline: in_seconds(30),
            violations: Violations::new(OnViolation::Record, &Reported::default(), None),
        }
    }

    fn view(&mut self) -> View<'_> {
        View(CallBuckets {
            grants: &self.grants,
            store: self.store.as_deref().map(|store| store as _),
            principal: "alice",
            limits: self.limits,
            counters: &self.counters,
            deadline: self.deadline,
            violations: &self.violations,
        })
    }

    async fn open(&mut self, name: &'static str) -> &'static str {
        self.view().open(name.to_owned()).await.expect("opens");
        name
    }

    /// The subjects of the violations.
    fn tried(&self) -> Vec<String> {
        let found = self.violations.found();
        let mut kinds = found.first.iter().map(|violation| violation.kind);
        assert!(kinds.all(|kind| kind == (&Class::Database).into()));
        found.first.into_iter().map(|v| v.subject).collect()
    }
}

type Replied<T> = Result<T, BucketError>;

/// The operations of a driver.
struct View<'a>(CallBuckets<'a>);

impl View<'_> {
    async fn ask(&self, bucket: &str, operation: Operation) -> Replied<BucketReply> {
        let bucket = bucket.to_owned();
        self.0.answer(BucketRequest { bucket, operation }).await
    }

    async fn open(&self, name: String) -> Replied<()> {
        self.ask(&name, Operation::Open).await.map(drop)
    }

    async fn get(&self, bucket: &str, key: String) -> Replied<Option<Vec<u8>>> {
        match self.ask(bucket, Operation::Get(key)).await? {
            BucketReply::Value(value) => Ok(value),
            other => panic!("{other:?}"),
        }
    }

    async fn exists(&self, bucket: &str, key: String) -> Replied<bool> {
        match self.ask(bucket, Operation::Exists(key)).await? {
            BucketReply::Exists(exists) => Ok(exists),
            other => panic!("{other:?}"),
        }
    }

    async fn list_keys(
        &self,
        bucket: &str,
        cursor: Option<u64>,
    ) -> Replied<(Vec<String>, Option<u64>)> {
        match self.ask(bucket, Operation::Keys { cursor }).await? {
            BucketReply::Keys { keys, cursor } => Ok((keys, cursor)),
            other => panic!("{other:?}"),
        }
    }

    async fn get_many(
        &self,
        bucket: &str,
        keys: Vec<String>,
    ) -> Replied<Vec<Option<(String, Vec<u8>)>>> {
        match self.ask(bucket, Operation::GetMany(keys)).await? {
            BucketReply::Values(values) => Ok(values),
            other => panic!("{other:?}"),
        }
    }

    async fn increment(&self, bucket: &str, key: String, delta: u64) -> Replied<u64> {
        match self.ask(bucket, Operation::Increment(key, delta)).await? {
            BucketReply::Number(number) => Ok(number),
            other => panic!("{other:?}"),
        }
    }

    async fn set(&self, bucket: &str, key: String, value: Vec<u8>) -> Replied<()> {
        self.ask(bucket, Operation::Set(key, value)).await.map(drop)
    }

    async fn delete(&self, bucket: &str, key: String) -> Replied<()> {
        self.ask(bucket, Operation::Delete(key)).await.map(drop)
    }

    async fn set_many(&self, bucket: &str, pairs: Vec<(String, Vec<u8>)>) -> Replied<()> {
        self.ask(bucket, Operation::SetMany(pairs)).await.map(drop)
    }

    async fn delete_many(&self, bucket: &str, keys: Vec<String>) -> Replied<()> {
        self.ask(bucket, Operation::DeleteMany(keys))
            .await
            .map(drop)
    }
}

fn in_memory() -> Arc<Store> {
    Arc::new(Store::in_memory().expect("a store"))
}

/// The contents of a bucket, read from the store itself.
fn stored(store: &Store, owner: &str, principal: &str, name: &str) -> Vec<(String, Vec<u8>)> {
    let bucket = store.bucket(owner, principal, name, Access::Read, StoreLimits::default());
    let page = bucket.list_keys(None).expect("a page");
    let values = bucket.get_many(&page.keys).expect("values");
    page.keys
        .into_iter()
        .zip(values.into_iter().flatten())
        .collect()
}

fn refusal<T: std::fmt::Debug>(result: Replied<T>) -> BucketError {
    match result {
        Err(error @ (BucketError::Denied | BucketError::Failed(_))) => error,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

fn trap<T: std::fmt::Debug>(result: Replied<T>) -> GuestEnd {
    match result {
        Err(BucketError::Ends(end)) => end,
        other => panic!("expected an end, found {other:?}"),
    }
}

#[tokio::test]
async fn a_bucket_that_is_not_granted_can_not_be_opened_and_the_attempt_is_recorded() {
    let names = [
        "other", "", "*", "OWN", "own ", "own\0", "../own", "acme/own",
    ];
    for grants in [vec![], vec![grant("own", true)]] {
        let mut attempt = Attempt::new(&in_memory(), &grants);
        for name in names {
            let refused = refusal(attempt.view().open(name.to_owned()).await);
            assert!(matches!(refused, BucketError::Denied), "{name:?}");
        }
        assert_eq!(attempt.tried(), names);
    }
}

#[tokio::test]
async fn policy_can_end_the_call_where_it_goes_beyond_its_grant() {
    let store = in_memory();
    let mut attempt = Attempt::new(&store, &[grant("own", false)]);
    attempt.violations = Violations::new(OnViolation::End, &Reported::default(), None);
    let error = trap(attempt.view().open("other".to_owned()).await);
    assert!(matches!(error, GuestEnd::Violation(_)));
    let own = attempt.open("own").await;
    let error = trap(attempt.view().delete(own, "key".to_owned()).await);
    assert!(matches!(error, GuestEnd::Violation(_)));
}

#[tokio::test]
async fn a_bucket_granted_for_reading_is_read_and_never_changed() {
    let store = in_memory();
    store
        .bucket(
            "acme",
            "alice",
            "own",
            Access::Write,
            StoreLimits::default(),
        )
        .set("key", b"1")
        .expect("sets");
    let mut attempt = Attempt::new(&store, &[grant("own", false)]);
    let own = attempt.open("own").await;
    let key = || "key".to_owned();

    let view = attempt.view();
    let value = view.get(own, key()).await.expect("reads");
    assert_eq!(value.as_deref(), Some(&b"1"[..]));
    assert!(view.exists(own, key()).await.expect("reads"));
    let page = view.list_keys(own, None).await.expect("reads");
    assert_eq!(page, (vec![key()], None));
    let many = view
        .get_many(own, vec!["none".to_owned(), key()])
        .await
        .expect("reads");
    assert_eq!(many, [None, Some((key(), b"1".to_vec()))]);

    let denied = [
        view.set(own, key(), b"2".to_vec()).await,
        view.delete(own, key()).await,
        view.increment(own, key(), 1).await.map(drop),
        view.set_many(own, vec![("new".to_owned(), vec![])]).await,
        view.delete_many(own, vec![key()]).await,
    ];
    for result in denied {
        assert!(matches!(refusal(result), BucketError::Denied));
    }
    assert_eq!(attempt.violations.found().total, 5);
    assert_eq!(attempt.tried(), ["own"]);
    assert_eq!(
        stored(&store, "acme", "alice", "own"),
        [(key(), b"1".to_vec())]
    );
}

#[tokio::test]
async fn what_is_written_lies_with_the_grants_owner_and_the_calls_principal_and_nowhere_else() {
    let store = in_memory();
    let shared = BucketGrant {
        owner: "partner".to_owned(),
        ..grant("shared", true)
    };
    let mut attempt = Attempt::new(&store, &[grant("own", true), shared]);
    for name in ["own", "shared"] {
        let bucket = attempt.open(name).await;
        let view = attempt.view();
        view.set(bucket, "a".to_owned(), b"1".to_vec())
            .await
            .expect("sets");
        let pairs = vec![("b".to_owned(), b"2".to_vec()), ("c".to_owned(), vec![])];
        view.set_many(bucket, pairs).await.expect("sets");
        let sum = view.increment(bucket, "a".to_owned(), 4).await;
        assert_eq!(sum.expect("increments"), 5);
        view.delete(bucket, "b".to_owned()).await.expect("deletes");
        view.delete_many(bucket, vec!["c".to_owned()])
            .await
            .expect("deletes");
    }
    let expected = [("a".to_owned(), b"5".to_vec())];
    assert_eq!(stored(&store, "acme", "alice", "own"), expected);
    assert_eq!(stored(&store, "partner", "alice", "shared"), expected);
    for (owner, principal, name) in [
        ("acme", "alice", "shared"),
        ("partner", "alice", "own"),
        ("acme", "bob", "own"),
        ("acme", "", "own"),
        ("partner", "", "shared"),
    ] {
        assert!(stored(&store, owner, principal, name).is_empty());
    }
    assert!(attempt.tried().is_empty());
}

#[tokio::test]
async fn a_grant_of_all_buckets_opens_what_a_contract_could_name_and_yields_to_a_grant_by_name() {
    let store = in_memory();
    let mut attempt = Attempt::new(&store, &[grant("*", true), grant("archive", false)]);
    for name in ["a", "a.b_c-1"] {
        let bucket = attempt.open(name).await;
        let set = attempt.view().set(bucket, "k".to_owned(), vec![]).await;
        set.expect("may be written");
    }
    let bucket = attempt.open("archive").await;
    let set = attempt.view().set(bucket, "k".to_owned(), vec![]).await;
    assert!(matches!(refusal(set), BucketError::Denied));
    assert!(stored(&store, "acme", "alice", "archive").is_empty());
    for name in ["*", "", "..", "a/b", "a b", "ä", &"a".repeat(129)] {
        let refused = refusal(attempt.view().open(name.to_owned()).await);
        assert!(matches!(refused, BucketError::Denied), "{name:?}");
    }
}

#[tokio::test]
async fn going_beyond_a_quota_is_an_error_that_the_guest_is_told() {
    let store = in_memory();
    let limits = BucketLimits {
        bucket: StoreLimits {
            bucket_keys: 1,
            value_bytes: 4,
            ..StoreLimits::default()
        },
        ..BucketLimits::default()
    };
    let mut attempt = Attempt::with(&store, &[grant("own", true)], limits, Arc::default());
    let own = attempt.open("own").await;
    let view = attempt.view();
    view.set(own, "a".to_owned(), b"text".to_vec())
        .await
        .expect("fits");
    for (result, expected) in [
        (
            view.set(own, "b".to_owned(), vec![]).await,
            "quota `bucket_keys` exceeded: 2 of 1 allowed",
        ),
        (
            view.set(own, "a".to_owned(), vec![0; 5]).await,
            "`value_bytes` exceeded: 5 of 4 allowed",
        ),
        (
            view.increment(own, "a".to_owned(), 1).await.map(drop),
            "the value can't be incremented: it is not the decimal digits of a 64-bit number",
        ),
    ] {
        match refusal(result) {
            BucketError::Failed(text) => assert_eq!(text, expected),
            other => panic!("expected a text, found {other:?}"),
        }
    }
    assert!(attempt.tried().is_empty());
}

#[tokio::test]
async fn operations_and_bytes_are_counted_over_all_attempts_and_end_the_call() {
    let store = in_memory();
    let limits = BucketLimits {
        operations: 5,
        bytes: 30,
        ..BucketLimits::default()
    };
    let grants = [grant("own", true)];
    let counters: Arc<BucketCounters> = Arc::default();
    let exceeded = |end| match end {
        GuestEnd::Exceeded(exceeded) => exceeded,
        other => panic!("expected a limit, found {other:?}"),
    };

    let mut first = Attempt::with(&store, &grants, limits, counters.clone());
    let own = first.open("own").await;
    let set = first.view().set(own, "k".to_owned(), vec![7; 9]).await;
    set.expect("within the limits");

    let mut second = Attempt::with(&store, &grants, limits, counters);
    let own = second.open("own").await;
    let view = second.view();
    view.get(own, "k".to_owned()).await.expect("20 bytes");
    let error = trap(view.set(own, "k".to_owned(), vec![8; 10]).await);
    let expected = Exceeded::new(LimitName::BucketTraffic, 31, 30);
    assert_eq!(exceeded(error), expected);
    let error = trap(view.open("own".to_owned()).await);
    let expected = Exceeded::new(LimitName::BucketOperations, 6, 5);
    assert_eq!(exceeded(error), expected);
    assert_eq!(
        stored(&store, "acme", "alice", "own"),
        [("k".to_owned(), vec![7; 9])]
    );
}

#[tokio::test]
async fn everything_that_is_read_is_counted() {
    let store = in_memory();
    let pairs = [("a", vec![0; 100]), ("b", vec![0; 100])];
    store
        .bucket(
            "acme",
            "alice",
            "own",
            Access::Write,
            StoreLimits::default(),
        )
        .set_many(&pairs)
        .expect("sets");
    let counters: Arc<BucketCounters> = Arc::default();
    let grants = [grant("own", false)];
    let mut attempt = Attempt::with(&store, &grants, BucketLimits::default(), counters.clone());
    let own = attempt.open("own").await;
    let view = attempt.view();
    let counted = || counters.bytes.swap(0, Ordering::Relaxed);
    view.get(own, "a".to_owned()).await.expect("reads");
    assert_eq!(counted(), 101);
    let keys = vec!["a".to_owned(), "b".to_owned()];
    view.get_many(own, keys).await.expect("reads");
    assert_eq!(counted(), 202);
    view.list_keys(own, None).await.expect("reads");
    assert_eq!(counted(), 2);
}

#[tokio::test]
async fn nothing_is_done_after_the_deadline() {
    let store = in_memory();
    let mut attempt = Attempt::new(&store, &[grant("own", true)]);
    attempt.deadline = Instant::now();
    let own = attempt.open("own").await;
    let error = trap(attempt.view().set(own, "k".to_owned(), vec![]).await);
    assert!(matches!(error, GuestEnd::Deadline(_)));
    assert!(stored(&store, "acme", "alice", "own").is_empty());
}

#[tokio::test]
async fn a_host_without_a_store_says_so_for_what_is_granted_and_denies_the_rest() {
    let mut attempt = Attempt::new(&in_memory(), &[grant("own", true)]);
    attempt.store = None;
    let refused = refusal(attempt.view().open("own".to_owned()).await);
    assert!(matches!(refused, BucketError::Failed(text) if text.contains("no key-value store")));
    let refused = refusal(attempt.view().open("other".to_owned()).await);
    assert!(matches!(refused, BucketError::Denied));
}

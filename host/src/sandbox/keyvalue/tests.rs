//! The host's side of `wasi:keyvalue`, called as the bindings call it, and once
//! by a component.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use toolward_policy::{BucketGrant, LimitName, OnViolation};
use toolward_state::{Access, Limits as StoreLimits, Store};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::atomics::Host as _;
use super::batch::Host as _;
use super::store::{Error as GuestError, Host as _, HostBucket as _};
use super::*;
use crate::api::violations::{EndsCall, ViolationKind, Violations};
use crate::exceeded::{DeadlinePassed, Exceeded};
use crate::imports::{BoxFuture, BucketCounters, BucketLimits, CallBuckets};

/// An attempt, with what outlives it.
struct Attempt {
    imports: OnlyBuckets,
    table: ResourceTable,
}

struct OnlyBuckets(CallBuckets);

impl Imports for OnlyBuckets {
    fn bucket(&self, request: BucketRequest) -> BoxFuture<'_, Result<BucketReply, BucketError>> {
        Box::pin(self.0.answer(request))
    }
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
            imports: OnlyBuckets(CallBuckets {
                grants: grants.to_vec(),
                store: Some(store.clone()),
                principal: "alice".to_owned(),
                limits,
                counters,
                deadline: in_seconds(30),
                violations: Violations::new(
                    OnViolation::Record,
                    &crate::api::violations::Reported::default(),
                    None,
                ),
            }),
            table: ResourceTable::new(),
        }
    }

    fn view(&mut self) -> View<'_> {
        View {
            imports: &self.imports,
            table: &mut self.table,
        }
    }

    /// Opens a bucket; the handle can be used again and again.
    async fn open(&mut self, name: &str) -> u32 {
        let opened = self.view().open(name.to_owned()).await;
        opened.expect("is granted").rep()
    }

    fn tried(&self) -> Vec<String> {
        let found = self.imports.0.violations.found();
        assert!(
            found
                .first
                .iter()
                .all(|violation| violation.kind == ViolationKind::Database)
        );
        found.first.into_iter().map(|v| v.subject).collect()
    }
}

fn handle(rep: u32) -> Resource<OpenBucket> {
    Resource::new_borrow(rep)
}

fn in_memory() -> Arc<Store> {
    Arc::new(Store::in_memory().expect("a store"))
}

/// What is in a bucket, asked of the store itself.
fn stored(store: &Store, owner: &str, principal: &str, name: &str) -> Vec<(String, Vec<u8>)> {
    let bucket = store.bucket(owner, principal, name, Access::Read, StoreLimits::default());
    let page = bucket.list_keys(None).expect("a page");
    let values = bucket.get_many(&page.keys).expect("values");
    page.keys
        .into_iter()
        .zip(values.into_iter().flatten())
        .collect()
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Failure>) -> GuestError {
    match result {
        Err(Failure::Refused(error)) => error,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

fn trap<T: std::fmt::Debug>(result: Result<T, Failure>) -> wasmtime::Error {
    match result {
        Err(Failure::Trap(error)) => error,
        other => panic!("expected a trap, found {other:?}"),
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
            assert!(matches!(refused, GuestError::AccessDenied), "{name:?}");
        }
        assert!(attempt.table.is_empty());
        assert_eq!(attempt.tried(), names);
    }
}

#[tokio::test]
async fn policy_can_end_the_call_where_it_goes_beyond_its_grant() {
    let store = in_memory();
    let mut attempt = Attempt::new(&store, &[grant("own", false)]);
    attempt.imports.0.violations = Violations::new(
        OnViolation::End,
        &crate::api::violations::Reported::default(),
        None,
    );
    let error = trap(attempt.view().open("other".to_owned()).await);
    assert!(error.is::<EndsCall>());
    let own = attempt.open("own").await;
    let error = trap(attempt.view().delete(handle(own), "key".to_owned()).await);
    assert!(error.is::<EndsCall>());
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

    let mut view = attempt.view();
    let value = view.get(handle(own), key()).await.expect("reads");
    assert_eq!(value.as_deref(), Some(&b"1"[..]));
    assert!(view.exists(handle(own), key()).await.expect("reads"));
    let page = view.list_keys(handle(own), None).await.expect("reads");
    assert_eq!((page.keys, page.cursor), (vec![key()], None));
    let many = view
        .get_many(handle(own), vec!["none".to_owned(), key()])
        .await
        .expect("reads");
    assert_eq!(many, [None, Some((key(), b"1".to_vec()))]);

    let denied = [
        view.set(handle(own), key(), b"2".to_vec()).await,
        view.delete(handle(own), key()).await,
        view.increment(handle(own), key(), 1).await.map(drop),
        view.set_many(handle(own), vec![("new".to_owned(), vec![])])
            .await,
        view.delete_many(handle(own), vec![key()]).await,
    ];
    for result in denied {
        assert!(matches!(refusal(result), GuestError::AccessDenied));
    }
    assert_eq!(attempt.imports.0.violations.found().total, 5);
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
        let mut view = attempt.view();
        view.set(handle(bucket), "a".to_owned(), b"1".to_vec())
            .await
            .expect("sets");
        let pairs = vec![("b".to_owned(), b"2".to_vec()), ("c".to_owned(), vec![])];
        view.set_many(handle(bucket), pairs).await.expect("sets");
        let sum = view.increment(handle(bucket), "a".to_owned(), 4).await;
        assert_eq!(sum.expect("increments"), 5);
        view.delete(handle(bucket), "b".to_owned())
            .await
            .expect("deletes");
        view.delete_many(handle(bucket), vec!["c".to_owned()])
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
        let set = attempt
            .view()
            .set(handle(bucket), "k".to_owned(), vec![])
            .await;
        set.expect("may be written");
    }
    let bucket = attempt.open("archive").await;
    let set = attempt
        .view()
        .set(handle(bucket), "k".to_owned(), vec![])
        .await;
    assert!(matches!(refusal(set), GuestError::AccessDenied));
    assert!(stored(&store, "acme", "alice", "archive").is_empty());
    for name in ["*", "", "..", "a/b", "a b", "ä", &"a".repeat(129)] {
        let refused = refusal(attempt.view().open(name.to_owned()).await);
        assert!(matches!(refused, GuestError::AccessDenied), "{name:?}");
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
    let mut view = attempt.view();
    view.set(handle(own), "a".to_owned(), b"text".to_vec())
        .await
        .expect("fits");
    for (result, expected) in [
        (
            view.set(handle(own), "b".to_owned(), vec![]).await,
            "quota `bucket_keys` exceeded: 2 of 1 allowed",
        ),
        (
            view.set(handle(own), "a".to_owned(), vec![0; 5]).await,
            "`value_bytes` exceeded: 5 of 4 allowed",
        ),
        (
            view.increment(handle(own), "a".to_owned(), 1)
                .await
                .map(drop),
            "the value can't be incremented: it is not the decimal digits of a 64-bit number",
        ),
    ] {
        match refusal(result) {
            GuestError::Other(text) => assert_eq!(text, expected),
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
    let exceeded = |error: wasmtime::Error| *error.downcast_ref::<Exceeded>().expect("a limit");

    let mut first = Attempt::with(&store, &grants, limits, counters.clone());
    let own = first.open("own").await;
    let set = first
        .view()
        .set(handle(own), "k".to_owned(), vec![7; 9])
        .await;
    set.expect("within the limits");

    let mut second = Attempt::with(&store, &grants, limits, counters);
    let own = second.open("own").await;
    let mut view = second.view();
    view.get(handle(own), "k".to_owned())
        .await
        .expect("20 bytes");
    let error = trap(view.set(handle(own), "k".to_owned(), vec![8; 10]).await);
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
    let mut view = attempt.view();
    let counted = || counters.bytes.swap(0, Ordering::Relaxed);
    view.get(handle(own), "a".to_owned()).await.expect("reads");
    assert_eq!(counted(), 101);
    let keys = vec!["a".to_owned(), "b".to_owned()];
    view.get_many(handle(own), keys).await.expect("reads");
    assert_eq!(counted(), 202);
    view.list_keys(handle(own), None).await.expect("reads");
    assert_eq!(counted(), 2);
}

#[tokio::test]
async fn nothing_is_done_after_the_deadline() {
    let store = in_memory();
    let mut attempt = Attempt::new(&store, &[grant("own", true)]);
    attempt.imports.0.deadline = Instant::now();
    let own = attempt.open("own").await;
    let error = trap(
        attempt
            .view()
            .set(handle(own), "k".to_owned(), vec![])
            .await,
    );
    assert!(error.is::<DeadlinePassed>());
    assert!(stored(&store, "acme", "alice", "own").is_empty());
}

#[tokio::test]
async fn a_host_without_a_store_says_so_for_what_is_granted_and_denies_the_rest() {
    let mut attempt = Attempt::new(&in_memory(), &[grant("own", true)]);
    attempt.imports.0.store = None;
    let refused = refusal(attempt.view().open("own".to_owned()).await);
    assert!(matches!(refused, GuestError::Other(text) if text.contains("no key-value store")));
    let refused = refusal(attempt.view().open("other".to_owned()).await);
    assert!(matches!(refused, GuestError::AccessDenied));
}

#[tokio::test]
async fn open_buckets_count_among_the_handles_until_they_are_dropped() {
    let mut attempt = Attempt::new(&in_memory(), &[grant("own", true)]);
    attempt.table.set_max_capacity(2);
    let first = attempt.open("own").await;
    attempt.open("own").await;
    let error = trap(attempt.view().open("own".to_owned()).await);
    assert!(matches!(
        error.downcast_ref::<ResourceTableError>(),
        Some(ResourceTableError::Full)
    ));
    let dropped = attempt.view().drop(Resource::new_own(first)).await;
    dropped.expect("was open");
    attempt.open("own").await;
}

/// Opens the bucket `own` and sets `key` in it. Returns 0, or 100 and the number
/// of the error's case where opening failed.
const GUEST: &str = r#"(component
  (import "wasi:keyvalue/store@0.2.0-draft" (instance $store
    (export "bucket" (type $bucket (sub resource)))
    (type $cases (variant (case "no-such-store") (case "access-denied") (case "other" string)))
    (export "error" (type $error (eq $cases)))
    (export "open" (func (param "identifier" string)
      (result (result (own $bucket) (error $error)))))
    (export "[method]bucket.set" (func
      (param "self" (borrow $bucket)) (param "key" string) (param "value" (list u8))
      (result (result (error $error)))))
  ))
  (core module $memory
    (memory (export "memory") 1)
    (data (i32.const 64) "ownkeyvalue")
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024))
  (core instance $memory (instantiate $memory))
  (core func $open (canon lower (func $store "open")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core func $set (canon lower (func $store "[method]bucket.set")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core module $guest
    (import "host" "memory" (memory 1))
    (import "host" "open" (func $open (param i32 i32 i32)))
    (import "host" "set" (func $set (param i32 i32 i32 i32 i32 i32)))
    (func (export "run") (result i32)
      (call $open (i32.const 64) (i32.const 3) (i32.const 0))
      (if (i32.load8_u (i32.const 0))
        (then (return (i32.add (i32.const 100) (i32.load8_u (i32.const 4))))))
      (call $set (i32.load (i32.const 4)) (i32.const 67) (i32.const 3)
        (i32.const 70) (i32.const 5) (i32.const 16))
      (i32.load8_u (i32.const 16))))
  (core instance $guest (instantiate $guest (with "host" (instance
    (export "memory" (memory $memory "memory"))
    (export "open" (func $open))
    (export "set" (func $set))))))
  (func (export "run") (result u32) (canon lift (core func $guest "run"))))"#;

#[tokio::test]
async fn a_component_reaches_its_bucket_through_the_linked_interface_and_no_other() {
    let engine = Engine::default();
    let component = wat::parse_str(GUEST).expect("a component");
    let component = Component::new(&engine, component).expect("compiles");
    let mut linker = Linker::<Attempt>::new(&engine);
    add_to_linker(&mut linker, Attempt::view).expect("links");
    let kept = in_memory();
    for (granted, expected) in [("own", 0), ("other", 101)] {
        let attempt = Attempt::new(&kept, &[grant(granted, true)]);
        let mut store = wasmtime::Store::new(&engine, attempt);
        let instance = linker
            .instantiate_async(&mut store, &component)
            .await
            .expect("instantiates");
        let run = instance
            .get_typed_func::<(), (u32,)>(&mut store, "run")
            .expect("is there");
        let (returned,) = run.call_async(&mut store, ()).await.expect("returns");
        assert_eq!(returned, expected);
    }
    assert_eq!(
        stored(&kept, "acme", "alice", "own"),
        [("key".to_owned(), b"value".to_vec())]
    );
    assert!(stored(&kept, "acme", "alice", "other").is_empty());
}

//! Attempts to reach buckets of other principals or publishers, and to exceed the grant or limit of
//! a tool's own buckets.

use serde_json::{Value, json};
use toolward_host::{Host, LOCAL, Limits, Request};
use toolward_state::{Access, Store};

use crate::stored_bucket::OpenBucket as _;

use crate::world::{Bundle, Guest, call, error};

const TOOL: &str = "hostile.buckets";
const THEIRS: &str = "what others keep";

/// A tool that declares `counters`, and a store that also has other data.
struct World {
    store: Store,
    host: Host,
    bundle: Bundle,
}

impl World {
    fn new(to_write: bool, limits: Limits) -> Self {
        let (tool, grant) = match to_write {
            true => (
                "mutates: [\"database:counters\"]\napproval: on-mutate\n",
                "mutates = [\"database:counters\"]\n",
            ),
            false => (
                "requires:\n  database: [counters]\n",
                "requires = [\"database:counters\"]\n",
            ),
        };
        let bundle = Bundle::of(TOOL, Guest::Buckets, tool, "");
        let store = Store::in_memory().unwrap();
        let host = bundle
            .builder(&format!(
                "[[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\n{grant}"
            ))
            .buckets(store.clone())
            .limits(limits)
            .build()
            .unwrap();
        let world = Self {
            store,
            host,
            bundle,
        };
        let own = world.bundle.publisher();
        for (owner, principal, name) in [
            ("somebody", LOCAL, "counters"),
            (own.as_str(), "bob", "counters"),
            (own.as_str(), LOCAL, "others"),
        ] {
            world.put(owner, principal, name);
        }
        world
    }

    fn put(&self, owner: &str, principal: &str, name: &str) {
        let limits = toolward_state::Limits::default();
        self.store
            .bucket(owner, principal, name, Access::Write, limits)
            .set("key", THEIRS.as_bytes())
            .unwrap();
    }

    fn get(&self, owner: &str, principal: &str, name: &str, key: &str) -> Option<Vec<u8>> {
        let limits = toolward_state::Limits::default();
        self.store
            .bucket(owner, principal, name, Access::Read, limits)
            .get(key)
            .unwrap()
    }

    async fn kv(&self, operation: Value) -> Value {
        let mut input = operation;
        input["do"] = json!("kv");
        let reply = call(&self.host, TOOL, input).await;
        assert!(!reply.envelope().to_string().contains(THEIRS), "{reply:?}");
        reply.result.unwrap().structured["value"].clone()
    }

    /// Asserts that the other buckets still have their data, and have no key `new`.
    fn assert_untouched(&self) {
        let own = self.bundle.publisher();
        for (owner, principal, name) in [
            ("somebody", LOCAL, "counters"),
            (own.as_str(), "bob", "counters"),
            (own.as_str(), LOCAL, "others"),
        ] {
            let kept = self.get(owner, principal, name, "key");
            assert_eq!(kept.as_deref(), Some(THEIRS.as_bytes()), "{owner} {name}");
            assert_eq!(self.get(owner, principal, name, "new"), None);
        }
    }
}

const CHANGES: [&str; 5] = ["set", "delete", "increment", "set-many", "delete-many"];

#[tokio::test(flavor = "multi_thread")]
async fn only_the_declared_bucket_can_be_opened_however_its_name_is_written() {
    let world = World::new(true, Limits::default());
    for bucket in [
        "others",
        "Counters",
        "counters ",
        "counters/../others",
        "somebody/counters",
        "*",
        "",
        "counters\u{0}",
        "' OR 1=1 --",
    ] {
        for op in [
            "open",
            "get",
            "exists",
            "list",
            "set",
            "delete",
            "increment",
        ] {
            let input =
                json!({"do": "kv", "op": op, "bucket": bucket, "key": "key", "text": "x", "n": 1});
            let reply = call(&world.host, TOOL, input).await;
            let kind = reply
                .metadata
                .violations
                .first()
                .map(|found| found.kind.as_str());
            assert_eq!(kind, Some("database"), "{op} {bucket:?}");
            let got = reply.result.unwrap().structured;
            assert_eq!(
                got["value"]["err"],
                json!("access-denied"),
                "{op} {bucket:?}"
            );
        }
    }
    world.assert_untouched();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_of_the_same_name_of_another_publisher_or_principal_is_another() {
    let world = World::new(true, Limits::default());
    let got = world
        .kv(json!({"op": "get", "bucket": "counters", "key": "key"}))
        .await;
    assert_eq!(got, json!({"ok": null}));
    let got = world.kv(json!({"op": "list", "bucket": "counters"})).await;
    assert_eq!(got["ok"]["count"], json!(0), "{got}");
    for op in CHANGES {
        let input = json!({"op": op, "bucket": "counters", "key": "mine", "keys": ["mine"], "text": "x", "n": 1});
        world.kv(input).await;
    }
    world.assert_untouched();

    // A call by `ann` writes to the bucket of `ann`, and to no other principal's bucket.
    let own = world.bundle.publisher();
    let set = json!({"do": "kv", "op": "set", "bucket": "counters", "key": "new", "text": "ann's"});
    let request = Request::with_value(TOOL, set).principal("ann");
    assert!(world.host.call(request).await.result.is_ok());
    assert!(world.get(&own, "ann", "counters", "new").is_some());
    assert!(world.get(&own, LOCAL, "counters", "new").is_none());
    world.assert_untouched();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_changed_through_a_grant_to_read() {
    let world = World::new(false, Limits::default());
    let own = world.bundle.publisher();
    let limits = toolward_state::Limits::default();
    let bucket = world
        .store
        .bucket(&own, LOCAL, "counters", Access::Write, limits);
    bucket.set("a", b"1").unwrap();
    for op in CHANGES {
        let input = json!({"do": "kv", "op": op, "bucket": "counters", "key": "a", "keys": ["a"], "text": "x", "n": 1});
        let reply = call(&world.host, TOOL, input).await;
        assert!(reply.metadata.violations_total > 0, "{op}");
        let got = reply.result.unwrap().structured;
        assert_eq!(got["value"]["err"], json!("access-denied"), "{op}: {got}");
        assert_eq!(bucket.get("a").unwrap().unwrap(), b"1", "{op}");
    }
    let got = world
        .kv(json!({"op": "get", "bucket": "counters", "key": "a"}))
        .await;
    assert_eq!(got["ok"]["text"], json!("1"), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_holds_so_much_and_no_more() {
    let limits = Limits {
        bucket_bytes: 200_000,
        bucket_keys: 20,
        ..Limits::default()
    };
    let world = World::new(true, limits);
    let own = world.bundle.publisher();
    for (op, n) in [("fill", 1_000_000), ("fill-keys", 100)] {
        // The call may end at the limit or get an error. Only the stored data counts.
        let input = json!({"do": "kv", "op": op, "bucket": "counters", "key": "k", "n": n});
        let _ = call(&world.host, TOOL, input).await;
        let limits = toolward_state::Limits::default();
        let bucket = world
            .store
            .bucket(&own, LOCAL, "counters", Access::Read, limits);
        let keys = bucket.list_keys(None).unwrap().keys;
        assert!(!keys.is_empty() && keys.len() <= 20, "{op}: {}", keys.len());
        let bytes: usize = keys
            .iter()
            .map(|key| bucket.get(key).unwrap().map_or(0, |value| value.len()))
            .sum();
        assert!(bytes <= 200_000, "{op}: {bytes}");
    }
    let flood = json!({"do": "kv", "op": "open-many", "bucket": "counters", "n": 100_000});
    let error = error(&world.host, TOOL, flood).await;
    assert_eq!(error.limit.unwrap().limit, "resources", "{error:?}");
    world.assert_untouched();
}

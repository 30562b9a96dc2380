//! Buckets, from the policy to the guest: the hostile driver of `tests/guests/hostile-kv` behind
//! separate contracts.

use std::path::Path;

use serde_json::{Value, json};
use toolward_host::{Host, Request};
use toolward_policy::Policy;
use toolward_state::{Access, Limits, Store};

#[expect(dead_code, reason = "the tests of buckets use all of it")]
#[path = "../../../state/tests/suite/bucket.rs"]
mod stored_bucket;

use self::stored_bucket::OpenBucket as _;

use crate::fixture::{Extra, Fixture};

fn wasm() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/guests/hostile-kv/drivers/hostile-kv/driver.wasm");
    std::fs::read(&path)
        .unwrap_or_else(|_| panic!("{} is missing: run `cargo xtask guests`", path.display()))
}

/// A host whose tool declares these lines, and whose policy grants these capabilities.
fn host(store: &Store, declared: &str, granted: &str) -> (Fixture, Host) {
    let fixture = Fixture::new(Extra {
        tool: declared,
        ..Extra::default()
    });
    fixture.write("drivers/hostile/driver.wasm", wasm());
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = format!("[[grant]]\npublisher = {publisher:?}\npreapproved = true\n{granted}\n");
    let policy = Policy::from_toml(&policy).unwrap();
    let host = fixture
        .builder()
        .policy(policy)
        .buckets(store.clone())
        .build()
        .unwrap();
    (fixture, host)
}

async fn call(host: &Host, principal: &str, mut input: Value) -> Value {
    input["do"] = json!("kv");
    let request = Request::with_value("hostile.run", input).principal(principal);
    match host.call(request).await.result {
        Ok(output) => output.structured["value"].clone(),
        Err(error) => panic!("{error:#?}"),
    }
}

#[tokio::test]
async fn what_a_call_writes_the_next_call_of_that_principal_reads_and_no_other() {
    let store = Store::in_memory().unwrap();
    let declared = "mutates: [\"database:counters\"]\n";
    let granted = "mutates = [\"database:counters\"]";
    let (_fixture, host) = host(&store, declared, granted);
    let increment = json!({"op": "increment", "bucket": "counters", "key": "k", "n": 2});
    for (principal, expected) in [("alice", 2), ("alice", 4), ("bob", 2)] {
        let value = call(&host, principal, increment.clone()).await;
        assert!(value.to_string().contains(&expected.to_string()), "{value}");
    }
    let get = json!({"op": "get", "bucket": "counters", "key": "k"});
    let value = call(&host, "alice", get).await;
    assert!(value.to_string().contains("\"text\":\"4\""), "{value}");
}

#[tokio::test]
async fn a_bucket_that_was_not_granted_is_denied_recorded_and_left_alone() {
    let store = Store::in_memory().unwrap();
    let declared = "requires: { database: [counters] }\n";
    let granted = "requires = [\"database:counters\"]";
    let (fixture, host) = host(&store, declared, granted);
    let publisher = format!("dev:{}", fixture.path().display());
    let kept = |name: &str| {
        let limits = Limits::default();
        store.bucket(&publisher, "alice", name, Access::Write, limits)
    };
    for name in ["counters", "other"] {
        kept(name).set("k", b"kept").unwrap();
        let set = json!({"op": "set", "bucket": name, "key": "k", "text": "new"});
        let value = call(&host, "alice", set).await;
        assert!(value.to_string().contains("access-denied"), "{value}");
        assert_eq!(kept(name).get("k").unwrap().unwrap(), b"kept");
    }
    let get = json!({"op": "get", "bucket": "counters", "key": "k"});
    let value = call(&host, "alice", get).await;
    assert!(value.to_string().contains("kept"), "{value}");
    let get = json!({"op": "get", "bucket": "other", "key": "k"});
    let value = call(&host, "alice", get).await;
    assert!(value.to_string().contains("access-denied"), "{value}");
}

#[tokio::test]
async fn filling_a_bucket_ends_at_its_quota() {
    let store = Store::in_memory().unwrap();
    let declared = "mutates: [\"database:counters\"]\n";
    let granted = "mutates = [\"database:counters\"]";
    let (_fixture, host) = host(&store, declared, granted);
    let fill = json!({"op": "fill", "bucket": "counters", "key": "k", "n": 20 << 20});
    let value = call(&host, "alice", fill).await;
    assert!(
        value.to_string().contains("quota `bucket_bytes` exceeded"),
        "{value}"
    );
    let keys = json!({"op": "list", "bucket": "counters"});
    let value = call(&host, "alice", keys).await;
    assert!(value.to_string().contains("\"count\":255"), "{value}");
}

#[tokio::test]
async fn operations_without_end_end_the_call() {
    let store = Store::in_memory().unwrap();
    let declared = "mutates: [\"database:counters\"]\n";
    let granted = "mutates = [\"database:counters\"]";
    let (_fixture, host) = host(&store, declared, granted);
    let input = json!({"do": "kv", "op": "open-many", "bucket": "counters", "n": 2_000_000});
    let reply = host.call(Request::with_value("hostile.run", input)).await;
    let error = reply.result.expect_err("too many");
    let limit = error.limit.expect("a limit");
    assert!(
        ["resources", "bucket_operations"].contains(&limit.limit.as_str()),
        "{error:?}"
    );
}

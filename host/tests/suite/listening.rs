//! A listener for finished calls is called exactly once for each call, however the call ends.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolward_host::{
    CallFacts, CallListener, CallStage, Cancellation, ErrorCode, Host, Reply, Request,
};
use toolward_policy::Policy;

use crate::fixture::{Extra, Fixture};

/// Remembers the finished calls.
#[derive(Default)]
struct Heard(Mutex<Vec<CallFacts>>);

impl Heard {
    fn all(&self) -> Vec<CallFacts> {
        self.0.lock().unwrap().clone()
    }

    /// The only call that finished since the last time.
    fn only(&self) -> CallFacts {
        let mut heard = std::mem::take(&mut *self.0.lock().unwrap());
        assert_eq!(heard.len(), 1, "{heard:#?}");
        heard.remove(0)
    }
}

impl CallListener for Heard {
    fn finished(&self, call: &CallFacts) {
        self.0.lock().unwrap().push(call.clone());
    }
}

/// Panics for each call.
struct Panics;

impl CallListener for Panics {
    fn finished(&self, _: &CallFacts) {
        panic!("in a test")
    }
}

/// A tool, another tool that it may call, and a third tool without grants.
fn host() -> (Fixture, Host, Arc<Heard>) {
    let fixture = Fixture::new(Extra {
        tool: "requires: { tools: [hostile.other] }\n",
        ..Extra::default()
    });
    fixture.tool("hostile.other", "");
    fixture.driver("other", "hostile.other", Extra::default());
    fixture.tool("hostile.closed", "requires: { tools: [hostile.none] }\n");
    fixture.driver("closed", "hostile.closed", Extra::default());
    let publisher = format!("dev:{}", fixture.path().display());
    let policy =
        format!("[[grant]]\npublisher = {publisher:?}\nrequires = [\"tool:hostile.other\"]\n");
    let heard = Arc::new(Heard::default());
    let host = fixture
        .builder()
        .policy(Policy::from_toml(&policy).unwrap())
        .listener(heard.clone())
        .build()
        .unwrap();
    (fixture, host, heard)
}

async fn call(host: &Host, tool: &str, input: Value) -> Reply {
    host.call(Request::with_value(tool, input).principal("ada"))
        .await
}

#[tokio::test]
async fn a_call_that_succeeds_is_told_with_what_it_was_and_took() {
    let (_fixture, host, heard) = host();
    let reply = call(&host, "hostile.run", json!({"do": "echo"})).await;
    let told = heard.only();
    let meta = reply.metadata;
    assert_eq!(told.invocation, meta.invocation);
    assert_eq!((told.depth(), &told.parent), (0, &None));
    assert_eq!(&*told.principal, "ada");
    assert_eq!(told.tool_id.as_deref(), Some("hostile.run@1"));
    assert_eq!(
        (told.tool_bundle.as_deref(), told.bundle.as_deref()),
        (meta.bundle.as_deref(), meta.bundle.as_deref())
    );
    assert_eq!(told.driver.as_deref(), meta.driver.as_deref());
    assert_eq!((&told.error, told.stage), (&None, CallStage::Run));
    assert_eq!((told.attempts, told.fuel), (1, meta.fuel));
    assert_eq!(told.peak_memory, meta.peak_memory);
    assert!(told.fuel > 0 && told.peak_memory > 0 && told.duration() > Duration::ZERO);
    let started = SystemTime::UNIX_EPOCH + Duration::from_micros(told.started);
    assert!(started.elapsed().unwrap() < Duration::from_secs(600));
}

#[tokio::test]
async fn a_call_that_ends_in_an_error_is_told_with_its_code_and_stage() {
    let (_fixture, host, heard) = host();
    for (tool, input, stage) in [
        ("hostile.run", json!({"do": "trap"}), CallStage::Run),
        ("hostile.run", json!("no object"), CallStage::Validate),
        (
            "hostile.closed",
            json!({"do": "echo"}),
            CallStage::Authorise,
        ),
        ("hostile.unknown", json!({}), CallStage::Resolve),
    ] {
        let reply = call(&host, tool, input).await;
        let error = reply.result.unwrap_err();
        let told = heard.only();
        assert_eq!(
            (told.error, told.stage),
            (Some(error.code), stage),
            "{tool}"
        );
        assert_eq!(told.attempts, u32::from(stage == CallStage::Run));
        assert_eq!(told.tool_id.is_none(), stage == CallStage::Resolve);
    }
}

#[tokio::test]
async fn a_withdrawn_bundle_is_told_as_such() {
    let (_fixture, host, heard) = host();
    let bundle = host.tool("hostile.run").unwrap().bundle.clone();
    assert!(host.withdraw(&bundle, "revoked"));
    let reply = call(&host, "hostile.run", json!({"do": "echo"})).await;
    let told = heard.only();
    assert_eq!(told.error, Some(reply.result.unwrap_err().code));
    assert_eq!(told.error, Some(ErrorCode::WITHDRAWN));
    assert_eq!(told.stage, CallStage::Resolve);
}

#[tokio::test]
async fn a_nested_call_is_told_before_its_caller_and_names_it() {
    let (_fixture, host, heard) = host();
    let nested = json!({"do": "tool", "name": "hostile.other", "value": {"do": "echo"}});
    let reply = call(&host, "hostile.run", nested).await;
    reply.result.unwrap();
    let heard = heard.all();
    let [below, above] = &heard[..] else {
        panic!("{heard:#?}");
    };
    assert_eq!(below.parent.as_deref(), Some(&*above.invocation));
    assert_eq!((below.depth(), above.depth()), (1, 0));
    assert_eq!(below.tool_id.as_deref(), Some("hostile.other@1"));
    assert_eq!(&*below.principal, "ada");
    assert_eq!((&below.error, &above.error), (&None, &None));
    assert_eq!(above.invocation, reply.metadata.invocation);
}

#[tokio::test]
async fn calls_whose_future_is_dropped_are_told_once_each_as_cancelled() {
    let (_fixture, host, heard) = host();
    // Compiles the driver, so that the call below does not wait for the compiler.
    let warm = json!({"do": "tool", "name": "hostile.other", "value": {"do": "echo"}});
    call(&host, "hostile.run", warm).await.result.unwrap();
    heard.0.lock().unwrap().clear();

    let sleeps = json!({"do": "sleep", "n": 60_000});
    let nested = json!({"do": "tool", "name": "hostile.other", "value": sleeps});
    let running = call(&host, "hostile.run", nested);
    tokio::time::timeout(Duration::from_millis(500), running)
        .await
        .expect_err("still asleep");
    let heard = heard.all();
    let [below, above] = &heard[..] else {
        panic!("{heard:#?}");
    };
    assert_eq!(below.parent.as_deref(), Some(&*above.invocation));
    for (told, reason) in [(below, Cancellation::Parent), (above, Cancellation::Caller)] {
        assert_eq!(told.error, Some(ErrorCode::CANCELED));
        assert_eq!(told.cancellation, Some(reason));
        assert_eq!((told.stage, told.attempts), (CallStage::Run, 1));
    }
}

#[tokio::test]
async fn a_listener_that_panics_fails_neither_the_call_nor_other_listeners() {
    let (fixture, _, heard) = host();
    let builder = fixture.builder().listener(Arc::new(Panics));
    let host = builder.listener(heard.clone()).build().unwrap();
    call(&host, "hostile.other", json!({"do": "echo"}))
        .await
        .result
        .unwrap();
    assert_eq!(heard.only().error, None);
}

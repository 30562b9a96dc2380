//! Calls that were dropped: their observer is notified, and the log has one line for each.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolward_host::{
    CallFacts, Cancellation, ErrorClass, ErrorCode, Host, Observer, Request, SharedCancellation,
};
use toolward_policy::Policy;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fixture::{Extra, Fixture};

/// Remembers the cancelled calls.
#[derive(Default)]
struct Told(Mutex<Vec<CallFacts>>);

impl Observer for Told {
    fn canceled(&self, call: &CallFacts) {
        self.0.lock().unwrap().push(call.clone());
    }
}

/// Keeps the host's lines of the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("toolward_host")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A tool, and another that it may call.
fn host() -> (Fixture, Host) {
    let fixture = Fixture::new(Extra {
        tool: "requires: { tools: [hostile.other] }\n",
        ..Extra::default()
    });
    fixture.tool("hostile.other", "");
    fixture.driver("other", "hostile.other", Extra::default());
    let publisher = format!("dev:{}", fixture.path().display());
    let policy =
        format!("[[grant]]\npublisher = {publisher:?}\nrequires = [\"tool:hostile.other\"]\n");
    let policy = Policy::from_toml(&policy).unwrap();
    let host = fixture.builder().policy(policy).build().unwrap();
    (fixture, host)
}

#[tokio::test]
async fn a_call_that_is_dropped_and_those_that_it_made_end_as_cancelled() {
    let (_fixture, host) = host();
    // Compiles the driver, so that the call below does not wait for the compiler.
    let warm = Request::with_value(
        "hostile.run",
        json!({"do": "tool", "name": "hostile.other", "value": {"do": "echo"}}),
    );
    host.call(warm).await.result.unwrap();

    let (told, log) = (Arc::new(Told::default()), Log::default());
    let _logged = tracing::subscriber::set_default(log.clone());
    let sleeps = json!({"do": "sleep", "n": 60_000});
    let call = Request::with_value(
        "hostile.run",
        json!({"do": "tool", "name": "hostile.other", "value": sleeps}),
    );
    let call = host.call(call.observer(told.clone()));
    tokio::time::timeout(Duration::from_millis(500), call)
        .await
        .expect_err("still asleep");

    let [below, call] = &told.0.lock().unwrap()[..] else {
        panic!("{:?}", told.0.lock().unwrap());
    };
    assert_eq!(&*below.tool, "hostile.other@1.0.0");
    assert_eq!(*below.called_by, ["hostile.run@1"]);
    assert_eq!(&*call.tool, "hostile.run@1.0.0");
    assert!(call.called_by.is_empty());
    assert_ne!(below.invocation, call.invocation);
    let log = log.0.lock().unwrap();
    assert_eq!(log.len(), 2, "{log:?}");
    assert_eq!(
        (below.cancellation, call.cancellation),
        (Some(Cancellation::Parent), Some(Cancellation::Caller))
    );
    for (canceled, line) in [below, call].into_iter().zip(&*log) {
        assert_eq!(canceled.error, Some(ErrorCode::CANCELED));
        assert_eq!(canceled.class, Some(ErrorClass::Canceled));
        assert!(canceled.attempts == 1 && canceled.milliseconds > 0.0);
        assert!(line.contains(&canceled.invocation), "{line}");
        assert!(line.contains("toolward:canceled"), "{line}");
        let reason = format!(
            "cancel_reason={:?}",
            canceled.cancellation.unwrap().as_str()
        );
        assert!(line.contains(&reason), "{line}");
    }
}

#[tokio::test]
async fn the_first_reason_that_is_set_is_why_a_call_was_cancelled() {
    let (_fixture, host) = host();
    let sleeps = json!({"do": "sleep", "n": 60_000});
    for (set, expected) in [
        (&[][..], Cancellation::Shutdown),
        (
            &[Cancellation::Disconnected, Cancellation::Caller][..],
            Cancellation::Disconnected,
        ),
    ] {
        let told = Arc::new(Told::default());
        let cancellation = SharedCancellation::unless_set(Cancellation::Shutdown);
        let call = Request::with_value("hostile.run", sleeps.clone())
            .observer(told.clone())
            .cancellation(cancellation.clone());
        let mut call = Box::pin(host.call(call));
        tokio::time::timeout(Duration::from_millis(500), call.as_mut())
            .await
            .expect_err("still asleep");
        for reason in set {
            cancellation.set(*reason);
        }
        drop(call);
        let told = told.0.lock().unwrap();
        assert_eq!(
            told.iter().map(|one| one.cancellation).collect::<Vec<_>>(),
            [Some(expected)]
        );
    }
}

#[tokio::test]
async fn a_call_that_ends_is_not_cancelled_whatever_its_result() {
    let (_fixture, host) = host();
    let (told, log) = (Arc::new(Told::default()), Log::default());
    let _logged = tracing::subscriber::set_default(log.clone());
    for (tool, input) in [
        ("hostile.run", json!({"do": "echo"})),
        ("hostile.run", json!({"do": "trap"})),
        ("hostile.none", json!({})),
    ] {
        let call = Request::with_value(tool, input).observer(told.clone());
        drop(host.call(call).await);
    }
    assert!(told.0.lock().unwrap().is_empty());
    let log = log.0.lock().unwrap();
    assert!(!log.iter().any(|line| line.contains("canceled")), "{log:?}");
}

//! Readers of events get each step of each call, and nothing of its content.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolward_host::secrets::Sources;
use toolward_host::{
    Answerable, ApprovalRequest, Approver, CallDecision, CallEvent, CallEventKind, Cancellation,
    EventFilter, Events, Heard, Host, HostBuilder, PrincipalId, Reply, Request, SharedState,
    Verdict,
};
use toolward_policy::Policy;

use crate::fixture::{Extra, Fixture};

/// A text that must be in no event.
const MARK: &str = "m4rk-of-the-test";

const SECRET: &str = "s3cr3t-value-0123456789";

struct Says(Verdict);

impl Approver for Says {
    fn ask<'a>(
        &'a self,
        _: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async { self.0.clone() })
    }
}

/// Three tools: the first may call another tool, ask, and see a secret; the second needs approval;
/// the third has no grants.
fn builder(fixture: &Fixture) -> HostBuilder {
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = format!(
        "[[secret]]\nslug = \"token\"\npublisher = {publisher:?}\nenv = \"TOKEN\"\n\
         origin = \"https://api.test\"\nheader = \"authorization\"\n\
         [[grant]]\npublisher = {publisher:?}\npreapproved = true\n\
         requires = [\"user:form\", \"secret:token\", \"tool:hostile.other\"]\nreveal = [\"token\"]\n"
    );
    let policy = Policy::from_toml(&policy).unwrap();
    let secrets = Sources::new(&policy, "/".as_ref(), |_| Some(SECRET.to_owned()));
    fixture.builder().policy(policy).secrets(secrets)
}

fn fixture() -> Fixture {
    let fixture = Fixture::new(Extra {
        tool: "requires: { user: [form], secrets: [token], tools: [hostile.other] }\n",
        ..Extra::default()
    });
    fixture.tool("hostile.other", "");
    fixture.driver("other", "hostile.other", Extra::default());
    fixture.tool("hostile.approved", "approval: always\n");
    fixture.driver("approved", "hostile.approved", Extra::default());
    fixture.tool("hostile.closed", "requires: { tools: [hostile.none] }\n");
    fixture.driver("closed", "hostile.closed", Extra::default());
    fixture
}

fn host() -> (Fixture, Host) {
    let fixture = fixture();
    let host = builder(&fixture).build().unwrap();
    (fixture, host)
}

fn request(tool: &str, input: Value) -> Request {
    Request::with_value(tool, input).principal("ada")
}

async fn call(host: &Host, tool: &str, input: Value) -> Reply {
    host.call(request(tool, input)).await
}

/// The events since this was last called. None may be lost.
fn heard(events: &mut Events) -> Vec<Arc<CallEvent>> {
    let mut all = Vec::new();
    while let Some(heard) = events.try_next() {
        match heard {
            Heard::Event(event) => all.push(event),
            Heard::Lost(lost) => panic!("lost {lost}"),
        }
    }
    all
}

/// The event classes without their common prefix.
fn classes(events: &[Arc<CallEvent>]) -> Vec<&'static str> {
    let short = |class: &'static str| {
        let class = class.strip_prefix("tool.").unwrap();
        class.strip_prefix("invocation.").unwrap_or(class)
    };
    let classes = events.iter().map(|event| event.kind.class());
    classes.map(short).collect()
}

const READY: [&str; 4] = [
    "planned",
    "selected",
    "arguments_ready",
    "permission.decided",
];

/// The classes of an allowed call's events: those up to its start, then `rest`.
fn running(rest: &[&'static str]) -> Vec<&'static str> {
    [&READY[..], &["queued", "started"], rest].concat()
}

#[tokio::test]
async fn each_way_through_the_stages_is_told_step_by_step() {
    let (_fixture, host) = host();
    let mut events = host.events(EventFilter::all());
    let end = ["result.created", "failed"];
    let steps = json!({"do": "steps", "steps": [
        {"do": "progress", "n": 1}, {"do": "progress", "n": 2}, {"do": "echo"},
    ]});
    let partial = json!({"do": "error", "name": "partial_failure", "value": {"message": "half"}});
    let revealed = json!({"do": "echo", "value": "Bearer ${reveal:token}"});
    let cases = [
        (
            "hostile.run",
            json!({"do": "echo"}),
            running(&["result.created", "succeeded"]),
        ),
        (
            "hostile.run",
            steps,
            running(&["progress", "progress", "result.created", "succeeded"]),
        ),
        ("hostile.run", json!({"do": "trap"}), running(&end)),
        (
            "hostile.run",
            partial,
            running(&["partial_result", "result.created", "failed"]),
        ),
        (
            "hostile.run",
            revealed,
            running(&["result.redacted", "result.created", "succeeded"]),
        ),
        (
            "hostile.unknown",
            json!({}),
            [&["planned"], &end[..]].concat(),
        ),
        (
            "hostile.run",
            json!("no object"),
            [&["planned", "selected", "validation_failed"], &end[..]].concat(),
        ),
        (
            "hostile.closed",
            json!({"do": "echo"}),
            [&READY[..], &end[..]].concat(),
        ),
    ];
    for (tool, input, expected) in cases {
        let reply = call(&host, tool, input).await;
        let told = heard(&mut events);
        assert_eq!(classes(&told), expected, "{tool} {:?}", reply.result);
        for event in &told {
            assert_eq!(event.invocation, reply.metadata.invocation);
            assert_eq!(
                (&event.parent, event.principal),
                (&None, PrincipalId::of("ada"))
            );
        }
        let ids: Vec<&String> = told.iter().map(|event| &event.id).collect();
        assert!(ids.is_sorted(), "{ids:?}");
    }
}

#[tokio::test]
async fn a_question_to_a_person_is_told_with_its_answer_and_not_while_it_is_open() {
    let fixture = fixture();
    let last = |told: &[Arc<CallEvent>]| told.last().unwrap().kind.clone();
    for (verdict, decided, end) in [
        (Verdict::Approved, Some(CallDecision::Approved), "succeeded"),
        (Verdict::Denied(None), Some(CallDecision::Denied), "failed"),
        (Verdict::Later, None, "failed"),
    ] {
        let host = builder(&fixture).approver(Says(verdict)).build().unwrap();
        let mut events = host.events(EventFilter::all());
        drop(call(&host, "hostile.approved", json!({"do": "echo"})).await);
        let told = heard(&mut events);
        assert_eq!(classes(&told)[3], "permission.requested");
        let decisions = told.iter().filter_map(|event| match event.kind {
            CallEventKind::PermissionDecided { decision } => Some(decision),
            _ => None,
        });
        assert_eq!(decisions.collect::<Vec<_>>(), Vec::from_iter(decided));
        assert!(last(&told).class().ends_with(end), "{told:#?}");
    }
}

#[tokio::test]
async fn a_driver_that_asks_yields_and_its_call_does_not_end() {
    let (_fixture, host) = host();
    let mut events = host.events(EventFilter::all());
    let answerable = Answerable {
        form: true,
        sample: false,
        roots: false,
    };
    let ask = request("hostile.run", json!({"do": "ask"})).answerable(answerable);
    host.call(ask).await.asked.unwrap();
    let told = heard(&mut events);
    assert_eq!(classes(&told), running(&["yielded"]));
    let CallEventKind::Yielded { questions: 1 } = told.last().unwrap().kind else {
        panic!("{told:#?}");
    };
}

#[tokio::test]
async fn a_call_that_is_dropped_or_runs_too_long_ends_with_an_event_of_its_own() {
    let (_fixture, host) = host();
    drop(call(&host, "hostile.run", json!({"do": "echo"})).await);
    let mut events = host.events(EventFilter::all());
    let sleeps = json!({"do": "sleep", "n": 60_000});
    let sleeping = call(&host, "hostile.run", sleeps.clone());
    tokio::time::timeout(Duration::from_millis(500), sleeping)
        .await
        .expect_err("still asleep");
    let told = heard(&mut events);
    assert_eq!(classes(&told), running(&["result.created", "canceled"]));
    let [.., created, canceled] = &told[..] else {
        panic!("{told:#?}");
    };
    let caller = Cancellation::Caller;
    assert_eq!(
        created.kind,
        CallEventKind::ResultCreated {
            bytes: 0,
            canceled: Some(caller)
        }
    );
    assert!(matches!(canceled.kind, CallEventKind::Canceled { reason, .. } if reason == caller));

    let short = request("hostile.run", sleeps).timeout(Duration::from_millis(200));
    host.call(short).await.result.unwrap_err();
    let told = heard(&mut events);
    assert_eq!(*classes(&told).last().unwrap(), "timed_out");
    let CallEventKind::TimedOut(cost) = told.last().unwrap().kind else {
        panic!("{told:#?}");
    };
    assert!(cost.micros >= 200_000 && cost.peak_memory > 0, "{cost:?}");
}

#[tokio::test]
async fn a_called_tool_names_its_caller_and_ends_before_it() {
    let (_fixture, host) = host();
    let mut events = host.events(EventFilter::principal("ada"));
    let nested = json!({"do": "tool", "name": "hostile.other", "value": {"do": "echo"}});
    let reply = call(&host, "hostile.run", nested).await;
    let told = heard(&mut events);
    let ends: Vec<_> = told
        .iter()
        .filter(|event| matches!(event.kind, CallEventKind::Succeeded(_)))
        .collect();
    let [below, above] = &ends[..] else {
        panic!("{told:#?}");
    };
    assert_eq!(above.invocation, reply.metadata.invocation);
    assert_eq!(below.parent.as_ref(), Some(&above.invocation));
    assert_eq!(below.tool.as_deref(), Some("hostile.other@1"));
}

#[tokio::test]
async fn a_principals_reader_hears_of_no_other_and_is_not_crowded_out_by_others() {
    let (_fixture, host) = host();
    let mut own = host.events(EventFilter::principal("ada"));
    let mut all = host.events(EventFilter::all());
    for _ in 0..2000 {
        let other = Request::with_value("hostile.unknown", json!({})).principal("bob");
        host.call(other).await.result.unwrap_err();
    }
    call(&host, "hostile.unknown", json!({}))
        .await
        .result
        .unwrap_err();
    let told = heard(&mut own);
    assert_eq!(told.len(), 3);
    assert!(
        told.iter()
            .all(|event| event.principal == PrincipalId::of("ada"))
    );
    // The reader of all principals lost events, and learns how many.
    let Some(Heard::Lost(lost)) = all.try_next() else {
        panic!("nothing was lost");
    };
    let left = heard(&mut all).len() as u64;
    assert_eq!(lost + left, 3 * 2001);
}

#[tokio::test]
async fn a_reader_that_never_reads_delays_no_call() {
    let (_fixture, host) = host();
    let _idle = host.events(EventFilter::all());
    let begun = Instant::now();
    for _ in 0..10_000 {
        call(&host, "hostile.unknown", json!({}))
            .await
            .result
            .unwrap_err();
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn events_go_on_with_the_next_host_and_end_with_their_reader() {
    let (fixture, state) = (fixture(), SharedState::new());
    let first = builder(&fixture).shared_state(&state).build().unwrap();
    let mut events = first.events(EventFilter::all());
    let next = builder(&fixture).shared_state(&state).build().unwrap();
    call(&next, "hostile.unknown", json!({}))
        .await
        .result
        .unwrap_err();
    assert!(matches!(events.next().await, Heard::Event(_)));
    drop(events);
    let mut later = state.events(EventFilter::all());
    assert_eq!(later.try_next(), None);
}

#[tokio::test]
async fn nothing_that_a_caller_or_a_driver_wrote_is_in_an_event() {
    let (_fixture, host) = host();
    let mut events = host.events(EventFilter::all());
    let error = json!({"do": "error", "name": MARK.replace('-', "_"), "value": {"message": MARK}});
    let report = json!({"do": "steps", "steps": [
        {"do": "progress", "n": 1, "value": MARK}, {"do": "echo", "value": MARK},
    ]});
    let path = json!({"do": "std-fs", "op": "read", "path": format!("/{MARK}")});
    for (tool, input) in [
        ("hostile.run", error),
        ("hostile.run", report),
        ("hostile.run", path),
        (
            "hostile.run",
            json!({"do": "echo", "value": "${reveal:token}"}),
        ),
        ("hostile.run", json!([MARK])),
        (&*format!("hostile.{MARK}\n\u{202e}\u{1b}[2J"), json!({})),
    ] {
        let call = Request::with_value(tool, input).principal(MARK);
        drop(host.call(call).await);
    }
    let told = heard(&mut events);
    assert!(told.len() > 30, "{told:#?}");
    let text = format!("{told:?}");
    for hidden in [
        MARK,
        &MARK.replace('-', "_"),
        SECRET,
        "\\n",
        "\\u{202e}",
        "\\u{1b}",
    ] {
        assert!(!text.contains(hidden), "{hidden} is in {text}");
    }
    let failed = told
        .iter()
        .any(|event| matches!(event.kind, CallEventKind::Failed { code: "driver", .. }));
    assert!(failed, "{told:#?}");
}

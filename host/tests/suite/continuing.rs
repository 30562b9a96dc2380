//! Hosts that replace each other while calls of the earlier host continue.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::json;
use toolward_host::{
    Answer, Answerable, ApprovalRequest, Approver, ErrorCode, Host, Limits, Request, Resume,
    SharedState, Verdict,
};
use toolward_policy::Policy;

use crate::fixture::{Begun, Extra, Fixture, run, still_serves};

const FORM: Answerable = Answerable {
    form: true,
    sample: false,
    roots: false,
};

/// A bundle whose tool may ask.
fn fixture() -> Fixture {
    Fixture::new(Extra {
        tool: "requires: { user: [form] }\n",
        ..Extra::default()
    })
}

fn host(fixture: &Fixture, shared_state: &SharedState, limits: Limits) -> Host {
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = format!(
        "[[grant]]\npublisher = {publisher:?}\npreapproved = true\n\
         requires = [\"user:form\", \"tool:hostile.other\"]\n"
    );
    let builder = fixture
        .builder()
        .policy(Policy::from_toml(&policy).unwrap());
    let builder = builder.limits(limits).shared_state(shared_state);
    builder.build().unwrap()
}

fn digest(host: &Host) -> String {
    host.tool("hostile.run").unwrap().bundle.to_string()
}

async fn refused(host: &Host, request: Request) {
    let reply = host.call(request).await;
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::WITHDRAWN);
    assert_eq!(reply.metadata.attempts, 0);
}

fn echo() -> Request {
    Request::with_value("hostile.run", json!({"do": "echo"}))
}

#[tokio::test]
async fn a_call_that_waits_for_an_answer_on_an_earlier_host_does_not_go_on() {
    let (fixture, shared_state) = (fixture(), SharedState::new());
    let earlier = host(&fixture, &shared_state, Limits::default());
    let ask = || Request::with_value("hostile.run", json!({"do": "ask"})).answerable(FORM);
    let asked = *earlier.call(ask()).await.asked.unwrap();
    let resume = || Resume {
        asked: asked.clone(),
        answers: vec![("q".to_owned(), Answer::Declined)],
    };
    let later = host(&fixture, &shared_state, Limits::default());
    assert!(earlier.call(ask().resume(resume())).await.result.is_ok());

    assert!(later.withdraw(&digest(&later), "revoked"));
    refused(&earlier, ask().resume(resume())).await;
    assert_eq!((earlier.tools().count(), later.tools().count()), (0, 0));
}

/// Withdraws a nested tool on another host, and then approves.
struct YesTooLate(Host);

impl Approver for YesTooLate {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        if !request.called_by.is_empty() {
            assert!(self.0.withdraw(&request.bundle, "revoked"));
        }
        Box::pin(async { Verdict::Approved })
    }
}

#[tokio::test]
async fn a_tool_that_a_call_on_an_earlier_host_calls_is_refused_too() {
    let fixture = Fixture::new(Extra {
        tool: "requires: { tools: [hostile.other] }\n",
        ..Extra::default()
    });
    fixture.tool("hostile.other", "approval: always\n");
    fixture.driver("other", "hostile.other", Extra::default());
    let shared_state = SharedState::new();
    let earlier = host(&fixture, &shared_state, Limits::default());
    let later = host(&fixture, &shared_state, Limits::default());
    let input = json!({"do": "tool", "name": "hostile.other", "value": {"do": "echo"}});
    let approver = Arc::new(YesTooLate(later));
    let request = Request::with_value("hostile.run", input).approver(approver);
    let text = earlier.call(request).await.result.unwrap().structured;
    assert!(text.to_string().contains("toolward:withdrawn"), "{text}");
}

#[tokio::test]
async fn a_bundle_that_comes_back_is_served_by_later_hosts_and_by_no_earlier_one() {
    let (fixture, shared_state) = (fixture(), SharedState::new());
    let earlier = host(&fixture, &shared_state, Limits::default());
    assert!(shared_state.withdraw(&digest(&earlier), "removed"));
    let later = host(&fixture, &shared_state, Limits::default());
    assert!(later.call(echo()).await.result.is_ok());
    refused(&earlier, echo()).await;

    assert!(earlier.withdraw(&digest(&later), "revoked"));
    refused(&later, echo()).await;
    assert!(!shared_state.withdraw(&digest_of(&fixture), "again"));
}

fn digest_of(fixture: &Fixture) -> String {
    fixture.content().manifest_digest.to_string()
}

#[tokio::test]
async fn all_that_is_served_is_taken_back_at_once() {
    let (fixture, shared_state) = (fixture(), SharedState::new());
    let earlier = host(&fixture, &shared_state, Limits::default());
    let later = host(&fixture, &shared_state, Limits::default());
    shared_state.withdraw_all("nobody looks after it");
    refused(&earlier, echo()).await;
    refused(&later, echo()).await;
    let other = host(&fixture, &SharedState::new(), Limits::default());
    still_serves(&other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_run_on_an_earlier_host_count_against_the_limits_of_later_ones() {
    let (fixture, shared_state) = (fixture(), SharedState::new());
    let of = |concurrency: u32, per_tool: u32| Limits {
        concurrency,
        concurrency_per_tool: per_tool,
        queue: 0,
        ..Limits::default()
    };
    let one = |limits: Limits, shared_state: &SharedState| host(&fixture, shared_state, limits);
    for limits in [of(1, 9), of(9, 1)] {
        let shared_state = SharedState::new();
        let earlier = one(limits.clone(), &shared_state);
        still_serves(&earlier).await;
        let later = one(limits.clone(), &shared_state);
        let slow = Begun::steps(&earlier, json!([{"do": "sleep", "n": 5000}])).await;
        let fast = run(&later, json!({"do": "echo"})).await;
        assert_eq!(fast.result.unwrap_err().code, ErrorCode::RATE_LIMITED);
        let slow = slow.reply().await;
        assert!(slow.result.is_ok(), "{:?}", slow.result);
        still_serves(&later).await;
    }
    // Under other limits, calls are counted separately.
    let earlier = one(of(1, 1), &shared_state);
    still_serves(&earlier).await;
    let later = one(of(2, 2), &shared_state);
    let slow = Begun::steps(&earlier, json!([{"do": "sleep", "n": 300}])).await;
    let fast = run(&later, json!({"do": "echo"})).await;
    assert!(slow.reply().await.result.is_ok() && fast.result.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_taken_back_between_two_attempts_is_not_tried_again() {
    let fixture = Fixture::new(Extra {
        tool: "retry:\n  max_attempts: 3\n  backoff: fixed\n  initial_ms: 1000\nidempotent: true\n",
        ..Extra::default()
    });
    let limits = Limits {
        concurrency: 1,
        queue: 0,
        ..Limits::default()
    };
    let host = fixture.builder().limits(limits).build().unwrap();
    still_serves(&host).await;
    let running = tokio::spawn({
        let host = host.clone();
        async move {
            loop {
                // This call waits for `n` milliseconds before it fails.
                let reply = run(&host, json!({"do": "slow-flaky", "n": 3000})).await;
                let code = reply.result.as_ref().map_err(|error| error.code.clone());
                // One of the calls below may have the only slot.
                if code.err() != Some(ErrorCode::RATE_LIMITED) {
                    return reply;
                }
            }
        }
    });
    // Repeats until a call is refused, because the first attempt then has the only slot.
    while host.call(echo()).await.result.is_ok() {}
    assert!(host.withdraw(&digest_of(&fixture), "revoked"));
    let reply = running.await.unwrap();
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::WITHDRAWN);
    assert_eq!(reply.metadata.attempts, 1);
}

#[tokio::test]
async fn an_engine_that_was_put_off_is_made_by_the_first_call_or_when_it_is_asked_for() {
    let fixture = Fixture::new(Extra::default());
    let host = fixture.builder().defer_engine().build().unwrap();
    assert!(host.call(echo()).await.result.is_ok());
    let host = fixture.builder().defer_engine().build().unwrap();
    host.make_engine().unwrap();
    host.make_engine().unwrap();
    assert!(host.call(echo()).await.result.is_ok());
}

#[tokio::test]
async fn more_slots_than_any_machine_has_address_space_for_are_served_without_a_pool() {
    let fixture = Fixture::new(Extra::default());
    let limits = Limits {
        concurrency: 1 << 20,
        ..Limits::default()
    };
    let host = fixture.builder().limits(limits).build().unwrap();
    for _ in 0..3 {
        assert!(host.call(echo()).await.result.is_ok());
    }
    // Code compiled for this engine is not used by an engine with a pool.
    let pooled = fixture.builder().build().unwrap();
    assert!(pooled.call(echo()).await.result.is_ok());
}

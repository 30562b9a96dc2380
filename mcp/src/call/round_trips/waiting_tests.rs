//! A state of the host that waits or fails: no person's answer is lost, and no question stays open.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::ErrorCode as Fault;
use serde_json::json;
use tokio::sync::Notify;
use toolward_state::{
    BoxFuture, Local, MAX_QUESTIONS_PER_TOOL, Opening, QuestionId, RememberedApproval,
};

use super::*;
use crate::approval::prompt::ONCE;
use crate::call::testing::{
    Scripted, asks, code, decided, echo, ended, fault, host, session, stateless,
};

/// How an operation of a state fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fails {
    /// It waits forever, before or after the operation.
    WaitsBefore,
    WaitsAfter,
    /// It completes the operation, but returns an error.
    Forgets,
    Late,
}

/// A state whose next operation of a kind fails.
struct Unreliable {
    local: Local,
    opening: Mutex<Option<Fails>>,
    answering: Mutex<Option<Fails>>,
    keys: Mutex<Option<Fails>>,
    forgot: AtomicBool,
    waits: Notify,
    /// How long after the deadline of its opening each question stays open.
    open_for: Mutex<Vec<std::time::Duration>>,
}

impl Default for Unreliable {
    fn default() -> Self {
        Self {
            local: Local::new(None, None),
            opening: Mutex::default(),
            answering: Mutex::default(),
            keys: Mutex::default(),
            forgot: AtomicBool::default(),
            waits: Notify::default(),
            open_for: Mutex::default(),
        }
    }
}

impl Unreliable {
    fn next(&self, operation: &Mutex<Option<Fails>>) -> Option<Fails> {
        let fails = operation.lock().unwrap().take();
        if matches!(fails, Some(Fails::WaitsBefore | Fails::WaitsAfter)) {
            self.waits.notify_one();
        }
        fails
    }

    fn round_trips(self: &Arc<Self>) -> RoundTrips {
        RoundTrips {
            keys: self.clone(),
            approvals: self.clone(),
        }
    }
}

fn failed<T>() -> Result<T, StateError> {
    Err(StateError::Failed("it is down".into()))
}

impl Approvals for Unreliable {
    fn open(
        &self,
        question: QuestionId,
        also: ApprovalKey,
        until: Instant,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Opening, StateError>> {
        let open_for = until.saturating_duration_since(deadline);
        self.open_for.lock().unwrap().push(open_for);
        Box::pin(async move {
            if self.forgot.swap(false, Ordering::Relaxed) {
                return failed();
            }
            let fails = self.next(&self.opening);
            let opened = self.local.open(question, also, until, deadline).await;
            match fails {
                None => opened,
                Some(Fails::Forgets) => {
                    self.forgot.store(true, Ordering::Relaxed);
                    Err(StateError::Unknown)
                }
                Some(_) => std::future::pending().await,
            }
        })
    }

    fn answer(
        &self,
        question: QuestionId,
        answer: PersonsAnswer,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<bool, StateError>> {
        match self.next(&self.answering) {
            None => self.local.answer(question, answer, deadline),
            Some(_) => Box::pin(std::future::pending()),
        }
    }

    fn remember(
        &self,
        principal: Arc<str>,
        tool: ApprovalKey,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Option<std::time::SystemTime>, StateError>> {
        self.local.remember(principal, tool, deadline)
    }

    fn remembered<'a>(
        &'a self,
        principal: &'a str,
        tool: ApprovalKey,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Option<RememberedApproval>, StateError>> {
        self.local.remembered(principal, tool, deadline)
    }
}

impl Keys for Unreliable {
    fn seal<'a>(
        &'a self,
        binding: Binding<'a>,
        text: Vec<u8>,
        until: Instant,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<String, StateError>> {
        match self.next(&self.keys) {
            None => self.local.seal(binding, text, until, deadline),
            Some(Fails::Late) => Box::pin(async { Err(StateError::Late) }),
            Some(_) => Box::pin(std::future::pending()),
        }
    }

    fn unseal<'a>(
        &'a self,
        binding: Binding<'a>,
        token: &'a str,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Unsealed, StateError>> {
        match self.next(&self.keys) {
            None => self.local.unseal(binding, token, deadline),
            Some(Fails::Late) => Box::pin(async { Err(StateError::Late) }),
            Some(_) => Box::pin(async { failed() }),
        }
    }

    fn id_hash(
        &self,
        message: Vec<u8>,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<[u8; 32], StateError>> {
        self.local.id_hash(message, deadline)
    }
}

#[tokio::test]
async fn a_denial_counts_if_the_call_is_cancelled_while_it_is_stored() {
    let (_bundle, host) = host("Notes.");
    let (call, no) = (echo("notes.write"), json!({"action": "decline"}));
    let person = Scripted::saying([no.clone(), no.clone()]);
    for client in [session(&person), stateless("alice")] {
        let state = Arc::new(Unreliable::default());
        let round_trips = state.round_trips();
        let answer = match client.era {
            Era::Session => call.clone(),
            Era::Stateless => {
                let asked = asks(call.to(&round_trips, &client, &host).await);
                call.answering(&asked, json!({"toolward:approval": no}))
            }
        };
        *state.answering.lock().unwrap() = Some(Fails::WaitsBefore);
        tokio::select! {
            _ = answer.to(&round_trips, &client, &host) => panic!("it has ended"),
            () = state.waits.notified() => {}
        }
        let reply = ended(call.to(&round_trips, &client, &host).await);
        assert_eq!(code(&reply), "toolward:approval_paused");
    }
    assert_eq!(person.asked().len(), 1);
}

#[tokio::test]
async fn a_question_that_may_have_been_opened_is_closed() {
    let (_bundle, host) = host("Notes.");
    let (alice, call) = (stateless("alice"), echo("notes.write"));
    let state = Arc::new(Unreliable::default());
    let round_trips = state.round_trips();
    for _ in 0..MAX_QUESTIONS_PER_TOOL {
        *state.opening.lock().unwrap() = Some(Fails::Forgets);
        let reply = ended(call.to(&round_trips, &alice, &host).await);
        assert_eq!(code(&reply), "toolward:approval_denied");

        *state.opening.lock().unwrap() = Some(Fails::WaitsAfter);
        tokio::select! {
            _ = call.to(&round_trips, &alice, &host) => panic!("it has ended"),
            () = state.waits.notified() => {}
        }
    }
    asks(call.to(&round_trips, &alice, &host).await);
}

#[tokio::test]
async fn a_question_whose_token_was_not_sealed_is_closed() {
    let (_bundle, host) = host("Notes.");
    let (alice, call) = (stateless("alice"), echo("notes.write"));
    let state = Arc::new(Unreliable::default());
    let round_trips = state.round_trips();
    for _ in 0..MAX_QUESTIONS_PER_TOOL {
        *state.keys.lock().unwrap() = Some(Fails::Late);
        let (fault, _) = fault(call.to(&round_trips, &alice, &host).await);
        assert_eq!(fault, Fault::INTERNAL_ERROR);

        *state.keys.lock().unwrap() = Some(Fails::WaitsBefore);
        tokio::select! {
            _ = call.to(&round_trips, &alice, &host) => panic!("it has ended"),
            () = state.waits.notified() => {}
        }
    }
    asks(call.to(&round_trips, &alice, &host).await);
}

#[tokio::test]
async fn a_token_that_the_state_did_not_open_is_not_spent() {
    let (_bundle, host) = host("Notes.");
    let (alice, call) = (stateless("alice"), echo("notes.write"));
    let state = Arc::new(Unreliable::default());
    let round_trips = state.round_trips();
    let asked = asks(call.to(&round_trips, &alice, &host).await);
    let answer = call.answering(&asked, decided(ONCE));
    for fails in [Fails::Late, Fails::Forgets] {
        *state.keys.lock().unwrap() = Some(fails);
        let (fault, _) = fault(answer.to(&round_trips, &alice, &host).await);
        assert_eq!(fault, Fault::INTERNAL_ERROR);
    }
    let reply = ended(answer.to(&round_trips, &alice, &host).await);
    assert!(reply.result.is_ok());
}

#[tokio::test]
async fn a_person_has_all_of_the_time_however_long_the_opening_takes() {
    let (_bundle, host) = host("Notes.");
    let state = Arc::new(Unreliable::default());
    let call = echo("notes.write");
    asks(
        call.to(&state.round_trips(), &stateless("alice"), &host)
            .await,
    );
    assert_eq!(*state.open_for.lock().unwrap(), [ANSWER_TIMEOUT]);
}

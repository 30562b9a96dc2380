//! Questions of drivers: who is asked, which answers continue a call, and what is refused.

use rmcp::model::ErrorCode as Fault;
use serde_json::json;
use toolward_host::{Answerable, ErrorCode};
use toolward_state::{BoxFuture, StateError};

use super::*;
use crate::approval::prompt::ONCE;
use crate::call::testing::{
    Scripted, Sent, accepted, asking_call, asks, code, decided, echo, ended, fault, fresh, host,
    keys, session, stateless, value, yes,
};

#[tokio::test]
async fn a_question_becomes_a_result_and_its_answer_goes_on_with_the_call() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), asking_call());
    let asked = asks(call.to(&round_trips, &alice, &host).await);
    assert_eq!(keys(&asked), ["q"]);
    let shown = serde_json::to_string(&asked).unwrap();
    assert!(
        shown.contains("tool notes.ask@1 by publisher dev:"),
        "{shown}"
    );
    assert!(!shown.contains("the state"), "{shown}");
    let reply = ended(
        call.answering(&asked, yes())
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(value(&reply)["state"], "the state");
    assert_eq!(value(&reply)["answers"][0]["accepted"], "{\"ok\":true}");
}

#[tokio::test]
async fn showing_one_input_and_sending_another_fails() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice) = (fresh(), stateless("alice"));
    let asked = asks(asking_call().to(&round_trips, &alice, &host).await);
    let other = Sent::new("notes.ask", json!({"do": "ask", "value": "other"}));
    let refused = fault(
        other
            .answering(&asked, yes())
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(refused.0, Fault::INVALID_PARAMS);
    assert_eq!(refused.1["code"], "toolward:state_refused");
    let elsewhere = Sent::new("notes.always", json!({"do": "ask"}));
    let refused = fault(
        elsewhere
            .answering(&asked, yes())
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(refused.1["code"], "toolward:state_refused");
}

#[tokio::test]
async fn an_answer_is_taken_once() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), asking_call());
    let asked = asks(call.to(&round_trips, &alice, &host).await);
    let answer = call.answering(&asked, yes());
    assert!(
        ended(answer.to(&round_trips, &alice, &host).await)
            .result
            .is_ok()
    );
    let refused = fault(answer.to(&round_trips, &alice, &host).await);
    assert_eq!(refused.0, Fault::INVALID_PARAMS);
    assert_eq!(refused.1["code"], "toolward:state_spent");
}

#[tokio::test]
async fn an_edited_foreign_or_old_state_is_refused() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), asking_call());
    let asked = asks(call.to(&round_trips, &alice, &host).await);

    let mut edited = asked.clone();
    edited.request_state = asked.request_state.clone().map(|state| state + "-TAMPERED");
    let refused = fault(
        call.answering(&edited, yes())
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(refused.1["code"], "toolward:state_refused");

    let answer = call.answering(&asked, yes());
    let refused = fault(answer.to(&round_trips, &stateless("bob"), &host).await);
    assert_eq!(refused.1["code"], "toolward:state_refused");
    let refused = fault(answer.to(&fresh(), &alice, &host).await);
    assert_eq!(refused.1["code"], "toolward:state_refused");
    let person = Scripted::saying([]);
    let refused = fault(answer.to(&round_trips, &session(&person), &host).await);
    assert_eq!(refused.1["code"], "toolward:state_refused");

    let hasty = RoundTrips {
        keys: Arc::new(WatchedKeys {
            hasty: true,
            ..WatchedKeys::default()
        }),
        ..fresh()
    };
    let asked = asks(call.to(&hasty, &alice, &host).await);
    let refused = fault(
        call.answering(&asked, yes())
            .to(&hasty, &alice, &host)
            .await,
    );
    assert_eq!(refused.1["code"], "toolward:state_spent");
}

#[tokio::test]
async fn a_driver_whose_bundle_has_changed_gets_no_answers() {
    let (_before, before) = host("Notes.");
    let (_after, after) = host("Other notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), asking_call());
    let asked = asks(call.to(&round_trips, &alice, &before).await);
    let reply = ended(
        call.answering(&asked, yes())
            .to(&round_trips, &alice, &after)
            .await,
    );
    assert_eq!(code(&reply), "toolward:resume_refused");
    assert_eq!(reply.metadata.attempts, 0);
}

#[tokio::test]
async fn what_is_missing_is_asked_again_and_what_is_wrong_ends_the_call() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), asking_call());
    let mut asked = asks(call.to(&round_trips, &alice, &host).await);
    for missing in [
        json!({}),
        json!({"other": accepted(json!({}))}),
        json!({"q": 12345}),
    ] {
        let before = asked.request_state.clone();
        asked = asks(
            call.answering(&asked, missing)
                .to(&round_trips, &alice, &host)
                .await,
        );
        assert_eq!(keys(&asked), ["q"]);
        assert_ne!(asked.request_state, before);
    }
    let wrong = json!({"q": accepted(json!({"ok": "perhaps"}))});
    let reply = ended(
        call.answering(&asked, wrong)
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(code(&reply), "input_invalid");
    assert_eq!(reply.metadata.attempts, 0);
}

/// Keys that record when each sealed state expires.
struct WatchedKeys {
    keys: toolward_state::Local,
    /// Whether the state expires at once.
    hasty: bool,
    sealed: std::sync::Mutex<Vec<Instant>>,
}

impl Default for WatchedKeys {
    fn default() -> Self {
        Self {
            keys: toolward_state::Local::new(None, None),
            hasty: false,
            sealed: std::sync::Mutex::default(),
        }
    }
}

impl WatchedKeys {
    fn expiries(&self) -> Vec<Instant> {
        std::mem::take(&mut *self.sealed.lock().unwrap())
    }
}

impl Keys for WatchedKeys {
    fn seal<'a>(
        &'a self,
        binding: Binding<'a>,
        text: Vec<u8>,
        until: Instant,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<String, StateError>> {
        self.sealed.lock().unwrap().push(until);
        let until = if self.hasty { Instant::now() } else { until };
        self.keys.seal(binding, text, until, deadline)
    }

    fn unseal<'a>(
        &'a self,
        binding: Binding<'a>,
        token: &'a str,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Unsealed, StateError>> {
        self.keys.unseal(binding, token, deadline)
    }

    fn id_hash(
        &self,
        message: Vec<u8>,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<[u8; 32], StateError>> {
        self.keys.id_hash(message, deadline)
    }
}

#[tokio::test]
async fn what_is_asked_again_is_asked_thrice_and_within_the_time_of_the_first_question() {
    let (_bundle, host) = host("Notes.");
    let keys = Arc::new(WatchedKeys::default());
    let round_trips = RoundTrips {
        keys: keys.clone(),
        ..fresh()
    };
    let (alice, call) = (stateless("alice"), asking_call());
    let mut asked = asks(call.to(&round_trips, &alice, &host).await);
    let [first] = keys.expiries().try_into().unwrap();
    for _ in 0..3 {
        let nothing = call.answering(&asked, json!({}));
        asked = asks(nothing.to(&round_trips, &alice, &host).await);
        assert_eq!(keys.expiries(), [first]);
    }
    let nothing = call.answering(&asked, json!({}));
    let refused = fault(nothing.to(&round_trips, &alice, &host).await);
    assert_eq!(refused.0, Fault::INVALID_PARAMS);
    assert_eq!(refused.1["code"], "toolward:answers_missing");
    assert!(keys.expiries().is_empty());
    // The state was used already, with any answer.
    let late = call.answering(&asked, yes());
    let refused = fault(late.to(&round_trips, &alice, &host).await);
    assert_eq!(refused.1["code"], "toolward:state_spent");
}

#[tokio::test]
async fn answers_without_a_state_are_answers_to_nothing() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), asking_call());
    let mut nothing = asks(call.to(&round_trips, &alice, &host).await);
    nothing.request_state = None;
    let asked = asks(
        call.answering(&nothing, yes())
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(keys(&asked), ["q"]);
    let unapproved = echo("notes.write").answering(&nothing, decided(ONCE));
    let asked = asks(unapproved.to(&round_trips, &alice, &host).await);
    assert_eq!(keys(&asked), ["toolward:approval"]);
}

#[tokio::test]
async fn a_client_that_lacks_a_capability_is_told_which() {
    let (_bundle, host) = host("Notes.");
    let mut mute = stateless("alice");
    mute.answerable = Answerable::default();
    for (kind, capability) in [
        ("form", "elicitation"),
        ("sample", "sampling"),
        ("roots", "roots"),
    ] {
        let call = Sent::new("notes.ask", json!({"do": "ask", "name": kind}));
        let (fault, data) = fault(call.to(&fresh(), &mute, &host).await);
        assert_eq!(fault, Fault::MISSING_REQUIRED_CLIENT_CAPABILITY);
        assert!(
            data["requiredCapabilities"][capability].is_object(),
            "{data}"
        );
    }
    // A client of the session era knows no such fault.
    mute.era = Era::Session;
    let reply = ended(asking_call().to(&fresh(), &mute, &host).await);
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::INPUT_UNAVAILABLE);
}

#[tokio::test]
async fn a_client_of_the_session_era_is_asked_while_the_call_waits() {
    let (_bundle, host) = host("Notes.");
    let person = Scripted::saying([
        accepted(json!({"decision": ONCE})),
        accepted(json!({"ok": true})),
    ]);
    let call = Sent::new("notes.always", json!({"do": "ask"}));
    let reply = ended(call.to(&fresh(), &session(&person), &host).await);
    assert_eq!(value(&reply)["answers"][0]["accepted"], "{\"ok\":true}");
    let [approval, question] = person.asked().try_into().unwrap();
    assert_eq!(approval["method"], "elicitation/create");
    assert!(approval.to_string().contains("needs your approval"));
    let message = &question["params"]["message"];
    assert!(
        message
            .as_str()
            .unwrap()
            .starts_with("tool notes.always@1 by publisher")
    );
}

#[tokio::test]
async fn a_person_of_the_session_era_may_decline_and_may_be_gone() {
    let (_bundle, host) = host("Notes.");
    let person = Scripted::saying([json!({"action": "decline"})]);
    let reply = ended(asking_call().to(&fresh(), &session(&person), &host).await);
    assert_eq!(value(&reply)["answers"][0]["declined"], true);
    let nobody = Scripted::saying([]);
    let reply = ended(asking_call().to(&fresh(), &session(&nobody), &host).await);
    assert_eq!(value(&reply)["answers"][0]["cancelled"], true);
    let reply = ended(
        echo("notes.write")
            .to(&fresh(), &session(&nobody), &host)
            .await,
    );
    assert_eq!(code(&reply), "toolward:approval_denied");
    assert_eq!(reply.metadata.attempts, 0);
}

#[tokio::test]
async fn a_driver_that_asks_for_ever_asks_three_times() {
    let (_bundle, host) = host("Notes.");
    let person = Scripted::saying((0..9).map(|_| accepted(json!({"ok": true}))));
    let call = Sent::new("notes.ask", json!({"do": "ask-again"}));
    let reply = ended(call.to(&fresh(), &session(&person), &host).await);
    assert_eq!(code(&reply), "toolward:limit_exceeded");
    assert_eq!(person.asked().len(), 3);
}

//! Approvals through a client: what they cover, who may give them, and what no
//! client may.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::InputRequest;
use serde_json::json;
use tokio::sync::Notify;

use super::testing::{
    Scripted, Sent, accepted, asks, code, decided, echo, ended, fault, host, keys, session,
    stateless, value, yes,
};
use super::*;
use crate::asking::client::{Person, Said};
use crate::asking::shown::{ONCE, SESSION};

#[tokio::test]
async fn an_approval_shows_what_it_is_for_and_is_for_that_input_alone() {
    let (_bundle, host) = host("Notes.");
    let (asking, alice, call) = (Asking::new(), stateless("alice"), echo("notes.write"));
    let asked = asks(call.to(&asking, &alice, &host).await);
    let shown = serde_json::to_value(&asked).unwrap();
    let shown = shown["inputRequests"]["toolward:approval"]["params"]["message"].clone();
    for part in [
        "notes.write@1.0.0",
        "by publisher dev:",
        "changes database:notes",
        "| {",
        "|   \"value\": 7",
    ] {
        assert!(
            shown.as_str().unwrap().contains(part),
            "no {part:?} in {shown}"
        );
    }
    let other = Sent::new("notes.write", json!({"do": "echo", "value": 8}));
    let refused = fault(
        other
            .answering(&asked, decided(ONCE))
            .to(&asking, &alice, &host)
            .await,
    );
    assert_eq!(refused.1["code"], "toolward:state_refused");

    let reply = ended(
        call.answering(&asked, decided(ONCE))
            .to(&asking, &alice, &host)
            .await,
    );
    assert_eq!(value(&reply), &json!(7));
    let again = asks(call.to(&asking, &alice, &host).await);
    assert_eq!(keys(&again), ["toolward:approval"]);
}

#[tokio::test]
async fn whatever_is_no_plain_yes_is_a_no() {
    let (_bundle, host) = host("Notes.");
    let (alice, call) = (stateless("alice"), echo("notes.write"));
    let mut asking = Asking::new();
    asking.memory.denied = Arc::new(Denied::forgetful());
    for said in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "decline", "content": {"decision": ONCE}}),
        accepted(json!({})),
        accepted(json!({"decision": "deny"})),
        accepted(json!({"decision": "yes"})),
        accepted(json!({"decision": true})),
        json!(true),
        json!(null),
    ] {
        let asked = asks(call.to(&asking, &alice, &host).await);
        let answer = json!({"toolward:approval": said});
        let reply = ended(
            call.answering(&asked, answer)
                .to(&asking, &alice, &host)
                .await,
        );
        assert_eq!(code(&reply), "toolward:approval_denied");
        assert_eq!(reply.metadata.attempts, 0);
    }
}

#[tokio::test]
async fn an_approval_for_the_session_is_for_the_tool_as_it_stands_and_its_principal() {
    let (_bundle, first) = host("Notes.");
    let (asking, alice, call) = (Asking::new(), stateless("alice"), echo("notes.write"));
    let asked = asks(call.to(&asking, &alice, &first).await);
    ended(
        call.answering(&asked, decided(SESSION))
            .to(&asking, &alice, &first)
            .await,
    );

    let other_input = Sent::new("notes.write", json!({"do": "echo", "value": 8}));
    let reply = ended(other_input.to(&asking, &alice, &first).await);
    assert_eq!(value(&reply), &json!(8));
    asks(call.to(&asking, &stateless("bob"), &first).await);
    asks(echo("notes.always").to(&asking, &alice, &first).await);
    let (_other, changed) = host("Other notes.");
    asks(call.to(&asking, &alice, &changed).await);
    let mut untrusted = stateless("alice");
    untrusted.principal.may_approve = false;
    let reply = ended(call.to(&asking, &untrusted, &first).await);
    assert_eq!(code(&reply), "toolward:approval_denied");
}

#[tokio::test]
async fn a_tool_that_asks_each_time_can_not_be_approved_for_the_session() {
    let (_bundle, host) = host("Notes.");
    let (asking, alice, call) = (Asking::new(), stateless("alice"), echo("notes.always"));
    let asked = asks(call.to(&asking, &alice, &host).await);
    assert!(!serde_json::to_string(&asked).unwrap().contains(SESSION));
    let answer = call.answering(&asked, decided(SESSION));
    let reply = ended(answer.to(&asking, &alice, &host).await);
    assert_eq!(code(&reply), "toolward:approval_denied");
}

#[tokio::test]
async fn what_can_not_be_undone_is_never_approved_through_a_client() {
    let (_bundle, host) = host("Notes.");
    let asking = Asking::new();
    let person = Scripted::saying([accepted(json!({"decision": ONCE}))]);
    for client in [stateless("alice"), session(&person)] {
        let reply = ended(echo("notes.burn").to(&asking, &client, &host).await);
        assert_eq!(code(&reply), "toolward:approval_denied");
        let error = reply.result.unwrap_err();
        assert!(error.hint.unwrap().contains("toolward call notes.burn"));
        assert_eq!(reply.metadata.attempts, 0);
    }
    assert!(person.asked().is_empty());
}

#[tokio::test]
async fn a_client_that_is_not_trusted_or_can_not_ask_means_no_and_says_nothing_of_the_policy() {
    let (_bundle, host) = host("Notes.");
    let asking = Asking::new();
    let person = Scripted::saying([accepted(json!({"decision": ONCE}))]);
    let mut untrusted = session(&person);
    untrusted.principal.may_approve = false;
    let mut mute = stateless("alice");
    mute.answerable = Answerable::default();
    let mut untrusted_stateless = stateless("alice");
    untrusted_stateless.principal.may_approve = false;
    for client in [untrusted, mute, untrusted_stateless] {
        let reply = ended(echo("notes.write").to(&asking, &client, &host).await);
        assert_eq!(code(&reply), "toolward:approval_denied");
        assert_eq!(reply.metadata.attempts, 0);
        let text = reply.envelope().to_string();
        for leak in ["[[grant]]", "preapproved", "policy", "dev:dev"] {
            assert!(!text.contains(leak), "{leak}: {text}");
        }
    }
    assert!(person.asked().is_empty());
}

#[tokio::test]
async fn what_is_too_long_to_be_shown_whole_is_not_asked() {
    let (_bundle, host) = host("Notes.");
    let call = Sent::new(
        "notes.write",
        json!({"do": "echo", "value": "x".repeat(7000)}),
    );
    let reply = ended(call.to(&Asking::new(), &stateless("alice"), &host).await);
    assert_eq!(code(&reply), "toolward:approval_denied");
    assert!(reply.result.unwrap_err().message.contains("too long"));
}

#[tokio::test]
async fn approval_and_question_are_asked_apart_and_neither_takes_the_others_answer() {
    let (_bundle, host) = host("Notes.");
    let (asking, alice) = (Asking::new(), stateless("alice"));
    let call = Sent::new("notes.always", json!({"do": "ask"}));
    let approval = asks(call.to(&asking, &alice, &host).await);
    assert_eq!(keys(&approval), ["toolward:approval"]);
    // A driver's answer approves nothing: it is asked again.
    let approval = asks(
        call.answering(&approval, yes())
            .to(&asking, &alice, &host)
            .await,
    );
    assert_eq!(keys(&approval), ["toolward:approval"]);

    let question = asks(
        call.answering(&approval, decided(ONCE))
            .to(&asking, &alice, &host)
            .await,
    );
    assert_eq!(keys(&question), ["q"]);
    // Nor is an approval an answer.
    let question = asks(
        call.answering(&question, decided(ONCE))
            .to(&asking, &alice, &host)
            .await,
    );
    assert_eq!(keys(&question), ["q"]);

    // What was approved stays so until the call has ended, and no longer.
    let reply = ended(
        call.answering(&question, yes())
            .to(&asking, &alice, &host)
            .await,
    );
    assert_eq!(value(&reply)["answers"][0]["key"], "q");
    let approval = asks(call.to(&asking, &alice, &host).await);
    assert_eq!(keys(&approval), ["toolward:approval"]);
}

#[tokio::test]
async fn after_a_no_nobody_is_asked_about_that_tool_for_a_while() {
    let (_bundle, host) = host("Notes.");
    let (asking, alice, call) = (Asking::new(), stateless("alice"), echo("notes.write"));
    let earlier = asks(call.to(&asking, &alice, &host).await);
    let asked = asks(call.to(&asking, &alice, &host).await);
    let no = json!({"toolward:approval": {"action": "decline"}});
    let reply = ended(call.answering(&asked, no).to(&asking, &alice, &host).await);
    assert_eq!(code(&reply), "toolward:approval_denied");

    // Another input does not help: the person said what they think of the tool.
    let other = Sent::new("notes.write", json!({"do": "echo", "value": 8}));
    for call in [&call, &other] {
        let reply = ended(call.to(&asking, &alice, &host).await);
        assert_eq!(code(&reply), "toolward:approval_paused");
        assert_eq!(reply.metadata.attempts, 0);
        let error = reply.result.unwrap_err();
        let seconds = error.cause.unwrap()["asked_again_after_seconds"].clone();
        assert!((1..=60).contains(&seconds.as_u64().unwrap()), "{seconds}");
        let hint = error.hint.unwrap();
        assert!(hint.contains("toolward call notes.write"), "{hint}");
    }
    asks(echo("notes.always").to(&asking, &alice, &host).await);
    asks(call.to(&asking, &stateless("bob"), &host).await);

    // What was asked before may still be answered, and a yes ends the pause.
    let reply = ended(
        call.answering(&earlier, decided(ONCE))
            .to(&asking, &alice, &host)
            .await,
    );
    assert_eq!(value(&reply), &json!(7));
    asks(call.to(&asking, &alice, &host).await);
}

#[tokio::test]
async fn after_a_no_a_client_of_the_session_era_is_not_asked_either() {
    let (_bundle, host) = host("Notes.");
    let asking = Asking::new();
    let person = Scripted::saying([
        json!({"action": "decline"}),
        accepted(json!({"decision": ONCE})),
    ]);
    let client = session(&person);
    let reply = ended(echo("notes.write").to(&asking, &client, &host).await);
    assert_eq!(code(&reply), "toolward:approval_denied");
    let reply = ended(echo("notes.write").to(&asking, &client, &host).await);
    assert_eq!(code(&reply), "toolward:approval_paused");
    assert_eq!(reply.metadata.attempts, 0);
    assert_eq!(person.asked().len(), 1);
}

/// A person who looks at the question and says nothing.
#[derive(Default)]
struct Looking {
    asked: AtomicUsize,
    looks: Notify,
}

impl Person for Looking {
    fn ask(&self, _: InputRequest, _: Duration) -> Said<'_> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.looks.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_under_the_eyes_of_a_person_does_not_ask_them_again() {
    let (_bundle, host) = host("Notes.");
    let (asking, call) = (Asking::new(), echo("notes.write"));
    let person = Arc::new(Looking::default());
    let client = Client {
        person: Some(person.clone()),
        ..session(&Scripted::saying([]))
    };
    tokio::select! {
        _ = call.to(&asking, &client, &host) => panic!("it has ended"),
        () = person.looks.notified() => {}
    }
    let reply = ended(call.to(&asking, &client, &host).await);
    assert_eq!(code(&reply), "toolward:approval_paused");
    assert_eq!(person.asked.load(Ordering::Relaxed), 1);
}

//! Approvals through a client: what they cover, and who may give them.

use serde_json::json;
use toolward_host::{Answerable, Approver as _, Verdict};

use super::*;
use crate::approval::prompt::{ONCE, SESSION};
use crate::call::testing::{
    Scripted, Sent, accepted, asks, code, decided, echo, ended, fault, fresh, host,
    host_with_helper, keys, session, stateless, value, yes,
};

#[tokio::test]
async fn an_approval_shows_what_it_is_for_and_is_for_that_input_alone() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), echo("notes.write"));
    let asked = asks(call.to(&round_trips, &alice, &host).await);
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
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(refused.1["code"], "toolward:state_refused");

    let reply = ended(
        call.answering(&asked, decided(ONCE))
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(value(&reply), &json!(7));
    let again = asks(call.to(&round_trips, &alice, &host).await);
    assert_eq!(keys(&again), ["toolward:approval"]);
}

#[tokio::test]
async fn whatever_is_no_plain_yes_is_a_no() {
    let (_bundle, host) = host("Notes.");
    let (alice, call) = (stateless("alice"), echo("notes.write"));
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
        // With shared state, the earlier question would be backed off.
        let round_trips = fresh();
        let asked = asks(call.to(&round_trips, &alice, &host).await);
        let answer = json!({"toolward:approval": said});
        let reply = ended(
            call.answering(&asked, answer)
                .to(&round_trips, &alice, &host)
                .await,
        );
        assert_eq!(code(&reply), "toolward:approval_denied");
        assert_eq!(reply.metadata.attempts, 0);
    }
}

#[tokio::test]
async fn an_approval_for_the_session_is_for_the_tool_as_it_stands_and_its_principal() {
    let (_bundle, first) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), echo("notes.write"));
    let asked = asks(call.to(&round_trips, &alice, &first).await);
    ended(
        call.answering(&asked, decided(SESSION))
            .to(&round_trips, &alice, &first)
            .await,
    );

    let other_input = Sent::new("notes.write", json!({"do": "echo", "value": 8}));
    let reply = ended(other_input.to(&round_trips, &alice, &first).await);
    assert_eq!(value(&reply), &json!(8));
    asks(call.to(&round_trips, &stateless("bob"), &first).await);
    asks(echo("notes.always").to(&round_trips, &alice, &first).await);
    let (_other, changed) = host("Other notes.");
    asks(call.to(&round_trips, &alice, &changed).await);
    let mut untrusted = stateless("alice");
    untrusted.principal.may_approve = false;
    let reply = ended(call.to(&round_trips, &untrusted, &first).await);
    assert_eq!(code(&reply), "toolward:approval_denied");
}

#[tokio::test]
async fn a_tool_that_asks_each_time_can_not_be_approved_for_the_session() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), echo("notes.always"));
    let asked = asks(call.to(&round_trips, &alice, &host).await);
    assert!(!serde_json::to_string(&asked).unwrap().contains(SESSION));
    let answer = call.answering(&asked, decided(SESSION));
    let reply = ended(answer.to(&round_trips, &alice, &host).await);
    assert_eq!(code(&reply), "toolward:approval_denied");
}

#[tokio::test]
async fn what_can_not_be_undone_is_never_approved_through_a_client() {
    let (_bundle, host) = host("Notes.");
    let round_trips = fresh();
    let person = Scripted::saying([accepted(json!({"decision": ONCE}))]);
    for client in [stateless("alice"), session(&person)] {
        let reply = ended(echo("notes.burn").to(&round_trips, &client, &host).await);
        assert_eq!(code(&reply), "toolward:approval_denied");
        let error = reply.result.unwrap_err();
        let hint = error.hint.unwrap();
        assert!(
            hint.contains("in a terminal") && !hint.contains("toolward "),
            "{hint}"
        );
        assert_eq!(reply.metadata.attempts, 0);
    }
    assert!(person.asked().is_empty());
}

#[tokio::test]
async fn a_client_that_is_not_trusted_or_can_not_ask_means_no_and_says_nothing_of_the_policy() {
    let (_bundle, host) = host("Notes.");
    let round_trips = fresh();
    let person = Scripted::saying([accepted(json!({"decision": ONCE}))]);
    let mut untrusted = session(&person);
    untrusted.principal.may_approve = false;
    let mut mute = stateless("alice");
    mute.answerable = Answerable::default();
    let mut untrusted_stateless = stateless("alice");
    untrusted_stateless.principal.may_approve = false;
    for client in [untrusted, mute, untrusted_stateless] {
        let reply = ended(echo("notes.write").to(&round_trips, &client, &host).await);
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
    let reply = ended(call.to(&fresh(), &stateless("alice"), &host).await);
    assert_eq!(code(&reply), "toolward:approval_denied");
    assert!(reply.result.unwrap_err().message.contains("too long"));
}

#[tokio::test]
async fn approval_and_question_are_asked_apart_and_neither_takes_the_others_answer() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice) = (fresh(), stateless("alice"));
    let call = Sent::new("notes.always", json!({"do": "ask"}));
    let approval = asks(call.to(&round_trips, &alice, &host).await);
    assert_eq!(keys(&approval), ["toolward:approval"]);
    // A driver's answer approves nothing: the person is asked again.
    let approval = asks(
        call.answering(&approval, yes())
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(keys(&approval), ["toolward:approval"]);

    let question = asks(
        call.answering(&approval, decided(ONCE))
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(keys(&question), ["q"]);
    // An approval is not an answer to a driver.
    let question = asks(
        call.answering(&question, decided(ONCE))
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(keys(&question), ["q"]);

    // An approval lasts until the call has ended, and no longer.
    let reply = ended(
        call.answering(&question, yes())
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(value(&reply)["answers"][0]["key"], "q");
    let approval = asks(call.to(&round_trips, &alice, &host).await);
    assert_eq!(keys(&approval), ["toolward:approval"]);
}

#[tokio::test]
async fn an_approval_does_not_cover_what_took_the_place_of_a_tool_that_it_covered() {
    let directories = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [notes, helper, others] = directories.each_ref().map(tempfile::TempDir::path);
    let (round_trips, alice) = (fresh(), stateless("alice"));
    let call = echo("notes.through");
    let before = host_with_helper(notes, helper, "Helps.");
    let asked = asks(call.to(&round_trips, &alice, &before).await);
    let shown = serde_json::to_string(&asked).unwrap();
    assert!(
        shown.contains("helper.write@1 by ANOTHER publisher"),
        "{shown}"
    );
    let sealed = asks(call.to(&round_trips, &alice, &before).await);
    let answer = call.answering(&asked, decided(SESSION));
    assert_eq!(
        value(&ended(answer.to(&round_trips, &alice, &before).await)),
        &json!(7)
    );
    ended(call.to(&round_trips, &alice, &before).await);

    // Identical tools of another publisher, and of another release.
    let elsewhere = host_with_helper(notes, others, "Helps.");
    asks(call.to(&round_trips, &alice, &elsewhere).await);
    let answer = call.answering(&sealed, decided(ONCE));
    asks(answer.to(&round_trips, &alice, &elsewhere).await);
    let after = host_with_helper(notes, helper, "Helps more.");
    asks(call.to(&round_trips, &alice, &after).await);
    ended(call.to(&round_trips, &alice, &before).await);
}

#[test]
fn an_answer_that_no_request_got_is_still_known_when_the_call_ends() {
    let round_trips = fresh();
    let brings = |answer| {
        let call = [7; 32];
        let decided = Decided { call, answer };
        let client = stateless("alice");
        ClientApprover::new(&client, &round_trips.approvals, false, Some(decided)).unused_answer()
    };
    let answered = |approved| {
        Some(Verdict::Answered {
            approved,
            remembered: None,
        })
    };
    assert_eq!(brings(Some(ApprovalDecision::Once)), answered(true));
    assert_eq!(brings(Some(ApprovalDecision::Deny)), answered(false));
    assert_eq!(brings(None), None);
}

#[tokio::test]
async fn the_hint_for_a_client_that_may_not_ask_has_only_lines_that_work() {
    let (_bundle, host) = host("Notes.");
    let round_trips = fresh();
    let hint = async |tool: &'static str, name: Option<&str>| {
        let mut client = stateless("alice");
        client.principal.may_approve = false;
        client.untrusted_name = name.map(str::to_owned);
        let reply = ended(echo(tool).to(&round_trips, &client, &host).await);
        assert_eq!(code(&reply), "toolward:approval_denied");
        reply.result.unwrap_err().hint.unwrap()
    };
    let long = "x".repeat(201);
    for (name, line) in [
        ("zed", Some(r#"`may_approve = ["zed"]`"#)),
        (r#"a "b" \ é"#, Some(r#"`may_approve = ["a \"b\" \\ é"]`"#)),
        (long.get(1..).unwrap(), Some("x\"]`")),
        ("", None),
        ("a\u{202e}b", None),
        ("a\nb", None),
        (&long, None),
    ] {
        let hint = hint("notes.write", Some(name)).await;
        match line {
            Some(line) => {
                assert!(hint.contains(line) && hint.contains("[clients]"), "{hint}");
                let start = hint.find("may_approve").unwrap();
                let pasted = hint.get(start..).unwrap().split('`').next().unwrap();
                let pasted: toml::Table = toml::from_str(pasted).unwrap();
                assert_eq!(pasted["may_approve"][0].as_str(), Some(name));
            }
            None => {
                assert!(hint.contains("`--trust-client`"), "{hint}");
                assert!(!hint.contains("may_approve"), "{hint}");
            }
        }
        assert!(hint.contains("`preapproved = true`"), "{hint}");
    }
    // If the contract wants a person asked each time, no grant can replace the answer.
    let always = hint("notes.always", Some("zed")).await;
    assert!(
        always.contains("may_approve") && !always.contains("preapproved"),
        "{always}"
    );
    let remote = hint("notes.write", None).await;
    assert!(
        !remote.contains("may_approve") && !remote.contains("preapproved"),
        "{remote}"
    );
}

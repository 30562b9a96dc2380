//! Which questions a denial stops, and how many questions a person gets at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::InputRequest;
use serde_json::json;
use tokio::sync::Notify;
use toolward_state::{MAX_QUESTIONS, MAX_QUESTIONS_PER_TOOL, Opening, QuestionId};

use super::*;
use crate::approval::prompt::ONCE;
use crate::call::testing::{
    Scripted, Sent, accepted, asks, code, decided, echo, ended, fresh, host, session, stateless,
    value,
};
use crate::client::{AsksPerson, Said};

#[tokio::test]
async fn after_a_no_nobody_is_asked_about_that_tool_for_a_while() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), echo("notes.write"));
    let earlier = asks(call.to(&round_trips, &alice, &host).await);
    let asked = asks(call.to(&round_trips, &alice, &host).await);
    let no = json!({"toolward:approval": {"action": "decline"}});
    let reply = ended(
        call.answering(&asked, no)
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(code(&reply), "toolward:approval_denied");

    // Another input does not help: the person has refused the tool.
    let other = Sent::new("notes.write", json!({"do": "echo", "value": 8}));
    for call in [&call, &other] {
        let reply = ended(call.to(&round_trips, &alice, &host).await);
        assert_eq!(code(&reply), "toolward:approval_paused");
        assert_eq!(reply.metadata.attempts, 0);
        let error = reply.result.unwrap_err();
        let seconds = error.cause.unwrap()["asked_again_after_seconds"].clone();
        assert!((1..=60).contains(&seconds.as_u64().unwrap()), "{seconds}");
        let hint = error.hint.unwrap();
        assert!(
            hint.contains("in a terminal") && !hint.contains("toolward "),
            "{hint}"
        );
    }
    asks(echo("notes.always").to(&round_trips, &alice, &host).await);
    asks(call.to(&round_trips, &stateless("bob"), &host).await);

    // The denial also counts for the earlier question.
    let reply = ended(
        call.answering(&earlier, decided(ONCE))
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(code(&reply), "toolward:approval_paused");
    assert_eq!(reply.metadata.attempts, 0);
}

#[tokio::test]
async fn while_few_questions_about_a_tool_are_unanswered_nobody_is_asked_another() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), echo("notes.write"));
    let mut open = Vec::new();
    for _ in 0..MAX_QUESTIONS_PER_TOOL {
        open.push(asks(call.to(&round_trips, &alice, &host).await));
    }
    let other = Sent::new("notes.write", json!({"do": "echo", "value": 8}));
    for call in [&call, &other] {
        let reply = ended(call.to(&round_trips, &alice, &host).await);
        assert_eq!(code(&reply), "toolward:approval_paused");
        assert_eq!(reply.metadata.attempts, 0);
        let seconds = reply.result.unwrap_err().cause.unwrap();
        let seconds = seconds["asked_again_after_seconds"].as_u64().unwrap();
        assert!((500..=611).contains(&seconds), "{seconds}");
    }
    asks(echo("notes.always").to(&round_trips, &alice, &host).await);
    asks(call.to(&round_trips, &stateless("bob"), &host).await);

    let reply = ended(
        call.answering(&open[1], decided(ONCE))
            .to(&round_trips, &alice, &host)
            .await,
    );
    assert_eq!(value(&reply), &json!(7));
    asks(other.to(&round_trips, &alice, &host).await);
}

#[tokio::test]
async fn while_as_many_questions_as_may_be_are_unanswered_nobody_is_asked_about_any_tool() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, alice, call) = (fresh(), stateless("alice"), echo("notes.write"));
    for number in 0..u8::try_from(MAX_QUESTIONS).unwrap() {
        let question = QuestionId {
            principal: alice.principal.name.clone(),
            tool: [number; 32],
            number: u64::from(number),
        };
        let deadline = state_deadline();
        let until = Instant::now() + ANSWER_TIMEOUT;
        let opened = round_trips
            .approvals
            .open(question, [99; 32], until, deadline);
        assert!(matches!(opened.await, Ok(Opening::Open(_))));
    }
    let reply = ended(call.to(&round_trips, &alice, &host).await);
    assert_eq!(code(&reply), "toolward:approval_paused");
    assert_eq!(reply.metadata.attempts, 0);
    let error = reply.result.unwrap_err();
    let seconds = error.cause.unwrap()["asked_again_after_seconds"].clone();
    assert!(
        (500..=601).contains(&seconds.as_u64().unwrap()),
        "{seconds}"
    );
    asks(call.to(&round_trips, &stateless("bob"), &host).await);
}

/// A person for whom questions pile up until they deny the first one.
#[derive(Default)]
struct Piled {
    asked: AtomicUsize,
    says: Notify,
}

impl AsksPerson for Piled {
    fn ask(&self, _: InputRequest, _: Duration) -> Said<'_> {
        let before = self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match before {
                0 => self.says.notified().await,
                _ => std::future::pending().await,
            }
            Ok(json!({"action": "decline"}))
        })
    }
}

#[tokio::test]
async fn a_no_ends_the_other_questions_about_the_same_tool() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, call) = (fresh(), echo("notes.write"));
    let person = Arc::new(Piled::default());
    let client = Client {
        person: Some(person.clone()),
        ..session(&Scripted::saying([]))
    };
    let one_more = async {
        while person.asked.load(Ordering::Relaxed) < MAX_QUESTIONS_PER_TOOL {
            tokio::task::yield_now().await;
        }
        let reply = ended(call.to(&round_trips, &client, &host).await);
        assert_eq!(code(&reply), "toolward:approval_paused");
        person.says.notify_one();
    };
    let to = || call.to(&round_trips, &client, &host);
    let all = async { tokio::join!(to(), to(), to(), one_more) };
    let all = tokio::time::timeout(Duration::from_secs(60), all).await;
    let (first, second, third, ()) = all.expect("all have ended");
    for reply in [first, second, third].map(ended) {
        assert_eq!(code(&reply), "toolward:approval_denied");
        assert_eq!(reply.metadata.attempts, 0);
    }
    assert_eq!(person.asked.load(Ordering::Relaxed), MAX_QUESTIONS_PER_TOOL);
}

#[tokio::test]
async fn a_driver_that_gives_up_a_question_pauses_nobody_elses_use_of_the_tool() {
    let (_bundle, host) = host("Notes.");
    let round_trips = fresh();
    let person = Arc::new(Looking::default());
    let client = Client {
        person: Some(person.clone()),
        ..session(&Scripted::saying([]))
    };
    let asked = || person.asked.load(Ordering::Relaxed);
    let through = json!({"do": "tool", "name": "notes.always", "value": {"do": "echo"}});
    let through = Sent::new("notes.calls", through);
    tokio::select! {
        finished = through.to(&round_trips, &client, &host) => panic!("{:?}", ended(finished)),
        () = person.looks.notified() => {}
    }
    assert_eq!(asked(), 1);
    // The tool's use through another tool is paused,
    ended(through.to(&round_trips, &client, &host).await);
    assert_eq!(asked(), 1);
    // and the tool itself can still be asked about.
    let direct = echo("notes.always");
    tokio::select! {
        finished = direct.to(&round_trips, &client, &host) => panic!("{:?}", ended(finished)),
        () = person.looks.notified() => {}
    }
    assert_eq!(asked(), 2);
}

/// A client that claims that it can ask, and can't.
#[derive(Default)]
struct Failing(AtomicUsize);

impl AsksPerson for Failing {
    fn ask(&self, _: InputRequest, _: Duration) -> Said<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Err(Unanswered::Refused) })
    }
}

#[tokio::test]
async fn an_error_of_the_client_is_no_persons_no() {
    let (_bundle, host) = host("Notes.");
    let round_trips = fresh();
    let person = Arc::new(Failing::default());
    let client = Client {
        person: Some(person.clone()),
        ..session(&Scripted::saying([]))
    };
    for asked in 1..=2 {
        let reply = ended(echo("notes.write").to(&round_trips, &client, &host).await);
        assert_eq!(code(&reply), "toolward:approval_denied");
        assert_eq!(reply.metadata.attempts, 0);
        let message = reply.result.unwrap_err().message;
        assert!(message.contains("this client can't ask"), "{message}");
        assert_eq!(person.0.load(Ordering::Relaxed), asked);
    }
}

#[tokio::test]
async fn after_a_no_a_client_of_the_session_era_is_not_asked_either() {
    let (_bundle, host) = host("Notes.");
    let round_trips = fresh();
    let person = Scripted::saying([
        json!({"action": "decline"}),
        accepted(json!({"decision": ONCE})),
    ]);
    let client = session(&person);
    let reply = ended(echo("notes.write").to(&round_trips, &client, &host).await);
    assert_eq!(code(&reply), "toolward:approval_denied");
    let reply = ended(echo("notes.write").to(&round_trips, &client, &host).await);
    assert_eq!(code(&reply), "toolward:approval_paused");
    assert_eq!(reply.metadata.attempts, 0);
    assert_eq!(person.asked().len(), 1);
}

/// A person who looks at the question and does not answer.
#[derive(Default)]
struct Looking {
    asked: AtomicUsize,
    looks: Notify,
}

impl AsksPerson for Looking {
    fn ask(&self, _: InputRequest, _: Duration) -> Said<'_> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.looks.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_under_the_eyes_of_a_person_does_not_ask_them_again() {
    let (_bundle, host) = host("Notes.");
    let (round_trips, call) = (fresh(), echo("notes.write"));
    let person = Arc::new(Looking::default());
    let client = Client {
        person: Some(person.clone()),
        ..session(&Scripted::saying([]))
    };
    tokio::select! {
        _ = call.to(&round_trips, &client, &host) => panic!("it has ended"),
        () = person.looks.notified() => {}
    }
    let reply = ended(call.to(&round_trips, &client, &host).await);
    assert_eq!(code(&reply), "toolward:approval_paused");
    assert_eq!(person.asked.load(Ordering::Relaxed), 1);
}

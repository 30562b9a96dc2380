//! Questions of a driver: who is asked what, how calls continue with the answers, and which
//! questions are refused before anyone is asked.

use std::time::Duration;

use serde_json::{Value, json};
use toolward_host::secrets::Sources;
use toolward_host::{
    Answer, Answerable, Ask, Asked, CallError, ErrorCode, Host, Limits, Reply, Request, Resume,
};
use toolward_policy::Policy;

use crate::fixture::{Extra, Fixture};

const ANY: Answerable = Answerable {
    form: true,
    sample: true,
    roots: true,
};

fn built(extra: Extra<'_>, granted: &str, limits: Limits) -> (Fixture, Host) {
    let fixture = Fixture::new(extra);
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = format!("[[grant]]\npublisher = {publisher:?}\npreapproved = true\n{granted}\n");
    let policy = Policy::from_toml(&policy).unwrap();
    let builder = fixture.builder().policy(policy).limits(limits);
    let host = builder.build().unwrap();
    (fixture, host)
}

/// A host whose driver may ask all kinds of questions.
fn asking() -> (Fixture, Host) {
    let tool = "requires: { user: [form, sample, roots] }\n";
    let granted = "requires = [\"user:form\", \"user:sample\", \"user:roots\"]";
    let extra = Extra {
        tool,
        ..Extra::default()
    };
    built(extra, granted, Limits::default())
}

fn request(input: &Value) -> Request {
    Request::with_value("hostile.run", input.clone()).answerable(ANY)
}

async fn call(host: &Host, input: &Value) -> Reply {
    host.call(request(input)).await
}

async fn asked(host: &Host, input: &Value) -> Asked {
    let reply = call(host, input).await;
    let error = reply.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::INPUT_REQUIRED, "{error:?}");
    *reply.asked.unwrap()
}

async fn refused(host: &Host, input: &Value) -> CallError {
    let reply = call(host, input).await;
    assert!(reply.asked.is_none());
    reply.result.unwrap_err()
}

fn answered(asked: Asked, answer: Answer) -> Resume {
    let answers = vec![("q".to_owned(), answer)];
    Resume { asked, answers }
}

fn yes() -> Answer {
    Answer::Accepted(json!({"ok": true}))
}

#[tokio::test]
async fn a_driver_asks_and_goes_on_with_the_answer_and_its_own_state() {
    let (_fixture, host) = asking();
    let input = json!({"do": "ask"});
    let asked = asked(&host, &input).await;
    assert_eq!(asked.round, 1);
    assert_eq!(asked.tool_id, "hostile.run@1");
    assert_eq!(asked.questions[0].key, "q");
    let Ask::Form { message, schema } = &asked.questions[0].ask else {
        panic!("{asked:?}");
    };
    assert_eq!(message, "May I?");
    assert_eq!(schema["properties"]["ok"]["type"], "boolean");

    let invocation = asked.invocation.clone();
    let reply = host
        .call(request(&input).resume(answered(asked, yes())))
        .await;
    assert_eq!(reply.metadata.invocation, invocation);
    assert_eq!(reply.metadata.attempts, 1);
    let value = &reply.result.unwrap().structured["value"];
    assert_eq!(value["state"], "the state");
    assert_eq!(
        value["answers"],
        json!([{"key": "q", "accepted": "{\"ok\":true}"}])
    );
}

#[tokio::test]
async fn what_asked_survives_being_written_down() {
    let (_fixture, host) = asking();
    let input = json!({"do": "ask"});
    let written = serde_json::to_string(&asked(&host, &input).await).unwrap();
    let read: Asked = serde_json::from_str(&written).unwrap();
    let reply = host
        .call(request(&input).resume(answered(read, yes())))
        .await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
}

#[tokio::test]
async fn a_person_who_declines_or_goes_away_is_reported_as_that() {
    let (_fixture, host) = asking();
    let input = json!({"do": "ask"});
    for (answer, told) in [
        (Answer::Declined, "declined"),
        (Answer::Cancelled, "cancelled"),
    ] {
        let resume = answered(asked(&host, &input).await, answer);
        let output = host
            .call(request(&input).resume(resume))
            .await
            .result
            .unwrap();
        assert_eq!(output.structured["value"]["answers"][0][told], json!(true));
    }
}

#[tokio::test]
async fn samples_and_roots_are_asked_for_and_their_answers_checked() {
    let (_fixture, host) = asking();
    let message =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}});
    for (kind, right, wrong) in [
        ("sample", message, json!({"text": "x"})),
        ("roots", json!({"roots": []}), json!({"roots": "/"})),
    ] {
        let input = json!({"do": "ask", "name": kind});
        let first = asked(&host, &input).await;
        let resume = answered(first.clone(), Answer::Accepted(wrong));
        let error = host
            .call(request(&input).resume(resume))
            .await
            .result
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::INPUT_INVALID, "{kind}");
        let resume = answered(first, Answer::Accepted(right));
        let reply = host.call(request(&input).resume(resume)).await;
        assert!(reply.result.is_ok(), "{kind}: {:?}", reply.result);
    }
}

#[tokio::test]
async fn a_caller_that_cannot_answer_is_told_what_it_lacks() {
    let (_fixture, host) = asking();
    for (input, lacking) in [
        (json!({"do": "ask"}), "form"),
        (json!({"do": "ask", "name": "sample"}), "sample"),
        (json!({"do": "ask", "name": "roots"}), "roots"),
    ] {
        let reply = host.call(Request::with_value("hostile.run", input)).await;
        assert!(reply.asked.is_none());
        let error = reply.result.unwrap_err();
        assert_eq!(error.code, ErrorCode::INPUT_UNAVAILABLE);
        assert_eq!(error.cause.unwrap(), json!({"lacking": [lacking]}));
    }
}

#[tokio::test]
async fn a_question_that_was_not_granted_is_a_violation_even_if_it_could_be_answered() {
    let extra = Extra {
        tool: "requires: { user: [roots] }\n",
        ..Extra::default()
    };
    let (_fixture, host) = built(extra, "requires = [\"user:roots\"]", Limits::default());
    let reply = call(&host, &json!({"do": "ask"})).await;
    assert!(reply.asked.is_none());
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::INPUT_UNAVAILABLE);
    assert_eq!(reply.metadata.violations_total, 1);
}

#[tokio::test]
async fn a_call_goes_on_as_what_it_was_or_not_at_all() {
    let (_fixture, host) = asking();
    let (_other, elsewhere) = asking();
    let input = json!({"do": "ask", "value": "shown"});
    let first = asked(&host, &input).await;
    let resume = || answered(first.clone(), yes());

    let other_input = json!({"do": "ask", "value": "sent"});
    let mut other_bundle = resume();
    other_bundle.asked.bundle = "0".repeat(64);
    let mut other_round = resume();
    other_round.asked.round = 4;
    let mut other_driver = resume();
    other_driver.asked.driver = "other".to_owned();
    for (what, host, request) in [
        ("input", &host, request(&other_input).resume(resume())),
        (
            "principal",
            &host,
            request(&input).principal("eve").resume(resume()),
        ),
        ("publisher", &elsewhere, request(&input).resume(resume())),
        ("bundle", &host, request(&input).resume(other_bundle)),
        ("too often", &host, request(&input).resume(other_round)),
        ("driver", &host, request(&input).resume(other_driver)),
    ] {
        let reply = host.call(request).await;
        let error = reply.result.unwrap_err();
        assert_eq!(error.code, ErrorCode::RESUME_REFUSED, "{what}: {error:?}");
        assert!(error.message.contains(what), "{what}: {}", error.message);
        assert_eq!(reply.metadata.attempts, 0, "{what}");
    }
}

#[tokio::test]
async fn there_is_one_answer_to_each_question() {
    let (_fixture, host) = asking();
    let input = json!({"do": "ask"});
    let first = asked(&host, &input).await;
    let answer = |key: &str| (key.to_owned(), yes());
    for answers in [
        vec![],
        vec![answer("other")],
        vec![answer("q"), answer("q")],
        vec![answer("q"), answer("other")],
    ] {
        let asked = first.clone();
        let resume = Resume { asked, answers };
        let reply = host.call(request(&input).resume(resume)).await;
        assert_eq!(reply.result.unwrap_err().code, ErrorCode::RESUME_REFUSED);
        assert_eq!(reply.metadata.attempts, 0);
    }
}

#[tokio::test]
async fn an_answer_that_misses_the_form_never_reaches_the_driver() {
    let (_fixture, host) = asking();
    let input = json!({"do": "ask"});
    let first = asked(&host, &input).await;
    let deep = serde_json::from_str::<Value>(&format!("{}{}", "[".repeat(90), "]".repeat(90)));
    for answer in [
        json!({"ok": "yes"}),
        json!({"ok": true, "more": 1}),
        json!("yes"),
        json!({"ok": deep.unwrap()}),
        json!({"ok": "x".repeat(70_000)}),
    ] {
        let resume = answered(first.clone(), Answer::Accepted(answer));
        let reply = host.call(request(&input).resume(resume)).await;
        let error = reply.result.unwrap_err();
        assert_eq!(error.code, ErrorCode::INPUT_INVALID, "{error:?}");
        assert_eq!(reply.metadata.attempts, 0);
    }
}

#[tokio::test]
async fn a_driver_asks_three_times_at_most() {
    let (_fixture, host) = asking();
    let input = json!({"do": "ask-again"});
    let mut asked = asked(&host, &input).await;
    for round in 2..=3 {
        let reply = host
            .call(request(&input).resume(answered(asked, yes())))
            .await;
        asked = *reply.asked.unwrap();
        assert_eq!(asked.round, round);
    }
    let reply = host
        .call(request(&input).resume(answered(asked, yes())))
        .await;
    assert!(reply.asked.is_none());
    let error = reply.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::LIMIT_EXCEEDED);
    assert_eq!(error.limit.unwrap().limit, "rounds");
}

#[tokio::test]
async fn what_is_no_proper_question_is_put_to_nobody() {
    let (_fixture, host) = asking();
    let form = |schema: Value| json!({"do": "ask-form", "value": {"schema": schema}});
    let field = |field: Value| form(json!({"type": "object", "properties": {"x": field}}));
    let mut huge = field(json!({"type": "string"}));
    huge["value"]["message"] = json!("m".repeat(5000));
    for input in [
        json!({"do": "ask-nothing"}),
        json!({"do": "ask-twice-the-same"}),
        json!({"do": "ask-huge-state", "n": (64 << 10) + 1}),
        form(json!({"type": "array"})),
        field(json!({"type": "object"})),
        field(json!({"type": "string", "title": "Your password"})),
        field(json!({"type": "string", "description": "d".repeat(20_000)})),
        huge,
    ] {
        let error = refused(&host, &input).await;
        assert_eq!(error.code, ErrorCode::UPSTREAM_ERROR, "{error:?}");
        assert_eq!(
            error.cause.unwrap(),
            json!({"rule": "question-not-allowed"})
        );
    }
    let largest = asked(&host, &json!({"do": "ask-huge-state", "n": 64 << 10})).await;
    assert_eq!(largest.state.len(), 64 << 10);
}

#[tokio::test]
async fn what_was_spent_before_the_question_stays_spent() {
    let (_fixture, host) = asking();
    let input = json!({"do": "ask"});
    let mut first = asked(&host, &input).await;
    assert!(
        first.spent.fuel > 0 && first.spent.attempts == 1,
        "{:?}",
        first.spent
    );
    let fuel = first.spent.fuel;
    let reply = host
        .call(request(&input).resume(answered(first.clone(), yes())))
        .await;
    assert!(reply.metadata.fuel > fuel);

    first.spent.fuel = u64::MAX;
    let reply = host
        .call(request(&input).resume(answered(first.clone(), yes())))
        .await;
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::FUEL_EXHAUSTED);

    first.spent.fuel = 0;
    first.spent.milliseconds = Duration::from_secs(3600).as_millis() as u64;
    let reply = host
        .call(request(&input).resume(answered(first, yes())))
        .await;
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::TIMEOUT);
}

#[tokio::test]
async fn a_question_that_holds_a_secret_is_put_to_nobody() {
    const VALUE: &str = "s3cr3t-value-0123456789";
    let tool = "requires: { user: [form], secrets: [token] }\n";
    let fixture = Fixture::new(Extra {
        tool,
        ..Extra::default()
    });
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = format!(
        "[[secret]]\nslug = \"token\"\npublisher = {publisher:?}\nenv = \"TOKEN\"\n\
         origin = \"https://api.test\"\nheader = \"authorization\"\n\
         [[grant]]\npublisher = {publisher:?}\npreapproved = true\n\
         requires = [\"user:form\", \"secret:token\"]\nreveal = [\"token\"]\n"
    );
    let policy = Policy::from_toml(&policy).unwrap();
    let secrets = Sources::new(&policy, "/".as_ref(), |_| Some(VALUE.to_owned()));
    let host = fixture.builder().policy(policy).secrets(secrets);
    let host = host.build().unwrap();
    let form = |message: &str| {
        let schema = json!({"type": "object", "properties": {}});
        json!({"do": "ask-form", "value": {"message": message, "schema": schema}})
    };
    let reply = call(&host, &form("Is it ${reveal:token}?")).await;
    assert!(reply.asked.is_none());
    let shown = format!("{} {:?}", reply.envelope(), reply.captured);
    assert!(!shown.contains(VALUE), "{shown}");
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::UPSTREAM_ERROR);
    asked(&host, &form("Is it that?")).await;
}

//! Tests questions, and the next call with their answers.

use serde_json::{Value, json};
use toolward_guest::testing::TestCall;
use toolward_guest::{Answer, Call, Error, Outcome, Questions};

// ANCHOR: order
fn order(call: Call<Value>) -> Result<Outcome<String>, Error> {
    let Some(resume) = call.resume() else {
        let schema = json!({"type": "object", "properties": {"size": {"type": "string"}}});
        let questions = Questions::new()
            .form("size", "Which size?", schema)
            .sample("name", json!({"messages": [], "maxTokens": 5}))
            .state(&json!({"drink": "tea"}))?;
        return Ok(questions.into());
    };
    let state: Value = resume.state()?;
    match resume.answer::<Value>("size")? {
        Answer::Accepted(form) => {
            let size = form["size"].as_str().unwrap_or("?");
            Ok(Outcome::done(format!(
                "{size} {}",
                state["drink"].as_str().unwrap_or("?")
            )))
        }
        Answer::Declined => Err(Error::new("order:declined", "no size")),
        Answer::Cancelled => Err(Error::new("order:cancelled", "no answer")),
    }
}

// ANCHOR_END: order
fn asked() -> Questions {
    match TestCall::new(json!({})).run(order).unwrap() {
        Outcome::Ask(questions) => questions,
        Outcome::Done(reply) => panic!("did not ask: {reply:?}"),
    }
}

#[test]
fn questions_keep_their_order_and_the_state() {
    let questions = asked();
    assert_eq!(questions.keys().collect::<Vec<_>>(), ["size", "name"]);
    assert_eq!(questions.saved_state(), br#"{"drink":"tea"}"#);
}

#[test]
fn the_answers_and_the_state_come_back() {
    let answers = [("size", Answer::Accepted(json!({"size": "large"})))];
    let call = TestCall::new(json!({})).answers(&asked(), answers);
    assert_eq!(call.run(order).unwrap(), Outcome::done(json!("large tea")));
}

#[test]
fn a_refusal_is_no_answer() {
    for (answer, code) in [
        (Answer::Declined, "order:declined"),
        (Answer::Cancelled, "order:cancelled"),
    ] {
        let call = TestCall::new(json!({})).answers(&asked(), [("size", answer)]);
        assert_eq!(call.run(order).unwrap_err().code(), code);
    }
}

#[test]
fn an_answer_to_another_question_is_an_error() {
    let call = TestCall::new(json!({})).answers(&asked(), [("colour", Answer::Declined)]);
    assert_eq!(call.run(order).unwrap_err().code(), "internal");
}

#[test]
fn asking_nothing_is_an_error() {
    let handler = |_: Call<Value>| Ok::<_, Error>(Outcome::<u32>::Ask(Questions::new()));
    assert_eq!(
        TestCall::new(json!({})).run(handler).unwrap_err().code(),
        "internal"
    );
}

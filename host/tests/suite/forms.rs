//! Drivers of `kind: form`: a person's answer is the output.

use std::time::Duration;

use serde_json::{Value, json};
use toolward_host::{
    Answer, Answerable, Ask, Asked, ErrorCode, Host, Limits, Origin, Reply, Request, Resume,
};
use toolward_policy::Policy;

use crate::fixture::{Extra, Fixture, run, still_serves};

const FORMS: Answerable = Answerable {
    form: true,
    sample: false,
    roots: false,
};
const TOOL: &str = "person.choose";
/// A tool whose form is larger than a question may be.
const LENGTHY: &str = "person.lengthy";

/// A host with a tool that a person answers, and with these grants.
fn host(granted: &str) -> (Fixture, Host) {
    under(granted, "", Limits::default())
}

/// The context that [`under`] gives if the contract requires one.
const CONTEXT: &str = "a-tenant-that-nobody-may-see";

/// Like [`host`], with more lines of TOOL.md and with these limits.
fn under(granted: &str, more: &str, limits: Limits) -> (Fixture, Host) {
    let fixture = Fixture::new(Extra::default());
    fixture.write(
        &format!("tools/{TOOL}/TOOL.md"),
        format!(
            "---\nname: Choose\nid: {TOOL}\ndescription: Asks which day suits.\nversion: 1.0.0\n\
             inputs: {{ type: object, properties: {{ about: {{ type: string }}, pin: {{ type: string, x-sensitive: true }} }} }}\n\
             outputs: {{ type: object, properties: {{ day: {{ type: string, format: date }}, note: {{ type: string, maxLength: 5 }} }}, required: [day] }}\n\
             requires: {{ user: [form] }}\n{more}---\n"
        ),
    );
    let long = "long ".repeat(190);
    let field = |n| format!("f{n}: {{ type: string, description: {long}}}");
    let fields: Vec<String> = (0..20).map(field).collect();
    let fields = fields.join(", ");
    fixture.write(
        &format!("tools/{LENGTHY}/TOOL.md"),
        format!(
            "---\nname: Lengthy\nid: {LENGTHY}\ndescription: Asks at length.\nversion: 1.0.0\n\
             inputs: {{ type: object }}\n\
             outputs: {{ type: object, properties: {{ {fields} }} }}\n\
             requires: {{ user: [form] }}\n---\n"
        ),
    );
    fixture.write(
        "drivers/choose/DRIVER.md",
        format!(
            "---\nname: Choose\nid: choose-form\ndescription: Asks.\nversion: 1.0.0\nkind: form\n\
             implements:\n  - tool: {TOOL}\n    version: 1.x\n  - tool: {LENGTHY}\n    version: 1.x\n---\n"
        ),
    );
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = format!(
        "[[grant]]\npublisher = {publisher:?}\n{granted}\n[[context]]\npublisher = {publisher:?}\n\
         tool = \"{TOOL}\"\nprincipal = \"*\"\nenv.tenant = \"TENANT\"\n"
    );
    let policy = Policy::from_toml(&policy).unwrap();
    let policy = policy.with_contexts(&mut |_| Ok(CONTEXT.to_owned()));
    let host = fixture.builder().policy(policy).limits(limits);
    (fixture, host.build().unwrap())
}

const GRANTED: &str = "requires = [\"user:form\"]";

fn request(input: Value) -> Request {
    Request::with_value(TOOL, input).answerable(FORMS)
}

fn question(reply: Reply) -> Asked {
    let error = reply.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::INPUT_REQUIRED, "{error:?}");
    *reply.asked.unwrap()
}

async fn resume(host: &Host, input: Value, asked: Asked, answer: Answer) -> Reply {
    let answers = vec![(asked.questions[0].key.clone(), answer)];
    host.call(request(input).resume(Resume { asked, answers }))
        .await
}

fn message(asked: &Asked) -> &str {
    match &asked.questions[0].ask {
        Ask::Form { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_answer_of_a_person_is_the_output_and_says_so() {
    let (_fixture, host) = host(GRANTED);
    let input = json!({ "about": "lunch\narguments:\nsay yes", "pin": "1234" });
    let asked = question(host.call(request(input.clone())).await);
    let Ask::Form { schema, .. } = &asked.questions[0].ask else {
        panic!("{asked:?}");
    };
    assert_eq!(schema["required"], json!(["day"]));
    // The tool's own text comes first, then the caller's text behind a bar.
    let expected = "Asks which day suits.\n\narguments:\n| {\n|   \"about\": \"lunch\\narguments:\\nsay yes\",\n\
                    |   \"pin\": \"[hidden]\"\n| }\n";
    assert_eq!(message(&asked), expected);
    let answer = Answer::Accepted(json!({ "day": "2026-12-01" }));
    let reply = resume(&host, input, asked, answer).await;
    assert_eq!(reply.metadata.origin, Some(Origin::Person));
    assert_eq!(reply.envelope()["meta"]["origin"], "person");
    let output = reply.result.unwrap();
    assert_eq!(output.structured, json!({ "day": "2026-12-01" }));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_three_rounds_in_all() {
    let (_fixture, host) = host(GRANTED);
    let wrong = || Answer::Accepted(json!({ "day": "tomorrow" }));
    let mut asked = question(host.call(request(json!({}))).await);
    for round in 2..=3 {
        let reply = resume(&host, json!({}), asked, wrong()).await;
        asked = question(reply);
        assert_eq!(asked.round, round);
        assert!(message(&asked).starts_with("Your last answer was not taken: "));
    }
    let reply = resume(&host, json!({}), asked.clone(), wrong()).await;
    assert_eq!(reply.metadata.origin, None);
    let error = reply.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::INPUT_UNAVAILABLE, "{error:?}");

    let mut asked = question(host.call(request(json!({}))).await);
    for answer in [json!({}), json!({ "day": "2026-12-01", "more": 1 })] {
        let reply = resume(&host, json!({}), asked, Answer::Accepted(answer)).await;
        asked = question(reply);
    }
    let right = Answer::Accepted(json!({ "day": "2026-12-01", "note": "five." }));
    let reply = resume(&host, json!({}), asked, right).await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
}

#[tokio::test]
async fn nobody_there_and_no_answer_are_input_unavailable() {
    let (_fixture, host) = host(GRANTED);
    let alone = host.call(Request::with_value(TOOL, json!({}))).await;
    let error = alone.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::INPUT_UNAVAILABLE, "{error:?}");
    for answer in [Answer::Declined, Answer::Cancelled] {
        let asked = question(host.call(request(json!({}))).await);
        let reply = resume(&host, json!({}), asked, answer).await;
        let error = reply.result.unwrap_err();
        assert_eq!(error.code, ErrorCode::INPUT_UNAVAILABLE, "{error:?}");
    }
}

#[tokio::test]
async fn a_principal_is_asked_one_form_at_a_time() {
    let (_fixture, host) = host(GRANTED);
    let ada = || request(json!({})).principal("ada");
    let asked = question(host.call(ada()).await);
    let error = host.call(ada()).await.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::RATE_LIMITED, "{error:?}");
    assert!(error.retry_after.is_some());
    // Another principal is another person.
    let eve = question(host.call(request(json!({})).principal("eve")).await);
    host.give_up(&eve);
    host.give_up(&asked);
    let next = question(host.call(ada()).await);
    // No one can answer questions that were given up.
    let late = Resume {
        answers: vec![(
            asked.questions[0].key.clone(),
            Answer::Accepted(json!({ "day": "2026-12-01" })),
        )],
        asked,
    };
    let error = host.call(ada().resume(late)).await.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::INPUT_UNAVAILABLE, "{error:?}");
    // A wrong answer does not close the open question either.
    let right = Resume {
        answers: vec![(
            next.questions[0].key.clone(),
            Answer::Accepted(json!({ "day": "2026-12-01" })),
        )],
        asked: next,
    };
    assert!(host.call(ada().resume(right)).await.result.is_ok());
}

#[tokio::test]
async fn a_form_that_can_not_be_shown_is_refused_before_it_is_opened() {
    let (_fixture, host) = host(GRANTED);
    let asked = question(host.call(request(json!({}))).await);
    let lengthy = Request::with_value(LENGTHY, json!({})).answerable(FORMS);
    let error = host.call(lengthy).await.result.unwrap_err();
    let rule = &error.cause.as_ref().unwrap()["rule"];
    assert_eq!(rule, "question-not-allowed", "{error:?}");
    host.give_up(&asked);
}

#[tokio::test]
async fn a_question_that_is_refused_for_a_secret_in_it_leaves_no_form_open() {
    let schema = "contextSchema: { type: object, properties: { tenant: { type: string } } }\n";
    let (_fixture, host) = under(GRANTED, schema, Limits::default());
    let told = host.call(request(json!({ "about": CONTEXT }))).await;
    assert!(told.asked.is_none());
    let error = told.result.unwrap_err();
    let rule = &error.cause.as_ref().unwrap()["rule"];
    assert_eq!(rule, "question-not-allowed", "{error:?}");
    question(host.call(request(json!({ "about": "lunch" }))).await);
}

#[tokio::test]
async fn a_call_that_is_dropped_before_its_answer_is_taken_leaves_no_form_open() {
    let one = Limits {
        concurrency: 1,
        ..Limits::default()
    };
    let (_fixture, host) = under(GRANTED, "", one);
    still_serves(&host).await;
    let asked = question(host.call(request(json!({}))).await);
    let sleeper = run(&host, json!({"do": "sleep", "n": 60_000}));
    let mut sleeper = Box::pin(sleeper);
    let short = Duration::from_millis(200);
    let waits = tokio::time::timeout(short, &mut sleeper).await;
    waits.expect_err("it holds the slot");
    let answer = Answer::Accepted(json!({ "day": "2026-12-01" }));
    let resumed = resume(&host, json!({}), asked, answer);
    let waits = tokio::time::timeout(short, resumed).await;
    waits.expect_err("it waits for the slot");
    drop(sleeper);
    question(host.call(request(json!({}))).await);
}

#[tokio::test]
async fn without_the_grant_nobody_is_asked() {
    let (_fixture, host) = host("");
    let reply = host.call(request(json!({}))).await;
    assert!(reply.asked.is_none());
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::UNAUTHORISED);
}

#[tokio::test]
async fn an_input_that_does_not_fit_the_question_is_not_cut() {
    let (_fixture, host) = host(GRANTED);
    let input = json!({ "about": "x".repeat(3000) });
    let reply = host.call(request(input)).await;
    assert!(reply.asked.is_none());
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::INPUT_INVALID);
}

//! The approver of a call is asked instead of the host's approver: for the call, for its nested
//! calls, and again when the call resumes.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolward_host::{
    Answer, Answerable, ApprovalRequest, Approver, ErrorCode, Host, Request, Resume, Verdict,
};
use toolward_policy::Policy;

use crate::fixture::{Extra, Fixture};

/// Gives the same verdict each time, and remembers the requests.
struct Says(Verdict, Mutex<Vec<ApprovalRequest>>);

impl Says {
    fn always(verdict: Verdict) -> Arc<Self> {
        Arc::new(Self(verdict, Mutex::default()))
    }

    fn asked(&self) -> Vec<ApprovalRequest> {
        self.1.lock().unwrap().clone()
    }
}

impl Approver for Says {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        self.1.lock().unwrap().push(request.clone());
        Box::pin(async { self.0.clone() })
    }
}

/// The host's own approver, which no call here should reach.
struct Never;

impl Approver for Never {
    fn ask<'a>(
        &'a self,
        _: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        panic!("the host's approver was asked")
    }
}

const ALWAYS: &str = "approval: always\nrequires: { user: [form], tools: [hostile.other] }\n";

/// Two tools with one driver each. The first may call the second, and both need approval each time.
fn host() -> (Fixture, Host) {
    let fixture = Fixture::new(Extra {
        tool: ALWAYS,
        ..Extra::default()
    });
    fixture.tool("hostile.other", "approval: always\n");
    fixture.driver("other", "hostile.other", Extra::default());
    let publisher = format!("dev:{}", fixture.path().display());
    let policy = format!(
        "[[grant]]\npublisher = {publisher:?}\n\
         requires = [\"user:form\", \"tool:hostile.other\"]\n"
    );
    let builder = fixture
        .builder()
        .policy(Policy::from_toml(&policy).unwrap());
    let host = builder.approver(Never).build().unwrap();
    (fixture, host)
}

fn request(input: Value, approver: &Arc<Says>) -> Request {
    Request::with_value("hostile.run", input).approver(approver.clone())
}

#[tokio::test]
async fn the_calls_own_approver_is_asked_with_all_that_identifies_the_call() {
    let (_fixture, host) = host();
    let yes = Says::always(Verdict::Approved);
    let reply = host
        .call(request(json!({"do": "echo", "value": 1}), &yes))
        .await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
    let [asked] = yes.asked().try_into().unwrap();
    assert_eq!(asked.tool_id, "hostile.run@1");
    assert_eq!(asked.driver_bundle, *reply.metadata.bundle.unwrap());
    assert_eq!(asked.bundle, asked.driver_bundle);
    assert_eq!(asked.input, json!({"do": "echo", "value": 1}));
    assert!(asked.each_time);

    let no = Says::always(Verdict::Denied(None));
    let reply = host.call(request(json!({"do": "echo"}), &no)).await;
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::APPROVAL_DENIED);
    assert_eq!(reply.metadata.attempts, 0);
}

#[tokio::test]
async fn what_is_sensitive_is_hidden_from_the_approver_and_covered_by_their_yes() {
    let inputs = "inputs:\n  type: object\n  properties:\n    value: { $ref: \"#/$defs/login\" }\n  \
                  $defs:\n    login:\n      type: object\n      properties:\n        \
                  pin: { x-sensitive: true }\n        token: { type: string, writeOnly: true }\n";
    let fixture = Fixture::new(Extra {
        tool: &format!("approval: always\n{inputs}"),
        ..Extra::default()
    });
    let host = fixture.host();
    let no = Says::always(Verdict::Denied(None));
    let input =
        |pin: u32| json!({"do": "echo", "value": {"user": "ada", "pin": pin, "token": "s3cret"}});
    for pin in [1234, 1234, 4321] {
        host.call(request(input(pin), &no))
            .await
            .result
            .unwrap_err();
    }
    let asked = no.asked();
    let hidden = json!({"user": "ada", "pin": "[hidden]", "token": "[hidden]"});
    for asked in &asked {
        assert_eq!(asked.input, json!({"do": "echo", "value": hidden}));
        assert!(!format!("{asked:?}").contains("s3cret"));
    }
    // An approval also covers the hidden values.
    assert_eq!(asked[0].input_digest, asked[1].input_digest);
    assert_ne!(asked[0].input_digest, asked[2].input_digest);

    let yes = Says::always(Verdict::Approved);
    let output = host.call(request(input(1234), &yes)).await.result.unwrap();
    assert_eq!(output.structured["value"], input(1234)["value"]);
}

#[tokio::test]
async fn a_question_that_is_on_its_way_ends_the_call_before_the_driver_starts() {
    let (_fixture, host) = host();
    let later = Says::always(Verdict::Later);
    let reply = host.call(request(json!({"do": "echo"}), &later)).await;
    let error = reply.result.unwrap_err();
    assert_eq!(error.code, ErrorCode::APPROVAL_PENDING);
    assert_eq!(reply.metadata.attempts, 0);
}

/// Withdraws the bundle, and then approves.
struct YesTooLate(Mutex<Option<Host>>);

impl Approver for YesTooLate {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        let host = self.0.lock().unwrap().take().unwrap();
        assert!(host.withdraw(&request.bundle, "revoked while a person was asked"));
        Box::pin(async { Verdict::Approved })
    }
}

#[tokio::test]
async fn a_yes_to_what_was_taken_back_meanwhile_comes_too_late() {
    let (_fixture, host) = host();
    let late = Arc::new(YesTooLate(Mutex::new(Some(host.clone()))));
    let call = Request::with_value("hostile.run", json!({"do": "echo"})).approver(late);
    let reply = host.call(call).await;
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::WITHDRAWN);
    assert_eq!(reply.metadata.attempts, 0);
}

/// Approves the caller's own calls, and returns [`Verdict::Later`] for nested calls.
struct LaterBelow(Arc<Says>);

impl Approver for LaterBelow {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        match request.called_by.is_empty() {
            true => Box::pin(async { Verdict::Approved }),
            false => self.0.ask(request),
        }
    }
}

#[tokio::test]
async fn a_call_by_a_tool_asks_the_same_approver_and_never_later() {
    let (_fixture, host) = host();
    let below = Says::always(Verdict::Later);
    let input = json!({"do": "tool", "name": "hostile.other", "value": {"do": "echo"}});
    let request =
        Request::with_value("hostile.run", input).approver(Arc::new(LaterBelow(below.clone())));
    let output = host.call(request).await.result.unwrap();
    let text = output.structured.to_string();
    assert!(text.contains("toolward:approval_denied"), "{text}");
    let [asked] = below.asked().try_into().unwrap();
    assert_eq!(asked.tool_id, "hostile.other@1");
    assert_eq!(asked.called_by, ["hostile.run@1"]);
}

#[tokio::test]
async fn a_call_that_goes_on_is_approved_again_before_it_does() {
    let (_fixture, host) = host();
    let yes = Says::always(Verdict::Approved);
    let form = Answerable {
        form: true,
        ..Answerable::default()
    };
    let input = json!({"do": "ask"});
    let reply = host
        .call(request(input.clone(), &yes).answerable(form))
        .await;
    let resume = || Resume {
        asked: *reply.asked.clone().unwrap(),
        answers: vec![("q".to_owned(), Answer::Declined)],
    };
    let no = Says::always(Verdict::Denied(None));
    let denied = host
        .call(request(input.clone(), &no).resume(resume()))
        .await;
    assert_eq!(denied.result.unwrap_err().code, ErrorCode::APPROVAL_DENIED);
    assert_eq!(denied.metadata.attempts, 0);
    let done = host.call(request(input, &yes).resume(resume())).await;
    assert!(done.result.is_ok(), "{:?}", done.result);
    assert_eq!(yes.asked().len(), 2);
}

//! A person sees a request exactly as it is sent, except its secrets.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolward_host::{ApprovalRequest, Approver, ErrorCode, Request, ShownRequest, Verdict};

use super::{Sent, Service, TOOL, Terms, VALUE};

/// Stores the questions, and always gives the same verdict.
struct Person {
    verdict: Verdict,
    asked: Mutex<Vec<ApprovalRequest>>,
}

impl Person {
    fn says(verdict: Verdict) -> Arc<Self> {
        Arc::new(Self {
            verdict,
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<ApprovalRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns the request that the only question showed.
    fn shown(&self) -> ShownRequest {
        let [asked] = self.asked().try_into().unwrap();
        asked.request.unwrap()
    }
}

impl Approver for Person {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        self.asked.lock().unwrap().push(request.clone());
        Box::pin(std::future::ready(self.verdict.clone()))
    }
}

fn call(input: Value, person: &Arc<Person>) -> Request {
    Request::with_value(TOOL, input).approver(person.clone())
}

async fn asks(service: &Service, input: Value) -> (ShownRequest, Sent) {
    let person = Person::says(Verdict::Approved);
    let reply = service.run(call(input, &person)).await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
    assert!(!format!("{:?}", person.asked()).contains(VALUE));
    (person.shown(), service.sent())
}

fn edit() -> Value {
    json!({
        "endpoint": "/v1/${input.id}", "method": "PUT",
        "query_template": { "q": "${input.q}", "key": "${secrets.THINGS_KEY}", "user": "${context.user}" },
        "body_template": { "name": "${input.name}", "fixed": [1] },
    })
}

const IN_QUERY: &str = "query = \"key\"";
const USER: &str = "contextSchema: { type: object, properties: { user: { type: string } } }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_the_request_that_is_sent_with_secrets_hidden() {
    let terms = Terms::of(edit()).tool(USER).secret(IN_QUERY).asking();
    let service = terms.serve().await;
    let input = json!({ "id": "a b", "q": "&key=1\r\nHost: evil.test", "name": "x\ny" });
    let (shown, _) = asks(&service, input.clone()).await;
    let port = service.vault.port;
    let end = "/base/v1/a%20b?q=%26key%3D1%0D%0AHost%3A%20evil.test";
    let url = format!("https://api.test:{port}{end}&key=[secret:THINGS_KEY]");
    assert_eq!((shown.method.as_str(), shown.url), ("PUT", url));
    assert_eq!(shown.body, Some(json!({ "name": "x\ny", "fixed": [1] })));

    let mut request = edit();
    request["method"] = json!("POST");
    let terms = Terms::of(request).tool(USER).secret(IN_QUERY).asking();
    let service = terms.serve().await;
    let (shown, sent) = asks(&service, input).await;
    assert_eq!(shown.method, sent.method);
    let origin = format!("https://api.test:{}", service.vault.port);
    let sent_url = sent.target.replace(super::ENCODED, "[secret:THINGS_KEY]");
    assert_eq!(shown.url, format!("{origin}{sent_url}"));
    assert_eq!(shown.body, Some(sent.json()));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_value_passes_for_a_hidden_secret_or_starts_a_line() {
    let terms = Terms::of(edit()).tool(USER).secret(IN_QUERY).asking();
    let service = terms.serve().await;
    for hostile in [
        "[secret:THINGS_KEY]",
        "\n  effect     nothing",
        "\u{202e}\u{1b}[2J\u{e0041}\u{9b}",
    ] {
        let person = Person::says(Verdict::Denied(None));
        let input = json!({ "id": "1", "q": hostile, "name": hostile });
        let reply = service.run(call(input, &person)).await;
        assert_eq!(reply.result.unwrap_err().code, ErrorCode::APPROVAL_DENIED);
        let shown = person.shown();
        assert!(shown.url.bytes().all(|b| matches!(b, b'!'..=b'~')));
        assert_eq!(shown.url.matches("[secret:").count(), 1, "{}", shown.url);
    }
    assert!(service.vault.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_contract_hides_is_hidden_in_url_and_body_and_sent_whole() {
    let tool = "contextSchema: { type: object, properties: { user: { type: string, x-sensitive: true } } }\n";
    let request = json!({
        "endpoint": "/${input.pin}", "query_template": { "user": "${context.user}" },
        "body_template": { "note": "pin ${input.pin}", "open": "${input.open}" },
    });
    let inputs =
        "{ type: object, properties: { pin: { x-sensitive: true }, open: { type: string } } }";
    let terms = Terms::of(request).tool(tool).inputs(inputs).asking();
    let service = terms.serve().await;
    let person = Person::says(Verdict::Approved);
    let input = json!({ "pin": "p1n", "open": "yes" });
    let request = call(input, &person).context(json!({ "user": "us3r" }));
    let reply = service.run(request).await;
    assert!(reply.result.is_ok(), "{:?}", reply.result);
    assert_eq!(service.sent().target, "/base/p1n?user=us3r");
    let shown = person.shown();
    let end = "/base/%5Bhidden%5D?user=%5Bhidden%5D";
    assert!(shown.url.ends_with(end), "{shown:?}");
    let body = json!({ "note": "pin [hidden]", "open": "yes" });
    assert_eq!(shown.body, Some(body));
    let all = format!("{:?}", person.asked());
    assert!(!all.contains("p1n") && !all.contains("us3r"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_request_that_takes_a_hidden_value_apart_only_its_host_is_shown() {
    let request = json!({
        "endpoint": "/x", "query_template": { "user": "${input.login.user}", "a": "${input.a}" },
    });
    let inputs =
        "{ type: object, properties: { login: { x-sensitive: true }, a: { type: string } } }";
    let terms = Terms::of(request).inputs(inputs).asking();
    let service = terms.serve().await;
    let input = json!({ "login": { "user": "us3r" }, "a": "b" });
    let (shown, sent) = asks(&service, input).await;
    assert_eq!(sent.target, "/base/x?user=us3r&a=b");
    assert!(shown.url.ends_with("/[hidden]"), "{shown:?}");
    assert_eq!(shown.body, Some(json!("[hidden]")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_is_for_this_input_with_this_context() {
    let mut request = edit();
    request["method"] = json!("POST");
    let terms = Terms::of(request).tool(USER).secret(IN_QUERY).asking();
    let service = terms.serve().await;
    let person = Person::says(Verdict::Later);
    let input = json!({ "id": "1", "name": "n" });
    for user in ["ada", "ada", "eve"] {
        let request = call(input.clone(), &person).context(json!({ "user": user }));
        let error = service.run(request).await.result.unwrap_err();
        assert_eq!(error.code, ErrorCode::APPROVAL_PENDING);
    }
    let asked = person.asked();
    assert_eq!(asked[0].input_digest, asked[1].input_digest);
    assert_ne!(asked[0].input_digest, asked[2].input_digest);
    assert_ne!(asked[0].request, asked[2].request);
    assert!(service.vault.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_about_a_request_that_can_not_be_made() {
    let terms = Terms::of(edit()).tool(USER).secret(IN_QUERY).asking();
    let service = terms.serve().await;
    let person = Person::says(Verdict::Approved);
    let input = json!({ "id": "..", "name": "n" });
    let reply = service.run(call(input, &person)).await;
    assert_eq!(reply.result.unwrap_err().code, ErrorCode::INPUT_INVALID);
    assert!(person.asked().is_empty());
    assert!(service.vault.seen().is_empty());
}

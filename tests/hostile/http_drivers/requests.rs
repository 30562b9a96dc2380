//! Checks the method, path, query, headers and body that arrive.

use serde_json::json;
use toolward_host::Request;

use super::{Sent, TOOL, Terms, VALUE};
use crate::server::ok;
use crate::vault::Vault;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_arrives_as_its_driver_describes_it() {
    let request = json!({
        "endpoint": "/v1/${input.id}/edit", "headers": { "X-Kind": "own", "X-Left": "${input.none}" },
        "query_template": { "lang": "${input.lang | default('en')}", "f[a]": "${input.filter | json}", "none": "${input.none}" },
        "body_template": { "name": "${input.name}", "n": "${input.n}", "list": ["a ${input.n}"], "user": "${context.user}" },
        "response_extract": "$.data[?(@.kind=='a')].n", "idempotency_key_header": "Idempotency-Key",
    });
    let driver = json!({
        "default_headers": {
            "Authorization": "Bearer ${secrets.THINGS_KEY}", "x-kind": "default", "Accept": "application/json",
        },
    });
    let answer = "{\"data\": [{\"kind\": \"a\", \"n\": 1}, {\"kind\": \"b\", \"n\": 2}, {\"kind\": \"a\", \"n\": 3}]}";
    let context = "contextSchema: { type: object, properties: { user: { type: object } } }\n";
    let service = Terms::of(request)
        .driver(driver)
        .tool(context)
        .on(Vault::saying(answer).await);
    let input = json!({ "id": "a b", "name": "\"x\"", "n": 1.5, "filter": { "q": "&" } });
    let call = Request::with_value(TOOL, input).context(json!({ "user": { "id": "u1" } }));
    let output = service.run(call).await.result.unwrap();
    assert_eq!(output.structured, json!([1, 3]));

    let sent = service.sent();
    assert_eq!(sent.method, "POST");
    assert_eq!(
        sent.target,
        "/base/v1/a%20b/edit?lang=en&f%5Ba%5D=%7B%22q%22%3A%22%26%22%7D"
    );
    assert_eq!(
        sent.header("host"),
        Some(format!("api.test:{}", service.vault.port).as_str())
    );
    assert_eq!(
        sent.header("authorization"),
        Some(format!("Bearer {VALUE}").as_str())
    );
    assert_eq!(sent.header("x-kind"), Some("own"));
    assert_eq!(sent.header("accept"), Some("application/json"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("x-left"), None);
    assert_eq!(sent.header("idempotency-key").map(str::len), Some(36));
    assert_eq!(
        sent.json(),
        json!({ "name": "\"x\"", "n": 1.5, "list": ["a 1.5"], "user": { "id": "u1" } })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_template_the_input_is_the_body_of_methods_that_have_one() {
    for (method, body) in [
        ("POST", true),
        ("PUT", true),
        ("PATCH", true),
        ("GET", false),
        ("DELETE", false),
    ] {
        let request = json!({ "endpoint": "/things", "method": method });
        let driver = json!({ "default_headers": { "Content-Type": "application/json" } });
        let service = Terms::of(request).driver(driver).serve().await;
        let input = json!({ "a": [1, { "b": null }] });
        assert_eq!(
            service.output(input.clone()).await,
            json!({ "ok": true }),
            "{method}"
        );
        let sent = service.sent();
        assert_eq!(
            (sent.method.as_str(), sent.target.as_str()),
            (method, "/base/things")
        );
        assert_eq!(sent.header("content-type").is_some(), body, "{method}");
        match body {
            true => assert_eq!(sent.json(), input, "{method}"),
            false => assert_eq!(sent.body, "", "{method}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_one_idempotency_key_over_its_retries_and_another_call_another_one() {
    let failed = std::sync::atomic::AtomicUsize::new(0);
    let vault = Vault::start(move |_| {
        // The first attempt of each call fails.
        match failed.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 2 {
            0 => b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n".to_vec(),
            _ => ok("{}"),
        }
    })
    .await;
    let request = json!({ "endpoint": "/", "idempotency_key_header": "X-Key" });
    let retry = "idempotent: true\nretry: { max_attempts: 2, backoff: fixed, initial_ms: 1 }\n";
    let service = Terms::of(request).tool(retry).on(vault);
    for _ in 0..2 {
        assert_eq!(service.output(json!({})).await, json!({}));
    }
    let seen = service.vault.seen();
    let keys: Vec<String> = seen
        .iter()
        .map(|text| Sent::read(text).header("x-key").unwrap().to_owned())
        .collect();
    assert_eq!(keys.len(), 4);
    assert_eq!((&keys[0], &keys[2]), (&keys[1], &keys[3]));
    assert_ne!(keys[0], keys[2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_call_with_an_id_of_its_caller_stands_for_that_id_and_does_not_show_it() {
    let id = uuid::Uuid::now_v7().to_string();
    let key = async |principal: &str, id: &str| {
        let request = json!({ "endpoint": "/", "idempotency_key_header": "X-Key" });
        // A separate host for each call, since one host does not run an id twice.
        let service = Terms::of(request).serve().await;
        let call = Request::with_value(TOOL, json!({})).principal(principal);
        let reply = service.run(call.named(id)).await;
        assert!(reply.result.is_ok(), "{:?}", reply.result);
        let key = service.sent().header("x-key").unwrap().to_owned();
        assert!(key != id && key != reply.metadata.invocation, "{key}");
        key
    };
    let first = key("ada", &id).await;
    assert_eq!(key("ada", &id).await, first);
    assert_ne!(key("eve", &id).await, first);
    assert_ne!(key("ada", &uuid::Uuid::now_v7().to_string()).await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_of_the_old_form_is_served_as_before() {
    let request = json!({
        "endpoint": "/items/${input.id}?lang=${input.lang}", "headers": { "Authorization": "Bearer ${secret.THINGS_KEY}" },
        "response": { "pointer": "/item" },
    });
    let vault = Vault::saying("{\"item\": [1]}").await;
    // Requests go to its only egress host, and its method is GET.
    let driver = json!({
        "base_url": null, "network": { "egress": [format!("api.test:{}", vault.port)] },
        "requires": { "secrets": ["THINGS_KEY"] },
    });
    let service = Terms::of(request).driver(driver).on(vault);
    assert_eq!(
        service.output(json!({ "id": 7, "lang": "x&y" })).await,
        json!([1])
    );
    let sent = service.sent();
    assert_eq!(
        (sent.method.as_str(), sent.target.as_str()),
        ("GET", "/items/7?lang=x%26y")
    );
    assert_eq!(
        sent.header("authorization"),
        Some(format!("Bearer {VALUE}").as_str())
    );
}

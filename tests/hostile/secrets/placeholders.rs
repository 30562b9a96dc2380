//! A placeholder is replaced only in its header to its origin: not elsewhere in a request, not for
//! another tool, and not in the output of the call.

use serde_json::json;

use super::{USUAL, VALUE, World};
use crate::vault::Vault;

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_in_a_url_body_or_other_header_sends_nothing() {
    let world = World::new().await;
    let mark = "${placeholder:token}";
    for extra in [
        json!({"url": world.vault.url(&format!("/repos/{mark}"))}),
        json!({"url": world.vault.url(&format!("/repos/x?t={mark}"))}),
        json!({"method": "POST", "body": mark}),
        json!({"method": "POST", "body": format!("{{\"token\": \"{mark}\"}}")}),
        json!({"headers": [["x-token", mark]]}),
        json!({"headers": [["cookie", mark]]}),
        json!({"headers": [["referer", mark]]}),
        json!({"headers": [["authorization", format!("{mark}{mark}")]]}),
        json!({"headers": [["authorization", format!("Bearer {mark}")], ["x-token", mark]]}),
        json!({"headers": [["authorization", format!("Bearer {mark}")], ["range", "bytes=0-0"]]}),
        json!({"method": "POST", "body": "x", "trailers": [["x-token", mark]]}),
    ] {
        let mut request = json!({"do": "http", "url": world.vault.url("/repos/x")});
        for (name, value) in extra.as_object().unwrap() {
            request[name] = value.clone();
        }
        let got = world.value(request).await;
        let refused = got["err"].is_string() || got["ok"]["end"] != json!("closed");
        assert!(refused, "{extra}: {got}");
        world.vault.assert_not_told(VALUE, "in another place");
    }
    // Not even the placeholder was sent.
    let seen = world.vault.seen();
    assert!(
        seen.iter()
            .all(|request| !request.contains("toolward-secret-")),
        "{seen:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_is_not_handed_to_another_tool() {
    let world = World::new().await;
    let input = json!({"do": "call-tool", "tool": "other.tool", "input": {
        "do": "echo", "value": "Bearer ${placeholder:token}",
    }});
    let reply = world.run(input).await;
    assert_eq!(reply.metadata.violations[0].kind.as_str(), "secret");
    let got = reply.result.unwrap().structured;
    assert_eq!(got["value"]["err"], json!("unauthorised"), "{got}");
    let input =
        json!({"do": "call-tool", "tool": "other.tool", "input": {"do": "echo", "value": 1}});
    assert_eq!(
        world.value(input).await["ok"]["value"],
        json!(1),
        "others go through"
    );
    // The other tool has no secret, whatever its caller has.
    let input = json!({"do": "call-tool", "tool": "other.tool", "input": {
        "do": "secrets", "op": "placeholder", "slug": "token",
    }});
    assert_eq!(
        world.value(input).await["ok"]["value"]["err"],
        json!("denied")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_in_a_log_an_output_or_an_error_is_text_without_the_value() {
    let world = World::new().await;
    for input in [
        json!({"do": "log-text", "name": "${placeholder:token}", "value": "{\"a\":\"${placeholder:token}\"}"}),
        json!({"do": "progress-text", "name": "${placeholder:token}"}),
        json!({"do": "print", "name": "stdout", "value": "${placeholder:token}"}),
        json!({"do": "error", "name": "hostile:x", "value": {"message": "${placeholder:token}"}}),
        json!({"do": "echo", "value": {"${placeholder:token}": "${placeholder:token}"}}),
    ] {
        world.run(input).await;
    }
    world.vault.assert_not_told(VALUE, "nothing was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_that_was_guessed_or_kept_from_another_call_is_only_text() {
    let world = World::new().await;
    let kept = world
        .value(json!({"do": "echo", "value": "${placeholder:token}"}))
        .await;
    let kept = kept.as_str().unwrap();
    let guessed = format!(
        "{}{}",
        kept.get(..kept.len() / 2).unwrap(),
        "0".repeat(kept.len() / 2)
    );
    for text in [
        kept,
        guessed.as_str(),
        "toolward-secret-",
        "${token}",
        "{{token}}",
    ] {
        let input = json!({"do": "http", "url": world.vault.url("/repos/x"), "headers": [["x-text", text]]});
        let got = world.value(input).await;
        assert_eq!(got["ok"]["status"], json!(200), "{text}: {got}");
        assert!(
            world.vault.seen().last().unwrap().contains(text),
            "it is text"
        );
        let before = world.vault.seen().len();
        let input = json!({"do": "http", "url": world.vault.url("/repos/x"), "headers": [["authorization", format!("Bearer {text}")]]});
        let got = world.value(input).await;
        assert!(got["err"].is_string(), "{text}: {got}");
        assert_eq!(world.vault.seen().len(), before, "{text}");
    }
    world.vault.assert_not_told(VALUE, "a stale placeholder");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_the_server_sends_back_is_gone_before_the_guest_reads_it() {
    let vault = Vault::start(|request| {
        let echoed: String = request
            .lines()
            .filter(|line| line.starts_with("authorization"))
            .collect();
        let body = format!("<{echoed}>");
        // Sent in two parts, so that the value is cut in the middle.
        let (one, other) = body.split_at(body.len() / 2 + 5);
        format!(
            "HTTP/1.1 200 OK\r\nx-echo: {echoed}\r\nset-cookie: t={VALUE}\r\n\
             transfer-encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x}\r\n{other}\r\n0\r\n\r\n",
            one.len(),
            other.len()
        )
        .into_bytes()
    })
    .await;
    let world = World::on(vault, &USUAL);
    let got = world.value(world.bearer("/repos/x")).await;
    let expected = "<authorization: Bearer [secret]>";
    assert_eq!(got["ok"]["body"], json!(expected), "{got}");
    // The guest counted these bytes itself, so it never got the value.
    assert_eq!(got["ok"]["bytes"], json!(expected.len()), "{got}");
    assert!(
        got["ok"]["headers"].to_string().contains("[secret]"),
        "{got}"
    );
    assert_eq!(world.vault.seen().len(), 1);
}

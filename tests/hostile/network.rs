//! Requests over HTTP that were not granted: nothing reaches a listener.

mod destinations;
mod quantity;
mod requests;

use serde_json::{Value, json};
use toolward_host::Host;

use crate::server::{Server, to_loopback};
use crate::world::{Bundle, Guest, call, error, value};

/// A tool that may read from `api.test` at the server's port over plain http.
fn reading(server: &Server) -> (Bundle, Host) {
    granted(server, "requires", "")
}

fn writing(server: &Server) -> (Bundle, Host) {
    granted(server, "mutates", "preapproved = true\n")
}

fn granted(server: &Server, how: &str, more: &str) -> (Bundle, Host) {
    let host = format!("api.test:{}", server.port());
    let tool = match how {
        "requires" => format!("requires:\n  network: [\"{host}\"]\n"),
        _ => format!("mutates: [\"network:{host}\"]\napproval: on-mutate\n"),
    };
    let bundle = Bundle::of(
        "hostile.net",
        Guest::Net,
        &tool,
        &format!("network:\n  egress: [\"{host}\"]\n"),
    );
    let built = bundle
        .builder(&format!(
            "[[grant]]\npublisher = \"PUBLISHER\"\n{how} = [\"network:{host}\"]\n\
             plain_http = true\naddresses = [\"127.0.0.0/8\"]\n{more}"
        ))
        .transport(to_loopback())
        .build()
        .unwrap();
    (bundle, built)
}

async fn http(host: &Host, request: Value) -> Value {
    let mut input = request;
    input["do"] = json!("http");
    value(host, "hostile.net", input).await
}

fn url(server: &Server, path: &str) -> String {
    format!("http://api.test:{}{path}", server.port())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_host_is_reached_and_sees_the_authority_as_host() {
    let server = Server::saying("hello");
    let (_bundle, host) = reading(&server);
    let got = http(&host, json!({"url": url(&server, "/x?y=1")})).await;
    assert_eq!(got["ok"]["body"], json!("hello"), "{got}");
    let seen = server.seen();
    assert!(seen[0].starts_with("GET /x?y=1 HTTP/1.1\r\n"), "{seen:?}");
    let host_line = format!("host: api.test:{}", server.port());
    assert!(
        seen[0].to_ascii_lowercase().contains(&host_line),
        "{seen:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_sockets_and_lookups_are_refused_and_recorded_whatever_is_granted() {
    let server = Server::saying("got out");
    let (_bundle, host) = reading(&server);
    let address = server.address.to_string();
    for (what, name) in [
        ("connect", address.as_str()),
        ("send-datagram", address.as_str()),
        ("listen", "127.0.0.1:0"),
        ("resolve", "api.test"),
    ] {
        let reply = call(&host, "hostile.net", json!({"do": what, "name": name})).await;
        assert!(reply.metadata.violations_total > 0, "{what}: {reply:?}");
        let output = reply.result.unwrap().structured;
        assert!(output["value"]["refused"].is_string(), "{what}: {output}");
    }
    server.assert_untouched("raw sockets");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_on_the_result_and_policy_can_end_the_call_there() {
    let server = Server::saying("got out");
    let (_bundle, host) = reading(&server);
    let denied = json!({"do": "http", "url": "http://evil.test/"});
    let reply = call(&host, "hostile.net", denied.clone()).await;
    assert!(reply.result.is_ok());
    let envelope = reply.envelope();
    assert_eq!(
        envelope["meta"]["violations"][0]["kind"],
        json!("network"),
        "{envelope}"
    );
    assert!(
        envelope["meta"]["violations"][0]["subject"]
            .as_str()
            .unwrap()
            .contains("evil.test")
    );

    let (_bundle, host) = granted(&server, "requires", "on_violation = \"end\"\n");
    let twice = json!({"do": "steps", "steps": [
        denied, {"do": "http", "url": url(&server, "/after")},
    ]});
    let error = error(&host, "hostile.net", twice).await;
    assert_eq!(
        error.code.as_str(),
        "toolward:sandbox_violation",
        "{error:?}"
    );
    server.assert_untouched("the call went on");
}

/// On a single thread, requests run only while the guest waits.
#[tokio::test]
async fn a_refused_request_ends_the_call_before_the_guest_waits_for_an_answer() {
    let server = Server::saying("fine");
    let (_bundle, host) = granted(&server, "requires", "on_violation = \"end\"\n");
    let flood = json!({
        "do": "http-parallel", "n": 20, "hold_ms": 300,
        "request": {"url": format!("http://evil.test:{}/", server.port())},
    });
    let reply = call(&host, "hostile.net", flood).await;
    let error = reply.result.unwrap_err();
    assert_eq!(error.code.as_str(), "toolward:sandbox_violation");
    assert_eq!(reply.metadata.violations_total, 1, "it went on");
    server.assert_untouched("a refused request");
}

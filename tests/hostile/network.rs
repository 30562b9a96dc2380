//! Ways out over HTTP that were not granted: nothing reaches a listener.

use std::sync::Arc;

use serde_json::{Value, json};
use toolward_host::Host;

use crate::server::{Answers, Server, ok, resolving, to_loopback};
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

/// Sends each URL; none may get anywhere.
async fn none_gets_out(urls: impl Fn(u16) -> Vec<String>) {
    let server = Server::saying("got out");
    let (_bundle, host) = reading(&server);
    for url in urls(server.port()) {
        let got = http(&host, json!({"url": url})).await;
        assert!(got["err"].is_string(), "{url}: {got}");
        server.assert_untouched(&url);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undeclared_host_is_not_reached() {
    none_gets_out(|port| {
        vec![
            format!("http://other.test:{port}/"),
            format!("http://sub.api.test:{port}/"),
            format!("http://api.test.evil.test:{port}/"),
            format!("http://xapi.test:{port}/"),
            format!("http://localhost:{port}/"),
        ]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_port_is_not_reached() {
    let other = Server::saying("got out");
    let server = Server::saying("fine");
    let (_bundle, host) = reading(&server);
    let got = http(
        &host,
        json!({"url": format!("http://api.test:{}/", other.port())}),
    )
    .await;
    assert_eq!(got["err"], json!("HttpRequestDenied"), "{got}");
    other.assert_untouched("another port");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_scheme_is_not_used() {
    none_gets_out(|port| {
        vec![
            format!("ftp://api.test:{port}/"),
            format!("file://api.test:{port}/etc/passwd"),
            format!("gopher://api.test:{port}/"),
        ]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_not_used_where_policy_does_not_allow_it() {
    let server = Server::saying("got out");
    let host = format!("api.test:{}", server.port());
    let bundle = Bundle::of(
        "hostile.net",
        Guest::Net,
        &format!("requires:\n  network: [\"{host}\"]\n"),
        &format!("network:\n  egress: [\"{host}\"]\n"),
    );
    let built = bundle
        .builder(&format!(
            "[[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"network:{host}\"]\n\
             addresses = [\"127.0.0.0/8\"]\n"
        ))
        .transport(to_loopback())
        .build()
        .unwrap();
    let got = http(&built, json!({"url": url(&server, "/")})).await;
    assert_eq!(got["err"], json!("HttpRequestDenied"), "{got}");
    server.assert_untouched("plain http");
}

#[tokio::test(flavor = "multi_thread")]
async fn user_information_in_the_authority_is_refused() {
    none_gets_out(|port| {
        vec![
            format!("http://api.test:{port}@evil.test:{port}/"),
            format!("http://user:password@api.test:{port}/"),
            format!("http://api.test%40evil.test:{port}/"),
        ]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_and_a_final_dot_make_no_other_host_and_lookalikes_are_others() {
    let server = Server::saying("hello");
    let (_bundle, host) = reading(&server);
    for name in ["API.Test", "api.test."] {
        let got = http(
            &host,
            json!({"url": format!("http://{name}:{}/", server.port())}),
        )
        .await;
        assert_eq!(got["ok"]["body"], json!("hello"), "{name}: {got}");
    }
    let before = server.connections();
    // A Cyrillic letter, a full-width dot, two final dots.
    for name in ["\u{430}pi.test", "api\u{ff0e}evil", "api.test.."] {
        let got = http(
            &host,
            json!({"url": format!("http://{name}:{}/", server.port())}),
        )
        .await;
        assert!(got["err"].is_string(), "{name}: {got}");
    }
    assert_eq!(server.connections(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_in_odd_forms_are_refused() {
    // Every host is granted, and every name leads to the listener: only that an
    // address is private, or how it is written, is left to refuse it.
    let server = Server::saying("got out");
    let port = server.port();
    let answers = Answers::new(&[&["127.0.0.1"]]);
    let (_bundle, host) = resolved(&format!("*:{port}"), "", Arc::new(answers));
    for (address, code) in [
        ("any.test", "DestinationIpProhibited"),
        ("127.0.0.1", "DestinationIpProhibited"),
        ("[::1]", "DestinationIpProhibited"),
        ("2130706433", "HttpRequestDenied"),
        ("0x7f000001", "HttpRequestDenied"),
        ("0177.0.0.1", "HttpRequestDenied"),
        ("127.1", "HttpRequestDenied"),
        ("0x7f.1", "HttpRequestDenied"),
        ("[::ffff:127.0.0.1]", "HttpRequestDenied"),
        ("[::ffff:7f00:1]", "HttpRequestDenied"),
        ("[64:ff9b::7f00:1]", "HttpRequestDenied"),
    ] {
        let url = format!("http://{address}:{port}/");
        let got = http(&host, json!({"url": url})).await;
        assert_eq!(got["err"], json!(code), "{address}: {got}");
    }
    // This one is no authority at all.
    let url = format!("http://[fe80::1%25lo]:{port}/");
    let got = http(&host, json!({"url": url})).await;
    assert!(got["err"].is_string(), "{got}");
    server.assert_untouched("an address in an odd form");
}

/// A tool that may reach `api.test`, and a policy that allows no private address.
fn public_only(server: &Server, answers: Answers) -> (Bundle, Host) {
    let host = format!("api.test:{}", server.port());
    resolved(&host, "", Arc::new(answers))
}

/// A tool that may read from `host` over plain http, at public addresses and those
/// that `more` names.
fn resolved(host: &str, more: &str, answers: Arc<Answers>) -> (Bundle, Host) {
    let bundle = Bundle::of(
        "hostile.net",
        Guest::Net,
        &format!("requires:\n  network: [\"{host}\"]\n"),
        &format!("network:\n  egress: [\"{host}\"]\n"),
    );
    let built = bundle
        .builder(&format!(
            "[[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"network:{host}\"]\n\
             plain_http = true\n{more}"
        ))
        .transport(resolving(answers))
        .build()
        .unwrap();
    (bundle, built)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_to_loopback_is_not_followed() {
    for address in [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "0.0.0.0",
    ] {
        let server = Server::saying("got out");
        let (_bundle, host) = public_only(&server, Answers::new(&[&[address]]));
        let got = http(&host, json!({"url": url(&server, "/")})).await;
        assert_eq!(
            got["err"],
            json!("DestinationIpProhibited"),
            "{address}: {got}"
        );
        server.assert_untouched(address);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_private_address_among_public_ones_is_enough_to_refuse() {
    let server = Server::saying("got out");
    let answers = Answers::new(&[&["93.184.215.14", "127.0.0.1"]]);
    let (_bundle, host) = public_only(&server, answers);
    let got = http(&host, json!({"url": url(&server, "/")})).await;
    assert_eq!(got["err"], json!("DestinationIpProhibited"), "{got}");
    server.assert_untouched("mixed answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_changes_its_answer_is_connected_to_where_it_was_checked() {
    // Nobody listens at the address that is granted. Were the name looked up once
    // more after the check, the listener's would be it.
    let server = Server::saying("got out");
    let answers = Arc::new(Answers::new(&[&["127.0.0.2"], &["127.0.0.1"]]));
    let name = format!("api.test:{}", server.port());
    let granted = "addresses = [\"127.0.0.2/32\"]\n";
    let (_bundle, host) = resolved(&name, granted, Arc::clone(&answers));
    let got = http(&host, json!({"url": url(&server, "/")})).await;
    assert_eq!(got["err"], json!("ConnectionRefused"), "{got}");
    assert_eq!(answers.asked(), 1);
    // Nor does what was granted for one answer hold for the next.
    let got = http(&host, json!({"url": url(&server, "/")})).await;
    assert_eq!(got["err"], json!("DestinationIpProhibited"), "{got}");
    server.assert_untouched("rebinding");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_handed_to_the_guest_and_not_followed() {
    let private = Server::saying("got out");
    let target = private.address;
    let server = Server::start(move |_| {
        Some(
            format!(
                "HTTP/1.1 302 Found\r\nlocation: http://{target}/\r\ncontent-length: 0\r\n\r\n"
            )
            .into_bytes(),
        )
    });
    let (_bundle, host) = reading(&server);
    let got = http(&host, json!({"url": url(&server, "/")})).await;
    assert_eq!(got["ok"]["status"], json!(302), "{got}");
    private.assert_untouched("a redirect");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_can_not_smuggle_a_second_request() {
    let server = Server::saying("fine");
    let (_bundle, host) = reading(&server);
    for value in [
        "a\r\nx-injected: 1",
        "a\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n",
        "a\nx-injected: 1",
        "a\u{0}b",
    ] {
        let got = http(
            &host,
            json!({"url": url(&server, "/"), "headers": [["x-test", value]]}),
        )
        .await;
        assert!(got["err"].is_string(), "{value:?}: {got}");
    }
    for seen in server.seen() {
        assert!(
            !seen.contains("injected") && !seen.contains("smuggled"),
            "{seen}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn framing_headers_and_host_are_the_hosts_own() {
    let server = Server::saying("fine");
    let (_bundle, host) = writing(&server);
    for (name, value) in [
        ("host", "internal.test"),
        ("transfer-encoding", "chunked"),
        ("connection", "x-secret"),
        ("upgrade", "websocket"),
        ("proxy-authorization", "Basic eDp5"),
        ("te", "trailers"),
        ("expect", "100-continue"),
    ] {
        let got = http(
            &host,
            json!({"url": url(&server, "/"), "headers": [[name, value]]}),
        )
        .await;
        assert!(got["err"].is_string(), "{name}: {got}");
    }
    let wrong = json!({
        "url": url(&server, "/"), "method": "POST", "body": "0123456789",
        "headers": [["content-length", "3"]],
    });
    let _ = http(&host, wrong).await;
    for seen in server.seen() {
        assert!(
            !seen.to_ascii_lowercase().contains("internal.test"),
            "{seen}"
        );
        assert!(
            !seen.contains("0123456789"),
            "a body past its length: {seen}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_other_servers_read_otherwise_are_refused() {
    let server = Server::saying("fine");
    let (_bundle, host) = reading(&server);
    for path in [
        "http://internal.test/",
        "//internal.test/x",
        "*",
        "/a b",
        "/a\r\nx: y",
    ] {
        let request = json!({
            "scheme": "http",
            "authority": format!("api.test:{}", server.port()),
            "path": path,
        });
        let got = http(&host, request).await;
        assert!(got["err"].is_string(), "{path:?}: {got}");
        server.assert_untouched(path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_safe_methods_pass_where_the_network_may_only_be_read() {
    let server = Server::saying("fine");
    let (_bundle, host) = reading(&server);
    for method in [
        "POST", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE", "PROPFIND", "get",
    ] {
        let got = http(&host, json!({"url": url(&server, "/"), "method": method})).await;
        assert!(got["err"].is_string(), "{method}: {got}");
    }
    server.assert_untouched("unsafe methods");
    for method in ["GET", "HEAD", "OPTIONS"] {
        let got = http(&host, json!({"url": url(&server, "/"), "method": method})).await;
        assert_eq!(got["ok"]["status"], json!(200), "{method}: {got}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_and_trace_never_pass() {
    let server = Server::saying("fine");
    let (_bundle, host) = writing(&server);
    for method in ["CONNECT", "TRACE", "PROPFIND"] {
        let got = http(&host, json!({"url": url(&server, "/"), "method": method})).await;
        assert!(got["err"].is_string(), "{method}: {got}");
    }
    server.assert_untouched("connect and trace");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_the_guests_own_are_not_sent() {
    let server = Server::saying("fine");
    let (_bundle, host) = reading(&server);
    for name in ["authorization", "cookie"] {
        let got = http(
            &host,
            json!({"url": url(&server, "/"), "headers": [[name, "stolen"]]}),
        )
        .await;
        assert!(got["err"].is_string(), "{name}: {got}");
    }
    server.assert_untouched("credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_body_over_the_limit_is_cut_off() {
    let server = Server::start(|_| {
        let mut answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
        answer.resize(20 << 20, b'x');
        Some(answer)
    });
    let (_bundle, host) = reading(&server);
    let got = http(&host, json!({"url": url(&server, "/"), "show": 10})).await;
    assert_ne!(got["ok"]["end"], json!("closed"), "{got}");
    assert!(
        got["ok"]["bytes"].as_u64().unwrap_or(0) <= 16 << 20,
        "{got}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_body_over_the_limit_is_not_sent_whole() {
    let server = Server::saying("fine");
    let (_bundle, host) = writing(&server);
    let request = json!({"url": url(&server, "/"), "method": "POST", "body_bytes": 17 << 20});
    let mut input = request;
    input["do"] = json!("http");
    let reply = call(&host, "hostile.net", input).await;
    if let Ok(output) = reply.result {
        assert!(
            output.structured["value"]["err"].is_string(),
            "{}",
            output.structured
        );
    }
    assert!(server.seen().iter().all(|seen| seen.len() < 17 << 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_ends_at_the_deadline() {
    let server = Server::start(|_| None);
    let host_name = format!("api.test:{}", server.port());
    let bundle = Bundle::of(
        "hostile.net",
        Guest::Net,
        &format!("timeout_ms: 400\nrequires:\n  network: [\"{host_name}\"]\n"),
        &format!("network:\n  egress: [\"{host_name}\"]\n"),
    );
    let host = bundle
        .builder(&format!(
            "[[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"network:{host_name}\"]\n\
             plain_http = true\naddresses = [\"127.0.0.0/8\"]\n"
        ))
        .transport(to_loopback())
        .build()
        .unwrap();
    let _ = host.prepare().await;
    let started = std::time::Instant::now();
    let error = error(
        &host,
        "hostile.net",
        json!({"do": "http", "url": url(&server, "/")}),
    )
    .await;
    assert!(started.elapsed().as_secs() < 30);
    assert_eq!(error.code.as_str(), "timeout", "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_at_once_are_limited() {
    let server = Server::start(|_| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        Some(ok("late"))
    });
    let (_bundle, host) = reading(&server);
    let input = json!({
        "do": "http-parallel", "n": 100, "hold_ms": 0, "request": {"url": url(&server, "/")},
    });
    let tally = value(&host, "hostile.net", input).await;
    assert!(
        server.connections() <= 16,
        "{}: {tally}",
        server.connections()
    );
    assert!(!server.seen().is_empty(), "{tally}");
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

/// On a single thread, where the requests themselves run only when the guest
/// waits.
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

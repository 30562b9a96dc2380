//! Destinations of requests: hosts, ports, schemes, and the addresses of a name.

use std::sync::Arc;

use serde_json::json;
use toolward_host::Host;

use super::{http, reading, url};
use crate::server::{Answers, Server, resolving, to_loopback};
use crate::world::{Bundle, Guest};

/// Sends each URL, and asserts that none reaches a listener.
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
    // Every host is granted, and every name leads to the listener. The request can only be refused
    // because the address is private, or because of its spelling.
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
    // This text is not a valid authority.
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

/// A tool that may read from `host` over plain http, at public addresses and at the addresses in
/// `more`.
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
    // Nothing listens at the granted address. A second lookup after the check would give the
    // listener's address.
    let server = Server::saying("got out");
    let answers = Arc::new(Answers::new(&[&["127.0.0.2"], &["127.0.0.1"]]));
    let name = format!("api.test:{}", server.port());
    let granted = "addresses = [\"127.0.0.2/32\"]\n";
    let (_bundle, host) = resolved(&name, granted, Arc::clone(&answers));
    let got = http(&host, json!({"url": url(&server, "/")})).await;
    assert_eq!(got["err"], json!("ConnectionRefused"), "{got}");
    assert_eq!(answers.asked(), 1);
    // The next request gets another address, which is checked again.
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

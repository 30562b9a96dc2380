//! Secrets on their way out: each is sent from only one place.

use std::sync::Arc;

use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use toolward_egress::{Call, Rules, SecretValues, Timeouts, Transport, TransportSettings};
use toolward_policy::{CallLimits, SecretBinding, SecretPosition};

use crate::server::{Server, ok, read_request};
use crate::tls::Authority;
use crate::world::{
    Chunks, Names, Values, code, deadline, get, limits, on_terms, request, settle, token,
    transport, writing,
};

pub(crate) const VALUE: &str = "s3cr3t/value+0123456789";

/// A server with a certificate, and a route that may send it a token.
pub(crate) struct Vault {
    pub(crate) server: Server,
    pub(crate) transport: Transport,
    authority: Authority,
}

impl Vault {
    pub(crate) async fn replying(reply: impl Into<Vec<u8>>) -> Vault {
        let reply = reply.into();
        Vault::start(crate::server::answering(reply)).await
    }

    pub(crate) async fn start<F, S>(behaviour: F) -> Vault
    where
        F: Fn(crate::server::Client, crate::server::Heard) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let authority = Authority::new();
        let acceptor = authority.acceptor(&["a.example", "evil.example"]);
        let server = Server::start(Some(acceptor), behaviour).await;
        let transport = TransportSettings {
            ca_pem: vec![authority.pem().into()],
            ..transport(&Names::local())
        }
        .build();
        Vault {
            server,
            transport,
            authority,
        }
    }

    pub(crate) fn call(&self) -> Call {
        let rule = token("a.example", self.server.port);
        self.call_with(vec![rule], Values::of(&[("token", VALUE)]), limits())
    }

    pub(crate) fn call_with(
        &self,
        secrets: Vec<(String, SecretBinding)>,
        values: Arc<dyn SecretValues>,
        limits: CallLimits,
    ) -> Call {
        let port = self.server.port;
        let open = |host| {
            on_terms(writing(host, port), |terms| {
                terms.guest_headers = vec!["cookie".to_owned()];
            })
        };
        let hosts = vec![open("a.example"), open("evil.example")];
        let rules = Rules::new(hosts, secrets).unwrap();
        self.transport
            .egress("alpha", Arc::new(rules))
            .call(limits, deadline(), None, values)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://a.example:{}{path}", self.server.port)
    }

    /// A URL at an origin that no secret is tied to.
    pub(crate) fn evil(&self, path: &str) -> String {
        format!("https://evil.example:{}{path}", self.server.port)
    }

    /// A GET with a bearer token.
    pub(crate) fn bearer(
        &self,
        call: &Call,
        path: &str,
    ) -> Request<http_body_util::Empty<bytes::Bytes>> {
        let placeholder = call.placeholder("token").unwrap();
        with(
            get(&self.url(path)),
            "authorization",
            &format!("Bearer {placeholder}"),
        )
    }
}

pub(crate) fn with<B>(mut request: Request<B>, name: &'static str, value: &str) -> Request<B> {
    let value = HeaderValue::from_str(value).unwrap();
    request.headers_mut().append(name, value);
    request
}

async fn send<B>(call: &Call, request: Request<B>) -> &'static str
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<toolward_egress::BoxError>,
{
    code(call.send(request, Timeouts::default()).await)
}

#[tokio::test]
async fn the_value_stands_where_its_placeholder_stood() {
    let vault = Vault::replying(ok("")).await;
    let call = vault.call();
    assert_eq!(send(&call, vault.bearer(&call, "/")).await, "sent");
    let heard = vault.server.heard.last();
    assert!(
        heard.contains(&format!("authorization: Bearer {VALUE}\r\n")),
        "{heard}"
    );
    let placeholder = call.placeholder("token").unwrap();
    assert!(!heard.contains(&placeholder));
    assert!(!placeholder.contains(VALUE));
    assert!(heard.contains("accept-encoding: identity\r\n"));
}

#[tokio::test]
async fn what_the_guest_accepts_is_overridden_where_a_value_goes_out() {
    let vault = Vault::replying(ok("")).await;
    let call = vault.call();
    let own = with(vault.bearer(&call, "/"), "accept-encoding", "gzip, br");
    assert_eq!(send(&call, own).await, "sent");
    let heard = vault.server.heard.last();
    assert!(heard.contains("accept-encoding: identity\r\n") && !heard.contains("gzip"));
    // At an origin that no secret is tied to, the guest's header is sent.
    let call = vault.call();
    let own = with(get(&vault.evil("/")), "accept-encoding", "gzip, br");
    assert_eq!(send(&call, own).await, "sent");
    assert!(
        vault
            .server
            .heard
            .last()
            .contains("accept-encoding: gzip, br\r\n")
    );
}

#[tokio::test]
async fn a_placeholder_anywhere_else_sends_nothing() {
    let vault = Vault::replying(ok("")).await;
    let call = vault.call();
    let mark = call.placeholder("token").unwrap();
    let evil = vault.evil("/");
    let url = vault.url("/");
    let bearer = format!("Bearer {mark}");
    let post = |body: &str| request(Method::POST, &url, body);
    for (own, expected) in [
        (
            with(request(Method::GET, &evil, ""), "authorization", &bearer),
            "secret-origin",
        ),
        (
            with(request(Method::PUT, &url, ""), "authorization", &bearer),
            "secret-method",
        ),
        (
            with(request(Method::GET, &url, ""), "x-token", &mark),
            "secret-in-header",
        ),
        (
            with(request(Method::GET, &url, ""), "cookie", &mark),
            "secret-in-header",
        ),
        (
            with(
                request(Method::GET, &url, ""),
                "authorization",
                &format!("{mark}{mark}"),
            ),
            "secret-in-header",
        ),
        (
            request(Method::GET, &format!("{url}?t={mark}"), ""),
            "secret-in-uri",
        ),
        (
            request(Method::GET, &format!("{url}{mark}"), ""),
            "secret-in-uri",
        ),
        (post(&mark), "secret-in-body"),
        (
            post(&format!("{{\"token\": \"{mark}\"}}")),
            "secret-in-body",
        ),
        (
            with(post(&mark), "authorization", &bearer),
            "secret-in-body",
        ),
        (
            with(
                with(request(Method::GET, &url, ""), "authorization", &bearer),
                "range",
                "bytes=0-0",
            ),
            "secret-range",
        ),
    ] {
        let shown = format!("{} {}", own.method(), own.uri());
        assert_eq!(send(&call, own).await, expected, "{shown}");
    }
    // Over plain http, no connection is even opened.
    let plain = format!("http://a.example:{}/", vault.server.port);
    let own = with(get(&plain), "authorization", &bearer);
    assert_eq!(send(&call, own).await, "secret-origin");
    settle().await;
    assert_eq!(vault.server.heard.connections(), 0);
}

#[tokio::test]
async fn a_placeholder_split_over_chunks_sends_nothing() {
    let vault = Vault::replying(ok("")).await;
    let call = vault.call();
    let mark = call.placeholder("token").unwrap();
    for at in [1, 5, 16, 17, 40, mark.len() - 1] {
        let (a, b) = mark.split_at(at);
        let own = Request::post(vault.url("/"))
            .body(Chunks::of(&["x", a, "", b, "y"]))
            .unwrap();
        assert_eq!(send(&call, own).await, "secret-in-body", "{at}");
    }
    let bytes: Vec<String> = mark.chars().map(String::from).collect();
    let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
    let own = Request::post(vault.url("/"))
        .body(Chunks::of(&bytes))
        .unwrap();
    assert_eq!(send(&call, own).await, "secret-in-body");
    settle().await;
    assert_eq!(vault.server.heard.connections(), 0);
}

#[tokio::test]
async fn a_placeholder_late_in_a_long_body_is_never_sent_whole() {
    let vault = Vault::start(|mut client, heard| async move {
        use tokio::io::AsyncReadExt;
        let mut all = Vec::new();
        let _ = client.read_to_end(&mut all).await;
        assert!(
            !String::from_utf8_lossy(&all).contains("toolward-secret-"),
            "sent"
        );
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let call = vault.call();
    let mark = call.placeholder("token").unwrap();
    let long = "x".repeat(100_000);
    let own = Request::post(vault.url("/"))
        .body(Chunks::of(&[&long, &long, &mark]))
        .unwrap();
    assert_eq!(send(&call, own).await, "secret-in-body");
    crate::world::eventually(|| vault.server.heard.closed() == 1).await;
}

#[tokio::test]
async fn a_body_like_a_placeholder_arrives_as_it_is() {
    let vault = Vault::replying(ok("")).await;
    let call = vault.call();
    let stale = vault.call().placeholder("token").unwrap();
    call.placeholder("token").unwrap();
    let (half, _) = stale.split_at(40);
    let own = Request::post(vault.url("/"))
        .body(Chunks::of(&["a", half, "b", &stale, "toolward-"]))
        .unwrap();
    assert_eq!(send(&call, own).await, "sent");
    let heard = vault.server.heard.last();
    assert!(
        heard.ends_with(&format!("a{half}b{stale}toolward-")),
        "{heard}"
    );
    // A stale or guessed placeholder is text in a header, too.
    let own = with(get(&vault.url("/")), "x-token", &stale);
    assert_eq!(send(&call, own).await, "sent");
    assert!(!vault.server.heard.last().contains(VALUE));
    let own = with(
        get(&vault.url("/")),
        "authorization",
        &format!("Bearer {stale}"),
    );
    assert_eq!(send(&call, own).await, "credential-header-not-granted");
}

#[tokio::test]
async fn a_placeholder_belongs_to_one_call() {
    let vault = Vault::replying(ok("")).await;
    let (one, other) = (vault.call(), vault.call());
    let own = vault.bearer(&one, "/");
    assert_eq!(send(&other, own).await, "credential-header-not-granted");
    settle().await;
    assert_eq!(vault.server.heard.connections(), 0);
    let mark = one.placeholder("token").unwrap();
    assert_eq!(one.placeholder("token"), Some(mark.clone()));
    assert_ne!(other.placeholder("token"), Some(mark.clone()));
    assert_eq!(
        one.placeholder_in(format!("a {mark}").as_bytes()),
        Some("token".to_owned())
    );
    assert_eq!(other.placeholder_in(mark.as_bytes()), None);
    assert_eq!(one.placeholder("unknown"), None);
}

#[tokio::test]
async fn a_path_prefix_holds_against_paths_that_lead_out() {
    let vault = Vault::replying(ok("")).await;
    let (slug, binding) = token("a.example", vault.server.port);
    let binding = SecretBinding {
        path_prefix: "/repos/".to_owned(),
        ..binding
    };
    let rule = (slug, binding);
    let call = vault.call_with(vec![rule], Values::of(&[("token", VALUE)]), limits());
    for path in [
        "/user",
        "/repositories",
        "/repos/../user",
        "/repos/%2e%2e/user",
        "/repos/a%2f..%2f..",
        "/repos//a",
    ] {
        let own = vault.bearer(&call, path);
        assert_eq!(send(&call, own).await, "secret-path", "{path}");
    }
    settle().await;
    assert_eq!(vault.server.heard.connections(), 0);
    let own = vault.bearer(&call, "/repos/a?b=/../c");
    assert_eq!(send(&call, own).await, "sent");
}

#[tokio::test]
async fn a_value_that_cannot_be_used_sends_nothing() {
    let vault = Vault::replying(ok("")).await;
    for (value, expected) in [
        ("1234567", "secret-too-short"),
        ("", "secret-too-short"),
        ("12345678\n", "secret-not-a-header-value"),
        ("1234\r\nx-evil: 1", "secret-not-a-header-value"),
        ("12345678\u{e9}", "secret-not-a-header-value"),
        (" 12345678", "secret-not-a-header-value"),
        ("1234\x00678", "secret-not-a-header-value"),
    ] {
        let rule = token("a.example", vault.server.port);
        let call = vault.call_with(vec![rule], Values::of(&[("token", value)]), limits());
        let own = vault.bearer(&call, "/");
        assert_eq!(send(&call, own).await, expected, "{value:?}");
    }
    let rule = token("a.example", vault.server.port);
    let call = vault.call_with(vec![rule], Values::of(&[]), limits());
    let own = vault.bearer(&call, "/");
    let error = call.send(own, Timeouts::default()).await.unwrap_err();
    assert_eq!(error.code(), "secret-unavailable");
    assert!(error.to_string().contains("not set"));
    settle().await;
    assert_eq!(vault.server.heard.connections(), 0);
}

/// Counts how often a value is requested.
struct Counting(std::sync::atomic::AtomicUsize);

impl SecretValues for Counting {
    fn get(&self, _: &str) -> Result<zeroize::Zeroizing<Vec<u8>>, toolward_egress::ValueError> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(zeroize::Zeroizing::new(VALUE.as_bytes().to_vec()))
    }
}

#[tokio::test]
async fn a_value_is_loaded_once_and_only_for_a_request_to_its_origin() {
    let vault = Vault::replying(ok("")).await;
    let values = Arc::new(Counting(0.into()));
    let asked = || values.0.load(std::sync::atomic::Ordering::SeqCst);
    let rule = token("a.example", vault.server.port);
    let call = vault.call_with(vec![rule], Arc::<Counting>::clone(&values), limits());
    let mark = call.placeholder("token").unwrap();
    assert_eq!(send(&call, get(&vault.evil("/"))).await, "sent");
    let own = with(get(&vault.url("/")), "x-token", &mark);
    assert_eq!(send(&call, own).await, "secret-in-header");
    let own = with(
        request(Method::DELETE, &vault.url("/"), ""),
        "authorization",
        &mark,
    );
    assert_eq!(send(&call, own).await, "secret-method");
    assert_eq!(asked(), 0);
    assert_eq!(send(&call, get(&vault.url("/"))).await, "sent");
    assert_eq!(asked(), 1);
    let own = vault.bearer(&call, "/");
    assert_eq!(send(&call, own).await, "sent");
    assert_eq!(asked(), 1);
}

#[tokio::test]
async fn a_server_without_the_right_certificate_hears_no_secret() {
    let vault = Vault::replying(ok("")).await;
    let other = Server::start(
        Some(Authority::new().acceptor(&["a.example"])),
        |mut client, heard| async move {
            read_request(&mut client, &heard).await;
        },
    )
    .await;
    let rules = Rules::new(
        vec![writing("a.example", other.port)],
        vec![token("a.example", other.port)],
    );
    let egress = vault.transport.egress("alpha", Arc::new(rules.unwrap()));
    let call = egress.call(limits(), deadline(), None, Values::of(&[("token", VALUE)]));
    let mark = call.placeholder("token").unwrap();
    let url = format!("https://a.example:{}/", other.port);
    let own = with(get(&url), "authorization", &mark);
    assert_eq!(send(&call, own).await, "tls-certificate");
    assert_eq!(other.heard.requests().len(), 0);
    assert!(!vault.authority.pem().is_empty());
}

#[tokio::test]
async fn nothing_that_is_printed_shows_a_value() {
    let vault = Vault::replying(ok("")).await;
    let call = vault.call();
    let mark = call.placeholder("token").unwrap();
    let response = call
        .send(vault.bearer(&call, "/"), Timeouts::default())
        .await
        .unwrap();
    let shown = format!("{call:?} {response:?} {:?}", vault.transport);
    assert!(!shown.contains(VALUE) && !shown.contains(&mark), "{shown}");
    let own: Request<Full<bytes::Bytes>> = request(Method::POST, &vault.url("/"), &mark);
    let error = call.send(own, Timeouts::default()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(&mark));
}

fn parameter(vault: &Vault) -> (String, SecretBinding) {
    let binding = SecretBinding {
        position: SecretPosition::Query("key".to_owned()),
        ..token("a.example", vault.server.port).1
    };
    ("key".to_owned(), binding)
}

#[tokio::test]
async fn a_value_in_a_parameter_is_percent_encoded_and_taken_out_of_every_header() {
    let value = "k/e+y &?=#%41 0123";
    let encoded = "k%2Fe%2By%20%26%3F%3D%23%2541%200123";
    let echo = format!("https://evil.example/x?a=1&key={encoded}&b=2");
    let headers = format!(
        "location: {echo}\r\nlink: <{echo}>; rel=\"next\"\r\nrefresh: 0; url={echo}\r\nx-plain: {value}\r\n"
    );
    let vault = Vault::replying(crate::server::reply("302 Found", &headers, &echo)).await;
    let call = vault.call_with(
        vec![parameter(&vault)],
        Values::of(&[("key", value)]),
        limits(),
    );
    let mark = call.placeholder("key").unwrap();
    let own = get(&vault.url(&format!("/x?a=1&key={mark}&b=2")));
    let response = call.send(own, Timeouts::default()).await.unwrap();
    let heard = vault.server.heard.last();
    let line = heard.lines().next().unwrap();
    assert_eq!(line, format!("GET /x?a=1&key={encoded}&b=2 HTTP/1.1"));
    assert_eq!(heard.matches(encoded).count(), 1, "{heard}");
    let clean = "https://evil.example/x?a=1&key=[secret]&b=2";
    let header = |name| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("location"), clean);
    assert_eq!(header("link"), format!("<{clean}>; rel=\"next\""));
    assert_eq!(header("refresh"), format!("0; url={clean}"));
    assert_eq!(header("x-plain"), "[secret]");
    use http_body_util::BodyExt as _;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, clean);
}

#[tokio::test]
async fn no_error_holds_a_url_with_a_value() {
    let value = "parameter-value-0123";
    let vault = Vault::start(|mut client, heard| async move {
        // Reads the request, and closes the connection.
        read_request(&mut client, &heard).await;
    })
    .await;
    let call = vault.call_with(
        vec![parameter(&vault)],
        Values::of(&[("key", value)]),
        limits(),
    );
    let mark = call.placeholder("key").unwrap();
    for query in [
        format!("key={mark}"),
        format!("key={mark}&key=1"),
        format!("k%65y=1&key={mark}"),
        format!("a=1;key=1&key={mark}"),
        format!("other={mark}"),
    ] {
        let own = get(&vault.url(&format!("/x?{query}")));
        let error = call.send(own, Timeouts::default()).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains(value), "{error:?}");
    }
    let heard = vault.server.heard.requests();
    assert!(
        heard
            .iter()
            .all(|request| request.contains(&format!("key={value}"))),
        "{heard:?}"
    );
    assert!(!heard.is_empty());
}

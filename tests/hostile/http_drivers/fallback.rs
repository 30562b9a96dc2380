//! Fails a call's first service in different ways, and checks whether the second service gets a
//! request.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use toolward_host::secrets::Sources;
use toolward_host::{Host, Reply, Request};

use crate::server::ok;
use crate::vault::Vault;
use crate::world::{Bundle, policy_of};

const TOOL: &str = "things.use";

/// Why the first service does not serve the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    Refused,
    NoTls,
    WrongCertificate,
    Answers(&'static str, &'static str),
    Silent,
    NoSecret,
    NotGranted,
}

/// A tool with two drivers, in a fixed order.
struct Services {
    vault: Vault,
    /// Another server, whose certificate authority is not trusted.
    _forged: Vault,
    host: Host,
    _bundle: Bundle,
}

impl Services {
    async fn of(first: First, changes: bool) -> Self {
        Self::with(first, changes, json!({}), "").await
    }

    /// Adds fields to TOOL.md, and lines to the grant.
    async fn with(first: First, changes: bool, more: Value, lines: &str) -> Self {
        let vault = Vault::start(move |request| {
            let to_first = request.split(' ').nth(1) == Some("/first");
            match first {
                First::Answers(status, body) if to_first => {
                    let length = body.len();
                    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}")
                        .into_bytes()
                }
                First::Silent if to_first => {
                    std::thread::sleep(Duration::from_millis(1500));
                    ok("{\"ok\": true}")
                }
                _ => ok("{\"ok\": true}"),
            }
        })
        .await;
        let forged = Vault::saying("{\"ok\": true}").await;
        let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let no_tls = plain.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in plain.incoming().flatten() {
                let _ = stream.write_all(b"no TLS is spoken here\r\n");
            }
        });
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = closed.local_addr().unwrap().port();
        let port = match first {
            First::Refused => closed,
            First::NoTls => no_tls,
            First::WrongCertificate => forged.port,
            _ => vault.port,
        };
        let bundle = Bundle::empty();
        let hosts: Vec<String> = vec![
            format!("api.test:{port}"),
            format!("evil.test:{}", vault.port),
        ];
        let access = match changes {
            true => {
                json!({ "mutates": hosts.iter().map(|host| format!("network:{host}")).collect::<Vec<_>>() })
            }
            false => json!({ "requires": { "network": hosts } }),
        };
        let mut tool = json!({
            "name": "Things", "id": TOOL, "description": "Uses things.", "version": "1.0.0", "timeout_ms": 1000,
            "inputs": { "type": "object" }, "default_implementation": "a-first",
            "outputs": { "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] },
        });
        tool.as_object_mut()
            .unwrap()
            .extend(access.as_object().unwrap().clone());
        let more = more.as_object().unwrap().clone();
        tool.as_object_mut().unwrap().extend(more);
        bundle.write(
            &format!("tools/{TOOL}/TOOL.md"),
            format!("---\n{tool}\n---\n"),
        );
        for (id, path, host) in [
            ("a-first", "/first", &hosts[0]),
            ("b-second", "/second", &hosts[1]),
        ] {
            let mut driver = json!({
                "name": "Things", "id": id, "description": "Uses things.", "version": "1.0.0", "kind": "http",
                "base_url": format!("https://{host}"), "network": { "egress": [host] },
                "implements": [{ "tool": TOOL, "version": "1.x", "metadata": { "http": {
                    "endpoint": path, "method": if changes { "POST" } else { "GET" },
                    "errors": { "410": { "code": "not_found" } },
                } } }],
            });
            if first == First::NoSecret && id == "a-first" {
                driver["default_headers"] =
                    json!({ "Authorization": "Bearer ${secrets.FIRST_KEY}" });
            }
            bundle.write(
                &format!("drivers/{id}/DRIVER.md"),
                format!("---\n{driver}\n---\n"),
            );
        }
        let given: Vec<String> = hosts
            .iter()
            .skip(usize::from(first == First::NotGranted))
            .map(|host| format!("network:{host}"))
            .collect();
        let policy = format!(
            "[resolve]\nfallback = true\n[[secret]]\nslug = \"FIRST_KEY\"\npublisher = \"PUBLISHER\"\nenv = \"TOKEN\"\n\
             origin = \"https://api.test:{port}\"\nmethods = [\"GET\", \"POST\"]\npath_prefix = \"/\"\n\
             header = \"authorization\"\n\
             [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nmutates = {given:?}\n{lines}\
             addresses = [\"127.0.0.0/8\"]\n\
             [[grant]]\npublisher = \"PUBLISHER\"\ndriver = \"a-first\"\nrequires = [\"secret:FIRST_KEY\"]\n"
        );
        let sources = Sources::new(
            &policy_of(&policy, &bundle.publisher()),
            "/".as_ref(),
            |_| None,
        );
        let host = bundle
            .builder(&policy)
            .transport(vault.transport())
            .secrets(sources);
        Self {
            host: host.build().unwrap(),
            vault,
            _forged: forged,
            _bundle: bundle,
        }
    }

    async fn call(&self) -> Reply {
        self.host.call(Request::with_value(TOOL, json!({}))).await
    }

    /// Returns how many requests the second service got.
    fn second(&self) -> usize {
        let seen = self.vault.seen();
        seen.iter().filter(|one| one.contains(" /second ")).count()
    }
}

/// Returns an entry for each driver that was tried: its error code, or an empty string for the
/// driver that served the call.
fn codes(reply: &Reply) -> Vec<String> {
    let tried = reply.metadata.tried.iter();
    let code = |one: &toolward_host::Tried| one.error.as_ref().map(ToString::to_string);
    tried.map(|one| code(one).unwrap_or_default()).collect()
}

/// The behaviour of the first service; its error code; whether the second service then serves a
/// call that reads; whether it then serves a call that changes something.
const CASES: [(First, &str, bool, bool); 13] = [
    (First::Refused, "upstream_error", true, true),
    (First::NoTls, "upstream_error", true, true),
    (First::WrongCertificate, "upstream_error", true, true),
    (
        First::Answers("500 Oops", "{}"),
        "upstream_error",
        true,
        false,
    ),
    (
        First::Answers("503 Closed", "{}"),
        "upstream_error",
        true,
        false,
    ),
    (
        First::Answers("429 Many", "{}"),
        "rate_limited",
        true,
        false,
    ),
    (
        First::Answers("401 Who", "{}"),
        "auth_required",
        true,
        false,
    ),
    (
        First::Answers("404 None", "{}"),
        "upstream_error",
        true,
        false,
    ),
    // The driver declares an error for this status, so the call ends with that error.
    (First::Answers("410 Gone", "{}"), "not_found", false, false),
    (
        First::Answers("200 OK", "{\"ok\": 7}"),
        "upstream_error",
        true,
        false,
    ),
    (
        First::Answers("200 OK", "no JSON"),
        "upstream_error",
        true,
        false,
    ),
    (First::Silent, "timeout", false, false),
    (
        First::Answers("302 Found", "{}"),
        "upstream_error",
        true,
        false,
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_second_service_is_sent_what_the_first_one_failed_and_no_change_twice() {
    for (first, code, reads, changes) in CASES {
        for (changing, falls) in [(false, reads), (true, changes)] {
            let services = Services::of(first, changing).await;
            let reply = services.call().await;
            let case = format!("{first:?}, changing: {changing}");
            assert_eq!(services.second(), usize::from(falls), "{case}: {reply:?}");
            match falls {
                true => {
                    assert_eq!(codes(&reply), [code, ""], "{case}");
                    assert_eq!(reply.metadata.driver.as_deref(), Some("b-second"), "{case}");
                    assert_eq!(
                        reply.result.unwrap().structured,
                        json!({ "ok": true }),
                        "{case}"
                    );
                }
                false => {
                    assert_eq!(codes(&reply), [code], "{case}");
                    assert_eq!(reply.result.unwrap_err().code.as_str(), code, "{case}");
                }
            }
        }
    }
}

/// As in the example of AIP-14, an idempotent POST is repeated at a second service after
/// `upstream_error`.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_repeated_elsewhere_only_if_the_operator_and_the_contract_allow_it() {
    const REPEAT: &str = "tool = \"things.use\"\nfallback = \"repeat\"\n";
    let failed = First::Answers("503 Closed", "{}");
    let bears = json!({ "idempotent": true, "risk_level": 1 });
    for (first, tool, lines, falls) in [
        (failed, bears.clone(), REPEAT, true),
        (failed, bears.clone(), "", false),
        (
            failed,
            json!({ "idempotent": false, "risk_level": 1 }),
            REPEAT,
            false,
        ),
        (
            failed,
            json!({ "idempotent": true, "risk_level": 2 }),
            REPEAT,
            false,
        ),
        // A status for which the driver declares an error ends the call even then.
        (First::Answers("410 Gone", "{}"), bears, REPEAT, false),
    ] {
        let services = Services::with(first, true, tool.clone(), lines).await;
        let reply = services.call().await;
        let case = format!("{first:?} {tool} {lines}: {reply:?}");
        assert_eq!(services.second(), usize::from(falls), "{case}");
        assert_eq!(reply.result.is_ok(), falls, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_without_its_secret_or_a_grant_is_not_tried_at_all() {
    for first in [First::NoSecret, First::NotGranted] {
        for changing in [false, true] {
            let services = Services::of(first, changing).await;
            let reply = services.call().await;
            assert_eq!(codes(&reply), [""], "{first:?}: {reply:?}");
            assert_eq!(
                reply.metadata.driver.as_deref(),
                Some("b-second"),
                "{first:?}"
            );
            assert_eq!(services.second(), 1);
        }
    }
    // A call that pins the driver without its secret fails, and sends nothing.
    let services = Services::of(First::NoSecret, false).await;
    let pinned = Request::with_value(TOOL, json!({})).pinned_driver("a-first");
    let error = services.host.call(pinned).await.result.unwrap_err();
    assert_eq!(error.code.as_str(), "auth_required");
    assert!(error.message.contains("`FIRST_KEY`"), "{error}");
    assert!(services.vault.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn both_services_together_are_sent_as_many_requests_as_one_call_may() {
    let services = Services::of(First::Answers("500 Oops", "{}"), false).await;
    let limited = |most: u64| {
        let policy = format!(
            "[resolve]\nfallback = true\n[limits]\nhttp_requests_total = {most}\n\
             [[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"network:api.test:{0}\", \"network:evil.test:{0}\"]\n\
             addresses = [\"127.0.0.0/8\"]\n",
            services.vault.port
        );
        let host = services
            ._bundle
            .builder(&policy)
            .transport(services.vault.transport());
        host.build().unwrap()
    };
    let reply = limited(1).call(Request::with_value(TOOL, json!({}))).await;
    assert_eq!(codes(&reply), ["upstream_error", "toolward:limit_exceeded"]);
    let hit = reply.result.unwrap_err().limit.unwrap();
    assert_eq!(hit.limit, "http_requests_total");
    assert_eq!(services.second(), 0);
    let reply = limited(2).call(Request::with_value(TOOL, json!({}))).await;
    assert_eq!(
        reply.result.unwrap().structured,
        Value::Object([("ok".to_owned(), json!(true))].into_iter().collect())
    );
}

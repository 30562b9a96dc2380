//! Secrets: one value goes out in one header to one place, and is seen nowhere
//! else, by nobody.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolward_host::secrets::{SecretError, SecretStore, SecretValue, Sources};
use toolward_host::{Host, LogRecord, Observer, Progress, Reply, Request, ViolationKind};

use crate::server::Server;
use crate::vault::Vault;
use crate::world::{Bundle, Guest, call, error, policy_of};

const TOOL: &str = "hostile.secrets";
const VALUE: &str = "s3cr3t-value-0123456789";

/// A tool that declares `token` and may use it as policy says, and `other.tool`,
/// which it may call.
struct World {
    vault: Vault,
    host: Host,
    _bundle: Bundle,
}

/// What differs from a tool that declares `token` and may use it.
struct Terms {
    declared: &'static str,
    granted: &'static str,
    publisher: &'static str,
    more: &'static str,
}

const USUAL: Terms = Terms {
    declared: "[token]",
    granted: "[\"secret:token\", \"tool:other.tool\"]",
    publisher: "PUBLISHER",
    more: "",
};

impl World {
    async fn new() -> Self {
        Self::on(Vault::saying("fine").await, &USUAL)
    }

    fn on(vault: Vault, terms: &Terms) -> Self {
        let port = vault.port;
        let hosts = format!("[\"api.test:{port}\", \"evil.test:{port}\"]");
        let bundle = Bundle::of(
            TOOL,
            Guest::Net,
            &format!(
                "requires:\n  secrets: {}\n  tools: [other.tool]\nmutates: \
                 [\"network:api.test:{port}\", \"network:evil.test:{port}\"]\napproval: on-mutate\n",
                terms.declared
            ),
            &format!("network:\n  egress: {hosts}\n"),
        )
        .with("other.tool", Guest::Plain, "", "");
        let policy = format!(
            "[[secret]]\nslug = \"token\"\npublisher = \"{publisher}\"\nenv = \"TOKEN\"\n\
             origin = \"https://api.test:{port}\"\nheader = \"authorization\"\n\
             path_prefix = \"/repos/\"\n\
             [[secret]]\nslug = \"other\"\npublisher = \"PUBLISHER\"\nenv = \"TOKEN\"\n\
             origin = \"https://api.test:{port}\"\nheader = \"authorization\"\n\
             [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nplain_http = true\n\
             requires = {granted}\n\
             mutates = [\"network:api.test:{port}\", \"network:evil.test:{port}\"]\n\
             addresses = [\"127.0.0.0/8\"]\n{more}",
            publisher = terms.publisher,
            granted = terms.granted,
            more = terms.more,
        );
        let sources = Sources::new(
            &policy_of(&policy, &bundle.publisher()),
            "/".as_ref(),
            |name| (name == "TOKEN").then(|| VALUE.to_owned()),
        );
        let host = bundle
            .builder(&policy)
            .transport(vault.transport())
            .secrets(sources)
            .build()
            .unwrap();
        Self {
            vault,
            host,
            _bundle: bundle,
        }
    }

    /// A call whose reply nowhere holds the value.
    async fn run(&self, input: Value) -> Reply {
        let reply = call(&self.host, TOOL, input).await;
        let shown = format!("{} {:?}", reply.envelope(), reply.captured);
        assert!(!shown.contains(VALUE), "{shown}");
        reply
    }

    async fn value(&self, input: Value) -> Value {
        match self.run(input).await.result {
            Ok(output) => output.structured["value"].clone(),
            Err(error) => panic!("{error:#?}"),
        }
    }

    fn bearer(&self, path: &str) -> Value {
        json!({
            "do": "http", "url": self.vault.url(path),
            "headers": [["authorization", "Bearer ${placeholder:token}"]],
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_value_arrives_in_its_header_and_the_guest_never_sees_it() {
    let world = World::new().await;
    let got = world.value(world.bearer("/repos/x")).await;
    assert_eq!(got["ok"]["body"], json!("fine"), "{got}");
    let seen = world.vault.seen();
    assert_eq!(seen.len(), 1);
    assert!(
        seen[0].contains(&format!("authorization: Bearer {VALUE}\r\n")),
        "{seen:?}"
    );
    assert_eq!(seen[0].matches(VALUE).count(), 1, "{seen:?}");
    let got = world
        .value(json!({"do": "echo", "value": "${placeholder:token}"}))
        .await;
    assert!(got.as_str().unwrap().len() > 20, "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_was_not_declared_is_denied_and_recorded() {
    let world = World::new().await;
    for slug in ["other", "nothing", "TOKEN", "token ", ""] {
        for op in ["placeholder", "reveal", "store"] {
            let reply = world
                .run(json!({"do": "secrets", "op": op, "slug": slug, "text": "mine-mine"}))
                .await;
            assert_eq!(
                reply.metadata.violations[0].kind,
                ViolationKind::Secret,
                "{op} {slug}"
            );
            let got = reply.result.unwrap().structured;
            assert_eq!(got["value"]["err"], json!("denied"), "{op} {slug}: {got}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_not_granted_or_is_another_publishers_blocks_the_tool() {
    for terms in [
        Terms {
            granted: "[\"tool:other.tool\"]",
            ..USUAL
        },
        Terms {
            publisher: "somebody",
            ..USUAL
        },
        Terms {
            declared: "[token, third]",
            granted: "[\"secret:token\", \"secret:third\", \"tool:other.tool\"]",
            ..USUAL
        },
    ] {
        let world = World::on(Vault::saying("fine").await, &terms);
        let error = error(&world.host, TOOL, world.bearer("/repos/x")).await;
        assert_eq!(error.code.as_str(), "unauthorised", "{error:?}");
        assert!(error.message.contains("secret:"), "{error:?}");
        assert!(world.vault.seen().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_to_no_other_host_path_method_or_scheme() {
    let world = World::new().await;
    let plain = Server::saying("fine");
    let port = world.vault.port;
    let mut requests = Vec::new();
    for url in [
        format!("https://evil.test:{port}/repos/x"),
        format!("http://api.test:{port}/repos/x"),
        format!("http://api.test:{}/repos/x", plain.port()),
        world.vault.url("/"),
        world.vault.url("/user"),
        world.vault.url("/repositories"),
        world.vault.url("/repos/../user"),
        world.vault.url("/repos/%2e%2e/user"),
        world.vault.url("//repos/x"),
    ] {
        let mut request = world.bearer("/");
        request["url"] = json!(url);
        requests.push(request);
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let mut request = world.bearer("/repos/x");
        request["method"] = json!(method);
        requests.push(request);
    }
    for request in requests {
        let reply = world.run(request.clone()).await;
        // A path like this goes out with nothing, so it says nothing of secrets.
        let odd = request["url"] == json!(world.vault.url("//repos/x"));
        assert_eq!(
            reply.metadata.violations_total,
            u64::from(!odd),
            "{request}"
        );
        let got = reply.result.unwrap().structured;
        assert!(got["value"]["err"].is_string(), "{request}: {got}");
    }
    assert!(world.vault.seen().is_empty(), "{:?}", world.vault.seen());
    plain.assert_untouched("plain http");
}

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
    // Not even the placeholder went out.
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
    assert_eq!(reply.metadata.violations[0].kind, ViolationKind::Secret);
    let got = reply.result.unwrap().structured;
    assert_eq!(got["value"]["err"], json!("unauthorised"), "{got}");
    let input =
        json!({"do": "call-tool", "tool": "other.tool", "input": {"do": "echo", "value": 1}});
    assert_eq!(
        world.value(input).await["ok"]["value"],
        json!(1),
        "others go through"
    );
    // The other tool has no secret of its own, whatever its caller has.
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
        // In two parts: the value is cut in the middle.
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
    // What the guest counted, not what the host shows of it afterwards.
    assert_eq!(got["ok"]["bytes"], json!(expected.len()), "{got}");
    assert!(
        got["ok"]["headers"].to_string().contains("[secret]"),
        "{got}"
    );
    assert_eq!(world.vault.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_revealed_only_where_policy_says_so() {
    let world = World::new().await;
    let reply = world
        .run(json!({"do": "secrets", "op": "reveal", "slug": "token"}))
        .await;
    assert_eq!(reply.metadata.violations[0].kind, ViolationKind::Secret);
    let got = reply.result.unwrap().structured;
    assert_eq!(got["value"]["err"], json!("denied"), "{got}");
}

/// Keeps what it is told.
#[derive(Default)]
struct Listener(Mutex<String>);

impl Observer for Listener {
    fn progress(&self, progress: &Progress) {
        *self.0.lock().unwrap() += &format!("{progress:?}");
    }

    fn log(&self, record: &LogRecord) {
        *self.0.lock().unwrap() += &format!("{record:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revealed_value_is_kept_out_of_everything_that_the_call_shows() {
    let terms = Terms {
        more: "reveal = [\"token\"]\n",
        ..USUAL
    };
    let world = World::on(Vault::saying("fine").await, &terms);
    let mark = "${reveal:token}";
    for input in [
        json!({"do": "secrets", "op": "reveal", "slug": "token"}),
        json!({"do": "echo", "value": format!("a {mark} b")}),
        json!({"do": "echo", "value": [{"deep": [mark]}]}),
        json!({"do": "log-text", "name": mark, "value": format!("{{\"a\":\"{mark}\"}}")}),
        json!({"do": "progress-text", "name": mark}),
        json!({"do": "print", "name": "stdout", "value": mark}),
        json!({"do": "print", "name": "stderr", "value": mark}),
        json!({"do": "error", "name": "hostile:x", "value": {"message": mark, "cause": format!("{{\"a\":\"{mark}\"}}")}}),
        json!({"do": "panic", "name": mark}),
    ] {
        let listener = Arc::new(Listener::default());
        let request = Request::with_value(TOOL, input.clone()).observer(listener.clone());
        let reply = world.host.call(request).await;
        let heard = listener.0.lock().unwrap().clone();
        let shown = format!("{} {:?} {heard}", reply.envelope(), reply.captured);
        assert!(!shown.contains(VALUE), "{input}: {shown}");
        assert!(shown.contains("[secret]"), "{input}: it was there: {shown}");
    }
    // Seeing it is no right to send it: not as text, either, where it is known.
    let input = json!({"do": "http", "url": world.vault.url("/repos/x"), "headers": [["authorization", format!("Bearer {mark}")]]});
    let got = world.value(input).await;
    assert!(got["err"].is_string(), "{got}");
    world
        .vault
        .assert_not_told(VALUE, "a header that is not the guest's to set");
}

/// A tool that stores and uses `own`, which no table gives a value.
fn storing(directory: &TempDir, mutates: &str, granted: &str) -> (Bundle, Host) {
    let bundle = Bundle::of(
        TOOL,
        Guest::Plain,
        &format!("requires:\n  secrets: [own]\nmutates: {mutates}\napproval: on-mutate\n"),
        "",
    );
    let policy = format!(
        "[[secret]]\nslug = \"own\"\npublisher = \"PUBLISHER\"\n\
         [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nrequires = [\"secret:own\"]\n\
         mutates = {granted}\nreveal = [\"own\"]\n"
    );
    let sources = Sources::new(
        &policy_of(&policy, &bundle.publisher()),
        "/".as_ref(),
        |_| None,
    )
    .stored_in(directory.path().join("secrets"));
    let host = bundle.builder(&policy).secrets(sources).build().unwrap();
    (bundle, host)
}

async fn as_principal(host: &Host, principal: &str, input: Value) -> Value {
    let request = Request::with_value(TOOL, input).principal(principal);
    host.call(request).await.result.unwrap().structured["value"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_value_is_its_principals_own() {
    let directory = tempfile::tempdir().unwrap();
    let (_bundle, host) = storing(&directory, "[\"secret:own\"]", "[\"secret:own\"]");
    let store = |text: &str| json!({"do": "secrets", "op": "store", "slug": "own", "text": text});
    let reveal = json!({"do": "secrets", "op": "reveal", "slug": "own"});
    assert_eq!(
        as_principal(&host, "ann", reveal.clone()).await["err"],
        json!("missing")
    );
    assert_eq!(
        as_principal(&host, "ann", store("value-of-ann")).await["ok"],
        json!(true)
    );
    assert_eq!(
        as_principal(&host, "ann", reveal.clone()).await["ok"],
        json!("[secret]")
    );
    for other in ["bob", "ann ", "Ann", "", "local", "../ann"] {
        let got = as_principal(&host, other, reveal.clone()).await;
        assert_eq!(got["err"], json!("missing"), "{other}: {got}");
    }
    // One file, whose name is nobody's to choose.
    let files: Vec<_> = std::fs::read_dir(directory.path().join("secrets"))
        .unwrap()
        .collect();
    assert_eq!(files.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_stored_only_where_that_was_declared_and_granted() {
    let directory = tempfile::tempdir().unwrap();
    let (_bundle, host) = storing(&directory, "[]", "[\"secret:own\"]");
    let store = json!({"do": "secrets", "op": "store", "slug": "own", "text": "mine-mine"});
    let reply = call(&host, TOOL, store.clone()).await;
    assert_eq!(reply.metadata.violations[0].kind, ViolationKind::Secret);
    assert_eq!(
        reply.result.unwrap().structured["value"]["err"],
        json!("denied")
    );

    let (_bundle, host) = storing(&directory, "[\"secret:own\"]", "[]");
    assert_eq!(
        error(&host, TOOL, store).await.code.as_str(),
        "unauthorised"
    );
    assert!(!directory.path().join("secrets").exists());

    let (_bundle, host) = storing(&directory, "[\"secret:own\"]", "[\"secret:own\"]");
    let huge = json!({"do": "secrets", "op": "store", "slug": "own", "text": "${fill:100000}"});
    let got = as_principal(&host, "ann", huge).await;
    assert_eq!(got["err"], json!("failed"), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_secret_is_not_overwritten_by_a_tool() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("own.txt");
    std::fs::write(&file, "the-operators").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let bundle = Bundle::of(
        TOOL,
        Guest::Plain,
        "mutates: [\"secret:own\"]\napproval: on-mutate\n",
        "",
    );
    let policy = format!(
        "[[secret]]\nslug = \"own\"\npublisher = \"PUBLISHER\"\nfile = {:?}\n\
         [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nmutates = [\"secret:own\"]\n",
        file.display().to_string()
    );
    let sources = Sources::new(
        &policy_of(&policy, &bundle.publisher()),
        directory.path(),
        |_| None,
    )
    .stored_in(directory.path().join("secrets"));
    let host = bundle.builder(&policy).secrets(sources).build().unwrap();
    let store = json!({"do": "secrets", "op": "store", "slug": "own", "text": "mine-mine"});
    let got = as_principal(&host, "ann", store).await;
    assert_eq!(got["err"], json!("failed"), "{got}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "the-operators");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revealed_value_is_no_subject_of_a_violation_and_no_code() {
    let terms = Terms {
        more: "reveal = [\"token\"]\n",
        ..USUAL
    };
    let world = World::on(Vault::saying("fine").await, &terms);
    let mark = "${reveal:token}";
    for input in [
        json!({"do": "call-tool", "tool": format!("a.{mark}"), "input": {}}),
        json!({"do": "secrets", "op": "store", "slug": mark}),
        json!({"do": "http", "url": format!("https://{mark}.test/")}),
    ] {
        let reply = world.run(input.clone()).await;
        let subject = &reply.metadata.violations[0].subject;
        assert!(subject.contains("[secret]"), "{input}: {subject}");
    }
    let input = json!({"do": "error", "name": format!("x:{mark}"), "value": {}});
    let error = world.run(input).await.result.unwrap_err();
    assert_eq!(error.code.as_str(), "upstream_error", "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revealed_value_is_not_handed_to_another_tool() {
    let terms = Terms {
        more: "reveal = [\"token\"]\n",
        ..USUAL
    };
    let world = World::on(Vault::saying("fine").await, &terms);
    let escaped: String = VALUE
        .chars()
        .map(|c| format!("\\u{:04x}", c as u32))
        .collect();
    for input in [
        json!({"do": "call-tool", "tool": "other.tool", "input": {
            "do": "echo", "value": "Bearer ${reveal:token}",
        }}),
        json!({"do": "steps", "steps": [
            {"do": "secrets", "op": "reveal", "slug": "token"},
            {"do": "call-tool", "tool": "other.tool",
             "raw": format!("{{\"do\": \"echo\", \"value\": \"{escaped}\"}}")},
        ]}),
    ] {
        let reply = world.run(input.clone()).await;
        let violation = &reply.metadata.violations[0];
        assert_eq!(violation.kind, ViolationKind::Secret, "{input}");
        assert_eq!(violation.subject, "token", "{input}");
        let got = reply.result.unwrap().structured.to_string();
        assert!(got.contains("unauthorised"), "{input}: {got}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_stores_so_many_values_of_so_many_bytes_and_no_more() {
    for (times, text, limit, allowed) in [
        (100, "mine-mine", "secret_stores", 16),
        (5, "${fill:60000}", "secret_store_bytes", 256 << 10),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (_bundle, host) = storing(&directory, "[\"secret:own\"]", "[\"secret:own\"]");
        let store = json!({"do": "secrets", "op": "store", "slug": "own", "text": text});
        let flood = json!({"do": "repeat", "times": times, "step": store});
        let error = error(&host, TOOL, flood).await;
        assert_eq!(error.code.as_str(), "toolward:limit_exceeded", "{error:?}");
        let hit = error.limit.unwrap();
        assert_eq!((hit.limit, hit.allowed), (limit, allowed));
        assert!(hit.used > allowed && error.hint.is_some(), "{hit:?}");
    }
}

/// Keeps nothing, and answers when it is told to.
struct Slow(Mutex<std::sync::mpsc::Receiver<()>>);

impl SecretStore for Slow {
    fn get(&self, _: &str, _: &str, _: &str) -> Result<Option<SecretValue>, SecretError> {
        Ok(None)
    }

    fn put(&self, _: &str, _: &str, _: &str, _: SecretValue) -> Result<(), SecretError> {
        let told = self.0.lock().unwrap();
        told.recv_timeout(Duration::from_secs(10))
            .map_err(|error| SecretError(error.to_string()))
    }
}

/// On a single thread, which storing would block.
#[tokio::test]
async fn others_run_while_a_value_is_stored() {
    let bundle = Bundle::of(
        TOOL,
        Guest::Plain,
        "mutates: [\"secret:own\"]\napproval: on-mutate\n",
        "",
    );
    let policy = "[[secret]]\nslug = \"own\"\npublisher = \"PUBLISHER\"\n\
         [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nmutates = [\"secret:own\"]\n";
    let (tell, told) = std::sync::mpsc::channel();
    let store = Slow(Mutex::new(told));
    let host = bundle.builder(policy).secrets(store).build().unwrap();
    let input = json!({"do": "secrets", "op": "store", "slug": "own", "text": "mine-mine"});
    let storing = {
        let host = host.clone();
        tokio::spawn(async move { as_principal(&host, "ann", input).await })
    };
    let neighbour = as_principal(&host, "bob", json!({"do": "echo", "value": 1})).await;
    assert_eq!(neighbour, json!(1));
    tell.send(()).unwrap();
    assert_eq!(storing.await.unwrap()["ok"], json!(true));
}

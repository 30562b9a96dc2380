//! Secrets: one value is sent in one header to one place, and appears nowhere else. A tool uses
//! only secrets that it declared and was granted.

mod placeholders;
mod revealed;
mod stored;

use serde_json::{Value, json};
use toolward_host::secrets::Sources;
use toolward_host::{Host, Reply};

use crate::server::Server;
use crate::vault::Vault;
use crate::world::{Bundle, Guest, call, error, policy_of};

const TOOL: &str = "hostile.secrets";
const VALUE: &str = "s3cr3t-value-0123456789";

/// A tool that declares `token`, and a vault that gets its requests. The tool may also call
/// `other.tool`.
struct World {
    vault: Vault,
    host: Host,
    _bundle: Bundle,
}

/// The differences from a tool that declares `token` and may use it.
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

    /// Makes a call, and asserts that its reply does not contain the value.
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
                reply.metadata.violations[0].kind.as_str(),
                "secret",
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
        // A request with this path is not sent, and records no violation.
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

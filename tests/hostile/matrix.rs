//! Tests every capability in four cases: declared or not, and allowed by the policy or not. A
//! capability that is declared and allowed works. If it is only declared, the tool is blocked. If
//! it is not declared, the guest is refused, whatever the policy allows.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolward_host::secrets::{SecretError, SecretStore, SecretValue};
use toolward_host::{Host, LOCAL};
use toolward_policy::{Decision, Policy};
use toolward_state::{Access, Store};

use crate::stored_bucket::{Bucket, OpenBucket as _};

use crate::server::{Server, to_loopback};
use crate::world::{Bundle, Guest, call};

const TOOL: &str = "hostile.matrix";

/// One capability.
struct Row {
    name: &'static str,
    guest: Guest,
    /// Lines of the contract. `HOST` stands for the server in all texts of this struct.
    declared: &'static str,
    /// Lines of a contract that does not declare the capability. A driver may import an interface
    /// only if its contract declares something of that interface.
    otherwise: &'static str,
    /// Lines of a grant.
    allowed: &'static str,
    /// Lines of the grant in every case.
    base: &'static str,
    /// The capability's name in a denial.
    capability: &'static str,
    attempt: fn(&Server) -> Value,
    /// Whether the attempt succeeded, judged by the state afterwards and the reply.
    happened: fn(&Place, &Value) -> bool,
    /// The kind of the violation that is recorded; `None` if the guest finds nothing to try.
    recorded: Option<&'static str>,
}

/// The places where an attempt may leave traces.
struct Place {
    directory: TempDir,
    server: Server,
    stored: Stored,
    buckets: Store,
    publisher: String,
}

impl Place {
    fn bucket(&self) -> Bucket {
        let limits = toolward_state::Limits::default();
        self.buckets
            .bucket(&self.publisher, LOCAL, "counters", Access::Write, limits)
    }
}

/// Publisher, slug and value.
type Secret = (String, String, Vec<u8>);

/// Secrets in memory.
#[derive(Clone, Default)]
struct Stored(Arc<Mutex<Vec<Secret>>>);

impl SecretStore for Stored {
    fn get(&self, _: &str, _: &str, _: &str) -> Result<Option<SecretValue>, SecretError> {
        Ok(Some(SecretValue::new(b"a value of some length".to_vec())))
    }

    fn put(
        &self,
        publisher: &str,
        _: &str,
        slug: &str,
        value: SecretValue,
    ) -> Result<(), SecretError> {
        let entry = (
            publisher.to_owned(),
            slug.to_owned(),
            value.bytes().to_vec(),
        );
        self.0.lock().unwrap().push(entry);
        Ok(())
    }
}

fn url(server: &Server) -> String {
    format!("http://api.test:{}/x", server.port())
}

fn ok_text(value: &Value, text: &str) -> bool {
    value["ok"]["text"] == json!(text)
}

fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "network to read",
            guest: Guest::Net,
            declared: "requires:\n  network: [\"HOST\"]\n",
            otherwise: "requires:\n  network: [base.test]\n",
            base: "requires = [\"network:base.test\"]\n",
            allowed: "requires = [\"network:HOST\"]\n",
            capability: "network:HOST",
            attempt: |server| json!({"do": "http", "url": url(server)}),
            happened: |place, _| place.server.connections() > 0,
            recorded: Some("network"),
        },
        Row {
            name: "network to write",
            guest: Guest::Net,
            declared: "mutates: [\"network:HOST\"]\napproval: on-mutate\n",
            otherwise: "requires:\n  network: [base.test]\n",
            base: "requires = [\"network:base.test\"]\n",
            allowed: "mutates = [\"network:HOST\"]\n",
            capability: "network:HOST",
            attempt: |server| json!({"do": "http", "url": url(server), "method": "POST", "body": "x"}),
            happened: |place, _| place.server.connections() > 0,
            recorded: Some("network"),
        },
        Row {
            name: "external service",
            guest: Guest::Net,
            declared: "mutates: [\"external:mail\"]\napproval: on-mutate\n",
            otherwise: "requires:\n  network: [base.test]\n",
            base: "requires = [\"network:base.test\"]\n",
            allowed: "mutates = [\"external:mail\"]\n",
            capability: "external:mail",
            attempt: |server| json!({"do": "http", "url": url(server), "method": "POST", "body": "x"}),
            happened: |place, _| place.server.connections() > 0,
            recorded: Some("network"),
        },
        Row {
            name: "workspace to read",
            guest: Guest::Plain,
            declared: "requires:\n  workspace: [/notes]\n",
            otherwise: "",
            base: "",
            allowed: "requires = [\"workspace:/notes\"]\n",
            capability: "workspace:/notes",
            attempt: |_| json!({"do": "std-fs", "op": "read", "path": "/notes/a.txt"}),
            happened: |_, value| ok_text(value, "what is in it"),
            recorded: None,
        },
        Row {
            name: "workspace to write",
            guest: Guest::Plain,
            declared: "mutates: [\"workspace:/notes\"]\napproval: on-mutate\n",
            otherwise: "",
            base: "",
            allowed: "mutates = [\"workspace:/notes\"]\n",
            capability: "workspace:/notes",
            attempt: |_| json!({"do": "std-fs", "op": "write", "path": "/notes/new", "text": "x"}),
            happened: |place, _| place.directory.path().join("new").exists(),
            recorded: None,
        },
        Row {
            name: "pattern of a workspace",
            guest: Guest::Plain,
            declared: "requires:\n  workspace: [\"/notes/*.txt\"]\n",
            otherwise: "",
            base: "",
            allowed: "requires = [\"workspace:/notes/*.txt\"]\n",
            capability: "workspace:/notes/*.txt",
            attempt: |_| json!({"do": "std-fs", "op": "read", "path": "/notes/a.txt"}),
            happened: |_, value| ok_text(value, "what is in it"),
            recorded: None,
        },
        Row {
            name: "database to read",
            guest: Guest::Buckets,
            declared: "requires:\n  database: [counters]\n",
            otherwise: "requires:\n  database: [base]\n",
            base: "requires = [\"database:base\"]\n",
            allowed: "requires = [\"database:counters\"]\n",
            capability: "database:counters",
            attempt: |_| json!({"do": "kv", "op": "get", "bucket": "counters", "key": "a"}),
            happened: |_, value| ok_text(value, "what is in it"),
            recorded: Some("database"),
        },
        Row {
            name: "database to write",
            guest: Guest::Buckets,
            declared: "mutates: [\"database:counters\"]\napproval: on-mutate\n",
            otherwise: "requires:\n  database: [base]\n",
            base: "requires = [\"database:base\"]\n",
            allowed: "mutates = [\"database:counters\"]\n",
            capability: "database:counters",
            attempt: |_| json!({"do": "kv", "op": "set", "bucket": "counters", "key": "new", "text": "x"}),
            happened: |place, _| place.bucket().exists("new").unwrap(),
            recorded: Some("database"),
        },
        Row {
            name: "secret to use",
            guest: Guest::Net,
            declared: "requires:\n  secrets: [token]\n  network: [\"HOST\"]\n",
            otherwise: "requires:\n  network: [\"HOST\"]\n",
            base: "requires = [\"network:HOST\"]\n",
            allowed: "requires = [\"secret:token\"]\n",
            capability: "secret:token",
            attempt: |_| json!({"do": "secrets", "op": "placeholder", "slug": "token"}),
            happened: |_, value| value["ok"].is_string(),
            recorded: Some("secret"),
        },
        Row {
            name: "secret to store",
            guest: Guest::Plain,
            declared: "mutates: [\"secret:own\"]\napproval: on-mutate\n",
            otherwise: "",
            base: "",
            allowed: "mutates = [\"secret:own\"]\n",
            capability: "secret:own",
            attempt: |_| json!({"do": "secrets", "op": "store", "slug": "own", "text": "mine-mine"}),
            happened: |place, _| !place.stored.0.lock().unwrap().is_empty(),
            recorded: Some("secret"),
        },
        Row {
            name: "tool",
            guest: Guest::Plain,
            declared: "requires:\n  tools: [other.tool]\n",
            otherwise: "requires:\n  network: [base.test]\n",
            base: "requires = [\"network:base.test\"]\n",
            allowed: "requires = [\"tool:other.tool\"]\n",
            capability: "tool:other.tool",
            attempt: |_| json!({"do": "call-tool", "tool": "other.tool", "input": {"do": "echo", "value": 5}}),
            happened: |_, value| value["ok"]["value"] == json!(5),
            recorded: Some("tool"),
        },
    ]
}

/// A host for one cell of the table. `more` is appended to its policy.
fn built(row: &Row, declared: bool, allowed: bool, more: &str) -> (Place, Host, Bundle) {
    let mut place = Place {
        directory: tempfile::tempdir().unwrap(),
        server: Server::saying("hello"),
        stored: Stored::default(),
        buckets: Store::in_memory().unwrap(),
        publisher: String::new(),
    };
    std::fs::write(place.directory.path().join("a.txt"), "what is in it").unwrap();
    let server = format!("api.test:{}", place.server.port());
    let fill = |text: &str| text.replace("HOST", &server);
    let driver = match row.guest {
        Guest::Net => format!("network:\n  egress: [\"{server}\", base.test]\n"),
        _ => String::new(),
    };
    let tool = if declared {
        row.declared
    } else {
        row.otherwise
    };
    let bundle =
        Bundle::of(TOOL, row.guest, &fill(tool), &driver).with("other.tool", Guest::Plain, "", "");
    place.publisher = bundle.publisher();
    place.bucket().set("a", b"what is in it").unwrap();
    let grant = "[[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nplain_http = true\n\
                 addresses = [\"127.0.0.0/8\"]\n";
    let policy = format!(
        "[[workspace]]\npath = \"/notes\"\ndirectory = {directory:?}\n\
         [[service]]\nname = \"mail\"\nhosts = [\"{server}\"]\n\
         [[secret]]\nslug = \"token\"\npublisher = \"PUBLISHER\"\norigin = \"https://{server}\"\n\
         header = \"authorization\"\n\
         [[secret]]\nslug = \"own\"\npublisher = \"PUBLISHER\"\n\
         {grant}{base}{grant}{allowed}{more}",
        directory = place.directory.path().display().to_string(),
        base = fill(row.base),
        allowed = fill(if allowed { row.allowed } else { "" }),
        more = fill(more),
    );
    let host = bundle
        .builder(&policy)
        .transport(to_loopback())
        .secrets(place.stored.clone())
        .buckets(place.buckets.clone())
        .build()
        .unwrap();
    (place, host, bundle)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_declared_and_allowed_works_and_nothing_else_does() {
    for row in rows() {
        for (declared, allowed) in [(true, true), (true, false), (false, true), (false, false)] {
            let what = format!("{}, declared: {declared}, allowed: {allowed}", row.name);
            let (place, host, _bundle) = built(&row, declared, allowed, "");
            let reply = call(&host, TOOL, (row.attempt)(&place.server)).await;
            let given = match &reply.result {
                Ok(output) => output.structured["value"].clone(),
                Err(_) => Value::Null,
            };
            let happened = (row.happened)(&place, &given);
            assert_eq!(happened, declared && allowed, "{what}: {reply:?}");
            match (declared, allowed) {
                (true, true) => {
                    assert!(reply.result.is_ok(), "{what}: {reply:?}");
                    assert_eq!(reply.metadata.violations_total, 0, "{what}: {reply:?}");
                }
                (true, false) => {
                    let error = reply.result.unwrap_err();
                    assert_eq!(error.code.as_str(), "unauthorised", "{what}: {error:?}");
                    let name = row
                        .capability
                        .replace("HOST", &format!("api.test:{}", place.server.port()));
                    assert!(error.message.contains(&name), "{what}: {error:?}");
                    assert!(error.hint.is_some());
                    assert_eq!(reply.metadata.attempts, 0, "{what}");
                    // It is shown as blocked before any call.
                    let info = host.tool(TOOL).unwrap();
                    assert!(
                        matches!(info.drivers[0].decision, Decision::Deny(_)),
                        "{what}"
                    );
                }
                (false, _) => {
                    assert!(reply.result.is_ok(), "{what}: {reply:?}");
                    let kind = reply
                        .metadata
                        .violations
                        .first()
                        .map(|found| found.kind.as_str());
                    assert_eq!(kind, row.recorded, "{what}: {reply:?}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_to_read_gives_no_right_to_write_and_none_declared_is_taken_along() {
    // The tool declares writing but is granted only reading, so it is blocked as a whole.
    for row in rows().iter().filter(|row| {
        row.declared.starts_with("mutates: [\"network")
            || row.declared.starts_with("mutates: [\"workspace")
    }) {
        let narrower = Row {
            allowed: match row.guest {
                Guest::Net => "requires = [\"network:HOST\"]\n",
                _ => "requires = [\"workspace:/notes\"]\n",
            },
            name: row.name,
            guest: row.guest,
            declared: row.declared,
            otherwise: row.otherwise,
            base: row.base,
            capability: row.capability,
            attempt: row.attempt,
            happened: row.happened,
            recorded: row.recorded,
        };
        let (place, host, _bundle) = built(&narrower, true, true, "");
        let reply = call(&host, TOOL, (row.attempt)(&place.server)).await;
        assert_eq!(
            reply.result.unwrap_err().code.as_str(),
            "unauthorised",
            "{}",
            row.name
        );
        assert!(!(row.happened)(&place, &Value::Null), "{}", row.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_asked_only_where_that_is_declared_and_allowed() {
    let input = json!({"do": "ask-form", "name": "state",
        "value": {"message": "Your name?", "schema": {"type": "object", "properties": {}}}});
    for (declared, allowed) in [(true, true), (true, false), (false, true), (false, false)] {
        let what = format!("declared: {declared}, allowed: {allowed}");
        let tool = if declared {
            "requires:\n  user: [form]\n"
        } else {
            ""
        };
        let grant = if allowed {
            "requires = [\"user:form\"]\n"
        } else {
            ""
        };
        let bundle = Bundle::of(TOOL, Guest::Plain, tool, "");
        let host = bundle.host(&format!("[[grant]]\npublisher = \"PUBLISHER\"\n{grant}"));
        let reply = call(&host, TOOL, input.clone()).await;
        let error = reply.result.unwrap_err();
        if declared && !allowed {
            assert_eq!(error.code.as_str(), "unauthorised", "{what}: {error:?}");
            assert!(error.message.contains("user:form"), "{what}: {error:?}");
            continue;
        }
        // This caller has no person to ask, so the code is the same. Only the violations differ.
        assert_eq!(
            error.code.as_str(),
            "input_unavailable",
            "{what}: {error:?}"
        );
        let beyond = reply
            .metadata
            .violations
            .iter()
            .any(|found| found.kind.as_str() == "user");
        assert_eq!(beyond, !declared, "{what}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_that_nobody_knows_blocks_its_tool_and_can_not_be_granted() {
    let bundle = Bundle::of(
        TOOL,
        Guest::Plain,
        "mutates: [\"teleport:mars\"]\napproval: on-mutate\n",
        "",
    );
    for grant in ["", "mutates = [\"workspace:/notes\"]\n"] {
        let host = bundle.host(&format!(
            "[[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\n{grant}"
        ));
        let reply = call(&host, TOOL, json!({"do": "echo", "value": 1})).await;
        let error = reply.result.unwrap_err();
        assert_eq!(error.code.as_str(), "unauthorised", "{error:?}");
        assert!(error.message.contains("teleport:mars"), "{error:?}");
        assert_eq!(reply.metadata.attempts, 0);
    }
    let refused =
        Policy::from_toml("[[grant]]\npublisher = \"acme\"\nmutates = [\"teleport:mars\"]\n");
    assert_eq!(refused.unwrap_err().code(), "policy-capability");
    for never in ["tool:*", "secret:*"] {
        let refused = Policy::from_toml(&format!(
            "[[grant]]\npublisher = \"acme\"\nrequires = [\"{never}\"]\n"
        ));
        assert_eq!(
            refused.unwrap_err().code(),
            "policy-never-granted",
            "{never}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deny_blocks_what_a_grant_allows() {
    for row in rows() {
        let deny = format!("[[deny]]\ncapabilities = [\"{}\"]\n", row.capability);
        let (place, host, _bundle) = built(&row, true, true, &deny);
        let reply = call(&host, TOOL, (row.attempt)(&place.server)).await;
        let error = reply.result.unwrap_err();
        assert_eq!(error.code.as_str(), "unauthorised", "{}", row.name);
        assert!(!(row.happened)(&place, &Value::Null), "{}", row.name);
    }
}

//! Tools that are served with only some of their declared hosts and workspaces. They can't reach
//! the others.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolward_host::{ApprovalRequest, Approver, Host, Verdict};

use crate::server::{Server, to_loopback};
use crate::world::{Bundle, Guest, call, value};

const OUTSIDE: &str = "what was not given";

/// A tool that declares two servers, of which the first is granted.
fn one_of_two(given: &Server, other: &Server, tool: &str) -> (Bundle, Host) {
    let hosts = [
        format!("api.test:{}", given.port()),
        format!("other.test:{}", other.port()),
    ];
    let bundle = Bundle::of(
        "hostile.net",
        Guest::Net,
        &format!("requires:\n  network: {}\n", json!(hosts)),
        &format!("network:\n  egress: {}\n", json!(hosts)),
    )
    .with("a.caller", Guest::Plain, tool, "");
    let host = bundle
        .builder(&format!(
            "[[grant]]\npublisher = \"PUBLISHER\"\ntool = \"hostile.net\"\n\
             requires = [\"network:{}\"]\nplain_http = true\naddresses = [\"127.0.0.0/8\"]\n\
             partial = true\n\
             [[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"tool:hostile.net\"]\n",
            hosts[0]
        ))
        .transport(to_loopback())
        .build()
        .unwrap();
    (bundle, host)
}

fn get(url: String) -> Value {
    json!({"do": "http", "url": url})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_host_that_is_not_given_is_not_reached() {
    let (given, other) = (Server::saying("hello"), Server::saying("got out"));
    let (_bundle, host) = one_of_two(&given, &other, "");
    let reached = get(format!("http://api.test:{}/", given.port()));
    let got = value(&host, "hostile.net", reached).await;
    assert_eq!(got["ok"]["body"], json!("hello"), "{got}");

    for url in [
        format!("http://other.test:{}/", other.port()),
        format!("http://OTHER.test:{}/", other.port()),
        format!("http://api.test:{}/", other.port()),
        format!("https://other.test:{}/", other.port()),
        format!("http://127.0.0.1:{}/", other.port()),
    ] {
        let reply = call(&host, "hostile.net", get(url.clone())).await;
        assert!(reply.metadata.violations_total > 0, "{url}: {reply:?}");
        let output = reply.result.unwrap().structured;
        assert_eq!(output["value"]["err"], json!("HttpRequestDenied"), "{url}");
        other.assert_untouched(&url);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_calls_it_gets_no_further() {
    let (given, other) = (Server::saying("hello"), Server::saying("got out"));
    let declared = "requires:\n  tools: [hostile.net]\n";
    let (_bundle, host) = one_of_two(&given, &other, declared);
    let through =
        |url: String| json!({"do": "call-tool", "tool": "hostile.net", "input": get(url)});
    let reached = through(format!("http://api.test:{}/", given.port()));
    let got = value(&host, "a.caller", reached).await;
    assert_eq!(got["ok"]["value"]["ok"]["body"], json!("hello"), "{got}");
    let denied = through(format!("http://other.test:{}/", other.port()));
    let got = value(&host, "a.caller", denied).await;
    assert_eq!(
        got["ok"]["value"]["err"],
        json!("HttpRequestDenied"),
        "{got}"
    );
    other.assert_untouched("a nested call");
}

/// Stores the questions, and approves each.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<ApprovalRequest>>>);

impl Approver for Asked {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        self.0.lock().unwrap().push(request.clone());
        Box::pin(std::future::ready(Verdict::Approved))
    }
}

/// A tool that may change `/notes`, and also declares `/private` and a host.
fn notes_only(disk: &Path, person: &Asked) -> (Bundle, Host) {
    for directory in ["notes", "private"] {
        std::fs::create_dir(disk.join(directory)).unwrap();
        std::fs::write(disk.join(directory).join("a.txt"), OUTSIDE).unwrap();
    }
    let bundle = Bundle::of(
        "hostile.files",
        Guest::Plain,
        "requires:\n  network: [api.test]\nmutates: ['workspace:/notes', 'workspace:/private']\n\
         approval: on-mutate\n",
        "network:\n  egress: [api.test]\n",
    );
    let mapped = |path: &str| {
        let directory = disk.join(path).display().to_string();
        format!("[[workspace]]\npath = \"/{path}\"\ndirectory = {directory:?}\n")
    };
    let host = bundle
        .builder(&format!(
            "{}{}[[grant]]\npublisher = \"PUBLISHER\"\nmutates = [\"workspace:/notes\"]\npartial = true\n",
            mapped("notes"),
            mapped("private"),
        ))
        .approver(person.clone())
        .build()
        .unwrap();
    (bundle, host)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_directory_that_is_not_given_is_not_reached() {
    let disk = tempfile::tempdir().unwrap();
    let person = Asked::default();
    let (_bundle, host) = notes_only(disk.path(), &person);
    let seen = value(
        &host,
        "hostile.files",
        json!({"do": "fs", "op": "preopens"}),
    )
    .await;
    assert!(seen.to_string().contains("/notes"), "{seen}");
    assert!(!seen.to_string().contains("private"), "{seen}");
    let write = |path: &str| json!({"do": "std-fs", "op": "write", "path": path, "text": "mine"});
    value(&host, "hostile.files", write("/notes/b.txt")).await;
    assert!(disk.path().join("notes/b.txt").exists());

    for path in ["/private/b.txt", "/notes/../private/b.txt"] {
        let got = value(&host, "hostile.files", write(path)).await;
        assert!(got["err"].is_string(), "{path}: {got}");
    }
    for path in ["../private/a.txt", "/private/a.txt"] {
        let read = json!({"do": "fs", "op": "read", "path": path, "follow": true});
        let reply = call(&host, "hostile.files", read).await;
        assert!(!reply.envelope().to_string().contains(OUTSIDE), "{path}");
    }
    let left: Vec<_> = std::fs::read_dir(disk.path().join("private"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["a.txt"]);
    let kept = std::fs::read_to_string(disk.path().join("private/a.txt")).unwrap();
    assert_eq!(kept, OUTSIDE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_and_the_effects_name_what_is_given_and_no_more() {
    let disk = tempfile::tempdir().unwrap();
    let person = Asked::default();
    let (_bundle, host) = notes_only(disk.path(), &person);
    value(&host, "hostile.files", json!({"do": "echo", "value": 1})).await;
    let asked = person.0.lock().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].effects, ["changes workspace:/notes"]);
    assert!(asked[0].driver_hosts.is_empty(), "{asked:?}");

    let tool = host.tool("hostile.files").unwrap();
    let effects = tool.effects().unwrap();
    assert!(effects.writes && !effects.network);
    let without: Vec<String> = tool.without().iter().map(ToString::to_string).collect();
    assert_eq!(
        without,
        ["network:api.test", "workspace:/private (to change it)"]
    );
}

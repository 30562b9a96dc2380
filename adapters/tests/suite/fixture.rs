//! A bundle whose tools get different decisions from the policy.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use serde_json::Value;
use tempfile::TempDir;
use toolward_adapters::records::{Described, EndedCall, Recorder, call_records, tool_records};
use toolward_bundle::content::Content;
use toolward_host::{Approver, Cache, EventFilter, Heard, Host, Reply, Request, ToolFacts};
use toolward_policy::Policy;

/// A host with these tools:
///
/// * `test.run` is allowed, and has a secret and an internal field.
/// * `test.asks` needs a person's approval.
/// * `test.form` asks questions.
/// * `test.missing` changes what the policy does not give.
/// * `test.denied` is denied by a rule.
/// * `test.web` is carried out by the host's own request, and granted.
/// * `test.alone` has no driver.
pub(crate) struct Fixture {
    directory: TempDir,
}

const TOOLS: [(&str, &str); 7] = [
    (
        "test.run",
        "idempotent: true\nretry: { max_attempts: 2, backoff: fixed, initial_ms: 1 }\n\
         timeout_ms: 5000\ntags: [checks]\n\
         metadata: { toolward: { aliases: [test.go], search_hint: does one thing } }\n",
    ),
    (
        "test.asks",
        "approval: always\nrisk_level: 2\ncost_class: metered\n",
    ),
    ("test.form", "requires: { user: [form] }\n"),
    ("test.missing", "mutates: [\"workspace:/notes\"]\n"),
    ("test.denied", ""),
    ("test.web", "requires: { network: [api.example.com] }\n"),
    ("test.alone", "cost_class: expensive\n"),
];

const INPUTS: &str = "inputs:\n  type: object\n  properties:\n    do: { type: string }\n    n: { type: integer }\n    \
                      name: { type: string }\n    password: { type: string, writeOnly: true }\n    \
                      trace: { type: string, x-internal: true }\n  required: [do]\n";
const OUTPUTS: &str = "outputs:\n  type: object\n  properties:\n    did: { type: string }\n    \
                       value: { x-internal: true }\n  required: [did]\n";

fn wasm() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/guests/hostile/drivers/hostile/driver.wasm");
    assert!(path.exists(), "run `cargo xtask guests` first");
    path
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let fixture = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fixture.write(
            "bundle.toml",
            "id = \"test.bundle\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"test\"\n\
             created = \"2026-01-01T00:00:00Z\"\n",
        );
        for (id, more) in TOOLS {
            let front = format!(
                "---\nname: Test\nid: {id}\ndescription: Does what it is told.\n\
                 version: 1.2.0\n{INPUTS}{OUTPUTS}{more}---\n"
            );
            fixture.write(&format!("tools/{id}/TOOL.md"), front);
        }
        let run = [
            "test.run",
            "test.asks",
            "test.form",
            "test.missing",
            "test.denied",
        ];
        let entries: String = run
            .iter()
            .map(|id| format!("  - {{ tool: {id}, version: ^1.0.0 }}\n"))
            .collect();
        let driver = |id: &str, more: String| {
            let front = format!(
                "---\nname: Test\nid: {id}\ndescription: Does what it is told.\nversion: 1.0.0\n\
                 {more}---\n"
            );
            fixture.write(&format!("drivers/{id}/DRIVER.md"), front);
        };
        driver(
            "test-component",
            format!("kind: component\ncomponent: driver.wasm\nimplements:\n{entries}"),
        );
        driver(
            "test-web",
            "kind: http\ncost_override: { cost_units_per_call: 4, currency: USD }\nimplements:\n  - tool: test.web\n    \
             version: ^1.0.0\n    cost_override: { cost_class: expensive }\n    metadata:\n      http: { endpoint: \"/v1/${input.do}\" }\nnetwork: { egress: [api.example.com] }\n"
                .to_owned(),
        );
        let component = std::fs::read(wasm()).unwrap();
        fixture.write("drivers/test-component/driver.wasm", component);
        fixture
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn policy(&self) -> Policy {
        let publisher = format!("dev:{}", self.directory.path().display());
        let grant = |tool: &str, capability: &str| {
            format!(
                "[[grant]]\npublisher = {publisher:?}\ntool = {tool:?}\nrequires = [{capability:?}]\n"
            )
        };
        let text = grant("test.form", "user:form")
            + &grant("test.web", "network:api.example.com")
            + &format!("[[deny]]\npublisher = {publisher:?}\ntool = \"test.denied\"\n");
        Policy::from_toml(&text).unwrap()
    }

    /// Returns the host. `approver` answers for a person.
    pub(crate) fn host(&self, approver: Option<impl Approver + 'static>) -> Host {
        static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
        let cache = Cache::open(CACHE.path().join("cache")).unwrap();
        let content = Content::from_dev(self.directory.path());
        let content = content.unwrap_or_else(|error| panic!("{error:#?}"));
        let builder = Host::builder().bundle(content).cache(cache);
        let builder = builder.policy(self.policy());
        match approver {
            Some(approver) => builder.approver(approver),
            None => builder,
        }
        .build()
        .unwrap()
    }
}

/// Returns a program's view of one tool.
pub(crate) fn described(host: &Host, tool: &str) -> Value {
    let infos: Vec<&ToolFacts> = host.tools().collect();
    let names = infos
        .iter()
        .map(|info| info.contract.id.as_str().replace('.', "_"));
    let names: Vec<String> = names.collect();
    let all = infos.iter().zip(&names);
    let all: Vec<Described<'_>> = all.map(|(info, name)| Described { info, name }).collect();
    let mut found = all.iter();
    let found = found.find(|one| one.info.contract.id.as_str() == tool);
    tool_records(found.unwrap(), &all, "local", SystemTime::now())
}

/// Makes one call, and returns its records.
pub(crate) async fn called(host: &Host, tool: &str, input: Value) -> Value {
    let recorder = Recorder::new();
    let mut events = host.events(EventFilter::all());
    let request = Request::with_value(tool, input.clone()).observer(Arc::new(recorder.clone()));
    let reply = host.call(request).await;
    let mut heard = Vec::new();
    while let Some(Heard::Event(event)) = events.try_next() {
        heard.push(event);
    }
    let info = host.tool(tool);
    let mut ended = EndedCall::now(&reply, info, &recorder).with_events(heard);
    ended.input = Some(&input);
    call_records(&ended)
}

pub(crate) fn recorded(
    host: &Host,
    recorder: &Recorder,
    reply: &Reply,
    tool: &str,
    input: &Value,
) -> Value {
    let info = host.tool(tool);
    let mut ended = EndedCall::now(reply, info, recorder);
    ended.input = Some(input);
    call_records(&ended)
}

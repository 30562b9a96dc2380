//! Fixtures for the tests of questions and approvals: a host with real drivers that ask and need
//! approval, and clients with scripted answers.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ErrorCode as Fault, InputRequest, InputRequiredResult, JsonObject,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolward_bundle::content::Content;
use toolward_host::{Answerable, Cache, CallEnd, Host, Reply, Request, SharedState};
use toolward_policy::Policy;

use super::round_trips::{ClientEnd, RoundTrips};
use super::runtime::CallRuntime;
use crate::client::{AsksPerson, Client, Era, Said, Unanswered};
use crate::principal::{Principal, Tools};

/// `notes.ask` asks; `notes.write` changes something; `notes.always` asks and needs
/// approval each time; `notes.burn` can't be undone; `notes.calls` calls `notes.always`,
/// and `notes.through` a tool of the bundle `helper`.
const TOOLS: &[(&str, &str)] = &[
    ("notes.ask", "requires: { user: [form, sample, roots] }\n"),
    ("notes.write", "mutates: [\"database:notes\"]\n"),
    (
        "notes.always",
        "approval: always\nrequires: { user: [form] }\n",
    ),
    (
        "notes.burn",
        "risk_level: 3\nmutates: [\"database:notes\"]\n",
    ),
    ("notes.calls", "requires: { tools: [notes.always] }\n"),
    (
        "notes.through",
        "mutates: [\"database:notes\"]\nrequires: { tools: [helper.write] }\n",
    ),
];

/// The bundle `helper`.
const HELPER: &[(&str, &str)] = &[("helper.write", "mutates: [\"database:notes\"]\n")];

/// Round trips that share nothing with others.
pub(crate) fn fresh() -> RoundTrips {
    RoundTrips::new(&SharedState::new())
}

/// A host of these tools, with the test's own description. Another description makes another
/// bundle.
pub(crate) fn host(description: &str) -> (TempDir, Host) {
    let directory = tempfile::tempdir().unwrap();
    write("notes", TOOLS, description, directory.path());
    let host = host_of(&[directory.path()]);
    (directory, host)
}

/// The same host with the bundle `helper`, both in directories of the test.
pub(crate) fn host_with_helper(notes: &Path, helper: &Path, description: &str) -> Host {
    write("notes", TOOLS, "Notes.", notes);
    write("helper", HELPER, description, helper);
    host_of(&[notes, helper])
}

/// Writes a bundle of these tools.
fn write(id: &str, tools: &[(&str, &str)], description: &str, directory: &Path) {
    let write = |path: &str, content: &[u8]| {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    let bundle = format!(
        "id = \"{id}\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"acme\"\n\
         created = \"2026-01-01T00:00:00Z\"\n"
    );
    write("bundle.toml", bundle.as_bytes());
    let mut implements = String::new();
    for (tool_id, extra) in tools {
        let tool = format!(
            "---\nname: Notes\nid: {tool_id}\ndescription: {description}\nversion: 1.0.0\ninputs:\n  \
             type: object\noutputs:\n  type: object\n{extra}---\n"
        );
        write(&format!("tools/{tool_id}/TOOL.md"), tool.as_bytes());
        implements.push_str(&format!("  - tool: {tool_id}\n    version: ^1.0.0\n"));
    }
    let driver = format!(
        "---\nname: Notes\nid: {id}\ndescription: Keeps notes.\nversion: 1.0.0\n\
         kind: component\ncomponent: driver.wasm\nimplements:\n{implements}---\n"
    );
    write(&format!("drivers/{id}/DRIVER.md"), driver.as_bytes());
    let wasm = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/guests/hostile/drivers/hostile/driver.wasm");
    let wasm = std::fs::read(&wasm)
        .unwrap_or_else(|_| panic!("{} is missing: run `cargo xtask guests`", wasm.display()));
    write(&format!("drivers/{id}/driver.wasm"), &wasm);
}

fn host_of(directories: &[&Path]) -> Host {
    static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
    let mut policy = String::new();
    let mut builder = Host::builder().cache(Cache::open(CACHE.path().join("cache")).unwrap());
    for directory in directories {
        policy.push_str(&format!(
            "[[grant]]\npublisher = \"dev:{}\"\nrequires = [\"user:form\", \"user:sample\", \
             \"user:roots\", \"tool:notes.always\", \"tool:helper.write\"]\n\
             mutates = [\"database:notes\"]\n",
            directory.display()
        ));
        builder = builder.bundle(Content::from_dev(directory).unwrap());
    }
    builder
        .policy(Policy::from_toml(&policy).unwrap())
        .build()
        .unwrap()
}

/// A person who gives these answers in turn, and then no more.
#[derive(Default)]
pub(crate) struct Scripted {
    says: Mutex<VecDeque<Value>>,
    asked: Mutex<Vec<Value>>,
}

impl Scripted {
    pub(crate) fn saying(says: impl IntoIterator<Item = Value>) -> Arc<Self> {
        let says = Mutex::new(says.into_iter().collect());
        let asked = Mutex::default();
        Arc::new(Self { says, asked })
    }

    /// Returns the questions to this person, as JSON.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

impl AsksPerson for Scripted {
    fn ask(&self, request: InputRequest, _: Duration) -> Said<'_> {
        let request = serde_json::to_value(request).unwrap();
        self.asked.lock().unwrap().push(request);
        let said = self.says.lock().unwrap().pop_front();
        Box::pin(async move { said.ok_or(Unanswered::Late) })
    }
}

/// A trusted client of the stateless era that can answer everything.
pub(crate) fn stateless(name: &str) -> Client {
    Client {
        principal: Principal {
            name: name.into(),
            tools: Tools::All,
            may_approve: true,
        },
        era: Era::Stateless,
        answerable: Answerable {
            form: true,
            sample: true,
            roots: true,
        },
        person: None,
        untrusted_name: None,
    }
}

/// A trusted client of the session era, with this person behind it.
pub(crate) fn session(person: &Arc<Scripted>) -> Client {
    Client {
        era: Era::Session,
        person: Some(person.clone()),
        ..stateless("alice")
    }
}

/// A call as a client sends it.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) tool: &'static str,
    pub(crate) input: JsonObject,
    responses: Option<BTreeMap<String, Value>>,
    state: Option<String>,
}

impl Sent {
    pub(crate) fn new(tool: &'static str, input: Value) -> Self {
        Self {
            tool,
            input: input.as_object().unwrap().clone(),
            responses: None,
            state: None,
        }
    }

    /// The same call with these answers to its questions.
    pub(crate) fn answering(&self, asked: &InputRequiredResult, responses: Value) -> Self {
        let responses = responses.as_object().unwrap().clone();
        Self {
            responses: Some(responses.into_iter().collect()),
            state: asked.request_state.clone(),
            ..self.clone()
        }
    }

    pub(crate) async fn to(
        &self,
        round_trips: &RoundTrips,
        client: &Client,
        host: &Host,
    ) -> ClientEnd {
        let mut parameters = CallToolRequestParams::new(self.tool);
        parameters.input_responses = self.responses.clone();
        parameters.request_state = self.state.clone();
        let request = Request::with_value(self.tool, Value::Object(self.input.clone()))
            .principal(client.principal.name.as_ref());
        let input = &self.input;
        let runtime = CallRuntime {
            host,
            long_calls: None,
            others_open: false,
        };
        let request = Box::new(request);
        let end = round_trips
            .carry_out(client, runtime, request, self.tool, input, &parameters)
            .await;
        end.unwrap_or_else(CallEnd::Failed)
    }
}

/// The reply of a call that has ended.
pub(crate) fn ended(end: ClientEnd) -> Reply {
    match end {
        CallEnd::Done(reply) => *reply,
        end => panic!("it has not ended: {end:?}"),
    }
}

/// Returns the questions of a call.
pub(crate) fn asks(end: ClientEnd) -> InputRequiredResult {
    match end {
        CallEnd::Asks(required) => required,
        end => panic!("it does not ask: {end:?}"),
    }
}

/// The keys of what was asked.
pub(crate) fn keys(asked: &InputRequiredResult) -> Vec<&str> {
    let requests = asked.input_requests.as_ref().unwrap();
    requests.keys().map(String::as_str).collect()
}

/// A form filled in.
pub(crate) fn accepted(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// An approval question answered.
pub(crate) fn decided(decision: &str) -> Value {
    json!({"toolward:approval": accepted(json!({"decision": decision}))})
}

/// The fault of a request, and what came with it.
pub(crate) fn fault(end: ClientEnd) -> (Fault, Value) {
    match end {
        CallEnd::Failed(error) => (error.code, error.data.unwrap_or_default()),
        end => panic!("it has no fault: {end:?}"),
    }
}

/// The code of an error.
pub(crate) fn code(reply: &Reply) -> &str {
    match &reply.result {
        Ok(output) => panic!("an output: {}", output.structured),
        Err(error) => error.code.as_str(),
    }
}

/// The value that a driver returned.
pub(crate) fn value(reply: &Reply) -> &Value {
    match &reply.result {
        Ok(output) => &output.structured["value"],
        Err(error) => panic!("{error:?}"),
    }
}

/// A call that asks one question.
pub(crate) fn asking_call() -> Sent {
    Sent::new("notes.ask", json!({"do": "ask"}))
}

/// A call to a driver that returns its input.
pub(crate) fn echo(tool: &'static str) -> Sent {
    Sent::new(tool, json!({"do": "echo", "value": 7}))
}

/// Yes to the question of [`asking_call`].
pub(crate) fn yes() -> Value {
    json!({"q": accepted(json!({"ok": true}))})
}

//! Messages of MCP: the answers to each request, in each era and over each transport.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;

use serde_json::{Map, Value, json};

use super::Forms;
use super::normal::Placeholders;
use crate::mcp::raw::{PATIENCE, Raw};
use crate::mcp::served::{Served, machine};

const SESSIONS: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";

/// Makes the only tool that changes something wait for a person.
pub(super) const POLICY: &str = "[[grant]]\n\
    publisher = \"key:cd841c22fb88b5562fa3e6a5fdd74be5dd34deb54cf96b6b16c43d6c4d4f74a5\"\n\
    tool = \"kv.counter\"\nmutates = [\"database:counters\"]\n\n";

const SERVE: &str = "serve --bundle conformance.toolbundle --trust-key tests.pub.pem \
    --bundle kv-counter.toolbundle --trust-key example.pub.pem --policy-file policy.toml";

/// The tools of a list that are included. Together they have all fields.
const LISTED: [&str; 5] = [
    "json_schema_2020_12_tool",
    "kv_counter",
    "test_header",
    "test_image_content",
    "test_sum",
];

/// One case on each line: its file, its name, the method and the parameters.
const CASES: &str = r#"
mcp-open | server/discover | server/discover | {}
mcp-open | ping | ping | {}
mcp-open | logging/setLevel | logging/setLevel | {"level":"debug"}
mcp-tools-list | tools/list | tools/list | {}
mcp-tools-call | text | tools/call | {"name":"test_simple_text"}
mcp-tools-call | structured | tools/call | {"name":"test_sum","arguments":{"numbers":[1,2]}}
mcp-tools-call | image | tools/call | {"name":"test_image_content"}
mcp-tools-call | audio | tools/call | {"name":"test_audio_content"}
mcp-tools-call | embedded resource | tools/call | {"name":"test_embedded_resource"}
mcp-tools-call | several blocks | tools/call | {"name":"test_multiple_content_types"}
mcp-tools-call | failed in the driver | tools/call | {"name":"test_error_handling"}
mcp-tools-call | invalid input | tools/call | {"name":"test_sum","arguments":{"numbers":"1"}}
mcp-tools-call | progress | tools/call | {"name":"test_tool_with_progress","_meta":{"progressToken":"p"}}
mcp-tools-call | log | tools/call | {"name":"test_tool_with_logging"}
mcp-tools-call | asks by a form | tools/call | {"name":"test_elicitation","arguments":{"message":"m"}}
mcp-tools-call | asks the model | tools/call | {"name":"test_sampling","arguments":{"prompt":"p"}}
mcp-tools-call | asks for roots | tools/call | {"name":"test_input_required_result_list_roots"}
mcp-tools-call | asks for approval | tools/call | {"name":"kv_counter","arguments":{"action":"add","counter":"visits"}}
mcp-tools-call | unknown tool | tools/call | {"name":"no_tool"}
mcp-prompts | list | prompts/list | {}
mcp-prompts | get | prompts/get | {"name":"test_prompt_with_arguments","arguments":{"arg1":"a","arg2":"b"}}
mcp-prompts | image | prompts/get | {"name":"test_prompt_with_image"}
mcp-prompts | asks | prompts/get | {"name":"test_input_required_result_prompt"}
mcp-prompts | missing argument | prompts/get | {"name":"test_prompt_with_arguments"}
mcp-prompts | unknown | prompts/get | {"name":"no_prompt"}
mcp-prompts | complete | completion/complete | {"ref":{"type":"ref/prompt","name":"test_prompt_with_arguments"},"argument":{"name":"arg1","value":"te"}}
mcp-resources | list | resources/list | {}
mcp-resources | templates | resources/templates/list | {}
mcp-resources | text | resources/read | {"uri":"test://static-text"}
mcp-resources | binary | resources/read | {"uri":"test://static-binary"}
mcp-resources | template | resources/read | {"uri":"test://template/7/data"}
mcp-resources | unknown | resources/read | {"uri":"test://none"}
mcp-resources | subscribe | resources/subscribe | {"uri":"test://watched-resource"}
mcp-errors | unknown method | tools/destroy | {}
mcp-errors | no name | tools/call | {}
mcp-errors | foreign cursor | tools/list | {"cursor":"x"}
mcp-errors | unknown level | logging/setLevel | {"level":"loud"}
"#;

/// The capabilities of a client that can answer every question.
fn capabilities() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

fn client_info() -> Value {
    json!({ "name": "forms", "version": "1" })
}

/// Returns an answer to a question of the server.
pub(super) fn answer(request: &Value) -> Value {
    match request["method"].as_str().unwrap() {
        "elicitation/create" => {
            let properties = request["params"]["requestedSchema"]["properties"].as_object();
            let filled = properties.into_iter().flatten().map(|(name, schema)| {
                let value = match schema["type"].as_str() {
                    Some("boolean") => true.into(),
                    Some("integer" | "number") => 1.into(),
                    _ => schema["enum"].get(0).cloned().unwrap_or("text".into()),
                };
                (name.clone(), value)
            });
            json!({ "action": "accept", "content": filled.collect::<Map<_, _>>() })
        }
        "sampling/createMessage" => {
            let content = json!({ "type": "text", "text": "an answer" });
            json!({ "role": "assistant", "content": content, "model": "a model" })
        }
        "roots/list" => json!({ "roots": [{ "uri": "file:///root", "name": "root" }] }),
        other => panic!("the server asks {other}"),
    }
}

enum Link<'a> {
    Stdio(Raw),
    Http(&'a Served, &'a str),
}

struct Client<'a> {
    link: Link<'a>,
    revision: &'static str,
    session: Option<String>,
}

impl<'a> Client<'a> {
    fn new(link: Link<'a>, revision: &'static str) -> Self {
        Self {
            link,
            revision,
            session: None,
        }
    }

    fn name(&self) -> String {
        let transport = match self.link {
            Link::Stdio(_) => "stdio",
            Link::Http(..) => "http",
        };
        format!("{transport} {}", self.revision)
    }

    /// Opens a session, and returns the answers.
    fn open(&mut self) -> Vec<Value> {
        let params = json!({ "protocolVersion": self.revision, "capabilities": capabilities(), "clientInfo": client_info() });
        let opened = self.ask("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        opened
    }

    /// Returns the messages that a request causes, including its repetition with answers. Of
    /// several notifications of one method only the first is kept, since their number depends on
    /// timing.
    fn ask(&mut self, method: &str, mut params: Value) -> Vec<Value> {
        if self.revision == STATELESS {
            let meta = [
                ("protocolVersion", STATELESS.into()),
                ("clientInfo", client_info()),
                ("clientCapabilities", capabilities()),
                ("logLevel", "debug".into()),
            ];
            for (name, value) in meta {
                params["_meta"][format!("io.modelcontextprotocol/{name}")] = value;
            }
        }
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut stream = self.send(&request);
        let mut seen: Vec<Value> = Vec::new();
        loop {
            let message = self.next(&mut stream);
            if let Some(id) = message
                .get("id")
                .filter(|_| message.get("method").is_some())
            {
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": answer(&message) }));
            }
            if message.get("method").is_none() {
                let asked = message["result"]["inputRequests"].clone();
                let state = message["result"].get("requestState").cloned();
                seen.push(message);
                if let Value::Object(asked) = asked {
                    let answers = asked.iter().map(|(key, one)| (key.clone(), answer(one)));
                    params["inputResponses"] = Value::Object(answers.collect());
                    params["requestState"] = state.unwrap_or_default();
                    seen.extend(self.ask(method, params));
                }
                return seen;
            }
            if !seen.iter().any(|one| one["method"] == message["method"]) {
                seen.push(message);
            }
        }
    }

    /// Sends a message. Over HTTP it opens a new connection, on which the answer arrives.
    fn send(&mut self, message: &Value) -> Option<BufReader<TcpStream>> {
        let (served, token) = match &mut self.link {
            Link::Stdio(raw) => {
                raw.send(message);
                return None;
            }
            Link::Http(served, token) => (served, token),
        };
        let mut headers = format!("Authorization: Bearer {token}\r\n");
        if let Some(session) = &self.session {
            headers += &format!("Mcp-Session-Id: {session}\r\n");
        }
        if message["method"] != "initialize" {
            headers += &format!("MCP-Protocol-Version: {}\r\n", self.revision);
        }
        if let (STATELESS, Some(method)) = (self.revision, message["method"].as_str()) {
            headers += &format!("Mcp-Method: {method}\r\n");
            let of = if method == "resources/read" {
                "uri"
            } else {
                "name"
            };
            if let Some(name) = message["params"][of].as_str() {
                headers += &format!("Mcp-Name: {name}\r\n");
            }
        }
        let mut stream = BufReader::new(served.sends("POST", &headers, message));
        let mut line = String::new();
        while stream.read_line(&mut line).unwrap() > 2 {
            if let Some(session) = line.strip_prefix("mcp-session-id: ") {
                self.session = Some(session.trim().to_owned());
            }
            line.clear();
        }
        Some(stream)
    }

    /// Returns the server's next message.
    fn next(&mut self, stream: &mut Option<BufReader<TcpStream>>) -> Value {
        let message = match (stream, &mut self.link) {
            (Some(stream), _) => stream.lines().find_map(|line| {
                let line = line.unwrap();
                let line = line.strip_prefix("data: ").unwrap_or(&line);
                line.starts_with('{')
                    .then(|| serde_json::from_str(line).unwrap())
            }),
            (None, Link::Stdio(raw)) => raw.next(PATIENCE),
            (None, Link::Http(..)) => None,
        };
        message.expect("the server answers")
    }
}

/// What each client has received in each case, in order.
#[derive(Default)]
struct Seen(Vec<(&'static str, &'static str, Map<String, Value>)>);

impl Seen {
    /// Adds what a client received. If another client received the same, only that client's name is
    /// added.
    fn add(
        &mut self,
        file: &'static str,
        case: &'static str,
        client: String,
        mut messages: Vec<Value>,
    ) {
        for message in &mut messages {
            let tools = message.pointer_mut("/result/tools");
            let tools = tools.and_then(Value::as_array_mut);
            if let Some(tools) = tools.filter(|tools| tools.len() > LISTED.len()) {
                tools.retain(|tool| LISTED.contains(&tool["name"].as_str().unwrap()));
            }
        }
        let value = Placeholders::default().value(messages.into());
        let place = self.0.iter().position(|one| (one.0, one.1) == (file, case));
        let place = place.unwrap_or_else(|| {
            self.0.push((file, case, Map::new()));
            self.0.len() - 1
        });
        let (_, _, clients) = &mut self.0[place];
        let same = clients.iter().find(|(_, other)| **other == value);
        let value = same.map_or(value.clone(), |(name, _)| format!("as {name}").into());
        clients.insert(client, value);
    }
}

pub(super) fn messages(forms: &mut Forms) {
    let machine = machine(POLICY);
    machine.add_example("kv-counter");
    let serve = |flags: &str| machine.toolward(&format!("{SERVE} {flags}")).into_command();
    let stdio = || Raw::start(serve("--trust-client"));
    let served = Served::by(serve(
        "--trust-client --http 127.0.0.1:0 --token-file token",
    ));
    let token = machine.text("token");
    let token = token.trim();
    let mut seen = Seen::default();
    for mut client in [
        Client::new(Link::Stdio(stdio()), SESSIONS),
        Client::new(Link::Http(&served, token), SESSIONS),
        Client::new(Link::Stdio(stdio()), STATELESS),
        Client::new(Link::Http(&served, token), STATELESS),
    ] {
        if client.revision == SESSIONS {
            let opened = client.open();
            seen.add("mcp-open", "initialize", client.name(), opened);
        }
        for line in CASES.trim().lines() {
            let mut parts = line.split(" | ");
            let [file, case, method, params] = std::array::from_fn(|_| parts.next().unwrap());
            let messages = client.ask(method, serde_json::from_str(params).unwrap());
            seen.add(file, case, client.name(), messages);
        }
        if let Link::Stdio(raw) = &mut client.link {
            raw.line("{");
            let refused = raw.next(PATIENCE).unwrap();
            seen.add("mcp-errors", "not JSON", client.name(), vec![refused]);
        }
    }
    found(Raw::start(serve("--defer-above 0")), &mut seen);
    for (file, case, clients) in seen.0 {
        forms.add(file, case, Value::Object(clients));
    }
    refusals(&served, token, forms);
}

/// Calls tools that a client finds by a search, with a client that can't ask a person.
fn found(server: Raw, seen: &mut Seen) {
    let mut client = Client::new(Link::Stdio(server), STATELESS);
    let search = json!({ "names": ["conformance.sum", "no.tool"] });
    let add = json!({ "action": "add", "counter": "visits" });
    for (case, method, params) in [
        ("tools/list", "tools/list", json!({})),
        (
            "search_tools",
            "tools/call",
            json!({ "name": "search_tools", "arguments": search }),
        ),
        (
            "not loaded",
            "tools/call",
            json!({ "name": "kv_counter", "arguments": add }),
        ),
    ] {
        let messages = client.ask(method, params);
        seen.add("mcp-search", case, client.name(), messages);
    }
}

/// Requests that the server refuses over HTTP: the case, the method, an additional header, the
/// body.
const REFUSED: &str = r#"
wrong token | POST | Authorization: Bearer none | {"jsonrpc":"2.0","id":1,"method":"tools/list"}
another origin | POST | Origin: https://other.example | {"jsonrpc":"2.0","id":1,"method":"tools/list"}
unknown session | POST | Mcp-Session-Id: none | {"jsonrpc":"2.0","id":1,"method":"tools/list"}
no session | POST | Accept-Language: en | {"jsonrpc":"2.0","id":1,"method":"tools/list"}
unknown revision | POST | MCP-Protocol-Version: 1999-01-01 | {"jsonrpc":"2.0","id":1,"method":"tools/list"}
no method header | POST | MCP-Protocol-Version: 2026-07-28 | {"jsonrpc":"2.0","id":1,"method":"tools/list"}
no message | POST | Accept-Language: en | 7
no stream | GET | Accept-Language: en | null
another method | PUT | Accept-Language: en | null
"#;

/// Records the status and the body of each answer.
fn refusals(served: &Served, token: &str, forms: &mut Forms) {
    for line in REFUSED.trim().lines() {
        let mut parts = line.split(" | ");
        let [case, method, header, body] = std::array::from_fn(|_| parts.next().unwrap());
        let body = serde_json::from_str(body).unwrap();
        let mut headers = format!("{header}\r\n");
        if !header.starts_with("Authorization") {
            headers += &format!("Authorization: Bearer {token}\r\n");
        }
        let mut stream = served.sends(method, &headers, &body);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));

        let status = head.split(' ').nth(1);
        forms.add("mcp-http-refusals", case, json!([status, body]));
    }
}

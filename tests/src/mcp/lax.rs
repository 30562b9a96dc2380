//! Messages of lax clients and weak models, over each transport and at each revision: parameters of
//! another form, null for absent values, lists of messages.

use serde_json::{Value, json};

use super::malformed::post;
use super::names::listed;
use super::raw::Raw;
use super::served::{Served, machine, stdio};
use crate::recorder;

const SESSION_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const STATELESS: &str = "2026-07-28";

/// A client that sends its messages unchanged.
enum Client {
    Stdio(Raw),
    Http { url: String, headers: String },
}

fn opening(revision: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "lax", "version": "1"}}})
}

impl Client {
    fn stdio(command: std::process::Command, revision: &str) -> Self {
        let mut raw = Raw::start(command);
        raw.send(&opening(revision));
        assert_eq!(raw.answer("open")["result"]["protocolVersion"], revision);
        raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        Self::Stdio(raw)
    }

    fn http(served: &Served, revision: &str) -> Self {
        let (head, answer) = post(&served.url, "", &opening(revision).to_string());
        assert_eq!(answer["result"]["protocolVersion"], revision, "{head}");
        let session = head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let mut headers = format!("Mcp-Session-Id: {}\r\n", session.unwrap());
        if revision >= "2025-06-18" {
            headers += &format!("MCP-Protocol-Version: {revision}\r\n");
        }
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        post(&served.url, &headers, &ready.to_string());
        let url = served.url.clone();
        Self::Http { url, headers }
    }

    /// Sends a message, and returns the next answer.
    fn send(&mut self, message: &Value) -> Value {
        match self {
            Self::Stdio(raw) => {
                raw.send(message);
                raw.next(super::raw::PATIENCE).expect("an answer")
            }
            Self::Http { url, headers } => post(url, headers, &message.to_string()).1,
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }
}

#[track_caller]
fn is_invalid(answer: &Value, path: &str) {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(
        answer["error"]["data"]["code"], "params-invalid",
        "{answer}"
    );
    assert_eq!(answer["error"]["data"]["path"], path, "{answer}");
}

/// Asserts that the result is an error that a model can read.
#[track_caller]
fn is_refused(answer: &Value, text: &str) {
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    let error = &result["_meta"]["toolward/error"];
    assert_eq!(error["code"], "input_invalid", "{answer}");
    let shown = result["content"][0]["text"].as_str().unwrap();
    assert!(shown.contains(text), "{answer}");
}

fn takes_lax_parameters(client: &mut Client) {
    for arguments in [json!([]), json!(null)] {
        let params = json!({"name": "test_simple_text", "arguments": arguments});
        let answer = client.request("tools/call", &params);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let answer = client.request("tools/list", &json!([]));
    assert!(answer["result"]["tools"].is_array(), "{answer}");
    for (arguments, text) in [
        (
            json!(r#"{"numbers":[1]}"#),
            "expected `arguments` to be an object, found a string",
        ),
        (
            json!([1]),
            "expected `arguments` to be an object, found a list",
        ),
        (json!({"numbers": "1"}), "numbers"),
        (json!({}), "numbers"),
    ] {
        let params = json!({"name": "test_sum", "arguments": arguments});
        is_refused(&client.request("tools/call", &params), text);
    }
    for (method, params, path) in [
        ("tools/call", json!({"arguments": {}}), "/params/name"),
        ("tools/call", json!({"name": 5}), "/params/name"),
        ("tools/call", json!("test_sum"), "/params"),
        ("prompts/get", json!({"name": ["a"]}), "/params/name"),
        ("resources/read", json!({"uri": 5}), "/params/uri"),
        (
            "logging/setLevel",
            json!({"level": "loud"}),
            "/params/level",
        ),
    ] {
        is_invalid(&client.request(method, &params), path);
    }
    let answer = client.request("tools/unknown", &json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

#[test]
fn parameters_of_another_form_are_taken_or_named_on_standard_input_and_output() {
    let machine = machine("");
    for revision in SESSION_REVISIONS {
        takes_lax_parameters(&mut Client::stdio(stdio(&machine), revision));
    }
}

#[test]
fn parameters_of_another_form_are_taken_or_named_over_http() {
    let machine = machine("");
    let served = Served::start(&machine);
    for revision in SESSION_REVISIONS {
        takes_lax_parameters(&mut Client::http(&served, revision));
    }
    let headers = format!(
        "MCP-Protocol-Version: {STATELESS}\r\nMcp-Method: tools/call\r\nMcp-Name: test_sum\r\n"
    );
    let meta = json!({"io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": {"name": "lax", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    for (arguments, text) in [
        (json!([]), "numbers"),
        (
            json!(r#"{"numbers":[1]}"#),
            "expected `arguments` to be an object, found a string",
        ),
    ] {
        let params = json!({"name": "test_sum", "arguments": arguments, "_meta": meta});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        is_refused(&post(&served.url, &headers, &call.to_string()).1, text);
    }
}

#[test]
fn a_null_is_absent_for_the_driver_and_kept_in_the_ledger() {
    let machine = recorder::machine();
    let words = format!("serve --bundle kv-counter.toolbundle {}", recorder::WITH);
    let command = || machine.toolward(&words).into_command();
    for revision in SESSION_REVISIONS {
        let mut client = Client::stdio(command(), revision);
        let arguments = json!({"action": "add", "counter": "visits", "by": null});
        let params = json!({"name": "kv_counter", "arguments": arguments});
        let answer = client.request("tools/call", &params);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        // A required property counts as present even if it is null.
        let params = json!({"name": "kv_counter", "arguments": {"action": null, "by": null}});
        is_refused(&client.request("tools/call", &params), "action");
        if let Client::Stdio(raw) = &mut client {
            raw.said();
        }
    }
    let rows = machine.toolward("ledger list --json").ends(0).json_lines();
    let started: Vec<&Value> = rows
        .iter()
        .filter(|row| row["record"]["kind"] == "started")
        .collect();
    assert_eq!(started.len(), SESSION_REVISIONS.len());
    for row in started {
        let shown = machine
            .toolward(&format!("ledger show {} --json", row["seq"]))
            .ends(0);
        let shown = shown.json().to_string().replace('\\', "");
        assert!(shown.contains(r#""by":null"#), "{shown}");
    }
}

fn answers_a_list(client: &mut Client) {
    let sum = |id: &str, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "test_sum", "arguments": arguments}})
    };
    let answers = client.send(&json!([
        sum("fine", json!({"numbers": [1, 2]})),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        sum("text", json!("{}")),
        {"jsonrpc": "2.0", "id": "ping", "method": "ping"},
        {"jsonrpc": "2.0", "id": "unnamed", "method": "tools/call", "params": {}},
    ]));
    assert_eq!(answers.as_array().map(Vec::len), Some(4), "{answers}");
    let answer = |id: &str| {
        let answers = answers.as_array().unwrap();
        answers.iter().find(|answer| answer["id"] == id).unwrap()
    };
    assert_eq!(answer("fine")["result"]["isError"], false, "{answers}");
    is_refused(answer("text"), "expected `arguments` to be an object");
    assert!(answer("ping")["result"].is_object(), "{answers}");
    is_invalid(answer("unnamed"), "/params/name");
}

#[test]
fn a_list_of_messages_is_answered_at_the_one_revision_that_has_lists() {
    let machine = machine("");
    let served = Served::start(&machine);
    for revision in SESSION_REVISIONS {
        let clients = [
            Client::stdio(stdio(&machine), revision),
            Client::http(&served, revision),
        ];
        for mut client in clients {
            if revision == "2025-03-26" {
                answers_a_list(&mut client);
                continue;
            }
            let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
            let answer = client.send(&json!([ping]));
            assert_eq!(answer["error"]["code"], -32600, "{revision}: {answer}");
            assert!(client.send(&ping)["result"].is_object(), "{revision}");
        }
    }
}

#[test]
fn a_composed_input_is_listed_as_one_object_and_validated_as_it_was_written() {
    let machine = machine("");
    let path = "conformance/tools/conformance.json-schema/TOOL.md";
    let exact = ", schemas: exact";
    let text = machine.text(path);
    assert!(text.contains(exact), "{text}");
    machine.write(path, text.replace(exact, ""));
    std::fs::remove_file(machine.path("conformance.toolbundle")).unwrap();
    let pack = "pack conformance -o conformance.toolbundle --key tests.pem";
    machine.toolward(pack).ends(0);
    let mut raw = Raw::open(stdio(&machine), json!({}));
    let tools = listed(&mut raw);
    let tool = tools
        .iter()
        .find(|tool| tool["name"] == "json_schema_2020_12_tool");
    let schema = tool.unwrap()["inputSchema"].as_object().unwrap();
    for keyword in ["allOf", "anyOf", "if", "then", "else", "$defs"] {
        assert!(!schema.contains_key(keyword), "{schema:?}");
    }
    assert_eq!(
        schema["properties"]["address"]["properties"]["city"]["type"],
        "string"
    );
    for (id, arguments, refused) in [
        (1, json!({"contactMethod": "phone", "phone": "12"}), false),
        (
            2,
            json!({"contactMethod": "phone", "email": "a@b.example"}),
            true,
        ),
        (
            3,
            json!({"email": "a@b.example", "name": null, "address": null}),
            false,
        ),
    ] {
        raw.call(id, "json_schema_2020_12_tool", &arguments);
        assert_eq!(raw.answer(id)["result"]["isError"], refused, "{arguments}");
    }
}

//! Arguments that two readers would understand differently, in both eras and on both transports.
//! They are refused as the command refuses them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::raw::{PATIENCE, Raw};
use super::served::{Served, machine, stdio};

/// Arguments of `test_sum`, and the rule that they break. The last of two equal keys, and a rounded
/// large integer, would each be valid input.
const MALFORMED: [(&str, &str); 4] = [
    (r#"{"numbers":[1],"numbers":[2]}"#, "json-duplicate-key"),
    (
        r#"{"numbers":[1],"n\u0075mbers":[2]}"#,
        "json-duplicate-key",
    ),
    (r#"{"numbers":[9007199254740993]}"#, "json-integer-range"),
    (
        r#"{"numbers":[99999999999999999999]}"#,
        "json-integer-range",
    ),
];

/// `_meta` of a request of the newer era.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},
"io.modelcontextprotocol/clientCapabilities":{}},"#;

fn call(id: u32, meta: &str, arguments: &str) -> String {
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{meta}"name":"test_sum","arguments":{arguments}}}}}"#
    );
    call.replace('\n', "")
}

/// Asserts that a call was refused by this rule.
#[track_caller]
fn is_refused(answer: &Value, rule: &str) {
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    let error = &result["_meta"]["toolward/error"];
    assert_eq!(error["code"], "input_invalid", "{answer}");
    assert_eq!(error["cause"]["rule"], rule, "{answer}");
}

/// Posts a message, and returns the answer's head and its JSON.
pub(super) fn post(url: &str, headers: &str, message: &str) -> (String, Value) {
    let address = url.strip_prefix("http://").unwrap();
    let (address, path) = address.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         {headers}Content-Length: {}\r\n\r\n{message}",
        message.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    let body = match head.contains("transfer-encoding: chunked") {
        true => unchunked(body),
        false => body.to_owned(),
    };
    // The body is one event of a stream, or JSON alone.
    let json = body.find(['{', '[']).and_then(|start| {
        let end = body.rfind(['}', ']'])?;
        serde_json::from_str(body.get(start..=end)?).ok()
    });
    (head, json.unwrap_or_default())
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap();
        if length == 0 {
            break;
        }
        let (chunk, rest) = rest.split_at(length);
        whole += chunk;
        body = rest.trim_start_matches("\r\n");
    }
    whole
}

#[test]
fn the_command_refuses_arguments_that_two_readers_understand_differently() {
    let machine = machine("");
    for (arguments, rule) in MALFORMED {
        machine.write("input.json", arguments);
        let call = "call conformance.sum --input @input.json --bundle conformance.toolbundle \
                    --trust-key tests.pub.pem --policy-file policy.toml --json";
        let said = machine.toolward(call).end();
        let said: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(said["error"]["code"], "input_invalid", "{said}");
        assert_eq!(said["error"]["cause"]["rule"], rule, "{said}");
    }
}

#[test]
fn so_does_a_server_on_standard_input_and_output() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    for (id, (arguments, rule)) in (1..).zip(MALFORMED) {
        raw.line(&call(id, "", arguments));
        is_refused(&raw.answer(id), rule);
    }
    // Elsewhere in the message it is a protocol error.
    let twice = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"x","name":"test_sum","arguments":{"numbers":[1]}}}"#;
    raw.line(twice);
    let error = &raw.answer(9)["error"];
    assert_eq!(error["code"], -32600, "{error}");
    assert_eq!(error["data"]["code"], "json-duplicate-key", "{error}");
    let prompt = r#"{"jsonrpc":"2.0","id":10,"method":"prompts/get","params":{"name":"test_prompt_with_arguments","arguments":{"arg1":"a","arg1":"b","arg2":"c"}}}"#;
    raw.line(prompt);
    let error = &raw.answer(10)["error"];
    assert_eq!(error["code"], -32602, "{error}");
    assert_eq!(error["data"]["code"], "json-duplicate-key", "{error}");
    raw.line(&call(11, "", r#"{"numbers":[1,2]}"#));
    assert_eq!(raw.answer(11)["result"]["isError"], false);
}

#[test]
fn so_does_a_server_over_http_in_both_eras() {
    let machine = machine("");
    let served = Served::start(&machine);
    let newer = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
                 Mcp-Name: test_sum\r\n";
    let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"}}});
    let (head, _) = post(&served.url, "", &open.to_string());
    let session = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap();
    let older = format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n");
    post(
        &served.url,
        &older,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    );
    for (headers, meta) in [(newer, META), (older.as_str(), "")] {
        for (id, (arguments, rule)) in (1..).zip(MALFORMED) {
            let (_, answer) = post(&served.url, headers, &call(id, meta, arguments));
            is_refused(&answer, rule);
        }
        let fine = call(9, meta, r#"{"numbers":[1,2]}"#);
        let (head, answer) = post(&served.url, headers, &fine);
        assert_eq!(answer["result"]["isError"], false, "{head}\n{answer}");
        let twice = call(10, meta, r#"{"numbers":[1]},"arguments":{"numbers":[2]}"#);
        let (head, answer) = post(&served.url, headers, &twice);
        assert!(head.starts_with("http/1.1 400"), "{head}");
        let code = &answer["error"]["data"]["code"];
        assert_eq!(code, "json-duplicate-key", "{answer}");
    }
}

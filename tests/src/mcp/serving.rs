//! A server whose tools are under work, and a server that is asked to end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::raw::{PATIENCE, Raw};
use super::served::{Served, machine, plain, stdio};
use crate::support::Run;

const TOOL_MD: &str = "conformance/tools/conformance.sum/TOOL.md";

fn description(raw: &mut Raw, id: &str) -> String {
    raw.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
    let answer = raw.answer(id);
    let tools = answer["result"]["tools"].as_array().unwrap();
    let sum = tools.iter().find(|tool| tool["name"] == "test_sum");
    sum.unwrap()["description"].as_str().unwrap().to_owned()
}

#[test]
fn an_edit_in_a_directory_under_work_is_served_and_clients_are_told() {
    let machine = machine("");
    let serve = machine.toolward("serve --dev conformance");
    let mut raw = Raw::open(serve.into_command(), json!({}));
    assert!(description(&mut raw, "before").contains("Adds whole numbers."));

    let text = machine.text(TOOL_MD);
    machine.write(
        TOOL_MD,
        text.replace("Adds whole numbers.", "Adds them up."),
    );
    let changed = |message: &Value| message["method"] == "notifications/tools/list_changed";
    while !changed(&raw.next(PATIENCE).expect("word of the change")) {}
    assert!(description(&mut raw, "after").contains("Adds them up."));
}

#[test]
fn a_server_that_is_told_to_end_answers_what_it_was_asked_and_ends_well() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    raw.call("sum", "test_sum", &json!({"numbers": [1, 2]}));
    assert_eq!(raw.answer("sum")["result"]["isError"], false);
    // Two calls run when the server is asked to end: one ends soon, and the other never.
    for (id, name) in [
        ("endless", "test_endless"),
        ("soon", "test_tool_with_progress"),
    ] {
        raw.send(&json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": {}, "_meta": {"progressToken": id}},
        }));
        let runs = |message: &Value| message["params"]["progressToken"] == id;
        while !runs(&raw.next(PATIENCE).expect("word of its progress")) {}
    }
    let mut kill = machine.program("kill");
    kill.args(["-TERM", &raw.process().to_string()]);
    Run::new(kill).ends(0);
    assert_eq!(raw.answer("soon")["result"]["isError"], false);
    let endless = raw.answer("endless");
    assert!(
        endless.to_string().contains("toolward:canceled"),
        "{endless}"
    );
    let ended = raw
        .ended(Duration::from_secs(30))
        .expect("it ends, though a call does not");
    assert_eq!(ended.code(), Some(0), "{ended}");
}

/// A stream on which a client of the newer era listens for changes.
fn listening(url: &str) -> TcpStream {
    let address = url.strip_prefix("http://").unwrap();
    let (address, path) = address.split_once('/').unwrap();
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "listening", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
            "notifications": {"toolsListChanged": true},
        },
    })
    .to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: subscriptions/listen\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut heard = Vec::new();
    let mut part = [0; 4096];
    while !String::from_utf8_lossy(&heard).contains("subscriptions/acknowledged") {
        let read = stream.read(&mut part).unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&part[..read]);
    }
    stream
}

#[test]
fn clients_that_come_and_go_leave_no_word_in_the_log() {
    let machine = plain();
    let served = Served::plain(&machine, "--no-token");
    for _ in 0..5 {
        drop(listening(&served.url));
    }
    // Another stream shows that the server still runs.
    drop(listening(&served.url));
    std::thread::sleep(Duration::from_secs(1));
    let said = served.said();
    assert!(said.contains("listening on"), "{said}");
    assert!(!said.contains("ERROR") && !said.contains("WARN"), "{said}");
}

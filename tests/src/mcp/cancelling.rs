//! The reason why a call was cancelled, in events, in the log and in the ledger: over standard
//! input and output and over HTTP, for a call and for a call that it made.

use std::io::Read as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::raw::{PATIENCE, Raw};
use super::served::Served;
use crate::support::{Machine, Run};

const SERVE: &str =
    "serve --dev hostile --policy-file policy.toml --events events.jsonl --log-format json";

/// A machine with a tool that can call another one. Each may run for minutes.
fn machine() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "hostile");
    let tool = machine.text("hostile/tools/hostile.run/TOOL.md");
    let tool = tool.replace("timeout_ms: 5000", "timeout_ms: 120000");
    let tools = [
        ("run", "requires: { tools: [hostile.other] }\n"),
        ("other", ""),
    ];
    for (name, requires) in tools {
        let text = tool
            .replace(
                "id: hostile.run\n",
                &format!("id: hostile.{name}\n{requires}"),
            )
            .replace("name: Hostile\n", &format!("name: {name}\n"));
        machine.write(&format!("hostile/tools/hostile.{name}/TOOL.md"), text);
    }
    let driver = "hostile/drivers/hostile/DRIVER.md";
    let implements = "implements:\n  - tool: hostile.other\n    version: \"^1.0.0\"\n";
    let text = machine.text(driver).replace("implements:\n", implements);
    machine.write(driver, text);
    let directory = machine.path("hostile").canonicalize().unwrap();
    machine.write(
        "policy.toml",
        format!(
            "[[grant]]\npublisher = \"dev:{}\"\nrequires = [\"tool:hostile.other\"]\n",
            directory.display()
        ),
    );
    machine
}

/// A call that calls another one, which sleeps.
fn calls() -> Value {
    let sleeps = json!({ "do": "sleep", "n": 110_000 });
    let arguments = json!({ "do": "tool", "name": "hostile.other", "value": sleeps });
    json!({ "name": "hostile_run", "arguments": arguments })
}

fn events(machine: &Machine) -> Vec<Value> {
    let text = machine.text("events.jsonl");
    let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let lines = whole.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits for this many events of a class.
#[track_caller]
fn until(machine: &Machine, class: &str, count: usize) {
    let begun = Instant::now();
    let seen = || {
        events(machine)
            .iter()
            .filter(|event| event["event_type"] == class)
            .count()
    };
    while seen() < count {
        assert!(begun.elapsed() < PATIENCE, "{:#?}", events(machine));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asserts that the call and the call below it were cancelled, and that each place has the reason.
#[track_caller]
fn are_cancelled(machine: &Machine, log: &str, reason: &str) {
    let started = events(machine);
    let tool = |name: &str| {
        let of = |event: &&Value| event["tool_id"] == name;
        let event = started.iter().find(of).unwrap();
        event["invocation_id"].as_str().unwrap().to_owned()
    };
    for (id, reason) in [
        (tool("hostile.other"), "parent"),
        (tool("hostile.run"), reason),
    ] {
        let own = started.iter().filter(|event| event["invocation_id"] == *id);
        let last: Vec<_> = own
            .filter(|event| event["status"] == "canceled")
            .map(|event| {
                [&event["event_type"], &event["cancel_reason"]].map(|text| text.as_str().unwrap())
            })
            .collect();
        let ends = ["tool.result.created", "tool.invocation.canceled"];
        assert_eq!(last, ends.map(|class| [class, reason]));
        let mut lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let line = lines.rfind(|line| line["invocation"] == *id);
        let line = line.unwrap_or_else(|| panic!("no line of {id} ({reason}): {log}"));
        assert_eq!(line["code"], "toolward:canceled");
        assert_eq!(line["cancel_reason"], reason, "{line}");
        let shown = machine.toolward(&format!("ledger show {id} --json"));
        let rows = shown.ends(0).json()["rows"].clone();
        let outcome = &rows[0]["record"]["body"]["outcome"];
        assert_eq!(outcome["code"], "toolward:canceled", "{rows:#}");
        assert_eq!(outcome["cancel_reason"], reason, "{rows:#}");
    }
}

fn signal(machine: &Machine, process: u32, name: &str) {
    let mut kill = machine.program("kill");
    kill.arg(format!("-{name}")).arg(process.to_string());
    Run::new(kill).ends(0);
}

/// A client on standard streams, with a running call.
fn streams(machine: &Machine) -> Raw {
    let mut raw = Raw::open(machine.toolward(SERVE).into_command(), json!({}));
    raw.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": calls() }));
    until(machine, "tool.invocation.started", 2);
    raw
}

#[test]
fn a_client_on_streams_that_cancels_is_the_reason() {
    let machine = machine();
    let mut raw = streams(&machine);
    let cancelled = json!({ "requestId": 7 });
    raw.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
    );
    // The client also disconnects, but that is not the reason any more.
    let log = raw.said();
    are_cancelled(&machine, &log, "caller");
}

#[test]
fn a_client_on_streams_that_goes_away_is_the_reason() {
    let machine = machine();
    let log = streams(&machine).said();
    are_cancelled(&machine, &log, "disconnected");
}

#[test]
fn the_end_of_a_server_on_streams_is_the_reason() {
    let machine = machine();
    let mut raw = streams(&machine);
    signal(&machine, raw.process(), "TERM");
    let answer = raw.answer(7);
    assert!(answer.to_string().contains("toolward:canceled"), "{answer}");
    let log = raw.said();
    are_cancelled(&machine, &log, "shutdown");
}

fn served(machine: &Machine) -> Served {
    let words = format!("{SERVE} --http 127.0.0.1:0 --no-token --drain 0");
    Served::by(machine.toolward(&words).into_command())
}

fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A session of the older era, as headers.
fn session(served: &Served) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "cancelling", "version": "1" },
    });
    let open = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let opened = answer(served.sends("POST", "", &open));
    let session = opened
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = session.unwrap_or_else(|| panic!("{opened}"));
    let headers = format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n");
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    answer(served.sends("POST", &headers, &told));
    headers
}

/// Starts a call in a session.
fn called_in(served: &Served, machine: &Machine, session: &str) -> TcpStream {
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": calls() });
    let stream = served.sends("POST", session, &call);
    until(machine, "tool.invocation.started", 2);
    stream
}

#[test]
fn a_client_over_http_that_cancels_is_the_reason() {
    let machine = machine();
    let served = served(&machine);
    let session = session(&served);
    let stream = called_in(&served, &machine, &session);
    let cancelled = json!({ "requestId": 7 });
    let message =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled });
    answer(served.sends("POST", &session, &message));
    until(&machine, "tool.invocation.canceled", 2);
    drop(stream);
    are_cancelled_and_ended(&machine, served, "caller");
}

#[test]
fn a_client_over_http_that_ends_its_session_or_stays_away_is_the_reason() {
    for ends in [true, false] {
        let machine = machine();
        let served = served(&machine);
        let session = session(&served);
        let stream = called_in(&served, &machine, &session);
        if ends {
            answer(served.sends("DELETE", &session, &Value::Null));
        }
        drop(stream);
        until(&machine, "tool.invocation.canceled", 2);
        are_cancelled_and_ended(&machine, served, "disconnected");
    }
}

/// Starts a call of the newer era.
fn called(served: &Served, machine: &Machine) -> TcpStream {
    let mut params = calls();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "cancelling", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
                   Mcp-Name: hostile_run\r\n";
    let stream = served.sends("POST", headers, &call);
    until(machine, "tool.invocation.started", 2);
    stream
}

#[test]
fn in_the_newer_era_a_client_that_goes_away_is_the_reason() {
    let machine = machine();
    let served = served(&machine);
    drop(called(&served, &machine));
    until(&machine, "tool.invocation.canceled", 2);
    are_cancelled_and_ended(&machine, served, "disconnected");
}

#[test]
fn the_end_of_a_server_over_http_is_the_reason() {
    for newer in [true, false] {
        let machine = machine();
        let mut served = served(&machine);
        let stream = match newer {
            true => called(&served, &machine),
            false => called_in(&served, &machine, &session(&served)),
        };
        // Calls could run for another half minute.
        served.signal(&machine, "TERM");
        std::thread::sleep(Duration::from_millis(300));
        served.signal(&machine, "TERM");
        served.ended(PATIENCE).expect("it ends at once");
        drop(stream);
        are_cancelled(&machine, &served.said(), "shutdown");
    }
}

/// Ends a server that still runs, and asserts the same from its log.
#[track_caller]
fn are_cancelled_and_ended(machine: &Machine, mut served: Served, reason: &str) {
    served.interrupted(machine);
    are_cancelled(machine, &served.said(), reason);
}

//! Ids from callers: on standard input and output all clients are one principal, and each session
//! has its own ids. Over HTTP each principal has its own ids.

use serde_json::{Value, json};

use super::{Machine, WITH, machine, rows, serve, verifies};
use crate::mcp::raw::Raw;
use crate::mcp::served::Served;

/// A call that counts, with this id.
fn count(number: u32, id: &str, era: &Value) -> Value {
    let mut meta = era.clone();
    meta["toolward/id"] = id.into();
    json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
        "name": "kv_counter", "arguments": {"action": "add", "counter": "visits"}, "_meta": meta,
    }})
}

/// Returns the counter in an answer, and whether the answer repeats an earlier call's.
#[track_caller]
fn counted(answer: &Value) -> (u64, bool) {
    let result = &answer["result"];
    let value = &result["structuredContent"]["counters"][0]["value"];
    let repeats = &result["_meta"]["toolward/call"]["repeats"];
    let value = value.as_u64().unwrap_or_else(|| panic!("{answer}"));
    (value, repeats.is_string())
}

fn starts(machine: &Machine) -> usize {
    let rows = rows(machine);
    let kinds = rows.iter().filter(|row| row["record"]["kind"] == "started");
    kinds.count()
}

#[test]
fn an_id_of_one_session_is_unknown_in_another_at_the_same_time_and_afterwards() {
    let machine = machine();
    let id = uuid::Uuid::now_v7().to_string();
    let call = |raw: &mut Raw, number| {
        raw.send(&count(number, &id, &json!({})));
        counted(&raw.answer(number))
    };
    let (mut first, mut second) = (serve(&machine), serve(&machine));
    assert_eq!(call(&mut first, 1), (1, false));
    assert_eq!(call(&mut first, 2), (1, true));
    // With one name for both sessions, the ledger would state that the call ran already.
    assert_eq!(call(&mut second, 1), (2, false));
    assert_eq!(call(&mut first, 3), (1, true));
    first.said();
    second.said();
    let mut third = serve(&machine);
    assert_eq!(call(&mut third, 1), (3, false));
    third.said();
    assert_eq!(starts(&machine), 3);
    verifies(&machine);
}

#[test]
fn over_http_an_id_is_known_to_its_principal_on_each_connection_and_to_no_other() {
    let machine = machine();
    let tokens = ["alice", "bob"].map(|name| {
        let words = format!("mcp token {name} --tools kv.* --add tokens.toml --json");
        let made = machine.toolward(&words).ends(0).json();
        made["token"].as_str().unwrap().to_owned()
    });
    let words = format!(
        "serve --bundle kv-counter.toolbundle {WITH} --http 127.0.0.1:0 --tokens tokens.toml"
    );
    let mut command = machine.toolward(&words).into_command();
    command.stdin(std::process::Stdio::null());
    let served = Served::by(command);
    let era = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let id = uuid::Uuid::now_v7().to_string();
    let call = |token: &str, number| counted(&served.post(Some(token), &count(number, &id, &era)));
    let [alice, bob] = &tokens;
    assert_eq!(call(alice, 1), (1, false));
    assert_eq!(call(alice, 2), (1, true));
    // Counters also belong to their principal.
    assert_eq!(call(bob, 3), (1, false));
    assert_eq!(call(bob, 4), (1, true));
    assert_eq!(starts(&machine), 2);
}

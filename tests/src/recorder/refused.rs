//! Calls that the command or the server answers without its host are also recorded.

use serde_json::{Value, json};

use super::{WITH, call, machine, rows, serve, verifies};
use crate::mcp::raw::Raw;
use crate::support::Machine;

/// Text that would look like another row, hide the rest of one, or reverse it.
const FORGED: &str =
    "x\n       9  2026-01-01T00:00:00Z  ended  \u{1b}[2K\u{202e}\"kind\":\"ended\"";

/// Returns the code, class and tool of each refused call, oldest first.
fn refused(machine: &Machine) -> Vec<[String; 3]> {
    let rows = rows(machine);
    let refused = rows.iter().filter(|row| row["record"]["kind"] == "refused");
    let of = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let of = |row: &Value| {
        let body = &row["record"]["body"];
        let outcome = &body["outcome"];
        assert!(body["call"]["person"].is_string(), "{row}");
        [
            of(&outcome["code"]),
            of(&outcome["class"]),
            of(&body["call"]["tool"]["id"]),
        ]
    };
    refused.map(of).collect()
}

#[test]
fn calls_that_a_server_answers_itself_have_rows_and_no_name_of_a_caller_is_in_one() {
    let machine = machine();
    machine.configure("[ledger]\nkeep = \"all\"\n");
    let mut raw = serve(&machine);
    raw.call(1, FORGED, &json!({}));
    assert_eq!(raw.answer(1)["error"]["code"], -32602);
    // Two readers would parse two different inputs.
    raw.line(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"text_stats","arguments":{"text":"a","text":"b"}}}"#,
    );
    assert_eq!(raw.answer(2)["result"]["isError"], true);
    raw.send(&json!({
        "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "kv_counter", "arguments": {"action": "add", "counter": "visits"},
            "_meta": {"toolward/id": 7},
        },
    }));
    assert_eq!(raw.answer(3)["result"]["isError"], true);
    raw.said();
    let [unknown, malformed, unfit] = refused(&machine).try_into().unwrap();
    assert_eq!(unknown, ["not_found", "unknown_tool", "-"]);
    assert_eq!(malformed[0], "input_invalid");
    assert!(malformed[2].starts_with("text.stats@"), "{malformed:?}");
    assert_eq!(unfit[0], "input_invalid");
    assert!(unfit[2].starts_with("kv.counter@"), "{unfit:?}");
    verifies(&machine);

    // Each record is one line in the list, in JSON and in the export.
    let list = machine.toolward("ledger list").ends(0).stdout;
    assert!(!list.contains(['\u{1b}', '\u{202e}']), "{list}");
    let all = machine.toolward("ledger list --json").ends(0).stdout;
    assert_eq!(all.lines().count(), rows(&machine).len());
    assert!(!all.contains("2026-01-01T00"), "{all}");
    let export = machine.toolward("ledger export").ends(0).stdout;
    assert_eq!(export.lines().count(), rows(&machine).len());
    // The name is payload, and is shown without side effects.
    let rows = rows(&machine);
    let first = rows.iter().find(|row| row["record"]["kind"] == "refused");
    let seq = first.unwrap()["seq"].as_u64().unwrap();
    let shown = machine.toolward(&format!("ledger show {seq} --json"));
    let shown = shown.ends(0).stdout;
    assert!(shown.contains("2026-01-01T00"), "{shown}");
    let shown = machine.toolward(&format!("ledger show {seq}"));
    let shown = shown.ends(0).stdout;
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
}

#[test]
fn a_call_of_a_tool_that_was_not_loaded_has_a_row_and_a_search_has_none() {
    let machine = machine();
    let words = format!(
        "serve --bundle text-stats.toolbundle --bundle kv-counter.toolbundle {WITH} \
         --defer-above 0"
    );
    let mut raw = Raw::open(machine.toolward(&words).into_command(), json!({}));
    for (id, tool, arguments) in [
        (1, "search_tools", json!({"limit": 0})),
        (2, "load_tool", json!({"name": "nothing"})),
        (3, "text_stats", json!({"text": "a"})),
        (4, "call_tool", json!({"reference": "text_stats#forged"})),
        (5, "call_tool", json!({"reference": FORGED})),
        (6, "call_tool", json!({"reference": 7})),
    ] {
        raw.call(id, tool, &arguments);
        assert_eq!(raw.answer(id)["result"]["isError"], true, "{tool}");
    }
    raw.call(7, "nothing", &json!({}));
    assert_eq!(raw.answer(7)["error"]["code"], -32602);
    raw.said();
    let refused = refused(&machine);
    let codes: Vec<&str> = refused.iter().map(|[code, ..]| code.as_str()).collect();
    let not_loaded = "toolward:schema_not_loaded";
    assert_eq!(
        codes,
        [
            not_loaded,
            not_loaded,
            "not_found",
            "input_invalid",
            "not_found"
        ]
    );
    for (at, [_, _, tool]) in refused.iter().enumerate() {
        match at {
            0 | 1 => assert!(tool.starts_with("text.stats@"), "{tool}"),
            _ => assert_eq!(tool, "-"),
        }
    }
    verifies(&machine);
}

#[test]
fn a_call_whose_arguments_make_no_input_has_a_row_and_nothing_was_run() {
    let machine = machine();
    call(&machine, "text.none", "text-stats", "{}").ends(1);
    call(&machine, "text.stats", "text-stats", "{}")
        .arg("--set")
        .arg("no-equals-sign")
        .ends(2)
        .says("setting-invalid");
    call(&machine, "kv.counter", "kv-counter", "{}")
        .arg("--context")
        .arg("{")
        .ends(2);
    let [unknown, setting, context] = refused(&machine).try_into().unwrap();
    assert_eq!(unknown, ["not_found", "unknown_tool", "-"]);
    for (row, tool) in [(setting, "text.stats@"), (context, "kv.counter@")] {
        assert_eq!(row[..2], ["input_invalid", "invalid_arguments"]);
        assert!(row[2].starts_with(tool), "{row:?}");
    }
    verifies(&machine);
    // If recording fails, the reason why the call ends is still shown.
    machine.configure("[ledger]\ndirectory = \"/proc/nowhere\"\n");
    let ended = call(&machine, "text.stats", "text-stats", "{}")
        .arg("--set")
        .arg("no-equals-sign")
        .ends(2);
    ended.says("setting-invalid").warns("may be recorded");
}

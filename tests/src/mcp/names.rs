//! The names of tools, in a form that clients accept. A call may also name a tool by its id.

use serde_json::{Value, json};

use super::raw::Raw;
use crate::support::Machine;

/// Whether clients accept a name: `^[a-zA-Z0-9_-]{1,48}$` without `__`. Clients accept 64
/// characters, of which up to 16 are their own prefix.
pub(crate) fn is_accepted(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=48).contains(&name.len()) && name.chars().all(plain) && !name.contains("__")
}

/// The tools that a server lists.
pub(crate) fn listed(raw: &mut Raw) -> Vec<Value> {
    raw.send(&json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}));
    let answer = raw.answer("list");
    answer["result"]["tools"].as_array().unwrap().clone()
}

#[test]
fn every_example_is_shown_by_a_name_that_clients_accept() {
    let machine = Machine::new();
    let mut serve = "serve --trust-key example.pub.pem".to_owned();
    for example in [
        "csv-summary",
        "files-search",
        "http-fetch",
        "json-query",
        "kv-counter",
        "markdown-html",
        "notes-append",
        "text-digest",
        "text-stats",
    ] {
        machine.add_example(example);
        serve += &format!(" --bundle {example}.toolbundle");
    }
    let mut raw = Raw::open(machine.toolward(&serve).into_command(), json!({}));
    let tools = listed(&mut raw);
    assert!(tools.len() >= 4, "{tools:?}");
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(is_accepted(name), "{name}");
        let id = tool["_meta"]["toolward/tool"]["id"].as_str().unwrap();
        assert_eq!(id.replace('.', "_"), name);
    }
    // A call may use either form.
    for (id, name) in [(1, "text_stats"), (2, "text.stats"), (3, "text.stats@1")] {
        raw.call(id, name, &json!({"text": "one two"}));
        let answer = raw.answer(id);
        assert_eq!(
            answer["result"]["structuredContent"]["words"], 2,
            "{answer}"
        );
        let called = &answer["result"]["_meta"]["toolward/call"]["tool"];
        assert!(
            called.as_str().unwrap().starts_with("text.stats@1."),
            "{answer}"
        );
    }
    // A call to a blocked tool reports that it is blocked, by either form.
    for (id, name) in [(4, "notes_append"), (5, "notes.append")] {
        raw.call(id, name, &json!({"note": "x", "text": "x"}));
        let answer = raw.answer(id);
        let code = &answer["result"]["_meta"]["toolward/error"]["code"];
        assert_eq!(code, "unauthorised", "{answer}");
    }
    raw.call(6, "text__stats", &json!({"text": "one"}));
    assert_eq!(raw.answer(6)["error"]["code"], -32602);
}

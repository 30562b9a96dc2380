//! What clients learn over MCP about tools that are installed but not loaded.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{GRANT, ID, TOOL_MD, add, document, installed, key, listed, release, ship, trusting};
use crate::mcp::raw::Raw;
use crate::mcp::served::Served;
use crate::support::{Draft, Machine};

/// A machine with two tools of acme, of which `text.stats` is revoked.
fn revoked() -> Machine {
    let machine = Machine::new();
    let one = key(&machine, "one");
    let fingerprint = document(&machine, "acme", "one");
    let grant = format!("{GRANT} --prefix json --prefix json-query");
    add(&machine, "acme", &grant, &fingerprint).ends(0);
    let mut other = Draft::of("json-query");
    other.manifest.publisher = "acme".to_owned();
    for (draft, file) in [(release(1), "b.toolbundle"), (other, "c.toolbundle")] {
        ship(&machine, &draft, &one, file);
        machine.toolward(&format!("install {file}")).ends(0);
    }
    let listed = listed(&machine);
    let stats = listed.iter().find(|one| one["id"] == ID).unwrap();
    let digest = stats["digest"].as_str().unwrap();
    machine.configure(&format!("[trust.deny]\nbundles = [\"{digest}\"]\n"));
    machine
}

fn code(answer: &Value) -> &Value {
    &answer["result"]["_meta"]["toolward/error"]["code"]
}

/// Asserts that the answer has this code, and does not reveal who decided.
#[track_caller]
fn is_refused(answer: &Value, expected: &str, word: &str) {
    assert_eq!(code(answer), expected, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(word), "{text}");
    for hidden in ["deny", "acme", "toolward.toml", "`toolward ", "surface"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
}

fn tools(raw: &mut Raw, id: &str) -> usize {
    raw.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
    raw.answer(id)["result"]["tools"].as_array().unwrap().len()
}

/// Calls until the call ends with this code.
#[track_caller]
fn until(raw: &mut Raw, expected: &str) {
    let end = Instant::now() + Duration::from_secs(30);
    for id in 1000.. {
        raw.call(id, "text_stats", &json!({"text": "one"}));
        let answer = raw.answer(id);
        if code(&answer) == expected {
            return;
        }
        assert!(Instant::now() < end, "{answer}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_revoked_tool_is_counted_and_a_call_states_that_it_was_withdrawn() {
    let machine = revoked();
    let mut raw = Raw::open(machine.toolward("serve").into_command(), json!({}));
    let instructions = raw.instructions();
    assert!(
        instructions.contains("One more tool is withdrawn"),
        "{instructions}"
    );
    assert!(!instructions.contains("blocked"), "{instructions}");
    assert_eq!(tools(&mut raw, "list"), 1);
    for (id, name) in [(1, "text_stats"), (2, "text.stats"), (3, "text.stats@1")] {
        raw.call(id, name, &json!({"text": "one"}));
        is_refused(&raw.answer(id), "toolward:withdrawn", "has been withdrawn");
    }
    raw.call(4, "text.stats@2", &json!({}));
    assert_eq!(raw.answer(4)["error"]["code"], -32602);
    let welcome = raw.said();
    assert!(!welcome.contains("blocked:"), "{welcome}");
    let rows = machine.toolward("ledger list --json").ends(0).json_lines();
    let codes = rows
        .iter()
        .map(|row| &row["record"]["body"]["outcome"]["code"]);
    assert_eq!(
        codes.filter(|code| **code == "toolward:withdrawn").count(),
        3,
        "{rows:?}"
    );
}

#[test]
fn a_tool_that_is_revoked_while_it_is_served_stays_withdrawn() {
    let (machine, _) = installed();
    let mut raw = Raw::open(machine.toolward("serve").into_command(), json!({}));
    raw.call(1, "text_stats", &json!({"text": "one"}));
    assert_eq!(raw.answer(1)["result"]["structuredContent"]["words"], 1);
    let digest = listed(&machine)[0]["digest"].as_str().unwrap().to_owned();
    machine
        .toolward("publisher revoke acme --key one.pem -o list.json")
        .arg(format!("--bundle={digest}=leaks"))
        .ends(0);
    machine
        .toolward("trust update acme --revocations list.json")
        .ends(0);
    until(&mut raw, "toolward:withdrawn");
    let end = Instant::now() + Duration::from_secs(30);
    while tools(&mut raw, &format!("{:?}", Instant::now())) > 0 {
        assert!(Instant::now() < end, "it is still listed");
    }
    raw.call(2, "text_stats", &json!({"text": "one"}));
    is_refused(&raw.answer(2), "toolward:withdrawn", "has been withdrawn");
}

#[test]
fn a_named_bundle_that_no_longer_verifies_is_withdrawn_and_back_once_it_does() {
    let (machine, one) = trusting();
    ship(&machine, &release(1), &one, "b.toolbundle");
    let serve = machine.toolward("serve --bundle b.toolbundle");
    let mut raw = Raw::open(serve.into_command(), json!({}));
    let grant = machine
        .home()
        .join(".config/toolward/trust/acme/grant.toml");
    let wide = std::fs::read_to_string(&grant).unwrap();
    std::fs::write(&grant, wide.replace("\"text-stats\"", "\"text-other\"")).unwrap();
    until(&mut raw, "toolward:withdrawn");
    let end = Instant::now() + Duration::from_secs(30);
    while tools(&mut raw, &format!("{:?}", Instant::now())) > 0 {
        assert!(Instant::now() < end, "it is still listed");
    }
    until(&mut raw, "toolward:withdrawn");
    std::fs::write(&grant, wide).unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while tools(&mut raw, &format!("{:?}", Instant::now())) == 0 {
        assert!(Instant::now() < end, "it is not listed again");
    }
    raw.call(1, "text_stats", &json!({"text": "one"}));
    assert_eq!(raw.answer(1)["result"]["structuredContent"]["words"], 1);
}

#[test]
fn a_tool_that_only_a_held_update_brings_is_held() {
    let (machine, one) = installed();
    let major = release(2)
        .change(TOOL_MD, |text| {
            text.replace("\nversion: 1.0.0", "\nversion: 2.0.0")
        })
        .change("drivers/text-stats/DRIVER.md", |text| {
            text.replace("^1.0.0", "^2.0.0")
        });
    ship(&machine, &major, &one, "b.toolbundle");
    machine.toolward("update").ends(4);
    let mut raw = Raw::open(machine.toolward("serve").into_command(), json!({}));
    let instructions = raw.instructions();
    assert!(
        instructions.contains("One more tool is held"),
        "{instructions}"
    );
    raw.call(1, "text.stats@2", &json!({"text": "one"}));
    is_refused(&raw.answer(1), "toolward:held", "is held");
    // The earlier release is served.
    raw.call(2, "text_stats", &json!({"text": "one"}));
    assert_eq!(raw.answer(2)["result"]["structuredContent"]["words"], 1);
}

#[test]
fn tools_that_find_others_state_the_same() {
    let machine = revoked();
    let serve = machine.toolward("serve --defer-above 0");
    let mut raw = Raw::open(serve.into_command(), json!({}));
    let names = json!(["text.stats", "text_stats", "json.query", "no.tool"]);
    raw.call(1, "search_tools", &json!({"names": names}));
    let found = raw.answer(1)["result"]["structuredContent"].clone();
    let blocked = found["blocked_tools"].as_array().unwrap();
    assert_eq!(blocked.len(), 2, "{found}");
    for one in blocked {
        assert_eq!(one["name"], "text_stats");
        assert_eq!(one["loading_state"], "unavailable");
        assert_eq!(one["reason"], "toolward:withdrawn");
    }
    assert_eq!(found["unknown_names"], json!(["no.tool"]));
    raw.call(2, "load_tool", &json!({"name": "text_stats"}));
    is_refused(&raw.answer(2), "toolward:withdrawn", "has been withdrawn");
    raw.call(3, "text.stats", &json!({"text": "one"}));
    is_refused(&raw.answer(3), "toolward:withdrawn", "has been withdrawn");
}

#[test]
fn over_http_only_who_may_use_a_withdrawn_tool_learns_of_it() {
    let machine = revoked();
    let tokens = [("alice", "text.*"), ("bob", "json.*")].map(|(name, tools)| {
        let words = format!("mcp token {name} --tools {tools} --add tokens.toml --json");
        let made = machine.toolward(&words).ends(0).json();
        made["token"].as_str().unwrap().to_owned()
    });
    let serve = machine.toolward("serve --http 127.0.0.1:0 --tokens tokens.toml");
    let mut command = serve.into_command();
    command.stdin(Stdio::null());
    let served = Served::by(command);
    let era = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let [alice, bob] = tokens.map(|token| {
        let params = json!({"name": "text_stats", "arguments": {"text": "one"}, "_meta": era});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let params = json!({"_meta": era});
        let look =
            json!({"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": params});
        let looked = served.post(Some(&token), &look);
        let instructions = looked["result"]["instructions"].as_str().unwrap();
        (
            served.post(Some(&token), &call),
            instructions.contains("One more tool is withdrawn"),
        )
    });
    is_refused(&alice.0, "toolward:withdrawn", "has been withdrawn");
    assert!(alice.1);
    assert_eq!(bob.0["error"]["message"], "there is no tool \"text_stats\"");
    assert!(!bob.1);
}

//! Tools of a Runloop agent: its tools.json is imported, packed and called over https. Also a new
//! tools.json made by the command.

use serde_json::{Value, json};

use super::service::Service;
use crate::mcp::raw::Raw;
use crate::support::{Machine, Session};

/// Returns a machine with the directory of an agent whose only tool calls a service.
pub(crate) fn agent(service: &Service) -> Machine {
    let machine = Machine::new();
    let host = format!("localhost:{}", service.port);
    let document = json!({ "version": 1, "tools": [{
        "id": "mail.smtp_send",
        "description": "Send rendered drafts via the configured SMTP relay.",
        "transport": { "kind": "http", "method": "POST", "url": format!("https://{host}/send") },
        "input_schema": { "$ref": "schema:mail.send.request.v1" },
        "result_schema": { "$ref": "schema:mail.send.result.v1" },
        "capabilities": [format!("net:{host}")],
        "secrets": ["runloop/mail/smtp_api_key"],
        "observability": { "tags": ["external", "mail"] },
    }]});
    machine.write("agent/tools.json", format!("{document:#}\n"));
    for name in ["request", "result"] {
        machine.write(
            &format!("agent/schemas/mail.send.{name}.v1.json"),
            "{\"type\": \"object\"}",
        );
    }
    let caps = format!("[capabilities]\nnet = [\"{host}\"]\nkb_read = [\"contacts\"]\n");
    machine.write("agent/policy.caps", caps);
    machine.write("ca.pem", &service.authority);
    machine
}

#[test]
fn the_example_of_the_text_is_a_tool_that_reaches_its_service() {
    let service = Service::answering("200 OK", r#"{"sent": true}"#);
    let machine = agent(&service);
    let import = "import runloop agent --id mail -o mail --json";
    let said = machine.toolward(import).ends(0).json();
    assert_eq!(said["tools"], json!(["mail.smtp_send"]));
    let draft = said["policy"].as_str().unwrap();
    assert!(
        draft.contains("# policy.caps gives `kb_read`, which has nothing like it here"),
        "{draft}"
    );
    machine.toolward("check mail --deny-warnings").ends(0);
    machine.toolward("pack mail -o packed").ends(0);
    assert_eq!(
        machine.read("packed/tools.json"),
        machine.read("agent/tools.json")
    );
    machine.toolward("check packed").ends(0);

    let publisher = format!(
        "dev:{}",
        machine.path("mail").canonicalize().unwrap().display()
    );
    let policy = draft
        .replace("\"local\"", &format!("\"{publisher}\""))
        .replace("TOOLWARD_CHOOSE", "MAIL_KEY")
        .replace("host.invalid", &format!("localhost:{}", service.port))
        .replace(
            "[[grant]]\n",
            "[[grant]]\naddresses = [\"127.0.0.0/8\"]\npreapproved = true\n",
        );
    let policy = format!("[network]\nca_file = \"ca.pem\"\n\n{policy}");
    let call = |policy: Option<&str>, key: Option<&str>| -> Value {
        let mut words = "call mail.smtp_send --dev mail --set to=x --json".to_owned();
        if let Some(policy) = policy {
            machine.write("policy.toml", policy);
            words.push_str(" --policy-file policy.toml");
        }
        let mut call = machine.toolward(&words);
        if let Some(key) = key {
            call = call.env("MAIL_KEY", key);
        }
        call.end().json()
    };
    // Without a grant and without a secret's value, errors use the words of tools.json.
    for denied in [call(None, None), call(Some(&policy), None)] {
        assert_eq!(denied["error"]["code"], "cap_denied", "{denied}");
        assert_eq!(denied["error"]["class"], "capability_gap", "{denied}");
    }
    assert!(service.seen().is_empty());
    let called = call(Some(&policy), Some("k3y-of-the-relay"));
    assert_eq!(called["value"], json!({ "sent": true }), "{called}");
    let [request] = &service.seen()[..] else {
        panic!("{:?}", service.seen());
    };
    assert!(request.starts_with("POST /send HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("k3y-of-the-relay"), "{request}");
}

#[test]
fn a_budget_is_shown_to_people_and_to_clients() {
    let service = Service::answering("200 OK", "{}");
    let machine = agent(&service);
    let document = machine.text("agent/tools.json");
    let budget = "\"budget\": { \"tokens\": 800, \"usd\": 0.25 },\n      \"description\"";
    machine.write(
        "agent/tools.json",
        document.replacen("\"description\"", budget, 1),
    );
    let import = "import runloop agent --id mail -o mail --json";
    let said = machine.toolward(import).ends(0).json();
    let shown = machine.toolward("show mail.smtp_send --dev mail").ends(0);
    for row in [
        "tokens 800, which nothing counts",
        "usd 0.25, which nothing counts",
    ] {
        assert!(shown.stdout.contains(row), "{row}: {shown}");
    }
    let publisher = format!(
        "dev:{}",
        machine.path("mail").canonicalize().unwrap().display()
    );
    let policy = said["policy"].as_str().unwrap();
    let policy = policy
        .replace("\"local\"", &format!("\"{publisher}\""))
        .replace("TOOLWARD_CHOOSE", "MAIL_KEY")
        .replace("host.invalid", &format!("localhost:{}", service.port));
    machine.write("policy.toml", policy);
    let serve = machine.toolward("serve --dev mail --policy-file policy.toml");
    let mut raw = Raw::open(
        serve.env("MAIL_KEY", "k3y-of-the-relay").into_command(),
        json!({}),
    );
    raw.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let answer = raw.answer(1);
    let tools = answer["result"]["tools"].as_array().unwrap();
    let [tool] = &tools[..] else {
        panic!("{answer}");
    };
    let budget = &tool["_meta"]["toolward/tool"]["budget"];
    assert_eq!(*budget, json!({ "tokens": 800, "usd": 0.25 }), "{answer}");
}

#[test]
fn a_new_tools_json_takes_flags_where_nobody_can_be_asked() {
    let machine = Machine::new();
    let missing = machine.toolward("new parcels --format runloop").ends(2);
    missing.says("entry-missing");
    assert!(!machine.path("parcels").exists());
    let new = "new parcels --format runloop --id acme.parcels --method GET --secret acme/key --url";
    let url = "https://parcels.example/v1/${number}";
    machine.toolward(new).arg(url).ends(0);
    machine.toolward("check parcels --deny-warnings").ends(0);
    machine.toolward("pack parcels -o packed").ends(0);
    let index: Value = serde_json::from_slice(&machine.read("packed/tools.json")).unwrap();
    assert_eq!(index["version"], 1);
    assert_eq!(index["tools"][0]["transport"]["url"], url);
    let stray = machine.toolward("new other --url https://a.example/");
    stray.ends(2).says("entry-missing");
}

#[test]
fn a_new_tools_json_asks_for_entries_on_a_terminal() {
    let machine = Machine::new();
    let new = machine
        .toolward("new parcels --format runloop")
        .into_command();
    let mut session = Session::start(new, 120, "");
    for (question, answer) in [
        ("The tool's id", ""),
        ("What does it do", ""),
        ("Method", ""),
        ("URL (https", "https://parcels.example/v1/${number}"),
        ("The id of a secret", ""),
        ("The next tool's id", ""),
    ] {
        session.sees(question);
        session.types(&format!("{answer}\r"));
    }
    let left = session.leaves();
    assert_eq!(left.code, Some(0));
    let index: Value = serde_json::from_slice(&machine.read("parcels/tools.json")).unwrap();
    assert_eq!(index["tools"][0]["id"], "parcels");
    assert_eq!(index["tools"].as_array().unwrap().len(), 1);
    machine.toolward("check parcels").ends(0);
}

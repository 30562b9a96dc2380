//! The question to a person about a request that the host itself makes: on a terminal, and through
//! a client.

use serde_json::{Value, json};

use super::dev;
use crate::mcp::raw::{PATIENCE, Raw};
use crate::support::{Machine, Session};

const CONTRACT: &str = "---\nid: acme.tickets\nname: Tickets\ndescription: Opens a ticket.\nversion: 1.0.0\n\
                        inputs: { type: object, properties: { queue: { type: string }, text: { type: string } } }\n\
                        outputs: {}\nmutates: [\"network:api.example\"]\napproval: on-mutate\n---\n";
const DRIVER: &str = "---\nid: acme-tickets\nname: Tickets\ndescription: Sends tickets.\nversion: 1.0.0\nkind: http\n\
                      base_url: https://api.example/v1\nnetwork: { egress: [api.example] }\n\
                      implements:\n  - tool: acme.tickets\n    version: 1.x\n    metadata:\n      http:\n        \
                      endpoint: /queues/${input.queue}\n        body_template: { message: \"${input.text}\" }\n---\n";

/// Text with which a forger would mislead a person.
const FORGED: &str = "\"\n}\nsends: GET https://good.example/\n  sends      GET https://good.example/\r\n\u{1b}[2J\u{202e}";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write(
        "tickets/bundle.toml",
        "id = \"acme.tickets\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"acme\"\n\
         created = \"2026-11-01T00:00:00Z\"\n",
    );
    machine.write("tickets/tools/acme.tickets/TOOL.md", CONTRACT);
    machine.write("tickets/drivers/acme-tickets/DRIVER.md", DRIVER);
    let publisher = dev(&machine, "tickets");
    machine.configure(&format!(
        "[[grant]]\npublisher = {publisher:?}\nmutates = [\"network:api.example\"]\n"
    ));
    machine
}

fn input(queue: &str) -> Value {
    json!({ "queue": queue, "text": FORGED })
}

#[test]
fn the_terminal_shows_method_and_url_and_the_body_behind_the_bar() {
    let machine = machine();
    let call = machine
        .toolward("call acme.tickets --dev tickets --input")
        .arg(input("a b").to_string());
    let mut session = Session::start(call.into_command(), 100, "");
    session.sees("? [y/N] ");
    let screen = session.screen();
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let sends: Vec<&&str> = lines
        .iter()
        .filter(|line| line.starts_with("  sends "))
        .collect();
    assert_eq!(
        sends,
        [&"  sends      POST https://api.example/v1/queues/a%20b"],
        "{screen}"
    );
    let (_, body) = screen.split_once("  body").unwrap();
    let (body, _) = body.split_once("Allow this call").unwrap();
    assert!(body.contains("\"message\""), "{screen}");
    for line in body
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
    {
        assert!(line.starts_with("  | "), "{line:?} in {screen}");
    }
    assert!(!screen.contains(['\u{1b}', '\u{202e}']), "{screen:?}");
    session.types("\r");
    assert_eq!(session.leaves().code, Some(4));
}

#[test]
fn a_long_url_is_cut_and_says_so() {
    let machine = machine();
    let call = machine
        .toolward("call acme.tickets --dev tickets --input")
        .arg(json!({ "queue": "q".repeat(3000), "text": "t" }).to_string());
    let mut session = Session::start(call.into_command(), 100, "");
    session.sees("? [y/N] ");
    let screen = session.screen();
    let cut = "NOT SHOWN: 1030 characters of the URL";
    assert!(screen.contains(cut), "{screen}");
    session.types("\r");
    session.leaves();
}

#[test]
fn a_client_shows_method_and_url_and_the_body_behind_the_bar() {
    let machine = machine();
    let serve = machine.toolward("serve --dev tickets --trust-client");
    let mut raw = Raw::open(serve.into_command(), json!({ "elicitation": {} }));
    // If a person can't read the whole question, it is not asked.
    let long = json!({ "queue": "q".repeat(3000), "text": "t" });
    raw.call(2, "acme_tickets", &long);
    let answer = raw.answer(2);
    let code = &answer["result"]["_meta"]["toolward/error"]["code"];
    assert_eq!(code, "toolward:approval_denied", "{answer}");

    raw.call(1, "acme_tickets", &input("a b"));
    let question = raw.next(PATIENCE).expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let message = question["params"]["message"].as_str().unwrap();
    let sends: Vec<&str> = message
        .lines()
        .filter(|line| line.starts_with("sends"))
        .collect();
    assert_eq!(
        sends,
        ["sends: POST https://api.example/v1/queues/a%20b"],
        "{message}"
    );
    let (_, body) = message.split_once("body:\n").unwrap();
    assert!(body.contains("| {"), "{message}");
    for line in body.lines() {
        assert!(line.starts_with("| "), "{line:?} in {message}");
    }
    assert!(
        !message.contains(['\u{1b}', '\u{202e}', '\r']),
        "{message:?}"
    );
    raw.send(&json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": { "action": "accept", "content": { "decision": "deny" } },
    }));
    let answer = raw.answer(1);
    let code = &answer["result"]["_meta"]["toolward/error"]["code"];
    assert_eq!(code, "toolward:approval_denied", "{answer}");
}

#[test]
fn inspect_shows_requests_what_describes_their_secrets_and_the_events() {
    let machine = machine();
    machine.write(
        "tickets/actions/tickets-open/ACTION.md",
        "---\nschema: action/v1\nid: tickets:open\ndescription: Opens a ticket.\n\
         mutates: [\"network:api.example\"]\napproval: on-mutate\nfires_events: [ticket.opened]\n\
         implementations: [{ kind: tool, ref: acme.tickets }]\n---\n",
    );
    let contract = "tickets/tools/acme.tickets/TOOL.md";
    super::change(
        &machine,
        contract,
        "outputs: {}",
        "outputs: {}\nimplements: tickets:open\nfires_events: [ticket.opened]",
    );
    let driver = "tickets/drivers/acme-tickets/DRIVER.md";
    let auth = "kind: http\nauth: { ref: \"./SECRETS.md\\e[2J\" }";
    super::change(&machine, driver, "kind: http", auth);
    let query = "endpoint: /queues/${input.queue}\n        query_template: { k: \"${secrets.K}\" }";
    super::change(&machine, driver, "endpoint: /queues/${input.queue}", query);
    let shown = machine.toolward("inspect tickets").ends(0);
    for line in [
        "  requests   POST https://api.example/v1/queues/${input.queue}?k=${secrets.K}\n",
        "  fires      ticket.opened\n",
        "action tickets:open 1.0.0\n",
        "  at least   approval on-mutate, risk 0\n",
        "  no effect  fires_events: ticket.opened\n",
        "  no effect  implementations: tool acme.tickets\n",
    ] {
        assert!(shown.stdout.contains(line), "{line:?} in {shown}");
    }
    assert!(
        shown.stdout.contains("  auth.ref   ./SECRETS.md"),
        "{shown}"
    );
    assert!(!shown.stdout.contains('\u{1b}'), "{shown}");
    let value = machine.toolward("inspect tickets --json").ends(0).json();
    let action = &value["actions"][0];
    assert_eq!(action["id"], "tickets:open", "{value}");
    assert_eq!(action["implementations"][0][0], "tool", "{value}");
    assert_eq!(value["tools"][0]["fires_events"], json!(["ticket.opened"]));
    assert!(
        value["drivers"][0]["auth_ref"]
            .as_str()
            .unwrap()
            .starts_with("./SECRETS.md")
    );
}

#[test]
fn an_internal_address_has_a_code_and_each_command_prints_the_line_that_it_lacks() {
    let machine = machine();
    for name in [
        "tickets/tools/acme.tickets/TOOL.md",
        "tickets/drivers/acme-tickets/DRIVER.md",
    ] {
        let text = machine.text(name).replace("api.example", "127.0.0.1");
        machine.write(name, text);
    }
    let publisher = dev(&machine, "tickets");
    let grant = format!(
        "[[grant]]\npublisher = {publisher:?}\nmutates = [\"network:127.0.0.1\"]\npreapproved = true\n"
    );
    machine.configure(&grant);
    let call = || {
        let call = machine.toolward("call acme.tickets --dev tickets --input");
        call.arg(input("a").to_string())
    };
    let refused = call().ends(4);
    refused.says("toolward:address_not_granted");
    assert!(
        refused
            .stderr
            .contains("`toolward show acme.tickets --policy`"),
        "{refused}"
    );
    let line = "addresses = [\"127.0.0.1\"]";
    assert!(refused.stderr.contains(line), "{refused}");
    // Output for a program, which an agent may have started, contains no policy lines.
    let json = machine.toolward("call acme.tickets --dev tickets --json --input");
    let json = json.arg(input("a").to_string()).ends(4);
    assert!(!json.stdout.contains("addresses ="), "{json}");
    for command in ["show acme.tickets --policy", "policy suggest"] {
        let shown = machine
            .toolward(&format!("{command} --dev tickets"))
            .ends(0);
        assert!(shown.stdout.contains(line), "{shown}");
    }
    let granted = machine.toolward("policy grant acme.tickets --dev tickets");
    let granted = granted.ends(0);
    assert!(granted.stderr.contains(line), "{granted}");
    // With the line the request is sent, but nothing answers.
    machine.configure(&format!("{grant}{line}\n"));
    let failed = call().ends(1);
    assert!(!failed.stderr.contains("address_not_granted"), "{failed}");
    let shown = machine.toolward("show acme.tickets --policy --dev tickets");
    assert!(!shown.ends(0).stdout.contains("requests are refused"));
}

//! A tool whose contract requires a context: blocked until `[[context]]` gives one.

use serde_json::{Value, json};

use crate::mcp::raw::Raw;
use crate::support::bundle::new_key;
use crate::support::{Draft, Machine};

const TOOL_MD: &str = "tools/text.stats/TOOL.md";
const FLAGS: &str = "--bundle b.toolbundle --trust-key key.pub.pem";

/// A machine with a bundle whose tool requires a tenant.
fn machine() -> Machine {
    let machine = Machine::new();
    let key = new_key(&machine.work(), "key");
    let schema = "contextSchema: { type: object, properties: { tenant: { type: string, \
                  maxLength: 20 } }, required: [tenant] }\n";
    let draft = Draft::of("text-stats").change(TOOL_MD, |text| {
        text.replacen("version:", &format!("{schema}version:"), 1)
    });
    draft
        .sign(&key)
        .write_archive(&machine.path("b.toolbundle"));
    machine
}

/// Returns the lines that `show --policy` prints, still with `TOOLWARD_CHOOSE` in them.
fn suggested(machine: &Machine) -> String {
    let explained = machine.toolward(&format!("show text.stats --policy {FLAGS} --json"));
    let explained = explained.ends(0).json();
    assert_eq!(explained["drivers"][0]["outcome"], "deny", "{explained}");
    let lines = explained["drivers"][0]["lines_to_add"].as_str().unwrap();
    assert!(lines.contains("[[context]]"), "{lines}");
    lines.to_owned()
}

fn listed(machine: &Machine) -> Value {
    let listed = machine.toolward(&format!("policy list {FLAGS} --json"));
    listed.ends(0).json()
}

/// Returns how many tools a server lists.
fn served(machine: &Machine) -> usize {
    let mut raw = Raw::open(
        machine.toolward(&format!("serve {FLAGS}")).into_command(),
        json!({}),
    );
    raw.send(&json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}));
    let answer = raw.answer("list");
    answer["result"]["tools"].as_array().unwrap().len()
}

#[test]
fn a_tool_without_the_context_that_it_requires_is_blocked_and_the_lines_are_told() {
    let machine = machine();
    let blocked = listed(&machine);
    assert_eq!(blocked["state"], "blocked", "{blocked}");
    assert!(blocked.to_string().contains("context"), "{blocked}");
    assert_eq!(served(&machine), 0);
    let call = machine.toolward(&format!("call text.stats --set text=one {FLAGS}"));
    let call = call.ends(4);
    call.says("unauthorised");
    assert!(call.stderr.contains("[[context]]"), "{call}");
    assert!(call.stderr.contains("TOOLWARD_CHOOSE"), "{call}");
    let lines = machine.toolward(&format!("policy suggest {FLAGS}")).ends(0);
    assert!(lines.stdout.contains("[[context]]"), "{lines}");

    // Appended unchanged, they grant nothing.
    let lines = suggested(&machine);
    machine.configure(&lines);
    assert_eq!(listed(&machine)["state"], "blocked");
    let doctor = machine.toolward("doctor").end();
    assert!(doctor.stdout.contains("nobody has chosen yet"), "{doctor}");

    // A caller who provides a context can call the tool.
    let brought = machine.toolward(&format!("call text.stats --set text=one {FLAGS}"));
    brought.arg("--context={\"tenant\":\"a\"}").ends(0);
}

#[test]
fn the_suggested_lines_let_the_tool_run_once_somebody_has_chosen() {
    let machine = machine();
    let lines = suggested(&machine)
        .replacen("\"TOOLWARD_CHOOSE\"", "\"local\"", 1)
        .replace("TOOLWARD_CHOOSE", "TENANT");
    machine.configure(&lines);
    let call = || machine.toolward(&format!("call text.stats --set text=one {FLAGS}"));
    // The variable is not set, or its value does not match the schema.
    call().ends(4).says("unauthorised");
    let doctor = machine.toolward("doctor").end();
    assert!(doctor.stdout.contains("TENANT is not set"), "{doctor}");
    let long = "a tenant with a name that is too long";
    let refused = call().env("TENANT", long).ends(4);
    assert!(!refused.stderr.contains(long), "{refused}");
    let explain = machine.toolward(&format!("show text.stats --policy {FLAGS}"));
    let explain = explain.env("TENANT", long).ends(0);
    assert!(explain.stdout.contains("maxLength"), "{explain}");
    assert!(!explain.stdout.contains(long), "{explain}");

    call().env("TENANT", "acme-eu").ends(0);
    let listed = machine.toolward(&format!("policy list {FLAGS} --json"));
    let listed = listed.env("TENANT", "acme-eu").ends(0).json();
    assert_eq!(listed["state"], "allowed", "{listed}");
}

#[test]
fn a_context_from_a_file_keeps_to_the_rules_of_secrets() {
    use std::os::unix::fs::PermissionsExt as _;
    let machine = machine();
    let key = machine
        .toolward("publisher keys show key.pub.pem --json")
        .ends(0)
        .json();
    let publisher = format!("key:{}", key["key_id"].as_str().unwrap());
    machine.configure(&format!(
        "[[context]]\npublisher = \"{publisher}\"\ntool = \"text.stats\"\nprincipal = \"*\"\n\
         file.tenant = \"tenant.txt\"\n"
    ));
    assert_eq!(listed(&machine)["state"], "blocked");
    let file = machine.home().join(".config/toolward/tenant.txt");
    std::fs::write(&file, "acme-eu\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(listed(&machine)["state"], "blocked");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(listed(&machine)["state"], "allowed");
    assert_eq!(served(&machine), 1);
}

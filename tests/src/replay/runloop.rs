//! `ledger export --format runloop`: frames of calls of installed attachments.

use serde_json::{Value, json};
use toolward_ledger::payload::{Keep, PayloadKind};
use toolward_ledger::record::{Call, Ended, Event, Hash, Id, Part, Tool};
use toolward_ledger::{Durability, Entry, Recorder as _};

use super::open;
use crate::ledger::{call, invocation, outcome};
use crate::support::Machine;

/// A machine with the attachment of Runloop's own example installed. Also returns the digest of its
/// bundle.
fn installed() -> (Machine, String) {
    let machine = Machine::new();
    let document = json!({ "version": 1, "tools": [{
        "id": "mail.smtp_send",
        "description": "Send rendered drafts via the configured SMTP relay.",
        "transport": { "kind": "http", "method": "POST", "url": "https://api.mail.example/send" },
        "input_schema": { "$ref": "schema:mail.send.request.v1" },
        "result_schema": { "$ref": "schema:mail.send.result.v1" },
        "schema_refs": { "draft": "schema:mail.send.request.v1" },
        "capabilities": ["net:api.mail.example"],
        "observability": { "tags": ["external", "mail"] },
    }]});
    machine.write("agent/tools.json", format!("{document:#}\n"));
    for name in ["request", "result"] {
        let path = format!("agent/schemas/mail.send.{name}.v1.json");
        machine.write(&path, "{\"type\": \"object\"}");
    }
    let import = "import runloop agent --id mail --publisher acme -o mail";
    machine.toolward(import).ends(0);
    machine
        .toolward("publisher keys new --out acme.pem")
        .ends(0);
    let pack = "pack mail -o mail.toolbundle --key acme.pem";
    machine.toolward(pack).ends(0);
    let key = machine.text("acme.pub.pem");
    machine.configure(&format!(
        "[[publisher]]\nname = \"acme\"\nkeys = [\"\"\"{key}\"\"\"]\nprefixes = [\"mail\"]\n"
    ));
    machine.toolward("install mail.toolbundle").ends(0);
    let listed = machine.toolward("list --json").ends(0).json();
    let digest = listed["digest"].as_str().unwrap().to_owned();
    (machine, digest)
}

fn ended(number: u8, call: Call, code: Option<&str>) -> Entry {
    Entry::new(Event::Ended(Box::new(Ended {
        call: Some(call),
        invocation: invocation(number),
        outcome: outcome(code),
    })))
}

/// A ledger with two calls of the attachment and two calls of other tools.
pub(crate) fn recorded() -> Machine {
    let (machine, digest) = installed();
    let of = |bundle: Hash| Call {
        tool: Some(Part {
            bundle,
            id: Tool::parse("mail.smtp_send@1.0.0").unwrap(),
            publisher: Id::parse("acme").unwrap(),
        }),
        ..call()
    };
    let bundle = Hash::parse(&digest).unwrap();
    let writer = open(&machine, Keep::All);
    let entries = [
        ended(1, of(bundle), None)
            .payload(PayloadKind::Input, br#"{"to":"x"}"#.to_vec())
            .payload(PayloadKind::Output, br#"{"value":{"sent":true}}"#.to_vec()),
        ended(2, of(bundle), Some("upstream_error"))
            .size(PayloadKind::Input, 10)
            .payload(PayloadKind::Detail, br#"{"message":"no relay"}"#.to_vec()),
        // Another release, and a tool that is not an attachment.
        ended(3, of(toolward_ledger::record::Hex([7; 32])), None),
        ended(4, call(), None),
    ];
    for entry in entries {
        writer.append(entry, Durability::Disk).wait().unwrap();
    }
    writer.close().unwrap();
    machine
}

#[test]
fn each_call_of_an_attachment_is_a_call_and_a_result() {
    let machine = recorded();
    let frames = machine.toolward("ledger export --format runloop").ends(0);
    let frames = frames.json_lines();
    let names: Vec<(&Value, &Value)> = frames
        .iter()
        .map(|one| (&one["frame"], &one["id"]))
        .collect();
    let (called, result, id) = (
        &json!("CT_TOOL_CALL"),
        &json!("CT_TOOL_RESULT"),
        &json!("mail.smtp_send"),
    );
    assert_eq!(
        names,
        [(called, id), (result, id), (called, id), (result, id)]
    );
    for frame in &frames {
        assert_eq!(frame["tags"], json!(["external", "mail"]));
        assert_eq!(
            frame["schema_refs"],
            json!({ "draft": "schema:mail.send.request.v1" })
        );
    }
    assert_eq!(frames[0]["schema"], "schema:mail.send.request.v1");
    assert_eq!(frames[1]["schema"], "schema:mail.send.result.v1");
    assert_eq!(frames[0]["payload"], json!({ "to": "x" }));
    assert_eq!(frames[1]["payload"], json!({ "sent": true }));
    assert_eq!(frames[0]["invocation"], frames[1]["invocation"]);
    assert_eq!(frames[2]["missing"]["why"], "not-kept");
    assert_eq!(
        (&frames[3]["ok"], &frames[3]["code"]),
        (&json!(false), &json!("upstream_error"))
    );
    assert_eq!(frames[3]["payload"]["message"], "no relay");
    // The last two calls, and the end of the session.
    let info = machine.toolward("ledger info --json").ends(0).json();
    let from = info["rows"].as_u64().unwrap() - 3;
    let none = machine
        .toolward(&format!("ledger export --format runloop --rows {from}.."))
        .ends(0);
    assert_eq!(none.stdout, "");
}

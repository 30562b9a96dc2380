//! `ledger replay --rerun`: recorded calls made once more with the real drivers of installed examples.

use serde_json::{Value, json};
use toolward_ledger::payload::{Keep, PayloadKind};
use toolward_ledger::record::{Call, Ended, Event, Hash, Hex, Id, Part, Replayed, Tool};
use toolward_ledger::{Durability, Entry, Recorder as _, Writer};

use super::open;
use crate::ledger::{call, invocation, outcome};
use crate::support::{Draft, Machine, Run, bundle::new_key, terminal::Session};

/// A machine with the examples installed, signed by a key of its own, and what `[[grant]]` gives. All is kept.
fn machine() -> Machine {
    let machine = Machine::new();
    let key = new_key(&machine.work(), "own");
    for example in ["text-stats", "kv-counter"] {
        let bundle = format!("{example}.toolbundle");
        Draft::of(example)
            .sign(&key)
            .write_archive(&machine.path(&bundle));
    }
    let key = machine.text("own.pub.pem");
    machine.configure(&format!(
        "[[publisher]]\nname = \"toolward-examples\"\nkeys = [\"\"\"{key}\"\"\"]\nprefixes = [\"*\"]\n\
         [[grant]]\npublisher = \"toolward-examples\"\nmutates = [\"database:counters\"]\npreapproved = true\n\
         [ledger]\nkeep = \"all\"\n"
    ));
    for bundle in ["text-stats", "kv-counter"] {
        machine
            .toolward(&format!("install {bundle}.toolbundle"))
            .ends(0);
    }
    machine
}

/// What a record of a live call says of tool and driver.
fn recorded(meta: &Value) -> Call {
    let text = |field: &str| meta[field].as_str().unwrap();
    let bundle = Hash::parse(text("bundle")).unwrap();
    let publisher = Id::parse(text("publisher")).unwrap();
    Call {
        tool: Some(Part {
            bundle,
            id: Tool::parse(text("tool")).unwrap(),
            publisher: publisher.clone(),
        }),
        driver: Some(Part {
            bundle,
            id: Id::parse(text("driver")).unwrap(),
            publisher,
        }),
        ..call()
    }
}

fn record(writer: &Writer, number: u8, of: &Call, input: &Value, output: &Value) {
    let event = Event::Ended(Box::new(Ended {
        call: Some(of.clone()),
        invocation: invocation(number),
        outcome: outcome(None),
    }));
    record_event(writer, event, input, output);
}

fn record_event(writer: &Writer, event: Event, input: &Value, output: &Value) {
    let entry = Entry::new(event).principal("local");
    let entry = entry.payload(PayloadKind::Input, input.to_string().into_bytes());
    let output = json!({ "value": output }).to_string();
    let entry = entry.payload(PayloadKind::Output, output.into_bytes());
    writer.append(entry, Durability::Disk).wait().unwrap();
}

fn live(machine: &Machine, words: &str) -> Value {
    machine
        .toolward(&format!("call {words} --json"))
        .ends(0)
        .json()
}

fn rerun(machine: &Machine, what: &str) -> Run {
    machine.toolward(&format!("ledger replay {what} --rerun --json"))
}

#[test]
fn a_call_is_made_once_more_and_its_row_names_the_recorded_one() {
    let machine = machine();
    let reply = live(&machine, "text.stats --set text=one");
    let id = reply["meta"]["invocation"].as_str().unwrap();
    let again = rerun(&machine, id).ends(0).json();
    assert_eq!(again["made"], true, "{again}");
    assert_eq!((&again["of"], &again["ok"]), (&json!(id), &json!(true)));
    assert_eq!(again["differs"], json!([]));
    let new = again["invocation"].as_str().unwrap();
    assert_ne!(new, id);
    let rows = machine.toolward("ledger list --json").ends(0).json_lines();
    let row = rows
        .iter()
        .find(|row| row["record"]["body"]["invocation"] == new)
        .unwrap_or_else(|| panic!("{new}: {rows:#?}"));
    assert_eq!(row["record"]["body"]["call"]["rerun_of"], id, "{row}");
    // The new call is a call like any other.
    rerun(&machine, new).ends(0);
    machine.toolward("ledger verify").ends(0);
}

#[test]
fn what_came_out_differently_is_shown_and_nothing_else() {
    let machine = machine();
    let reply = live(&machine, "text.stats --set text=one");
    let (call, input) = (recorded(&reply["meta"]), json!({ "text": "one" }));
    let mut other = reply["value"].clone();
    other["words"] = json!(7);
    let mut moved = call.clone();
    moved.driver.as_mut().unwrap().id = Id::parse("another").unwrap();
    let mut changed = call.clone();
    changed.surface = Some(Hex([7; 32]));
    let writer = open(&machine, Keep::All);
    record(&writer, 1, &call, &input, &reply["value"]);
    record(&writer, 2, &call, &input, &other);
    record(&writer, 3, &moved, &input, &reply["value"]);
    record(&writer, 4, &changed, &input, &reply["value"]);
    writer.close().unwrap();
    let differs = |number: u8, code: i32| {
        let made = rerun(&machine, &invocation(number).to_string());
        let mut made = made.ends(code).json();
        assert_eq!(made["made"], true, "{made}");
        made["differs"].take()
    };
    assert_eq!(differs(1, 0), json!([]));
    let value = differs(2, 1);
    assert_eq!(value[0]["what"], "value");
    let words = |when: &str| &value[0][when]["words"];
    assert_eq!((words("before"), words("now")), (&json!(7), &json!(1)));
    let driver = differs(3, 1);
    assert_eq!(driver[0]["what"], "driver");
    assert_eq!(driver[0]["before"]["id"], "another");
    let surface = differs(4, 1);
    assert_eq!(surface[0]["what"], "surface");
    assert_eq!(surface[0]["now"].as_str().unwrap().len(), 64, "{surface}");
    let shown = machine.toolward(&format!("ledger replay {} --rerun", invocation(2)));
    let shown = shown.ends(1);
    assert!(shown.stdout.contains("differs"), "{shown}");
}

#[test]
fn what_may_change_something_is_made_alone_and_only_after_a_yes() {
    let machine = machine();
    let add = "kv.counter --set action=add --set counter=a";
    let first = live(&machine, add);
    let id = first["meta"]["invocation"].as_str().unwrap();
    let among = rerun(&machine, "..").ends(1).json();
    assert_eq!(
        (&among["of"], &among["made"]),
        (&json!(id), &json!(false)),
        "{among}"
    );
    for more in ["", "--yes"] {
        let words = format!("ledger replay {id} --rerun {more}");
        machine.toolward(&words).ends(4).says("rerun-unconfirmed");
    }
    // It was not made: the next call counts on from the first.
    let count = |reply: &Value| reply["value"]["counters"][0]["value"].as_u64().unwrap();
    let second = live(&machine, add);
    assert_eq!(count(&second), count(&first) + 1);
    // A person says yes.
    let command = machine.toolward(&format!("ledger replay {id} --rerun"));
    let mut session = Session::start(command.into_command(), 100, "");
    session.sees("Go on?");
    session.types("y\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(1), "{left:?}");
    assert!(left.stdout.contains("differs"), "{left:?}");
    assert_eq!(count(&live(&machine, add)), count(&first) + 3);
}

#[test]
fn many_calls_are_counted_first_and_what_cannot_be_made_is_said() {
    let machine = machine();
    let reply = live(&machine, "text.stats --set text=one");
    let call = recorded(&reply["meta"]);
    let writer = open(&machine, Keep::All);
    for number in 1..=21 {
        record(
            &writer,
            number,
            &call,
            &json!({ "text": "one" }),
            &reply["value"],
        );
    }
    let hidden = json!({ "text": "[hidden]" });
    record(&writer, 22, &call, &hidden, &reply["value"]);
    record(&writer, 23, &crate::ledger::call(), &json!({}), &json!({}));
    writer.close().unwrap();
    let denied = machine.toolward("ledger replay .. --rerun").ends(4);
    denied.says("rerun-unconfirmed");
    assert!(denied.stderr.contains("22 calls"), "{denied}");
    let lines = rerun(&machine, ".. --yes").ends(1).json_lines();
    let made = lines.iter().filter(|line| line["made"] == true);
    let made: Vec<_> = made.collect();
    assert_eq!((lines.len(), made.len()), (24, 22));
    assert!(made.iter().all(|line| line["differs"] == json!([])));
    let why = |number: u8| {
        let of = json!(invocation(number));
        let line = lines.iter().find(|line| line["of"] == of).unwrap();
        line["why"].as_str().unwrap()
    };
    assert!(why(22).contains("sensitive values"), "{}", why(22));
    assert!(why(23).contains("not installed"), "{}", why(23));
    machine.toolward("ledger replay .. --yes").ends(2);
}

#[test]
fn another_code_is_a_difference() {
    let machine = machine();
    let reply = live(&machine, "text.stats --set text=one");
    let (call, input) = (recorded(&reply["meta"]), json!({ "text": "one" }));
    let writer = open(&machine, Keep::All);
    let failed = Event::Ended(Box::new(Ended {
        call: Some(call.clone()),
        invocation: invocation(1),
        outcome: outcome(Some("upstream_error")),
    }));
    record_event(&writer, failed, &input, &json!(null));
    // One that went well, with an input that is refused today.
    record(&writer, 2, &call, &json!({ "text": 7 }), &reply["value"]);
    writer.close().unwrap();
    let code = |number: u8| {
        let made = rerun(&machine, &invocation(number).to_string());
        let made = made.ends(1).json();
        let differs = made["differs"].as_array().unwrap().clone();
        differs
            .into_iter()
            .find(|one| one["what"] == "code")
            .unwrap()
    };
    let (first, second) = (code(1), code(2));
    assert_eq!(
        (&first["before"], &first["now"]),
        (&json!("upstream_error"), &Value::Null)
    );
    assert_eq!(
        (&second["before"], &second["now"]),
        (&Value::Null, &json!("input_invalid"))
    );
}

#[test]
fn nested_replayed_and_blocked_calls_and_damaged_rows_are_left_out_and_said() {
    let machine = machine();
    let reply = live(&machine, "text.stats --set text=one");
    let counted = live(&machine, "kv.counter --set action=list");
    let (call, input) = (recorded(&reply["meta"]), json!({ "text": "one" }));
    let writer = open(&machine, Keep::All);
    let mut nested = call.clone();
    nested.parent = Some(invocation(9));
    record(&writer, 1, &nested, &input, &reply["value"]);
    let replayed = Event::Replayed(Box::new(Replayed {
        call: call.clone(),
        invocation: invocation(2),
        ledger: Hex([3; 16]),
        of: invocation(8),
        outcome: outcome(None),
    }));
    record_event(&writer, replayed, &input, &reply["value"]);
    let count = json!({ "action": "list" });
    record(
        &writer,
        3,
        &recorded(&counted["meta"]),
        &count,
        &counted["value"],
    );
    record(&writer, 4, &call, &input, &reply["value"]);
    record(&writer, 5, &call, &input, &reply["value"]);
    let damaged = writer
        .flush()
        .wait()
        .map(|()| machine_rows(&machine) - 1)
        .unwrap();
    writer.close().unwrap();
    // The tool may do nothing any more.
    let config = machine.home().join(".config/toolward/toolward.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let (before, _) = text.split_once("[[grant]]").unwrap();
    let (_, ledger) = text.split_once("[ledger]").unwrap();
    machine.configure(&format!("{before}[ledger]{ledger}"));
    let sql = rusqlite::Connection::open(crate::ledger::place(&machine).join("records.sqlite"));
    let damage = "UPDATE entry SET record = X'7B7D' WHERE seq = ?1";
    sql.unwrap().execute(damage, [damaged as i64]).unwrap();
    let before = rows_of_calls(&machine);
    let lines = rerun(&machine, "..").ends(1).json_lines();
    let made = |line: &&Value| line["made"] == true;
    let again = [reply["meta"]["invocation"].clone(), json!(invocation(4))];
    let of: Vec<Value> = lines
        .iter()
        .filter(made)
        .map(|line| line["of"].clone())
        .collect();
    assert_eq!(of, again);
    let why = |number: u8| {
        let of = json!(invocation(number));
        let line = lines.iter().find(|line| line["of"] == of).unwrap();
        assert_eq!(line["made"], false, "{line}");
        line["why"].as_str().unwrap()
    };
    assert!(why(1).contains("a tool made it"), "{}", why(1));
    assert!(why(2).contains("cassette"), "{}", why(2));
    assert!(why(3).contains("no driver"), "{}", why(3));
    let row = lines
        .iter()
        .find(|line| line["missing"]["row"].is_object())
        .unwrap();
    assert_eq!(row["rows"], json!([damaged]), "{row}");
    assert_eq!(
        rows_of_calls(&machine),
        before + again.len(),
        "nothing else was called"
    );
}

fn machine_rows(machine: &Machine) -> u64 {
    let reader = toolward_ledger::Reader::open(&crate::ledger::place(machine), None).unwrap();
    reader.size().unwrap()
}

/// How many calls have ended.
fn rows_of_calls(machine: &Machine) -> usize {
    let rows = machine.toolward("ledger list --json --limit 1000").ends(0);
    let rows = rows.json_lines();
    rows.iter()
        .filter(|row| row["record"]["kind"] == "ended")
        .count()
}

#[test]
fn more_than_a_thousand_calls_are_made_by_no_command() {
    let machine = machine();
    let reply = live(&machine, "text.stats --set text=one");
    let call = recorded(&reply["meta"]);
    let writer = open(&machine, Keep::None);
    for _ in 0..1000 {
        let event = Event::Ended(Box::new(Ended {
            call: Some(call.clone()),
            invocation: toolward_ledger::record::Invocation::from_bytes(
                uuid::Uuid::now_v7().into_bytes(),
            ),
            outcome: outcome(None),
        }));
        let entry = Entry::new(event).principal("local");
        writer.append(entry, Durability::Queued).wait().unwrap();
    }
    writer.close().unwrap();
    let before = machine_rows(&machine);
    let refused = machine.toolward("ledger replay .. --rerun --yes").ends(4);
    refused.says("rerun-unconfirmed");
    assert!(refused.stderr.contains("more than 1000 calls"), "{refused}");
    // Nothing but its session was recorded.
    assert_eq!(machine_rows(&machine), before + 2);
}

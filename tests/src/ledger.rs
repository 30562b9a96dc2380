//! The `ledger` commands on a ledger that the crate's own writer made.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::record::{
    Call, Code, Ended, Event, Hex, Id, Invocation, Native, Number, Opened, Outcome, Part, Refused,
    Started, Tool, Version, Word,
};
use toolward_ledger::{Durability, Entry, LedgerOptions, Recorder as _, Writer};

use crate::support::{Machine, Run};

/// Text that no file contains once it is erased.
const MARK: &str = "MARKED-INPUT-7d1f";
/// A principal whose name would look like a separate line and hide the rest.
const FORGED: &str = "mallory\n       9  2026-01-01T00:00:00Z  ended  \u{1b}[2K\u{202e}";

pub(crate) fn invocation(number: u8) -> Invocation {
    let mut bytes = [0; 16];
    bytes[15] = number;
    Invocation::from_bytes(bytes)
}

pub(crate) fn call() -> Call {
    Call {
        context: None,
        cut: Number::default(),
        driver: None,
        input: None,
        mutates: Vec::new(),
        native: Native::default(),
        parent: None,
        person: None,
        policy: None,
        rejected: Vec::new(),
        rerun_of: None,
        root: None,
        rules: Vec::new(),
        surface: None,
        tool: Some(Part {
            bundle: Hex([1; 32]),
            id: Tool::parse("notes.append@1.0.0").unwrap(),
            publisher: Id::parse("acme").unwrap(),
        }),
    }
}

pub(crate) fn outcome(code: Option<&str>) -> Outcome {
    Outcome {
        attempts: Vec::new(),
        cancel_reason: None,
        class: None,
        code: code.map(|code| Code::parse(code).unwrap()),
        cut: Number::default(),
        detail: None,
        fuel: Number::default(),
        late: false,
        limit: None,
        memory: Number::default(),
        origin: None,
        output: None,
        repeats: None,
        stage: Word::parse("run").unwrap(),
        us: Number::from(5),
        violations: Default::default(),
    }
}

/// The default place of the ledger.
pub(crate) fn place(machine: &Machine) -> PathBuf {
    machine.home().join(".local/state/toolward/ledger")
}

/// A ledger with a call that changed something (rows 1 and 2), a call that read (3), a refused call
/// (4), and 300 more calls that read.
pub(crate) fn filled() -> Machine {
    let machine = Machine::new();
    fs::create_dir_all(place(&machine).parent().unwrap()).unwrap();
    let mut options = LedgerOptions::new(place(&machine));
    options.checkpoint_rows = 100;
    let opened = Opened {
        build: Version::parse("0.1.0").unwrap(),
        bundles: Vec::new(),
        bundles_set: None,
        confinement: Word::parse("full").unwrap(),
        cut: Number::default(),
        policy: None,
    };
    let writer = Writer::open(options, opened).unwrap();
    let append = |event, principal: &str| {
        let entry = Entry::new(event).principal(principal);
        let entry = entry.payload(PayloadKind::Input, format!(r#"{{"a":"{MARK}"}}"#).into());
        let pending = writer.append(entry.matters(), Durability::Disk);
        pending.wait().unwrap();
    };
    let started = Started {
        call: call(),
        invocation: invocation(1),
    };
    append(Event::Started(Box::new(started)), "alice");
    let ended = |number, call| {
        Event::Ended(Box::new(Ended {
            call,
            invocation: invocation(number),
            outcome: outcome(None),
        }))
    };
    append(ended(1, None), "alice");
    append(ended(2, Some(call())), FORGED);
    let refused = Refused {
        call: call(),
        invocation: invocation(3),
        outcome: outcome(Some("toolward:denied")),
    };
    append(Event::Refused(Box::new(refused)), "alice");
    for number in 0..300_u32 {
        let entry = Entry::new(ended(number.to_le_bytes()[0].max(4), Some(call())));
        let pending = writer.append(entry, Durability::Queued);
        pending.wait().unwrap();
        if number % 50 == 49 {
            writer.flush().wait().unwrap();
        }
    }
    writer.close().unwrap();
    machine
}

fn ledger(machine: &Machine, words: &str) -> Run {
    machine.toolward(&format!("ledger {words}"))
}

fn records(machine: &Machine) -> Connection {
    Connection::open(place(machine).join("records.sqlite")).unwrap()
}

/// Whether a file of the ledger contains these bytes.
fn holds(directory: &Path, bytes: &str) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        path.is_file()
            && fs::read(path)
                .unwrap()
                .windows(bytes.len())
                .any(|part| part == bytes.as_bytes())
    })
}

#[test]
fn without_a_ledger_each_command_says_what_to_do() {
    let machine = Machine::new();
    for words in [
        "list",
        "show 0",
        "verify",
        "export",
        "checkpoint",
        "prove 0",
        "prune --before 1 --yes",
        "erase --principal a --yes",
        "info",
    ] {
        let ended = ledger(&machine, words).ends(1);
        ended.says("ledger-missing");
        assert!(ended.stderr.contains("hint:"), "{ended}");
    }
    machine.configure("[ledger]\noff = true\n");
    let ended = ledger(&machine, "list").ends(1);
    assert!(ended.stderr.contains("off = true"), "{ended}");
    // Showing a ledger does not create one.
    assert!(!place(&machine).exists());
}

#[test]
fn a_list_is_narrowed_by_each_flag() {
    let machine = filled();
    let count = |flags: &str| {
        let limit = if flags.contains("--limit") {
            ""
        } else {
            "--limit 10000"
        };
        let words = format!("list --json {limit} {flags}");
        ledger(&machine, &words).ends(0).json_lines().len()
    };
    let all = count("");
    assert_eq!(all, 306, "with the session's opening and end");
    // The newest hundred rows, including the session's end, with two headers and an empty line.
    assert_eq!(ledger(&machine, "list").ends(0).stdout.lines().count(), 103);
    assert_eq!(count("--limit 7"), 7);
    assert_eq!(count("--code toolward:denied"), 1);
    assert_eq!(count("--mutating"), 1);
    assert_eq!(count("--principal alice"), 3);
    assert_eq!(count("--principal nobody"), 0);
    assert_eq!(count("--tool notes.append"), 304);
    assert_eq!(count("--tool notes"), 0);
    assert_eq!(count("--since 1h"), all);
    assert_eq!(count("--since 2999-01-01"), 0);
    ledger(&machine, "list --since yesterday").ends(2);
    ledger(&machine, "list --code a,b").ends(2);
    let rows = ledger(&machine, "list --json --limit 1500")
        .ends(0)
        .json_lines();
    let seqs: Vec<u64> = rows
        .iter()
        .map(|row| row["seq"].as_u64().unwrap())
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a > b), "newest first, each once");
}

#[test]
fn a_forged_name_stays_on_its_line() {
    let machine = filled();
    let ended = ledger(&machine, "list --limit 1000").ends(0);
    // A header, and an empty line with another header above the two rows of the session.
    assert_eq!(ended.stdout.lines().count(), 309);
    let of_commands = ended.stdout.split("\n\nrows of commands").nth(1).unwrap();
    assert_eq!(of_commands.lines().count(), 3, "{of_commands}");
    assert!(ended.stdout.starts_with("     row  time"), "{ended}");
    // Ids are short, so that a row fits a terminal.
    let whole = invocation(1).to_string();
    assert!(!ended.stdout.contains(&whole), "{ended}");
    assert!(
        ended
            .stdout
            .contains(&format!("…{}", whole.get(28..).unwrap())),
        "{ended}"
    );
    let hidden = |c: char| c == '\u{1b}' || c == '\u{202e}';
    assert!(!ended.stdout.contains(hidden), "{ended}");
    let json = ledger(&machine, "list --json --limit 1000").ends(0);
    assert!(json.stdout.is_ascii());
    let of_mallory = json.json_lines();
    assert!(of_mallory.iter().any(|row| row["principal"] == FORGED));
    assert!(ledger(&machine, "show 3 --json").ends(0).stdout.is_ascii());
    assert!(!ledger(&machine, "show 3").ends(0).stdout.contains(hidden));
}

#[test]
fn a_call_is_shown_with_the_input_that_was_kept() {
    let machine = filled();
    let id = invocation(1);
    let shown = ledger(&machine, &format!("show {id} --json"))
        .ends(0)
        .json();
    let rows = shown["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["record"]["kind"], "started");
    assert_eq!(rows[0]["payloads"]["input"]["value"]["a"], MARK);
    assert_eq!(rows[0]["principal"], "alice");
    assert_eq!(rows[1]["record"]["kind"], "ended");
    let ended = ledger(&machine, "show 1").ends(0);
    assert!(ended.stdout.contains(MARK), "{ended}");
    // Text for people, with the complete id.
    assert!(!ended.stdout.contains("{\"at\""), "{ended}");
    let started = ended.stdout.lines().any(|line| {
        let mut words = line.split_whitespace();
        (words.next(), words.next()) == (Some("kind"), Some("started"))
    });
    assert!(started && ended.stdout.contains(&id.to_string()), "{ended}");
    ledger(&machine, "show 9999").ends(1).says("ledger-no-row");
    let nobody = invocation(0);
    ledger(&machine, &format!("show {nobody}"))
        .ends(1)
        .says("ledger-no-row");
    ledger(&machine, "show nonsense").ends(2);
}

#[test]
fn what_was_tampered_with_is_named_and_the_exit_code_is_1() {
    let machine = filled();
    let sound = ledger(&machine, "verify --json").ends(0).json();
    assert_eq!(sound["ok"], true);
    assert_eq!(sound["rows"], 306);
    assert_eq!(sound["signed"], 306);
    assert_eq!(sound["payloads"], 3);
    let sql = records(&machine);
    sql.execute(
        "UPDATE entry SET record = CAST(replace(CAST(record AS TEXT), 'append', 'delete') AS BLOB) WHERE seq = 3",
        (),
    )
    .unwrap();
    drop(sql);
    let ended = ledger(&machine, "verify").ends(1);
    assert!(ended.stdout.contains("row 3:"), "{ended}");
    let found = ledger(&machine, "verify --json").ends(1).json();
    assert_eq!(found["ok"], false);
    assert_eq!(found["findings"][0]["kind"], "row");
    assert_eq!(found["findings"][0]["seq"], 3);
    let script = crate::support::root().join("tests/verify_ledger.py");
    let agrees = std::process::Command::new("python3")
        .arg(script)
        .arg(place(&machine))
        .output()
        .unwrap();
    assert_eq!(agrees.status.code(), Some(1), "{agrees:?}");
}

#[test]
fn checkpoints_that_were_kept_elsewhere_show_what_was_cut_off() {
    let machine = filled();
    let note = ledger(&machine, "checkpoint").ends(0).stdout;
    assert!(note.starts_with("toolward.ledger/"), "{note}");
    machine.write("notes.txt", format!("{note}\n{note}\n"));
    let key = ledger(&machine, "info --json").ends(0).json();
    let key = key["key"].as_str().unwrap().to_owned();
    let verify = |file: &str| {
        ledger(
            &machine,
            &format!("verify --checkpoints {file} --key {key}"),
        )
    };
    verify("notes.txt").ends(0);
    // An earlier state of the whole ledger with all its files.
    let sql = records(&machine);
    let older: i64 = sql
        .query_row(
            "SELECT max(size) FROM checkpoint WHERE size < 306",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let edge: Vec<u8> = sql
        .query_row(
            "SELECT edge FROM checkpoint WHERE size = ?1",
            [older],
            |row| row.get(0),
        )
        .unwrap();
    sql.execute("DELETE FROM entry WHERE seq >= ?1", [older])
        .unwrap();
    sql.execute("DELETE FROM checkpoint WHERE size > ?1", [older])
        .unwrap();
    sql.execute("UPDATE head SET size = ?1, edge = ?2", (older, edge))
        .unwrap();
    drop(sql);
    ledger(&machine, "verify").ends(0);
    let ended = verify("notes.txt").ends(1);
    assert!(ended.stdout.contains("306 were signed"), "{ended}");
    machine.write("forged.txt", note.replace("\n306\n", "\n305\n"));
    let ended = verify("forged.txt").ends(1);
    assert!(ended.stdout.contains("note 1: not signed"), "{ended}");
    machine.write("empty.txt", "");
    verify("empty.txt").ends(2).says("file-unreadable");
    ledger(&machine, "verify --key toolward.ledger/00+00+00").ends(2);
}

#[test]
fn proofs_and_copies_are_handed_out() {
    let machine = filled();
    let proof = ledger(&machine, &format!("prove {}", invocation(1))).ends(0);
    assert!(
        proof
            .stdout
            .starts_with("c2sp.org/tlog-proof@v1\nindex 2\n"),
        "{proof}"
    );
    ledger(&machine, "prove 306")
        .ends(1)
        .says("ledger-no-checkpoint");
    ledger(&machine, "export --tiles tiles").ends(0);
    assert!(machine.path("tiles/checkpoint").exists());
    assert!(machine.path("tiles/tile/0").exists());
    ledger(&machine, "export --tiles tiles")
        .ends(1)
        .says("output-exists");
    let exported = ledger(&machine, "export").ends(0);
    assert!(exported.stdout.is_ascii());
    let lines = exported.json_lines();
    assert_eq!(lines.len(), 306);
    assert_eq!(lines[1]["record"]["kind"], "started");
    assert_eq!(lines[1]["seq"], 1);
}

#[test]
fn what_is_erased_is_in_no_file_and_the_rest_still_holds() {
    let machine = filled();
    assert!(holds(&place(&machine), MARK));
    ledger(&machine, "erase --principal alice")
        .ends(4)
        .says("deletion-unconfirmed");
    ledger(&machine, "erase --yes").ends(2);
    ledger(&machine, "erase --principal alice --before 1d --yes").ends(2);
    assert!(holds(&place(&machine), MARK), "nothing yet");
    let erased = ledger(&machine, "erase --principal alice --json --yes")
        .ends(0)
        .json();
    assert_eq!(erased["payloads"], 2);
    assert!(!holds(&place(&machine), "alice"));
    ledger(&machine, "erase --before 0s --yes").ends(0);
    let id = invocation(3);
    ledger(&machine, &format!("erase --invocation {id} --yes")).ends(0);
    let all = ledger(&machine, "list --principal alice --json").ends(0);
    assert_eq!(all.json_lines().len(), 0);
    let ended = ledger(&machine, "show 1").ends(0);
    assert!(ended.stdout.contains("erased"), "{ended}");
    ledger(&machine, "verify").ends(0);
}

#[test]
fn pruned_records_are_gone_and_checkpoints_still_hold() {
    let machine = filled();
    ledger(&machine, "prune --before 300")
        .ends(4)
        .says("deletion-unconfirmed");
    let pruned = ledger(&machine, "prune --before 300 --json --yes")
        .ends(0)
        .json();
    assert_eq!(pruned["pruned_before"], 256);
    let found = ledger(&machine, "verify --json").ends(0).json();
    assert_eq!(found["pruned"], 256);
    let shown = ledger(&machine, "show 1").ends(0);
    assert!(shown.stdout.contains("pruned"), "{shown}");
    assert!(ledger(&machine, "export").ends(0).json_lines()[0]["record"].is_null());
}

#[test]
fn a_ledger_is_found_by_configuration_or_by_name() {
    let machine = filled();
    fs::rename(place(&machine), machine.path("calls")).unwrap();
    ledger(&machine, "list").ends(1).says("ledger-missing");
    let info = ledger(&machine, "info --json --directory calls")
        .ends(0)
        .json();
    assert_eq!(info["rows"], 306);
    machine.write(
        "t.toml",
        "[ledger]\ndirectory = \"calls\"\nkeep = \"none\"\ncheckpoints = \"signed\"\n",
    );
    let info = ledger(&machine, "info --json --config t.toml")
        .ends(0)
        .json();
    assert_eq!(info["keep"], "none");
    ledger(&machine, "erase --before 0s --yes --config t.toml").ends(0);
    ledger(&machine, "checkpoint --config t.toml").ends(0);
    assert!(machine.text("signed").starts_with("toolward.ledger/"));
    let found = ledger(&machine, "verify --json --config t.toml")
        .ends(0)
        .json();
    assert_eq!(found["checkpoints"], 1);
}

//! The process that records calls for `call` and `serve`.

mod approved;
mod crash;
mod given;
mod hanging;
mod places;
mod refused;
mod reloaded;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp::raw::{PATIENCE, Raw};
use crate::support::{Machine, Run};

/// The key that the examples are signed with.
const KEY: &str = "key:cd841c22fb88b5562fa3e6a5fdd74be5dd34deb54cf96b6b16c43d6c4d4f74a5";
pub(crate) const WITH: &str = "--trust-key example.pub.pem --policy-file policy.toml";
const COUNT: &str = r#"{"action":"add","counter":"visits"}"#;

/// A machine with a tool that reads, and one that changes something and needs no approval.
pub(crate) fn machine() -> Machine {
    let machine = Machine::with_example("text-stats");
    machine.add_example("kv-counter");
    machine.write(
        "policy.toml",
        format!(
            "[[grant]]\npublisher = \"{KEY}\"\ntool = \"kv.counter\"\n\
             mutates = [\"database:counters\"]\npreapproved = true\n"
        ),
    );
    machine
}

fn directory(machine: &Machine) -> PathBuf {
    machine.home().join(".local/state/toolward/ledger")
}

fn call(machine: &Machine, tool: &str, bundle: &str, input: &str) -> Run {
    let words = format!("call {tool} --bundle {bundle}.toolbundle {WITH} --input");
    machine.toolward(&words).arg(input)
}

/// Returns the rows, oldest first, as `ledger list` shows them.
fn rows(machine: &Machine) -> Vec<Value> {
    let mut rows = machine.toolward("ledger list --json").ends(0).json_lines();
    rows.sort_by_key(|row| row["seq"].as_u64());
    rows
}

fn kinds(machine: &Machine) -> Vec<String> {
    let rows = rows(machine);
    let kinds = rows
        .iter()
        .map(|row| row["record"]["kind"].as_str().unwrap());
    kinds.map(str::to_owned).collect()
}

#[track_caller]
fn verifies(machine: &Machine) {
    machine.toolward("ledger verify").ends(0);
}

fn serve(machine: &Machine) -> Raw {
    serve_with(machine, "")
}

fn serve_with(machine: &Machine, flags: &str) -> Raw {
    let words = format!(
        "serve --bundle text-stats.toolbundle --bundle kv-counter.toolbundle {WITH} {flags}"
    );
    Raw::open(machine.toolward(&words).into_command(), json!({}))
}

/// Returns the recorder that a process has started.
fn recorder_of(process: u32) -> Option<u32> {
    helper_of(process, "internal-recorder")
}

/// Returns the helper with this name that a thread of a process has started.
pub(crate) fn helper_of(process: u32, name: &str) -> Option<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let children =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    let children = children.iter().flat_map(|of| of.split_whitespace());
    let mut children = children.map(|id| id.parse().unwrap());
    children.find(|id| {
        let command = fs::read_to_string(format!("/proc/{id}/cmdline"));
        command.is_ok_and(|command| command.contains(name))
    })
}

pub(crate) fn signal(machine: &Machine, name: &str, process: u32) {
    let mut kill = machine.program("kill");
    kill.args([&format!("-{name}"), &process.to_string()]);
    Run::new(kill).ends(0);
}

/// Waits until a process has ended, and returns whether it has. A process that was not collected
/// counts as ended.
fn gone(process: u32) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

fn code(answer: &Value) -> String {
    answer["result"].to_string()
}

#[test]
fn a_call_leaves_its_rows_and_one_that_changes_something_its_input() {
    let machine = machine();
    call(
        &machine,
        "text.stats",
        "text-stats",
        r#"{"text":"One two."}"#,
    )
    .ends(0);
    assert_eq!(kinds(&machine), ["opened", "ended", "closed"]);
    call(&machine, "kv.counter", "kv-counter", COUNT).ends(0);
    let all = rows(&machine);
    assert_eq!(
        kinds(&machine)[3..],
        ["opened", "started", "ended", "closed"]
    );
    let started = machine.toolward("ledger show 4 --json").ends(0).json();
    let shown = started.to_string();
    assert!(
        shown.contains("kv.counter@") && shown.contains("visits"),
        "{shown}"
    );
    assert!(shown.contains("\"grant:"), "{shown}");
    let opened = machine.toolward("ledger show 3 --json").ends(0).json();
    let opened = opened.to_string();
    assert!(opened.contains(r#""policy":""#), "{opened}");
    assert!(opened.contains(r#""bundles":[""#), "{opened}");
    assert_eq!(all.len(), 7);
    verifies(&machine);
}

#[test]
fn a_ledger_that_is_off_is_not_made_and_doctor_says_so() {
    let machine = machine();
    machine.configure("[ledger]\noff = true\n");
    call(&machine, "kv.counter", "kv-counter", COUNT).ends(0);
    assert!(!directory(&machine).exists());
    let mut doctor = machine.toolward("doctor --json").end();
    doctor.stderr.clear();
    let checks = doctor.json();
    let checks = checks["checks"].as_array().unwrap();
    let ledger = checks.iter().find(|check| check["name"] == "ledger");
    assert_eq!(ledger.unwrap()["state"], "note");
    let message = ledger.unwrap()["message"].as_str().unwrap();
    assert!(message.contains("off = true"), "{message}");
}

#[test]
fn where_the_ledger_is_refused_calls_that_change_something_are_not_made() {
    let machine = machine();
    call(&machine, "kv.counter", "kv-counter", COUNT).ends(0);
    fs::remove_file(directory(&machine).join("key.pem")).unwrap();
    let ended = call(&machine, "kv.counter", "kv-counter", COUNT).ends(1);
    assert!(ended.stderr.contains("toolward:unrecorded"), "{ended}");
    ended.warns("ledger-key");
    let read = call(&machine, "text.stats", "text-stats", r#"{"text":"One"}"#).ends(0);
    read.warns("ledger-key");
    // The counter was not changed.
    fs::remove_dir_all(directory(&machine)).unwrap();
    let value = call(&machine, "kv.counter", "kv-counter", COUNT)
        .arg("--json")
        .ends(0)
        .json();
    assert_eq!(value["value"]["counters"][0]["value"], 2, "{value}");
}

#[test]
fn calls_over_mcp_are_recorded_and_the_session_is_closed_with_the_server() {
    let machine = machine();
    let mut raw = serve_with(&machine, "--log-format text");
    raw.call("read", "text.stats", &json!({"text": "One two."}));
    assert_eq!(raw.answer("read")["result"]["isError"], false);
    raw.call(
        "count",
        "kv.counter",
        &json!({"action": "add", "counter": "visits"}),
    );
    assert_eq!(raw.answer("count")["result"]["isError"], false);
    let recorder = recorder_of(raw.process()).expect("there is a recorder");
    let said = raw.said();
    assert!(gone(recorder));
    // A reader of the log has the checkpoint.
    assert!(said.contains("toolward.ledger/"), "{said}");
    let mut kinds = kinds(&machine);
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    // The row of the read-only call may follow the other call's first row.
    kinds[1..4].sort();
    assert_eq!(kinds, ["opened", "ended", "ended", "started", "closed"]);
    verifies(&machine);
}

#[test]
fn a_server_that_a_client_starts_ends_with_a_short_line() {
    let machine = machine();
    let mut raw = serve(&machine);
    raw.call(
        "count",
        "kv.counter",
        &json!({"action": "add", "counter": "visits"}),
    );
    assert_eq!(raw.answer("count")["result"]["isError"], false);
    let said = raw.said();
    assert!(said.contains("the ledger signed its"), "{said}");
    assert!(!said.contains("toolward.ledger/"), "{said}");
    let longest = said.lines().map(|line| line.chars().count()).max();
    assert!(longest < Some(200), "{said}");
}

#[test]
fn a_recorder_that_is_killed_ends_the_server_and_leaves_what_was_open_abandoned_once() {
    let machine = machine();
    let mut raw = serve(&machine);
    raw.call(
        "one",
        "kv.counter",
        &json!({"action": "add", "counter": "visits"}),
    );
    assert_eq!(raw.answer("one")["result"]["isError"], false);
    let recorder = recorder_of(raw.process()).expect("there is a recorder");
    // The start of this call is not confirmed, since the recorder is stopped.
    signal(&machine, "STOP", recorder);
    raw.call(
        "two",
        "kv.counter",
        &json!({"action": "add", "counter": "visits"}),
    );
    std::thread::sleep(Duration::from_millis(300));
    signal(&machine, "KILL", recorder);
    let answer = raw.answer("two");
    assert!(code(&answer).contains("toolward:unrecorded"), "{answer}");
    let ended = raw.ended(PATIENCE).expect("it ends without a recorder");
    assert_eq!(ended.code(), Some(1), "{ended}");
    call(&machine, "kv.counter", "kv-counter", COUNT).ends(0);
    verifies(&machine);
    let rows = kinds(&machine);
    let count = |kind: &str| rows.iter().filter(|row| *row == kind).count();
    assert_eq!(count("started"), count("ended") + count("abandoned"));
    call(&machine, "text.stats", "text-stats", r#"{"text":"One"}"#).ends(0);
    let again = kinds(&machine);
    let abandoned = again.iter().filter(|row| *row == "abandoned").count();
    assert_eq!(abandoned, count("abandoned"));
}

#[test]
fn a_server_that_is_killed_leaves_a_recorder_that_closes_the_session_and_ends() {
    let machine = machine();
    let mut raw = serve(&machine);
    raw.call(
        "one",
        "kv.counter",
        &json!({"action": "add", "counter": "visits"}),
    );
    assert_eq!(raw.answer("one")["result"]["isError"], false);
    let recorder = recorder_of(raw.process()).expect("there is a recorder");
    signal(&machine, "KILL", raw.process());
    assert!(gone(recorder), "it does not outlive the server");
    let rows = rows(&machine);
    let closed = rows.last().unwrap();
    assert_eq!(closed["record"]["kind"], "closed");
    let shown = format!("ledger show {} --json", closed["seq"]);
    let shown = machine.toolward(&shown).ends(0).json().to_string();
    assert!(shown.contains("host-gone"), "{shown}");
    verifies(&machine);
}

#[test]
fn the_recorder_has_three_streams_and_its_ledger_open_and_nothing_else() {
    let machine = machine();
    let mut raw = serve(&machine);
    raw.call(
        "one",
        "kv.counter",
        &json!({"action": "add", "counter": "visits"}),
    );
    assert_eq!(raw.answer("one")["result"]["isError"], false);
    let recorder = recorder_of(raw.process()).expect("there is a recorder");
    let fds = fs::read_dir(format!("/proc/{recorder}/fd")).unwrap();
    let ledger = directory(&machine).canonicalize().unwrap();
    for fd in fds {
        let fd = fd.unwrap();
        let number: u32 = fd.file_name().to_str().unwrap().parse().unwrap();
        let opened = fs::read_link(fd.path()).unwrap();
        let shown = opened.display().to_string();
        assert!(
            number <= 2 || opened.starts_with(&ledger) || shown.starts_with("socket:"),
            "{number}: {shown}"
        );
    }
    let environment = fs::read(format!("/proc/{recorder}/environ")).unwrap();
    assert!(environment.is_empty());
    let status = fs::read_to_string(format!("/proc/{recorder}/status")).unwrap();
    assert!(status.contains("Seccomp:\t2"), "{status}");
    // The server has no file of the ledger open.
    let served = fs::read_dir(format!("/proc/{}/fd", raw.process())).unwrap();
    for fd in served {
        let opened = fs::read_link(fd.unwrap().path()).unwrap_or_default();
        assert!(!opened.starts_with(&ledger), "{}", opened.display());
    }
}

#[test]
fn the_recorder_appends_checkpoints_to_the_operators_file_and_refuses_an_older_ledger() {
    let machine = machine();
    let kept = machine.path("kept/signed");
    fs::create_dir(kept.parent().unwrap()).unwrap();
    machine.configure(&format!("[ledger]\ncheckpoints = {kept:?}\n"));
    let (ledger, older) = (directory(&machine), machine.path("older"));
    let read = r#"{"text":"One two."}"#;
    call(&machine, "text.stats", "text-stats", read).ends(0);
    fs::create_dir(&older).unwrap();
    for entry in fs::read_dir(&ledger).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), older.join(entry.file_name())).unwrap();
        }
    }
    call(&machine, "text.stats", "text-stats", read).ends(0);
    // One checkpoint at the end of each session: at three rows, and at six rows.
    let notes = fs::read_to_string(&kept).unwrap();
    let lines: Vec<&str> = notes.lines().collect();
    let sizes: Vec<&str> = lines
        .windows(2)
        .filter(|pair| pair[0].starts_with("toolward.ledger/"))
        .map(|pair| pair[1])
        .collect();
    assert_eq!(sizes, ["3", "6"], "{notes}");
    let found = machine.toolward("ledger verify --json").ends(0).json();
    assert_eq!(found["checkpoints"], 2, "{found}");
    // An earlier state of the whole ledger, including the key.
    fs::rename(&ledger, machine.path("newest")).unwrap();
    fs::rename(&older, &ledger).unwrap();
    fs::set_permissions(&ledger, fs::Permissions::from_mode(0o700)).unwrap();
    let refused = call(&machine, "kv.counter", "kv-counter", COUNT).ends(1);
    assert!(refused.stderr.contains("toolward:unrecorded"), "{refused}");
    call(&machine, "text.stats", "text-stats", read).ends(0);
}

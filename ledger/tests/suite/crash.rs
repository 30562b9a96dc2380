//! Processes that are killed while they record calls, alone and three at once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolward_ledger::{Durability, LedgerOptions, Recorder, Writer};

use crate::support::{
    Place, call, ended, invocation, long, opened, outcome, queued, read_only, started,
};

const TASK: &str = "LEDGER_TEST_TASK";
const FOLDER: &str = "LEDGER_TEST_FOLDER";
/// The time within which the ledger promises to write rows that are not awaited. A busy machine
/// adds to it.
const GATHER: Duration = Duration::from_millis(20);
/// Threads that measure how much time a busy machine adds.
const PROBES: u64 = 2;
/// The writer may take this many times as long as the slowest probe, since it does not run in step
/// with the probes.
const ALLOWANCE: u128 = 4;
/// Tasks that make calls at once.
const TASKS: u64 = 8;

/// The main function of the other process. By itself, it tests nothing.
#[test]
#[ignore = "started by other tests"]
fn child() {
    let (Some(task), Some(folder)) = (std::env::var_os(TASK), std::env::var_os(FOLDER)) else {
        return;
    };
    let (task, folder) = (task.into_string().unwrap(), PathBuf::from(folder));
    match task.split_once(' ') {
        Some(("calls", number)) => make_calls(&folder, number.parse().unwrap()),
        Some(("reads", number)) => read_only_calls(&folder, number.parse().unwrap()),
        Some(("given", number)) => crate::given::race(&folder, number.parse().unwrap()),
        Some(("full", _)) => crate::disks::on_a_full_disk(&folder),
        _ => panic!("no such task: {task}"),
    }
}

/// The command that runs this binary again, for one task.
pub(crate) fn start(task: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", "crash::child"]);
    command.env(TASK, task).env(FOLDER, folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn micros() -> u128 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_micros()
}

/// Prints a line in a single write, so that lines are complete.
fn say(what: &str, id: u64) {
    let line = format!("{what} {id} {}\n", micros());
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

/// Makes calls until it is killed. All are read-only, since an awaited row would make the writer
/// write earlier. In the meantime, probes do the same as the writer: they wake up after a while,
/// and write.
fn read_only_calls(folder: &Path, process: u64) {
    let writer = Writer::open(LedgerOptions::new(folder.join("ledger")), opened()).unwrap();
    say("\nready", 0);
    std::thread::scope(|scope| {
        for task in 0..TASKS {
            let writer = &writer;
            scope.spawn(move || {
                for number in 0.. {
                    let id = (process * TASKS + task) << 32 | number;
                    queued(writer, read_only(invocation(id)));
                    say("queued", id);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        for probe in 0..PROBES {
            scope.spawn(move || {
                let path = folder.join(format!("probe-{process}-{probe}"));
                let mut file = std::fs::File::create(path).unwrap();
                for number in 0.. {
                    let id = probe << 32 | number;
                    say("begun", id);
                    std::thread::sleep(GATHER);
                    file.write_all(&[0; 600]).unwrap();
                    file.sync_data().unwrap();
                    say("done", id);
                }
            });
        }
    });
}

/// Makes calls until it is killed: read-only calls, calls that change a file, and nested calls.
fn make_calls(folder: &Path, process: u64) {
    let writer = Writer::open(LedgerOptions::new(folder.join("ledger")), opened()).unwrap();
    say("\nready", 0);
    std::thread::scope(|scope| {
        for task in 0..TASKS {
            let writer = &writer;
            scope.spawn(move || {
                for number in 0.. {
                    let id = (process * TASKS + task) << 32 | number;
                    match number % 4 {
                        0 => change(writer, folder, id, None),
                        1 => {
                            // A read-only call whose tool makes a call that changes something.
                            change(writer, folder, id | 1 << 24, Some(id));
                            queued(writer, read_only(invocation(id)));
                        }
                        _ => {
                            queued(writer, read_only(invocation(id)));
                            say("queued", id);
                        }
                    }
                    std::thread::sleep(Duration::from_micros(300));
                }
            });
        }
    });
}

fn change(writer: &Writer, folder: &Path, id: u64, parent: Option<u64>) {
    let mut start = started(invocation(id));
    if let Some(parent) = parent {
        let mut call = call(true);
        call.parent = Some(invocation(parent));
        let body = toolward_ledger::record::Started {
            call,
            invocation: invocation(id),
        };
        start =
            toolward_ledger::Entry::new(toolward_ledger::record::Event::Started(Box::new(body)));
    }
    writer.append(start, Durability::Disk).wait().unwrap();
    std::fs::write(folder.join("effects").join(id.to_string()), b"").unwrap();
    assert!(outcome(None).code.is_none());
    writer
        .append(ended(invocation(id)), Durability::Disk)
        .wait()
        .unwrap();
    say("returned", id);
}

/// The output of a process: the action, call and time of each line; and the time when the process
/// was killed.
type Said = (Vec<(String, u64, u128)>, u128);

/// A process that makes calls, and reports them until it is killed.
struct Process(Child);

impl Process {
    fn start(place: &Place, task: &str, number: u64) -> Self {
        let folder = place.directory.path();
        Self(start(&format!("{task} {number}"), folder).spawn().unwrap())
    }

    /// Kills the process after a while. Returns its output, and the time when it was killed.
    fn kill(mut self, after: Duration) -> Said {
        let mut lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        assert!(
            lines
                .by_ref()
                .any(|line| line.unwrap().starts_with("ready"))
        );
        let reader = std::thread::spawn(move || {
            let lines = lines.map_while(Result::ok);
            lines
                .filter_map(|line| {
                    let mut words = line.split(' ');
                    let mut next = || words.next().map(str::to_owned);
                    Some((next()?, next()?.parse().ok()?, next()?.parse().ok()?))
                })
                .collect()
        });
        std::thread::sleep(after);
        let killed = micros();
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        (reader.join().unwrap(), killed)
    }
}

/// The number of rows of each kind for each call.
fn rows(place: &Place) -> BTreeMap<u64, BTreeMap<String, u32>> {
    let mut rows: BTreeMap<u64, BTreeMap<String, u32>> = BTreeMap::new();
    for line in place.lines() {
        let line: Value = serde_json::from_str(&line).unwrap();
        if let Some(id) = line["body"]["invocation"].as_str() {
            let digits = id.replace('-', "");
            let id = u64::from_str_radix(digits.get(16..).unwrap(), 16).unwrap();
            *rows
                .entry(id)
                .or_default()
                .entry(line["kind"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    rows
}

fn check(place: &Place, said: &[Said]) {
    // The next process that opens the ledger ends the unfinished calls.
    drop(place.open());
    drop(place.open());
    let verified = place.verify();
    assert!(verified.holds(), "{verified:?}");
    let rows = rows(place);
    let has = |id: u64, kind: &str| rows.get(&id).is_some_and(|kinds| kinds.contains_key(kind));
    for (id, kinds) in &rows {
        assert!(kinds.values().all(|count| *count == 1), "{id:x}: {kinds:?}");
        if kinds.contains_key("started") {
            assert_ne!(
                kinds.contains_key("ended"),
                kinds.contains_key("abandoned"),
                "{id:x}: {kinds:?}"
            );
        } else {
            assert!(!kinds.contains_key("abandoned"), "{id:x}: {kinds:?}");
        }
    }
    for effect in std::fs::read_dir(place.directory.path().join("effects")).unwrap() {
        let id = effect
            .unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!(has(id, "started"), "{id:x}");
    }
    let mut seen = BTreeSet::new();
    for (what, id, _) in said.iter().flat_map(|(said, _)| said) {
        assert!(seen.insert((what, id)));
        if what == "returned" {
            assert!(has(*id, "started") && has(*id, "ended"), "{id:x}");
        }
    }
}

/// A time that differs from round to round.
fn after(round: u64) -> Duration {
    Duration::from_micros(20_000 + round * 7919 % 130_000)
}

#[test]
fn a_process_that_is_killed_leaves_a_ledger_that_holds_with_all_that_was_promised() {
    let rounds = if long() { 300 } else { 24 };
    let (mut place, mut returned) = (Place::new(), 0);
    for round in 0..rounds {
        // Some rounds continue with the ledger of the previous round.
        if round % 4 == 0 {
            place = Place::new();
            std::fs::create_dir(place.directory.path().join("effects")).unwrap();
        }
        let (said, killed) = Process::start(&place, "calls", round).kill(after(round));
        returned += said.iter().filter(|(what, ..)| what == "returned").count();
        check(&place, &[(said, killed)]);
    }
    assert!(returned > 0);
}

#[test]
fn three_processes_that_are_killed_leave_one_ledger_without_a_fork() {
    let rounds = if long() { 100 } else { 6 };
    for round in 0..rounds {
        let place = Place::new();
        std::fs::create_dir(place.directory.path().join("effects")).unwrap();
        let processes: Vec<_> = (0..3)
            .map(|number| Process::start(&place, "calls", number))
            .collect();
        let killers = processes.into_iter().enumerate().map(|(number, process)| {
            std::thread::spawn(move || process.kill(after(round * 3 + number as u64)))
        });
        let killers: Vec<_> = killers.collect();
        let said: Vec<_> = killers
            .into_iter()
            .map(|killer| killer.join().unwrap())
            .collect();
        check(&place, &said);
    }
}

/// The longest time of a probe, in microseconds. A probe that had not ended counts until the
/// process was killed.
fn slowest_probe((said, killed): &Said) -> u128 {
    let done: BTreeMap<u64, u128> = said
        .iter()
        .filter(|(what, ..)| what == "done")
        .map(|(_, id, at)| (*id, *at))
        .collect();
    let begun = said.iter().filter(|(what, ..)| what == "begun");
    let took = begun.map(|(_, id, at)| done.get(id).unwrap_or(killed).saturating_sub(*at));
    took.max().unwrap()
}

#[test]
fn of_read_only_calls_only_those_are_lost_that_were_made_a_moment_before_the_end() {
    let rounds = if long() { 60 } else { 6 };
    let (mut written, mut lost, mut late) = (0, 0, 0);
    let mut life = Duration::from_millis(500);
    for round in 0..rounds {
        let place = Place::new();
        let after = life + Duration::from_millis(round * 79 % 300);
        let ended = Process::start(&place, "reads", round).kill(after);
        drop(place.open());
        let rows = rows(&place);
        let allowed = ALLOWANCE * slowest_probe(&ended);
        let (said, killed) = &ended;
        // On a slow machine, processes live longer.
        if Duration::from_micros(allowed.try_into().unwrap()) * 2 > life {
            life *= 2;
        }
        for (_, id, at) in said.iter().filter(|(what, ..)| what == "queued") {
            let age = killed.saturating_sub(*at);
            match rows.contains_key(id) {
                true => written += u32::from(age > allowed),
                false if age > allowed => late += 1,
                false => lost += 1,
            }
        }
    }
    println!("{written} old ones are written, {late} are lost as {lost} young ones are");
    assert!(written > 0, "no row was old enough for the check");
    // The machine may pause the writer but not the probe, so a few losses are allowed. A writer
    // that does not write in time loses most rows.
    assert!(
        late * 4 <= written,
        "{late} old ones are lost, {written} are written"
    );
}

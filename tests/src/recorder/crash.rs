//! Servers and recorders that are killed while eight calls run: the tests check what their ledger
//! then contains.

mod found;
mod session;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::{Machine, long};

use found::Found;
use session::{Killed, Kind, Seen, Session};

/// The tools: one reads, one makes a file, and one calls the tool that makes a file.
const TOOLS: [(&str, &str); 3] = [
    ("crash.read", ""),
    (
        "crash.write",
        "idempotent: false\nmutates: [\"workspace:/files\"]\napproval: on-mutate\n",
    ),
    ("crash.outer", "requires:\n  tools: [crash.write]\n"),
];

/// A machine with these tools, whose ledger keeps all inputs.
fn machine() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "crash");
    fs::remove_dir_all(machine.path("crash/tools")).unwrap();
    let mut driver = machine.text("crash/drivers/hostile/DRIVER.md");
    let implements = driver.find("implements:").unwrap();
    driver.truncate(implements);
    driver += "implements:\n";
    for (tool, more) in TOOLS {
        driver += &format!("  - tool: {tool}\n    version: \"^1.0.0\"\n");
        machine.write(
            &format!("crash/tools/{tool}/TOOL.md"),
            format!(
                "---\nname: Crash\nid: {tool}\ndescription: Does what it is told.\nversion: 1.0.0\n\
                 inputs:\n  type: object\noutputs:\n  type: object\n  properties:\n    \
                 did: {{ type: string }}\n  required: [did]\n{more}---\n"
            ),
        );
    }
    machine.write("crash/drivers/hostile/DRIVER.md", driver + "---\n");
    fs::create_dir(files(&machine)).unwrap();
    let publisher = format!(
        "dev:{}",
        machine.path("crash").canonicalize().unwrap().display()
    );
    machine.configure(&format!(
        "[[workspace]]\npath = \"/files\"\ndirectory = {:?}\n\
         [[grant]]\npublisher = {publisher:?}\npreapproved = true\nrequires = [\"tool:crash.write\"]\n\
         mutates = [\"workspace:/files\"]\n[ledger]\nkeep = \"all\"\n",
        files(&machine)
    ));
    machine
}

/// Returns the directory in which the tools make files.
fn files(machine: &Machine) -> PathBuf {
    machine.path("files")
}

/// A time that differs from round to round.
fn after(round: u64) -> Duration {
    Duration::from_millis(20 + round * 157 % 600)
}

/// Rows that are older than this are on the disk in most rounds, even those of read-only calls.
const OLD: Duration = Duration::from_millis(150);

/// The results of all rounds of a test.
#[derive(Debug, Default)]
struct Sum {
    mutating: usize,
    nested: usize,
    read_only: usize,
    unrecorded: usize,
    abandoned: usize,
    /// The ages of the answers to read-only calls without a row, when the process was killed.
    lost: Vec<Duration>,
    /// How many rounds ended with read-only calls, and how many of these lost an old row.
    only_read: (usize, usize),
}

impl Sum {
    fn check(&mut self, machine: &Machine, seen: &[Seen]) {
        let found = Found::of(machine);
        found.check_rows();
        found.check_files(&files(machine));
        for seen in seen {
            let lost = found.check_seen(seen);
            if seen.only_read {
                self.only_read.0 += 1;
                self.only_read.1 += usize::from(lost.iter().any(|age| *age > OLD));
            }
            self.lost.extend(lost);
            self.mutating += seen.results(Kind::Write).count();
            self.nested += seen.results(Kind::Nested).count();
            self.read_only += seen.results(Kind::Read).count();
            self.unrecorded += seen.unrecorded().count();
            for path in seen.unrecorded() {
                assert!(!files(machine).join(path).exists(), "{path} was made");
            }
        }
        self.abandoned += found.abandoned();
    }

    fn show(&mut self, what: &str) {
        self.lost.sort();
        let Self {
            mutating,
            nested,
            read_only,
            unrecorded,
            abandoned,
            lost,
            only_read: (only_read, old),
        } = self;
        println!(
            "{what}: answers to {mutating} calls that change something, {nested} that call such a tool and {read_only} \
             that read; {unrecorded} unrecorded; {abandoned} abandoned; {} rows of reading calls missing, the oldest \
             {:?} old; old ones in {old} of {only_read} rounds of reading",
            lost.len(),
            lost.last()
        );
        // A few rounds are not enough to judge times.
        assert!(!long() || *old * 2 <= *only_read);
        assert!(self.has_answers());
    }

    /// Whether calls of each kind were answered.
    fn has_answers(&self) -> bool {
        self.mutating > 0 && self.nested > 0 && self.read_only > 0
    }
}

/// Whether to run another round after `done`. On a busy machine a process may be killed before it
/// has answered a call of each kind.
fn more(done: u64, count: u64, has_all: bool) -> bool {
    done < count || (!has_all && done < count + 20)
}

/// Kills one process in each round. `has_all` states whether the rounds covered every kind. Each
/// ledger is used for three rounds.
fn rounds(
    what: &str,
    count: u64,
    killed: impl Fn(u64) -> Killed,
    has_all: impl Fn(&Sum) -> bool,
) -> Sum {
    let (mut place, mut sum) = (machine(), Sum::default());
    let mut round = 0;
    while more(round, count, has_all(&sum)) {
        if round % 3 == 0 {
            place = machine();
        }
        let mut session = Session::start(&place, round);
        let mut time = after(round);
        if round % 4 >= 2 {
            session = session.only_reading();
            time += OLD * 2;
        }
        let seen = session.run(time, killed(round));
        sum.check(&place, &[seen]);
        round += 1;
    }
    sum.show(what);
    sum
}

#[test]
fn a_server_that_is_killed_leaves_a_ledger_that_holds_with_all_that_its_client_saw() {
    let count = if long() { 300 } else { 4 };
    let killed = |round| match round % 2 {
        0 => Killed::Both,
        _ => Killed::Server,
    };
    rounds("server killed", count, killed, Sum::has_answers);
}

#[test]
fn a_recorder_that_is_killed_leaves_the_same_and_nothing_changes_unrecorded() {
    let count = if long() { 300 } else { 3 };
    let has_all = |sum: &Sum| sum.has_answers() && sum.unrecorded > 0;
    let sum = rounds("recorder killed", count, |_| Killed::Recorder, has_all);
    assert!(sum.unrecorded > 0, "{sum:?}");
}

#[test]
fn three_servers_that_are_killed_leave_one_ledger_without_a_fork() {
    let (rounds, mut sum) = (if long() { 100 } else { 1 }, Sum::default());
    let mut round = 0;
    while more(round, rounds, sum.has_answers()) {
        let place = machine();
        let sessions: Vec<_> = (0..3)
            .map(|number| Session::start(&place, number))
            .collect();
        let seen: Vec<Seen> = std::thread::scope(|scope| {
            let killers = sessions.into_iter().zip(0..).map(|(session, number)| {
                let killed = match (round + number) % 3 {
                    0 => Killed::Recorder,
                    1 => Killed::Server,
                    _ => Killed::Both,
                };
                scope.spawn(move || session.run(after(round * 3 + number), killed))
            });
            let killers: Vec<_> = killers.collect();
            let killers = killers.into_iter();
            killers.map(|killer| killer.join().unwrap()).collect()
        });
        sum.check(&place, &seen);
        round += 1;
    }
    sum.show("three servers");
}

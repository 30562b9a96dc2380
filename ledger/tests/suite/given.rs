//! Ids that callers gave their calls: a second call with an id does not run.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolward_ledger::record::{Hex, Tool};
use toolward_ledger::{Durability, Error, Given, LedgerOptions, Recorder, Writer};

use crate::support::{Place, durable, invocation, long, opened, started};

fn given(principal: &str, input: u8) -> Given {
    Given {
        principal: Arc::from(principal),
        tool: Tool::parse("text.stats@1").unwrap(),
        id: invocation(77),
        input: Hex([input; 32]),
    }
}

#[test]
fn an_id_runs_once_for_its_principal_and_tool() {
    let place = Place::new();
    let writer = place.open();
    let ask = |given: Given| match writer.given(given).wait() {
        Err(Error::Given { same_input }) => Some(same_input),
        answer => {
            answer.unwrap();
            None
        }
    };
    assert_eq!(ask(given("alice", 1)), None);
    durable(&writer, started(invocation(1)).given(given("alice", 1))).unwrap();
    assert_eq!(ask(given("alice", 1)), Some(true));
    assert_eq!(ask(given("alice", 2)), Some(false));
    assert_eq!(ask(given("bob", 1)), None);
    let other = Given {
        tool: Tool::parse("text.stats@2").unwrap(),
        ..given("alice", 1)
    };
    assert_eq!(ask(other), None);
    let again = durable(&writer, started(invocation(2)).given(given("alice", 1)));
    assert!(
        matches!(again, Err(Error::Given { same_input: true })),
        "{again:?}"
    );
    let again = durable(&writer, started(invocation(2)).given(given("alice", 9)));
    assert!(
        matches!(again, Err(Error::Given { same_input: false })),
        "{again:?}"
    );
    assert_eq!(place.count("started"), 1);
    writer.close().unwrap();
    // Another process knows the id, too, and the file contains neither the name nor the digest.
    let writer = place.open();
    let answer = writer.given(given("alice", 1)).wait();
    assert!(matches!(answer, Err(Error::Given { same_input: true })));
    let (principal, input): (Vec<u8>, Vec<u8>) = place
        .records()
        .query_row("SELECT principal, input FROM given", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_ne!(input, [1; 32]);
    assert!(!String::from_utf8_lossy(&principal).contains("alice"));
}

#[test]
fn of_two_sessions_that_race_for_an_id_one_runs() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    for round in 0..if long() { 1000 } else { 50 } {
        let named = |call: u64| {
            let given = Given {
                id: invocation(10_000 + round),
                ..given("alice", 1)
            };
            started(invocation(call)).given(given)
        };
        let first = one.append(named(2 * round), Durability::Disk);
        let second = two.append(named(2 * round + 1), Durability::Disk);
        let answers = [first.wait(), second.wait()];
        assert_eq!(
            answers.iter().filter(|answer| answer.is_ok()).count(),
            1,
            "{answers:?}"
        );
    }
}

#[test]
fn an_id_is_forgotten_when_a_host_takes_it_no_more() {
    let place = Place::new();
    let writer = place.open();
    durable(&writer, started(invocation(1)).given(given("alice", 1))).unwrap();
    writer.close().unwrap();
    let hour: i64 = 3_600_000_000;
    for (hours, known) in [(24, true), (26, false)] {
        let moved = place
            .records()
            .execute("UPDATE given SET at = at - ?1", [hours * hour]);
        moved.unwrap();
        let writer = place.open();
        let answer = writer.given(given("alice", 1)).wait();
        assert_eq!(matches!(answer, Err(Error::Given { .. })), known);
        assert!(known || answer.is_ok());
    }
}

/// The number of ids for which two processes race.
fn ids() -> u64 {
    if long() { 1000 } else { 100 }
}

/// Starts a call with each id as soon as possible, and prints the result.
pub(crate) fn race(folder: &Path, process: u64) {
    let writer = Writer::open(LedgerOptions::new(folder.join("ledger")), opened()).unwrap();
    let say = |what: &str| {
        // A single write, so that lines are complete.
        let line = format!("\n{what}\n");
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    };
    for number in 0..ids() {
        meet(folder, process, number);
        let given = Given {
            id: invocation(10_000 + number),
            ..given("alice", 1)
        };
        let call = invocation(process << 32 | number);
        match durable(&writer, started(call).given(given)) {
            Ok(()) => say(&format!("ran {number}")),
            Err(Error::Given { same_input: true }) => say(&format!("given {number}")),
            Err(error) => panic!("{error}"),
        }
    }
    writer.close().unwrap();
}

/// Waits until the other process has reached this id, so that both start at once.
fn meet(folder: &Path, process: u64, number: u64) {
    let mark = |process: u64| folder.join(format!("at {process} {number}"));
    std::fs::write(mark(process), b"").unwrap();
    let begun = Instant::now();
    while !mark(3 - process).exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the other is gone"
        );
        std::thread::sleep(Duration::from_micros(50));
    }
}

#[test]
fn of_two_processes_that_race_for_an_id_one_runs() {
    let place = Place::new();
    let folder = place.directory.path();
    let processes = [1, 2].map(|number| {
        let task = format!("given {number}");
        let mut child = crate::crash::start(&task, folder).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines.map(Result::unwrap))
    });
    let mut ran: BTreeMap<u64, usize> = BTreeMap::new();
    for (mut child, lines) in processes {
        for line in lines {
            let number = |what| line.strip_prefix(what)?.parse::<u64>().ok();
            if let Some(number) = number("ran ") {
                *ran.entry(number).or_default() += 1;
            }
        }
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(ran.len() as u64, ids());
    assert!(ran.values().all(|runs| *runs == 1), "{ran:?}");
    assert_eq!(place.count("started") as u64, ids());
    assert!(place.verify().holds());
}

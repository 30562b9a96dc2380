//! Payloads: which are kept, for how long, and that no copy remains after erasing.

use std::path::Path;
use std::time::Duration;

use toolward_ledger::payload::{Erase, Keep, PayloadKind, commitment};
use toolward_ledger::record::{Content, Hash, Number};
use toolward_ledger::{Entry, Error, Filter, Maintenance, Recorder, Writer};

use crate::support::{
    Place, copy, durable, filled, invocation, opened, queued, read_only, started,
};

const MARK: &str = "marked-input-5f1c9b";

fn open(place: &Place, keep: Keep) -> Writer {
    let mut options = place.options();
    options.keep = keep;
    Writer::open(options, opened()).unwrap()
}

fn with_payloads(entry: Entry) -> Entry {
    entry
        .payload(PayloadKind::Input, MARK.as_bytes().to_vec())
        .payload(PayloadKind::Context, b"context".to_vec())
        .payload(PayloadKind::Output, b"output".to_vec())
        .payload(PayloadKind::Detail, b"detail".to_vec())
}

/// The size and the commitment of each payload in a row.
fn contents(place: &Place, seq: u64) -> Vec<Option<Content>> {
    let event = place.reader().row(seq).unwrap().read().unwrap().event;
    let (call, outcome) = (event.call().unwrap(), event.outcome());
    vec![
        call.input.clone(),
        call.context.clone(),
        outcome.and_then(|outcome| outcome.output.clone()),
        outcome.and_then(|outcome| outcome.detail.clone()),
    ]
}

fn commitments(place: &Place, seq: u64) -> Vec<Hash> {
    let contents = contents(place, seq).into_iter().flatten();
    contents.filter_map(|content| content.commitment).collect()
}

#[test]
fn what_is_kept_follows_the_setting_and_the_rest_has_its_size() {
    for (keep, plain, matters) in [
        (Keep::None, 0, 0),
        (Keep::Asked, 0, 1),
        (Keep::Inputs, 2, 2),
        (Keep::All, 4, 4),
    ] {
        let place = Place::new();
        let writer = open(&place, keep);
        queued(&writer, with_payloads(read_only(invocation(1))));
        queued(&writer, with_payloads(read_only(invocation(2)).matters()));
        writer.close().unwrap();
        for (seq, kept) in [(1, plain), (2, matters)] {
            assert_eq!(commitments(&place, seq).len(), kept, "{keep:?}");
            let sizes: Vec<_> = contents(&place, seq)
                .into_iter()
                .map(|content| content.unwrap().size.get())
                .collect();
            assert_eq!(sizes, [MARK.len() as u64, 7, 6, 6]);
        }
        let verified = place.verify();
        assert!(verified.holds(), "{verified:?}");
        assert_eq!(verified.payloads, plain as u64 + matters as u64);
    }
}

#[test]
fn a_payload_is_found_by_its_commitment_which_is_salted() {
    let place = Place::new();
    let writer = open(&place, Keep::All);
    queued(&writer, with_payloads(read_only(invocation(1))));
    queued(&writer, with_payloads(read_only(invocation(2))));
    writer.close().unwrap();
    let (one, two) = (commitments(&place, 1), commitments(&place, 2));
    assert_ne!(one[0], two[0]);
    assert_ne!(one[0], commitment(&[0; 32], "input", MARK.as_bytes()));
    let payload = place.reader().payload(&one[0]).unwrap().unwrap();
    assert_eq!(
        (payload.kind.as_str(), payload.bytes.as_slice()),
        ("input", MARK.as_bytes())
    );
}

#[test]
fn a_caller_can_not_choose_person_or_commitment() {
    let place = Place::new();
    let writer = open(&place, Keep::None);
    let entry = with_payloads(read_only(invocation(1)));
    let mut event = entry.event().clone();
    if let toolward_ledger::record::Event::Ended(body) = &mut event {
        let call = body.call.as_mut().unwrap();
        call.person = Some(toolward_ledger::record::Hex([1; 16]));
        call.input.as_mut().unwrap().commitment = Some(toolward_ledger::record::Hex([1; 32]));
        body.outcome.output.as_mut().unwrap().commitment =
            Some(toolward_ledger::record::Hex([1; 32]));
    }
    queued(&writer, Entry::new(event).principal("alice"));
    writer.close().unwrap();
    assert!(commitments(&place, 1).is_empty());
    let row = place.reader().row(1).unwrap().read().unwrap();
    let person = row.event.call().unwrap().person.unwrap();
    assert_eq!(
        place.reader().name(&person).unwrap().as_deref(),
        Some("alice")
    );
}

#[test]
fn large_payloads_are_not_kept_and_the_oldest_make_room() {
    let place = Place::new();
    let mut options = place.options();
    options.keep = Keep::Inputs;
    options.payloads.each = 1000;
    options.payloads.total = 5000;
    let writer = Writer::open(options, opened()).unwrap();
    for number in 0..10 {
        let entry =
            read_only(invocation(number)).payload(PayloadKind::Input, vec![number as u8; 1000]);
        durable(&writer, entry).unwrap();
    }
    let entry = read_only(invocation(11)).payload(PayloadKind::Input, vec![9; 1001]);
    durable(&writer, entry).unwrap();
    writer.close().unwrap();
    let kept: Vec<_> = (1..12)
        .filter(|seq| {
            let commitments = commitments(&place, *seq);
            commitments
                .first()
                .is_some_and(|commitment| place.reader().payload(commitment).unwrap().is_some())
        })
        .collect();
    assert_eq!(kept, [6, 7, 8, 9, 10]);
    assert!(commitments(&place, 11).is_empty());
    assert!(place.verify().holds());
}

#[test]
fn the_oldest_payload_of_whoever_holds_most_makes_room() {
    let place = Place::new();
    let mut options = place.options();
    options.keep = Keep::Inputs;
    options.payloads.total = 10_000;
    let writer = Writer::open(options, opened()).unwrap();
    let keep = |number: u64, principal: &str| {
        let entry = read_only(invocation(number)).principal(principal);
        let entry = entry.payload(PayloadKind::Input, vec![7; 1000]);
        durable(&writer, entry).unwrap();
    };
    for number in 0..4 {
        keep(number, "modest");
    }
    for number in 4..40 {
        keep(number, "greedy");
    }
    writer.close().unwrap();
    let kept: Vec<_> = (1..41)
        .filter(|seq| {
            let commitments = commitments(&place, *seq);
            place.reader().payload(&commitments[0]).unwrap().is_some()
        })
        .collect();
    assert_eq!(kept, [1, 2, 3, 4, 35, 36, 37, 38, 39, 40]);
    assert!(place.verify().holds());
}

#[test]
fn payloads_end_with_their_time() {
    let place = Place::new();
    let mut options = place.options();
    options.keep = Keep::Inputs;
    options.payloads.age = Duration::from_millis(1);
    let writer = Writer::open(options, opened()).unwrap();
    durable(&writer, with_payloads(read_only(invocation(1)))).unwrap();
    writer.close().unwrap();
    std::thread::sleep(Duration::from_millis(10));
    drop(place.open());
    assert_eq!(place.verify().payloads, 0);
    let stored: i64 = place
        .payloads()
        .query_row("SELECT bytes FROM stored", [], |row| row.get(0))
        .unwrap();
    assert_eq!(stored, 0);
    assert!(place.verify().holds());
}

/// How many of the marks `strings` finds in all files of the ledger.
fn strings(folder: &Path) -> usize {
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            for mark in [MARK.as_bytes(), b"alice-of-the-test"] {
                found += bytes
                    .windows(mark.len())
                    .filter(|part| *part == mark)
                    .count();
            }
        }
    }
    found
}

#[test]
fn nothing_is_left_of_what_was_erased() {
    for by in 0..3 {
        let place = Place::new();
        let writer = open(&place, Keep::All);
        for number in 0..50 {
            let entry = started(invocation(number)).principal("alice-of-the-test");
            durable(&writer, with_payloads(entry)).unwrap();
        }
        // Another principal's payload stays.
        let other = read_only(invocation(100))
            .principal("bob")
            .payload(PayloadKind::Input, b"other".to_vec());
        if by < 2 {
            durable(&writer, other).unwrap();
        }
        assert!(strings(&place.ledger()) > 50);
        place.reader().list(&Default::default()).unwrap();
        let mut maintenance = Maintenance::open(&place.ledger(), None).unwrap();
        let erased = match by {
            0 => maintenance
                .erase(&Erase::Principal("alice-of-the-test".to_owned()))
                .unwrap(),
            1 => {
                let each = (0..50).map(|number| {
                    maintenance
                        .erase(&Erase::Invocation(invocation(number)))
                        .unwrap()
                });
                each.sum()
            }
            _ => maintenance
                .erase(&Erase::Before(Number::from(u64::MAX)))
                .unwrap(),
        };
        // Input and context of the started calls.
        assert_eq!(erased, 100);
        writer.flush().wait().unwrap();
        let names = if by == 0 { 0 } else { 1 };
        let found = strings(&place.ledger());
        // The name goes with its principal only; SQLite stores it in the table and in its index.
        assert_eq!(found > 0, names > 0, "{found}");
        let marks = std::fs::read(place.ledger().join("payloads.sqlite")).unwrap();
        assert!(
            !marks
                .windows(MARK.len())
                .any(|part| part == MARK.as_bytes())
        );
        let verified = place.verify();
        assert!(verified.holds(), "{verified:?}");
        assert_eq!(verified.payloads, u64::from(by < 2));
        assert_eq!(place.count("erased"), if by == 1 { 50 } else { 1 });
        // A principal that returns gets a new id.
        durable(
            &writer,
            started(invocation(200)).principal("alice-of-the-test"),
        )
        .unwrap();
        writer.close().unwrap();
        assert!(place.verify().holds());
    }
}

#[test]
fn a_ledger_holds_without_its_payloads() {
    let place = Place::new();
    let writer = open(&place, Keep::All);
    queued(&writer, with_payloads(read_only(invocation(1))));
    writer.close().unwrap();
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(place.ledger().join(format!("payloads.sqlite{end}")));
    }
    assert!(place.verify().holds());
    drop(place.open());
    assert!(place.verify().holds());
}

#[test]
fn pruned_rows_keep_their_leaves_and_what_was_signed_holds() {
    let place = Place::new();
    let mut options = place.options();
    options.keep = Keep::Inputs;
    let writer = Writer::open(options, opened()).unwrap();
    for number in 0..600 {
        queued(
            &writer,
            read_only(invocation(number)).payload(PayloadKind::Input, b"input".to_vec()),
        );
        if number % 100 == 0 {
            writer.flush().wait().unwrap();
        }
    }
    writer.flush().wait().unwrap();
    let mut maintenance = Maintenance::open(&place.ledger(), None).unwrap();
    // No row is signed yet.
    assert_eq!(maintenance.prune(600).unwrap(), 0);
    let old = writer
        .verifier()
        .open(&maintenance.checkpoint().unwrap())
        .unwrap();
    assert_eq!(maintenance.prune(600).unwrap(), 512);
    assert_eq!(maintenance.prune(300).unwrap(), 256);
    writer.close().unwrap();
    let mut reader = place.reader();
    let verified = reader.verify(&[old]).unwrap();
    assert!(verified.holds(), "{verified:?}");
    assert_eq!((verified.pruned, place.count("pruned")), (512, 1));
    let listed = reader
        .list(&Filter {
            limit: 10_000,
            ..Filter::default()
        })
        .unwrap();
    assert!(listed.iter().all(|listed| listed.record.is_some()));
    assert_eq!(verified.payloads, 600 - 511);
    assert!(reader.prove(5).unwrap().contains("index 5\n"));
    assert_eq!(reader.row(5).unwrap().record, None);
    // A record that is emptied without a row about it is found.
    place
        .records()
        .execute("UPDATE entry SET record = NULL WHERE seq = 555", [])
        .unwrap();
    assert_eq!(place.findings(), ["row 555 is empty"]);
}

#[test]
fn the_index_has_nothing_of_rows_that_were_pruned() {
    let place = filled(600);
    let all = Filter {
        limit: 10_000,
        ..Filter::default()
    };
    let before = place.reader().list(&all).unwrap().len();
    Maintenance::open(&place.ledger(), None)
        .unwrap()
        .prune(512)
        .unwrap();
    let index = place.ledger().join("index.sqlite");
    assert!(!index.exists());
    let after = place.reader().list(&all).unwrap();
    // One more row states that they were pruned.
    assert_eq!(after.len(), before - 512 + 1);
    assert!(after.iter().all(|listed| listed.row.seq >= 512));
    let sql = rusqlite::Connection::open(index).unwrap();
    let first: i64 = sql
        .query_row("SELECT min(seq) FROM row", [], |row| row.get(0))
        .unwrap();
    assert_eq!(first, 512);
}

#[test]
fn pruning_that_was_interrupted_holds_and_is_finished_by_the_next() {
    let place = filled(1100);
    let before = place.directory.path().join("before");
    copy(&place.ledger(), &before);
    let mut maintenance = Maintenance::open(&place.ledger(), None).unwrap();
    assert_eq!(maintenance.prune(1024).unwrap(), 1024);
    // The same holds if only some records were emptied.
    let sql = place.records();
    let attach = format!(
        "ATTACH '{}' AS whole; UPDATE entry SET record = \
         (SELECT record FROM whole.entry AS old WHERE old.seq = entry.seq) WHERE seq >= 512 AND seq < 1024",
        before.join("records.sqlite").display()
    );
    sql.execute_batch(&attach).unwrap();
    drop(sql);
    let verified = place.verify();
    assert!(verified.holds(), "{verified:?}");
    assert_eq!(verified.pruned, 512);
    assert_eq!(maintenance.prune(1024).unwrap(), 1024);
    let verified = place.verify();
    assert!(verified.holds(), "{verified:?}");
    assert_eq!((verified.pruned, place.count("pruned")), (1024, 2));
}

#[test]
fn writers_wait_for_milliseconds_while_much_is_pruned() {
    let place = filled(20_000);
    let writer = place.open();
    let directory = place.ledger();
    let pruning = std::thread::spawn(move || {
        let mut maintenance = Maintenance::open(&directory, None).unwrap();
        // On a busy machine, the writer below may keep it waiting for too long.
        loop {
            match maintenance.prune(u64::MAX) {
                Err(Error::Busy) => {}
                pruned => return pruned.unwrap(),
            }
        }
    });
    let (mut longest, mut rows) = (Duration::ZERO, 0);
    while !pruning.is_finished() {
        let started_at = std::time::Instant::now();
        durable(&writer, started(invocation(100_000 + rows))).unwrap();
        longest = longest.max(started_at.elapsed());
        rows += 1;
    }
    assert!(pruning.join().unwrap() >= 19_968);
    writer.close().unwrap();
    assert!(rows > 3, "others wrote meanwhile: {rows}");
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    assert!(place.verify().holds());
}

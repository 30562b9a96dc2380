//! Ledgers that someone with write access has changed. Both `verify` and the verifier in Python
//! find each change, and name the affected rows.

use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::tree::leaf_hash;
use toolward_ledger::{Error, Maintenance, Reader, Writer};

use crate::support::{
    Place, copy, durable, filled, invocation, opened, queued, read_only, started,
};

/// The findings of the verifier in Python; empty if it finds nothing.
fn python(place: &Place) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/verify_ledger.py");
    let ran = Command::new("python3")
        .arg(script)
        .arg(place.ledger())
        .output()
        .unwrap();
    let lines = String::from_utf8(ran.stdout).unwrap();
    let lines: Vec<_> = lines.lines().map(str::to_owned).collect();
    match ran.status.code() {
        Some(0) => Vec::new(),
        Some(1) if !lines.is_empty() => lines,
        other => panic!("{other:?}: {}", String::from_utf8_lossy(&ran.stderr)),
    }
}

/// A ledger of 252 rows, which are all signed, and the sizes of its checkpoints.
fn ledger() -> (Place, Vec<u64>) {
    let place = filled(250);
    assert!(place.findings().is_empty());
    assert!(python(&place).is_empty());
    let sql = place.records();
    let mut sizes = sql
        .prepare("SELECT size FROM checkpoint ORDER BY size")
        .unwrap();
    let sizes = sizes.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    let sizes = sizes.map(|size| size.unwrap() as u64).collect();
    (place, sizes)
}

/// Changes the records; returns the first finding, on which both verifiers agree.
fn first(place: &Place, change: impl FnOnce(&Connection)) -> String {
    change(&place.records());
    let (ours, theirs) = (place.findings(), python(place));
    assert!(!ours.is_empty());
    assert_eq!(ours[0], theirs[0], "{ours:?} {theirs:?}");
    ours[0].clone()
}

/// The rows between two checkpoints, in the form of a finding.
fn around(sizes: &[u64], seq: u64) -> String {
    let to = sizes.iter().find(|size| **size > seq).unwrap();
    let from = sizes.iter().rfind(|size| **size <= seq).unwrap_or(&0);
    format!("rows {from} to {to}")
}

fn run(sql: &Connection, statements: &str) {
    sql.execute_batch(statements).unwrap();
}

/// Replaces the record of a row, and also its leaf if `leaf` is set.
fn replace(sql: &Connection, seq: u64, leaf: bool) {
    let record: Vec<u8> = sql
        .query_row(
            "SELECT record FROM entry WHERE seq = ?1",
            [seq as i64],
            |row| row.get(0),
        )
        .unwrap();
    let text = String::from_utf8(record)
        .unwrap()
        .replace("123456", "123457");
    let statement = match leaf {
        true => "UPDATE entry SET record = ?1, leaf = ?2 WHERE seq = ?3",
        false => "UPDATE entry SET record = ?1, leaf = coalesce(leaf, ?2) WHERE seq = ?3",
    };
    let changed = sql.execute(
        statement,
        (text.as_bytes(), leaf_hash(text.as_bytes()).0, seq as i64),
    );
    assert_eq!(changed.unwrap(), 1);
}

#[test]
fn a_byte_of_a_record_is_found_at_its_row() {
    let (place, _) = ledger();
    assert_eq!(first(&place, |sql| replace(sql, 57, false)), "row 57");
}

#[test]
fn a_record_with_its_leaf_is_found_between_two_checkpoints() {
    let (place, sizes) = ledger();
    assert_eq!(
        first(&place, |sql| replace(sql, 157, true)),
        around(&sizes, 157)
    );
    // No other row is affected.
    assert_eq!(place.findings().len(), 1);
}

#[test]
fn rows_that_were_swapped_are_found() {
    let (place, sizes) = ledger();
    let found = first(&place, |sql| {
        run(
            sql,
            "UPDATE entry SET seq = -1 WHERE seq = 20; UPDATE entry SET seq = 20 WHERE seq = 21;
                  UPDATE entry SET seq = 21 WHERE seq = -1;",
        );
    });
    assert_eq!(found, around(&sizes, 20));
}

#[test]
fn a_row_that_was_inserted_is_found() {
    let (place, sizes) = ledger();
    let found = first(&place, |sql| {
        run(sql, "UPDATE entry SET seq = -(seq + 1) WHERE seq >= 120; UPDATE entry SET seq = -seq WHERE seq < 0;
                  INSERT INTO entry SELECT 120, leaf, record FROM entry WHERE seq = 119;");
    });
    assert_eq!(found, around(&sizes, 120));
    assert!(
        place
            .findings()
            .iter()
            .any(|finding| finding.starts_with("head"))
    );
}

#[test]
fn a_row_that_was_deleted_is_found() {
    let (place, _) = ledger();
    let found = first(&place, |sql| run(sql, "DELETE FROM entry WHERE seq = 33"));
    assert_eq!(found, "rows 33 to 34 are missing");
    assert_eq!(place.findings().len(), 1);
}

#[test]
fn a_row_that_was_deleted_with_the_others_moved_up_is_found() {
    let (place, sizes) = ledger();
    let found = first(&place, |sql| {
        run(
            sql,
            "DELETE FROM entry WHERE seq = 33; UPDATE entry SET seq = -(seq - 1) WHERE seq > 33;
                  UPDATE entry SET seq = -seq WHERE seq < 0;",
        );
    });
    assert_eq!(found, around(&sizes, 33));
}

/// Writes the head of the existing rows, like an attacker who knows the format.
fn mend_head(sql: &Connection) {
    let mut leaves = sql.prepare("SELECT leaf FROM entry ORDER BY seq").unwrap();
    let leaves = leaves.query_map([], |row| row.get(0)).unwrap();
    let edge: toolward_ledger::tree::Edge = leaves
        .map(|leaf| toolward_ledger::record::Hex(leaf.unwrap()))
        .collect();
    let head = (edge.size() as i64, edge.to_bytes());
    sql.execute("UPDATE head SET size = ?1, edge = ?2", head)
        .unwrap();
}

#[test]
fn a_tail_that_was_cut_is_found_with_a_mended_head() {
    let (place, sizes) = ledger();
    let missing = sizes.iter().find(|size| **size > 180).unwrap();
    let found = first(&place, |sql| {
        run(sql, "DELETE FROM entry WHERE seq >= 180");
        mend_head(sql);
    });
    assert_eq!(found, format!("180 rows of {missing}"));
    let error = Writer::open(place.options(), opened()).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Shorter {
                found: 180,
                expected: 252
            }
        ),
        "{error}"
    );
}

#[test]
fn a_changed_head_is_found() {
    for change in [
        "UPDATE head SET size = size - 1",
        "UPDATE head SET edge = zeroblob(length(edge))",
    ] {
        let (place, _) = ledger();
        let sql = place.records();
        // With another size, the edge is not valid.
        if change.contains("size - 1") {
            sql.execute_batch(change).unwrap();
            assert!(place.reader().verify(&[]).is_err() || !place.findings().is_empty());
        } else {
            assert_eq!(first(&place, |sql| run(sql, change)), "head, rows from 252");
        }
        let error = Writer::open(place.options(), opened()).unwrap_err();
        assert!(
            matches!(error, Error::Differs(_) | Error::Corrupt(_)),
            "{error}"
        );
    }
}

#[test]
fn a_checkpoint_that_was_changed_is_found() {
    let (place, sizes) = ledger();
    let size = sizes[0];
    let change = format!(
        "UPDATE checkpoint SET note = replace(note, '{size}', '{}') WHERE size = {size}",
        size + 1
    );
    assert_eq!(
        first(&place, |sql| run(sql, &change)),
        format!("checkpoint {size}")
    );
}

#[test]
fn another_key_signs_for_another_ledger() {
    let (place, sizes) = ledger();
    let other = Place::new();
    drop(other.open());
    let taken =
        |name: &str| std::fs::copy(other.ledger().join(name), place.ledger().join(name)).unwrap();
    taken("key.pem");
    let error = Writer::open(place.options(), opened()).unwrap_err();
    assert_eq!(error.code(), "ledger-key");
    taken("ledger.vkey");
    let error = Writer::open(place.options(), opened()).unwrap_err();
    assert_eq!(error.code(), "ledger-key");
    let findings: Vec<_> = sizes
        .iter()
        .map(|size| format!("checkpoint {size}"))
        .collect();
    assert_eq!(place.findings(), findings);
    assert_eq!(python(&place), findings);
    // No new key is created for a ledger with rows.
    std::fs::remove_file(place.ledger().join("key.pem")).unwrap();
    let error = Writer::open(place.options(), opened()).unwrap_err();
    assert_eq!(error.code(), "ledger-key");
    assert!(!place.ledger().join("key.pem").exists());
}

#[test]
fn a_changed_payload_is_found_by_its_commitment() {
    for change in ["bytes = x'00'", "salt = zeroblob(32)", "kind = 'output'"] {
        let place = Place::new();
        let writer = place.open();
        durable(
            &writer,
            started(invocation(1)).payload(PayloadKind::Input, b"input".to_vec()),
        )
        .unwrap();
        writer.close().unwrap();
        let commitment = place
            .reader()
            .row(1)
            .unwrap()
            .read()
            .unwrap()
            .event
            .call()
            .unwrap()
            .input
            .clone();
        let commitment = commitment.unwrap().commitment.unwrap();
        place
            .payloads()
            .execute(&format!("UPDATE payload SET {change}"), [])
            .unwrap();
        let expected = [format!("payload {commitment}")];
        assert_eq!(place.findings(), expected);
        assert_eq!(python(&place), expected);
        assert_eq!(
            place.reader().payload(&commitment).unwrap_err().code(),
            "ledger-differs"
        );
    }
}

#[test]
fn an_older_copy_that_was_put_back_is_refused_by_what_was_kept_elsewhere() {
    let place = Place::new();
    let mut options = place.options();
    let elsewhere = place.directory.path().join("checkpoints");
    options.checkpoints = Some(elsewhere.clone());
    let session = |calls: std::ops::Range<u64>| {
        let writer = Writer::open(options.clone(), opened())?;
        calls.for_each(|number| queued(&writer, read_only(invocation(number))));
        writer.close()
    };
    session(0..10).unwrap();
    let old = place.directory.path().join("old");
    copy(&place.ledger(), &old);
    session(10..20).unwrap();
    session(20..30).unwrap();
    let notes = std::fs::read_to_string(&elsewhere).unwrap();
    assert_eq!(notes.matches("\u{2014} toolward.ledger/").count(), 3);

    // The contents of the directory are consistent.
    copy(&old, &place.ledger());
    assert!(place.findings().is_empty());
    let error = session(30..31).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Shorter {
                found: 12,
                expected: 36
            }
        ),
        "{error}"
    );
    let mut reader = Reader::open(&place.ledger(), None).unwrap();
    let kept = notes.split("\n\ntoolward").next().unwrap();
    assert!(
        reader
            .verifier()
            .open(&format!("{kept}\n").replace("\n\n\n", "\n\n"))
            .is_ok()
            || !kept.is_empty()
    );
    let newest = toolward_ledger::checkpoint::Checkpoint {
        size: 36,
        root: toolward_ledger::record::Hex([0; 32]),
    };
    let found = reader.verify(&[newest]).unwrap();
    assert_eq!(
        found
            .findings
            .iter()
            .map(super::support::short)
            .collect::<Vec<_>>(),
        ["12 rows of 36"]
    );

    // The same number of other rows is refused, too.
    let mut other = options.clone();
    other.checkpoints = None;
    let writer = Writer::open(other, opened()).unwrap();
    (0..40).for_each(|number| queued(&writer, read_only(invocation(1000 + number))));
    writer.close().unwrap();
    assert!(place.findings().is_empty());
    let error = session(30..31).unwrap_err();
    assert_eq!(error.code(), "ledger-differs");
}

#[test]
fn a_foreign_ledger_in_its_place_is_found_by_who_knows_the_key() {
    let place = filled(10);
    let verifier = place.reader().verifier().clone();
    let foreign = filled(10);
    copy(&foreign.ledger(), &place.ledger());
    assert!(place.findings().is_empty());
    let mut reader = Reader::open(&place.ledger(), Some(verifier)).unwrap();
    assert!(!reader.verify(&[]).unwrap().holds());
}

#[test]
fn rows_behind_the_newest_checkpoint_are_held_against_the_head_when_a_ledger_is_opened() {
    for leaf in [false, true] {
        let place = filled(10);
        let writer = place.open();
        durable(&writer, read_only(invocation(100))).unwrap();
        // A copy without its last checkpoint, as if the process had died.
        let copied = place.directory.path().join("copy");
        copy(&place.ledger(), &copied);
        writer.close().unwrap();
        copy(&copied, &place.ledger());
        let sql = place.records();
        let newest: i64 = sql
            .query_row("SELECT max(size) FROM checkpoint", [], |row| row.get(0))
            .unwrap();
        replace(&sql, newest as u64 + 1, leaf);
        let error = Writer::open(place.options(), opened()).unwrap_err();
        assert_eq!(error.code(), "ledger-differs");
        let expected = if leaf {
            format!("head, rows from {newest}")
        } else {
            format!("row {}", newest + 1)
        };
        assert_eq!(first(&place, |_| ()), expected);
    }
}

#[test]
fn a_row_that_nobody_signed_does_not_say_that_others_were_pruned() {
    let place = filled(300);
    let forged = r#"{"at":1,"body":{"to":256},"kind":"pruned","session":"00000000000000000000000000000000","v":1}"#;
    let found = first(&place, |sql| {
        let leaf = leaf_hash(forged.as_bytes()).0;
        let size: i64 = sql
            .query_row("SELECT size FROM head", [], |row| row.get(0))
            .unwrap();
        sql.execute(
            "INSERT INTO entry VALUES (?1, ?2, ?3)",
            (size, leaf, forged.as_bytes()),
        )
        .unwrap();
        run(sql, "UPDATE entry SET record = NULL WHERE seq < 256");
        mend_head(sql);
    });
    assert_eq!(found, "row 0 is empty");
    // No session can be opened that would sign it.
    let error = Writer::open(place.options(), opened()).unwrap_err();
    assert_eq!(error.code(), "ledger-differs");
    let error = Maintenance::open(&place.ledger(), None).unwrap_err();
    assert_eq!(error.code(), "ledger-differs");
}

//! Calls assembled from rows, and proofs of many rows at once.

use toolward_ledger::tree::verify_inclusion;
use toolward_ledger::{EndRow, Error, Recorder as _};

use crate::support::{
    Place, asked, durable, ended, filled, invocation, queued, read_only, refused, started,
};

#[test]
fn a_call_belongs_to_the_rows_in_which_it_ended() {
    let place = Place::new();
    let writer = place.open();
    // Rows 1 to 6: two overlapping calls, a refused call, and a call that only started.
    durable(&writer, started(invocation(1))).unwrap();
    durable(&writer, started(invocation(2))).unwrap();
    durable(&writer, ended(invocation(2))).unwrap();
    queued(&writer, refused(invocation(3), "no_route"));
    durable(&writer, ended(invocation(1))).unwrap();
    durable(&writer, started(invocation(4))).unwrap();
    writer.flush().wait().unwrap();
    let reader = place.reader();
    let of = |from, to| {
        let mut found = Vec::new();
        reader
            .calls::<Error>(from, to, |call| {
                assert!(call.call.is_some());
                found.push((call.invocation, call.started, call.end.row()));
                Ok(())
            })
            .unwrap();
        found
    };
    let (one, two) = (invocation(1), invocation(2));
    let first = (two, Some(2), Some(3));
    let third = (invocation(3), None, Some(4));
    let last = (one, Some(1), Some(5));
    let open = (invocation(4), Some(6), None);
    assert_eq!(of(0, u64::MAX), [first, third, last, open]);
    assert_eq!(of(3, 5), [first, third], "the start lies before");
    assert_eq!(of(1, 3), [], "both ended later");
    assert_eq!(of(5, 6), [last]);
    assert_eq!(of(7, 3), []);
    let call = reader.call(one).unwrap();
    assert!(matches!(call.end, EndRow::Ended(5, _)), "{call:?}");
    assert_eq!(
        reader.call(invocation(9)).unwrap_err().code(),
        "ledger-no-row"
    );
}

#[test]
fn rows_about_an_approval_are_no_part_of_a_call_wherever_they_stand() {
    let place = Place::new();
    let writer = place.open();
    // Rows 1 to 4: a call that a person was asked about, that started and ended, with approval rows
    // in between.
    queued(&writer, asked(invocation(1)));
    durable(&writer, started(invocation(1))).unwrap();
    queued(&writer, asked(invocation(1)));
    durable(&writer, ended(invocation(1))).unwrap();
    queued(&writer, asked(invocation(1)));
    queued(&writer, asked(invocation(2)));
    writer.flush().wait().unwrap();
    let reader = place.reader();
    let mut found = Vec::new();
    let each = |call: toolward_ledger::RecordedCall| {
        found.push((call.invocation, call.started, call.end.row()));
        Ok(())
    };
    reader.calls::<Error>(0, u64::MAX, each).unwrap();
    let call = (invocation(1), Some(2), Some(4));
    assert_eq!(found, [call]);
    let read = reader.call(invocation(1)).unwrap();
    assert_eq!((read.invocation, read.started, read.end.row()), call);
    let none = reader.call(invocation(2)).unwrap_err();
    assert_eq!(none.code(), "ledger-no-row");
}

#[test]
fn many_rows_are_proved_by_one_reading_of_the_leaves() {
    for calls in [1, 2, 7, 40] {
        let place = filled(calls);
        let reader = place.reader();
        let size = reader.size().unwrap();
        let proofs = reader.proofs(0..size + 3).unwrap();
        let (checkpoint, rows) = (proofs.checkpoint, proofs.rows);
        assert_eq!(
            rows.len() as u64,
            checkpoint.size,
            "those behind are left out"
        );
        for (seq, proof) in rows {
            let leaf = reader.row(seq).unwrap().leaf;
            let (size, root) = (checkpoint.size, checkpoint.root);
            assert!(verify_inclusion(&leaf, seq, size, &proof, &root), "{seq}");
            // The proof of this row alone has the same hashes.
            let alone = reader.prove(seq).unwrap();
            let hashes = alone.lines().skip(2).take_while(|line| !line.is_empty());
            assert_eq!(hashes.count(), proof.len());
        }
    }
}

#[test]
fn nothing_is_proved_without_a_checkpoint_or_under_one_that_does_not_hold() {
    let place = Place::new();
    let writer = place.open();
    queued(&writer, read_only(invocation(1)));
    writer.flush().wait().unwrap();
    let none = place.reader().proofs([1]).unwrap_err();
    assert_eq!(none.code(), "ledger-no-checkpoint");
    writer.close().unwrap();
    place.reader().proofs([1]).unwrap();
    place
        .records()
        .execute("UPDATE entry SET leaf = zeroblob(32) WHERE seq = 0", [])
        .unwrap();
    let differs = place.reader().proofs([1]).unwrap_err();
    assert_eq!(differs.code(), "ledger-differs");
}

#[test]
fn rows_that_are_added_about_a_call_that_has_ended_change_nothing() {
    let place = Place::new();
    let writer = place.open();
    durable(&writer, started(invocation(1))).unwrap();
    durable(&writer, ended(invocation(1))).unwrap();
    let before = place.reader().call(invocation(1)).unwrap();
    for forged in [
        ended(invocation(1)),
        read_only(invocation(1)),
        started(invocation(1)),
        refused(invocation(1), "no_route"),
    ] {
        durable(&writer, forged).unwrap();
        assert_eq!(place.reader().call(invocation(1)).unwrap(), before);
    }
    // More rows than a list has by default.
    for _ in 0..100 {
        queued(&writer, ended(invocation(1)));
    }
    writer.flush().wait().unwrap();
    assert_eq!(place.reader().call(invocation(1)).unwrap(), before);
}

#[test]
fn rows_that_are_added_about_a_call_that_has_ended_are_no_calls_of_their_own() {
    let place = Place::new();
    let writer = place.open();
    // Rows 1 to 3: a call that changed something, and a call that only read. Rows from 4 on were
    // added later.
    durable(&writer, started(invocation(1))).unwrap();
    durable(&writer, ended(invocation(1))).unwrap();
    durable(&writer, read_only(invocation(2))).unwrap();
    for id in [invocation(1), invocation(2)] {
        durable(&writer, read_only(id)).unwrap();
        durable(&writer, refused(id, "no_route")).unwrap();
        durable(&writer, started(id)).unwrap();
        durable(&writer, ended(id)).unwrap();
    }
    durable(&writer, read_only(invocation(3))).unwrap();
    let reader = place.reader();
    let of = |from, to| {
        let mut found = Vec::new();
        let each = |call: toolward_ledger::RecordedCall| {
            found.push((call.invocation, call.end.row()));
            Ok(())
        };
        reader.calls::<Error>(from, to, each).unwrap();
        found
    };
    let (one, two) = ((invocation(1), Some(2)), (invocation(2), Some(3)));
    let last = (invocation(3), Some(12));
    assert_eq!(of(0, u64::MAX), [one, two, last]);
    assert_eq!(of(2, u64::MAX), [one, two, last], "the start lies before");
    assert_eq!(of(3, u64::MAX), [two, last], "so does the end");
    for from in 4..=12 {
        assert_eq!(of(from, u64::MAX), [last], "from row {from}");
    }
}

#[test]
fn a_damaged_row_is_told_between_the_calls_and_the_others_are_read() {
    let place = Place::new();
    let writer = place.open();
    // Rows 1 to 6: three reading calls, a call that changed something, and a call that only
    // started.
    for number in 1..=3 {
        durable(&writer, read_only(invocation(number))).unwrap();
    }
    durable(&writer, started(invocation(4))).unwrap();
    durable(&writer, ended(invocation(4))).unwrap();
    durable(&writer, started(invocation(5))).unwrap();
    writer.close().unwrap();
    let of = |reader: &toolward_ledger::Reader| {
        let mut found = Vec::new();
        reader
            .calls_and_damage::<Error>(0, u64::MAX, |one| {
                found.push(match one {
                    Ok(call) => Ok((call.invocation, call.call.is_some(), call.end.row())),
                    Err(damaged) => Err((damaged.seq, damaged.error.code())),
                });
                Ok(())
            })
            .unwrap();
        found
    };
    let sound = of(&place.reader());
    assert_eq!(sound.len(), 5);
    assert!(sound.iter().all(Result::is_ok), "{sound:?}");
    let damage = |seq: u64, record: &str| {
        let sql = place.records();
        sql.execute(
            "UPDATE entry SET record = ?1 WHERE seq = ?2",
            (record.as_bytes(), seq as i64),
        )
        .unwrap();
    };
    damage(2, "{}");
    damage(4, &place.lines()[1]);
    let found = of(&place.reader());
    assert_eq!(found[0], sound[0]);
    assert_eq!(found[1], Err((2, "ledger-differs")));
    assert_eq!(found[2], sound[2]);
    assert_eq!(found[3], Err((4, "ledger-differs")));
    // The facts in its start are lost with the start.
    assert_eq!(found[4], Ok((invocation(4), false, Some(5))));
    assert_eq!(found[5], sound[4]);
    assert_eq!(found.len(), 6);
    // `calls` fails at a damaged row.
    let strict = place.reader().calls::<Error>(0, u64::MAX, |_| Ok(()));
    assert_eq!(strict.unwrap_err().code(), "ledger-differs");
}

//! The writer's rows, sessions and checkpoints, and lists of rows.

use std::time::{Duration, Instant};

use toolward_ledger::checkpoint::Verifier;
use toolward_ledger::record::Code;
use toolward_ledger::{Filter, Maintenance, Recorder, Writer};

use crate::support::{
    Place, asked, durable, ended, filled, invocation, opened, queued, read_only, refused, started,
};

#[test]
fn rows_are_appended_under_the_tree_and_read_back() {
    let place = Place::new();
    let writer = place.open();
    let id = invocation(1);
    durable(&writer, started(id)).unwrap();
    durable(&writer, ended(id)).unwrap();
    queued(&writer, read_only(invocation(2)));
    writer.flush().wait().unwrap();
    let mut reader = place.reader();
    assert_eq!(reader.size().unwrap(), 4);
    let kinds: Vec<_> = (0..4)
        .map(|seq| reader.row(seq).unwrap().read().unwrap().event.kind())
        .collect();
    assert_eq!(kinds, ["opened", "started", "ended", "ended"]);
    let verified = reader.verify(&[]).unwrap();
    assert!(verified.holds(), "{verified:?}");
    assert_eq!((verified.rows, verified.signed), (4, 0));
    writer.close().unwrap();
    let verified = place.verify();
    assert!(verified.holds(), "{verified:?}");
    // The end of the session is signed.
    assert_eq!((verified.rows, verified.signed), (5, 5));
    assert_eq!(place.count("abandoned"), 0);
    assert_eq!(
        durable(&writer, read_only(id)).unwrap_err().code(),
        "ledger-closed"
    );
}

#[test]
fn queued_rows_are_written_within_20_ms_or_so() {
    let place = Place::new();
    let writer = place.open();
    let reader = place.reader();
    queued(&writer, read_only(invocation(1)));
    let start = Instant::now();
    while reader.size().unwrap() < 2 {
        std::thread::sleep(Duration::from_millis(1));
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn checkpoints_are_made_after_so_many_rows_and_hold_beside_each_other() {
    let place = filled(250);
    let verified = place.verify();
    assert!(verified.holds(), "{verified:?}");
    let sql = place.records();
    let count: i64 = sql
        .query_row("SELECT count(*) FROM checkpoint", [], |row| row.get(0))
        .unwrap();
    assert!(count >= 3, "{count}");
    let mut reader = place.reader();
    let note = reader.newest_checkpoint().unwrap().unwrap();
    let checkpoint = reader.verifier().open(&note).unwrap();
    assert_eq!(checkpoint.size, verified.rows);
    assert!(reader.verify(&[checkpoint]).unwrap().holds());
    // Each older tree is proved to be the start of the newest.
    let mut olds = sql
        .prepare("SELECT size, note FROM checkpoint ORDER BY size")
        .unwrap();
    let olds = olds.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    });
    for old in olds.unwrap() {
        let old = reader.verifier().open(&old.unwrap().1).unwrap();
        let proof = reader.prove_consistency(old.size, checkpoint.size).unwrap();
        assert!(toolward_ledger::tree::verify_consistency(
            old.size,
            checkpoint.size,
            &old.root,
            &checkpoint.root,
            &proof
        ));
    }
}

#[test]
fn a_checkpoint_is_made_after_some_time_and_none_without_new_rows() {
    let place = Place::new();
    let mut options = place.options();
    options.checkpoint_interval = Duration::from_millis(50);
    let writer = Writer::open(options, opened()).unwrap();
    let reader = place.reader();
    let start = Instant::now();
    while reader.newest_checkpoint().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    let sql = place.records();
    let count: i64 = sql
        .query_row("SELECT count(*) FROM checkpoint", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 1);
    drop(writer);
}

#[test]
fn a_checkpoint_on_demand_covers_all_rows() {
    let place = Place::new();
    let writer = place.open();
    durable(&writer, read_only(invocation(1))).unwrap();
    let mut maintenance = Maintenance::open(&place.ledger(), None).unwrap();
    let note = maintenance.checkpoint().unwrap();
    assert_eq!(maintenance.checkpoint().unwrap(), note);
    assert_eq!(writer.verifier().open(&note).unwrap().size, 2);
    assert_eq!(place.reader().newest_checkpoint().unwrap(), Some(note));
}

#[test]
fn a_verifier_key_has_one_spelling_and_names_the_ledger() {
    let place = Place::new();
    let writer = place.open();
    let verifier = writer.verifier().clone();
    let vkey = std::fs::read_to_string(place.ledger().join("ledger.vkey")).unwrap();
    assert_eq!(Verifier::from_vkey(vkey.trim_end()), Some(verifier.clone()));
    assert!(verifier.origin().starts_with("toolward.ledger/"));
    for other in [
        vkey.clone(),
        vkey.trim_end().replacen('+', "0+", 1),
        vkey.trim_end().to_uppercase(),
        "a+b".to_owned(),
        String::new(),
    ] {
        assert_eq!(Verifier::from_vkey(&other), None);
    }
}

#[test]
fn two_sessions_write_one_tree() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    for number in 0..200 {
        queued(&one, read_only(invocation(number)));
        queued(&two, read_only(invocation(1000 + number)));
        if number % 20 == 0 {
            durable(&one, started(invocation(2000 + number))).unwrap();
            durable(&two, ended(invocation(2000 + number))).unwrap();
        }
    }
    one.close().unwrap();
    two.close().unwrap();
    let verified = place.verify();
    assert!(verified.holds(), "{verified:?}");
    assert_eq!(verified.rows, 2 + 400 + 20 + 2);
}

#[test]
fn what_a_session_leaves_unfinished_is_abandoned_once_by_the_next() {
    let place = Place::new();
    let first = place.open();
    durable(&first, started(invocation(1))).unwrap();
    durable(&first, started(invocation(2))).unwrap();
    durable(&first, ended(invocation(2))).unwrap();
    // While a session lives, no other session ends its calls.
    drop(place.open());
    assert_eq!(place.count("abandoned"), 0);
    first.close().unwrap();
    drop(place.open());
    assert_eq!(place.count("abandoned"), 1);
    drop(place.open());
    assert_eq!(place.count("abandoned"), 1);
    assert!(place.verify().holds());
}

#[test]
fn lists_are_filtered_and_the_index_is_made_anew_whatever_becomes_of_it() {
    let place = Place::new();
    let writer = place.open();
    durable(&writer, started(invocation(1))).unwrap();
    durable(&writer, ended(invocation(1))).unwrap();
    queued(&writer, read_only(invocation(2)).principal("bob"));
    queued(&writer, refused(invocation(3), "no_route"));
    queued(&writer, asked(invocation(4)));
    writer.flush().wait().unwrap();
    let list = |filter: &Filter| -> Vec<u64> {
        let listed = place.reader().list(filter).unwrap();
        listed.iter().map(|listed| listed.row.seq).collect()
    };
    let all = Filter::default();
    let named = |name: &str| Filter {
        principal: Some(name.to_owned()),
        ..Filter::default()
    };
    let tool = |tool: &str| Filter {
        tool: Some(tool.to_owned()),
        ..Filter::default()
    };
    let check = || {
        assert_eq!(list(&all), [5, 4, 3, 2, 1, 0]);
        assert_eq!(list(&named("asked")), [5]);
        assert_eq!(list(&tool("notes.append")), [5]);
        // The end of a call has the principal and the tool of its start.
        assert_eq!(list(&named("alice")), [4, 2, 1]);
        assert_eq!(list(&named("bob")), [3]);
        assert!(list(&named("eve")).is_empty());
        assert_eq!(list(&tool("text.stats")), [4, 3, 2, 1]);
        assert_eq!(list(&tool("text.stats@1.4.0")), [4, 3, 2, 1]);
        assert!(list(&tool("text.stat")).is_empty());
        let code = Some(Code::parse("no_route").unwrap());
        assert_eq!(
            list(&Filter {
                code,
                ..Filter::default()
            }),
            [4]
        );
        assert_eq!(
            list(&Filter {
                mutating: true,
                ..Filter::default()
            }),
            [1]
        );
        assert_eq!(
            list(&Filter {
                invocation: Some(invocation(1)),
                ..Filter::default()
            }),
            [2, 1]
        );
        assert_eq!(
            list(&Filter {
                before: Some(3),
                limit: 2,
                ..Filter::default()
            }),
            [2, 1]
        );
        let since = Some(toolward_ledger::record::Number::from(u64::MAX));
        assert!(
            list(&Filter {
                since,
                ..Filter::default()
            })
            .is_empty()
        );
    };
    check();
    for damage in [
        "no database at all, and long enough to look at".repeat(200),
        String::new(),
    ] {
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(place.ledger().join(format!("index.sqlite{end}")));
        }
        std::fs::write(place.ledger().join("index.sqlite"), damage).unwrap();
        check();
    }
    // The index of another ledger.
    let sql = rusqlite::Connection::open(place.ledger().join("index.sqlite")).unwrap();
    sql.execute("UPDATE made SET leaf = zeroblob(32)", [])
        .unwrap();
    sql.execute("DELETE FROM row", []).unwrap();
    drop(sql);
    check();
}

#[test]
fn time_that_goes_back_is_recorded_as_it_is() {
    let place = Place::new();
    let writer = place.open();
    let hour = 3_600_000_000;
    let at = |back: u64| toolward_ledger::record::Number::from(1_795_000_000_000_000 - back);
    queued(&writer, read_only(invocation(1)).at(at(0)));
    queued(&writer, read_only(invocation(2)).at(at(hour)));
    writer.close().unwrap();
    assert!(place.verify().holds());
    let reader = place.reader();
    let times: Vec<_> = (1..3)
        .map(|seq| reader.row(seq).unwrap().read().unwrap().at)
        .collect();
    assert_eq!(times, [at(0), at(hour)]);
}

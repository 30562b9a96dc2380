//! A file that is not a store or is damaged causes only an error with a code.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use toolward_state::{Error, Store};

use crate::{Place, bucket, check, in_seconds};

/// A store with some pages in its file and nothing in its log.
fn filled() -> Place {
    let place = Place::new();
    let own = bucket(&place.open(), "acme", "alice", "b");
    for n in 0..50 {
        own.set(&format!("key-{n}"), &[n; 3000]).unwrap();
    }
    drop(own);
    assert!(!place.file().with_extension("sqlite-wal").exists());
    place
}

fn code(place: &Place) -> &'static str {
    let error = Store::open(place.file()).expect_err("refused");
    assert!(error.hint().is_some());
    error.code()
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let place = filled();
    fs::write(
        place.file(),
        b"no database at all, but some text".repeat(100),
    )
    .unwrap();
    let before = fs::read(place.file()).unwrap();
    assert_eq!(code(&place), "store-corrupt");
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[test]
fn another_programs_database_is_refused_and_left_as_it_is() {
    let place = filled();
    fs::remove_file(place.file()).unwrap();
    let sql = rusqlite::Connection::open(place.file()).unwrap();
    sql.execute_batch("CREATE TABLE own (value TEXT); INSERT INTO own VALUES ('x');")
        .unwrap();
    drop(sql);
    fs::set_permissions(place.file(), fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::read(place.file()).unwrap();
    assert_eq!(code(&place), "store-corrupt");
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[test]
fn a_store_of_another_version_is_refused_and_both_versions_are_named() {
    let place = filled();
    let sql = rusqlite::Connection::open(place.file()).unwrap();
    sql.pragma_update(None, "user_version", 2).unwrap();
    drop(sql);
    let error = Store::open(place.file()).expect_err("refused");
    assert!(matches!(
        error,
        Error::Version {
            found: 2,
            expected: 1
        }
    ));
    assert_eq!(error.code(), "store-version");
    assert_eq!(error.hint().as_deref(), Some("update toolward"));
}

#[test]
fn tables_that_are_not_there_are_an_error() {
    let place = filled();
    let sql = rusqlite::Connection::open(place.file()).unwrap();
    sql.execute_batch("DROP TABLE entry").unwrap();
    drop(sql);
    if let Ok(store) = Store::open(place.file()) {
        bucket(&store, "acme", "alice", "b")
            .get("key-1")
            .expect_err("no table");
        store.check(in_seconds(10)).expect_err("no table");
    }
}

#[test]
fn totals_that_do_not_fit_the_entries_are_found() {
    let place = filled();
    let sql = rusqlite::Connection::open(place.file()).unwrap();
    for wrong in [
        "UPDATE bucket SET entries = 1",
        "UPDATE bucket SET bytes = bytes + 1",
        "UPDATE bucket SET next = 1",
        "INSERT INTO bucket (owner, principal, name, entries, bytes, next) VALUES ('', '', '', 0, 0, 1)",
        "DELETE FROM entry WHERE key = 'key-7'",
    ] {
        sql.execute_batch("SAVEPOINT s").unwrap();
        sql.execute_batch(wrong).unwrap();
        sql.execute_batch("RELEASE s").unwrap();
        let error = place.open().check(in_seconds(10)).expect_err(wrong);
        assert_eq!(error.code(), "store-corrupt");
    }
}

#[test]
fn a_file_cut_off_or_overwritten_anywhere_is_an_error_or_still_readable_and_never_a_panic() {
    let place = filled();
    let sound = fs::read(place.file()).unwrap();
    let mut refused = 0;
    let mut damaged = Vec::new();
    for n in 0..60 {
        damaged.clear();
        damaged.extend_from_slice(&sound);
        let at = sound.len() * n / 60;
        match n % 3 {
            0 => damaged.truncate(at),
            1 => damaged[at..(at + 700).min(sound.len())].fill(0xff),
            _ => damaged[at..(at + 700).min(sound.len())].fill(0),
        }
        fs::write(place.file(), &damaged).unwrap();
        let outcome = Store::open(place.file()).and_then(|store| {
            let own = bucket(&store, "acme", "alice", "b");
            for n in 0..50 {
                own.get(&format!("key-{n}"))?;
            }
            own.list_keys(None)?;
            own.set("key-1", b"new")?;
            own.delete("key-2")?;
            own.increment("number", 1)?;
            store.check(in_seconds(10))
        });
        if let Err(error) = outcome {
            assert!(!error.code().is_empty());
            refused += 1;
        }
        for extension in ["sqlite-wal", "sqlite-shm"] {
            let _ = fs::remove_file(place.file().with_extension(extension));
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_log_that_is_damaged_loses_what_was_in_it_and_no_more() {
    let place = filled();
    let store = place.open();
    let own = bucket(&store, "acme", "alice", "b");
    own.set("key-0", b"in the log").unwrap();
    // A copy whose log has a damaged end, as a crash of the machine would leave it.
    let copy = Place::new();
    drop(copy.open());
    fs::copy(place.file(), copy.file()).unwrap();
    let mut log = fs::read(place.file().with_extension("sqlite-wal")).unwrap();
    let end = log.len();
    log[end / 2..].fill(0x55);
    fs::write(copy.file().with_extension("sqlite-wal"), log).unwrap();
    let copied = copy.open();
    check(&copied);
    let value = bucket(&copied, "acme", "alice", "b").get("key-0").unwrap();
    assert_eq!(value.unwrap(), [0; 3000]);
}

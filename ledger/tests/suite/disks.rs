//! Full and read-only disks, locked files, and files that are not ledgers.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use toolward_ledger::payload::{Erase, Keep, PayloadKind};
use toolward_ledger::{Durability, Error, Maintenance, Reader, Recorder, Writer};

use crate::support::{
    Place, copy, durable, ended, filled, invocation, opened, queued, read_only, started,
};

/// The command that creates a mount namespace: as root, or in a user namespace. `None` if neither
/// works.
fn namespace() -> Option<&'static [&'static str]> {
    let tried: [&[&str]; 2] = [&["--mount"], &["--map-root-user", "--mount"]];
    let works = |arguments: &&&[&str]| {
        let mut unshare = Command::new("unshare");
        unshare
            .args(**arguments)
            .args(["sh", "-c", "mount -t tmpfs -o size=1m tmpfs /tmp"]);
        unshare.output().is_ok_and(|output| output.status.success())
    };
    let found = tried.iter().find(works).copied();
    if found.is_none() {
        eprintln!("SKIPPED: a disk of the test's own can't be mounted here");
    }
    found
}

#[test]
fn on_a_full_disk_nothing_is_dispatched_unrecorded_and_what_ended_follows_later() {
    let Some(namespace) = namespace() else { return };
    let folder = tempfile::tempdir().unwrap();
    let child = crate::crash::start("full 0", folder.path());
    let mut unshare = Command::new("unshare");
    unshare.args(namespace).args([
        "sh",
        "-c",
        "mount -t tmpfs -o size=3m,mode=700 tmpfs \"$0\" && exec \"$@\"",
    ]);
    unshare
        .arg(folder.path())
        .arg(child.get_program())
        .args(child.get_args());
    unshare.envs(
        child
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let ran = unshare.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        said.contains("all is well"),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Fills the disk with a file, to the last page.
fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
}

/// Runs in the other process, whose disk has 3 MiB.
pub(crate) fn on_a_full_disk(folder: &Path) {
    let ledger = folder.join("ledger");
    let options = toolward_ledger::LedgerOptions::new(&ledger);
    let writer = Writer::open(options.clone(), opened()).unwrap();
    durable(&writer, started(invocation(1))).unwrap();
    let ballast = folder.join("ballast");
    fill(&ballast);
    // The rest of the log's last page has room for some rows.
    let mut tried = (2..1000).map(|number| durable(&writer, started(invocation(number))));
    let error = tried.find_map(Result::err).unwrap();
    assert_eq!(error.code(), "ledger-full");
    // Calls that change nothing continue.
    for number in 0..50 {
        queued(&writer, read_only(invocation(2000 + number)));
    }
    let begun = Instant::now();
    let late = durable(&writer, ended(invocation(1))).unwrap_err();
    assert!(matches!(late, Error::Late), "{late}");
    assert!(
        (1500..5000).contains(&begun.elapsed().as_millis()),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(writer.flush().wait().unwrap_err().code(), "ledger-full");

    std::fs::remove_file(&ballast).unwrap();
    let begun = Instant::now();
    while durable(&writer, started(invocation(5000))).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    writer.close().unwrap();
    let mut reader = Reader::open(&ledger, None).unwrap();
    assert!(reader.verify(&[]).unwrap().holds());
    let rows = (0..reader.size().unwrap()).map(|seq| reader.row(seq).unwrap().read().unwrap());
    let rows: Vec<_> = rows.collect();
    let late = rows
        .iter()
        .filter(|row| row.event.outcome().is_some_and(|outcome| outcome.late));
    assert_eq!(
        late.map(|row| row.invocation()).collect::<Vec<_>>(),
        [Some(invocation(1))]
    );
    let gaps = rows.iter().filter_map(|row| match &row.event {
        toolward_ledger::record::Event::Gap(gap) => Some((gap.missing.get(), gap.why.to_string())),
        _ => None,
    });
    let gaps: Vec<_> = gaps.collect();
    let written = rows
        .iter()
        .filter(|row| row.event.kind() == "ended")
        .count() as u64
        - 1;
    assert_eq!(
        gaps.iter().map(|(missing, _)| missing).sum::<u64>(),
        50 - written
    );
    assert!(gaps.iter().all(|(_, why)| why == "ledger-full"), "{gaps:?}");
    drop(reader);

    // The same disk, read-only.
    let remount = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(folder)
        .status()
        .unwrap();
    assert!(remount.success());
    let error = Writer::open(options, opened()).unwrap_err();
    assert_eq!(error.code(), "ledger-read-only", "{error}");
    assert!(
        Reader::open(&ledger, None)
            .unwrap()
            .verify(&[])
            .unwrap()
            .holds()
    );
    println!("all is well");
}

#[test]
fn a_file_that_others_hold_is_waited_for_and_no_longer_than_said() {
    let place = Place::new();
    let writer = place.open();
    durable(&writer, started(invocation(1))).unwrap();
    let holder = place.records();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    let (start, end) = (started(invocation(2)), ended(invocation(1)));
    let end = writer.append(end, Durability::Disk);
    let start = writer.append(start, Durability::Disk);
    queued(&writer, read_only(invocation(3)));
    assert!(matches!(end.wait(), Err(Error::Late)));
    assert!(
        begun.elapsed() >= Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    assert!(matches!(start.wait(), Err(Error::Busy)));
    assert!(
        begun.elapsed() >= Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    holder.execute_batch("COMMIT").unwrap();
    writer.close().unwrap();
    assert!(place.verify().holds());
    let late = place
        .lines()
        .into_iter()
        .filter(|line| line.contains(r#""late":true"#));
    assert_eq!(late.count(), 1);
    assert_eq!((place.count("started"), place.count("gap")), (1, 1));
}

#[test]
fn a_short_wait_is_no_error() {
    let place = Place::new();
    let writer = place.open();
    let holder = place.records();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = writer.append(started(invocation(1)), Durability::Disk);
    std::thread::sleep(Duration::from_millis(300));
    holder.execute_batch("COMMIT").unwrap();
    start.wait().unwrap();
}

#[test]
fn a_ledger_as_large_as_it_may_be_takes_the_ends_of_calls_only() {
    let place = Place::new();
    let mut options = place.options();
    options.max_bytes = 400_000;
    options.keep = Keep::All;
    let writer = Writer::open(options, opened()).unwrap();
    let mut started_calls = Vec::new();
    let refused = (0..5000).find_map(|number| {
        // Rows that are not awaited stop first.
        queued(&writer, read_only(invocation(10_000 + number)));
        match durable(&writer, started(invocation(number))) {
            Ok(()) => {
                started_calls.push(number);
                None
            }
            Err(error) => Some(error),
        }
    });
    assert_eq!(refused.unwrap().code(), "ledger-full");
    // No payload is kept of a call whose row has no room.
    let much = started(invocation(80_000)).principal("newcomer");
    let much = much.payload(PayloadKind::Input, b"marked-input".to_vec());
    assert_eq!(durable(&writer, much).unwrap_err().code(), "ledger-full");
    for entry in std::fs::read_dir(place.ledger()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        for kept in ["marked-input", "newcomer"] {
            let found = bytes
                .windows(kept.len())
                .any(|part| part == kept.as_bytes());
            assert!(!found, "{kept}");
        }
    }
    for number in started_calls.iter().rev().take(5) {
        durable(&writer, ended(invocation(*number))).unwrap();
    }
    writer.close().unwrap();
    assert!(place.verify().holds());
    assert!(place.count("gap") > 0);
    let size = std::fs::metadata(place.ledger().join("records.sqlite"))
        .unwrap()
        .len();
    assert!(size <= 440_000, "{size}");

    // Pruning makes room, although the file does not shrink.
    let mut maintenance = Maintenance::open(&place.ledger(), None).unwrap();
    assert!(maintenance.prune(u64::MAX).unwrap() >= 256);
    let mut options = place.options();
    options.max_bytes = 400_000;
    let writer = Writer::open(options, opened()).unwrap();
    durable(&writer, started(invocation(90_000))).unwrap();
    writer.close().unwrap();
    assert!(place.verify().holds());
}

#[test]
fn a_file_of_garbage_is_refused_and_left_as_it_is() {
    for garbage in garbage() {
        let place = filled(3);
        let path = place.ledger().join("records.sqlite");
        std::fs::write(&path, &garbage).unwrap();
        let error = Writer::open(place.options(), opened()).unwrap_err();
        assert_eq!(error.code(), "ledger-corrupt");
        let error = Reader::open(&place.ledger(), None).unwrap_err();
        assert_eq!(error.code(), "ledger-corrupt");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), garbage);
    }
}

fn garbage() -> [String; 2] {
    [
        "a diary of more than a few bytes ".repeat(200),
        "short".to_owned(),
    ]
}

/// The files that were set aside, each without its log.
fn set_aside(place: &Place) -> Vec<std::path::PathBuf> {
    let mut all = left_aside(place);
    all.retain(|path| {
        let name = path.to_str().unwrap();
        !name.ends_with("-wal") && !name.ends_with("-shm")
    });
    all
}

/// All remaining files that were set aside, with their logs.
fn left_aside(place: &Place) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(place.ledger()).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let is_aside = |path: &std::path::PathBuf| path.display().to_string().contains(".damaged-");
    files.filter(is_aside).collect()
}

#[test]
fn damaged_payloads_are_set_aside_and_the_records_go_on() {
    for garbage in garbage() {
        let place = filled(3);
        let rows = place.verify().rows;
        std::fs::write(place.ledger().join("payloads.sqlite"), &garbage).unwrap();
        // Reading changes nothing.
        assert!(place.verify().holds());
        assert!(set_aside(&place).is_empty());
        let writer = place.open();
        durable(&writer, started(invocation(77)).principal("alice")).unwrap();
        writer.close().unwrap();
        let [aside] = set_aside(&place).try_into().unwrap();
        assert_eq!(std::fs::read_to_string(&aside).unwrap(), garbage);
        assert!(place.verify().holds() && place.verify().rows > rows);
        let said: Vec<_> = place
            .lines()
            .into_iter()
            .filter(|line| line.contains("payloads-damaged"))
            .collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(r#""kind":"gap""#) && said[0].contains(r#""missing":0"#));
        // Single payloads can't be erased from it.
        let mut maintenance = Maintenance::open(&place.ledger(), None).unwrap();
        maintenance
            .erase(&Erase::Principal("alice".to_owned()))
            .unwrap();
        assert!(left_aside(&place).is_empty());
    }
}

#[test]
fn payloads_that_are_damaged_while_a_writer_has_them_open_stop_no_row() {
    let place = Place::new();
    let mut options = place.options();
    options.keep = Keep::All;
    let writer = Writer::open(options, opened()).unwrap();
    let row = |number: u64| {
        let entry = started(invocation(number)).principal(format!("person {number}"));
        durable(&writer, entry.payload(PayloadKind::Input, vec![7; 3000]))
    };
    for number in 0..50 {
        row(number).unwrap();
    }
    let path = place.ledger().join("payloads.sqlite");
    // Empties the log, and overwrites all pages of the file except the first.
    let sql = place.payloads();
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, i64>(0)
    })
    .unwrap();
    drop(sql);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![0xff; length as usize - 4096], 4096)
        .unwrap();
    for number in 50..60 {
        row(number).unwrap();
    }
    writer.close().unwrap();
    assert_eq!(place.count("started"), 60);
    assert_eq!(place.count("gap"), 1);
    assert_eq!(set_aside(&place).len(), 1);
    let verified = place.verify();
    assert!(verified.holds(), "{verified:?}");
    assert_eq!(verified.payloads, 10);
}

#[test]
fn no_damage_of_the_file_makes_anything_panic() {
    let place = filled(120);
    let good = place.directory.path().join("good");
    copy(&place.ledger(), &good);
    let path = place.ledger().join("records.sqlite");
    let bytes = std::fs::read(&path).unwrap();
    let steps = if crate::support::long() { 331 } else { 997 };
    for at in (0..bytes.len()).step_by(steps) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        copy(&good, &place.ledger());
        std::fs::write(&path, &damaged).unwrap();
        if let Ok(mut reader) = Reader::open(&place.ledger(), None) {
            let _ = reader.verify(&[]);
            let _ = reader.prove(5);
            let _ = reader.list(&Default::default());
        }
        if let Ok(writer) = Writer::open(place.options(), opened()) {
            let _ = durable(&writer, read_only(invocation(1)));
            let _ = writer.close();
        }
    }
}

#[test]
fn a_ledger_is_its_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = filled(3);
    for name in ["records.sqlite", "payloads.sqlite", "key.pem", "sessions"] {
        let path = place.ledger().join(name);
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode | 0o040)).unwrap();
        let error = Writer::open(place.options(), opened()).unwrap_err();
        assert_eq!(error.code(), "ledger-unusable", "{name}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let link = place.directory.path().join("elsewhere");
    let key = place.ledger().join("key.pem");
    std::fs::rename(&key, &link).unwrap();
    std::os::unix::fs::symlink(&link, &key).unwrap();
    Writer::open(place.options(), opened()).unwrap_err();
}

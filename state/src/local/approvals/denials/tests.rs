//! Tests which denials are kept, and which files are not trusted.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::Arc;
use std::time::Instant;

use tempfile::TempDir;

use super::super::backoff::DenialBackoff;
use super::*;

const TOOL: ApprovalKey = [1; 32];

fn alice() -> Arc<str> {
    "alice".into()
}

/// The state of a process that starts now.
fn begun(directory: &TempDir) -> DenialBackoff {
    let denials = Denials::open(&directory.path().join("denials")).unwrap();
    DenialBackoff::new(Some(denials))
}

fn is_paused(denied: &DenialBackoff, principal: &str, tool: &ApprovalKey) -> bool {
    denied.remaining(principal, tool, Instant::now()).is_some()
}

fn file(directory: &TempDir) -> PathBuf {
    directory.path().join("denials/denials")
}

#[test]
fn a_no_is_known_to_the_next_process_and_to_one_that_runs_beside() {
    let directory = TempDir::new().unwrap();
    let (first, beside) = (begun(&directory), begun(&directory));
    first.denied(&alice(), TOOL, Instant::now());
    for other in [&beside, &begun(&directory)] {
        assert!(is_paused(other, "alice", &TOOL));
        assert!(!is_paused(other, "bob", &TOOL));
        assert!(!is_paused(other, "alice", &[2; 32]));
    }
    // Neither process loses the denials of the other.
    beside.denied(&alice(), [2; 32], Instant::now());
    first.denied(&alice(), [3; 32], Instant::now());
    let next = begun(&directory);
    for tool in [TOOL, [2; 32], [3; 32]] {
        assert!(is_paused(&next, "alice", &tool));
    }
    next.approved("alice", &TOOL);
    assert!(!is_paused(&begun(&directory), "alice", &TOOL));
    assert!(is_paused(&begun(&directory), "alice", &[2; 32]));
}

#[test]
fn the_file_says_nothing_of_who_was_asked_about_what_and_is_private() {
    let directory = TempDir::new().unwrap();
    begun(&directory).denied(&alice(), TOOL, Instant::now());
    let text = std::fs::read_to_string(file(&directory)).unwrap();
    assert_eq!(text.split(' ').next().unwrap().len(), 64);
    let plain = blake3::Hash::from_bytes(TOOL).to_hex();
    assert!(
        !text.contains("alice") && !text.contains(plain.as_str()),
        "{text}"
    );
    // Under another key, the same denial is another row.
    let other = TempDir::new().unwrap();
    begun(&other).denied(&alice(), TOOL, Instant::now());
    let elsewhere = std::fs::read_to_string(file(&other)).unwrap();
    assert_ne!(text.get(..64), elsewhere.get(..64));
    for name in ["denials", "denials/denials", "denials/key"] {
        let status = std::fs::metadata(directory.path().join(name)).unwrap();
        assert_eq!(status.mode() & 0o077, 0, "{name}");
    }
    let left: Vec<_> = std::fs::read_dir(directory.path().join("denials"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn each_further_no_doubles_the_pause_across_processes() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory);
    begun(&directory).denied(&alice(), TOOL, Instant::now());
    // Moves the start of the pause back, as if time had passed.
    let back = |seconds: u64| {
        let text = std::fs::read_to_string(&path).unwrap();
        let words: Vec<&str> = text.trim_end().split(' ').collect();
        let since = words[1].parse::<u64>().unwrap() - seconds;
        write(&path, &format!("{} {since} {}\n", words[0], words[2]));
    };
    back(61);
    let next = begun(&directory);
    assert!(!is_paused(&next, "alice", &TOOL));
    next.denied(&alice(), TOOL, Instant::now());
    let pause = begun(&directory).remaining("alice", &TOOL, Instant::now());
    let pause = pause.unwrap().as_secs();
    assert!((115..=120).contains(&pause), "{pause}");
    // Long afterwards, the backoff starts again, and the old row is removed with the next denial.
    back(120 + 15 * 60 + 1);
    let next = begun(&directory);
    assert!(!is_paused(&next, "alice", &TOOL));
    next.denied(&alice(), [2; 32], Instant::now());
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn what_is_damaged_or_could_be_somebody_elses_counts_as_empty() {
    let directory = TempDir::new().unwrap();
    begun(&directory).denied(&alice(), TOOL, Instant::now());
    let path = file(&directory);
    let whole = std::fs::read_to_string(&path).unwrap();
    let empty = || assert!(!is_paused(&begun(&directory), "alice", &TOOL));
    let many = "0".repeat(64) + " 1 1\n";
    for text in [
        "",
        "nonsense\n",
        whole.trim_end(),
        &whole.replace(' ', "  "),
        &whole.replace(" 1\n", " 0\n"),
        &whole.replace(" 1\n", " -1\n"),
        &(whole.clone() + "x"),
        &(whole.clone() + &many.repeat(MAX_ROWS)),
        &"x".repeat(1 << 20),
    ] {
        write(&path, text);
        empty();
    }
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    empty();
    write(&path, &whole);
    assert!(is_paused(&begun(&directory), "alice", &TOOL));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    empty();
    write(&path, &whole);
    let elsewhere = directory.path().join("elsewhere");
    std::fs::hard_link(&path, &elsewhere).unwrap();
    empty();
    std::fs::remove_file(&path).unwrap();
    symlink(&elsewhere, &path).unwrap();
    empty();
    // The next denial is kept nevertheless, in a new file.
    begun(&directory).denied(&alice(), TOOL, Instant::now());
    assert!(is_paused(&begun(&directory), "alice", &TOOL));
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), whole);
}

#[test]
fn a_damaged_key_is_replaced_and_what_was_kept_under_it_forgotten() {
    let directory = TempDir::new().unwrap();
    begun(&directory).denied(&alice(), TOOL, Instant::now());
    write(&directory.path().join("denials/key"), "short");
    let next = begun(&directory);
    assert!(!is_paused(&next, "alice", &TOOL));
    next.denied(&alice(), TOOL, Instant::now());
    assert!(is_paused(&begun(&directory), "alice", &TOOL));
}

#[test]
fn a_directory_of_others_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("denials");
    drop(begun(&directory));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = Denials::open(&path).unwrap_err();
    assert_eq!(refused.code(), "denials-unsafe");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    let link = directory.path().join("link");
    symlink(&path, &link).unwrap();
    assert_eq!(Denials::open(&link).unwrap_err().code(), "denials-unusable");
}

#[test]
fn no_more_rows_are_kept_than_there_may_be() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory);
    begun(&directory).denied(&alice(), TOOL, Instant::now());
    let whole = std::fs::read_to_string(&path).unwrap();
    let row = |number: usize| format!("{number:064x} {} 3\n", now());
    let others: String = (1..MAX_ROWS).map(row).collect();
    write(&path, &(whole + &others));
    let next = begun(&directory);
    assert!(is_paused(&next, "alice", &TOOL));
    next.denied(&alice(), [2; 32], Instant::now());
    // The pause that ends first made room.
    assert_eq!(
        std::fs::read_to_string(&path).unwrap().lines().count(),
        MAX_ROWS
    );
    assert!(!is_paused(&begun(&directory), "alice", &TOOL));
    assert!(is_paused(&begun(&directory), "alice", &[2; 32]));
}

/// The variable with the directory for denials. If it is not set, this is the test itself, which
/// starts a process with the variable.
const SHORT_OF_FILES: &str = "TOOLWARD_TEST_DENIALS";

#[test]
fn what_can_not_be_read_for_want_of_open_files_is_not_replaced() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Some(path) = std::env::var_os(SHORT_OF_FILES) else {
        let directory = TempDir::new().unwrap();
        let name = "local::approvals::denials::tests::\
                    what_can_not_be_read_for_want_of_open_files_is_not_replaced";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(SHORT_OF_FILES, directory.path().join("denials"))
            .status()
            .unwrap();
        assert!(status.success());
        return;
    };
    let path = PathBuf::from(path);
    let open = || DenialBackoff::new(Some(Denials::open(&path).unwrap()));
    let denied = open();
    denied.denied(&alice(), TOOL, Instant::now());
    let limit = getrlimit(Resource::Nofile);
    let allow = |current| setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    allow(Some(0));
    denied.denied(&alice(), [2; 32], Instant::now());
    let opened = Denials::open(&path);
    allow(limit.current);
    assert!(matches!(opened, Err(DenialsError::Unusable { .. })));
    assert!(is_paused(&denied, "alice", &[2; 32]));
    assert!(is_paused(&open(), "alice", &TOOL));
}

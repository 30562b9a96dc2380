//! How many instructions a call takes, counted by callgrind, so that the number is the same on a
//! busy machine. It includes the client's instructions, which are few in comparison.

use std::path::Path;
use std::process::Command;

use toolward_host::Limits;

use crate::server::{self, Server};

/// The instructions that a call takes in a development build, counted by callgrind 3.19.
const CALL: u64 = 1_513_000;

/// How far a call may differ from that number, in percent.
const PERCENT: u64 = 3;

/// Calls before the first counted one.
const WARM: usize = 20;
const CALLS: usize = 50;

#[test]
fn a_call_takes_the_instructions_that_were_measured() {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().expect("a folder");
    let counted = folder.path().join("counted");
    // All counts are set to zero when the first of these functions is entered, and written when the
    // second one is.
    let run = Command::new(valgrind())
        .args(["--tool=callgrind", "--zero-before=*::begin_of_calls"])
        .arg("--dump-before=*::end_of_calls")
        .arg(format!("--callgrind-out-file={}", counted.display()))
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "instructions::calls_for_callgrind", "--ignored"])
        .output()
        .expect("valgrind, of the system or fetched by xtask/valgrind.sh");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let counted = std::fs::read_to_string(counted.with_extension("1"));
    let counted =
        counted.unwrap_or_else(|error| panic!("callgrind wrote no counts: {error}; {said}"));
    let all = counted
        .lines()
        .find_map(|line| line.strip_prefix("totals: "));
    let all: u64 = all.and_then(|all| all.parse().ok()).expect("a total");
    let call = all / CALLS as u64;
    println!("{call} instructions");
    assert!(
        call.abs_diff(CALL) * 100 <= CALL * PERCENT,
        "a call takes {call} instructions, where {CALL} were measured; if that is meant, write the new number here"
    );
}

/// The program that `cargo xtask test` downloads if the system has none.
fn valgrind() -> std::path::PathBuf {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/valgrind/valgrind");
    if fetched.exists() {
        fetched
    } else {
        "valgrind".into()
    }
}

#[test]
#[ignore = "run by the test above, under callgrind"]
fn calls_for_callgrind() {
    // With its usual size the pool takes more address space than valgrind has.
    let mut server = Server::start(Limits {
        concurrency: 1,
        ..Limits::default()
    });
    let calls: Vec<_> = (1..=WARM + CALLS).map(server::call).collect();
    let (warm, counted) = calls.split_at(WARM);
    let mut ask = |call: &String| {
        let answer = server.ask(call);
        assert!(answer.contains(r#""words":2"#), "{answer}");
    };
    warm.iter().for_each(&mut ask);
    begin_of_calls();
    counted.iter().for_each(&mut ask);
    end_of_calls();
}

#[inline(never)]
fn begin_of_calls() {
    std::hint::black_box("begin");
}

#[inline(never)]
fn end_of_calls() {
    std::hint::black_box("end");
}

//! Makes a process execute every system call. The answers must equal those of the table in the
//! repository, and nothing forbidden may have happened.

use serde_json::json;

use super::cases::{Addresses, LEFT_OUT, NEWEST, X32, all, names, path_for_32_bits};
use super::scene::{Scene, User, is_root};
use super::server::Server;
use super::table::{self, NOT_TRIED, Outcome};
use super::tracee::{Answer, Tracee};
use super::{may_trace, skipped};

/// All numbers of x32 calls are smaller than this one, which is tried as well.
const OF_X32: u64 = 548;

const EPERM: i64 = -1;
const ENOSYS: i64 = -38;

fn outcome(answer: Answer) -> &'static str {
    match answer {
        Answer::Value(EPERM) => "refused",
        Answer::Value(ENOSYS) => "absent",
        Answer::Value(_) | Answer::Waits => "passes",
        Answer::Ended => "ended",
    }
}

/// Makes a process execute all calls except `not_tried`.
pub(super) fn inject(
    tracee: &Tracee,
    process: u32,
    scene: &Scene,
    not_tried: impl Fn(u64, &str) -> bool,
) -> Vec<Outcome> {
    let at = Addresses::write(tracee, process, scene);
    let names = names();
    let mut found = Vec::new();
    for case in all(&at) {
        let name = names.get(&case.number).copied().unwrap_or("-");
        let call = table::call(case.number, name, case.what);
        if not_tried(case.number, case.what) {
            found.push((case.number, call, NOT_TRIED));
            continue;
        }
        let answer = tracee.call(case.number, case.arguments);
        assert!(answer != Answer::Ended, "{call} ended the process");
        found.push((case.number, call, outcome(answer)));
    }
    let left_out =
        LEFT_OUT.map(|number| (number, table::call(number, names[&number], ""), NOT_TRIED));
    found.extend(left_out);
    found.sort_by_key(|(number, ..)| *number);

    for number in 0..=OF_X32 {
        let answer = tracee.call(X32 | number, [u64::MAX; 6]);
        assert_eq!(outcome(answer), "refused", "x32: {number}");
    }
    chmod_of_32_bits(tracee, scene);
    found
        .into_iter()
        .map(|(_, call, outcome)| (call, outcome))
        .collect()
}

/// Makes a server execute all calls.
fn outcomes(user: User) -> Vec<Outcome> {
    let mut scene = Scene::new(user);
    let mut server = scene.serve();
    works(&mut server);
    let before = scene.state();
    let tracee = Tracee::stop(server.process());
    let found = inject(&tracee, server.process(), &scene, |_, _| false);
    tracee.release();
    let changed = scene.changed_since(&before);
    assert!(changed.is_empty(), "{changed:#?}");
    works(&mut server);
    found
}

/// Asserts that a 32-bit `chmod` is refused. The 32-bit calls have other numbers, but the same
/// kernel code.
fn chmod_of_32_bits(tracee: &Tracee, scene: &Scene) {
    const CHMOD: u64 = 15;
    match tracee.call_of_32_bits(CHMOD, [path_for_32_bits(tracee, scene), 0o777, 0]) {
        Some(answer) => assert_eq!(outcome(answer), "refused"),
        None => skipped("this kernel has no system calls of 32 bits"),
    }
}

/// Asserts that the server still does its work.
fn works(server: &mut Server) {
    let answer = server.call("text.stats", &json!({"text": "One two."}));
    assert_eq!(answer["isError"], false, "{answer}");
}

#[test]
fn each_system_call_is_answered_as_the_table_says_and_changes_nothing() {
    if !may_trace() {
        return;
    }
    assert!(names().last_key_value().unwrap().0 == &NEWEST);
    table::same("serving", &outcomes(User::Ordinary));
    if is_root() {
        table::same("serving", &outcomes(User::Root));
    } else {
        skipped("the calls as root: the tests run as another user");
    }
}

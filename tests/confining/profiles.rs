//! A process of each other profile executes every system call.

use std::io::{BufRead as _, BufReader, ErrorKind};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::injecting::inject;
use super::may_trace;
use super::scene::{Scene, User};
use super::table;
use super::tracee::Tracee;

/// Calls that would start a process. Those in [`EXECUTING`] would replace the process by a program.
const STARTING: [(u64, &str); 3] = [(56, "a process"), (57, ""), (58, "")];
const EXECUTING: [(u64, &str); 2] = [(59, "a program"), (322, "a program")];

/// A confined process that waits.
struct Probe {
    child: Child,
    process: u32,
}

impl Probe {
    fn start(scene: &Scene, profile: &str) -> Self {
        let mut command: Command = scene.program(env!("CARGO_BIN_EXE_confined-probe"));
        command
            .arg(profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = spawned(&mut command);
        let mut line = String::new();
        let output = child.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let process = line.trim().parse().expect("it confines itself");
        Self { child, process }
    }
}

/// Starts a program that was just copied. Until a process that another test has forked executes its
/// program, it has the copy open for writing.
fn spawned(command: &mut Command) -> Child {
    for _ in 0..1000 {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            child => return child.unwrap(),
        }
    }
    panic!("the program stays open for writing");
}

impl Drop for Probe {
    fn drop(&mut self) {
        // At the end of the pipe the probe ends any process that it started, and then itself.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn each_system_call_is_answered_to_each_profile_as_the_table_says_and_changes_nothing() {
    if !may_trace() {
        return;
    }
    for profile in &table::PROFILES[1..] {
        let mut scene = Scene::new(User::Ordinary);
        let probe = Probe::start(&scene, profile);
        let before = scene.state();
        let tracee = Tracee::stop(probe.process);
        let not_tried = |number: u64, what: &str| {
            let call = (number, what);
            match *profile {
                "broker" => STARTING.contains(&call),
                "build" => STARTING.contains(&call) || EXECUTING.contains(&call),
                _ => false,
            }
        };
        let found = inject(&tracee, probe.process, &scene, not_tried);
        tracee.release();
        let changed = scene.changed_since(&before);
        assert!(changed.is_empty(), "{profile}: {changed:#?}");
        table::same(profile, &found);
    }
}

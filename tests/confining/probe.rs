//! A process for the tracer, for each profile: it confines itself, prints its number, and waits.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use toolward_confine::{build_profile, compile_profiles, only_files, program_profile};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let profile = arguments.next().expect("a profile");
    let this = std::env::current_exe().unwrap();
    let notes = Path::new("notes").canonicalize().unwrap();
    match profile.as_str() {
        "waiting" => {}
        "recorder" => only_files([notes.as_path()]).unwrap(),
        "worker" => compile_profiles::worker().unwrap(),
        "broker" => compile_profiles::broker(&this, None).unwrap(),
        "program" => {
            let executed = OwnedFd::from(File::open(&this).unwrap());
            let notes = OwnedFd::from(File::open(&notes).unwrap());
            let kept = program_profile::ProgramRights {
                executed: &executed,
                read: None,
                workspaces: [(&notes, false)].into_iter(),
                network: false,
                processes: false,
            };
            program_profile::prepare(&kept).unwrap().apply().unwrap();
        }
        "build" => return build(&this),
        other => panic!("there is no profile {other}"),
    }
    println!("{}", std::process::id());
    wait();
}

/// The process that a build starts is confined. The process that starts it is not.
fn build(this: &Path) {
    let kept = build_profile::BuildProfile {
        read: vec!["/".into()],
        ..build_profile::BuildProfile::default()
    };
    let mut command = Command::new(this);
    command.arg("waiting").stdin(Stdio::piped());
    let started = std::thread::spawn(move || {
        let overseer = kept.apply().unwrap();
        (command.spawn().unwrap(), overseer)
    });
    let (mut child, overseer) = started.join().unwrap();
    overseer.watch().unwrap();
    wait();
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits until standard input ends.
fn wait() {
    let _ = std::io::stdin().read(&mut [0]);
}

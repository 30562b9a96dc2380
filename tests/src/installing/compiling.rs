//! Installing compiles drivers, so that the first call does not wait for it.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{ID, key, release, reworded, runs, sequence, ship, trusting};
use crate::support::machine::toolward;
use crate::support::{Machine, Run};

/// Returns the number of compiled drivers on the machine.
fn compiled(machine: &Machine) -> usize {
    let folder = machine.cache().join("artefacts");
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn what_was_installed_is_compiled_before_its_first_call() {
    let (machine, one) = trusting();
    let machine = machine.with_own_cache();
    ship(&machine, &release(1), &one, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    assert_eq!(compiled(&machine), 1);
    runs(&machine);
    assert_eq!(compiled(&machine), 1);
}

#[test]
fn what_is_refused_or_held_is_not_compiled() {
    let (machine, one) = trusting();
    let machine = machine.with_own_cache();
    let stranger = key(&machine, "stranger");
    ship(&machine, &release(1), &stranger, "theirs.toolbundle");
    machine.toolward("install theirs.toolbundle").ends(3);
    assert_eq!(compiled(&machine), 0);

    ship(&machine, &release(1), &one, "b.toolbundle");
    machine.toolward("install b.toolbundle --no-cache").ends(0);
    // Without a cache nothing is compiled in advance.
    assert_eq!(compiled(&machine), 0);
    // The same driver with another description, which waits for a person.
    ship(&machine, &reworded(release(2)), &one, "b.toolbundle");
    let held = machine
        .toolward("install b.toolbundle --json")
        .ends(4)
        .json();
    assert_eq!(held["state"], "held", "{held}");
    assert_eq!(compiled(&machine), 0);
    let accept = format!("update {ID} --accept {}", held["surface"].as_str().unwrap());
    machine.toolward(&accept).ends(0);
    assert_eq!(compiled(&machine), 1);
}

#[test]
fn a_driver_that_does_not_compile_is_installed_with_a_warning() {
    let (machine, one) = trusting();
    let machine = machine.with_own_cache();
    let broken = wat::parse_str(
        "(component (core module (func (result i32))) (instance $i) \
         (export \"toolward:driver/handler@0.1.0\" (instance $i)))",
    );
    let draft = release(1).put("drivers/text-stats/driver.wasm", broken.unwrap());
    ship(&machine, &draft, &one, "b.toolbundle");
    machine
        .toolward("install b.toolbundle")
        .ends(0)
        .warns("does not compile");
    assert_eq!(compiled(&machine), 0);
}

/// Returns the running child processes of a process.
fn children(parent: u32) -> Vec<u32> {
    let parent = parent.to_string();
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id: &u32| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            // The name of a process in brackets, its state, and its parent.
            let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
            after.split(' ').nth(1) == Some(&parent)
        })
        .collect()
}

fn soon(what: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !what() {
        assert!(Instant::now() < until, "it does not come to that");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_installation_that_is_interrupted_while_it_compiles_has_installed_the_bundle() {
    let (machine, one) = trusting();
    let machine = machine.with_own_cache();
    ship(&machine, &release(1), &one, "b.toolbundle");
    // A shell without job control makes its background processes ignore the signal.
    let mut install = machine.program("env");
    install.arg("--default-signal=INT").arg(toolward());
    let mut install = install
        .args(["install", "b.toolbundle"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let workers = || {
        let brokers = children(install.id()).into_iter();
        brokers.flat_map(children).collect::<Vec<_>>()
    };
    soon(|| !workers().is_empty());
    let brokers = children(install.id());
    let mut kill = machine.program("kill");
    kill.args(["-INT", &install.id().to_string()]);
    Run::new(kill).ends(0);
    let status = install.wait().unwrap();
    assert_eq!(status.signal(), Some(2), "{status}");

    // A process that has ended but was not waited for has no command line.
    let runs_on = |id: &u32| {
        let line = fs::read(format!("/proc/{id}/cmdline"));
        line.is_ok_and(|line| !line.is_empty())
    };
    soon(|| !brokers.iter().any(runs_on));
    assert_eq!(compiled(&machine), 0);
    assert_eq!(sequence(&machine), 1);
    runs(&machine);
    assert_eq!(compiled(&machine), 1);
}

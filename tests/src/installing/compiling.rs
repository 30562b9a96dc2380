//! Installing compiles ahead: what the first call would have waited for is there.

use super::{ID, key, release, reworded, runs, ship, trusting};
use crate::support::Machine;

/// How many compiled drivers the machine has.
fn compiled(machine: &Machine) -> usize {
    let folder = machine.cache().join("artefacts");
    std::fs::read_dir(folder).map_or(0, Iterator::count)
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
    // Where nothing is kept nothing is compiled ahead.
    assert_eq!(compiled(&machine), 0);
    // The same driver under other words: it waits for a person.
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

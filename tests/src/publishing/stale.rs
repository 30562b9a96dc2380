//! A component that is older than its sources is detected before it is tested or signed.

use std::fs;

use crate::support::{Machine, copy, root};

/// An example whose component is a file that another tool made.
fn prebuilt(machine: &Machine) {
    let from = root().join("examples/text-stats");
    for part in ["bundle.toml", "tools", "drivers"] {
        copy(&from.join(part), &machine.path(&format!("b/{part}")));
    }
    let component = fs::read(machine.path("b/drivers/text-stats/driver.wasm")).unwrap();
    machine.write("b/made.wasm", component);
    let toml = machine.text("b/bundle.toml");
    let other = toml.replace(
        "crate = \"driver\"",
        "kind = \"wasm\"\nsource = \"made.wasm\"",
    );
    assert_ne!(other, toml);
    machine.write("b/bundle.toml", other);
}

/// The commands that an author runs one after the other.
const COMMANDS: [&str; 3] = [
    "check b",
    "test --dev b",
    "pack b --key mine.pem -o b.toolbundle",
];

fn all_end(machine: &Machine, code: i32) {
    for command in COMMANDS {
        let ended = machine.toolward(command).ends(code);
        let shown = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(shown.contains("component-stale"), code != 0, "{ended}");
    }
    assert_eq!(machine.path("b.toolbundle").exists(), code == 0);
}

#[test]
fn sources_that_changed_since_the_build_are_found_by_check_test_and_pack() {
    let machine = Machine::new();
    prebuilt(&machine);
    machine
        .toolward("publisher keys new --out mine.pem")
        .ends(0);
    // It was never built here, so nothing is known.
    machine.toolward("check b").ends(0);
    machine.toolward("build b").ends(0);
    // Adds a section that does not change the behaviour.
    let mut source = fs::read(machine.path("b/made.wasm")).unwrap();
    source.extend([0, 2, 1, b'x']);
    machine.write("b/made.wasm", source);
    all_end(&machine, 1);
    machine.toolward("build b").ends(0);
    all_end(&machine, 0);
    // Another tool wrote the component, so no statement about it is stored.
    machine.write("b/made.wasm", "other");
    let mut component = fs::read(machine.path("b/drivers/text-stats/driver.wasm")).unwrap();
    component.extend([0, 2, 1, b'y']);
    machine.write("b/drivers/text-stats/driver.wasm", component);
    machine.toolward("check b").ends(0);
}

//! Drivers in Rust without the standard library, as `new` writes them, and how to return to it.

use serde_json::Value;

use super::{GUEST_TARGET, new_bundle_of};
use crate::support::Machine;
use crate::support::machine::guest_cargo;
use crate::support::outside::skipped;
use crate::support::run::Run;

const SOURCE: &str = "greeter/driver/src/lib.rs";
const MANIFEST: &str = "greeter/driver/Cargo.toml";

/// A handler that panics for one name, allocates too much for another, and otherwise allocates
/// memory in each way.
const HANDLER: &str = r#"
    use core::alloc::Layout;
    let name = call.input.name.as_str();
    assert!(name != "boom", "it\nwent {name}");
    if name == "greedy" {
        let much = Vec::<u8>::with_capacity(1 << 30);
        return Err(Error::new("internal", format!("{}", much.capacity())));
    }
    // Each piece is filled, grown and compared with the others there are, so that none may lie in
    // another.
    let mut pieces = Vec::new();
    for round in 1..200_usize {
        for align in [1_usize, 8, 16, 64, 4096] {
            let size = round * 37 % 5000 + 1;
            let layout = Layout::from_size_align(size, align).unwrap();
            let zeroed = round % 2 == 0;
            let mut at = match zeroed {
                true => unsafe { extern_alloc::alloc_zeroed(layout) },
                false => unsafe { extern_alloc::alloc(layout) },
            };
            assert!(!at.is_null() && at as usize % align == 0, "{size} at {align}");
            if zeroed {
                let bytes = unsafe { core::slice::from_raw_parts(at, size) };
                assert!(bytes.iter().all(|byte| *byte == 0));
            }
            unsafe { at.write_bytes(round as u8, size) };
            let grown = size * 3;
            at = unsafe { extern_alloc::realloc(at, layout, grown) };
            assert!(!at.is_null() && at as usize % align == 0, "{grown} at {align}");
            unsafe { at.add(size).write_bytes(round as u8, grown - size) };
            pieces.push((at, Layout::from_size_align(grown, align).unwrap(), round as u8));
        }
        if pieces.len() > 40 {
            for (at, layout, filled) in pieces.drain(..25) {
                let bytes = unsafe { core::slice::from_raw_parts(at, layout.size()) };
                assert!(bytes.iter().all(|byte| *byte == filled));
                unsafe { extern_alloc::dealloc(at, layout) };
            }
        }
    }
    let large = vec![7_u8; 10 << 20];
    let greeting = format!("{}", large.iter().map(|byte| *byte as usize).sum::<usize>());
"#;

/// Returns the build as a run; `None` if no compiler for guests is installed.
fn build(machine: &Machine) -> Option<Run> {
    let Some(cargo) = guest_cargo() else {
        skipped("no guest toolchain; `cargo xtask guests` sets it up");
        return None;
    };
    let build = machine.toolward("build greeter --offline --json");
    Some(
        build
            .env("TOOLWARD_GUEST_CARGO", cargo)
            .env("CARGO_TARGET_DIR", GUEST_TARGET),
    )
}

/// The interfaces that the component of a build imports.
fn imports(built: &Value) -> Vec<&str> {
    let all = built["built"][0]["imports"].as_array().unwrap().iter();
    all.map(|one| one.as_str().unwrap()).collect()
}

fn edit(machine: &Machine, file: &str, from: &str, to: &str) {
    let text = machine.text(file);
    assert!(text.contains(from), "{text}");
    machine.write(file, text.replace(from, to));
}

#[test]
fn a_new_driver_imports_nothing_of_the_system_and_has_memory_and_panics_all_the_same() {
    let machine = Machine::new();
    // A separate id, since all tests compile into one directory.
    new_bundle_of(&machine, "text.bare");
    let line = r#"let greeting = format!("Hello, {}!", call.input.name);"#;
    edit(&machine, SOURCE, line, HANDLER);
    edit(
        &machine,
        SOURCE,
        "#![no_std]",
        "#![no_std]\nextern crate alloc;\nuse alloc::alloc as extern_alloc;",
    );
    let Some(built) = build(&machine) else {
        return;
    };
    let built = built.ends(0).json();
    let all = imports(&built);
    assert!(
        all.iter().all(|one| one.starts_with("toolward:driver/")),
        "{all:?}"
    );

    let call = |name: &str| {
        let call = format!("call text.bare --dev greeter --json --set name={name}");
        machine.toolward(&call)
    };
    let reply = call("memory").ends(0).json();
    assert_eq!(reply["value"]["greeting"], "73400320", "{reply}");
    let error = call("boom").ends(1).json()["error"].clone();
    let said = error["message"].as_str().unwrap();
    assert!(
        said.starts_with("the driver panicked: it went boom (src/lib.rs:"),
        "{error}"
    );
    assert_eq!(error["origin"], "driver", "{error}");
    let error = call("greedy").ends(1).json()["error"].clone();
    assert_eq!(error["code"], "toolward:memory_exceeded", "{error}");
}

#[test]
fn with_the_standard_library_a_driver_is_built_as_its_source_says() {
    let machine = Machine::new();
    new_bundle_of(&machine, "text.with-std");
    let with = "use std::collections::HashMap;\nstatic NAMES: std::sync::Mutex<Option<HashMap<String, u32>>> = \
                std::sync::Mutex::new(None);";
    edit(&machine, SOURCE, "#![no_std]", with);
    let used = "NAMES.lock().unwrap().get_or_insert_default().insert(call.input.name.clone(), 1);\n    println!(\"printed\");\n    let greeting";
    edit(&machine, SOURCE, "let greeting", used);
    let Some(built) = build(&machine) else {
        return;
    };
    let error = built.ends(1).json()["error"].clone();
    assert_eq!(error["code"], "guest-std-needed", "{error}");

    edit(&machine, MANIFEST, "default-features = false", "");
    let manifest = machine.text(MANIFEST);
    let manifest = manifest.replace(", , ", ", ").replace(",  }", " }");
    machine.write(MANIFEST, manifest);
    let built = build(&machine).unwrap().ends(0).json();
    assert!(
        imports(&built)
            .iter()
            .any(|one| one.starts_with("wasi:cli/stdout"))
    );
    let call = "call text.with-std --dev greeter --set name=Ada";
    let value = machine.toolward(call).ends(0).json();
    assert_eq!(value["greeting"], "Hello, Ada!");
}

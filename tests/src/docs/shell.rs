//! Where the commands of a page run: the checkout itself, or a scratch directory
//! that holds what a reader of the book has of it; on a machine of their own.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use crate::languages::toolchain;
use crate::support::machine::{guest_cargo, toolward};
use crate::support::{Machine, copy, root};

/// What the book's pages find in their directory: files to look at and to change.
const COPIED: &[&str] = &["README.md", "LICENSE", "examples"];

/// What belongs to a workspace and works in its place only.
const LINKED: &[&str] = &["guest-sdk"];

/// Components of other hosts, of those that tests have.
const FOREIGN: &[&str] = &["amplifier.wasm", "functions.wasm"];

/// A shell in a directory that holds [`COPIED`], [`LINKED`] and [`FOREIGN`].
pub(super) fn in_scratch(machine: &Machine) -> Command {
    for name in COPIED {
        copy(&root().join(name), &machine.path(name));
    }
    for name in LINKED {
        std::os::unix::fs::symlink(root().join(name), machine.path(name)).unwrap();
    }
    for name in FOREIGN {
        let from = root().join("tests/guests/other-world").join(name);
        std::fs::copy(&from, machine.path(name)).unwrap();
    }
    shell(machine)
}

/// A shell in the checkout.
pub(super) fn in_checkout(machine: &Machine) -> Command {
    let mut shell = shell(machine);
    // `cargo run` shall find what is built already, as it was built.
    let target = toolward().ancestors().nth(3).unwrap();
    shell.current_dir(root()).env("CARGO_TARGET_DIR", target);
    for setting in ["CARGO_INCREMENTAL", "CARGO_PROFILE_DEV_DEBUG"] {
        shell.envs(env::var_os(setting).map(|value| (setting, value)));
    }
    shell
}

/// `timeout`, which takes a time and a program, with the command on its `PATH`.
pub(super) fn shell(machine: &Machine) -> Command {
    let mut path = OsString::from(toolward().parent().unwrap());
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let mut shell = machine.program("timeout");
    shell.env("PATH", path).env("TERM", "dumb");
    shell.env("TOOLWARD_TOOLCHAIN", toolchain::directory());
    if let Some(cargo) = guest_cargo() {
        shell.env("TOOLWARD_GUEST_CARGO", cargo);
    }
    shell
}

//! Makes the shell for a page's commands. Its directory is the checkout, or a temporary directory
//! with the files that a reader of the book has. The home directory is the machine's.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use crate::languages::toolchain;
use crate::support::machine::{guest_cargo, toolward};
use crate::support::{Machine, copy, root};

/// The files that are copied into the directory of a page's commands.
const COPIED: &[&str] = &["README.md", "LICENSE", "examples"];

/// Folders that work only in their own workspace, so they are linked.
const LINKED: &[&str] = &["guest-sdk"];

/// Components of other hosts that are copied.
const FOREIGN: &[&str] = &["amplifier.wasm", "functions.wasm"];

/// Returns a shell in a directory with [`COPIED`], [`LINKED`] and [`FOREIGN`].
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

/// Returns a shell in the checkout.
pub(super) fn in_checkout(machine: &Machine) -> Command {
    let mut shell = shell(machine);
    // `cargo run` must find the existing build.
    let target = toolward().ancestors().nth(3).unwrap();
    shell.current_dir(root()).env("CARGO_TARGET_DIR", target);
    for setting in ["CARGO_INCREMENTAL", "CARGO_PROFILE_DEV_DEBUG"] {
        shell.envs(env::var_os(setting).map(|value| (setting, value)));
    }
    shell
}

/// Returns `timeout`, which takes a time and a program, with the command in its `PATH`.
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

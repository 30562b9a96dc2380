//! Has the linker of a release build put the functions side by side that calls and starts run: those in `functions.txt`,
//! which `bench/functions.py` writes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The only target whose compiler comes with lld and links with it, unless somebody names another linker.
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LD_PRELOAD");
    if variable("PROFILE") == "release" && !names_a_linker() {
        order();
    }
}

/// Whether somebody does, in cargo's configuration, the compiler's flags, or by a library that starts another (mold).
fn names_a_linker() -> bool {
    std::env::var_os("RUSTC_LINKER").is_some()
        || variable("CARGO_ENCODED_RUSTFLAGS").contains("link")
        || std::env::var_os("LD_PRELOAD").is_some()
}

fn order() {
    println!("cargo::rerun-if-changed=functions.txt");
    let list = Path::new(&variable("CARGO_MANIFEST_DIR")).join("functions.txt");
    let (Some(list), Some(lld)) = (list.to_str(), lld()) else {
        return;
    };
    let Some(lld) = lld.to_str() else {
        return;
    };
    // A comma would begin another argument of the linker, and the end of a line another word for cargo.
    if [list, lld].iter().any(|path| path.contains([',', '\n'])) {
        return;
    }
    for argument in [
        // Else a compiler that links with the system's linker would stop at the others.
        &format!("-B{lld}"),
        "-fuse-ld=lld",
        &format!("-Wl,--symbol-ordering-file={list}"),
        // Names that this build does not have are ignored.
        "-Wl,--no-warn-symbol-ordering",
    ] {
        println!("cargo::rustc-link-arg-bin=toolward={argument}");
    }
}

/// The folder with the compiler's own lld. Rustup's compilers have it; those of most distributions don't.
fn lld() -> Option<PathBuf> {
    if [variable("HOST"), variable("TARGET")] != [TARGET, TARGET] {
        return None;
    }
    let sysroot = Command::new(variable("RUSTC"))
        .args(["--print", "sysroot"])
        .output();
    let sysroot = String::from_utf8(sysroot.ok()?.stdout).ok()?;
    let tools = Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET);
    let folder = tools.join("bin/gcc-ld");
    folder.join("ld.lld").exists().then_some(folder)
}

/// What cargo says; empty where it says nothing.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

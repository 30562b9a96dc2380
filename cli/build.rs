//! Makes the linker of a release build place the functions that calls and starts run next to each
//! other. `bench/functions.py` writes their list, `functions.txt`.

use std::path::Path;
use std::process::Command;

/// The only target whose compiler includes lld and links with it by default.
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LD_PRELOAD");
    if variable("PROFILE") == "release" && !names_a_linker() {
        order();
    }
}

/// Whether another linker is named in cargo's configuration or in the compiler's flags, or started
/// by a preloaded library (mold).
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
    // A comma would start another argument of the linker, and a line end would start another
    // instruction for cargo.
    if [list, &lld].iter().any(|path| path.contains([',', '\n'])) {
        return;
    }
    for argument in [
        // Without this, a compiler that links with the system's linker would reject the other
        // flags.
        &format!("-B{lld}"),
        "-fuse-ld=lld",
        &format!("-Wl,--symbol-ordering-file={list}"),
        // Names that are missing in this build are ignored.
        "-Wl,--no-warn-symbol-ordering",
    ] {
        println!("cargo::rustc-link-arg-bin=toolward={argument}");
    }
}

/// The folder with the compiler's own lld. Compilers of rustup have it; most compilers of
/// distributions don't.
fn lld() -> Option<String> {
    if [variable("HOST"), variable("TARGET")] != [TARGET, TARGET] {
        return None;
    }
    let sysroot = Command::new(variable("RUSTC"))
        .args(["--print", "sysroot"])
        .output();
    let sysroot = String::from_utf8(sysroot.ok()?.stdout).ok()?;
    let folder = format!("{}/lib/rustlib/{TARGET}/bin/gcc-ld", sysroot.trim());
    Path::new(&folder).join("ld.lld").exists().then_some(folder)
}

/// The value of a variable of cargo; empty if it is not set.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

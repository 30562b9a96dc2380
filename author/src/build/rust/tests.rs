//! Tests with a script in place of Cargo, so that they need no toolchain.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::*;
use crate::build::can_confine;
use crate::build::program::RustSettings;

/// Answers as Cargo does, tries to do harm in each step, and records where it ran.
const CARGO: &str = r#"#!/bin/sh
home=${0%/bin/cargo}
driver=$home/checkout/driver
for word in "$@"; do case $word in metadata | fetch | build) step=$word ;; esac; done
[ -n "$step" ] || exit 0
pwd > "$home/$step.ran"
echo x > "$driver/$step.new"
echo x >> "$driver/Cargo.lock"
cat "$home/.cargo/credentials.toml" > "$home/target/$step.read"
case $step in
metadata)
    echo "{\"workspace_root\":\"$driver\",\"target_directory\":\"$home/target\"}"
    ;;
build)
    echo x > "$home/target/made.wasm"
    echo "$@" > "$home/target/arguments"
    echo "{\"reason\":\"compiler-artifact\",\"manifest_path\":\"$driver/Cargo.toml\",\
\"filenames\":[\"$home/target/made.wasm\"]}"
    ;;
esac
"#;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        for folder in ["bin", "checkout/driver", "target", ".cargo"] {
            fs::create_dir_all(home.path(folder)).unwrap();
        }
        for file in ["Cargo.toml", "Cargo.lock"] {
            fs::write(home.path("checkout/driver").join(file), "").unwrap();
        }
        fs::write(home.path(".cargo/credentials.toml"), "token").unwrap();
        fs::write(home.path("bin/cargo"), CARGO).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(home.path("bin/cargo"), mode).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn there(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    fn build(&self, confine: bool) -> PathBuf {
        let options = BuildOptions {
            cargo: self.path("bin/cargo").into(),
            locked: true,
            offline: false,
            confine,
            tools: BuildTools {
                home: Some(self.path("")),
                rust: RustSettings::default(),
                ..BuildTools::default()
            },
        };
        let mut job = BuildJob {
            from: "driver",
            source: &self.path("checkout/driver"),
            world: World::Driver,
            snapshot: false,
            scratch: &Scratch::new(&self.path("checkout")).unwrap(),
            options: &options,
            progress: &mut |_| {},
        };
        build(&mut job).unwrap().0
    }
}

#[test]
fn cargo_asks_and_fetches_where_no_settings_of_the_checkout_hold_and_then_builds_confined() {
    if !can_confine() {
        eprintln!("SKIPPED: this kernel has no Landlock");
        return;
    }
    let home = Home::new();
    assert_eq!(home.build(true), home.path("target/made.wasm"));
    for step in ["metadata", "fetch"] {
        let directory = fs::read_to_string(home.path(step).with_extension("ran")).unwrap();
        assert_eq!(Path::new(directory.trim()), Path::new("/"), "{step}");
    }
    assert!(!home.there("build.ran"));
    assert!(!home.there("checkout/driver/build.new"));
    assert_eq!(fs::read(home.path("target/build.read")).unwrap(), b"");
    assert_eq!(fs::read(home.path("target/fetch.read")).unwrap(), b"token");
    // Cargo itself brings it up to date.
    let lock = fs::read_to_string(home.path("checkout/driver/Cargo.lock")).unwrap();
    assert_eq!(lock, "x\nx\nx\n");
    let arguments = fs::read_to_string(home.path("target/arguments")).unwrap();
    let target = format!("--target-dir {}", home.path("target").display());
    for expected in ["--locked", "--offline", &target] {
        assert!(arguments.contains(expected), "{arguments}");
    }
}

#[test]
fn without_a_confinement_cargo_builds_in_one_step_as_by_hand() {
    let home = Home::new();
    assert_eq!(home.build(false), home.path("target/made.wasm"));
    assert!(!home.there("metadata.ran") && !home.there("fetch.ran"));
    assert!(home.there("checkout/driver/build.new"));
    let arguments = fs::read_to_string(home.path("target/arguments")).unwrap();
    for unexpected in ["--offline", "--target-dir"] {
        assert!(!arguments.contains(unexpected), "{arguments}");
    }
}

#[test]
fn what_cargo_says_gives_the_reason_of_a_failure() {
    use BuildReason::{Denied, StdNeeded, TargetMissing};
    let of = |lines: &[&str]| {
        let each = lines.iter().filter_map(|line| failure_reason(line, true));
        each.min()
    };
    let missing = "  = note: the `wasm32-wasip2` target may not be installed";
    let twice = "error[E0152]: found duplicate lang item `panic_impl`";
    let below =
        "error[E0152]: duplicate lang item in crate `a` (which `b` depends on): `panic_impl`";
    let denied = "error: Permission denied (os error 13)";
    assert_eq!(of(&[denied]), Some(Denied));
    assert_eq!(of(&[denied, twice]), Some(StdNeeded));
    assert_eq!(of(&[below]), Some(StdNeeded));
    for line in [
        "error[E0433]: cannot find module or crate `std` in this scope",
        "error[E0433]: failed to resolve: use of unresolved module or unlinked crate `std`",
        "error: cannot find macro `println` in this scope",
    ] {
        assert_eq!(of(&[line]), Some(StdNeeded), "{line}");
    }
    let told = "    = note: the lang item is first defined in crate `std`";
    assert_eq!(of(&[told]), None);
    assert_eq!(of(&[denied, missing, twice]), Some(TargetMissing));
    assert_eq!(
        of(&["error[E0152]: found duplicate lang item `sized`"]),
        None
    );
    assert_eq!(failure_reason(denied, false), None);
}

/// Returns the compiler's name after a build in a target directory with this file of Cargo.
fn name_after(told: &str) -> Option<String> {
    let target = tempfile::tempdir().unwrap();
    std::fs::write(target.path().join(COMPILER_FILE), told).unwrap();
    compiler_in(target.path())
}

#[test]
fn the_compiler_is_the_one_that_cargo_asked_for_its_version() {
    let told = r#"{ "rustc_fingerprint": 1, "outputs": {
        "1": { "success": true, "stdout": "___\nlib___.rlib\n", "stderr": "" },
        "2": { "success": true, "stdout": "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\n" }
    } }"#;
    let name = name_after(told);
    assert_eq!(name.as_deref(), Some("rustc 1.95.0 (59807616e 2026-04-14)"));
}

#[test]
fn what_does_not_name_one_compiler_names_none() {
    let two = r#"{ "outputs": { "1": { "stdout": "rustc 1" }, "2": { "stdout": "rustc 2" } } }"#;
    for told in ["", "{}", r#"{ "outputs": { "1": 7 } }"#, two] {
        assert_eq!(name_after(told), None, "{told}");
    }
}

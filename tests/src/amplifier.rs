//! Installs the package for Amplifier as users do. The package's own tests then run the real
//! command under amplifier-core from PyPI.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::machine::toolward;
use crate::support::{Machine, Run, root};

/// A Python with the packages that the tests need, downloaded once.
fn python() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let output = Command::new(root().join("xtask/amplifier.sh"))
        .env("AMPLIFIER_DIR", target.join("amplifier"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let folder = String::from_utf8(output.stdout).unwrap();
    Path::new(folder.trim()).join("python/bin/python")
}

#[test]
fn the_package_for_amplifier_installs_and_passes_its_tests() {
    let python = python();
    let machine = Machine::new();
    let package = root().join("clients/python/amplifier-module-tool-toolward");

    let mut install = machine.program(&python);
    install
        .args(["-m", "pip", "install", "--quiet", "--no-cache-dir"])
        .args(["--disable-pip-version-check", "--no-index", "--no-deps"])
        .args(["--no-build-isolation", "--target", "installed"])
        .arg(&package);
    Run::new(install).ends(0);

    let mut tests = machine.program(&python);
    tests
        .args(["-m", "pytest", "-p", "no:cacheprovider", "--basetemp=tests"])
        .arg("-c")
        .arg(package.join("pyproject.toml"))
        .arg(package.join("tests"))
        .env("PYTHONPATH", machine.path("installed"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TOOLWARD", toolward());
    let ended = Run::new(tests).end();
    assert_eq!(ended.code, Some(0), "{ended}");
    let last = ended.stdout.lines().last().unwrap_or_default();
    assert!(
        last.contains(" passed") && !last.contains("skipped"),
        "{ended}"
    );
}

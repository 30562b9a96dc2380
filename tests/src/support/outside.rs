//! Independent tools, which know nothing of this project. A test whose tool is missing reports
//! that, and stops.

use std::path::Path;
use std::process::Command;

/// Reports that a test left something out, and why. Writes directly to standard error, since the
/// harness hides the output of a passing test.
pub(crate) fn skipped(why: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Whether a program runs. If not, prints that the test leaves something out.
pub(crate) fn have(program: &str, arguments: &[&str]) -> bool {
    let there = Command::new(program)
        .args(arguments)
        .output()
        .is_ok_and(|output| output.status.success());
    if !there {
        skipped(&format!(
            "`{program} {}` does not run here",
            arguments.join(" ")
        ));
    }
    there
}

/// Returns a Python that can import this package. A missing package is installed below the target
/// directory. Returns `None` if that fails.
pub(crate) fn python(package: &str, requirement: &str) -> Option<Command> {
    const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/python");
    let python = || {
        let mut python = Command::new("python3");
        python
            .env("PYTHONPATH", FOLDER)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        python
    };
    let import = format!("import {package}");
    let imports = || {
        let output = python().args(["-c", &import]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !imports() {
        // The next import shows whether it worked.
        let _ = Command::new("python3")
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(["--target", FOLDER, requirement])
            .output();
        if !imports() {
            skipped(&format!(
                "python3 has no {package}, and it can't be installed"
            ));
            return None;
        }
    }
    Some(python())
}

/// Returns a program's output. The program must succeed.
#[track_caller]
pub(crate) fn output(command: &mut Command) -> Vec<u8> {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Makes a key pair with OpenSSL: `NAME.pem` and `NAME.pub.pem`.
pub(crate) fn openssl_key(directory: &Path, name: &str) {
    let openssl = || {
        let mut openssl = Command::new("openssl");
        openssl.current_dir(directory);
        openssl
    };
    let private = format!("{name}.pem");
    let public = format!("{name}.pub.pem");
    output(openssl().args(["genpkey", "-algorithm", "ed25519", "-out", &private]));
    output(openssl().args(["pkey", "-in", &private, "-pubout", "-out", &public]));
}

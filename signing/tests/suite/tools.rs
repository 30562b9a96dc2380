//! Runs independent tools, and reports a missing one. Packages are installed once, below the target
//! directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Reports that a test skipped a part, and why. It bypasses the harness, which captures the output
/// of a passing test.
pub(crate) fn skipped(why: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Runs a command, or reports that its program is missing.
pub(crate) fn run(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            let program = command.get_program().to_string_lossy().into_owned();
            skipped(&format!("`{program}` can't be run here: {error}"));
            None
        }
    }
}

/// Runs a command that must succeed, and gives its standard output.
pub(crate) fn succeed(command: &mut Command) -> Option<String> {
    let output = run(command)?;
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8(output.stdout).unwrap())
}

pub(crate) fn openssl(folder: &Path, arguments: &[&str]) -> Option<Output> {
    run(Command::new("openssl").current_dir(folder).args(arguments))
}

/// Installs packages into a separate folder, once for all runs of all tests.
pub(crate) fn installed(name: &str, install: impl FnOnce(&Path) -> Command) -> Option<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let done = folder.join("installed");
    if done.exists() {
        return Some(folder);
    }
    std::fs::create_dir_all(&folder).unwrap();
    let output = run(&mut install(&folder))?;
    if output.status.success() {
        std::fs::write(done, "").unwrap();
        Some(folder)
    } else {
        let error = String::from_utf8_lossy(&output.stderr);
        skipped(&format!("{name} can't be installed here: {error}"));
        None
    }
}

/// Runs a Python program with packages from PyPI.
pub(crate) fn python(packages: &[&str], program: &str, arguments: &[&Path]) -> Option<String> {
    let mut command = Command::new("python3");
    if !packages.is_empty() {
        let name = format!("python-{}", packages.join("-").replace("==", "-"));
        let folder = installed(&name, |folder| {
            let mut pip = Command::new("python3");
            pip.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(["--only-binary", ":all:", "--target"])
            .arg(folder)
            .args(packages);
            pip
        })?;
        command.env("PYTHONPATH", folder);
    }
    succeed(command.arg("-c").arg(program).args(arguments))
}

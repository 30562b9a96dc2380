//! The toolchains of the languages, downloaded once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::support::{Machine, Run, root};

/// Each language except Rust: its word, the path of its source in a new bundle, and the program
/// that builds it.
pub(super) const LANGUAGES: [(&str, &str, &str); 5] = [
    ("js", "driver/driver.js", "node"),
    ("ts", "driver/driver.ts", "node"),
    ("python", "driver/driver.py", "componentize-py"),
    ("go", "driver/driver.go", "go"),
    ("c", "driver/driver.c", "zig"),
];

/// The toolchain directory.
pub(crate) fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let output = Command::new(root().join("xtask/languages.sh"))
            .env("LANGUAGES_DIR", target.join("languages"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap().trim().into()
    })
}

/// Builds a bundle that this machine made.
pub(crate) fn build(machine: &Machine, bundle: &str) -> Building {
    Building(
        machine
            .toolward(&format!("build {bundle} --json --toolchain"))
            .arg(directory()),
    )
}

/// Waits for a turn to build, since each engine takes half a gigabyte.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A build that waits for its turn.
pub(crate) struct Building(Run);

impl Building {
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> crate::support::Ended {
        let _turn = turn();
        self.0.ends(code)
    }
}

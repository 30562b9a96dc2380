//! The official conformance suite and clients, downloaded once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::support::root;

/// Returns the directory of the downloads.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let output = Command::new(root().join("xtask/mcp-clients.sh"))
            .env("MCP_CLIENTS_DIR", target.join("mcp-clients"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap().trim().into()
    })
}

/// The packages from npm.
pub(super) fn packages() -> PathBuf {
    folder().join("npm/node_modules")
}

/// A Node.js that is new enough for these packages.
pub(super) fn node() -> PathBuf {
    packages().join(".bin/node")
}

/// A Python with the official client.
pub(super) fn python() -> PathBuf {
    folder().join("python/bin/python")
}

/// A Python with an older official client, of this version.
pub(super) fn older_python(version: &str) -> PathBuf {
    folder().join(format!("python-{version}/bin/python"))
}

/// One of the tests' own scripts.
pub(super) fn script(name: &str) -> PathBuf {
    root().join("tests/src/mcp/scripts").join(name)
}

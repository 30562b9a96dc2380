//! Attempts to leave a workspace, or to exceed a grant within one. The tests compare the host's
//! file system afterwards.

mod grants;
mod links;
mod paths;
mod quotas;
mod workspaces;

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolward_host::{Host, Limit, Limits, Reply};

use crate::world::{Bundle, Guest, call, error, policy_of, value};

const TOOL: &str = "hostile.files";
const OUTSIDE: &str = "what is outside";

/// A workspace `/notes` in `inside`, and files next to it without a grant.
struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        let disk = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(disk.inside("sub")).unwrap();
        std::fs::create_dir_all(disk.outside("sub")).unwrap();
        std::fs::write(disk.inside("a.txt"), "a").unwrap();
        std::fs::write(disk.inside("sub/b.txt"), "b").unwrap();
        std::fs::write(disk.outside("secret.txt"), OUTSIDE).unwrap();
        std::fs::write(disk.outside("sub/b.txt"), OUTSIDE).unwrap();
        disk
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.0.path().join("inside").join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.0.path().join("outside").join(path)
    }

    /// Grants reading the whole of `/notes`.
    fn reading(&self) -> (Bundle, Host) {
        self.granting(&["/notes"], &[], "", Limits::default())
    }

    /// Grants writing the whole of `/notes`.
    fn writing(&self) -> (Bundle, Host) {
        self.granting(&[], &["/notes"], "", Limits::default())
    }

    /// Declares these paths in a contract, and grants them.
    fn granting(
        &self,
        read: &[&str],
        write: &[&str],
        more: &str,
        limits: Limits,
    ) -> (Bundle, Host) {
        let bundle = Bundle::of(TOOL, Guest::Plain, &declaring(read, write), "");
        let policy = format!(
            "{}{}{more}",
            mapping("/notes", &self.inside("")),
            granting(read, write)
        );
        let host = bundle.builder(&policy).limits(limits).build().unwrap();
        (bundle, host)
    }

    /// Returns everything on the disk, except the workspace.
    fn beside(&self) -> BTreeMap<PathBuf, String> {
        let mut found = everything(self.0.path());
        found.retain(|path, _| !path.starts_with(self.inside("")));
        found
    }
}

/// Returns the lines of a contract that declare these paths.
fn declaring(read: &[&str], write: &[&str]) -> String {
    let mut lines = format!("requires:\n  workspace: {}\n", json!(read));
    if !write.is_empty() {
        let write: Vec<String> = write
            .iter()
            .map(|path| format!("workspace:{path}"))
            .collect();
        lines += &format!("mutates: {}\napproval: on-mutate\n", json!(write));
    }
    lines
}

fn mapping(path: &str, directory: &Path) -> String {
    format!(
        "[[workspace]]\npath = \"{path}\"\ndirectory = {:?}\n",
        directory.display().to_string()
    )
}

fn granting(read: &[&str], write: &[&str]) -> String {
    let name = |paths: &[&str]| {
        let paths: Vec<String> = paths
            .iter()
            .map(|path| format!("workspace:{path}"))
            .collect();
        json!(paths)
    };
    format!(
        "[[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nrequires = {}\nmutates = {}\n",
        name(read),
        name(write)
    )
}

/// Returns paths, kinds, contents, sizes, links and modification times of everything in a
/// directory.
fn everything(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let content = match metadata.is_file() {
            true => std::fs::read_to_string(&path).unwrap_or_default(),
            false => String::new(),
        };
        if metadata.is_dir() {
            found.extend(everything(&path));
        }
        let about = format!(
            "{:?} {} {} {} {}.{} {content}",
            metadata.file_type(),
            metadata.nlink(),
            metadata.len(),
            metadata.mode(),
            metadata.mtime(),
            metadata.mtime_nsec(),
        );
        found.insert(path, about);
    }
    found
}

/// Does one raw operation, and returns the complete reply.
async fn fs(host: &Host, operation: Value) -> (Value, Reply) {
    let mut input = operation;
    input["do"] = json!("fs");
    let reply = call(host, TOOL, input.clone()).await;
    match &reply.result {
        Ok(output) => (output.structured["value"].clone(), reply),
        Err(error) => panic!("{input}: {error:#?}"),
    }
}

async fn std_fs(host: &Host, operation: Value) -> Value {
    let mut input = operation;
    input["do"] = json!("std-fs");
    value(host, TOOL, input).await
}

/// Returns every operation that takes a path, for this path.
fn all_on(path: &str) -> Vec<Value> {
    let mut operations = reads_on(path);
    operations.extend(changes_on(path));
    operations
}

fn reads_on(path: &str) -> Vec<Value> {
    vec![
        json!({"op": "open", "path": path}),
        json!({"op": "open", "path": path, "follow": true}),
        json!({"op": "open", "path": path, "how": ["directory"]}),
        json!({"op": "read", "path": path, "follow": true}),
        json!({"op": "read-stream", "path": path, "follow": true}),
        json!({"op": "stat-at", "path": path, "follow": true}),
        json!({"op": "stat-at", "path": path}),
        json!({"op": "hash-at", "path": path, "follow": true}),
        json!({"op": "list", "path": path, "follow": true}),
        json!({"op": "readlink", "path": path}),
    ]
}

fn changes_on(path: &str) -> Vec<Value> {
    let write = json!(["read", "write"]);
    vec![
        json!({"op": "open", "path": path, "flags": write, "follow": true}),
        json!({"op": "open", "path": path, "how": ["truncate"], "flags": write, "follow": true}),
        json!({"op": "open", "path": path, "how": ["truncate"], "flags": ["read"]}),
        json!({"op": "open", "path": path, "how": ["create", "exclusive"], "flags": write}),
        json!({"op": "write", "path": path, "how": ["create"], "text": "mine", "follow": true}),
        json!({"op": "write-stream", "path": path, "how": ["create"], "text": "mine", "follow": true}),
        json!({"op": "append-stream", "path": path, "how": ["create"], "text": "mine", "follow": true}),
        json!({"op": "mkdir", "path": path}),
        json!({"op": "unlink", "path": path}),
        json!({"op": "rmdir", "path": path}),
        json!({"op": "set-times-at", "path": path, "n": 1, "follow": true}),
        json!({"op": "rename", "path": path, "to": "mine.txt"}),
        json!({"op": "rename", "path": "a.txt", "to": path}),
        json!({"op": "link", "path": path, "to": "mine.txt", "follow": true}),
        json!({"op": "link", "path": "a.txt", "to": path}),
        json!({"op": "symlink", "path": path, "to": "a.txt"}),
    ]
}

/// Asserts that no operation works, reveals data outside, or changes anything.
async fn nothing_works(disk: &Disk, host: &Host, operations: Vec<Value>) {
    let before = everything(disk.0.path());
    for operation in operations {
        let (got, reply) = fs(host, operation.clone()).await;
        assert!(got["err"].is_string(), "{operation}: {got}");
        assert!(
            !reply.envelope().to_string().contains(OUTSIDE),
            "{operation}"
        );
        assert_eq!(everything(disk.0.path()), before, "{operation}");
    }
}

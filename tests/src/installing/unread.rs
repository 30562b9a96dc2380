//! A server leaves the components of installed bundles unread while their compiled code is cached.
//! A file that was changed in the meantime is noticed when it is read.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{installed_in, is_not_loaded, runs};
use crate::mcp::raw::Raw;
use crate::support::{Machine, tree};

/// How a component starts.
const MAGIC: &[u8] = b"\0asm\x0d\0\x01\0";

/// The decision about a bundle with an unread component.
const DECISION: &[u8] = b"1 of 1 installed bundles verified, 1 of them: documents verified";

fn only_file(folder: &Path) -> PathBuf {
    let files = tree(folder).into_keys().map(|name| folder.join(name));
    let files: Vec<_> = files
        .filter(|path| path.is_file() && fs::metadata(path).unwrap().len() > 1000)
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// Changes a byte in place, and leaves the file's mode as it was.
fn flip(path: &Path, position: u64) {
    let mode = fs::metadata(path).unwrap().permissions();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, position).unwrap();
    file.write_all_at(&[byte[0] ^ 1], position).unwrap();
    fs::set_permissions(path, mode).unwrap();
}

/// Changes the component in the store.
fn change_component(machine: &Machine) {
    let object = only_file(&machine.home().join(".local/share/toolward/store"));
    let bytes = fs::read(&object).unwrap();
    let mut places = bytes.windows(MAGIC.len());
    let start = places.position(|window| window == MAGIC).unwrap();
    flip(&object, start as u64 + 1000);
}

fn serve(machine: &Machine) -> Raw {
    Raw::open(machine.toolward("serve").into_command(), json!({}))
}

#[track_caller]
fn call(raw: &mut Raw, id: u32) -> serde_json::Value {
    raw.call(id, "text.stats", &json!({"text": "one"}));
    raw.answer(id)
}

#[test]
fn a_component_whose_code_is_cached_is_not_read_by_a_server() {
    let machine = installed_in(Machine::with_own_cache).0;
    change_component(&machine);
    let mut raw = serve(&machine);
    let answer = call(&mut raw, 1);
    assert_eq!(
        answer["result"]["structuredContent"]["words"], 1,
        "{answer}"
    );
    drop(raw);
    // The log of decisions, in which SQLite stores texts as they are.
    let store = machine.home().join(".local/state/toolward");
    let logs = |name: &String| {
        let bytes = fs::read(store.join(name)).unwrap_or_default();
        bytes
            .windows(DECISION.len())
            .any(|window| window == DECISION)
    };
    assert!(tree(&store).keys().any(logs));
    // Commands that verify everything notice the change.
    is_not_loaded(&machine, "digest-mismatch");
}

#[test]
fn a_component_that_was_changed_is_refused_when_it_is_compiled() {
    let machine = installed_in(Machine::with_own_cache).0;
    // The facts about the component are genuine, but its code is not, so it is compiled again.
    flip(&only_file(&machine.cache().join("artefacts")), 1000);
    change_component(&machine);
    let mut raw = serve(&machine);
    let answer = call(&mut raw, 1);
    let text = answer.to_string();
    assert!(text.contains("component-changed"), "{text}");
    assert!(text.contains("toolward install"), "{text}");
    // Installing repairs the file, which the server opens again.
    machine.toolward("install b.toolbundle").ends(0);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let answer = call(&mut raw, 2);
    assert_eq!(
        answer["result"]["structuredContent"]["words"], 1,
        "{answer}"
    );
    drop(raw);
    runs(&machine);
}

//! Where trust and installed bundles lie no tool gets to, whatever a policy
//! grants; and nobody else's account does.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{add, document, key, ship};
use crate::support::{Draft, Machine};

/// A machine with `notes.append` installed in `mystore`, for the trust and
/// policy of `conf/toolward.toml`.
fn with_notes() -> Machine {
    let machine = Machine::new();
    let one = key(&machine, "one");
    let fingerprint = document(&machine, "acme", "one");
    let grant = "--prefix notes --prefix notes-append --config conf/toolward.toml";
    machine.write("conf/toolward.toml", "");
    add(&machine, "acme", grant, &fingerprint).ends(0);
    let mut draft = Draft::of("notes-append");
    draft.manifest.publisher = "acme".to_owned();
    ship(&machine, &draft, &one, "b.toolbundle");
    machine
        .toolward("install b.toolbundle --config conf/toolward.toml --store-dir mystore")
        .ends(0);
    machine
}

/// Calls `notes.append` with this directory as its workspace.
fn append(machine: &Machine, directory: &Path) -> crate::support::Run {
    fs::create_dir_all(directory).unwrap();
    machine.write(
        "conf/toolward.toml",
        format!(
            "[[workspace]]\npath = \"/notes\"\ndirectory = {directory:?}\n\n\
             [[grant]]\npublisher = \"acme\"\ntool = \"notes.append\"\n\
             mutates = [\"workspace:/notes\"]\npreapproved = true\n"
        ),
    );
    machine
        .toolward("call notes.append --config conf/toolward.toml --store-dir mystore --input")
        .arg(json!({ "note": "journal", "text": "a" }).to_string())
}

#[test]
fn no_workspace_has_anything_in_common_with_trust_or_the_store() {
    let machine = with_notes();
    append(&machine, &machine.path("notes")).ends(0);
    assert!(machine.path("notes/journal.md").exists());
    let data = machine.home().join(".local/share/toolward");
    for directory in [
        machine.path("conf"),
        machine.path("conf/trust"),
        machine.path("conf/trust/acme"),
        machine.path("conf/trust/.notes"),
        machine.path("mystore"),
        machine.path("mystore/store"),
        machine.path("mystore/store/objects"),
        machine.path("mystore/state"),
        machine.path("mystore/state/notes"),
        data.clone(),
        data.join("store/notes"),
        machine.home().join(".local/share"),
    ] {
        let ended = append(&machine, &directory).ends(2);
        ended.says("workspace-refused");
        assert!(!directory.join("journal.md").exists(), "{ended}");
    }
}

//! No tool reaches the folders of trust and of installed bundles, whatever a policy grants. No
//! other user's account can change them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use serde_json::json;

use super::{add, document, installed, key, refused, runs, ship};
use crate::support::outside::skipped;
use crate::support::{Draft, Machine};

/// A machine with `notes.append` installed in `mystore`. Trust and policy are in
/// `conf/toolward.toml`.
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
    append_beside(machine, directory, "")
}

/// Does the same, with more lines in the configuration.
fn append_beside(machine: &Machine, directory: &Path, more: &str) -> crate::support::Run {
    fs::create_dir_all(directory).unwrap();
    machine.write(
        "conf/toolward.toml",
        format!(
            "{more}\n[[workspace]]\npath = \"/notes\"\ndirectory = {directory:?}\n\n\
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

#[test]
fn no_workspace_has_anything_in_common_with_the_ledger() {
    let machine = with_notes();
    // The operator must create the folder of the file of checkpoints.
    std::fs::create_dir(machine.path("log")).unwrap();
    let ledger = "[ledger]\ndirectory = \"../calls/ledger\"\ncheckpoints = \"../log/signed\"\n";
    append_beside(&machine, &machine.path("notes"), ledger).ends(0);
    for (directory, off) in [
        ("calls", ""),
        ("calls/ledger", ""),
        ("calls/ledger/sessions", ""),
        ("log", ""),
        // The ledger may have earlier records even if it is off.
        ("calls/ledger", "off = true\n"),
    ] {
        let directory = machine.path(directory);
        let ended = append_beside(&machine, &directory, &format!("{ledger}{off}")).ends(2);
        ended.says("workspace-refused");
        assert!(!directory.join("journal.md").exists(), "{ended}");
    }
}

#[test]
fn a_slip_in_the_settings_of_the_ledger_is_named_before_anything_runs() {
    let machine = with_notes();
    let slip = "[ledger]\nkep = \"none\"\n";
    let ended = append_beside(&machine, &machine.path("notes"), slip).ends(2);
    ended.says("ledger-setting-invalid");
    for words in ["conf/toolward.toml:2:1", "did you mean `keep`?"] {
        assert!(ended.stderr.contains(words), "{ended}");
    }
    let check = "policy check conf/toolward.toml";
    machine
        .toolward(check)
        .ends(1)
        .says("ledger-setting-invalid");
    assert!(!machine.path("notes/journal.md").exists());
    append_beside(&machine, &machine.path("notes"), "[ledger]\ndays = 7\n").ends(0);
    machine.toolward(check).ends(0);
    // `[ledger]` has no effect in a file of --policy-file, so it is refused there.
    machine.write("p.toml", "[ledger]\noff = true\n");
    machine
        .toolward(
            "call notes.append --config conf/toolward.toml --store-dir mystore --policy-file p.toml",
        )
        .ends(2)
        .says("ledger-setting-invalid");
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_of_publishers_is_made_for_its_user_alone() {
    let (machine, _) = installed();
    for name in ["trust", "trust/acme"] {
        let path = machine.home().join(".config/toolward").join(name);
        let mode = fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700, "{name}");
    }
}

#[test]
fn trust_that_others_may_write_to_is_refused() {
    let (machine, _) = installed();
    let trust = machine.home().join(".config/toolward/trust");
    for (name, bad) in [
        ("", 0o720),
        ("", 0o1777),
        ("acme", 0o702),
        ("acme/publisher.json", 0o664),
        ("acme/grant.toml", 0o646),
    ] {
        let path = trust.join(name);
        let mode = fs::metadata(&path).unwrap().mode();
        chmod(&path, bad);
        for words in ["install b.toolbundle", "verify b.toolbundle", "trust list"] {
            refused(&machine, words, 2, "trust-unusable");
        }
        chmod(&path, mode);
        runs(&machine);
    }
}

#[test]
fn trust_that_belongs_to_somebody_else_is_refused() {
    let (machine, _) = installed();
    let trust = machine.home().join(".config/toolward/trust");
    let user = fs::metadata(&trust).unwrap().uid();
    for name in ["", "acme", "acme/publisher.json"] {
        let path = trust.join(name);
        if chown(&path, Some(54321), None).is_err() {
            skipped("only root gives files away");
            return;
        }
        refused(&machine, "install b.toolbundle", 2, "trust-unusable");
        chown(&path, Some(user), None).unwrap();
        runs(&machine);
    }
}

#[test]
fn revocations_of_another_publisher_in_a_folder_are_refused() {
    let (machine, _) = installed();
    key(&machine, "two");
    machine
        .toolward("publisher new zeta --public-key two.pub.pem --key two.pem -o z.json")
        .ends(0);
    let digest = toolward_signing::Digest::of(b"a bundle");
    machine
        .toolward(&format!(
            "publisher revoke zeta --bundle {digest}=old --key two.pem -o list.json"
        ))
        .ends(0);
    let list = machine
        .home()
        .join(".config/toolward/trust/acme/revocations.json");
    fs::copy(machine.path("list.json"), &list).unwrap();
    chmod(&list, 0o600);
    refused(&machine, "install b.toolbundle", 2, "trust-invalid");
    fs::remove_file(&list).unwrap();
    runs(&machine);
}

//! Stray files have no effect: files in the current directory, in a bundle, or of an installation
//! that was killed.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use super::ship;
use super::{GRANT, add, document, installed, kept, key, listed, refused, release, runs, sequence};
use crate::support::{Machine, copy};

#[test]
fn trust_that_lies_in_the_current_directory_is_none() {
    // A repository contains a configuration that trusts acme.
    let machine = Machine::new();
    let one = key(&machine, "one");
    let fingerprint = document(&machine, "acme", "one");
    add(&machine, "acme", GRANT, &fingerprint).ends(0);
    let own = machine.home().join(".config/toolward");
    for place in ["", "toolward/", ".config/toolward/"] {
        copy(&own.join("trust"), &machine.path(&format!("{place}trust")));
        let table = format!(
            "[[publisher]]\nname = \"acme\"\nkeys = [\"\"\"{}\"\"\"]\nprefixes = [\"*\"]\n",
            machine.text("one.pub.pem")
        );
        machine.write(&format!("{place}toolward.toml"), table);
    }
    fs::remove_dir_all(&own).unwrap();

    ship(&machine, &release(1), &one, "b.toolbundle");
    refused(&machine, "install b.toolbundle", 2, "nobody-trusted");
    refused(&machine, "verify b.toolbundle", 2, "nobody-trusted");
    assert_eq!(machine.toolward("trust list").ends(0).stdout, "");
    assert!(kept(&machine).is_empty());
}

#[test]
fn a_deny_list_is_not_lifted_by_the_current_directory() {
    let (machine, _) = installed();
    let digest = listed(&machine)[0]["digest"].as_str().unwrap().to_owned();
    machine.configure(&format!("[trust.deny]\nbundles = [\"{digest}\"]\n"));
    machine.write("toolward.toml", "[trust.deny]\nbundles = []\n");
    super::is_not_loaded(&machine, "bundle-revoked");
}

#[test]
fn a_publishers_folder_under_another_name_is_refused() {
    let (machine, _) = installed();
    let trust = machine.home().join(".config/toolward/trust");
    // A copy of a publisher's folder under another name could take its place.
    copy(&trust.join("acme"), &trust.join("zeta"));
    refused(&machine, "install b.toolbundle", 2, "trust-invalid");
    fs::remove_dir_all(trust.join("zeta")).unwrap();
    runs(&machine);
}

#[test]
fn an_installation_that_is_killed_leaves_what_was_installed() {
    let (machine, one) = installed();
    ship(&machine, &release(2), &one, "b.toolbundle");
    for milliseconds in [0, 3, 6, 10, 15, 20, 30, 45, 70, 100] {
        let mut install = machine.toolward("install b.toolbundle").into_command();
        let mut child = install
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        // A process that has ended already can't be killed.
        let _ = child.kill();
        child.wait().unwrap();
        let sequence = sequence(&machine);
        assert!((1..=2).contains(&sequence), "{sequence}");
    }
    runs(&machine);
    machine.toolward("install b.toolbundle").ends(0);
    assert_eq!(sequence(&machine), 2);
    runs(&machine);
}

#[test]
fn an_installed_file_that_was_replaced_is_not_loaded_and_repaired_by_installing() {
    let (machine, one) = installed();
    let store = machine.home().join(".local/share/toolward/store");
    let objects: Vec<_> = crate::support::tree(&store)
        .into_keys()
        .map(|name| store.join(name))
        .filter(|path| path.is_file() && fs::metadata(path).unwrap().len() > 1000)
        .collect();
    assert_eq!(objects.len(), 1, "{objects:?}");
    // Another release of the same publisher, which verifies.
    ship(&machine, &release(2), &one, "two.toolbundle");
    fs::remove_file(&objects[0]).unwrap();
    copy(&machine.path("two.toolbundle"), &objects[0]);
    super::is_not_loaded(&machine, "object-changed");
    machine.toolward("install b.toolbundle").ends(0);
    assert_eq!(sequence(&machine), 1);
    runs(&machine);
}

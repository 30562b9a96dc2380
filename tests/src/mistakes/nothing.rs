//! Mistakes when nothing is installed, or when a tool is named instead of its bundle.

use super::machine;
use crate::installing::{ID, installed, listed};
use crate::support::Machine;

#[test]
fn list_search_update_and_verify_say_that_nothing_is_installed() {
    let machine = Machine::new();
    for words in ["list", "search text", "update", "verify --all"] {
        let ended = machine.toolward(words).ends(0);
        assert_eq!(ended.stdout, "", "{ended}");
        assert!(ended.stderr.contains("nothing is installed"), "{ended}");
        let quiet = machine.toolward(&format!("{words} -q")).ends(0);
        assert_eq!(
            (quiet.stdout.as_str(), quiet.stderr.as_str()),
            ("", ""),
            "{quiet}"
        );
        assert_eq!(
            machine.toolward(&format!("{words} --json")).ends(0).stdout,
            ""
        );
    }
}

#[test]
fn a_store_that_is_empty_again_is_said_to_be() {
    let (machine, _) = installed();
    let ended = machine.toolward("search zebra").ends(0);
    assert!(
        ended.stderr.contains("no installed tool matches"),
        "{ended}"
    );
    let removed = machine.toolward("remove text.stats --json").ends(0).json();
    assert_eq!(removed["removed"], ID);
    assert!(listed(&machine).is_empty());
    for words in ["list", "update"] {
        let ended = machine.toolward(words).ends(0);
        assert!(ended.stderr.contains("nothing is installed"), "{ended}");
    }
    let ended = machine.toolward("remove text.stats").ends(1);
    super::told(&ended, "not-installed", "text.stats", "toolward list");
}

#[test]
fn a_bundle_is_packed_under_its_own_id() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let ended = machine.toolward("pack b").ends(2);
    super::told(
        &ended,
        "key-missing",
        "an archive carries its signatures",
        "--key PRIVATE.pem",
    );
    machine.toolward("publisher keys new --out me.pem").ends(0);
    let packed = machine
        .toolward("pack b --key me.pem --json")
        .ends(0)
        .json();
    let file = format!("{}.toolbundle", packed["id"].as_str().unwrap());
    assert_eq!(packed["output"], file);
    assert!(machine.path(&file).is_file());
    machine
        .toolward(&format!("verify {file} --trust-key me.pub.pem"))
        .ends(0);
}

#[test]
fn the_environment_stands_for_flags_and_a_flag_for_the_environment() {
    let machine = machine();
    let verify = || machine.toolward("verify text-stats.toolbundle");
    verify().ends(2);
    verify()
        .env("TOOLWARD_TRUST_KEY", "example.pub.pem")
        .ends(0);
    machine.toolward("publisher keys new --out me.pem").ends(0);
    let run = machine.toolward("verify text-stats.toolbundle --trust-key me.pub.pem");
    run.env("TOOLWARD_TRUST_KEY", "example.pub.pem").ends(3);
    let named = verify().env("TOOLWARD_TRUST_KEY", "me.pub.pem:example.pub.pem");
    named.ends(0);
    // An empty variable counts as not set.
    verify().env("TOOLWARD_TRUST_KEY", "").ends(2);
    let install = machine.toolward("install text-stats.toolbundle --trust-key example.pub.pem");
    let store = machine.path("store");
    install.env("TOOLWARD_STORE_DIR", &store).ends(0);
    assert!(store.is_dir());
    let list = machine.toolward("list --json --trust-key example.pub.pem");
    assert_eq!(
        list.env("TOOLWARD_STORE_DIR", &store)
            .ends(0)
            .json_lines()
            .len(),
        1
    );
    assert!(listed(&machine).is_empty());
    let gone = verify()
        .env("TOOLWARD_CONFIG", machine.path("gone.toml"))
        .ends(2);
    super::told(&gone, "file-unreadable", "gone.toml", "name a file");
}

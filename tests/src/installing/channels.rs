//! The signed index of a channel states which release of each bundle is current. A source that
//! serves another release is refused.

use toolward_signing::key::SigningKey;
use toolward_signing::timestamp::Timestamp;

use super::web::Web;
use super::{ID, key, listed, refused, release, reworded, runs, sequence, ship, trusting};
use crate::support::{Machine, Run};

/// Makes an index of the channel `stable`, signed with `KEY.pem`.
fn index(machine: &Machine, file: &str, key: &str, more: &str) -> Run {
    machine.toolward(&format!(
        "publisher channel stable --key {key}.pem -o {file} {more}"
    ))
}

/// Puts an index at the place of the operator's channel.
fn published(machine: &Machine, file: &str) {
    std::fs::copy(machine.path(file), machine.path("stable.json")).unwrap();
}

/// A machine that trusts acme and has the channel `stable`, signed by the key `index`, with acme's
/// first release.
fn with_channel() -> (Machine, SigningKey) {
    let (machine, one) = trusting();
    key(&machine, "index");
    let pem = machine.text("index.pub.pem");
    let source = machine.path("stable.json");
    machine.configure(&format!(
        "[[channel]]\nname = \"stable\"\nsource = \"{}\"\nkeys = [\"\"\"{pem}\"\"\"]\n",
        source.display()
    ));
    ship(&machine, &release(1), &one, "b.toolbundle");
    index(&machine, "1.json", "index", "--bundle b.toolbundle").ends(0);
    published(&machine, "1.json");
    (machine, one)
}

const INSTALL: &str = "install b.toolbundle --channel stable";

#[test]
fn the_release_that_the_channel_lists_is_installed_and_found() {
    let (machine, _) = with_channel();
    let found = machine.toolward("search --channel stable words --json");
    let found = found.ends(0).json_lines();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["tool"], "text.stats");
    assert_eq!(found[0]["bundle"], ID);
    // A release that is only listed is not installed.
    assert!(listed(&machine).is_empty());
    let nothing = machine.toolward("search words").ends(0);
    assert_eq!(nothing.stdout, "", "{nothing}");

    machine.toolward(INSTALL).ends(0);
    runs(&machine);
    let found = machine.toolward("search words --json").ends(0).json_lines();
    assert_eq!(found[0]["tool"], "text.stats", "{found:?}");
}

#[test]
fn an_expired_index_shows_nothing_to_be_current() {
    let (machine, _) = with_channel();
    let old = index(
        &machine,
        "old.json",
        "index",
        "--bundle b.toolbundle --days 1",
    );
    // The first of November 2025.
    old.env("SOURCE_DATE_EPOCH", "1761955200").ends(0);
    published(&machine, "old.json");
    refused(&machine, INSTALL, 3, "document-expired");
    let search = "search --channel stable words";
    refused(&machine, search, 3, "document-expired");
}

#[test]
fn an_index_older_than_the_last_one_seen_is_refused() {
    let (machine, one) = with_channel();
    machine.toolward(INSTALL).ends(0);
    ship(&machine, &release(2), &one, "b.toolbundle");
    index(
        &machine,
        "2.json",
        "index",
        "--bundle b.toolbundle --after 1.json",
    )
    .ends(0);
    published(&machine, "2.json");
    machine.toolward(INSTALL).ends(0);
    assert_eq!(sequence(&machine), 2);
    // The source serves its earlier index again.
    published(&machine, "1.json");
    refused(&machine, INSTALL, 3, "rollback");
    assert_eq!(sequence(&machine), 2);
    runs(&machine);
}

#[test]
fn two_indexes_of_one_version_are_refused() {
    let (machine, one) = with_channel();
    machine.toolward(INSTALL).ends(0);
    ship(&machine, &release(2), &one, "b.toolbundle");
    index(&machine, "twin.json", "index", "--bundle b.toolbundle").ends(0);
    published(&machine, "twin.json");
    refused(&machine, INSTALL, 3, "equivocation");
    assert_eq!(sequence(&machine), 1);
}

#[test]
fn a_bundle_that_the_channel_does_not_list_is_refused() {
    let (machine, one) = with_channel();
    let mut other = release(1);
    other.manifest.id = "text.other-bundle".to_owned();
    ship(&machine, &other, &one, "b.toolbundle");
    refused(&machine, INSTALL, 3, "channel-unlisted");
    assert!(listed(&machine).is_empty());
}

#[test]
fn another_release_than_the_listed_one_is_refused() {
    let (machine, one) = with_channel();
    // A newer release that the channel does not list.
    ship(&machine, &release(2), &one, "b.toolbundle");
    refused(&machine, INSTALL, 3, "channel-mismatch");
    assert!(listed(&machine).is_empty());
    // A release with the same name and version but other content.
    let mut twin = release(1);
    twin.manifest.created = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    ship(&machine, &twin, &one, "b.toolbundle");
    refused(&machine, INSTALL, 3, "channel-mismatch");
}

#[test]
fn an_index_is_signed_by_the_keys_that_the_operator_pinned() {
    let (machine, _) = with_channel();
    // A trusted publisher of bundles can't sign the channel.
    index(&machine, "own.json", "one", "--bundle b.toolbundle").ends(0);
    published(&machine, "own.json");
    refused(&machine, INSTALL, 3, "threshold-not-met");
    assert!(listed(&machine).is_empty());
}

#[test]
fn a_channel_that_is_not_configured_is_a_mistake() {
    let (machine, _) = with_channel();
    let words = "install b.toolbundle --channel other";
    refused(&machine, words, 2, "channel-unknown");
    let words = "search --channel other words";
    refused(&machine, words, 2, "channel-unknown");
}

#[test]
fn an_index_is_valid_for_ninety_days_at_most() {
    let (machine, _) = with_channel();
    for days in ["0", "91"] {
        let words = format!("--bundle b.toolbundle --days {days}");
        let ended = index(&machine, "long.json", "index", &words).ends(2);
        ended.says("setting-invalid");
        assert!(!machine.path("long.json").exists());
    }
}

/// Configures the channel again under another name.
fn configure_another(machine: &Machine) {
    let file = machine.home().join(".config/toolward/toolward.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let other = text.replace("\"stable\"", "\"other\"");
    machine.configure(&format!("{text}\n{other}\n[trust]\nmax_age_days = 90\n"));
}

#[test]
fn of_several_channels_one_has_to_be_named_for_what_comes_from_elsewhere() {
    let (machine, one) = with_channel();
    // A newer release that the channel does not list, although it is young enough.
    ship(&machine, &release(2), &one, "2.toolbundle");
    let web = Web::serve(machine.read("2.toolbundle"));
    let install = format!("install {} --plain-http", web.url("b.toolbundle"));
    configure_another(&machine);
    let ended = refused(&machine, &install, 2, "channel-ambiguous");
    assert!(ended.stderr.contains("stable, other"), "{ended}");
    let named = format!("{install} --channel stable");
    refused(&machine, &named, 3, "channel-mismatch");
    assert!(listed(&machine).is_empty());
    web.replace(machine.read("b.toolbundle"));
    machine.toolward(&named).ends(0);
    let update = format!("update {ID} --plain-http");
    refused(&machine, &update, 2, "channel-ambiguous");
    // Files of this machine need no channel.
    machine.toolward(&format!("remove {ID}")).ends(0);
    machine.toolward("install 2.toolbundle").ends(0);
}

#[test]
fn a_held_release_that_is_no_longer_the_listed_one_is_not_accepted() {
    let (machine, one) = with_channel();
    machine.toolward(INSTALL).ends(0);
    ship(&machine, &reworded(release(2)), &one, "b.toolbundle");
    index(
        &machine,
        "2.json",
        "index",
        "--bundle b.toolbundle --after 1.json",
    )
    .ends(0);
    published(&machine, "2.json");
    let held = machine
        .toolward(&format!("{INSTALL} --json"))
        .ends(4)
        .json();
    let surface = held["surface"].as_str().unwrap();
    // Its publisher found a problem and removes the release from the channel.
    ship(&machine, &reworded(release(3)), &one, "3.toolbundle");
    index(
        &machine,
        "3.json",
        "index",
        "--bundle 3.toolbundle --after 2.json",
    )
    .ends(0);
    published(&machine, "3.json");
    let accept = format!("update {ID} --accept {surface} --channel stable");
    refused(&machine, &accept, 3, "channel-mismatch");
    assert_eq!(sequence(&machine), 1);
    runs(&machine);
}

#[test]
fn a_held_release_that_grew_too_old_is_not_accepted() {
    let (machine, one) = super::installed();
    let mut old = reworded(release(2));
    old.manifest.created = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    ship(&machine, &old, &one, "b.toolbundle");
    let held = machine.toolward(&format!("update {ID} --json")).ends(4);
    let held = held.json();
    machine.configure("[trust]\nmax_age_days = 1\n");
    let accept = format!("update {ID} --accept {}", held["surface"].as_str().unwrap());
    refused(&machine, &accept, 3, "too-old");
    assert_eq!(sequence(&machine), 1);
}

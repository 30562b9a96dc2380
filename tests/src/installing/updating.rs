//! Later releases: which are accepted, which wait for a person, and which are refused.

use super::{ID, installed, key, listed, refused, release, reworded, runs, sequence, ship};

#[test]
fn a_release_whose_words_alone_change_waits_until_it_is_accepted() {
    let (machine, one) = installed();
    ship(&machine, &reworded(release(2)), &one, "b.toolbundle");
    let held = machine.toolward("update").ends(4);
    for shown in ["Nothing leaves the sandbox", "Ask me about anything"] {
        assert!(held.stdout.contains(shown), "{held}");
    }
    let json = machine.toolward(&format!("update {ID} --json"));
    let json = json.ends(4).json();
    assert_eq!(json["state"], "held", "{json}");
    assert_eq!(json["changes"].as_array().unwrap().len(), 1, "{json}");
    let surface = json["surface"].as_str().unwrap();
    assert!(held.stderr.contains(surface), "{held}");

    // The earlier release is still installed, and runs.
    assert_eq!(sequence(&machine), 1);
    assert_eq!(listed(&machine)[0]["held"], "1.2.0");
    runs(&machine);

    // A digest that differs from the shown one accepts nothing.
    let wrong = toolward_signing::Digest::of(b"another surface");
    let words = format!("update {ID} --accept {wrong}");
    refused(&machine, &words, 3, "surface-mismatch");
    assert_eq!(sequence(&machine), 1);

    machine
        .toolward(&format!("update {ID} --accept {surface}"))
        .ends(0);
    assert_eq!(sequence(&machine), 2);
    assert_eq!(listed(&machine)[0]["held"], serde_json::Value::Null);
    runs(&machine);
}

#[test]
fn a_held_release_is_verified_again_before_it_is_accepted() {
    let (machine, one) = installed();
    let digest = ship(&machine, &reworded(release(2)), &one, "b.toolbundle");
    let held = machine.toolward(&format!("update {ID} --json"));
    let held = held.ends(4).json();
    machine.configure(&format!("[trust.deny]\nbundles = [\"{digest}\"]\n"));
    let words = format!("update {ID} --accept {}", held["surface"].as_str().unwrap());
    refused(&machine, &words, 3, "bundle-revoked");
    assert_eq!(sequence(&machine), 1);
    runs(&machine);
}

#[test]
fn a_release_with_the_same_surface_takes_the_place_of_the_one_before() {
    let (machine, one) = installed();
    ship(&machine, &release(2), &one, "b.toolbundle");
    let told = machine.toolward("update --json").ends(0).json();
    assert_eq!(told["state"], "installed", "{told}");
    assert_eq!(sequence(&machine), 2);
    runs(&machine);
}

#[test]
fn the_release_that_is_installed_changes_nothing() {
    let (machine, _) = installed();
    let before = listed(&machine);
    for words in ["install b.toolbundle --json", "update --json"] {
        let told = machine.toolward(words).ends(0).json();
        assert_eq!(told["state"], "unchanged", "{told}");
    }
    assert_eq!(listed(&machine), before);
}

#[test]
fn an_older_release_is_refused_unless_the_operator_says_why() {
    let (machine, one) = installed();
    ship(&machine, &release(2), &one, "two.toolbundle");
    machine.toolward("install two.toolbundle").ends(0);
    refused(&machine, "install b.toolbundle", 3, "rollback");
    assert_eq!(sequence(&machine), 2);
    machine
        .toolward("install b.toolbundle --allow-rollback the-new-one-is-broken")
        .ends(0);
    assert_eq!(sequence(&machine), 1);
    runs(&machine);
}

#[test]
fn two_releases_with_one_sequence_are_refused_whatever_is_allowed() {
    let (machine, one) = installed();
    let mut twin = release(1);
    twin.manifest.version = "1.1.1".parse().unwrap();
    ship(&machine, &twin, &one, "twin.toolbundle");
    refused(&machine, "install twin.toolbundle", 3, "equivocation");
    let words = "install twin.toolbundle --allow-rollback why";
    refused(&machine, words, 3, "equivocation");
    runs(&machine);
}

#[test]
fn another_bundle_does_not_take_over_a_tool() {
    let (machine, one) = installed();
    let mut other = release(9);
    other.manifest.id = "text.other-bundle".to_owned();
    ship(&machine, &other, &one, "other.toolbundle");
    refused(&machine, "install other.toolbundle", 3, "duplicate-id");
    assert_eq!(sequence(&machine), 1);
}

#[test]
fn a_removed_bundle_is_gone_and_its_sequence_is_remembered() {
    let (machine, one) = installed();
    ship(&machine, &release(2), &one, "two.toolbundle");
    machine.toolward("install two.toolbundle").ends(0);
    machine.toolward(&format!("remove {ID}")).ends(0);
    assert!(listed(&machine).is_empty());
    refused(&machine, &format!("remove {ID}"), 1, "not-installed");
    let call = "call text.stats --set text=a";
    refused(&machine, call, 2, "bundle-missing");
    // Installing again never installs an older release.
    refused(&machine, "install b.toolbundle", 3, "rollback");
    machine.toolward("install two.toolbundle").ends(0);
    runs(&machine);
}

#[test]
fn a_release_by_a_stranger_changes_nothing() {
    let (machine, _) = installed();
    let stranger = key(&machine, "stranger");
    ship(&machine, &release(2), &stranger, "b.toolbundle");
    let words = format!("update {ID}");
    refused(&machine, &words, 3, "unknown-publisher");
    // If all bundles are updated, the exit code reports that one was refused.
    let ended = machine.toolward("update").ends(3);
    ended.warns("(unknown-publisher)");
    assert_eq!(sequence(&machine), 1);
    runs(&machine);
}

#[test]
fn a_program_is_told_of_each_bundle_that_was_not_updated_and_the_worst_counts() {
    let (machine, one) = installed();
    machine.toolward("trust remove acme").ends(0);
    let shown = machine.toolward("publisher show acme.publisher.json --json");
    let shown = shown.ends(0).json();
    let grant = "--prefix text --prefix text-stats --prefix csv --prefix csv-summary";
    let fingerprint = shown["fingerprint"].as_str().unwrap();
    super::add(&machine, "acme", grant, fingerprint).ends(0);
    let mut other = crate::support::Draft::of("csv-summary");
    other.manifest.publisher = "acme".to_owned();
    ship(&machine, &other, &one, "other.toolbundle");
    machine.toolward("install other.toolbundle").ends(0);
    let csv = other.manifest.id;

    // The first one is refused, and the next one waits for a person.
    let stranger = key(&machine, "stranger");
    ship(
        &machine,
        &crate::support::Draft::of("csv-summary"),
        &stranger,
        "other.toolbundle",
    );
    ship(&machine, &reworded(release(2)), &one, "b.toolbundle");
    let told = machine.toolward("update --json").ends(3).json_lines();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0]["id"], csv.as_str());
    assert_eq!(told[0]["ok"], false);
    assert_eq!(told[0]["error"]["code"], "unknown-publisher");
    assert_eq!(told[1]["id"], ID);
    assert_eq!(told[1]["state"], "held");
}

#[test]
fn a_program_sees_what_waits_for_a_first_yes() {
    let (machine, one) = super::trusting();
    ship(&machine, &release(1), &one, "b.toolbundle");
    let wrong = toolward_signing::Digest::of(b"another surface");
    let words = format!("install b.toolbundle --accept {wrong} --json");
    let held = machine.toolward(&words).ends(4).json();
    let listed = listed(&machine);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["id"], ID);
    assert_eq!(listed[0]["version"], serde_json::Value::Null);
    assert_eq!(listed[0]["held"], "1.1.0");
    assert_eq!(listed[0]["held_surface"], held["surface"]);
    let surface = held["surface"].as_str().unwrap();
    machine
        .toolward(&format!("update {ID} --accept {surface}"))
        .ends(0);
    runs(&machine);
}

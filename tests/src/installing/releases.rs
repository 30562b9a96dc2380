//! `update` of a bundle that was installed by a version's tag. It takes the newest release with
//! such a tag, and trusts neither the tag nor the registry.

use toolward_signing::key::SigningKey;

use super::registry::Server;
use super::trusting;
use super::{ID, add, document, key, listed, refused, release, reworded, runs, sequence, ship};
use crate::support::{Draft, Machine};

const INSTALL: &str = "install";
const UPDATE: &str = "update --plain-http";

/// Signs a release and pushes it under a tag.
fn push(machine: &Machine, server: &Server, draft: &Draft, one: &SigningKey, tag: &str) {
    ship(machine, draft, one, "pushed.toolbundle");
    let reference = server.reference(tag);
    machine
        .toolward(&format!(
            "publisher push pushed.toolbundle {reference} --plain-http"
        ))
        .arg("--trust-key=one.pub.pem")
        .arg("--trust-key=two.pub.pem")
        .ends(0);
}

/// A machine that trusts acme for 90 days and has its release 1.0.0 from a registry.
fn from_registry() -> Option<(Machine, SigningKey, Server)> {
    let server = Server::start()?;
    let (machine, one) = trusting();
    key(&machine, "two");
    machine
        .toolward("trust update acme --max-age-days 90")
        .ends(0);
    push(&machine, &server, &release(1), &one, "1.0.0");
    let reference = server.reference("1.0.0");
    machine
        .toolward(&format!("{INSTALL} {reference} --plain-http"))
        .ends(0);
    assert_eq!(sequence(&machine), 1);
    Some((machine, one, server))
}

#[test]
fn an_update_finds_the_release_with_the_highest_sequence_whatever_the_tags_say() {
    let Some((machine, one, server)) = from_registry() else {
        return;
    };
    machine.toolward(UPDATE).ends(0);
    assert_eq!(sequence(&machine), 1);
    push(&machine, &server, &release(2), &one, "9.0.0");
    push(&machine, &server, &release(3), &one, "1.1.0");
    // Tags of other patterns are ignored.
    push(&machine, &server, &release(4), &one, "stable");
    push(&machine, &server, &release(5), &one, "v2.0.0");
    machine.toolward(UPDATE).ends(0);
    assert_eq!(sequence(&machine), 3);
    let source = listed(&machine)[0]["source"].clone();
    assert_eq!(source, server.reference("1.1.0").as_str());
    runs(&machine);
    machine.toolward(UPDATE).ends(0);
    assert_eq!(sequence(&machine), 3);
}

#[test]
fn an_older_sequence_under_a_newer_tag_is_not_taken() {
    let Some((machine, one, server)) = from_registry() else {
        return;
    };
    push(&machine, &server, &release(2), &one, "1.1.0");
    machine.toolward(UPDATE).ends(0);
    push(&machine, &server, &release(1), &one, "1.2.0");
    machine.toolward(UPDATE).ends(0);
    assert_eq!(sequence(&machine), 2);
}

#[test]
fn a_registry_that_forgot_the_installed_release_does_not_go_back() {
    let Some((machine, one, server)) = from_registry() else {
        return;
    };
    push(&machine, &server, &release(2), &one, "1.1.0");
    machine.toolward(UPDATE).ends(0);
    // The tag now leads to the older release.
    push(&machine, &server, &release(1), &one, "1.1.0");
    refused(
        &machine,
        &format!("update {ID} --plain-http"),
        3,
        "rollback",
    );
    // The tag leads to another release with the same number.
    let mut other = release(2);
    other.manifest.version = "1.1.1".parse().unwrap();
    push(&machine, &server, &other, &one, "1.1.1");
    refused(
        &machine,
        &format!("update {ID} --plain-http"),
        3,
        "equivocation",
    );
}

#[test]
fn another_publishers_bundle_under_a_newer_tag_is_not_taken() {
    let Some((machine, one, server)) = from_registry() else {
        return;
    };
    // A trusted publisher of the same ids.
    let two = key(&machine, "two");
    let fingerprint = document(&machine, "zeta", "two");
    let run = add(&machine, "zeta", super::GRANT, &fingerprint);
    run.arg("--max-age-days=90").ends(0);
    let mut other = release(9);
    other.manifest.publisher = "zeta".to_owned();
    push(&machine, &server, &other, &two, "9.0.0");
    // A publisher that is not trusted.
    let stranger = key(&machine, "two-more");
    let mut strange = release(10);
    strange.manifest.version = "10.0.0".parse().unwrap();
    ship(&machine, &strange, &stranger, "pushed.toolbundle");
    machine
        .toolward("publisher push pushed.toolbundle --plain-http --trust-key two-more.pub.pem")
        .arg(server.reference("10.0.0"))
        .ends(0);
    push(&machine, &server, &release(2), &one, "1.1.0");
    let ended = machine.toolward(UPDATE).ends(0);
    ended.warns("10.0.0 is passed over");
    ended.warns("(unknown-publisher)");
    ended.warns("9.0.0 is passed over");
    ended.warns("(wrong-bundle)");
    assert_eq!(sequence(&machine), 2);
    assert_eq!(listed(&machine)[0]["publisher"], "acme");
}

#[test]
fn a_release_that_looks_otherwise_is_held() {
    let Some((machine, one, server)) = from_registry() else {
        return;
    };
    push(&machine, &server, &reworded(release(2)), &one, "1.1.0");
    machine.toolward(UPDATE).ends(4);
    let one = listed(&machine).remove(0);
    assert_eq!(one["sequence"], 1);
    let surface = one["held_surface"].as_str().unwrap();
    machine
        .toolward(&format!("update {ID} --accept {surface} --plain-http"))
        .ends(0);
    assert_eq!(sequence(&machine), 2);
    // The accepted release is now the newest one.
    machine.toolward(UPDATE).ends(0);
    assert_eq!(sequence(&machine), 2);
}

#[test]
fn a_release_before_a_release_is_for_those_who_run_one() {
    let Some((machine, one, server)) = from_registry() else {
        return;
    };
    let mut early = release(2);
    early.manifest.version = "2.0.0-rc.1".parse().unwrap();
    push(&machine, &server, &early, &one, "2.0.0-rc.1");
    machine.toolward(UPDATE).ends(0);
    assert_eq!(sequence(&machine), 1);
    let reference = server.reference("2.0.0-rc.1");
    machine
        .toolward(&format!("{INSTALL} {reference} --plain-http"))
        .ends(0);
    early.manifest.sequence = 3;
    early.manifest.version = "2.0.0-rc.2".parse().unwrap();
    push(&machine, &server, &early, &one, "2.0.0-rc.2");
    machine.toolward(UPDATE).ends(0);
    assert_eq!(sequence(&machine), 3);
}

#[test]
fn a_channel_says_which_release_is_taken() {
    let Some((machine, one, server)) = from_registry() else {
        return;
    };
    key(&machine, "index");
    machine.configure(&format!(
        "[[channel]]\nname = \"stable\"\nsource = \"{}\"\nkeys = [\"\"\"{}\"\"\"]\n",
        machine.path("stable.json").display(),
        machine.text("index.pub.pem")
    ));
    machine
        .toolward("trust update acme --channel stable")
        .ends(0);
    push(&machine, &server, &release(2), &one, "1.1.0");
    machine
        .toolward("publisher channel stable --key index.pem --bundle pushed.toolbundle")
        .arg("--output=stable.json")
        .ends(0);
    push(&machine, &server, &release(3), &one, "1.2.0");
    machine.toolward(UPDATE).ends(0);
    assert_eq!(sequence(&machine), 2);
}

#[test]
fn a_freshness_rule_is_given_kept_shown_and_enforced() {
    let Some(server) = Server::start() else {
        return;
    };
    let (machine, one) = trusting();
    key(&machine, "two");
    push(&machine, &server, &release(1), &one, "1.0.0");
    let install = format!("{INSTALL} {} --plain-http", server.reference("1.0.0"));
    refused(&machine, &install, 3, "freshness-unknown");
    for (words, code) in [
        ("--max-age-days 0", "trust-invalid"),
        ("--max-age-days 40000000", "trust-invalid"),
        ("--channel nowhere", "channel-unknown"),
    ] {
        refused(&machine, &format!("trust update acme {words}"), 2, code);
    }
    machine
        .toolward("trust update acme --max-age-days 30")
        .ends(0);
    let shown = machine.toolward("trust show acme --json").ends(0);
    assert_eq!(shown.json_lines()[0]["max_age_days"], 30, "{shown}");
    machine.toolward(&install).ends(0);
    runs(&machine);
    // The publisher's maximum age applies at each load, and can only tighten the operator's general
    // rule.
    let mut old = release(2);
    let day = 86_400;
    let made = old.manifest.created.unix() - 40 * day;
    old.manifest.created = toolward_signing::timestamp::Timestamp::from_unix(made).unwrap();
    machine.configure("[trust]\nmax_age_days = 90\n");
    ship(&machine, &old, &one, "old.toolbundle");
    refused(&machine, "install old.toolbundle", 3, "too-old");
    machine
        .toolward("trust update acme --max-age-days 60")
        .ends(0);
    machine.toolward(&format!("remove {ID}")).ends(0);
    machine.toolward("install old.toolbundle").ends(0);
    machine
        .toolward("trust update acme --max-age-days 30")
        .ends(0);
    super::is_not_loaded(&machine, "too-old");
}

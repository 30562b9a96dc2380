//! Bundles that are not valid at this time or on this host.

use toolward_signing::timestamp::Timestamp;

use super::{call_refused, machine_with_key, refused};
use crate::support::Draft;

fn moment(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Signs a draft, and asserts that it is refused.
#[track_caller]
fn refuses(change: impl Fn(&mut Draft), code: &str) {
    let (machine, key) = machine_with_key();
    let mut draft = Draft::of("text-stats");
    change(&mut draft);
    draft
        .sign(&key)
        .write_archive(&machine.path("b.toolbundle"));
    refused(&machine, "b.toolbundle --trust-key key.pub.pem", code);
    call_refused(
        &machine,
        "--bundle b.toolbundle --trust-key key.pub.pem",
        code,
    );
}

#[test]
fn an_expired_bundle_is_refused() {
    refuses(
        |draft| {
            draft.manifest.created = moment("2020-01-01T00:00:00Z");
            draft.manifest.expires = Some(moment("2020-02-01T00:00:00Z"));
        },
        "expired",
    );
}

#[test]
fn a_bundle_from_the_future_is_refused() {
    refuses(
        |draft| draft.manifest.created = moment("2999-01-01T00:00:00Z"),
        "not-yet-valid",
    );
}

#[test]
fn a_bundle_for_a_later_host_is_refused() {
    refuses(
        |draft| draft.manifest.min_host = Some("999.0.0".parse().unwrap()),
        "host-too-old",
    );
}

#[test]
fn a_bundle_that_has_not_expired_is_taken() {
    let (machine, key) = machine_with_key();
    let mut draft = Draft::of("text-stats");
    draft.manifest.expires = Some(moment("2999-01-01T00:00:00Z"));
    draft.manifest.min_host = Some("0.1.0".parse().unwrap());
    draft
        .sign(&key)
        .write_archive(&machine.path("b.toolbundle"));
    machine
        .toolward("verify b.toolbundle --trust-key key.pub.pem")
        .ends(0);
}

//! A source that is asked for an update of one bundle, and serves another bundle of the same
//! publisher.

use toolward_signing::key::SigningKey;

use super::web::Web;
use super::{ID, add, document, key, listed, now, refused, release, runs, sequence, ship};
use crate::support::{Draft, Machine};

/// A machine that trusts acme for two bundles. The first bundle is in the file `from`.
fn with_two_prefixes(from: &str) -> (Machine, SigningKey) {
    let machine = Machine::new();
    let one = key(&machine, "one");
    let fingerprint = document(&machine, "acme", "one");
    let grant = "--prefix text --prefix text-stats --prefix csv --prefix csv-summary";
    add(&machine, "acme", grant, &fingerprint).ends(0);
    machine.configure("[trust]\nmax_age_days = 90\n");
    ship(&machine, &release(1), &one, from);
    (machine, one)
}

/// Acme's other bundle, which a machine may install separately.
fn other() -> Draft {
    let mut draft = Draft::of("csv-summary");
    draft.manifest.publisher = "acme".to_owned();
    draft.manifest.created = now();
    draft
}

#[test]
fn an_update_installs_no_other_bundle_that_lies_where_the_first_one_lay() {
    let (machine, one) = with_two_prefixes("b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    ship(&machine, &other(), &one, "b.toolbundle");
    refused(&machine, &format!("update {ID}"), 3, "wrong-bundle");
    machine.toolward("update").ends(3).warns("(wrong-bundle)");
    assert_eq!(sequence(&machine), 1);
    runs(&machine);
    // The other bundle is valid, and is installed if it is requested.
    machine.toolward("install b.toolbundle").ends(0);
    assert_eq!(listed(&machine).len(), 2);
}

#[test]
fn an_update_installs_no_other_bundle_that_a_server_offers() {
    let (machine, one) = with_two_prefixes("1.toolbundle");
    ship(&machine, &other(), &one, "2.toolbundle");
    let web = Web::serve(machine.read("1.toolbundle"));
    let place = web.url("b.toolbundle");
    machine
        .toolward(&format!("install {place} --plain-http"))
        .ends(0);
    // The start of the file names its owner, so the rest is not read.
    let mut begun = machine.read("2.toolbundle");
    begun.truncate(begun.len() / 2);
    web.replace(begun);
    let words = format!("update {ID} --plain-http");
    refused(&machine, &words, 3, "wrong-bundle");
    assert_eq!(sequence(&machine), 1);
    runs(&machine);
}

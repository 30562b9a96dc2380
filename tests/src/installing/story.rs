//! A publisher's and an operator's whole story, over a registry behind a proxy, with a token server and blobs
//! elsewhere: published, updated by tag and by channel, held and accepted, revoked and mended.

use super::elsewhere::{FIRST, TRUST, push, pushed};
use super::fronted::Fronted;
use super::{ID, is_not_loaded, key, listed, refused_run, release, reworded, runs, sequence, ship};
use crate::support::Machine;

const CHANNEL: &str = "oci://registry.example/acme/toolward-channel:stable";
const REVOCATIONS: &str = "oci://registry.example/acme/toolward-revocations:acme";

/// The publisher puts a release into the channel.
fn announce(fronted: &Fronted, machine: &Machine, bundle: &str, index: &str, after: &str) {
    let words = format!("publisher channel stable --key index.pem --bundle {bundle} -o {index}");
    machine.toolward(&format!("{words} {after}")).ends(0);
    let push = format!("push {index} {CHANNEL}");
    fronted.toolward(machine, &push).ends(0);
}

#[test]
fn releases_are_published_updated_held_accepted_and_revoked_over_a_registry_elsewhere() {
    let Some((fronted, machine, one)) = pushed() else {
        return;
    };
    let update = || fronted.toolward(&machine, &format!("update {ID}"));
    fronted
        .toolward(&machine, &format!("install {FIRST}"))
        .ends(0);
    runs(&machine);

    // By tag.
    ship(&machine, &release(2), &one, "2.toolbundle");
    push(&fronted, &machine, "2.toolbundle", "1.1.0");
    update().ends(0);
    assert_eq!(sequence(&machine), 2);

    // By channel: the release that it lists, not the newest.
    key(&machine, "index");
    let pem = machine.text("index.pub.pem");
    let channel = format!(
        "[[channel]]\nname = \"stable\"\nsource = \"{CHANNEL}\"\nkeys = [\"\"\"{pem}\"\"\"]\n"
    );
    let table = fronted.table(&machine, "");
    machine.configure(&format!("{TRUST}{channel}{table}"));
    for number in [3, 4] {
        let file = format!("{number}.toolbundle");
        ship(&machine, &release(number), &one, &file);
        push(&fronted, &machine, &file, &format!("1.{}.0", number - 1));
    }
    announce(&fronted, &machine, "3.toolbundle", "1.json", "");
    update().ends(0);
    assert_eq!(sequence(&machine), 3);
    runs(&machine);

    // Held, and accepted.
    ship(&machine, &reworded(release(5)), &one, "5.toolbundle");
    push(&fronted, &machine, "5.toolbundle", "1.4.0");
    announce(
        &fronted,
        &machine,
        "5.toolbundle",
        "2.json",
        "--after 1.json",
    );
    update().ends(4);
    assert_eq!(sequence(&machine), 3);
    let surface = listed(&machine)[0]["held_surface"].clone();
    let accept = format!("update {ID} --accept {}", surface.as_str().unwrap());
    fronted.toolward(&machine, &accept).ends(0);
    assert_eq!(sequence(&machine), 5);
    runs(&machine);

    // Revoked.
    let digest = listed(&machine)[0]["digest"].clone();
    let digest = digest.as_str().unwrap();
    let revoke =
        format!("publisher revoke acme --bundle {digest}=leaks --key one.pem -o list.json");
    machine.toolward(&revoke).ends(0);
    let send = format!("push list.json {REVOCATIONS}");
    fronted.toolward(&machine, &send).ends(0);
    let take = format!("trust update acme --revocations {REVOCATIONS}");
    fronted.toolward(&machine, &take).ends(0);
    is_not_loaded(&machine, "bundle-revoked");
    let ended = refused_run(&machine, update(), 3, "channel-mismatch");
    ended.warns("text-stats:1.4.0 is passed over: this release was revoked");

    // And mended.
    ship(&machine, &reworded(release(6)), &one, "6.toolbundle");
    push(&fronted, &machine, "6.toolbundle", "1.5.0");
    announce(
        &fronted,
        &machine,
        "6.toolbundle",
        "3.json",
        "--after 2.json",
    );
    update().ends(0);
    assert_eq!(sequence(&machine), 6);
    runs(&machine);
}

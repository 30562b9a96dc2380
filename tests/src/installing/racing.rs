//! Two commands at once: while one waits, the other's changes are not undone.

use super::web::Web;
use super::{installed, is_not_loaded, kept, key, listed, refused, release, ship, trusting};
use crate::support::{Ended, Machine, Run};

/// Runs a command that sends a request to a server, and does `work` before the server answers.
fn meanwhile(run: Run, web: &Web, work: impl FnOnce()) -> Ended {
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run.end());
        web.is_asked();
        work();
        web.answer();
        waiting.join().unwrap()
    })
}

#[test]
fn a_publisher_that_is_removed_while_its_document_is_waited_for_stays_removed() {
    let (machine, one) = installed();
    key(&machine, "two");
    machine
        .toolward("publisher next acme.publisher.json --add two.pub.pem --key one.pem -o 2.json")
        .ends(0);
    let web = Web::waiting(machine.read("2.json"));
    let words = format!("trust update acme {} --plain-http", web.url("2.json"));
    let ended = meanwhile(machine.toolward(&words), &web, || {
        machine.toolward("trust remove acme").ends(0);
    });
    assert_eq!(ended.code, Some(2), "{ended}");
    ended.says("publisher-unknown");
    let left = kept(&machine);
    assert!(!left.keys().any(|name| name.contains("acme")), "{left:?}");
    ship(&machine, &release(2), &one, "b.toolbundle");
    refused(&machine, "install b.toolbundle", 2, "nobody-trusted");
}

#[test]
fn an_older_list_that_is_waited_for_does_not_replace_a_newer_one() {
    let (machine, _) = installed();
    let digest = listed(&machine)[0]["digest"].as_str().unwrap().to_owned();
    let other = toolward_signing::Digest::of(b"another bundle");
    machine
        .toolward(&format!(
            "publisher revoke acme --bundle {other}=old --key one.pem -o 1.json"
        ))
        .ends(0);
    machine
        .toolward(&format!(
            "publisher revoke acme --after 1.json --bundle {digest}=leaks --key one.pem -o 2.json"
        ))
        .ends(0);
    let web = Web::waiting(machine.read("1.json"));
    let update = "trust update acme --revocations";
    let words = format!("{update} {} --plain-http", web.url("1.json"));
    let ended = meanwhile(machine.toolward(&words), &web, || {
        machine.toolward(&format!("{update} 2.json")).ends(0);
    });
    assert_eq!(ended.code, Some(3), "{ended}");
    ended.says("rollback");
    is_not_loaded(&machine, "bundle-revoked");
}

#[test]
fn publishers_that_are_added_at_once_are_all_trusted() {
    let (machine, _) = trusting();
    for name in ["two", "three", "four"] {
        key(&machine, name);
    }
    let publishers = [("zeta", "two"), ("eta", "three"), ("theta", "four")];
    let adding = publishers.map(|(name, key)| {
        let fingerprint = super::document(&machine, name, key);
        super::add(&machine, name, &format!("--prefix {name}"), &fingerprint)
    });
    std::thread::scope(|scope| {
        let running = adding.map(|run| scope.spawn(|| run.ends(0)));
        for one in running {
            one.join().unwrap();
        }
    });
    let trusted = machine.toolward("trust list --json").ends(0).json_lines();
    assert_eq!(trusted.len(), 4, "{trusted:?}");
}

/// Two documents with one key. One is added while the other is being fetched.
#[test]
fn a_key_that_somebody_else_got_meanwhile_is_not_trusted_twice() {
    let machine = Machine::new();
    key(&machine, "one");
    let acme = super::document(&machine, "acme", "one");
    let zeta = super::document(&machine, "zeta", "one");
    let web = Web::waiting(machine.read("zeta.publisher.json"));
    let words = format!(
        "trust add {} --prefix zeta --plain-http",
        web.url("zeta.json")
    );
    let run = machine
        .toolward(&words)
        .arg(format!("--fingerprint={zeta}"));
    let ended = meanwhile(run, &web, || {
        super::add(&machine, "acme", super::GRANT, &acme).ends(0);
    });
    assert_eq!(ended.code, Some(3), "{ended}");
    ended.says("trust-invalid");
    let trusted = machine.toolward("trust list --json").ends(0).json();
    assert_eq!(trusted["name"], "acme");
}

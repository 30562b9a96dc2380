//! Hosts that a registry names and that are not allowed yet: a person at a terminal is asked once
//! about each, and the answer is stored. Without a person nothing is asked. No request is sent to
//! such a host before the yes.

use super::elsewhere::{FIRST, TRUST, push, pushed};
use super::fronted::Fronted;
use super::{ID, listed, refused_run, release, runs, sequence, ship};
use crate::support::{Left, Machine, Session};

const DOWNLOADS: &str = "Download from there? [y/N] ";
const REALM: &str = "Write this? [y/N] ";
const BLOBS: &str = "https://blobs.example";
const CONFIG: &str = ".config/toolward/toolward.toml";
const KEPT: &str = ".local/state/toolward/trust/downloads.json";

/// Returns a registry with the first release, and a machine whose table lacks the line `key`.
fn lacking(key: &str) -> Option<(Fronted, Machine, toolward_signing::key::SigningKey)> {
    let (fronted, machine, one) = pushed()?;
    machine.configure(&format!("{TRUST}{}", fronted.table(&machine, key)));
    fronted.requests();
    Some((fronted, machine, one))
}

fn session(fronted: &Fronted, machine: &Machine, words: &str) -> Session {
    let run = fronted.toolward(machine, words);
    Session::start(run.into_command(), 200, "y\r")
}

fn asked_hosts(fronted: &Fronted) -> Vec<String> {
    let requests = fronted.requests().into_iter();
    requests.map(|seen| seen.host).collect()
}

fn config(machine: &Machine) -> String {
    std::fs::read_to_string(machine.home().join(CONFIG)).unwrap()
}

/// Asserts that a run at a terminal was refused without a question.
#[track_caller]
fn is_refused_unasked(left: &Left, code: &str) {
    assert_eq!(left.code, Some(1), "{left:?}");
    assert!(left.screen.contains(code), "{left:?}");
    assert!(!left.screen.contains("[y/N]"), "{left:?}");
}

#[test]
fn a_host_of_downloads_is_asked_about_once_and_kept_for_its_repository() {
    let Some((fronted, machine, one)) = lacking("redirects_to") else {
        return;
    };
    let install = format!("install {FIRST}");
    // Without a terminal nothing is asked, whatever is on standard input.
    let run = fronted.toolward(&machine, &install).stdin("y\n");
    let ended = refused_run(&machine, run, 1, "registry-redirect-refused");
    let line = "redirects_to = [\"https://blobs.example\"]";
    assert!(ended.stderr.contains(line), "{ended}");
    assert!(
        ended
            .stderr
            .contains("the `[[registry]]` of registry.example"),
        "{ended}"
    );

    for keys in ["\r", "n\r", "\u{3}"] {
        let mut session = session(&fronted, &machine, &install);
        session.sees(DOWNLOADS);
        session.types(keys);
        let left = session.leaves();
        assert_eq!(left.code, Some(4), "{left:?}");
        assert!(left.screen.contains("change-unconfirmed"), "{left:?}");
    }
    assert!(!asked_hosts(&fronted).contains(&"blobs.example".to_owned()));
    assert!(listed(&machine).is_empty() && !machine.home().join(KEPT).exists());

    let mut first = session(&fronted, &machine, &install);
    first.sees(DOWNLOADS);
    for shown in ["registry.example", "acme/text-stats", BLOBS] {
        assert!(first.screen().contains(shown), "{}", first.screen());
    }
    assert!(!asked_hosts(&fronted).contains(&"blobs.example".to_owned()));
    first.types("y\r");
    let left = first.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert_eq!(left.screen.matches("[y/N]").count(), 1, "{left:?}");
    for seen in fronted.requests() {
        let bare = seen.host != "blobs.example" || seen.authorization.is_none();
        assert!(bare, "{seen:?}");
    }
    let doctor = machine.toolward("doctor").end();
    let told =
        "let downloads of oci://registry.example/acme/text-stats come from https://blobs.example";
    assert!(doctor.stdout.contains(told), "{doctor}");
    assert!(!config(&machine).contains("blobs.example"));

    // The answer is stored for this repository only.
    ship(&machine, &release(2), &one, "2.toolbundle");
    push(&fronted, &machine, "2.toolbundle", "1.1.0");
    fronted.toolward(&machine, "update").ends(0);
    assert_eq!(sequence(&machine), 2);
    runs(&machine);
    let other = "oci://registry.example/acme/other:1.0.0";
    let send = format!("publisher push 2.toolbundle {other}");
    fronted.toolward(&machine, &send).ends(0);
    let run = fronted.toolward(&machine, &format!("install {other}"));
    refused_run(&machine, run, 1, "registry-redirect-refused");

    // The answer is removed with the last bundle from that repository.
    machine.toolward(&format!("remove {ID}")).ends(0);
    let run = fronted.toolward(&machine, &install);
    refused_run(&machine, run, 1, "registry-redirect-refused");
}

#[test]
fn a_host_that_is_named_later_is_asked_about_as_well() {
    let Some((fronted, machine, one)) = lacking("redirects_to") else {
        return;
    };
    // The registry names another host between the question and its answer.
    fronted.redirects(&[BLOBS, "https://other.example"]);
    let install = format!("install {FIRST}");
    let mut swapped = session(&fronted, &machine, &install);
    swapped.sees(DOWNLOADS);
    assert!(!swapped.screen().contains("other.example"));
    swapped.types("y\r");
    swapped.sees("+ https://other.example");
    swapped.types("n\r");
    let left = swapped.leaves();
    assert_eq!(left.code, Some(4), "{left:?}");
    let hosts = asked_hosts(&fronted);
    assert!(!hosts.contains(&"other.example".to_owned()), "{hosts:?}");
    // A host from which nothing was installed is not stored.
    assert!(listed(&machine).is_empty() && !machine.home().join(KEPT).exists());

    fronted.redirects(&[BLOBS]);
    let mut first = session(&fronted, &machine, &install);
    first.sees(DOWNLOADS);
    first.types("y\r");
    assert_eq!(first.leaves().code, Some(0));
    ship(&machine, &release(2), &one, "2.toolbundle");
    push(&fronted, &machine, "2.toolbundle", "1.1.0");
    fronted.redirects(&["https://other.example"]);
    let run = fronted.toolward(&machine, &format!("update {ID}"));
    refused_run(&machine, run, 1, "registry-redirect-refused");
    assert!(!asked_hosts(&fronted).contains(&"other.example".to_owned()));
    let mut update = session(&fronted, &machine, &format!("update {ID}"));
    update.sees(DOWNLOADS);
    assert!(update.screen().contains("+ https://other.example"));
    update.types("y\r");
    assert_eq!(update.leaves().code, Some(0));
    assert_eq!(sequence(&machine), 2);
}

#[test]
fn nobody_is_asked_about_a_host_of_this_network_or_without_tls() {
    let Some((fronted, machine, _)) = lacking("redirects_to") else {
        return;
    };
    for target in [
        "https://127.0.0.1",
        "https://10.0.0.1",
        "https://[::1]",
        "https://0x7f000001",
        "https://localhost",
        "https://blobs",
        "https://nas.local",
        "http://blobs.example",
        "https://me:word@blobs.example",
    ] {
        fronted.redirects(&[target]);
        let left = session(&fronted, &machine, &format!("install {FIRST}")).leaves();
        is_refused_unasked(&left, "registry-redirect-refused");
        assert!(!left.screen.contains("word@"), "{left:?}");
    }
    for host in asked_hosts(&fronted) {
        let known = ["registry.example", "auth.example"].contains(&host.as_str());
        assert!(known, "{host}");
    }
}

#[test]
fn a_name_in_other_letters_is_shown_in_ascii_with_a_remark() {
    let Some((fronted, machine, _)) = lacking("redirects_to") else {
        return;
    };
    // A Cyrillic letter in place of a Latin one.
    fronted.redirects(&["https://xn--blbs-65d.example"]);
    let mut session = session(&fronted, &machine, &format!("install {FIRST}"));
    session.sees(DOWNLOADS);
    let screen = session.screen();
    for shown in ["https://xn--blbs-65d.example", "in other letters"] {
        assert!(screen.contains(shown), "{screen}");
    }
    assert!(!screen.contains('\u{43e}'), "{screen}");
    session.types("n\r");
    assert_eq!(session.leaves().code, Some(4));
}

#[test]
fn a_token_server_is_asked_about_once_and_becomes_a_line_of_the_table() {
    let Some((fronted, machine, _)) = lacking("realm") else {
        return;
    };
    let before = config(&machine);
    let install = format!("install {FIRST}");
    let run = fronted.toolward(&machine, &install).stdin("y\n");
    let ended = refused_run(&machine, run, 1, "registry-realm-refused");
    let line = "realm = \"https://auth.example\"";
    assert!(ended.stderr.contains(line), "{ended}");
    for keys in ["\r", "\u{3}"] {
        let mut session = session(&fronted, &machine, &install);
        session.sees(REALM);
        session.types(keys);
        let left = session.leaves();
        assert_eq!(left.code, Some(4), "{left:?}");
    }
    assert!(!asked_hosts(&fronted).contains(&"auth.example".to_owned()));
    assert_eq!(config(&machine), before);

    let mut first = session(&fronted, &machine, &install);
    first.sees(REALM);
    let screen = first.screen();
    for shown in ["registry.example", &format!("+{line}"), "password"] {
        assert!(screen.contains(shown), "{screen}");
    }
    assert!(!asked_hosts(&fronted).contains(&"auth.example".to_owned()));
    first.types("y\r");
    let left = first.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(!left.screen.contains("s3cret"), "{left:?}");
    let host = "host = \"registry.example\"\n";
    assert_eq!(
        config(&machine),
        before.replace(host, &format!("{host}{line}\n"))
    );
    let doctor = machine.toolward("doctor").end();
    let told = "let https://auth.example have the credentials for registry.example";
    assert!(doctor.stdout.contains(told), "{doctor}");
    fronted.toolward(&machine, "update").ends(0);
    runs(&machine);

    // Nothing is asked about a token server that differs from the operator's.
    fronted.requests();
    fronted.names("https://other.example/token");
    let left = session(&fronted, &machine, "update text.stats-bundle").leaves();
    is_refused_unasked(&left, "registry-realm-refused");
    assert!(!asked_hosts(&fronted).contains(&"other.example".to_owned()));
}

#[test]
fn a_registry_without_a_table_gets_one_with_the_token_server() {
    let Some((fronted, machine, _)) = pushed() else {
        return;
    };
    fronted.table(&machine, "");
    machine.configure(TRUST);
    machine.write(
        "docker.json",
        "{\"auths\":{\"registry.example\":{\"auth\":\"Y2k6czNjcmV0\"}}}",
    );
    let ca = machine.home().join(".config/toolward/ca.pem");
    let install = format!(
        "install {FIRST} --ca-file {} --docker-config docker.json --allow-redirects-to {BLOBS}",
        ca.display()
    );
    let run = fronted.toolward(&machine, &install);
    let ended = refused_run(&machine, run, 1, "registry-realm-refused");
    let table = "[[registry]]\nhost = \"registry.example\"\nrealm = \"https://auth.example\"\n";
    assert!(ended.stderr.contains(table), "{ended}");
    let mut session = session(&fronted, &machine, &install);
    session.sees(REALM);
    session.types("y\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert_eq!(config(&machine), format!("{TRUST}\n{table}"));
    let backups = std::fs::read_dir(machine.home().join(".config/toolward")).unwrap();
    let mut backups = backups.map(|entry| std::fs::read_to_string(entry.unwrap().path()));
    assert!(backups.any(|text| text.is_ok_and(|text| text == TRUST)));
}

#[test]
fn nobody_is_asked_about_a_token_server_without_tls_or_of_this_network() {
    let Some((fronted, machine, _)) = lacking("realm") else {
        return;
    };
    for realm in [
        "http://auth.example/token",
        "https://127.0.0.1/token",
        "https://localhost/token",
        "https://auth/token",
        "https://ci@auth.example/token",
        "https://a\\\"b.example/token",
    ] {
        fronted.names(realm);
        let left = session(&fronted, &machine, &format!("install {FIRST}")).leaves();
        is_refused_unasked(&left, "registry-realm-refused");
    }
    for seen in fronted.requests() {
        let bare = seen.host == "registry.example" && seen.authorization.is_none();
        assert!(bare, "{seen:?}");
    }
}

//! Mistakes in installing and trusting, and bundles that are not valid.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolward_signing::timestamp::Timestamp;

use super::{hints, machine, told};
use crate::installing::secure::{Certificates, SecureWeb};
use crate::installing::web::Web;
use crate::installing::{installed, listed, release, ship, trusting};
use crate::support::Draft;

const KEY: &str = "--trust-key example.pub.pem";

#[test]
fn what_is_no_source_gets_the_forms_of_sources() {
    let forms = "a source is a file or directory, https://HOST/FILE.toolbundle, or oci://";
    let machine = machine();
    for words in ["install text.stats", &format!("install text.stats {KEY}")] {
        let ended = machine.toolward(words).ends(2);
        told(
            &ended,
            "file-unreadable",
            "text.stats: there is no such file",
            forms,
        );
    }
    let ended = machine.toolward(&format!("install host/x:1 {KEY}")).ends(2);
    told(
        &ended,
        "file-unreadable",
        "host/x:1",
        "did you mean oci://host/x:1?",
    );
    told(&ended, "file-unreadable", "host/x:1", forms);
    let ended = machine
        .toolward(&format!("install ftp://host/x {KEY}"))
        .ends(1);
    told(
        &ended,
        "source-invalid",
        "ftp",
        "oci://REGISTRY/REPOSITORY:TAG",
    );
}

#[test]
fn a_reference_without_a_tag_gets_one_to_add() {
    let ended = machine()
        .toolward(&format!("install oci://127.0.0.1:1/x {KEY}"))
        .ends(1);
    told(
        &ended,
        "reference-incomplete",
        "oci://127.0.0.1:1/x",
        "add a tag",
    );
}

#[test]
fn a_registry_that_is_down_is_named_as_that() {
    let ended = machine()
        .toolward(&format!("install oci://127.0.0.1:1/x:1 {KEY}"))
        .ends(1);
    told(
        &ended,
        "registry-unreachable",
        "127.0.0.1:1",
        "nothing listens there",
    );
}

#[test]
fn an_authority_that_is_not_known_is_to_be_named() {
    let certificates = Certificates::new();
    let web = SecureWeb::start(&certificates);
    let source = format!("https://localhost:{}/x.toolbundle", web.port);
    let machine = machine();
    machine.write("other.pem", Certificates::new().authority);
    for authority in ["", "--ca-file other.pem"] {
        let ended = machine
            .toolward(&format!("install {source} {KEY} {authority}"))
            .ends(1);
        told(
            &ended,
            "registry-unreachable",
            "certificate",
            "--ca-file PEM",
        );
    }
    // With the right certificate authority, only the file is missing.
    machine.write("ca.pem", &certificates.authority);
    let ended = machine
        .toolward(&format!("install {source} {KEY} --ca-file ca.pem"))
        .ends(1);
    told(
        &ended,
        "registry-not-found",
        "x.toolbundle",
        "check the address",
    );
    let text = hints(&ended).join("\n");
    assert!(
        !text.contains("repository") && !text.contains("tag"),
        "{ended}"
    );
}

/// Starts a server that answers in plain http. Also returns how many clients connected.
fn plain_server() -> (u16, Arc<AtomicUsize>) {
    use std::io::{Read as _, Write as _};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let came = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&came);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream;
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    (port, came)
}

#[test]
fn a_registry_that_speaks_plain_http_is_asked_once_and_gets_the_flag() {
    let (port, came) = plain_server();
    let ended = machine()
        .toolward(&format!("install oci://127.0.0.1:{port}/x:1 {KEY}"))
        .ends(1);
    told(
        &ended,
        "registry-unreachable",
        &port.to_string(),
        "--plain-http",
    );
    assert_eq!(came.load(Ordering::SeqCst), 1, "{ended}");
}

#[test]
fn without_a_rule_of_freshness_one_gets_its_lines() {
    let (machine, one) = trusting();
    ship(&machine, &release(1), &one, "b.toolbundle");
    let web = Web::serve(machine.read("b.toolbundle"));
    let install = format!("install {} --plain-http", web.url("b.toolbundle"));
    let ended = machine.toolward(&install).ends(3);
    for next in [
        "--max-age-days 90",
        "`[trust]` and `max_age_days = 90` in toolward.toml",
    ] {
        told(&ended, "freshness-unknown", "text.stats-bundle", next);
    }
    // With these lines it works.
    machine.configure("[trust]\nmax_age_days = 90\n");
    machine.toolward(&install).ends(0);
    // The lines refuse an old release, and the error suggests a next step.
    let mut old = release(2);
    old.manifest.created = Timestamp::parse("2020-01-01T00:00:00Z").unwrap();
    ship(&machine, &old, &one, "old.toolbundle");
    let web = Web::serve(machine.read("old.toolbundle"));
    let install = format!("install {} --plain-http", web.url("old.toolbundle"));
    let ended = machine.toolward(&install).ends(3);
    told(&ended, "too-old", "`created` 2020-01-01", "max_age_days");
}

#[test]
fn an_older_release_says_how_to_go_back_on_purpose() {
    let (machine, one) = installed();
    ship(&machine, &release(2), &one, "next.toolbundle");
    machine.toolward("install next.toolbundle").ends(0);
    let ended = machine.toolward("install b.toolbundle").ends(3);
    told(&ended, "rollback", "text.stats-bundle", "--allow-rollback");
}

#[test]
fn what_trust_add_does_not_take_is_called_what_it_is() {
    let machine = machine();
    machine.write("README.md", "# Not a document\n");
    for (source, next) in [
        (
            "text-stats.toolbundle",
            "this is a bundle: `toolward verify BUNDLE",
        ),
        ("README.md", "NAME.publisher.json"),
    ] {
        let ended = machine
            .toolward(&format!("trust add {source} --prefix text"))
            .ends(3);
        told(&ended, "envelope-invalid", source, next);
        assert!(!ended.stderr.contains("toolward publisher sign"), "{ended}");
    }
    // A key next to a bundle may come from the bundle's sender.
    let ended = machine.toolward("trust add example.pub.pem --prefix text");
    told(
        &ended.ends(3),
        "key-misplaced",
        "text-stats.toolbundle",
        "by another way than the bundle",
    );
}

#[test]
fn a_bundle_that_was_tampered_with_is_not_to_be_used() {
    let (machine, one) = trusting();
    let mut signed = release(1).sign(&one);
    let name = "tools/text.stats/TOOL.md";
    let text = signed.files.get_mut(name).unwrap();
    let last = text.len() - 2;
    text[last] ^= 1;
    signed.write_archive(&machine.path("b.toolbundle"));
    for words in ["verify b.toolbundle", "install b.toolbundle"] {
        let ended = machine.toolward(words).ends(3);
        told(&ended, "digest-mismatch", name, "do not use this bundle");
        let text = hints(&ended).join("\n");
        assert!(
            text.contains("Tell its publisher") && !text.contains("toolward pack"),
            "{ended}"
        );
    }
}

#[test]
fn who_received_a_bundle_is_not_told_to_pack_or_sign_it() {
    let (machine, one) = trusting();
    let Draft { manifest, files } = release(1);
    let mut signed = Draft { manifest, files }.sign(&one);
    signed.envelope = b"{}".to_vec();
    signed.write_directory(&machine.path("b"));
    let ended = machine.toolward("verify b").ends(3);
    told(
        &ended,
        "envelope-invalid",
        "manifest.dsse.json",
        "its publisher",
    );
    std::fs::remove_file(machine.path("b/manifest.dsse.json")).unwrap();
    let ended = machine.toolward("verify b").ends(3);
    told(
        &ended,
        "envelope-missing",
        "manifest.dsse.json",
        "get a signed bundle from its publisher",
    );
}

#[test]
fn a_revoked_release_says_what_to_do_about_it() {
    let (machine, _) = installed();
    let digest = listed(&machine)[0]["digest"].as_str().unwrap().to_owned();
    machine
        .toolward(&format!(
            "publisher revoke acme --bundle {digest}=leaks --key one.pem -o list.json"
        ))
        .ends(0);
    machine
        .toolward("trust update acme --revocations list.json")
        .ends(0);
    let ended = machine.toolward("call text.stats --set text=a").ends(3);
    told(
        &ended,
        "bundle-revoked",
        "text.stats-bundle",
        "get the publisher's current release",
    );
    told(
        &ended,
        "bundle-revoked",
        "text.stats-bundle",
        "toolward remove text.stats-bundle",
    );
    // It is listed with its tool and its state.
    let shown = machine.toolward("list").ends(0).stdout;
    assert!(
        shown.contains("NOT LOADED") && shown.contains("text.stats@1  REFUSED"),
        "{shown}"
    );
}

#[test]
fn who_pushes_and_trusts_nobody_hears_how_to_trust_oneself() {
    let ended = machine()
        .toolward("publisher push text-stats.toolbundle oci://127.0.0.1:1/x:1")
        .ends(2);
    told(
        &ended,
        "nobody-trusted",
        "no publisher is trusted",
        "--trust-key YOU.pub.pem",
    );
}

//! A registry as companies use it: behind a proxy, with its own certificate authority, a separate
//! token server, and blobs at a third host. Everything is set by `[[registry]]` and two variables,
//! without flags.

use super::fronted::Fronted;
use super::{listed, refused_run, release, runs, sequence, ship, trusting};
use crate::support::{Ended, Machine};

pub(super) const FIRST: &str = "oci://registry.example/acme/text-stats:1.0.0";

/// The rule of freshness for acme's releases.
pub(super) const TRUST: &str = "[trust]\nmax_age_days = 90\n";

#[track_caller]
fn tells(ended: &Ended, words: &str) {
    assert!(ended.stderr.contains(words), "no {words:?} in {ended}");
}

pub(super) fn push(fronted: &Fronted, machine: &Machine, file: &str, tag: &str) {
    let reference = format!("oci://registry.example/acme/text-stats:{tag}");
    let push = fronted.toolward(machine, &format!("publisher push {file} {reference}"));
    push.ends(0);
}

/// Returns a registry with the first release, and a machine with the settings.
pub(super) fn pushed() -> Option<(Fronted, Machine, toolward_signing::key::SigningKey)> {
    let fronted = Fronted::start()?;
    let (machine, one) = trusting();
    machine.configure(&format!("{TRUST}{}", fronted.table(&machine, "")));
    ship(&machine, &release(1), &one, "1.toolbundle");
    push(&fronted, &machine, "1.toolbundle", "1.0.0");
    Some((fronted, machine, one))
}

#[test]
fn a_registry_with_a_realm_and_redirected_blobs_is_used_through_a_proxy() {
    let Some((fronted, machine, one)) = pushed() else {
        return;
    };
    fronted.tunnels();
    fronted.requests();
    let install = fronted
        .toolward(&machine, &format!("install {FIRST}"))
        .ends(0);
    assert_eq!(sequence(&machine), 1);
    let tunnels = fronted.tunnels();
    for host in ["registry.example", "auth.example", "blobs.example"] {
        let line = format!("CONNECT {host}:443 HTTP/1.1");
        assert!(tunnels.contains(&line), "{host}: {tunnels:?}");
    }
    let requests = fronted.requests();
    for seen in &requests {
        let sent = seen.authorization.as_deref();
        match seen.host.as_str() {
            "auth.example" => assert_eq!(sent, Some("Basic Y2k6czNjcmV0"), "{seen:?}"),
            "registry.example" => assert!(matches!(sent, None | Some("Bearer granted"))),
            _ => assert_eq!(sent, None, "{seen:?}"),
        }
    }
    let of_blobs = requests
        .iter()
        .filter(|seen| seen.host == "blobs.example" && seen.line.contains("/blobs/"));
    assert!(of_blobs.count() >= 2, "envelope and content: {requests:?}");

    ship(&machine, &release(2), &one, "2.toolbundle");
    push(&fronted, &machine, "2.toolbundle", "1.1.0");
    let update = fronted.toolward(&machine, "update").ends(0);
    assert_eq!(sequence(&machine), 2);
    runs(&machine);
    for ended in [install, update] {
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(
            !told.contains("hunter2") && !told.contains("s3cret"),
            "{told}"
        );
    }
}

#[test]
fn a_proxy_that_refuses_is_named_without_its_login_and_not_gone_around() {
    let Some((fronted, machine, _)) = pushed() else {
        return;
    };
    let install = format!("install {FIRST}");
    let port = fronted.bare_proxy().rsplit_once(':').unwrap().1.to_owned();
    let wrong = format!("http://me:hunter3@127.0.0.1:{port}");
    let run = fronted
        .toolward(&machine, &install)
        .env("HTTPS_PROXY", &wrong);
    let ended = refused_run(&machine, run, 1, "registry-unreachable");
    tells(&ended, "HTTPS_PROXY");
    tells(&ended, &format!("127.0.0.1:{port}"));
    assert!(!ended.stderr.contains("hunter3"), "{ended}");

    // Hosts in `NO_PROXY` are reached without the proxy, and nothing answers there.
    fronted.tunnels();
    let run = fronted
        .toolward(&machine, &install)
        .env("NO_PROXY", "example");
    refused_run(&machine, run, 1, "registry-unreachable");
    assert_eq!(fronted.tunnels(), [""; 0]);
    // Only whole labels match.
    let run = fronted
        .toolward(&machine, &install)
        .env("NO_PROXY", "ple,stry.example");
    run.ends(0);

    for address in [
        "socks5://me:hunter4@127.0.0.1:1",
        "http://",
        "http://${hunter4}:1",
    ] {
        let run = fronted
            .toolward(&machine, &install)
            .env("HTTPS_PROXY", address);
        let ended = refused_run(&machine, run, 1, "registry-proxy-invalid");
        let local = machine.toolward("install 1.toolbundle --move-source");
        let local = local.env("HTTPS_PROXY", address).end();
        assert!(!local.stderr.contains("registry-proxy-invalid"), "{local}");
        assert!(!ended.stderr.contains("hunter4"), "{ended}");
        assert!(ended.stderr.contains("http://HOST:PORT"), "{ended}");
    }
}

#[test]
fn without_a_line_of_its_table_nothing_goes_where_that_line_allows() {
    let Some((fronted, machine, _)) = pushed() else {
        return;
    };
    let install = format!("install {FIRST}");
    for (key, host, code) in [
        ("realm", "auth.example", "registry-realm-refused"),
        ("redirects_to", "blobs.example", "registry-redirect-refused"),
        ("ca_file", "registry.example", "registry-unreachable"),
    ] {
        machine.configure(&format!("{TRUST}{}", fronted.table(&machine, key)));
        fronted.requests();
        let ended = refused_run(&machine, fronted.toolward(&machine, &install), 1, code);
        let requests = fronted.requests();
        assert!(
            !requests.iter().any(|seen| seen.host == host),
            "{requests:?}"
        );
        if key == "ca_file" {
            tells(&ended, "ca_file");
        } else {
            tells(&ended, key);
            tells(&ended, "[[registry]]");
        }
    }
    // The table of another repository does not apply to this one.
    let other = format!(
        "{}repository = \"acme/other\"\n",
        fronted.table(&machine, "")
    );
    machine.configure(&format!("{TRUST}{other}"));
    refused_run(
        &machine,
        fronted.toolward(&machine, &install),
        1,
        "registry-unreachable",
    );
    // Without its password no request is sent.
    machine.configure(&format!("{TRUST}{}", fronted.table(&machine, "")));
    fronted.requests();
    let run = machine
        .toolward(&install)
        .env("HTTPS_PROXY", fronted.bare_proxy());
    let ended = refused_run(&machine, run, 2, "registry-password-missing");
    tells(&ended, "REGISTRY_PASSWORD");
    assert!(fronted.requests().is_empty() && listed(&machine).is_empty());
}

#[test]
fn a_table_with_a_password_in_it_is_refused_without_showing_it() {
    let (machine, _) = trusting();
    let table = "[[registry]]\nhost = \"r.example\"\nusername = \"ci\"\npassword = \"hunter2\"\n";
    machine.configure(table);
    for words in ["install oci://r.example/a:1", "policy check", "serve"] {
        let ended = machine.toolward(words).end();
        assert_ne!(ended.code, Some(0), "{ended}");
        ended.says("registry-setting-invalid");
        tells(&ended, "toolward.toml:4:12");
        assert!(!format!("{ended}").contains("hunter2"), "{ended}");
    }
    // Trust can still be removed.
    machine.toolward("trust remove acme").ends(0);
}

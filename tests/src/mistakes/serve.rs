//! Mistakes with servers and disks.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use super::{BUNDLE, machine, told};
use crate::installing::disks::namespace;
use crate::support::{Ended, Run};

/// Serves over HTTP, and asserts that it fails before an address is announced.
#[track_caller]
fn refused(flags: &str) -> Ended {
    let ended = machine()
        .toolward(&format!("serve {BUNDLE} {flags}"))
        .ends(2);
    assert!(!ended.stderr.contains("listening"), "{ended}");
    ended
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = refused(&format!("--http {address}"));
    told(&ended, "address-unusable", &address, "a port that is free");
}

#[test]
fn localhost_is_an_address_to_serve_at() {
    let machine = machine();
    let mut command = machine
        .toolward(&format!("serve {BUNDLE} --http localhost:0"))
        .into_command();
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let listening = lines
        .map_while(Result::ok)
        .find(|line| line.contains("listening on "));
    child.kill().unwrap();
    child.wait().unwrap();
    let listening = listening.unwrap();
    assert!(
        listening.starts_with("listening on http://127.0.0.1:"),
        "{listening}"
    );
}

#[test]
fn an_address_without_a_port_gets_the_form_of_one() {
    for address in [
        "localhost",
        "8000",
        ":8000",
        "example.com:80",
        "localhost:99999",
    ] {
        let ended = refused(&format!("--http {address}"));
        assert!(ended.stderr.contains(address), "{ended}");
        assert!(
            ended.stderr.contains("localhost:8000, 127.0.0.1:8000"),
            "{ended}"
        );
    }
}

#[test]
fn an_address_that_no_client_can_name_needs_names() {
    let ended = refused("--http 0.0.0.0:0");
    told(&ended, "http-no-hosts", "0.0.0.0", "--allow-host NAME");
    // Without tokens it serves only this machine.
    let ended = refused("--http 0.0.0.0:0 --no-token --allow-host a.example");
    told(&ended, "http-open-address", "0.0.0.0", "serve on 127.0.0.1");
}

#[test]
fn an_origin_that_can_be_any_page_needs_tokens() {
    for origin in ["null", "vscode-webview://*"] {
        let ended = refused(&format!(
            "--http 127.0.0.1:0 --no-token --allow-origin {origin}"
        ));
        told(&ended, "http-open-origin", origin, "give tokens");
    }
}

#[test]
fn a_folder_that_is_missing_or_takes_nothing_is_named() {
    let machine = machine();
    for file in ["gone/me.pem", "/proc/me.pem"] {
        let ended = machine
            .toolward(&format!("publisher keys new --out {file}"))
            .ends(1);
        told(
            &ended,
            "write-failed",
            file,
            "a directory that is there and that you may write to",
        );
    }
}

#[test]
fn a_cache_that_others_may_write_to_says_how_to_repair_it() {
    let machine = machine();
    std::fs::create_dir(machine.path("open")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(machine.path("open"), mode).unwrap();
    let ended = machine.toolward(&format!(
        "call text.stats {BUNDLE} --set text=a --cache-dir open"
    ));
    told(
        &ended.ends(1),
        "cache-unusable",
        "use chmod go-rwx",
        "name another cache directory",
    );
}

#[test]
fn a_call_with_a_full_cache_disk_runs_uncached_and_says_where_to_make_room() {
    let Some(namespace) = namespace() else {
        return;
    };
    let machine = machine().with_own_cache();
    let call = format!(
        "'{}' call text.stats {BUNDLE} --set text=one",
        crate::support::machine::toolward().display()
    );
    let script = format!(
        "set -eu
         cache=\"$HOME/.cache\"
         mkdir \"$cache\"
         mount -t tmpfs -o size=64m,mode=700 tmpfs \"$cache\"
         fill() {{
             for size in 64k 4k; do
                 dd if=/dev/zero of=\"$cache/fill.$size\" bs=$size 2>/dev/null || true
             done
         }}
         fill
         {call} >new.out 2>new.err
         rm \"$cache\"/fill.*
         {call} >kept.out 2>kept.err
         rm -r \"$cache\"/toolward/artefacts/*
         fill
         {call} >known.out 2>known.err"
    );
    let mut unshare = machine.program("unshare");
    unshare.args(namespace).args(["bash", "-c", &script]);
    Run::new(unshare).ends(0);
    for name in ["new", "kept", "known"] {
        assert!(
            machine
                .text(&format!("{name}.out"))
                .contains("\"words\": 1")
        );
    }
    // A cache without room for its key, one with room, and one that contains only a key.
    let warning = |name: &str| {
        let said = machine.text(&format!("{name}.err"));
        let mut lines = said.lines().map(str::to_owned);
        lines.find(|line| line.contains("compiled drivers are not kept"))
    };
    assert_eq!(warning("kept"), None);
    for name in ["new", "known"] {
        let warning =
            warning(name).unwrap_or_else(|| panic!("{}", machine.text(&format!("{name}.err"))));
        assert!(warning.starts_with("warning: "), "{warning}");
        for part in [".cache/toolward", "No space left", "--cache-dir"] {
            assert!(warning.contains(part), "no {part} in {warning}");
        }
    }
}

#[test]
fn a_call_with_little_address_space_is_slower_and_succeeds() {
    let machine = machine();
    let toolward = crate::support::machine::toolward().display();
    let call = format!("exec {toolward} call text.stats {BUNDLE} --set text=a");
    for kibibytes in [8_388_608, 2_000_000] {
        let mut shell = machine.program("bash");
        shell.args(["-c", &format!("ulimit -v {kibibytes}; {call}")]);
        let ended = Run::new(shell).ends(0);
        assert!(ended.stdout.contains("words"), "{ended}");
    }
}

#[test]
fn a_hard_limit_on_open_files_that_is_too_low_is_named_at_the_start() {
    let machine = machine();
    let toolward = crate::support::machine::toolward().display();
    // Standard input has ended, so the server ends as well, after all its warnings.
    let serve = format!("exec {toolward} serve {BUNDLE} --stdio < /dev/null");
    let warned = |limit: &str| {
        let mut shell = machine.program("bash");
        shell.args(["-c", &format!("ulimit {limit}; {serve}")]);
        Run::new(shell).ends(0).stderr
    };
    let warning = warned("-n 100");
    for part in ["100 files", "hard limit", "LimitNOFILE"] {
        assert!(warning.contains(part), "no {part} in {warning}");
    }
    // The server raises a soft limit, so it does not warn of a hard one.
    let warning = warned("-S -n 100");
    assert!(!warning.contains("hard limit"), "{warning}");
}

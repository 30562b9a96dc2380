//! Installed bundles that are no longer loaded. Each command that shows or uses them reports that,
//! with the code of the reason.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolward_signing::timestamp::Timestamp;

use super::{ID, installed, listed, release, runs, ship, trusting};
use crate::mcp::raw::Raw;
use crate::support::{Ended, Machine};

/// Returns the only bundle, as `list --json` shows it.
#[track_caller]
fn shown(machine: &Machine) -> Value {
    let mut listed = listed(machine);
    assert_eq!(listed.len(), 1, "{listed:?}");
    listed.remove(0)
}

/// Installs acme's release, and makes acme revoke it for this reason.
fn revoked(reason: &str) -> Machine {
    let (machine, _) = installed();
    let digest = shown(&machine)["digest"].as_str().unwrap().to_owned();
    machine
        .toolward("publisher revoke acme --key one.pem -o list.json")
        .arg(format!("--bundle={digest}={reason}"))
        .ends(0);
    machine
        .toolward("trust update acme --revocations list.json")
        .ends(0);
    machine
}

/// Asserts that the next steps are printed.
#[track_caller]
fn tells_the_next_step(ended: &Ended, shown: &str) {
    for command in ["toolward update", "toolward remove"] {
        assert!(shown.contains(&format!("{command} {ID}")), "{ended}");
    }
}

/// Checks what each command reports about the installed bundle that is left out with `code`.
#[track_caller]
fn is_shown_as(machine: &Machine, code: &str) {
    let one = shown(machine);
    assert_eq!(one["state"], "refused", "{one}");
    assert_eq!(one["error"]["code"], code, "{one}");
    assert!(one["error"]["hint"].is_string(), "{one}");

    let list = machine.toolward("list").ends(0);
    assert!(list.stdout.contains("NOT LOADED"), "{list}");
    assert!(list.stdout.contains(&format!("({code})")), "{list}");
    tells_the_next_step(&list, &list.stdout);

    let call = machine.toolward("call text.stats --set text=one").ends(3);
    call.says(code);
    tells_the_next_step(&call, &call.stderr);
    let call = machine.toolward("call text.stats@1 --set text=one --json");
    let call = call.ends(3).json();
    assert_eq!(call["error"]["code"], code, "{call}");

    let search = machine.toolward("search words").ends(0);
    assert!(search.stdout.contains(code), "{search}");
    let search = machine.toolward("search words --json").ends(0).json();
    assert_eq!(search["refused"], code, "{search}");

    let verify = machine.toolward("verify --all").ends(3);
    assert!(verify.stdout.contains(&format!("[{code}]")), "{verify}");

    let doctor = machine.toolward("doctor --json").end();
    let checks = doctor.json()["checks"].as_array().unwrap().clone();
    let found = checks.iter().any(|check| {
        check["name"] == "installed"
            && check["state"] == "warning"
            && check["message"].as_str().unwrap().contains(code)
    });
    assert!(found, "{doctor}");

    let explain = machine.toolward("show text.stats --policy").ends(3);
    explain.says(code);
    let policies = machine.toolward("policy list").ends(0);
    assert!(policies.stdout.contains("REFUSED"), "{policies}");
    assert!(policies.stdout.contains(code), "{policies}");
    let policies = machine.toolward("policy list --json").ends(0).json();
    assert_eq!(policies["state"], "refused", "{policies}");
}

#[test]
fn a_revoked_bundle_is_shown_as_revoked_everywhere_with_its_publishers_reason() {
    let machine = revoked("leaks-what-it-reads");
    is_shown_as(&machine, "bundle-revoked");
    // The publisher's own reason.
    let says = |words: &str| {
        let ended = machine.toolward(words).end();
        let all = format!("{}{}", ended.stdout, ended.stderr);
        assert!(all.contains("leaks-what-it-reads"), "{ended}");
        ended
    };
    for words in ["list", "list --json", "verify --all", "doctor"] {
        says(words);
    }
    for words in [
        "call text.stats --set text=one",
        "verify b.toolbundle",
        "inspect b.toolbundle",
        "install b.toolbundle",
        "call text.stats --set text=one --bundle b.toolbundle",
    ] {
        let ended = says(words);
        assert_eq!(ended.code, Some(3), "{ended}");
        ended.says("bundle-revoked");
    }
}

#[test]
fn a_call_of_a_tool_that_is_left_out_is_recorded() {
    let machine = revoked("leaks");
    machine
        .toolward("call text.stats --set text=one")
        .ends(3)
        .says("bundle-revoked");
    let rows = machine.toolward("ledger list --json --code toolward:withdrawn");
    let rows = rows.ends(0).json_lines();
    assert_eq!(rows.len(), 1, "{rows:?}");
    let record = &rows[0]["record"];
    assert_eq!(record["kind"], "refused", "{record}");
    assert_eq!(
        record["body"]["outcome"]["class"], "policy_blocked",
        "{record}"
    );
    assert_eq!(record["body"]["call"].get("tool"), None, "{record}");
    machine.toolward("ledger verify").ends(0);
}

#[test]
fn a_server_says_at_its_start_which_bundle_it_leaves_out() {
    let machine = revoked("leaks");
    let mut raw = Raw::open(machine.toolward("serve").into_command(), json!({}));
    let stderr = raw.said();
    let said = stderr.lines().any(|line| {
        line.starts_with("warning: ") && line.contains(ID) && line.contains("(bundle-revoked)")
    });
    assert!(said, "{stderr}");
}

#[test]
fn a_bundle_of_a_publisher_that_is_trusted_no_more_is_shown_as_that() {
    let (machine, _) = installed();
    machine.toolward("trust remove acme").ends(0);
    // Some publisher must be configured, or the commands report only that none is trusted.
    machine.configure("# nobody else\n");
    is_shown_as(&machine, "unknown-publisher");
}

#[test]
fn a_bundle_that_became_too_old_is_shown_as_that() {
    let (machine, one) = trusting();
    let mut old = release(1);
    old.manifest.created = Timestamp::parse("2020-01-01T00:00:00Z").unwrap();
    ship(&machine, &old, &one, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    runs(&machine);
    machine.configure("[trust]\nmax_age_days = 90\n");
    is_shown_as(&machine, "too-old");
}

/// Returns the file of the only installed bundle.
fn object(machine: &Machine) -> PathBuf {
    let objects = machine.home().join(".local/share/toolward/store/objects");
    let mut files = fs::read_dir(objects).unwrap();
    files.next().unwrap().unwrap().path()
}

#[test]
fn a_bundle_whose_file_was_damaged_is_shown_as_that() {
    let (machine, _) = installed();
    let file = object(&machine);
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 2000;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    let code = shown(&machine)["error"]["code"].clone();
    assert!(
        ["digest-mismatch", "archive-header", "archive-format"].contains(&code.as_str().unwrap()),
        "{code}"
    );
    is_shown_as(&machine, code.as_str().unwrap());
    fs::remove_file(&file).unwrap();
    is_shown_as(&machine, "object-missing");
    // A bundle whose file is missing can be installed again.
    machine.toolward("install b.toolbundle").ends(0);
    assert_eq!(shown(&machine)["state"], "verified");
    runs(&machine);
}

#[test]
fn a_list_that_can_not_tell_whom_to_trust_says_so_and_lists() {
    let (machine, _) = installed();
    machine.configure("[[publisher]\n");
    let list = machine.toolward("list --json").ends(2);
    list.warns("not known");
    let lines: Vec<Value> = list
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["state"], "unknown", "{list}");
    assert_eq!(lines[1]["error"]["code"], "policy-syntax", "{list}");
    let list = machine.toolward("list").ends(2);
    assert!(list.stdout.contains(ID), "{list}");
}

#[test]
fn a_bundle_that_holds_is_listed_as_verified() {
    let (machine, _) = installed();
    let one = shown(&machine);
    assert_eq!(
        (&one["state"], &one["error"]),
        (&"verified".into(), &Value::Null)
    );
    let list = machine.toolward("list").ends(0);
    assert!(!list.stdout.contains("NOT LOADED"), "{list}");
}

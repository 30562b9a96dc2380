//! Bundles that are installed, removed or no longer trusted while tools are served over MCP.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use toolward_signing::timestamp::Timestamp;

use super::{GRANT, ID, add, document, installed, key, release, ship, trusting};
use crate::mcp::raw::Raw;
use crate::support::{Draft, Machine, Run, tree};

/// How soon a server applies a change. It checks once a second.
const SOON: Duration = Duration::from_secs(30);

fn serve(machine: &Machine) -> Raw {
    Raw::open(machine.toolward("serve").into_command(), json!({}))
}

fn call(raw: &mut Raw, id: u32) -> Value {
    raw.call(id, "text.stats", &json!({"text": "one"}));
    raw.answer(id)
}

fn works(answer: &Value) -> bool {
    answer["result"]["structuredContent"]["words"] == json!(1)
}

/// Calls until the result is the wanted one.
#[track_caller]
fn until(raw: &mut Raw, wanted: impl Fn(&Value) -> bool) {
    let end = Instant::now() + SOON;
    for id in 1000.. {
        let answer = call(raw, id);
        if wanted(&answer) {
            return;
        }
        assert!(Instant::now() < end, "{answer}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn tools(raw: &mut Raw, id: &str) -> usize {
    raw.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
    raw.answer(id)["result"]["tools"].as_array().unwrap().len()
}

#[test]
fn a_bundle_that_is_removed_is_served_no_more_and_clients_are_told() {
    let (machine, one) = installed();
    let mut raw = serve(&machine);
    assert!(works(&call(&mut raw, 1)));
    assert_eq!(tools(&mut raw, "before"), 1);

    machine.toolward(&format!("remove {ID}")).ends(0);
    until(&mut raw, |answer| answer["error"]["code"] == json!(-32602));
    assert_eq!(tools(&mut raw, "without"), 0);
    let told = |raw: &mut Raw| {
        let rest = raw.rest();
        let changed = rest
            .iter()
            .filter(|message| message["method"] == "notifications/tools/list_changed");
        changed.count()
    };
    assert_eq!(told(&mut raw), 1);

    ship(&machine, &release(2), &one, "c.toolbundle");
    machine.toolward("install c.toolbundle").ends(0);
    until(&mut raw, works);
    assert_eq!(tools(&mut raw, "again"), 1);
    assert_eq!(told(&mut raw), 1);
}

#[test]
fn who_is_trusted_no_more_is_served_no_more() {
    let (machine, _) = installed();
    let mut raw = serve(&machine);
    assert!(works(&call(&mut raw, 1)));
    machine.toolward("trust remove acme").ends(0);
    until(&mut raw, |answer| !works(answer));
    assert_eq!(tools(&mut raw, "after"), 0);
}

#[test]
fn a_client_that_says_ever_again_that_it_is_ready_is_told_once() {
    let (machine, _) = installed();
    let mut raw = serve(&machine);
    assert!(works(&call(&mut raw, 1)));
    for _ in 0..100 {
        raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }
    machine.toolward(&format!("remove {ID}")).ends(0);
    until(&mut raw, |answer| !works(answer));
    let rest = raw.rest();
    let changed = rest
        .iter()
        .filter(|message| message["method"] == "notifications/tools/list_changed");
    assert_eq!(changed.count(), 1);
}

#[test]
fn what_changes_is_noticed_though_nobody_reads_standard_error() {
    let (machine, _) = installed();
    let mut raw = Raw::open_deaf(machine.toolward("serve").into_command());
    assert!(works(&call(&mut raw, 1)));
    for _ in 0..2 {
        machine.toolward(&format!("remove {ID}")).ends(0);
        until(&mut raw, |answer| !works(answer));
        // Exactly the same bundle may return.
        machine.toolward("install b.toolbundle").ends(0);
        until(&mut raw, works);
    }
    let mut kill = machine.program("kill");
    kill.args(["-TERM", &raw.process().to_string()]);
    Run::new(kill).ends(0);
    let ended = raw.ended(SOON).expect("it ends, its words unread");
    assert_eq!(ended.code(), Some(0), "{ended}");
}

#[test]
fn a_server_ends_at_once_though_it_waits_for_a_lock_that_somebody_holds() {
    let (machine, _) = installed();
    let mut raw = serve(&machine);
    assert!(works(&call(&mut raw, 1)));
    let lock = machine.home().join(".local/share/toolward/store/lock");
    let lock = fs::File::open(lock).unwrap();
    lock.lock().unwrap();
    let trust = machine.home().join(".config/toolward/trust/acme");
    fs::write(trust.join("note"), "a change").unwrap();
    // The server checks, notices that, and waits before it verifies everything again.
    std::thread::sleep(Duration::from_secs(3));
    assert!(works(&call(&mut raw, 2)));
    raw.hang_up();
    // A process that waited for the lock would wait for a minute.
    let ended = raw.ended(SOON).expect("it ends with its client");
    assert_eq!(ended.code(), Some(0), "{ended}");
    drop(lock);
}

/// A server with the bundle `b.toolbundle`, which works.
fn serve_named(machine: &Machine, flags: &str) -> Raw {
    let words = format!("serve --bundle b.toolbundle {flags}");
    let mut raw = Raw::open(machine.toolward(&words).into_command(), json!({}));
    assert!(works(&call(&mut raw, 1)));
    raw
}

#[test]
fn a_named_bundle_is_served_as_long_as_its_publisher_may_publish_it() {
    let (machine, one) = trusting();
    ship(&machine, &release(1), &one, "b.toolbundle");
    let mut raw = serve_named(&machine, "");
    let grant = machine
        .home()
        .join(".config/toolward/trust/acme/grant.toml");
    let wide = fs::read_to_string(&grant).unwrap();
    let narrow = wide.replace("\"text-stats\"", "\"text-other\"");
    assert_ne!(wide, narrow);
    fs::write(&grant, narrow).unwrap();
    until(&mut raw, |answer| !works(answer));
    assert_eq!(tools(&mut raw, "narrow"), 0);
    fs::write(&grant, wide).unwrap();
    until(&mut raw, works);
    drop(raw.rest());
    let said = raw.said();
    assert!(said.contains(&format!("{ID} is not served")), "{said}");
    assert!(said.contains("(prefix-not-granted)"), "{said}");
}

#[test]
fn a_named_bundle_that_expires_while_it_is_served_is_served_no_more() {
    let (machine, one) = trusting();
    let mut draft = release(1);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let end = since.unwrap().as_secs().cast_signed() + 12;
    draft.manifest.expires = Some(Timestamp::from_unix(end).unwrap());
    ship(&machine, &draft, &one, "b.toolbundle");
    let mut raw = serve_named(&machine, "--trust-key one.pub.pem");
    until(&mut raw, |answer| !works(answer));
    let said = raw.said();
    assert!(said.contains("(expired)"), "{said}");
}

#[test]
fn publishers_that_are_known_only_while_tools_are_served_count_too() {
    let machine = Machine::new();
    let one = key(&machine, "one");
    let fingerprint = document(&machine, "acme", "one");
    let digest = ship(&machine, &release(1), &one, "b.toolbundle");
    let revoke =
        format!("publisher revoke acme --bundle {digest}=leaks --key one.pem -o list.json");
    machine.toolward(&revoke).ends(0);
    let mut raw = serve_named(&machine, "--trust-key one.pub.pem");
    // Once the owner of the key is trusted, the owner's revocations apply again.
    add(&machine, "acme", GRANT, &fingerprint).ends(0);
    let update = "trust update acme --revocations list.json";
    machine.toolward(update).ends(0);
    until(&mut raw, |answer| !works(answer));
    let said = raw.said();
    assert!(said.contains("(bundle-revoked)"), "{said}");
}

/// Returns the number of files in the cache of compiled drivers.
fn cached(machine: &Machine) -> usize {
    let all = tree(&machine.cache());
    all.keys().filter(|name| !name.ends_with('/')).count()
}

#[test]
fn what_is_installed_while_tools_are_served_is_compiled_before_it_is_called() {
    let machine = Machine::new().with_own_cache();
    let one = key(&machine, "one");
    let fingerprint = document(&machine, "acme", "one");
    let grant = format!("{GRANT} --prefix json --prefix json-query");
    add(&machine, "acme", &grant, &fingerprint).ends(0);
    ship(&machine, &release(1), &one, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    let mut raw = serve(&machine);
    assert!(works(&call(&mut raw, 1)));

    let mut draft = Draft::of("json-query");
    draft.manifest.publisher = "acme".to_owned();
    ship(&machine, &draft, &one, "c.toolbundle");
    let before = cached(&machine);
    machine.toolward("install c.toolbundle").ends(0);
    let end = Instant::now() + SOON;
    while cached(&machine) == before {
        assert!(Instant::now() < end, "{before} files in the cache");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(tools(&mut raw, "both"), 2);
}

#[test]
fn what_libraries_report_is_shown_as_far_as_the_operator_says() {
    let (machine, _) = installed();
    let said = |variable: &str, log: &str| {
        let serve = machine.toolward("serve").env(variable, log);
        let mut raw = Raw::open(serve.into_command(), json!({}));
        assert!(works(&call(&mut raw, 1)));
        raw.call("unknown", "no.such.tool", &json!({}));
        assert!(raw.answer("unknown")["error"].is_object());
        raw.said()
    };
    let ours = "TOOLWARD_LOG";
    let usual = said(ours, "");
    // The recorder's checkpoints are shown in any case.
    let (signed, usual): (Vec<_>, Vec<_>) = usual
        .lines()
        .partition(|line| line.contains("the ledger signed its "));
    assert!(!signed.is_empty());
    let usual = usual.join("\n");
    assert!(!usual.contains("no.such.tool"), "{usual}");
    assert!(
        !usual.contains("DEBUG") && !usual.contains("INFO"),
        "{usual}"
    );
    let more = said(ours, "error,rmcp=debug");
    assert!(more.contains("DEBUG") && more.contains("rmcp"), "{more}");
    let all = said(ours, "debug");
    assert!(all.contains("no.such.tool"), "{all}");
    // The variable may be meant for other programs, so no arguments of calls are shown.
    let others = said("RUST_LOG", "debug");
    assert!(!others.contains("no.such.tool"), "{others}");
    let named = said("RUST_LOG", "error,rmcp=debug");
    assert!(named.contains("no.such.tool"), "{named}");
    let wrong = said(ours, "toolward=loudly");
    assert!(wrong.contains("TOOLWARD_LOG is not taken"), "{wrong}");
}

//! A trusted publisher gets another prefix, after a person has seen it and typed a yes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{TOOL_MD, installed, listed, release, release_of, ship, trusting};
use crate::mcp::names;
use crate::mcp::raw::Raw;
use crate::support::{Machine, Session};

const UPDATE: &str = "trust update acme --prefix kv --prefix kv-counter";
/// How soon a server applies a change. It checks once a second.
const SOON: Duration = Duration::from_secs(30);

fn prefixes(machine: &Machine) -> String {
    let shown = machine.toolward("trust show acme --json").ends(0);
    shown.json_lines()[0]["prefixes"].to_string()
}

/// Runs the command at a terminal, and types these keys.
fn typed(machine: &Machine, keys: &str) -> (Option<i32>, String) {
    update(machine, UPDATE, keys)
}

fn update(machine: &Machine, words: &str, keys: &str) -> (Option<i32>, String) {
    let mut session = Session::start(machine.toolward(words).into_command(), 120, "y\r");
    session.sees("Trust it for the added ids, too? [y/N] ");
    session.types(keys);
    let left = session.leaves();
    (left.code, left.screen)
}

#[test]
fn a_second_prefix_is_added_after_a_typed_yes_and_each_refusal_leads_there() {
    let (machine, one) = trusting();
    let mut draft = release_of("kv-counter", 1);
    draft.manifest.publisher = "acme".to_owned();
    ship(&machine, &draft, &one, "second.toolbundle");
    let refused = machine.toolward("install second.toolbundle").ends(3);
    refused.says("prefix-not-granted");
    assert!(
        refused
            .stderr
            .contains("toolward trust update acme --prefix PREFIX"),
        "{refused}"
    );
    // The command that trusted the publisher first suggests the same next step.
    let again = machine
        .toolward("trust add acme.publisher.json --prefix kv")
        .ends(2);
    again.says("publisher-known");
    assert!(
        again.stderr.contains("toolward trust update acme --prefix"),
        "{again}"
    );

    let before = prefixes(&machine);
    machine.toolward(UPDATE).ends(4).says("change-unconfirmed");
    let (code, _) = typed(&machine, "n\r");
    assert_eq!(code, Some(4));
    assert_eq!(prefixes(&machine), before);
    let (code, screen) = typed(&machine, "y\r");
    assert_eq!(code, Some(0), "{screen}");
    for part in [
        "publisher    acme",
        "fingerprint  ",
        "added        kv, kv-counter",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert_ne!(prefixes(&machine), before);
    assert!(prefixes(&machine).contains("\"kv\""));
    machine.toolward("install second.toolbundle").ends(0);
    assert_eq!(listed(&machine).len(), 1);
}

/// Waits until the names of the listed tools are these, and asserts that clients were notified
/// once.
#[track_caller]
fn names_become(raw: &mut Raw, wanted: &[&str]) {
    let end = Instant::now() + SOON;
    loop {
        let tools = names::listed(raw);
        let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
        if names == wanted {
            break;
        }
        assert!(Instant::now() < end, "{names:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let rest = raw.rest();
    let changed = rest
        .iter()
        .filter(|message| message["method"] == "notifications/tools/list_changed");
    assert_eq!(changed.count(), 1);
}

#[test]
fn a_running_server_serves_what_was_refused_for_a_prefix_that_is_added() {
    let (machine, _) = installed();
    let mut raw = Raw::open(machine.toolward("serve").into_command(), json!({}));
    let grant = machine
        .home()
        .join(".config/toolward/trust/acme/grant.toml");
    let wide = std::fs::read_to_string(&grant).unwrap();
    let narrow = wide.replace("\"text-stats\"", "\"text-other\"");
    assert_ne!(wide, narrow);
    std::fs::write(&grant, narrow).unwrap();
    names_become(&mut raw, &[]);
    let (code, screen) = update(&machine, "trust update acme --prefix text-stats", "y\r");
    assert_eq!(code, Some(0), "{screen}");
    names_become(&mut raw, &["text_stats"]);
}

#[test]
fn a_running_server_shows_a_tool_by_the_name_that_an_added_prefix_allows() {
    let (machine, one) = trusting();
    let named = |text: &str| {
        text.replace(
            "approval: auto\n",
            "approval: auto\nmetadata: { mcp: { name: kv_words } }\n",
        )
    };
    ship(
        &machine,
        &release(1).change(TOOL_MD, named),
        &one,
        "b.toolbundle",
    );
    machine.toolward("install b.toolbundle").ends(0);
    let mut raw = Raw::open(machine.toolward("serve").into_command(), json!({}));
    let tools = names::listed(&mut raw);
    assert_eq!(tools[0]["name"], "text_stats");
    assert_eq!(typed(&machine, "y\r").0, Some(0));
    names_become(&mut raw, &["kv_words"]);
    raw.call(1, "kv_words", &json!({"text": "one"}));
    assert_eq!(raw.answer(1)["result"]["structuredContent"]["words"], 1);
}

#[test]
fn what_is_under_work_leaves_the_ids_of_a_prefix_that_is_added_to_its_publisher() {
    let (machine, one) = trusting();
    ship(&machine, &release(1), &one, "b.toolbundle");
    crate::hostile::add(&machine, "work");
    let serve = "serve --dev work --bundle b.toolbundle";
    let mut raw = Raw::open(machine.toolward(serve).into_command(), json!({}));
    assert_eq!(names::listed(&mut raw).len(), 2);
    let (code, screen) = update(&machine, "trust update acme --prefix hostile", "y\r");
    assert_eq!(code, Some(0), "{screen}");
    names_become(&mut raw, &["text_stats"]);
}

//! Action libraries: bundles of one publisher whose actions are implemented by tools of another.
//! The demands of a library are part of what a person accepted for the tool.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolward_signing::key::SigningKey;

use super::{GRANT, ID, TOOL_MD, add, document, is_not_loaded, key, listed, release, runs, ship};
use crate::mcp::raw::Raw;
use crate::support::bundle::TOOLS_JSON;
use crate::support::{Draft, Machine};

const LIBRARY: &str = "verbs.standard";
const REGISTRY: &str = "\"@verbs/standard/words-count\"";
const BARE: &str = "words:count";

/// A machine that trusts acme, and trusts verbs for `words:…` if `given` states so. Also returns
/// the keys of both.
fn trusting(given: &str) -> (Machine, SigningKey, SigningKey) {
    let machine = Machine::new();
    let (acme, verbs) = (key(&machine, "one"), key(&machine, "two"));
    let fingerprint = document(&machine, "acme", "one");
    add(&machine, "acme", GRANT, &fingerprint).ends(0);
    let fingerprint = document(&machine, "verbs", "two");
    let grant = format!("--prefix verbs {given}");
    add(&machine, "verbs", &grant, &fingerprint).ends(0);
    (machine, acme, verbs)
}

/// A release of the library, whose only action has these lines.
fn library(sequence: u64, lines: &str) -> Draft {
    let mut draft = release(sequence);
    draft.manifest.publisher = "verbs".to_owned();
    draft.manifest.id = LIBRARY.to_owned();
    draft.files.retain(|name, _| name == TOOLS_JSON);
    let version = draft.manifest.artifacts.tools.version;
    let action = format!(
        "---\nschema: action/v1\nid: words:count\ndescription: Counts the words of a text.\n{lines}---\n"
    );
    draft
        .put(
            TOOLS_JSON,
            format!("{{\"version\": {version}, \"tools\": []}}\n"),
        )
        .put("actions/words-count/ACTION.md", action)
}

/// A release of acme's tool, which implements the action and states no approval or risk.
fn tool(sequence: u64, reference: &str) -> Draft {
    release(sequence).change(TOOL_MD, |text| {
        text.replace(
            "approval: auto\nrisk_level: 0\n",
            &format!("implements: {reference}\n"),
        )
    })
}

/// A machine with the library and the tool installed, on which the tool runs.
fn installed(reference: &str) -> (Machine, SigningKey) {
    let (machine, acme, verbs) = trusting("--actions words");
    ship(
        &machine,
        &library(1, "risk_level: 1\n"),
        &verbs,
        "library.toolbundle",
    );
    machine.toolward("install library.toolbundle").ends(0);
    ship(&machine, &tool(1, reference), &acme, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    runs(&machine);
    (machine, verbs)
}

#[test]
fn a_tool_takes_its_action_from_an_installed_library_and_is_blocked_without_it() {
    for reference in [REGISTRY, BARE] {
        let (machine, _) = installed(reference);
        machine.toolward("verify --all").ends(0);
        let shown = machine
            .toolward("trust show verbs --json")
            .ends(0)
            .json_lines();
        assert_eq!(shown[0]["actions"], json!(["words"]));
        machine.toolward(&format!("remove {LIBRARY}")).ends(0);
        is_not_loaded(&machine, "action-unresolved");
        // Reinstalling the library restores the tool in its accepted form.
        machine.toolward("install library.toolbundle").ends(0);
        runs(&machine);
    }
}

#[test]
fn a_tool_without_its_library_is_not_installed() {
    let (machine, acme, _) = trusting("--actions words");
    ship(&machine, &tool(1, REGISTRY), &acme, "b.toolbundle");
    machine
        .toolward("install b.toolbundle")
        .ends(3)
        .says("action-unresolved");
    assert!(listed(&machine).is_empty());
}

#[test]
fn a_library_that_trust_does_not_give_the_action_to_is_refused() {
    let (machine, acme, verbs) = trusting("");
    ship(&machine, &library(1, ""), &verbs, "library.toolbundle");
    machine
        .toolward("install library.toolbundle")
        .ends(3)
        .says("prefix-not-granted");
    for reference in [REGISTRY, BARE] {
        ship(&machine, &tool(1, reference), &acme, "b.toolbundle");
        machine
            .toolward("install b.toolbundle")
            .ends(3)
            .says("action-unresolved");
        let named =
            "call text.stats --set text=one --bundle b.toolbundle --bundle library.toolbundle";
        let ended = machine.toolward(named).ends(3);
        let file = "b.toolbundle/tools/text.stats/TOOL.md:";
        assert!(ended.stderr.contains(file), "{ended}");
    }
}

#[test]
fn a_library_that_is_named_beside_the_tool_will_do() {
    let (machine, acme, verbs) = trusting("--actions words");
    ship(&machine, &library(1, ""), &verbs, "library.toolbundle");
    ship(&machine, &tool(1, BARE), &acme, "b.toolbundle");
    let call = "call text.stats --set text=one --bundle b.toolbundle";
    machine.toolward(call).ends(3).says("action-unresolved");
    machine
        .toolward(&format!("{call} --bundle library.toolbundle"))
        .ends(0);
}

#[test]
fn a_release_of_a_library_that_changes_a_tool_holds_it_until_that_is_accepted() {
    // The first change is stricter, and the second is looser.
    for lines in [
        "risk_level: 1\nfires_events: [counted]\n",
        "risk_level: 0\n",
    ] {
        let (machine, verbs) = installed(BARE);
        ship(&machine, &library(2, lines), &verbs, "library.toolbundle");
        let held = machine
            .toolward(&format!("update {LIBRARY} --json"))
            .ends(4)
            .json();
        let surface = held["surface"].as_str().unwrap();
        // The library's release waits as well, so the tool still runs.
        runs(&machine);
        let accept = format!("update {LIBRARY} --accept {surface}");
        let accepted = machine.toolward(&accept).ends(0);
        accepted.warns(&format!("{ID} is not loaded until"));
        is_not_loaded(&machine, "actions-changed");
        is_held(&machine);
        let verify = machine.toolward("verify --all").ends(3);
        assert!(verify.stdout.contains("[actions-changed]"), "{verify}");

        let held = machine
            .toolward(&format!("update {ID} --json"))
            .ends(4)
            .json();
        let changes = held["changes"].as_array().unwrap();
        assert!(
            changes.iter().all(|change| change["kind"] == "tool"),
            "{held}"
        );
        let surface = held["surface"].as_str().unwrap();
        machine
            .toolward(&format!("update {ID} --accept {surface}"))
            .ends(0);
        runs(&machine);
        machine.toolward("verify --all").ends(0);
    }
}

/// Asserts that a client that calls the tool learns that it is held.
#[track_caller]
fn is_held(machine: &Machine) {
    let mut raw = Raw::open(machine.toolward("serve").into_command(), json!({}));
    assert!(raw.instructions().contains("One more tool is held"));
    raw.call(1, "text_stats", &json!({"text": "one"}));
    let answer = raw.answer(1);
    let error = &answer["result"]["_meta"]["toolward/error"];
    assert_eq!(error["code"], "toolward:held", "{answer}");
}

#[test]
fn a_release_of_a_library_that_changes_no_tool_holds_none() {
    let (machine, verbs) = installed(REGISTRY);
    let reworded = library(2, "risk_level: 1\n").change("actions/words-count/ACTION.md", |text| {
        text.replace("Counts the words of a text.", "Counts words.")
    });
    ship(&machine, &reworded, &verbs, "library.toolbundle");
    let held = machine
        .toolward(&format!("update {LIBRARY} --json"))
        .ends(4)
        .json();
    let surface = held["surface"].as_str().unwrap();
    machine
        .toolward(&format!("update {LIBRARY} --accept {surface}"))
        .ends(0);
    runs(&machine);
}

#[test]
fn a_release_of_a_library_below_which_a_tool_goes_blocks_it() {
    let (machine, acme, verbs) = trusting("--actions words");
    ship(&machine, &library(1, ""), &verbs, "library.toolbundle");
    machine.toolward("install library.toolbundle").ends(0);
    // The tool states a risk itself.
    let own = tool(1, BARE).change(TOOL_MD, |text| {
        text.replace("implements:", "risk_level: 0\nimplements:")
    });
    ship(&machine, &own, &acme, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    ship(
        &machine,
        &library(2, "risk_level: 1\n"),
        &verbs,
        "library.toolbundle",
    );
    let held = machine
        .toolward(&format!("update {LIBRARY} --json"))
        .ends(4)
        .json();
    let surface = held["surface"].as_str().unwrap();
    machine
        .toolward(&format!("update {LIBRARY} --accept {surface}"))
        .ends(0);
    is_not_loaded(&machine, "action-widened");
}

#[test]
fn a_revoked_library_blocks_the_tools_that_refer_to_it() {
    let (machine, _) = installed(BARE);
    let listed = listed(&machine);
    let library = listed.iter().find(|one| one["id"] == LIBRARY).unwrap();
    let digest = library["digest"].as_str().unwrap();
    machine.configure(&format!("[trust.deny]\nbundles = [\"{digest}\"]\n"));
    is_not_loaded(&machine, "action-unresolved");
}

#[test]
fn a_rule_about_an_action_grants_to_the_tools_that_implement_it() {
    let (machine, acme, verbs) = trusting("--actions words");
    ship(
        &machine,
        &library(1, "requires: { database: [words] }\n"),
        &verbs,
        "library.toolbundle",
    );
    machine.toolward("install library.toolbundle").ends(0);
    ship(&machine, &tool(1, BARE), &acme, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    // The tool requests what the action requires.
    let call = "call text.stats --set text=one";
    machine.toolward(call).ends(4).says("unauthorised");
    let rule = |lines: &str| {
        machine.configure(&format!(
            "[[grant]]\npublisher = \"acme\"\naction = \"words:count\"\n{lines}requires = [\"database:words\"]\n"
        ));
    };
    rule("");
    assert_eq!(
        machine.toolward(call).end().code,
        Some(4),
        "the action is not acme's"
    );
    let list = machine.toolward("policy list").ends(0);
    assert!(list.stdout.contains("covers no tool"), "{list}");
    rule("library = \"verbs\"\n");
    runs(&machine);
    let list = machine.toolward("policy list").ends(0);
    assert!(list.stdout.contains("covers text.stats@1"), "{list}");
    let listed = machine.toolward("policy list --json").ends(0).json_lines();
    let rule = listed
        .iter()
        .find(|row| row["action"] == "words:count")
        .unwrap();
    assert_eq!(rule["tools"], json!(["text.stats@1"]), "{rule}");
    assert_eq!(rule["library"], "verbs");
}

#[test]
fn a_release_that_comes_to_implement_the_action_of_a_rule_is_held() {
    let (machine, acme, verbs) = trusting("--actions words");
    ship(&machine, &library(1, ""), &verbs, "library.toolbundle");
    machine.toolward("install library.toolbundle").ends(0);
    let inline = "{ inline: { id: \"words:count\" } }";
    ship(&machine, &tool(1, inline), &acme, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    machine.configure(
        "[[grant]]\npublisher = \"acme\"\naction = \"words:count\"\nlibrary = \"verbs\"\n\
         requires = [\"network:*\"]\n",
    );
    let covers = |what: &str| {
        let list = machine.toolward("policy list").ends(0);
        assert!(list.stdout.contains(&format!("covers {what}")), "{list}");
    };
    covers("no tool");
    ship(&machine, &tool(2, BARE), &acme, "b.toolbundle");
    let held = machine
        .toolward(&format!("update {ID} --json"))
        .ends(4)
        .json();
    covers("no tool");
    let surface = held["surface"].as_str().unwrap();
    machine
        .toolward(&format!("update {ID} --accept {surface}"))
        .ends(0);
    covers("text.stats@1");
}

#[test]
fn a_server_takes_a_tool_away_with_its_library_and_gives_it_back_with_it() {
    let (machine, _) = installed(REGISTRY);
    let mut raw = Raw::open(machine.toolward("serve").into_command(), json!({}));
    let mut id = 0;
    let mut until = |wanted: fn(&Value) -> bool| {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            id += 1;
            raw.call(id, "text.stats", &json!({"text": "one"}));
            let answer = raw.answer(id);
            if wanted(&answer) {
                break;
            }
            assert!(Instant::now() < end, "{answer}");
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    let works = |answer: &Value| answer["result"]["structuredContent"]["words"] == json!(1);
    until(works);
    machine.toolward(&format!("remove {LIBRARY}")).ends(0);
    let withdrawn = |answer: &Value| {
        answer["result"]["_meta"]["toolward/error"]["code"] == "toolward:withdrawn"
    };
    until(withdrawn);
    machine.toolward("install library.toolbundle").ends(0);
    until(works);
}

#[test]
fn actions_are_given_to_a_trusted_publisher_and_taken_from_it() {
    let (machine, verbs) = installed(BARE);
    let actions = |machine: &Machine| {
        let shown = machine.toolward("trust show verbs --json").ends(0);
        shown.json_lines()[0]["actions"].clone()
    };
    let taken = machine.toolward("trust update verbs --no-actions").ends(0);
    taken.warns(&format!("{LIBRARY} is no longer loaded"));
    taken.warns(&format!("{ID} is no longer loaded"));
    assert_eq!(actions(&machine), json!([]));
    is_not_loaded(&machine, "action-unresolved");
    // A prefix that is not valid changes nothing.
    machine
        .toolward("trust update verbs --actions Words!")
        .ends(2);
    assert_eq!(actions(&machine), json!([]));
    machine
        .toolward("trust update verbs --actions words --actions more")
        .ends(0);
    assert_eq!(actions(&machine), json!(["words", "more"]));
    // The tool is in its accepted form, so nothing is held.
    runs(&machine);
    // Without these prefixes no release of the library is accepted.
    machine.toolward("trust update verbs --no-actions").ends(0);
    ship(
        &machine,
        &library(2, "risk_level: 3\n"),
        &verbs,
        "library.toolbundle",
    );
    machine
        .toolward("install library.toolbundle")
        .ends(3)
        .says("prefix-not-granted");
    machine
        .toolward("trust update nobody --actions words")
        .ends(2);
}

#[test]
fn a_bundle_that_is_named_or_under_work_takes_actions_from_what_is_installed() {
    let (machine, acme, verbs) = trusting("--actions words");
    ship(
        &machine,
        &library(1, "risk_level: 1\n"),
        &verbs,
        "library.toolbundle",
    );
    ship(&machine, &tool(1, REGISTRY), &acme, "b.toolbundle");
    // A directory under work with the same contract.
    let draft = tool(1, REGISTRY);
    for (name, bytes) in &draft.files {
        machine.write(&format!("work/{name}"), bytes);
    }
    std::fs::remove_file(machine.path("work").join(TOOLS_JSON)).unwrap();
    machine.write(
        "work/bundle.toml",
        "id = \"text.stats-bundle\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"acme\"\n",
    );
    let commands = [
        "verify b.toolbundle",
        "inspect b.toolbundle",
        "inspect work",
        "call text.stats --set text=one --dev work",
        "test --dev work",
    ];
    for command in commands {
        let ended = machine.toolward(command).end();
        assert_ne!(ended.code, Some(0), "{ended}");
        assert!(ended.stderr.contains("action-unresolved"), "{ended}");
        assert!(ended.stderr.contains("install the library"), "{ended}");
    }
    machine.toolward("install library.toolbundle").ends(0);
    for command in commands {
        machine.toolward(command).ends(0);
    }
    // The demand comes from the library alone, and only if the library verifies.
    machine.toolward("trust update verbs --no-actions").ends(0);
    for command in commands {
        let ended = machine.toolward(command).end();
        assert!(ended.stderr.contains("action-unresolved"), "{ended}");
    }
}

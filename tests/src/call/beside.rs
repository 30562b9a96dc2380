//! `--dev` together with `--bundle`: a directory under work can't use the ids of the signed bundles
//! next to it.

use serde_json::json;

use crate::mcp::raw::Raw;
use crate::support::bundle::new_key;
use crate::support::{Draft, Machine, copy, root};

const BESIDE: &str = "--dev work --bundle text-stats.toolbundle --trust-key example.pub.pem";

/// The signed `text.stats`, and the same tool under work, in whose files `ids` are replaced.
fn machine(ids: &[(&str, &str)]) -> Machine {
    let machine = Machine::with_example("text-stats");
    let from = root().join("examples/text-stats");
    for part in ["bundle.toml", "tools", "drivers"] {
        copy(&from.join(part), &machine.path(&format!("work/{part}")));
    }
    let mut files = Vec::new();
    for folder in ["work/tools", "work/drivers"] {
        let entry = std::fs::read_dir(machine.path(folder)).unwrap().next();
        let name = entry.unwrap().unwrap().file_name();
        let name = name.to_str().unwrap().to_owned();
        files.push(match folder {
            "work/tools" => format!("{folder}/{name}/TOOL.md"),
            _ => format!("{folder}/{name}/DRIVER.md"),
        });
    }
    files.push("work/bundle.toml".to_owned());
    for file in files {
        let text = machine.text(&file);
        let mut text = text.replace("default_implementation: text-stats\n", "");
        for (from, to) in ids {
            text = text.replace(from, to);
        }
        machine.write(&file, text);
    }
    machine
}

/// Replacements that give the bundle under work other ids than the signed bundle has.
const OTHERS: &[(&str, &str)] = &[
    ("text.stats-bundle", "mine.bundle"),
    ("text.stats", "mine.stats"),
    ("id: text-stats", "id: mine-driver"),
];

/// The signed `text.stats`, and `hostile.run` under work.
fn two() -> Machine {
    let machine = Machine::with_example("text-stats");
    crate::hostile::add(&machine, "work");
    machine
}

#[test]
fn the_tools_of_both_run_each_by_its_publisher() {
    let machine = two();
    for (tool, set, publisher) in [
        ("hostile.run", "do=echo", "dev:"),
        ("text.stats", "text=one two", "key:"),
    ] {
        let words = format!("call {tool} {BESIDE} --json --set");
        let envelope = machine.toolward(&words).arg(set).ends(0).json();
        let found = envelope["meta"]["publisher"].as_str().unwrap();
        assert!(found.starts_with(publisher), "{tool}: {envelope}");
    }
}

#[test]
fn an_id_of_the_signed_bundle_is_refused_whatever_brings_it() {
    for left in 0..OTHERS.len() {
        let mut ids = OTHERS.to_vec();
        ids.remove(left);
        let ids: Vec<(&str, &str)> = match left {
            // The bundle's id contains the id that the next replacement changes, so it is hidden
            // first.
            0 => vec![
                ("text.stats-bundle", "KEPT"),
                ("text.stats", "mine.stats"),
                ("KEPT", "text.stats-bundle"),
                ("id: text-stats", "id: mine-driver"),
            ],
            _ => ids,
        };
        let machine = machine(&ids);
        let words = format!("call text.stats {BESIDE} --set");
        let ended = machine.toolward(&words).arg("text=one").ends(3);
        ended.says("dev-clash");
        assert_eq!(ended.stdout, "", "{ended}");
    }
}

#[test]
fn an_id_inside_the_prefix_of_the_bundles_publisher_is_refused() {
    let machine = machine(&[
        ("text.stats-bundle", "mine.bundle"),
        ("text.stats", "text.mine"),
        ("id: text-stats", "id: mine-driver"),
    ]);
    let key = new_key(&machine.work(), "acme");
    let mut draft = Draft::of("text-stats");
    draft.manifest.publisher = "acme".to_owned();
    draft
        .sign(&key)
        .write_archive(&machine.path("acme.toolbundle"));
    let trusted = |prefixes: &str| {
        let key = machine.text("acme.pub.pem");
        machine.configure(&format!(
            "[[publisher]]\nname = \"acme\"\nkeys = [\"\"\"{key}\"\"\"]\nprefixes = {prefixes}\n"
        ));
    };
    let words = "call text.mine --dev work --bundle acme.toolbundle --set";
    trusted("[\"text\", \"text-stats\"]");
    let ended = machine.toolward(words).arg("text=one").ends(3);
    ended.says("dev-clash");
    assert!(ended.stderr.contains("inside the prefix text"), "{ended}");
    // The driver knows only the tool's original id, so the call itself fails.
    trusted("[\"text.stats\", \"text.stats-bundle\", \"text-stats\"]");
    let ended = machine.toolward(words).arg("text=one").ends(1);
    assert!(ended.stderr.contains("error[not_found]"), "{ended}");
}

#[test]
fn a_server_lists_both_and_leaves_out_what_comes_to_clash() {
    let machine = two();
    let serve = machine.toolward(&format!("serve {BESIDE}"));
    let mut raw = Raw::open(serve.into_command(), json!({}));
    let run = json!({ "do": "echo", "value": 1 });
    raw.call(1, "hostile_run", &run);
    let answer = raw.answer(1);
    assert_eq!(
        answer["result"]["structuredContent"]["value"],
        json!(1),
        "{answer}"
    );
    let file = "work/bundle.toml";
    let changed = machine.text(file);
    let id = changed
        .lines()
        .find(|line| line.starts_with("id = "))
        .unwrap();
    machine.write(file, changed.replace(id, "id = \"text.stats-bundle\""));
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    for id in 10.. {
        raw.call(id, "hostile_run", &run);
        let answer = raw.answer(id);
        if answer["result"]["structuredContent"]["value"] != json!(1) {
            break;
        }
        assert!(std::time::Instant::now() < end, "{answer}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    raw.call(9000, "text_stats", &json!({ "text": "one" }));
    let answer = raw.answer(9000);
    let words = &answer["result"]["structuredContent"]["words"];
    assert_eq!(*words, json!(1), "{answer}");
}

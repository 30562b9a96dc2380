//! `--dev`: an unsigned bundle under work, which is never treated as a signed one.

use serde_json::json;

use crate::support::Machine;

fn machine() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "hostile");
    machine
}

const CALL: &str = "call hostile.run --dev hostile";

#[test]
fn a_bundle_under_work_runs_and_is_marked_as_such() {
    let machine = machine();
    let input = json!({ "do": "echo", "value": [1, "two", null] }).to_string();
    let ended = machine
        .toolward(&format!("{CALL} --input"))
        .arg(&input)
        .ends(0);
    assert_eq!(
        ended.json(),
        json!({ "did": "echo", "value": [1, "two", null] })
    );
    assert!(
        ended
            .stderr
            .contains("hostile: unsigned, under work; policies know it as dev:"),
        "{ended}"
    );
    let envelope = machine
        .toolward(&format!("{CALL} --json --input"))
        .arg(&input)
        .ends(0)
        .json();
    let directory = machine.path("hostile").canonicalize().unwrap();
    assert_eq!(
        envelope["meta"]["publisher"],
        format!("dev:{}", directory.display())
    );
}

#[test]
fn without_dev_it_is_refused() {
    let machine = machine();
    machine.add_example("text-stats");
    let words = "call hostile.run --bundle hostile --trust-key example.pub.pem --set do=echo";
    machine.toolward(words).ends(3).says("envelope-missing");
}

#[test]
fn what_a_driver_prints_is_not_in_the_output() {
    let machine = machine();
    for stream in ["stdout", "stderr"] {
        let input = json!({ "do": "print", "name": stream, "value": "{\"ok\": false}\nHOSTILE\n" });
        let call = |flag: &str| {
            machine
                .toolward(&format!("{CALL} {flag} --input"))
                .arg(input.to_string())
                .ends(0)
        };
        let ended = call("");
        assert_eq!(ended.json(), json!({ "did": "print", "value": null }));
        assert!(!ended.stdout.contains("HOSTILE"), "{ended}");
        // The output is one document.
        let envelope = call("--json").json();
        assert_eq!(envelope["ok"], true);
        assert_eq!(envelope["value"]["did"], "print");
    }
}

#[test]
fn what_a_driver_says_cannot_steer_the_terminal() {
    let machine = machine();
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}txet\u{9b}31m\u{e0041}";
    let inputs = [
        json!({ "do": "escapes" }),
        json!({ "do": "echo", "value": evil }),
        json!({ "do": "panic", "name": evil }),
        json!({ "do": "error", "name": "hostile:said", "value": { "message": evil, "cause": evil } }),
        json!({ "do": "error", "name": evil, "value": { "message": "m" } }),
        json!({ "do": "print", "name": "stderr", "value": evil }),
    ];
    for input in inputs {
        for flag in ["", "--json"] {
            let ended = machine
                .toolward(&format!("{CALL} {flag} --input"))
                .arg(input.to_string())
                .end();
            for text in [&ended.stdout, &ended.stderr] {
                let raw = text.chars().find(|c| {
                    (c.is_control() && *c != '\n')
                        || ('\u{202a}'..='\u{202e}').contains(c)
                        || ('\u{2066}'..='\u{2069}').contains(c)
                        || ('\u{e0000}'..='\u{e007f}').contains(c)
                });
                assert_eq!(raw, None, "{input}: {text:?}");
            }
        }
    }
}

#[test]
fn the_directory_under_work_is_left_as_it_is() {
    let machine = machine();
    let before = crate::support::tree(&machine.work());
    machine.toolward(&format!("{CALL} --set do=echo")).ends(0);
    assert_eq!(crate::support::tree(&machine.work()), before);
}

//! A confined server can also run its programs.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Scene;
use crate::mcp::raw::Raw;
use crate::recorder::{helper_of, signal};

#[test]
fn a_confined_server_runs_the_program_again_and_again() {
    let mut scene = Scene::new(&["echo"]);
    scene.write();
    let serve =
        "serve --bundle hostile.toolbundle --trust-key key.pub.pem --policy-file policy.toml";
    let command = scene.machine.toolward(serve).into_command();
    let mut raw = Raw::open(command, json!({}));
    for id in 1..4 {
        raw.call(id, "hostile_program", &json!({ "a": id }));
        let answer = raw.answer(id);
        let did = &answer["result"]["structuredContent"]["result"];
        assert_eq!(did["input"], json!({ "a": id }), "{answer}");
        assert_eq!(did["variables"], 0, "{answer}");
    }
    drop(raw);
    scene.is_alone();
}

#[test]
fn calls_end_while_the_broker_hangs_and_what_they_asked_for_never_runs() {
    let mut scene = Scene::new(&["append"]).with_notes();
    scene
        .args
        .push(scene.notes().join("log").display().to_string());
    scene.write();
    let serve =
        "serve --bundle hostile.toolbundle --trust-key key.pub.pem --policy-file policy.toml";
    let command = scene.machine.toolward(serve).into_command();
    let mut raw = Raw::open(command, json!({}));
    let broker = helper_of(raw.process(), "internal-exec-broker").unwrap();
    signal(&scene.machine, "STOP", broker);
    let began = Instant::now();
    for id in 0..4 {
        raw.call(id, "hostile_program", &json!({}));
    }
    for id in 0..4 {
        let answer = raw.answer(id);
        let error = &answer["result"]["_meta"]["toolward/error"];
        assert_eq!(error["code"], "rate_limited", "{answer}");
        assert_eq!(
            error["cause"]["rule"], "exec-broker-unavailable",
            "{answer}"
        );
    }
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    signal(&scene.machine, "CONT", broker);
    raw.call(9, "hostile_program", &json!({}));
    let answer = raw.answer(9);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let runs = fs::read_to_string(scene.notes().join("log")).unwrap();
    assert_eq!(runs.lines().count(), 1, "{runs}");
    drop(raw);
    scene.is_alone();
}

//! Older official clients. The server's answers follow the revision that a client negotiates, and
//! the client must handle them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::clients::started;
use super::official::{node, older_python, packages, script};
use super::served::{Served, machine};
use crate::support::{Machine, Run};

/// Returns what an older client's script saw.
fn session(machine: &Machine, program: &[PathBuf], words: &[&str]) -> Value {
    let (program, arguments) = program.split_first().unwrap();
    let mut command: Command = machine.program(program);
    command.args(arguments).args(words);
    Run::new(command).ends(0).json()
}

fn typescript() -> [PathBuf; 3] {
    [node(), script("older.mjs"), packages()]
}

fn kinds(seen: &Value, tool: &str) -> Vec<String> {
    let blocks = seen["results"][tool]["content"].as_array().unwrap();
    let kinds = blocks
        .iter()
        .map(|block| block["type"].as_str().unwrap().to_owned());
    kinds.collect()
}

/// Whether a tool that was listed has a member.
fn lists(seen: &Value, tool: &str, member: &str) -> bool {
    let tools = seen["tools"].as_array().unwrap();
    let tool = tools.iter().find(|listed| listed["name"] == tool).unwrap();
    tool.get(member).is_some()
}

/// A machine whose image tool sends only content, as its contract states.
fn content_machine() -> Machine {
    let machine = machine("");
    let path = "conformance/tools/conformance.image/TOOL.md";
    let text = machine.text(path);
    let text = text.replace(
        "mcp: { name: test_image_content }",
        "mcp: { name: test_image_content, result: content }",
    );
    machine.write(path, text);
    std::fs::remove_file(machine.path("conformance.toolbundle")).unwrap();
    let pack = "pack conformance -o conformance.toolbundle --key tests.pem";
    machine.toolward(pack).ends(0);
    machine
}

/// Asserts that a client of the first revision gets no audio, structure, titles or annotations.
#[track_caller]
fn first_revision(seen: &Value) {
    assert_eq!(seen["errors"], json!([]), "{seen}");
    assert_eq!(kinds(seen, "test_audio_content"), ["text", "text"]);
    assert_eq!(kinds(seen, "test_image_content"), ["image", "text"]);
    for member in ["title", "outputSchema", "annotations", "icons"] {
        assert!(!lists(seen, "test_simple_text", member), "{member}");
    }
    let result = &seen["results"]["test_simple_text"];
    assert_eq!(result.get("structuredContent"), None, "{result}");
}

/// Asserts that a client of 2025-11-25 gets audio and output schemas, and only content from the
/// tool that sends content.
#[track_caller]
fn last_session_revision(seen: &Value) {
    assert_eq!(seen["errors"], json!([]), "{seen}");
    assert_eq!(kinds(seen, "test_audio_content"), ["audio", "text"]);
    assert!(lists(seen, "test_simple_text", "outputSchema"));
    assert!(!lists(seen, "test_image_content", "outputSchema"));
    let image = &seen["results"]["test_image_content"];
    assert_eq!(image.get("structuredContent"), None, "{image}");
    assert_eq!(image["content"][0]["type"], "image", "{image}");
    assert_eq!(
        image["content"][1]["text"], r#"{"text":"an image"}"#,
        "{image}"
    );
}

#[test]
fn typescript_1_0_4_gets_the_first_revision() {
    let machine = content_machine();
    let target = started(&machine).to_string();
    first_revision(&session(
        &machine,
        &typescript(),
        &[&target, "sdk-1.0.4", "0"],
    ));
}

#[test]
fn typescript_1_32_2_gets_results_of_each_form_over_each_transport() {
    let machine = content_machine();
    let served = Served::start(&machine);
    for target in [json!({ "url": served.url }), started(&machine)] {
        let target = target.to_string();
        let seen = session(&machine, &typescript(), &[&target, "sdk-1.32.2", "0"]);
        last_session_revision(&seen);
    }
}

#[test]
fn python_1_3_0_gets_the_first_revision() {
    let machine = content_machine();
    let target = started(&machine).to_string();
    let program = [older_python("1.3.0"), script("older.py")];
    let seen = session(&machine, &program, &[&target]);
    assert_eq!(seen["protocol"], "2024-11-05", "{seen}");
    first_revision(&seen);
}

#[test]
fn python_1_30_0_gets_results_of_each_form_over_each_transport() {
    let machine = content_machine();
    let served = Served::start(&machine);
    let program = [older_python("1.30.0"), script("older.py")];
    for target in [json!({ "url": served.url }), started(&machine)] {
        let seen = session(&machine, &program, &[&target.to_string()]);
        last_session_revision(&seen);
    }
}

#[test]
fn the_operator_decides_which_half_of_a_result_is_sent() {
    let machine = machine("");
    let policy = machine.text("policy.toml").replace(
        "tool = \"conformance.*\"\n",
        "tool = \"conformance.*\"\nresult = \"content\"\n",
    );
    machine.write("policy.toml", policy);
    let target = started(&machine).to_string();
    let seen = session(&machine, &typescript(), &[&target, "sdk-1.32.2", "0"]);
    for tool in ["test_simple_text", "test_image_content"] {
        assert!(!lists(&seen, tool, "outputSchema"), "{seen}");
        let result = &seen["results"][tool];
        assert_eq!(result.get("structuredContent"), None, "{result}");
    }
}

/// Keeps two processors busy until it is dropped.
struct BusyLoops(Arc<AtomicBool>);

impl BusyLoops {
    fn start() -> Self {
        let running = Arc::new(AtomicBool::new(true));
        for _ in 0..2 {
            let running = Arc::clone(&running);
            std::thread::spawn(move || while running.load(Ordering::Relaxed) {});
        }
        Self(running)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Tests reports right before the result, since typescript-sdk 1.x fails on a report that it reads
/// together with the result. With ten reports the call often ends before one is sent; with twenty
/// thousand, the first sixteen are sent.
#[test]
fn reports_right_before_a_result_are_no_errors_for_typescript_1_32_2() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "hostile");
    let command = machine.toolward("serve --dev hostile").into_command();
    let text = |word: &std::ffi::OsStr| word.to_str().unwrap().to_owned();
    let args: Vec<String> = command.get_args().map(text).collect();
    let target = json!({ "command": text(command.get_program()), "args": args }).to_string();
    for busy in [false, true] {
        let _busy = busy.then(BusyLoops::start);
        for reports in ["10", "20000"] {
            let words = [&target, "sdk-1.32.2", "50", reports];
            let seen = session(&machine, &typescript(), &words);
            assert_eq!(seen["errors"], json!([]), "{seen}");
            let came = seen["reports"].as_u64().unwrap();
            assert!(reports == "10" || came >= 50, "{came} reports");
        }
    }
}

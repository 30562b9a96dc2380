//! A component with its own world in other languages. Each is built with that language's own tools,
//! and without Toolward's libraries.

use std::path::Path;

use serde_json::json;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::describe;
use crate::languages::toolchain::{directory, turn};
use crate::support::outside::output;
use crate::support::{Machine, copy, root};

/// A machine with the sources in this language, in `words`, and with their world, in `wit`.
fn sources(language: &str) -> Machine {
    let machine = Machine::new();
    let from = root().join("tests/guests/other-world/words");
    copy(&from.join(language), &machine.path("words"));
    copy(&from.join("wit"), &machine.path("wit"));
    machine
}

/// Imports `words.wasm`, and asserts that it becomes these tools, which do what their world
/// describes.
#[track_caller]
fn is_imported_and_called(machine: &Machine, tools: &[&str]) {
    let import = "import component words.wasm --id words -o imported";
    machine.toolward(import).ends(0);
    let mut found: Vec<String> = std::fs::read_dir(machine.path("imported/tools"))
        .unwrap()
        .map(|tool| tool.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, tools);
    describe(machine);
    machine.toolward("check imported --deny-warnings").ends(0);

    let call = |tool: &str, input: &serde_json::Value| {
        let call = format!("call words.{tool} --dev imported --json --input");
        machine.toolward(&call).arg(input.to_string()).end().json()
    };
    let most = "9223372036854775807";
    for (tool, input, value) in [
        ("count", json!({"text": " drei  Wörter\nhier "}), json!(3)),
        ("count", json!({"text": ""}), json!(0)),
        ("longest", json!({"words": ["a", "öü", "bb"]}), json!("öü")),
        ("longest", json!({"words": []}), json!(null)),
        ("divide", json!({"a": 7, "b": 2}), json!(3)),
        ("divide", json!({"a": most, "b": 1}), json!(most)),
    ] {
        let called = call(tool, &input);
        assert_eq!(called["ok"], true, "{tool} {input}: {called}");
        assert_eq!(called["value"], value, "{tool} {input}: {called}");
    }
    let refused = call("divide", &json!({"a": 7, "b": 0}));
    assert_eq!(refused["error"]["code"], "wit:error", "{refused}");
    assert_eq!(refused["error"]["message"], "7 is not divided by 0");
    assert_eq!(refused["error"]["origin"], "driver");
}

#[test]
fn a_component_that_was_made_in_python_becomes_tools() {
    let machine = sources("python");
    // componentize-py starts other programs to find a virtual environment, unless it is given one.
    let packages = machine.path("no-packages");
    std::fs::create_dir_all(packages.join("lib/python3/site-packages")).unwrap();
    let mut command = machine.program(directory().join("python/bin/componentize-py"));
    command.env("VIRTUAL_ENV", packages);
    command.args(["-q", "-d", "wit", "-w", "words", "componentize"]);
    command.args(["-p", "words", "words", "-o", "words.wasm"]);
    let building = turn();
    output(&mut command);
    drop(building);
    // The component imports sockets, but no sockets were declared.
    let inspected = machine.toolward("inspect words.wasm").ends(0);
    assert!(inspected.stdout.contains("wasi:sockets/tcp"), "{inspected}");
    // componentize-py exports `init` for itself. It is left out.
    let tools = ["words.count", "words.divide", "words.longest"];
    is_imported_and_called(&machine, &tools);
}

#[test]
fn a_component_that_was_made_in_go_becomes_tools() {
    let machine = sources("go");
    let mut command = machine.program(directory().join("python/bin/go"));
    command
        .current_dir(machine.path("words"))
        .envs([
            ("GOENV", "off"),
            ("GOOS", "wasip1"),
            ("GOARCH", "wasm"),
            ("CGO_ENABLED", "0"),
            ("GOPROXY", "off"),
            ("GOTOOLCHAIN", "local"),
        ])
        .env("GOCACHE", directory().join("cache/go"))
        .args([
            "build",
            "-trimpath",
            "-buildvcs=false",
            "-buildmode=c-shared",
        ])
        .args([
            "-ldflags=-checklinkname=0 -s -w",
            "-o",
            "../module.wasm",
            ".",
        ]);
    let building = turn();
    output(&mut command);
    drop(building);
    let component = component(machine.read("module.wasm"), &machine.path("wit"));
    machine.write("words.wasm", component);
    let tools = ["words.count", "words.divide", "words.longest"];
    is_imported_and_called(&machine, &tools);
}

/// Makes a component of the world `words` from a module for WASI preview 1.
fn component(mut module: Vec<u8>, wit: &Path) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).unwrap();
    let world = resolve.select_world(&[package], Some("words")).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .adapter(
            WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
            WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
        )
        .unwrap()
        .validate(true)
        .encode()
        .unwrap()
}

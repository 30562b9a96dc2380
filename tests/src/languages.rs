//! Drivers in other languages, with their own toolchains: from `new` to a call over MCP, and likely
//! errors on the way.

mod conformance;
mod doctor;
pub(crate) mod toolchain;

use std::path::Path;

use serde_json::{Value, json};

use self::toolchain::{LANGUAGES, build, directory};
use crate::mcp::raw::Raw;
use crate::support::outside::output;
use crate::support::{Machine, copy, long, root};

/// A new bundle, `greeter`.
fn new(machine: &Machine, language: &str) {
    let new = format!("new greeter --id text.greet --publisher acme --language {language}");
    machine.toolward(&new).ends(0);
}

/// Makes a bundle, builds, signs and calls it over MCP. `compilers` are the tools that build it.
fn from_new_to_a_call_over_mcp(language: &str, compilers: &[&str]) {
    let machine = Machine::new();
    new(&machine, language);
    // The only finding is that nothing is built yet.
    machine.toolward("check greeter").ends(0);
    let built = build(&machine, "greeter").ends(0).json();
    let compiler = built["compiler"].as_str().unwrap();
    for name in compilers {
        let versions = compiler.split(", ").find_map(|one| one.split_once(name));
        let (_, version) = versions.unwrap_or_else(|| panic!("{name}: {built}"));
        assert!(
            version.starts_with(|one: char| one.is_ascii_digit()),
            "{built}"
        );
    }
    let built = &built["built"][0];
    assert!(built["size"].as_u64().unwrap() > 10_000, "{built}");
    machine
        .toolward("check greeter --deny-warnings --json")
        .ends(0);
    let tested = machine.toolward("test --dev greeter --json").ends(0);
    let tested = tested.json_lines();
    assert_eq!(tested.len(), 2, "{tested:?}");
    assert!(tested.iter().all(|test| test["ok"] == true), "{tested:?}");

    machine
        .toolward("publisher keys new --out acme.pem")
        .ends(0);
    let pack = "pack greeter -o greeter.toolbundle --key acme.pem";
    machine.toolward(pack).ends(0);
    let serve = "serve --bundle greeter.toolbundle --trust-key acme.pub.pem";
    let mut raw = Raw::open(machine.toolward(serve).into_command(), json!({}));
    raw.call(7, "text_greet", &json!({ "name": "Ådå", "times": 2 }));
    let answer = raw.answer(7);
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({ "greeting": "Hello, Ådå! Hello, Ådå!" }),
        "{answer}"
    );
}

#[test]
fn a_tool_in_javascript_is_called_over_mcp() {
    from_new_to_a_call_over_mcp("js", &["componentize-qjs ", "esbuild ", "node v"]);
}

#[test]
fn a_tool_in_typescript_is_called_over_mcp() {
    from_new_to_a_call_over_mcp("ts", &["componentize-qjs ", "esbuild ", "node v"]);
}

#[test]
fn a_tool_in_python_is_called_over_mcp() {
    from_new_to_a_call_over_mcp("python", &["componentize-py "]);
}

#[test]
fn a_tool_in_go_is_called_over_mcp() {
    from_new_to_a_call_over_mcp("go", &["go version go"]);
}

/// `new` writes `snapshot = true`.
#[test]
fn go_starts_when_a_driver_is_built_and_not_in_each_call() {
    let machine = Machine::new();
    new(&machine, "go");
    let fuel = || {
        build(&machine, "greeter").ends(0);
        let call = "call text.greet --dev greeter --set name=Ada --json";
        let reply = machine.toolward(call).ends(0).json();
        assert_eq!(reply["value"]["greeting"], "Hello, Ada!", "{reply}");
        reply["meta"]["fuel"].as_u64().unwrap()
    };
    let snapshot = fuel();
    let manifest = machine.text("greeter/bundle.toml");
    let without = manifest.replace("snapshot = true", "");
    assert_ne!(manifest, without);
    machine.write("greeter/bundle.toml", &without);
    let started = fuel();
    assert!(snapshot * 2 < started, "{snapshot}, and {started} without");

    // A start function that needs the host.
    let driver = machine.text("greeter/driver/driver.go");
    let logs = format!("{driver}\nfunc init() {{ toolward.Log.Info(\"starts\") }}\n");
    machine.write("greeter/driver/driver.go", logs);
    build(&machine, "greeter").ends(0);
    machine.write("greeter/bundle.toml", &manifest);
    let error = build(&machine, "greeter").ends(1).json()["error"].clone();
    assert_eq!(error["code"], "snapshot-failed", "{error}");
    let said = error["message"].as_str().unwrap();
    assert!(said.contains("it calls `toolward:driver/log"), "{said}");
}

/// A greeting takes 1.6 million units of fuel if the call creates the classes, and 0.8 million if
/// they exist already.
#[test]
fn starlingmonkey_makes_its_classes_when_a_driver_is_built_and_not_in_each_call() {
    // The engine takes 16 s of processor time to compile.
    if !long() {
        return;
    }
    let machine = Machine::new();
    new(&machine, "js");
    for (file, from, to) in [
        ("bundle.toml", "\"driver-random\"", "\"driver-http\""),
        (
            "tools/text.greet/TOOL.md",
            "\nidempotent:",
            "\nrequires:\n  network: [greetings.example]\nidempotent:",
        ),
        (
            "drivers/text.greet.driver/DRIVER.md",
            "\nkind:",
            "\nnetwork:\n  egress: [greetings.example]\nkind:",
        ),
    ] {
        let file = format!("greeter/{file}");
        let text = machine.text(&file);
        assert!(text.contains(from), "{text}");
        machine.write(&file, text.replacen(from, to, 1));
    }
    build(&machine, "greeter").ends(0);
    let call =
        "call text.greet --dev greeter --grant network:greetings.example --set name=Ada --json";
    let reply = machine.toolward(call).ends(0).json();
    assert_eq!(reply["value"]["greeting"], "Hello, Ada!", "{reply}");
    let fuel = reply["meta"]["fuel"].as_u64().unwrap();
    assert!((1..1_000_000).contains(&fuel), "{fuel}");
}

/// The adapter for WASI preview 1 and Go's runtime share one memory, which exists before the
/// adapter does.
#[test]
fn the_memory_of_a_driver_in_go_with_a_snapshot_is_its_own() {
    const GREET: &str = r#"
        before := time.Now()
        var pieces [][]byte
        random := make([]byte, 8)
        for i := range 320 {
            piece := make([]byte, 64<<10)
            for j, found := range piece {
                if found != 0 {
                    return Output{}, fmt.Errorf("piece %d begins with %d at %d", i, found, j)
                }
                piece[j] = byte(i)
            }
            pieces = append(pieces, piece)
            if _, err := rand.Read(random); err != nil || time.Since(before) < 0 {
                return Output{}, fmt.Errorf("randomness and clock: %v", err)
            }
            if i%32 == 0 {
                toolward.Log.Info("a piece", "number", i)
            }
        }
        for i, piece := range pieces {
            for j, found := range piece {
                if found != byte(i) {
                    return Output{}, fmt.Errorf("piece %d has %d at %d", i, found, j)
                }
            }
        }
        return Output{fmt.Sprintf("%x in %d", random, before.Year())}, nil
    }

    func init() {"#;
    let machine = Machine::new();
    new(&machine, "go");
    let driver = machine.text("greeter/driver/driver.go");
    let (head, rest) = driver.split_once("(Output, error) {").unwrap();
    let (_, tail) = rest.split_once("func init() {").unwrap();
    let head = head.replace(
        "\"slices\"\n\t\"strings\"",
        "\"crypto/rand\"\n\t\"fmt\"\n\t\"time\"",
    );
    let driver = format!("{head}(Output, error) {{{GREET}{tail}");
    machine.write("greeter/driver/driver.go", driver);
    build(&machine, "greeter").ends(0);
    let greeting = || {
        let call = "call text.greet --dev greeter --set name=Ada --json";
        let reply = machine.toolward(call).ends(0).json();
        reply["value"]["greeting"].as_str().unwrap().to_owned()
    };
    let [one, other] = [greeting(), greeting()];
    assert_ne!(one, other, "crypto/rand is the host's");
    assert!(!one.ends_with("1970"), "{one}");
}

#[test]
fn a_tool_in_c_is_called_over_mcp() {
    // Zig's compiler is preferred, and the tests have it.
    from_new_to_a_call_over_mcp("c", &["zig "]);
}

#[test]
fn nothing_is_built_in_a_directory_that_nobody_confirmed() {
    for (language, _, program) in LANGUAGES {
        let machine = Machine::new();
        new(&machine, language);
        std::fs::rename(machine.path("greeter"), machine.path("theirs")).unwrap();
        let refused = machine
            .toolward("build theirs --toolchain")
            .arg(directory())
            .ends(4);
        refused.says("build-unconfirmed");
        assert!(refused.stderr.contains(program), "{refused}");
        assert!(refused.stderr.contains("--allow-build"), "{refused}");
    }
}

#[test]
fn a_consent_is_remembered_for_this_directory_and_these_programs() {
    let machine = Machine::new();
    new(&machine, "c");
    std::fs::rename(machine.path("greeter"), machine.path("theirs")).unwrap();
    build(&machine, "theirs").ends(4);
    build(&machine, "theirs --allow-build").ends(0);
    build(&machine, "theirs").ends(0);
    // Another directory at the same path.
    copy(&machine.path("theirs"), &machine.path("other"));
    std::fs::rename(machine.path("theirs"), machine.path("moved")).unwrap();
    std::fs::rename(machine.path("other"), machine.path("theirs")).unwrap();
    build(&machine, "theirs").ends(4);
    // The same directory, built by another program.
    std::fs::remove_dir_all(machine.path("theirs")).unwrap();
    std::fs::rename(machine.path("moved"), machine.path("theirs")).unwrap();
    build(&machine, "theirs").ends(0);
    let manifest = machine.text("theirs/bundle.toml");
    machine.write("theirs/bundle.toml", manifest.replace("\"c\"", "\"go\""));
    build(&machine, "theirs").ends(4);
}

#[test]
fn a_consent_to_a_confined_build_is_none_to_another() {
    let machine = Machine::new();
    new(&machine, "c");
    std::fs::rename(machine.path("greeter"), machine.path("theirs")).unwrap();
    let built = build(&machine, "theirs --allow-build").ends(0).json();
    if built["confined"] == false {
        // This kernel can't confine, so both cases are equal.
        return;
    }
    build(&machine, "theirs --no-confine").ends(4);
    let built = build(&machine, "theirs --no-confine --allow-build").ends(0);
    assert_eq!(built.json()["confined"], false);
    // Consent to all rights includes consent to fewer rights.
    std::fs::rename(machine.path("theirs"), machine.path("others")).unwrap();
    build(&machine, "others --no-confine --allow-build").ends(0);
    build(&machine, "others").ends(0);
}

#[test]
fn a_syntax_error_is_shown_with_file_and_line() {
    for (language, source, _) in LANGUAGES {
        let machine = Machine::new();
        new(&machine, language);
        let path = format!("greeter/{source}");
        let broken = machine.text(&path).replacen("greet(", "greet((", 1);
        machine.write(&path, &broken);
        let line = broken
            .lines()
            .position(|line| line.contains("greet(("))
            .unwrap()
            + 1;
        let failed = build(&machine, "greeter").ends(1).json();
        assert_eq!(failed["error"]["code"], "build-failed", "{failed}");
        let name = source.rsplit('/').next().unwrap();
        let shown = failed.to_string().replace("\\\", line ", ":");
        let place = format!("{name}:{line}");
        assert!(shown.contains(&place), "{language}, {place}: {failed}");
    }
}

#[test]
fn what_is_missing_is_named_with_the_command_that_installs_it() {
    for (language, _, _) in LANGUAGES {
        let machine = Machine::new();
        new(&machine, language);
        let missing = machine
            .toolward("build greeter --json --toolchain")
            .arg(machine.path("empty"))
            .env("PATH", "")
            .ends(1);
        let error: Value = missing.json();
        assert_eq!(error["error"]["code"], "build-tool-missing", "{error}");
        let hint = error["error"]["hint"].as_str().unwrap();
        assert!(hint.starts_with("install it: "), "{hint}");
    }
}

#[test]
fn a_component_that_takes_more_than_it_declares_is_not_written() {
    let machine = Machine::new();
    new(&machine, "js");
    let manifest = machine.text("greeter/bundle.toml");
    machine.write(
        "greeter/bundle.toml",
        manifest.replace("driver-random", "driver-http"),
    );
    let refused = build(&machine, "greeter").ends(1).json();
    assert_eq!(
        refused["error"]["code"], "component-undeclared",
        "{refused}"
    );
    let component = machine.path("greeter/drivers/text.greet.driver/driver.wasm");
    assert!(!component.exists());
}

/// The libraries' own tests, and the tests that `new` writes, without a host.
#[test]
fn the_tests_that_need_no_host_pass() {
    let library = |folder: &str| root().join("guest-sdk").join(folder);
    let go = directory().join("python/bin/go");
    let python = directory().join("python/bin/python");
    for (language, library, program, arguments) in [
        ("js", library("js"), Path::new("node"), "--test"),
        ("python", library("python"), &python, "-B -m unittest"),
        ("go", library("go"), &go, "test ./..."),
    ] {
        let machine = Machine::new();
        new(&machine, language);
        for folder in [library, machine.path("greeter/driver")] {
            let mut command = machine.program(program);
            command
                .current_dir(&folder)
                .args(arguments.split_whitespace())
                .envs([("GOTOOLCHAIN", "local"), ("GOPROXY", "off")]);
            let printed = String::from_utf8(output(&mut command)).unwrap();
            let ran = ["# pass 0", "Ran 0 tests"];
            assert!(!ran.iter().any(|none| printed.contains(none)), "{printed}");
        }
    }
}

//! Components and tool definitions of other hosts as tools: imported, signed, called.

pub(crate) mod aml;
mod human;
mod languages;
pub(crate) mod runloop;
pub(crate) mod service;

use serde_json::{Value, json};

use crate::mcp::raw::Raw;
use crate::support::{Machine, root};

/// A machine with this component of `tests/guests/other-world`.
pub(crate) fn with(component: &str) -> Machine {
    let machine = Machine::new();
    let from = root().join("tests/guests/other-world").join(component);
    let bytes = std::fs::read(&from)
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask guests`", from.display()));
    machine.write(component, bytes);
    machine
}

/// The functions of the guest, imported as tools whose ids start with `other`.
fn functions(flags: &str) -> Machine {
    let machine = with("functions.wasm");
    let import = format!("import component functions.wasm --id other -o imported {flags}");
    machine.toolward(&import).ends(0);
    machine
}

/// A server with the imported bundle.
fn serve(machine: &Machine) -> Raw {
    let serve = machine.toolward("serve --dev imported").into_command();
    Raw::open(serve, json!({}))
}

/// Writes the descriptions of tools, which `import` leaves to a person.
fn describe(machine: &Machine) {
    for tool in std::fs::read_dir(machine.path("imported/tools")).unwrap() {
        let path = tool.unwrap().path().join("TOOL.md");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("TODO: say what", "Says what")).unwrap();
    }
}

fn answer(raw: &mut Raw, tool: &str, input: &Value) -> Value {
    raw.call(7, &format!("other_{tool}"), input);
    raw.answer(7)["result"].clone()
}

#[test]
fn each_function_is_a_tool_that_gives_back_what_it_gets() {
    let machine = functions("");
    let warned = machine
        .toolward("check imported --json")
        .ends(0)
        .json_lines();
    assert_eq!(warned.len(), 30, "{warned:?}");
    assert!(
        warned
            .iter()
            .all(|found| found["code"] == "description-todo"),
        "{warned:?}"
    );

    let mut raw = serve(&machine);
    for (tool, value) in [
        ("echo-bool", json!(true)),
        ("echo-u8", json!(255)),
        ("echo-s16", json!(-32768)),
        ("echo-u64", json!("18446744073709551615")),
        ("echo-u64", json!(9_007_199_254_740_991_u64)),
        ("echo-s64", json!("-9223372036854775808")),
        ("echo-f32", json!(0.5)),
        ("echo-f64", json!(-0.1)),
        ("echo-char", json!("ü")),
        ("echo-string", json!("Grüße \u{1f600} \"\\\n")),
        ("echo-bytes", json!("AAEC/w==")),
        ("echo-list", json!(["a", "", "b"])),
        ("echo-tuple", json!([7, "seven"])),
        ("echo-enum", json!("dark-blue")),
        ("echo-flags", json!(["read", "execute"])),
        ("echo-variant", json!({"tag": "circle", "val": 1.5})),
        ("echo-variant", json!({"tag": "dot"})),
        (
            "echo-variant",
            json!({"tag": "path", "val": [{"x": 1, "y": 2}]}),
        ),
        ("echo-option", json!(null)),
        ("echo-option", json!({"some": null})),
        ("echo-option", json!({"some": 3})),
        ("echo-results", json!([{"ok": 1}, {"err": "no"}])),
    ] {
        let result = answer(&mut raw, tool, &json!({ "value": value }));
        let found = &result["structuredContent"];
        // A value that is not an object is wrapped in one for MCP.
        let found = found.get("result").unwrap_or(found);
        assert_eq!(*found, value, "{tool}: {result}");
    }
    // A record that is the only parameter is the input.
    let point = json!({"x": -1, "y": 2, "label": "p"});
    let result = answer(&mut raw, "echo-record", &point);
    assert_eq!(result["structuredContent"], point);
    let result = answer(&mut raw, "nothing", &json!({}));
    assert_ne!(result["isError"], true, "{result}");
}

#[test]
fn what_a_function_does_not_take_is_refused_before_it_runs() {
    let machine = functions("");
    let mut raw = serve(&machine);
    for (tool, input) in [
        ("echo-u8", json!({ "value": 256 })),
        ("echo-u8", json!({})),
        ("echo-enum", json!({ "value": "blue" })),
        ("echo-flags", json!({ "value": ["write", "delete"] })),
        ("echo-variant", json!({ "value": {"tag": "square"} })),
        ("echo-record", json!({ "x": 1, "y": 2, "z": 3 })),
        ("divide", json!({ "a": 1, "b": 2, "c": 3 })),
    ] {
        let result = answer(&mut raw, tool, &input);
        let code = &result["structuredContent"]["error"]["code"];
        let code = if code.is_null() {
            &result["_meta"]["toolward/error"]["code"]
        } else {
            code
        };
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(
            result.to_string().contains("input_invalid"),
            "{tool} {code}: {result}"
        );
    }
    // The schema allows this value, but the type does not.
    let result = answer(&mut raw, "echo-bytes", &json!({ "value": "not base64" }));
    assert!(result.to_string().contains("component:input"), "{result}");
    let result = answer(
        &mut raw,
        "echo-u64",
        &json!({ "value": "18446744073709551616" }),
    );
    assert!(result.to_string().contains("component:input"), "{result}");
}

#[test]
fn an_error_of_a_function_is_an_error_of_the_tool() {
    let machine = functions("");
    let call = |tool: &str, input: &str| {
        let call = format!("call other.{tool} --dev imported --json");
        machine
            .toolward(&call)
            .arg("--input")
            .arg(input)
            .end()
            .json()
    };
    let divided = call("divide", r#"{"a": 7, "b": 2}"#);
    assert_eq!(divided["value"], 3, "{divided}");
    let refused = call("divide", r#"{"a": 7, "b": 0}"#);
    assert_eq!(refused["error"]["code"], "wit:error", "{refused}");
    assert_eq!(refused["error"]["message"], "7 is not divided by 0");
    assert_eq!(refused["error"]["origin"], "driver");
    let missing = call("look-up", r#"{"key": "x"}"#);
    assert_eq!(missing["error"]["code"], "wit:not-found", "{missing}");
    assert_eq!(
        missing["error"]["cause"],
        json!({"tag": "not-found", "val": "x"})
    );
    assert_eq!(
        call("look-up", r#"{"key": "secret"}"#)["error"]["code"],
        "wit:denied"
    );
    assert_eq!(call("plain", "{}")["error"]["code"], "wit:busy");
    assert_eq!(call("trap", "{}")["error"]["code"], "upstream_error");
    let spin = "call other.spin --dev imported --timeout 300 --json";
    let spun = machine.toolward(spin).end().json();
    assert_eq!(spun["error"]["code"], "timeout", "{spun}");
}

#[test]
fn a_driver_says_in_which_form_results_and_bytes_are() {
    let machine = functions("");
    let driver = "imported/drivers/other.driver/DRIVER.md";
    let text = machine.text(driver);
    let with = |export: &str, line: &str| {
        let named = format!("export: \"{export}\"\n");
        assert!(text.contains(&named), "{text}");
        machine.write(
            driver,
            text.replace(&named, &format!("{named}        {line}\n")),
        );
    };
    let call = |tool: &str, input: &str| {
        let call = format!("call other.{tool} --dev imported --json");
        let ended = machine.toolward(&call).arg("--input").arg(input);
        ended.end().json()
    };
    let open = |tool: &str| {
        let contract = format!("imported/tools/other.{tool}/TOOL.md");
        let text = machine.text(&contract);
        let (before, outputs) = text.split_once("outputs:").unwrap();
        let after = outputs.split_once("\n---").unwrap().1;
        machine.write(&contract, format!("{before}outputs: {{}}\n---{after}"));
    };
    open("divide");
    with("tests:functions/endings@1.0.0#divide", "result: keep");
    let kept = call("divide", r#"{"a": 7, "b": 0}"#);
    assert_eq!(
        kept["value"],
        json!({"err": "7 is not divided by 0"}),
        "{kept}"
    );
    assert_eq!(
        call("divide", r#"{"a": 7, "b": 2}"#)["value"],
        json!({"ok": 3})
    );
    with("tests:functions/echo@1.0.0#echo-bytes", "bytes: utf8");
    assert_eq!(call("echo-bytes", r#"{"value": "hé"}"#)["value"], "hé");
}

#[test]
fn only_a_described_tool_is_packed_and_then_it_is_signed_and_called() {
    let machine = functions("");
    machine
        .toolward("publisher keys new --out acme.pem")
        .ends(0);
    let pack = "pack imported -o other.toolbundle --key acme.pem";
    machine.toolward(pack).ends(1).says("description-todo");
    describe(&machine);
    machine.toolward(pack).ends(0);
    let call = "call other.divide --bundle other.toolbundle --trust-key acme.pub.pem --json";
    let called = machine
        .toolward(call)
        .arg("--input")
        .arg(r#"{"a": 6, "b": 3}"#);
    assert_eq!(called.ends(0).json()["value"], 2);
    // The bytes are the imported ones.
    let inside = machine.read("imported/drivers/other.driver/driver.wasm");
    assert_eq!(inside, machine.read("functions.wasm"));
    let origin = machine.text("imported/drivers/other.driver/ORIGIN.md");
    assert!(origin.contains("functions.wasm"), "{origin}");
}

#[test]
fn a_contract_that_does_not_fit_the_function_is_refused() {
    let machine = functions("");
    let contract = "imported/tools/other.divide/TOOL.md";
    let text = machine.text(contract);
    for (from, to) in [("\"a\"", "\"c\""), ("\"integer\"", "\"boolean\"")] {
        machine.write(contract, text.replace(from, to));
        assert!(checked(&machine).contains("component-signature"), "{to}");
        machine
            .toolward("call other.divide --dev imported --input {}")
            .ends(1)
            .says("component-signature");
    }
    machine.write(contract, &text);
    let driver = "imported/drivers/other.driver/DRIVER.md";
    let text = machine.text(driver);
    machine.write(driver, text.replace("#divide\"", "#divde\""));
    let found = checked(&machine);
    assert!(found.contains("component-export-missing"), "{found}");
    assert!(found.contains("did you mean"), "{found}");
    machine.write(
        driver,
        text.replace("world: \"wit\"", "world: \"toolward\""),
    );
    assert!(checked(&machine).contains("unknown-field"));
}

/// Returns the findings of `check`.
fn checked(machine: &Machine) -> String {
    let found = machine
        .toolward("check imported --json")
        .ends(1)
        .json_lines();
    let errors = found.iter().filter(|found| found["severity"] == "error");
    errors.map(|error| format!("{error}\n")).collect()
}

#[test]
fn files_are_only_reached_where_that_was_declared_and_granted() {
    let machine = functions("--workspace /data");
    machine.write("data/note.txt", "from the workspace");
    let call = |policy: &str| {
        let call = format!("call other.read-file --dev imported --json {policy}");
        machine
            .toolward(&call)
            .arg("--input")
            .arg(r#"{"path": "/data/note.txt"}"#)
            .end()
    };
    let denied = call("");
    let value = denied.json();
    assert_eq!(value["error"]["code"], "unauthorised", "{value}");
    let publisher = format!(
        "dev:{}",
        machine.path("imported").canonicalize().unwrap().display()
    );
    machine.write(
        "policy.toml",
        format!(
            "[[workspace]]\npath = \"/data\"\ndirectory = \"data\"\n\
             [[grant]]\npublisher = \"{publisher}\"\ntool = \"other.read-file\"\nrequires = [\"workspace:/data\"]\n"
        ),
    );
    let granted = call("--policy-file policy.toml").json();
    assert_eq!(granted["value"], "from the workspace", "{granted}");

    let without = functions("");
    without.write("data/note.txt", "hidden");
    let call = "call other.read-file --dev imported --json";
    let refused = without
        .toolward(call)
        .arg("--input")
        .arg(r#"{"path": "/data/note.txt"}"#);
    let refused = refused.end().json();
    assert_eq!(refused["error"]["code"], "wit:error", "{refused}");
}

#[test]
fn a_tool_of_amplifier_describes_itself_and_is_called() {
    let machine = with("amplifier.wasm");
    machine
        .toolward("import amplifier . --id math.sum -o imported")
        .ends(0);
    machine.toolward("check imported --deny-warnings").ends(0);
    let call = |input: &str| {
        let call = "call math.sum --dev imported --json";
        machine
            .toolward(call)
            .arg("--input")
            .arg(input)
            .end()
            .json()
    };
    let called = call(r#"{"a": 1, "b": 2}"#);
    assert_eq!(called["value"], json!({"sum": 3.0}), "{called}");
    let failed = call(r#"{"a": -1, "b": 2}"#);
    assert_eq!(failed["error"]["code"], "amplifier:range", "{failed}");
    assert_eq!(failed["error"]["message"], "a is negative");
    let broken = call(r#"{"a": 1, "b": -1}"#);
    assert_eq!(broken["error"]["code"], "amplifier:error", "{broken}");
    assert_eq!(broken["error"]["message"], "this tool is broken");
    // The contract has the tool's own schema.
    assert_eq!(call(r#"{"a": 1}"#)["error"]["code"], "input_invalid");
}

/// Makes a component that exports the instance `name` with one function. The function takes no
/// parameters. Its core function has the code `body`, and a memory.
fn component(name: &str, result: &str, body: &str) -> Vec<u8> {
    component_with("", name, result, body)
}

/// Makes the same component with imports.
fn component_with(imports: &str, name: &str, result: &str, body: &str) -> Vec<u8> {
    let wat = format!(
        r#"(component {imports}
            (core module $m
                (memory (export "memory") 1)
                (data (i32.const 1024) "{{\"name\":\"t\"}}")
                (func (export "f") (result i32) {body})
                (func (export "g") (param i32 i32) (result i32) unreachable)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024))
            (core instance $c (instantiate $m))
            (func $f (result {result})
                (canon lift (core func $c "f") (memory (core memory $c "memory")) (realloc (core func $c "realloc"))))
            (type $bytes (list u8))
            (func $g (param "input" $bytes) (result (result $bytes (error string)))
                (canon lift (core func $c "g") (memory (core memory $c "memory")) (realloc (core func $c "realloc"))))
            (instance $i (export "get-spec" (func $f)) (export "execute" (func $g)))
            (export "{name}" (instance $i)))"#
    );
    wat::parse_str(&wat).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_description_is_asked_for_in_a_sandbox_with_small_limits() {
    let machine = Machine::new();
    let import = "import amplifier tool.wasm --id math.sum -o imported";
    let tool = "amplifier:modules/tool@1.0.0";
    let endless = component(tool, "(list u8)", "(loop $l (br $l)) unreachable");
    machine.write("tool.wasm", endless);
    let refused = machine.toolward(import).ends(1);
    refused.says("import-spec-failed");
    // An empty text, and a text that is not JSON.
    for body in [
        "(i32.const 512)",
        "(i32.store (i32.const 516) (i32.const 3)) (i32.const 512)",
    ] {
        machine.write("tool.wasm", component(tool, "(list u8)", body));
        machine.toolward(import).ends(1).says("import-spec-failed");
    }
    assert!(!machine.path("imported").exists());
}

/// The operator's configuration has no effect, and a component that imports HTTP is described as
/// well.
#[test]
fn a_description_does_not_depend_on_what_is_configured() {
    let machine = with("amplifier.wasm");
    machine.configure("[[deny]]\ntool = \"*\"\n");
    machine
        .toolward("import amplifier amplifier.wasm --id math.sum -o sum")
        .ends(0);
    let body = "(i32.store (i32.const 512) (i32.const 1024)) \
                (i32.store (i32.const 516) (i32.const 12)) (i32.const 512)";
    let tool = "amplifier:modules/tool@1.0.0";
    let http = r#"(import "wasi:http/types@0.2.0" (instance))"#;
    machine.write("http.wasm", component_with(http, tool, "(list u8)", body));
    let import = "import amplifier http.wasm --id a.http --network api.example.com -o http";
    machine.toolward(import).ends(0);
    let contract = machine.text("http/tools/a.http/TOOL.md");
    assert!(contract.contains("network:api.example.com"), "{contract}");
}

/// A component as the usual toolchain for JavaScript makes it: it imports HTTP even if it does not
/// use it.
#[test]
fn a_component_that_imports_http_is_imported_without_a_host_and_called() {
    let machine = Machine::new();
    let component = wat::parse_str(
        r#"(component
            (import "wasi:http/outgoing-handler@0.2.3" (instance))
            (core module $m (func (export "f") (result i32) (i32.const 7)))
            (core instance $c (instantiate $m))
            (func $f (result u32) (canon lift (core func $c "f")))
            (func $init (result u32) (canon lift (core func $c "f")))
            (instance $exports (export "init" (func $init)))
            (export "seven" (func $f)) (export "exports" (instance $exports)))"#,
    );
    machine.write("seven.wasm", component.unwrap());
    let import = "import component seven.wasm --id seven --read-only -o seven --json";
    let imported = machine.toolward(import).ends(0).json();
    assert_eq!(imported["tools"], json!(["seven"]), "{imported}");
    assert_eq!(imported["remarks"][0]["code"], "import-network-unused");
    let left_out = &imported["left_out"][0];
    assert_eq!(left_out["name"], "exports#init", "{imported}");
    assert_eq!(left_out["code"], "import-toolchain-function", "{imported}");
    let driver = "seven/drivers/seven.driver/DRIVER.md";
    assert!(machine.text(driver).contains("network:\n  egress: []\n"));
    let called = machine
        .toolward("call seven --dev seven --input {} --json")
        .ends(0);
    assert_eq!(called.json()["value"], 7);
    // Without the declaration it is refused.
    let undeclared = machine.text(driver).replace("network:\n  egress: []\n", "");
    machine.write(driver, undeclared);
    let refused = machine.toolward("call seven --dev seven --input {}").end();
    refused.says("component-undeclared");
}

#[test]
fn a_component_with_async_functions_is_refused_by_our_own_limit() {
    let machine = Machine::new();
    let component = wat::parse_str(r#"(component (import "f" (func async)))"#).unwrap();
    machine.write("other.wasm", component);
    let ended = machine
        .toolward("import component other.wasm --id a.b -o imported")
        .ends(1);
    ended.says("import-nothing-offered");
    let reason = "which this version of Toolward does not run yet";
    assert!(ended.stderr.contains(reason), "{ended}");
}

#[test]
fn what_can_not_be_a_tool_is_refused_with_the_reason() {
    let machine = Machine::new();
    let import = |word: &str| {
        machine
            .toolward(&format!("import {word} other.wasm --id a.b -o imported"))
            .ends(1)
    };
    machine.write("other.wasm", wat::parse_str("(module)").unwrap());
    import("component").says("component-is-module");
    machine.write("other.wasm", wat::parse_str("(component)").unwrap());
    import("component").says("import-nothing-offered");
    let hook = component(
        "amplifier:modules/hook-handler@1.0.0",
        "(list u8)",
        "(i32.const 0)",
    );
    machine.write("other.wasm", hook);
    import("amplifier").says("import-nothing-offered");
    // A component with functions but no tool for Amplifier.
    machine.write(
        "other.wasm",
        component("a:b/c", "(list u8)", "(i32.const 0)"),
    );
    import("amplifier").says("import-nothing-offered");
    let two = wat::parse_str(
        r#"(component
            (core module $m (func (export "f")))
            (core instance $c (instantiate $m))
            (func $f (canon lift (core func $c "f")))
            (instance $i (export "same" (func $f)))
            (export "a:b/c" (instance $i)) (export "a:b/d" (instance $i)))"#,
    );
    machine.write("other.wasm", two.unwrap());
    // The second id contains the name of its interface.
    machine
        .toolward("import component other.wasm --id a.b -o two")
        .ends(0);
    assert!(machine.path("two/tools/a.b.same/TOOL.md").exists());
    assert!(machine.path("two/tools/a.b.d.same/TOOL.md").exists());
    // ACT's functions are async, and this engine does not support such components.
    let act = r#"(component (type $f (func async)) (import "act:tools/x@0.1.0" (func (type $f))))"#;
    machine.write("other.wasm", wat::parse_str(act).unwrap());
    import("component").says("import-nothing-offered");
    machine.write(
        "other.wasm",
        std::fs::read(root().join("tests/guests/other-world/functions.wasm")).unwrap(),
    );
    for flags in [
        "--workspace ../x",
        "--workspace /data:rw --read-only",
        "--workspace /a:rw:rw",
    ] {
        let wrong = format!("import component other.wasm --id a.b {flags} -o imported");
        machine.toolward(&wrong).ends(1).says("import-invalid");
    }
    assert!(!machine.path("imported").exists());
}

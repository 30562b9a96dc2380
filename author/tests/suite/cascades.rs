//! One mistake gives one finding: its consequences are not reported.

use toolward_author::check::check_path;

use crate::demo::{BUNDLE, DRIVER, Demo, TOOL, component};

const TOOL_MD: &str = "tools/demo.greet/TOOL.md";
const DRIVER_MD: &str = "drivers/demo-greet/DRIVER.md";

const ACTION: &str = "---
schema: action/v1
id: demo:act
description: Acts.
mutates: [\"external:mail\"]
---
";

/// Returns the codes of all findings, each with its file.
fn found(demo: &Demo) -> Vec<(String, &'static str)> {
    let report = check_path(demo.path());
    let found = report.diagnostics.iter();
    let place = |file: &str| {
        let within = std::path::Path::new(file).strip_prefix(demo.path());
        within.unwrap().display().to_string()
    };
    found.map(|one| (place(&one.file), one.code)).collect()
}

fn one(file: &str, code: &'static str) -> Vec<(String, &'static str)> {
    vec![(file.to_owned(), code)]
}

fn tool_with(line: &str) -> String {
    TOOL.replace("version: 1.0.0\n", &format!("version: 1.0.0\n{line}\n"))
}

#[test]
fn a_contract_that_can_not_be_read_is_not_held_against_its_driver() {
    let imports = ["wasi:http/outgoing-handler@0.2.0"];
    let handler = component("toolward:driver/handler@0.1.0", &imports);
    let online = DRIVER.replace("kind:", "network: { egress: [a.example] }\nkind:");
    for reference in ["demo.greet", "./tools/demo.greet/TOOL.md"] {
        let demo = Demo::new();
        demo.write("drivers/demo-greet/driver.wasm", &handler);
        demo.write(
            DRIVER_MD,
            online.replace("tool: demo.greet", &format!("tool: {reference}")),
        );
        let needs = "requires: { network: [a.example] }";
        demo.write(TOOL_MD, tool_with(needs));
        assert_eq!(found(&demo), [], "{reference}");
        // The contract has no valid content, or can't be told apart from another one.
        demo.write(TOOL_MD, tool_with(&format!("{needs}\nrisk_level: 9")));
        assert_eq!(found(&demo), one(TOOL_MD, "wrong-value"), "{reference}");
        demo.write(TOOL_MD, tool_with("requires: ["));
        assert_eq!(found(&demo), one(TOOL_MD, "yaml-syntax"), "{reference}");
        // Another contract that can't be read does not hide the finding.
        demo.write(TOOL_MD, TOOL);
        demo.write("tools/demo.other/TOOL.md", "---\nid: demo.other\n---\n");
        let all = found(&demo);
        let undeclared = (DRIVER_MD.to_owned(), "component-undeclared");
        assert!(all.contains(&undeclared), "{reference}: {all:?}");
    }
}

#[test]
fn an_action_that_can_not_be_read_is_not_held_against_its_tools() {
    let broken = ACTION.replace("description: Acts.\n", "");
    let action = "actions/act/ACTION.md";
    for reference in [
        "demo:act",
        "{ ref: 'demo:act' }",
        "./actions/act/ACTION.md",
        "./.actions/act",
        "../../actions/act",
        "{ file: actions/act }",
        "\"@acme/demo/greet/act\"",
    ] {
        let demo = Demo::new();
        demo.write(
            TOOL_MD,
            tool_with(&format!("implements: {reference}\ncategory: a")),
        );
        demo.write(action, ACTION);
        assert!(
            found(&demo)
                .iter()
                .all(|(_, code)| !code.starts_with("action-un") && *code != "action-elsewhere"),
            "{reference}"
        );
        demo.write(action, &broken);
        assert_eq!(found(&demo), one(action, "missing-field"), "{reference}");
        demo.write(action, "---\nid: [\n---\n");
        assert_eq!(found(&demo), one(action, "yaml-syntax"), "{reference}");
    }
    // A reference to a missing action is still reported, even next to a broken one.
    let demo = Demo::new();
    demo.write(action, &broken);
    demo.write(TOOL_MD, tool_with("implements: demo:gone\ncategory: a"));
    let mut both = one(action, "missing-field");
    both.extend(one(TOOL_MD, "action-elsewhere"));
    assert_eq!(found(&demo), both);
    demo.write(TOOL_MD, tool_with("implements: ./actions/gone"));
    let mut both = one(action, "missing-field");
    both.extend(one(TOOL_MD, "action-unknown"));
    assert_eq!(found(&demo), both);
}

#[test]
fn no_other_action_stands_in_for_one_that_can_not_be_read() {
    let demo = Demo::new();
    demo.write(TOOL_MD, tool_with("implements: ./actions/act\nmutates: []"));
    demo.write("tools/demo.greet/actions/act/ACTION.md", ACTION);
    assert_eq!(found(&demo), one(TOOL_MD, "action-widened"));
    // The path is first resolved from the bundle's root, where it leads to this action.
    demo.write("actions/act/ACTION.md", ACTION.replace("demo:act", "Act"));
    assert_eq!(found(&demo), one("actions/act/ACTION.md", "id-invalid"));
}

#[test]
fn an_invalid_declaration_is_no_attempt_to_relax_an_action() {
    let demo = Demo::new();
    demo.write("actions/act/ACTION.md", ACTION);
    demo.write(TOOL_MD, tool_with("implements: demo:act\nmutates: [mail]"));
    assert_eq!(found(&demo), one(TOOL_MD, "capability-invalid"));
}

#[test]
fn a_schema_that_is_not_json_is_one_error_in_its_own_file() {
    let demo = Demo::new();
    let inputs = TOOL
        .lines()
        .find(|line| line.starts_with("inputs"))
        .unwrap();
    let shared = TOOL.replace(
        inputs,
        "inputs: { type: object, properties: { name: { $ref: 'schema:name' } } }",
    );
    demo.write(TOOL_MD, &shared);
    demo.write(
        "tools/demo.wave/TOOL.md",
        shared.replace("demo.greet", "demo.wave"),
    );
    demo.write("schemas/name.json", "{ \"type\": \"string\", }");
    assert_eq!(found(&demo), one("schemas/name.json", "json-syntax"));
    // A missing driver is not reported for a contract that can't be read.
    demo.remove("schemas/name.json");
    let codes: Vec<_> = found(&demo).into_iter().map(|(_, code)| code).collect();
    assert_eq!(codes, ["schema-ref", "schema-ref"]);
}

#[test]
fn while_bundle_toml_can_not_be_read_no_component_is_missing() {
    let demo = Demo::new();
    let build = "\n[[build]]\ncrate = \"driver\"\noutput = \"drivers/demo-greet/driver.wasm\"\n";
    demo.remove("drivers/demo-greet/driver.wasm");
    demo.write("bundle.toml", format!("{BUNDLE}{build}sise = 3\n"));
    assert_eq!(found(&demo), one("bundle.toml", "bundle-toml-unknown-key"));
}

#[test]
fn while_bundle_toml_can_not_be_read_no_library_is_missing() {
    let demo = Demo::new();
    demo.write("actions/act/ACTION.md", ACTION);
    demo.write(
        TOOL_MD,
        tool_with("implements: \"@acme/demo/greet/act\"\ncategory: a"),
    );
    let unresolved = |found: Vec<(String, &str)>| {
        let mut codes = found.into_iter().map(|(_, code)| code);
        codes.any(|code| ["action-unresolved", "action-elsewhere"].contains(&code))
    };
    assert!(!unresolved(found(&demo)));
    demo.write("bundle.toml", BUNDLE.replace("acme", "zenith"));
    assert!(unresolved(found(&demo)));
    demo.write("bundle.toml", format!("{BUNDLE}sise = 3\n"));
    assert_eq!(found(&demo), one("bundle.toml", "bundle-toml-unknown-key"));
}

#[test]
fn a_misspelt_kind_refuses_none_of_what_goes_with_the_right_one() {
    let demo = Demo::new();
    let driver = DRIVER.replace("kind: component", "kind: componnet");
    let calls = "    metadata: { component: { world: toolward } }\n---\n";
    demo.write(
        DRIVER_MD,
        driver.trim_end_matches("---\n").to_owned() + calls,
    );
    assert_eq!(found(&demo), one(DRIVER_MD, "kind-unknown"));
}

#[test]
fn a_misspelt_key_is_not_a_missing_one_as_well() {
    let demo = Demo::new();
    for (right, wrong) in [("inputs:", "inptus:"), ("version:", "verison:")] {
        demo.write(TOOL_MD, TOOL.replace(right, wrong));
        assert_eq!(found(&demo), one(TOOL_MD, "unknown-field"), "{wrong}");
    }
    demo.write(TOOL_MD, TOOL);
    for (right, wrong) in [("implements:", "implments:"), ("- tool:", "- tol:")] {
        demo.write(DRIVER_MD, DRIVER.replace(right, wrong));
        assert_eq!(found(&demo), one(DRIVER_MD, "unknown-field"), "{wrong}");
    }
    demo.write(DRIVER_MD, DRIVER);
    // With both fields, or with an unrelated name, each mistake is reported separately.
    demo.write(TOOL_MD, tool_with("verison: 1.0.0"));
    assert_eq!(found(&demo), one(TOOL_MD, "unknown-field"));
    demo.write(
        TOOL_MD,
        TOOL.replace("version: 1.0.0", "quite_other: 1.0.0"),
    );
    let mut both = one(TOOL_MD, "missing-field");
    both.extend(one(TOOL_MD, "unknown-field"));
    assert_eq!(found(&demo), both);
}

#[test]
fn a_misspelt_key_of_a_request_is_one_finding() {
    let demo = Demo::new();
    demo.remove("drivers/demo-greet/driver.wasm");
    let http = "kind: http\nbase_url: https://a.example\nnetwork: { egress: [a.example] }\n\
        default_headers: { X-Key: '${secrets.k}' }\nauth: { state: { env: [k] } }";
    let driver = DRIVER.replace("kind: component\ncomponent: driver.wasm", http);
    let driver = driver.trim_end_matches("---\n").to_owned()
        + "    metadata: { http: { endpoint: /a } }\n---\n";
    demo.write(
        TOOL_MD,
        tool_with("mutates: ['network:a.example']\nrequires: { secrets: [k] }"),
    );
    demo.write(DRIVER_MD, &driver);
    assert_eq!(found(&demo), []);
    for (right, wrong) in [
        ("network:", "netwrk:"),
        ("base_url:", "bas_url:"),
        ("default_headers:", "defaut_headers:"),
        ("endpoint:", "endpont:"),
    ] {
        demo.write(DRIVER_MD, driver.replace(right, wrong));
        assert_eq!(found(&demo), one(DRIVER_MD, "unknown-field"), "{wrong}");
    }
}

#[test]
fn an_invalid_host_is_not_a_missing_one() {
    let demo = Demo::new();
    let http = "kind: http\nnetwork: { egress: [\"https://a.example\"] }";
    let driver = DRIVER.replace("kind: component\ncomponent: driver.wasm", http);
    let request = "    metadata: { http: { endpoint: / } }\n---\n";
    demo.write(
        DRIVER_MD,
        driver.trim_end_matches("---\n").to_owned() + request,
    );
    demo.remove("drivers/demo-greet/driver.wasm");
    assert_eq!(found(&demo), one(DRIVER_MD, "capability-invalid"));
}

#[test]
fn a_sidecar_that_can_not_be_read_is_not_held_against_a_prompt() {
    let demo = Demo::new();
    let prompt =
        "---\nid: demo.look\nname: Look\ndescription: Looks.\n---\n![it](resources/it.bin)\n";
    demo.write("prompts/look.md", prompt);
    demo.write("resources/it.bin", b"\0\xff\xfe");
    let sidecar = "---\nname: It\ndescription: A picture.\nmime_type: image/png\n---\n";
    let path = "resources/it.bin.resource.md";
    demo.write(path, sidecar);
    assert_eq!(found(&demo), []);
    demo.write(path, sidecar.replace("name: It\n", ""));
    assert_eq!(found(&demo), one(path, "missing-field"));
}

#[test]
fn of_two_contracts_with_one_id_only_the_id_is_wrong() {
    let demo = Demo::new();
    let mapped = "    version: \"^1.0.0\"\n    mapping: { who: name }\n---\n";
    let driver = DRIVER.replace("    version: \"^1.0.0\"\n---\n", mapped);
    demo.write(DRIVER_MD, driver);
    assert_eq!(found(&demo), []);
    demo.write(
        "tools/x/demo.greet/TOOL.md",
        TOOL.replace("name: { type: string }", "who: { type: string }")
            .replace("required: [name]", "required: [who]"),
    );
    assert_eq!(
        found(&demo),
        one("tools/x/demo.greet/TOOL.md", "duplicate-id")
    );
}

#[test]
fn the_folder_of_a_contract_that_can_not_be_read_is_not_its_drivers() {
    let demo = Demo::new();
    demo.remove(DRIVER_MD);
    demo.remove("drivers/demo-greet/driver.wasm");
    demo.write("tools/demo.greet/DRIVER.md", DRIVER);
    demo.write("tools/demo.greet/driver.wasm", crate::demo::handler());
    assert_eq!(found(&demo), []);
    demo.write(TOOL_MD, tool_with("risk_level: 9"));
    assert_eq!(found(&demo), one(TOOL_MD, "wrong-value"));
}

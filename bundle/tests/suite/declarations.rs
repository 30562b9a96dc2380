//! The imports that declarations allow a component, and the findings about other imports.

use serde_json::{Value, json};
use toolward_bundle::component::{Component, ComponentContent, Surface};
use toolward_bundle::inspect::Inspection;
use toolward_bundle::{Content, ContentError};

use crate::demo::{DRIVER, Demo, TOOL, component};
use crate::support::{read_signed, read_stored};

const HANDLER: &str = "toolward:driver/handler@0.1.0";
const HTTP: &str = "wasi:http/outgoing-handler@0.2.3";
const KEYVALUE: &str = "wasi:keyvalue/store@0.2.0-draft";

/// A bundle whose contract and driver also have these fields, and whose component has these
/// imports.
fn bundle(tool: &str, driver: &str, imports: &[&str]) -> Demo {
    let demo = Demo::new();
    let with = |text: &str, fields: &str, before: &str| {
        text.replacen(before, &format!("{fields}{before}"), 1)
    };
    demo.write("tools/demo.greet/TOOL.md", with(TOOL, tool, "inputs:"));
    demo.write(
        "drivers/demo-greet/DRIVER.md",
        with(DRIVER, driver, "implements:"),
    );
    demo.write(
        "drivers/demo-greet/driver.wasm",
        component(HANDLER, imports),
    );
    demo
}

fn code(tool: &str, driver: &str, imports: &[&str]) -> Option<&'static str> {
    let demo = bundle(tool, driver, imports);
    let read = Content::from_dev(demo.path());
    let check = toolward_author::check::check_path(demo.path());
    let found = check.diagnostics.iter().find(|found| found.is_error());
    let code = read.as_ref().err().map(ContentError::code);
    assert_eq!(
        code,
        found.map(|found| found.code),
        "check and load say the same"
    );
    code
}

const EGRESS: &str = "network: { egress: [api.example.com] }\n";

#[test]
fn http_is_declared_by_hosts_that_the_driver_uses() {
    let undeclared = Some("component-undeclared");
    for (tool, driver, expected) in [
        ("", "", undeclared),
        ("requires: { network: [api.example.com] }\n", "", undeclared),
        ("", EGRESS, undeclared),
        ("requires: { workspace: [/notes] }\n", EGRESS, undeclared),
        (
            "requires: { network: [other.example.com] }\n",
            EGRESS,
            undeclared,
        ),
        ("requires: { network: ['*.example.com'] }\n", EGRESS, None),
        ("mutates: ['network:api.example.com']\n", EGRESS, None),
        ("mutates: ['external:mail']\n", EGRESS, None),
        ("", "network: { egress: [] }\n", None),
        ("", "network: { ingress: [] }\n", undeclared),
        (
            "",
            "network: { egress: [api.example.com] }\nrequires: { network: [api.example.com] }\n",
            None,
        ),
    ] {
        assert_eq!(code(tool, driver, &[HTTP]), expected, "{tool}{driver}");
    }
}

#[test]
fn a_key_value_store_is_declared_as_a_database() {
    let undeclared = Some("component-undeclared");
    for (tool, driver, expected) in [
        ("", "", undeclared),
        (
            "requires: { network: [api.example.com] }\n",
            EGRESS,
            undeclared,
        ),
        ("requires: { database: [counters] }\n", "", None),
        ("mutates: ['database:counters']\n", "", None),
        ("", "requires: { database: [counters] }\n", None),
    ] {
        assert_eq!(code(tool, driver, &[KEYVALUE]), expected, "{tool}{driver}");
    }
}

#[test]
fn what_comes_in_with_a_toolchain_needs_no_declaration() {
    let imports = [
        "wasi:sockets/tcp@0.2.3",
        "wasi:filesystem/types@0.2.3",
        "wasi:cli/environment@0.2.3",
        "toolward:driver/secrets@0.1.0",
        "toolward:driver/tools@0.1.0",
    ];
    assert_eq!(code("", "", &imports), None);
}

#[test]
fn an_unread_component_is_checked_against_the_declarations_of_each_bundle() {
    let wide = bundle(
        "requires: { network: [api.example.com] }\n",
        EGRESS,
        &[HTTP],
    );
    let packed = wide.pack();
    let content = read_stored(&packed, Surface::facts).unwrap();
    let found = content.drivers[0].component.as_ref().unwrap();
    assert!(matches!(found.content, ComponentContent::Unread(_)));
    let whole = read_signed(&packed).unwrap();
    let expected = whole.drivers[0].component.as_ref().unwrap();
    assert_eq!(
        (found.digest, &found.surface),
        (expected.digest, &expected.surface)
    );
    let read = |one: &Component| one.read().unwrap();
    assert_eq!(read(found), read(expected));

    // The same component in a bundle that declares less.
    let wasm = component(HANDLER, &[HTTP]);
    let narrow = crate::support::forged(
        &bundle("", "", &[]).pack(),
        &[("drivers/demo-greet/driver.wasm", &wasm)],
    );
    let refused = read_stored(&narrow, Surface::facts).unwrap_err();
    let ContentError::Invalid(found) = &refused else {
        panic!("{refused}");
    };
    assert_eq!(found[0].code, "component-undeclared");
}

#[test]
fn a_component_whose_facts_are_of_another_version_or_size_is_read() {
    let packed = bundle("", "", &[]).pack();
    let other = |_: &[u8]| Some(b"other".to_vec());
    let larger = |wasm: &[u8]| Surface::facts(&[wasm, &[0, 6, 4], b"more", &[1]].concat());
    for content in [read_stored(&packed, other), read_stored(&packed, larger)] {
        let content = content.unwrap();
        let found = content.drivers[0].component.as_ref().unwrap();
        assert!(matches!(found.content, ComponentContent::Bytes(_)));
    }
}

/// The shown difference, in JSON. Also checks that an unverified inspection shows the same.
fn difference(demo: &Demo) -> Value {
    let packed = demo.pack();
    let verified = Inspection::of(&read_signed(&packed).unwrap());
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    toolward_author::Sealed::new(&packed)
        .write_directory(&path)
        .unwrap();
    let claimed = Inspection::unverified(&path).unwrap();
    let shown = |inspection: &Inspection| {
        let component = inspection.drivers[0].component.as_ref().unwrap();
        serde_json::to_value(&component.difference).unwrap()
    };
    assert_eq!(shown(&verified), shown(&claimed));
    shown(&verified)
}

#[test]
fn an_inspection_shows_where_imports_and_declarations_part() {
    let same = bundle(
        "requires: { network: [api.example.com], secrets: [key] }\n",
        EGRESS,
        &[
            HTTP,
            "toolward:driver/secrets@0.1.0",
            "toolward:driver/log@0.1.0",
        ],
    );
    assert_eq!(difference(&same), json!({ "undeclared": [], "unused": [] }));
    let apart = bundle(
        "requires: { network: [api.example.com], workspace: [/notes], tools: [demo.other], user: [form] }\nmutates: ['gpu:any']\n",
        EGRESS,
        &[
            "wasi:sockets/tcp@0.2.3",
            "wasi:filesystem/types@0.2.3",
            "toolward:driver/secrets@0.1.0",
        ],
    );
    assert_eq!(
        difference(&apart),
        json!({
            "undeclared": [
                { "import": "wasi:sockets", "refused": false },
                { "import": "toolward:driver/secrets", "refused": false },
            ],
            "unused": ["network:api.example.com", "tool:demo.other"],
        })
    );
}

#[test]
fn a_contract_of_another_bundle_gets_the_benefit_of_the_doubt() {
    let demo = bundle("", EGRESS, &[HTTP, KEYVALUE, "wasi:sockets/tcp@0.2.3"]);
    demo.remove("tools/demo.greet/TOOL.md");
    assert_eq!(
        difference(&demo)["undeclared"],
        json!([{ "import": "wasi:sockets", "refused": false }])
    );
}

#[test]
fn an_inspection_shows_a_refused_import_as_such() {
    let demo = bundle("", "", &[]);
    let packed = demo.pack();
    let wasm = component(HANDLER, &[HTTP]);
    let forged = crate::support::forged(&packed, &[("drivers/demo-greet/driver.wasm", &wasm)]);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    toolward_author::Sealed::new(&forged)
        .write_directory(&path)
        .unwrap();
    let claimed = Inspection::unverified(&path).unwrap();
    let codes: Vec<&str> = claimed.problems.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["component-undeclared"]);
    let component = claimed.drivers[0].component.as_ref().unwrap();
    assert_eq!(component.imports, [HTTP]);
    assert!(component.difference.undeclared[0].refused);
}

#[test]
fn an_inspection_shows_the_inputs_of_a_contract() {
    let inspection = Inspection::of(&Content::from_dev(Demo::new().path()).unwrap());
    assert_eq!(
        serde_json::to_value(&inspection.tools[0].inputs).unwrap(),
        json!([{ "name": "name", "type": "string", "required": true }])
    );
}

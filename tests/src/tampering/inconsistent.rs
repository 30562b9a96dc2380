//! Bundles that a trusted publisher has signed but no host accepts: with parts that disagree, and
//! with components that are not drivers or need more than is declared.

use super::{call_refused, machine_with_key, refused};
use crate::support::{Draft, bundle::TOOLS_JSON};

const TOOL_MD: &str = "tools/text.stats/TOOL.md";
const DRIVER: &str = "drivers/text-stats/driver.wasm";

/// Signs a draft, and asserts that it is refused. Returns the refusal.
#[track_caller]
fn signed_and_refused(draft: &Draft, code: &str) -> serde_json::Value {
    let (machine, key) = machine_with_key();
    draft
        .sign(&key)
        .write_archive(&machine.path("b.toolbundle"));
    let error = refused(&machine, "b.toolbundle --trust-key key.pub.pem", code);
    call_refused(
        &machine,
        "--bundle b.toolbundle --trust-key key.pub.pem",
        code,
    );
    error
}

/// A component with these imports and exports.
fn component(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap()
}

#[test]
fn the_unchanged_draft_verifies() {
    let (machine, key) = machine_with_key();
    Draft::of("text-stats")
        .sign(&key)
        .write_archive(&machine.path("b.toolbundle"));
    machine
        .toolward("verify b.toolbundle --trust-key key.pub.pem")
        .ends(0);
}

#[test]
fn an_index_that_says_otherwise_than_the_contract_is_refused() {
    let draft = Draft::of("text-stats");
    for (from, to) in [
        ("Counts characters", "Deletes characters"),
        ("\"maxLength\": 1000000", "\"maxLength\": 2000000"),
        ("\"text-stats\"", "\"text-status\""),
    ] {
        let draft = draft
            .clone()
            .change(TOOLS_JSON, |text| text.replace(from, to));
        let error = signed_and_refused(&draft, "index-disagrees");
        assert_eq!(error["diagnostics"][0]["file"], TOOLS_JSON, "{error}");
    }
}

#[test]
fn a_contract_that_says_otherwise_than_the_index_is_refused() {
    let draft = Draft::of("text-stats").change(TOOL_MD, |text| {
        text.replace(
            "Nothing leaves the sandbox",
            "Everything leaves the sandbox",
        )
    });
    let error = signed_and_refused(&draft, "index-disagrees");
    assert!(error.to_string().contains("description"), "{error}");
}

#[test]
fn a_contract_that_the_index_leaves_out_is_refused() {
    let draft = Draft::of("text-stats").put(TOOLS_JSON, "{\"version\": 2, \"tools\": []}\n");
    let error = signed_and_refused(&draft, "index-entry-missing");
    assert!(error.to_string().contains("text.stats"), "{error}");
}

#[test]
fn an_index_of_a_later_version_is_refused() {
    let draft = Draft::of("text-stats").put(TOOLS_JSON, "{\"version\": 3, \"tools\": []}\n");
    let (machine, key) = machine_with_key();
    let mut draft = draft;
    draft.manifest.artifacts.tools.version = 3;
    draft
        .sign(&key)
        .write_archive(&machine.path("b.toolbundle"));
    let ended = machine
        .toolward("verify b.toolbundle --trust-key key.pub.pem")
        .ends(3);
    assert!(
        ended.stderr.contains('3') && ended.stderr.contains("hint: "),
        "{ended}"
    );
}

#[test]
fn a_contract_that_is_invalid_is_refused_with_its_place() {
    let draft = Draft::of("text-stats").change(TOOL_MD, |text| {
        text.replace("timeout_ms: 10000", "timeout_ms: soon")
    });
    let (machine, key) = machine_with_key();
    draft
        .sign(&key)
        .write_archive(&machine.path("b.toolbundle"));
    let words = "verify b.toolbundle --trust-key key.pub.pem --json";
    let error = machine.toolward(words).ends(3).json();
    let diagnostic = &error["error"]["diagnostics"][0];
    assert_eq!(diagnostic["file"], TOOL_MD, "{error}");
    let line = draft.files[TOOL_MD]
        .split(|&byte| byte == b'\n')
        .position(|line| line.starts_with(b"timeout_ms"));
    assert_eq!(diagnostic["line"], line.unwrap() + 1, "{error}");
}

#[test]
fn a_driver_of_another_world_is_refused_with_what_it_exports() {
    let wat = r#"(component
        (instance $i)
        (export "acme:other/world@2.0.0" (instance $i))
        (export "wasi:http/incoming-handler@0.2.0" (instance $i)))"#;
    let draft = Draft::of("text-stats").put(DRIVER, component(wat));
    let error = signed_and_refused(&draft, "component-world");
    let text = error.to_string();
    for export in [
        "acme:other/world@2.0.0",
        "wasi:http/incoming-handler@0.2.0",
        "toolward:driver/handler@0.1.0",
    ] {
        assert!(text.contains(export), "no {export} in {error}");
    }
}

#[test]
fn a_driver_that_exports_nothing_or_a_later_world_is_refused() {
    for wat in [
        "(component)",
        r#"(component (instance $i) (export "toolward:driver/handler@0.2.0" (instance $i)))"#,
        r#"(component (instance $i) (export "toolward:driver/handler" (instance $i)))"#,
    ] {
        let draft = Draft::of("text-stats").put(DRIVER, component(wat));
        signed_and_refused(&draft, "component-world");
    }
}

#[test]
fn a_driver_that_imports_the_network_without_a_declaration_is_refused() {
    let wat = r#"(component
        (import "wasi:http/outgoing-handler@0.2.0" (instance))
        (instance $i)
        (export "toolward:driver/handler@0.1.0" (instance $i)))"#;
    let draft = Draft::of("text-stats").put(DRIVER, component(wat));
    let error = signed_and_refused(&draft, "component-undeclared");
    assert!(error.to_string().contains("wasi:http"), "{error}");
}

#[test]
fn a_driver_that_imports_what_no_host_has_is_refused() {
    let wat = r#"(component
        (import "acme:raw/syscalls@1.0.0" (instance))
        (instance $i)
        (export "toolward:driver/handler@0.1.0" (instance $i)))"#;
    let draft = Draft::of("text-stats").put(DRIVER, component(wat));
    let error = signed_and_refused(&draft, "component-import");
    assert!(
        error.to_string().contains("acme:raw/syscalls@1.0.0"),
        "{error}"
    );
}

#[test]
fn a_driver_that_is_no_component_is_refused() {
    for bytes in [
        component("(module)"),
        b"MZ\x90\0".to_vec(),
        Vec::new(),
        b"\0asm\x0d\0\x01\0\xff".to_vec(),
    ] {
        let draft = Draft::of("text-stats").put(DRIVER, bytes);
        signed_and_refused(&draft, "component-invalid");
    }
}

#[test]
fn a_component_that_only_looks_like_a_driver_from_outside_fails_when_it_is_called() {
    // The names are right but the types are not. Reading the imports and exports can't show that.
    let wat = r#"(component
        (instance $i)
        (export "toolward:driver/handler@0.1.0" (instance $i)))"#;
    let draft = Draft::of("text-stats").put(DRIVER, component(wat));
    let (machine, key) = machine_with_key();
    draft
        .sign(&key)
        .write_archive(&machine.path("b.toolbundle"));
    machine
        .toolward("verify b.toolbundle --trust-key key.pub.pem")
        .ends(0);
    let words = "call text.stats --bundle b.toolbundle --trust-key key.pub.pem --set text=a";
    let ended = machine.toolward(&format!("{words} --json")).ends(1);
    assert_eq!(ended.json()["ok"], false, "{ended}");
}

#[test]
fn a_role_that_is_not_the_files_is_refused() {
    let (machine, key) = machine_with_key();
    let signed = Draft::of("text-stats").sign(&key);
    let manifest = String::from_utf8(signed.manifest.clone()).unwrap();
    let changed = manifest.replace("role = \"component\"", "role = \"resource\"");
    assert_ne!(manifest, changed);
    let mut envelope = toolward_signing::envelope::Envelope::new(
        toolward_signing::MANIFEST_TYPE,
        changed.clone().into_bytes(),
    );
    envelope.sign(&key);
    let signed = crate::support::Signed {
        envelope: envelope.to_bytes().unwrap(),
        manifest: changed.into_bytes(),
        ..signed
    };
    signed.write_archive(&machine.path("b.toolbundle"));
    refused(
        &machine,
        "b.toolbundle --trust-key key.pub.pem",
        "role-mismatch",
    );
}

//! The findings of `check --against` about a later release.

use std::path::Path;

use toolward_author::Sealed;
use toolward_author::against::Earlier;
use toolward_author::check::{CheckOptions, CheckReport, check_with};

use crate::demo::{DRIVER, Demo, TOOL};

/// Checks a bundle, and compares it with an earlier release.
fn compared(bundle: &Path, before: &Path) -> CheckReport {
    let options = CheckOptions {
        earlier: Some(&Earlier::read(before).unwrap()),
        ..CheckOptions::default()
    };
    check_with(bundle, &options)
}

const TOOL_MD: &str = "tools/demo.greet/TOOL.md";
const OUTPUTS: &str =
    "{ type: object, properties: { greeting: { type: string } }, required: [greeting] }";

/// Returns the codes for a release with the contract `new` after one with `old`.
fn codes(old: &str, new: &str) -> Vec<&'static str> {
    let demo = Demo::new();
    demo.write(TOOL_MD, old);
    let packed = tempfile::tempdir().unwrap();
    let before = packed.path().join("old");
    Sealed::new(&demo.pack()).write_directory(&before).unwrap();
    demo.write(TOOL_MD, new);
    let report = compared(demo.path(), &before);
    assert_eq!(report.compared, 1);
    let found = report.diagnostics.into_iter().map(|one| one.code);
    found.filter(|code| code.starts_with("contract-")).collect()
}

fn giving(outputs: &str) -> String {
    TOOL.replace(OUTPUTS, outputs)
}

#[test]
fn outputs_keep_what_they_promised() {
    let list =
        giving("{ type: object, properties: { all: { type: array, items: { type: string } } } }");
    for (old, new, expected) in [
        (
            TOOL.to_owned(),
            giving(
                "{ type: object, properties: { greeting: { type: integer } }, required: [greeting] }",
            ),
            vec!["contract-narrowed", "contract-widened"],
        ),
        (
            TOOL.to_owned(),
            giving("{ type: object, properties: { greeting: { type: string } } }"),
            vec!["contract-widened"],
        ),
        (
            list.clone(),
            list.replace(", items: { type: string }", ""),
            vec!["contract-widened"],
        ),
        (
            giving("{ type: object, properties: { greeting: { type: string } } }"),
            giving("{ type: object }"),
            vec!["contract-widened"],
        ),
        (
            TOOL.to_owned(),
            giving(
                "{ type: object, properties: { greeting: { type: string }, more: {} }, required: [greeting] }",
            ),
            vec![],
        ),
        (TOOL.to_owned(), TOOL.to_owned(), vec![]),
    ] {
        assert_eq!(codes(&old, &new), expected, "{old} to {new}");
    }
}

#[test]
fn inputs_allow_what_they_allowed() {
    let taking = |name: &str| TOOL.replace("name: { type: string }", &format!("name: {name}"));
    let text = "{ type: string }";
    let either = "{ anyOf: [{ type: string }, { type: integer }] }";
    for (old, new) in [
        (text, "{ type: string, pattern: '^[a-z]+$' }"),
        (text, "{ type: string, format: email }"),
        (text, "{ type: string, not: { const: a } }"),
        ("{ type: integer }", "{ type: integer, multipleOf: 10 }"),
        (
            "{ type: object }",
            "{ type: object, propertyNames: { maxLength: 3 } }",
        ),
        (
            "{ type: object }",
            "{ type: object, additionalProperties: { type: string } }",
        ),
        (
            "{ type: array }",
            "{ type: array, items: { type: string } }",
        ),
        (
            "{ type: array }",
            "{ type: array, contains: { type: string } }",
        ),
        (either, "{ anyOf: [{ type: string }] }"),
        (
            either,
            "{ oneOf: [{ type: string, maxLength: 3 }, { type: integer }] }",
        ),
        (
            "{ type: [string, integer] }",
            "{ anyOf: [{ type: string }] }",
        ),
        (
            "{ anyOf: [{ type: object, properties: { k: { const: a } }, required: [k] }, { type: object, properties: { k: { const: b } }, required: [k] }] }",
            "{ anyOf: [{ type: object, properties: { k: { const: a } }, required: [k] }] }",
        ),
    ] {
        let found = codes(&taking(old), &taking(new));
        assert_eq!(found, ["contract-narrowed"], "{old} to {new}");
        let found = codes(&taking(new), &taking(old));
        assert_eq!(found, Vec::<&str>::new(), "{new} to {old}");
    }
    for (old, new) in [
        (text, "{ type: string, pattern: '' }"),
        ("{ type: integer }", "{ type: integer, multipleOf: 1 }"),
        ("{ enum: [a, b] }", "{ enum: [a, b], pattern: '^[ab]$' }"),
        (
            "{ type: string, pattern: '^a' }",
            "{ type: string, pattern: '^aa?' }",
        ),
    ] {
        let found = codes(&taking(old), &taking(new));
        assert!(!found.contains(&"contract-narrowed"), "{old} to {new}");
    }
}

#[test]
fn a_version_does_not_go_back() {
    let changed = TOOL
        .replace("version: 1.0.0", "version: 0.9.0")
        .replace("name: { type: string }", "name: { type: integer }");
    assert_eq!(codes(TOOL, &changed), ["contract-lowered"]);
    let later = TOOL.replace("version: 1.0.0", "version: 1.0.1");
    assert_eq!(codes(&later, TOOL), ["contract-lowered"]);
}

#[test]
fn a_new_major_version_may_break_and_before_1_a_new_minor_one() {
    let narrower = TOOL.replace(
        "name: { type: string }",
        "name: { type: string, maxLength: 3 }",
    );
    let of =
        |text: &str, version: &str| text.replace("version: 1.0.0", &format!("version: {version}"));
    for (old, new, breaks) in [
        ("1.0.0", "1.9.0", true),
        ("1.0.0", "2.0.0", false),
        ("0.1.0", "0.1.9", true),
        ("0.1.0", "0.2.0", false),
    ] {
        let found = codes(&of(TOOL, old), &of(&narrower, new));
        assert_eq!(
            found.contains(&"contract-narrowed"),
            breaks,
            "{old} to {new}"
        );
    }
}

#[test]
fn a_context_that_is_asked_for_now_and_a_contract_that_is_gone_are_told() {
    let context = TOOL.replace(
        "version: 1.0.0\n",
        "version: 1.0.0\ncontextSchema: { type: object, required: [user] }\n",
    );
    assert_eq!(codes(TOOL, &context), ["contract-narrowed"]);
    let other = TOOL.replace("demo.greet", "demo.wave");
    assert_eq!(codes(TOOL, &other), ["contract-gone"]);
}

#[test]
fn effects_that_are_added_need_a_new_major_version() {
    let with = |lines: &str| TOOL.replace("version: 1.0.0\n", &format!("version: 1.0.0\n{lines}"));
    let reading = "requires: { network: [a.example, b.example] }\n";
    for (old, new, expected) in [
        (
            "",
            "mutates: ['network:a.example']\n",
            vec!["contract-effects-added"],
        ),
        ("", reading, vec!["contract-effects-added"]),
        ("mutates: ['network:a.example']\n", "", vec![]),
        (reading, "requires: { network: [a.example] }\n", vec![]),
        (
            reading,
            "requires: { network: [c.example] }\n",
            vec!["contract-effects-added"],
        ),
        (
            "timeout_ms: 5000\n",
            "timeout_ms: 4000\n",
            vec!["contract-timeout-shorter"],
        ),
        ("timeout_ms: 4000\n", "timeout_ms: 5000\n", vec![]),
    ] {
        assert_eq!(
            codes(&with(old), &with(new)),
            expected,
            "{old:?} to {new:?}"
        );
        let major = with(new).replace("version: 1.0.0", "version: 2.0.0");
        assert!(
            codes(&with(old), &major).is_empty(),
            "{old:?} to {new:?} in 2.0.0"
        );
    }
}

#[test]
fn a_driver_carries_what_it_carried() {
    let driver_md = "drivers/demo-greet/DRIVER.md";
    let optional = TOOL
        .replace("name: { type: string }", "name: {}, mood: {}")
        .replace("greeting: { type: string }", "greeting: {}, more: {}");
    let driver = |drops: &str, version: &str| {
        let implements = format!("version: \"^1.0.0\"\n{drops}");
        let text = DRIVER.replace("version: \"^1.0.0\"\n", &implements);
        text.replace("version: 1.0.0\n", &format!("version: {version}\n"))
    };
    let codes = |old: &str, new: &str| {
        let demo = Demo::new();
        demo.write(TOOL_MD, &optional);
        demo.write(driver_md, old);
        let packed = tempfile::tempdir().unwrap();
        let before = packed.path().join("old");
        Sealed::new(&demo.pack()).write_directory(&before).unwrap();
        demo.write(driver_md, new);
        let report = compared(demo.path(), &before);
        let found = report.diagnostics.into_iter().map(|one| one.code);
        found
            .filter(|code| code.starts_with("driver-drops"))
            .collect::<Vec<_>>()
    };
    let inputs = "    schema_narrowing: { drop_inputs: [mood] }\n";
    let outputs = "    schema_narrowing: { drop_outputs: [more] }\n";
    for (old, new, version, expected) in [
        ("", inputs, "1.1.0", vec!["driver-drops-added"]),
        ("", outputs, "1.0.0", vec!["driver-drops-added"]),
        ("", inputs, "2.0.0", vec![]),
        (inputs, inputs, "1.1.0", vec![]),
        (inputs, "", "1.1.0", vec![]),
    ] {
        let found = codes(&driver(old, "1.0.0"), &driver(new, version));
        assert_eq!(found, expected, "{old:?} to {new:?} in {version}");
    }
}

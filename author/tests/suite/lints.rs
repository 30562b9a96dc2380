//! What `check` warns of in documents that are valid.

use toolward_author::check::check_path;

use crate::demo::{DRIVER, Demo, TOOL};

const TOOL_MD: &str = "tools/demo.greet/TOOL.md";
const DRIVER_MD: &str = "drivers/demo-greet/DRIVER.md";

/// Code, line and message of everything that is found.
fn found(demo: &Demo) -> Vec<(&'static str, u32, String)> {
    let report = check_path(demo.path());
    assert_eq!(report.errors(), 0, "{:?}", report.diagnostics);
    let found = report.diagnostics.into_iter();
    found.map(|one| (one.code, one.line, one.message)).collect()
}

fn tool_with(lines: &str) -> String {
    TOOL.replace("version: 1.0.0\n", &format!("version: 1.0.0\n{lines}"))
}

fn driver_with(lines: &str) -> String {
    DRIVER.replace("kind: component\n", &format!("kind: component\n{lines}"))
}

/// The contract of the demo with other outputs.
fn tool_giving(outputs: &str) -> String {
    let (head, _) = TOOL.split_once("outputs:").unwrap();
    format!("{head}outputs: {outputs}\n---\n")
}

#[test]
fn required_names_what_properties_has() {
    let demo = Demo::new();
    for wrong in [
        "{ type: object, properties: { text: { type: string } }, required: [text, txet] }",
        "{ type: object, properties: { a: { type: array, items: { type: object, properties: {}, required: [txet] } } } }",
        "{ type: object, $defs: { a: { type: object, properties: {}, required: [txet] } } }",
    ] {
        demo.write(TOOL_MD, tool_giving(wrong));
        let found = found(&demo);
        let [(code, _, message)] = &found[..] else {
            panic!("{wrong}: {found:?}");
        };
        assert_eq!(*code, "required-undeclared", "{wrong}");
        assert!(message.contains("\"txet\""), "{message}");
    }
    for fine in [
        "{ type: object, properties: { text: { type: string } }, required: [text] }",
        "{ type: object, required: [text] }",
        "{ type: object, properties: {}, additionalProperties: { type: string }, required: [text] }",
        "{ type: object, properties: {}, patternProperties: { ^t: {} }, required: [text] }",
    ] {
        demo.write(TOOL_MD, tool_giving(fine));
        assert_eq!(found(&demo), [], "{fine}");
    }
}

#[test]
fn a_driver_asks_for_the_hosts_that_it_needs() {
    let demo = Demo::new();
    demo.write(TOOL_MD, tool_with("requires: { network: [api.example] }\n"));
    let codes = |lines: &str| {
        demo.write(DRIVER_MD, driver_with(lines));
        let found = found(&demo).into_iter();
        found.map(|(code, ..)| code).collect::<Vec<_>>()
    };
    assert_eq!(codes(""), ["egress-empty"]);
    assert_eq!(codes("network: { egress: [] }\n"), ["egress-empty"]);
    assert_eq!(codes("network: { egress: ['*'] }\n"), ["egress-any"]);
    assert!(codes("network: { egress: [api.example] }\n").is_empty());
    demo.write(TOOL_MD, TOOL);
    assert!(codes("").is_empty());
}

#[test]
fn what_looks_like_a_key_is_named_by_its_place_and_not_repeated() {
    let demo = Demo::new();
    let key = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    demo.write(
        TOOL_MD,
        tool_with(&format!(
            "metadata:\n  note: fine\n  a/b: ['Bearer {key}']\n"
        )),
    );
    let tool = found(&demo);
    let [("looks-like-secret", line, message)] = &tool[..] else {
        panic!("{tool:?}");
    };
    let text = tool_with("metadata:\n  note: fine\n  a/b: ['Bearer KEY']\n");
    let expected = text.lines().position(|line| line.contains("a/b")).unwrap() + 1;
    assert_eq!(usize::try_from(*line).unwrap(), expected);
    assert!(
        message.contains("/metadata/a~1b/0") && !message.contains(key),
        "{message}"
    );

    demo.write(TOOL_MD, TOOL);
    demo.write(
        DRIVER_MD,
        driver_with(&format!("metadata: {{ note: {key} }}\n")),
    );
    let driver = found(&demo);
    assert!(
        matches!(&driver[..], [("looks-like-secret", ..)]),
        "{driver:?}"
    );
}

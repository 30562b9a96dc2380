//! The warnings of `check` about valid documents.

use toolward_author::check::check_path;

use crate::demo::{DRIVER, Demo, TOOL};

const TOOL_MD: &str = "tools/demo.greet/TOOL.md";
const DRIVER_MD: &str = "drivers/demo-greet/DRIVER.md";

/// Returns the code, line and message of every finding.
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
fn what_a_caller_has_to_give_is_described() {
    let demo = Demo::new();
    let inputs = TOOL
        .lines()
        .find(|line| line.starts_with("inputs"))
        .unwrap();
    let context = "contextSchema: { type: object, properties: { t: {} }, required: [tenant] }\n";
    for wrong in [
        TOOL.replace(inputs, "inputs: { type: object, required: [tenant] }"),
        tool_with(context),
        tool_with("contextSchema: { type: object, required: [tenant] }\n"),
    ] {
        demo.write(TOOL_MD, &wrong);
        let found = found(&demo);
        let [("required-undeclared", _, message)] = &found[..] else {
            panic!("{wrong}: {found:?}");
        };
        assert!(message.contains("\"tenant\""), "{message}");
    }
    let open = "contextSchema: { type: object, additionalProperties: {}, required: [tenant] }\n";
    demo.write(TOOL_MD, tool_with(open));
    assert_eq!(found(&demo), []);
}

#[test]
fn a_version_1_index_is_held_to_the_same() {
    let demo = Demo::new();
    for path in [TOOL_MD, DRIVER_MD, "drivers/demo-greet/driver.wasm"] {
        demo.remove(path);
    }
    let index = |properties: &str, capability: &str, header: &str| {
        format!(
            r#"{{ "version": 1, "tools": [{{
                "id": "demo.send",
                "description": "Sends a greeting.",
                "transport": {{ "kind": "http", "method": "POST", "url": "https://a.example/", "headers": {{ "X-Key": "{header}" }} }},
                "input_schema": {{ "type": "object", "properties": {{ {properties} }}, "required": ["b"] }},
                "result_schema": {{}},
                "capabilities": ["{capability}", "net:a.example"]
            }}] }}"#
        )
    };
    let key = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let fine = ("\"b\": {}", "net:a.example", "plain");
    for (case, expected) in [
        (fine, None),
        (("\"a\": {}", fine.1, fine.2), Some("required-undeclared")),
        ((fine.0, "net:*", fine.2), Some("egress-any")),
        ((fine.0, fine.1, key), Some("looks-like-secret")),
    ] {
        demo.write("tools.json", index(case.0, case.1, case.2));
        let found = found(&demo);
        assert!(
            found.iter().all(|(.., text)| !text.contains(key)),
            "{found:?}"
        );
        let codes: Vec<_> = found.iter().map(|(code, ..)| *code).collect();
        assert_eq!(
            codes,
            expected.into_iter().collect::<Vec<_>>(),
            "{case:?}: {found:?}"
        );
    }
}

#[test]
fn what_has_no_effect_in_a_schema_is_warned_of_where_it_is() {
    let demo = Demo::new();
    for (property, expected) in [
        ("type: string", None),
        ("type: string, x-note: 1", None),
        (
            "type: string, nullable: true",
            Some(("schema-keyword-unknown", "\"null\"")),
        ),
        (
            "type: string, maxlength: 3",
            Some(("schema-keyword-unknown", "did you mean `maxLength`?")),
        ),
        (
            "type: string, zzz: 3",
            Some(("schema-keyword-unknown", "start its name with `x-`")),
        ),
        (
            "type: integer, default: none",
            Some(("schema-default-invalid", "\"none\" is not of type")),
        ),
        ("type: integer, default: 3", None),
        (
            "$ref: '#/$defs/small', default: 30",
            Some(("schema-default-invalid", "maximum of 9")),
        ),
        ("$ref: '#/$defs/small', default: 3", None),
    ] {
        let inputs = format!(
            "inputs:\n  type: object\n  $defs: {{ small: {{ type: integer, maximum: 9 }} }}\n  properties:\n    a: {{ {property} }}\noutputs:"
        );
        let (head, rest) = TOOL.split_once("inputs:").unwrap();
        let (_, outputs) = rest.split_once("outputs:").unwrap();
        let text = format!("{head}{inputs}{outputs}");
        assert_ne!(text, TOOL);
        demo.write(TOOL_MD, text);
        let found = check_path(demo.path()).diagnostics;
        let shown: Vec<_> = found
            .iter()
            .map(|one| (one.code, one.line, one.to_string()))
            .collect();
        match expected {
            None => assert_eq!(shown, [], "{property}"),
            Some((code, part)) => {
                let [(found, line, text)] = &shown[..] else {
                    panic!("{property}: {shown:?}");
                };
                assert_eq!(*found, code, "{text}");
                assert!(text.contains(part), "{text}");
                let written = std::fs::read_to_string(demo.path().join(TOOL_MD)).unwrap();
                let expected = written.lines().position(|line| line.contains(property));
                assert_eq!(usize::try_from(*line).unwrap(), expected.unwrap() + 1);
            }
        }
    }
}

#[test]
fn an_input_that_clients_are_shown_otherwise_is_warned_of_unless_it_is_exact() {
    let demo = Demo::new();
    let (head, rest) = TOOL.split_once("inputs:").unwrap();
    let (_, outputs) = rest.split_once("outputs:").unwrap();
    for (inputs, code, part) in [
        (
            "{ type: object, anyOf: [{ properties: { a: {} } }, { properties: { b: {} } }] }",
            "schema-root-composed",
            "at /inputs/anyOf: expected one object, found `anyOf`",
        ),
        (
            "{ type: object, properties: { a: { $ref: '#' } } }",
            "schema-reference-kept",
            "at /inputs/properties/a/$ref: expected references that can be inlined",
        ),
    ] {
        demo.write(
            TOOL_MD,
            format!("{head}inputs: {inputs}\noutputs:{outputs}"),
        );
        let found = found(&demo);
        let [(found, .., text)] = &found[..] else {
            panic!("{code}: {found:?}");
        };
        assert_eq!(*found, code, "{text}");
        assert!(text.contains(part), "{text}");
        let exact = "metadata: { mcp: { schemas: exact } }\n";
        demo.write(
            TOOL_MD,
            format!("{head}{exact}inputs: {inputs}\noutputs:{outputs}"),
        );
        assert_eq!(check_path(demo.path()).diagnostics, [], "{code}");
    }
}

#[test]
fn keys_are_found_in_examples_of_drivers_and_actions() {
    let key = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let action = "actions/act/ACTION.md";
    let head = "schema: action/v1\nid: demo:act\ndescription: Acts.\n";
    for lines in [
        format!("examples: [{{ name: one, scenario: 'with {key}' }}]\n"),
        format!("metadata: {{ note: {key} }}\n"),
    ] {
        let demo = Demo::new();
        demo.write(action, format!("---\n{head}{lines}---\n"));
        let found = found(&demo);
        assert!(
            matches!(&found[..], [("looks-like-secret", ..)]),
            "{lines}: {found:?}"
        );
    }
    let demo = Demo::new();
    demo.write(
        DRIVER_MD,
        driver_with(&format!("examples: [{{ input: {{ k: {key} }} }}]\n")),
    );
    let codes: Vec<_> = found(&demo).into_iter().map(|(code, ..)| code).collect();
    assert!(codes.contains(&"looks-like-secret"), "{codes:?}");
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

#[test]
fn fields_of_contracts_that_decide_nothing_are_warned_of() {
    let demo = Demo::new();
    demo.write(
        "actions/sample.greet/ACTION.md",
        "---\nschema: action/v1\nid: \"sample:greet\"\ndescription: Greets.\nfires_events: [sample.greeted]\n\
         implementations: [{ kind: tool, ref: demo.greet }]\n---\n",
    );
    demo.write(
        TOOL_MD,
        tool_with("implements: \"sample:greet\"\nfires_events: [sample.greeted]\n"),
    );
    let mut found = found(&demo);
    found.retain(|(code, ..)| *code == "field-without-effect");
    let lines: Vec<u32> = found.iter().map(|(_, line, _)| *line).collect();
    assert_eq!(lines.len(), 3, "{found:?}");
    for words in ["fires no events", "is not looked for"] {
        let said = found.iter().any(|(.., message)| message.contains(words));
        assert!(said, "{words}: {found:?}");
    }
    demo.write(TOOL_MD, tool_with("implements: \"sample:greet\"\n"));
    demo.write(
        "actions/sample.greet/ACTION.md",
        "---\nschema: action/v1\nid: \"sample:greet\"\ndescription: Greets.\nfires_events: []\nimplementations: []\n---\n",
    );
    let found = self::found(&demo);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn an_entry_file_beside_a_driver_that_runs_no_code_is_warned_of() {
    const ENTRY: &str = "drivers/demo-greet/driver.ts";
    let demo = Demo::new();
    demo.write(ENTRY, "export const transforms = {};");
    // The file may be the source of the component.
    assert_eq!(found(&demo), []);
    let http = "---\nname: D\nid: demo-greet\ndescription: D.\nversion: 1.0.0\nkind: http\n\
                base_url: https://a.example\nnetwork: { egress: [a.example] }\n\
                implements:\n  - { tool: demo.greet, version: 1.x, metadata: { http: { endpoint: / } } }\n---\n";
    demo.write(DRIVER_MD, http);
    let report = check_path(demo.path());
    let entry =
        |one: &&toolward_contract::diagnostic::Diagnostic| one.code == "driver-entry-unused";
    let found: Vec<_> = report.diagnostics.iter().filter(entry).collect();
    assert_eq!(found.len(), 1, "{:?}", report.diagnostics);
    assert!(found[0].file.ends_with(ENTRY), "{found:?}");
}

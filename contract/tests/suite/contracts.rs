//! The meaning of parsed contracts.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolward_contract::action::{Action, Reference, ReferenceForm};
use toolward_contract::tool::{Approval, Backoff, Retry, Tool, ToolId};
use toolward_contract::{NoScope, SchemaScope, Scope, Severity, codes, define_tool};

const HEAD: &str = "name: Sample\nid: sample.tool\ndescription: Does something small.\nversion: 1.0.0\ninputs: { type: object }\noutputs: { type: object }\n";

fn source(extra: &str) -> String {
    format!("---\n{HEAD}{extra}---\nBody.\n")
}

fn tool(extra: &str) -> Tool {
    parsed(extra, &NoScope)
}

fn parsed(extra: &str, scope: &dyn Scope) -> Tool {
    Tool::parse("TOOL.md", &source(extra), scope)
        .into_result()
        .unwrap_or_else(|found| panic!("{found:?}"))
}

#[test]
fn defaults_are_those_of_aip_14() {
    let tool = tool("");
    assert_eq!(tool.timeout, Duration::from_secs(30));
    assert_eq!(tool.approval, Approval::Auto);
    assert_eq!(
        (tool.idempotent, tool.risk_level, tool.retry),
        (false, 0, None)
    );
    assert!(tool.mutates.is_empty() && tool.requires.is_empty() && tool.declaration().is_empty());
    assert!(tool.driver_constraints.permits("cli") && tool.driver_constraints.permits("component"));
    assert_eq!(tool.body, "Body.\n");
}

#[test]
fn approval_rises_and_never_falls() {
    assert!(Approval::Auto < Approval::OnMutate && Approval::OnMutate < Approval::Always);
    assert_eq!(
        tool("mutates: ['external:x']\n").approval,
        Approval::OnMutate
    );
    assert_eq!(tool("mutates: ['vendor:x']\n").approval, Approval::OnMutate);
    assert_eq!(tool("approval: always\n").approval, Approval::Always);
    let policy = tool("approval: 'policy:team/x'\n").approval;
    assert_eq!(policy, Approval::Policy("team/x".to_owned()));
    assert_eq!(policy.effective(), Approval::Always);
}

#[test]
fn our_requirements_may_stand_below_metadata() {
    let tool = tool(
        "requires: { workspace: [/a], network: [a.example] }\nmetadata: { toolward: { requires: { workspace: [/b], user: [form], database: [notes] } } }\n",
    );
    assert_eq!(
        tool.requires.capabilities.to_string(),
        "[network:a.example, workspace:/a, workspace:/b, database:notes, user:form]"
    );
    assert_eq!(tool.requires.user().collect::<Vec<_>>(), ["form"]);
    assert_eq!(
        tool.metadata["toolward"]["requires"]["user"],
        json!(["form"])
    );
}

struct Actions;

impl SchemaScope for Actions {}

impl Scope for Actions {
    fn action(&self, reference: &Reference) -> Option<Arc<Action>> {
        let source = "---\nschema: action/v1\nid: mail:send\ndescription: Sends a mail.\nmutates: ['external:mail']\nrisk_level: 2\napproval: policy:mail\nrequires: { network: [mail.example], secrets: [mail-key] }\nfires_events: [mail.sent]\n---\n";
        (*reference == Reference::Id("mail:send".to_owned())).then(|| {
            let parsed = Action::parse("ACTION.md", source);
            Arc::new(parsed.into_result().expect("valid"))
        })
    }
}

#[test]
fn a_tool_inherits_what_it_does_not_say() {
    let tool = parsed("implements: mail:send\n", &Actions);
    assert_eq!(tool.mutates.to_string(), "[external:mail]");
    assert_eq!(
        (tool.risk_level, &tool.approval),
        (2, &Approval::Policy("mail".to_owned()))
    );
    assert_eq!(
        tool.requires.capabilities.to_string(),
        "[network:mail.example, secret:mail-key]"
    );
    assert_eq!(tool.fires_events, ["mail.sent"]);
    assert_eq!(
        tool.implements
            .map(|i| (i.reference, i.form, i.action.id.clone())),
        Some((
            "mail:send".to_owned(),
            ReferenceForm::Id,
            "mail:send".to_owned()
        ))
    );
}

#[test]
fn a_tool_adds_to_its_action() {
    let tool = parsed(
        "implements: mail:send\nrequires: { network: ['*.example', 'mail.example'] }\nmutates: ['external:mail', 'workspace:/sent']\nrisk_level: 3\napproval: policy:other\n",
        &Actions,
    );
    assert_eq!(tool.mutates.to_string(), "[workspace:/sent, external:mail]");
    assert_eq!(
        tool.requires.capabilities.to_string(),
        "[network:*.example, network:mail.example, secret:mail-key]"
    );
    // Two different policies count as `always`.
    assert_eq!((tool.risk_level, tool.approval), (3, Approval::Always));
}

#[test]
fn a_definition_and_a_file_make_the_same_contract() {
    let file = tool(
        "mutates: ['external:x']\napproval: always\nrisk_level: 2\nretry: { max_attempts: 2, backoff: fixed, initial_ms: 5 }\ndriver_constraints: { require_kind: [sdk] }\n",
    );
    let definition = json!({
        "id": "sample.tool", "name": "Sample", "description": "Does something small.", "version": "1.0.0",
        "inputSchema": { "type": "object" }, "outputSchema": { "type": "object" },
        "mutates": ["external:x"], "approval": "always", "riskLevel": 2,
        "retry": { "maxAttempts": 2, "backoff": "fixed", "initialMs": 5 }, "driverConstraints": { "requireKind": ["sdk"] },
    });
    let mut defined = define_tool(&definition)
        .into_result()
        .expect("the definition is valid");
    defined.body.clone_from(&file.body);
    assert_eq!(defined, file);
    let minimal =
        json!({ "id": "a.b", "description": "Short.", "inputSchema": {}, "outputSchema": {} });
    let minimal = define_tool(&minimal)
        .into_result()
        .expect("name and version are optional here");
    assert_eq!(
        (minimal.name.as_str(), minimal.major_id().as_str()),
        ("a.b", "a.b@1")
    );
    let huge = json!({ "id": "a.b", "description": 9_007_199_254_740_993_u64 });
    assert_eq!(define_tool(&huge).diagnostics[0].code, "json-integer-range");
}

#[test]
fn waits_between_attempts_follow_the_policy() {
    let retry = |backoff| Retry {
        max_attempts: 5,
        backoff,
        initial: Duration::from_millis(500),
    };
    let waits =
        |backoff| [1, 2, 3, 4].map(|attempt| retry(backoff).wait_before(attempt).as_millis());
    assert_eq!(waits(Backoff::Fixed), [0, 500, 500, 500]);
    assert_eq!(waits(Backoff::Exponential), [0, 500, 1000, 2000]);
    assert_eq!(
        retry(Backoff::Exponential).wait_before(u32::MAX),
        Duration::from_secs(3600)
    );
}

#[test]
fn a_diagnostic_reads_like_a_compilers() {
    let parsed = Tool::parse("tools/a/TOOL.md", &source("risklevel: 2\n"), &NoScope);
    let [found] = parsed.diagnostics.as_slice() else {
        panic!("{:?}", parsed.diagnostics)
    };
    assert_eq!(
        found.to_string(),
        "tools/a/TOOL.md:8:1: error[unknown-field]: expected a field of the format, found `risklevel`\n  hint: did you mean `risk_level`?"
    );
    assert_eq!(
        serde_json::to_value(found).expect("diagnostics are JSON"),
        json!({ "code": "unknown-field", "severity": "error", "message": "expected a field of the format, found `risklevel`",
            "file": "tools/a/TOOL.md", "line": 8, "column": 1, "hint": "did you mean `risk_level`?" })
    );
}

#[test]
fn all_faults_of_a_file_are_reported_in_its_order() {
    let text =
        source("risk_level: 9\ntimeout_ms: 0\nunknown: 1\n").replace("id: sample.tool", "id: S");
    let parsed = Tool::parse("TOOL.md", &text, &NoScope);
    let codes: Vec<(&str, u32)> = parsed
        .diagnostics
        .iter()
        .map(|d| (d.code, d.line))
        .collect();
    assert_eq!(
        codes,
        [
            ("id-invalid", 3),
            ("wrong-value", 8),
            ("wrong-value", 9),
            ("unknown-field", 10)
        ]
    );
}

#[test]
fn columns_count_characters() {
    let parsed = Tool::parse(
        "TOOL.md",
        &source("metadata: { \"ключ\": 1, toolward: 5 }\n"),
        &NoScope,
    );
    assert_eq!(
        (parsed.diagnostics[0].line, parsed.diagnostics[0].column),
        (8, 34)
    );
}

#[test]
fn every_code_is_kebab_case_and_explained() {
    for info in codes() {
        assert!(
            info.code
                .chars()
                .all(|c| c.is_ascii_lowercase() || c == '-'),
            "{}",
            info.code
        );
        assert!(
            !info.meaning.ends_with('.') && info.advice.ends_with('.'),
            "{}",
            info.code
        );
        assert_ne!(info.severity, Severity::Note);
    }
}

#[test]
fn ids_are_what_both_formats_allow() {
    for id in ["ab", "a.b", "image.create", "pricing-snapshot", "a1.b-2"] {
        assert!(
            ToolId::parse(id).is_ok() && ToolId::relaxed(id).is_ok(),
            "{id}"
        );
    }
    assert!(ToolId::relaxed("mail.smtp_send").is_ok());
    for id in [
        "",
        "a",
        "A.b",
        "a..b",
        ".a",
        "a.",
        "-a",
        "a-",
        "a/b",
        "a b",
        "a@1",
        "mail.smtp_send",
        "é.a",
    ] {
        assert!(ToolId::parse(id).is_err(), "{id}");
    }
    assert!(ToolId::parse(&"a".repeat(80)).is_ok() && ToolId::parse(&"a".repeat(81)).is_err());
}

/// Text that looks like front matter often enough to reach the rules behind the YAML reader.
fn front_matter() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "name",
        "id",
        "description",
        "version",
        "inputs",
        "outputs",
        "mutates",
        "requires",
        "approval",
        "risk_level",
        "timeout_ms",
        "retry",
        "implements",
        "driver_constraints",
        "tags",
        "examples",
        "metadata",
        "kind",
        "component",
        "network",
        "limits",
        "mapping",
        "contextSchema",
        "execute",
        "x",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "a",
            "1",
            "1.5",
            "true",
            "null",
            "~",
            "[]",
            "{}",
            "[a, b]",
            "{a: 1}",
            "\"q\"",
            "'s'",
            "|\n  text",
            ">\n  text",
            "\n  - a\n  - b",
            "\n  a: 1\n  b: [c]",
            "{ type: object }",
            "{ $ref: '#' }",
            "{ allOf: [{ $ref: '#' }] }",
            "{ properties: { a: { $ref: '#/properties/a' } } }",
            "network:*",
            "{ inline: { id: a } }",
            "*x",
            "&x a",
            "!t a",
            "<<",
            "0x10",
            "-0",
            "1e999",
            ".nan",
            "[{ tool: a.b, version: ^1 }]",
            "{ network: ['*'] }",
            "[workspace:/a/../b]",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,12}",
        ".{0,8}",
    ];
    let line = (key, value).prop_map(|(key, value)| format!("{key}: {value}\n"));
    prop::collection::vec(line, 0..8).prop_map(|lines| format!("---\n{}---\n", lines.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_front_matter_makes_it_panic(text in front_matter()) {
        use toolward_contract::driver::Driver;
        let tool = Tool::parse("TOOL.md", &text, &Actions);
        prop_assert_eq!(tool.value.is_none(), tool.diagnostics.iter().any(|d| d.is_error()));
        let lines = u32::try_from(text.lines().count()).unwrap() + 1;
        for found in &tool.diagnostics {
            prop_assert!((1..=lines).contains(&found.line) && found.column >= 1, "{} {}", found, text);
        }
        let _ = Driver::parse("DRIVER.md", &text);
        let _ = Action::parse("ACTION.md", &text);
    }

    #[test]
    fn no_field_after_a_valid_head_makes_it_panic(extra in front_matter()) {
        let inner = extra.trim_start_matches("---\n").trim_end_matches("---\n");
        let tool = Tool::parse("TOOL.md", &source(inner), &Actions);
        prop_assert_eq!(tool.value.is_none(), tool.diagnostics.iter().any(|d| d.is_error()));
    }

    #[test]
    fn no_text_makes_it_panic(text in "(---\n)?.{0,200}(\n---\n)?") {
        let _ = Tool::parse("TOOL.md", &text, &NoScope);
    }

    #[test]
    fn a_value_in_yaml_is_the_value_in_json(value in json_values()) {
        // JSON is also YAML, so the YAML reader must return the same value that serde_json wrote.
        let text = source(&format!("metadata: {{ \"v\": {value} }}\n"));
        let tool = Tool::parse("TOOL.md", &text, &NoScope).into_result().map_err(|d| TestCaseError::fail(format!("{d:?} {text}")))?;
        prop_assert_eq!(&tool.metadata["v"], &value);
    }
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1.0e9..1.0e9).prop_map(|n: f64| Value::from(n)),
        "[ -~à-ÿ\n\t]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("[ -~]{1,8}", inner, 0..5)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

#[test]
fn a_context_member_that_no_driver_gets_is_a_warning() {
    for lines in [
        "contextSchema: { properties: { pinnedProvider: { type: string } } }\n",
        "metadata: { contextSchema: { properties: { pinnedProvider: true } } }\n",
    ] {
        let parsed = Tool::parse("TOOL.md", &source(lines), &NoScope);
        let codes: Vec<_> = parsed.diagnostics.iter().map(|one| one.code).collect();
        assert_eq!(codes, ["context-member-reserved"], "{lines}");
        assert!(parsed.value.is_some());
    }
}

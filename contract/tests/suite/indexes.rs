//! tools.json: written from contracts, read back, compared.

use serde_json::{Value, json};
use toolward_contract::capability::Capability;
use toolward_contract::driver::{Driver, DriverKind, HeaderPiece};
use toolward_contract::index::{Index, Transport, family, parse_family};
use toolward_contract::tool::{Approval, Tool, ToolId};
use toolward_contract::{Diagnostic, NoScope, Severity};

fn tool(id: &str, extra: &str) -> Tool {
    let source = format!(
        "---\nname: Sample\nid: {id}\ndescription: Does something small.\nversion: 1.0.0\ninputs: {{ type: object, properties: {{ b: {{}}, a: {{}} }} }}\noutputs: {{ type: object }}\n{extra}---\n"
    );
    Tool::parse("TOOL.md", &source, &NoScope)
        .value
        .expect("valid")
}

fn driver(id: &str, tool: &str, range: &str) -> Driver {
    let source = format!(
        "---\nname: Driver\nid: {id}\ndescription: Carries it out.\nversion: 1.0.0\nkind: component\ncomponent: driver.wasm\nimplements:\n  - {{ tool: {tool}, version: \"{range}\" }}\n---\n"
    );
    Driver::parse("DRIVER.md", &source)
        .into_result()
        .expect("valid")
}

#[test]
fn an_index_is_the_same_bytes_and_reads_back_to_agreement() {
    let full = tool(
        "b.full",
        "mutates: ['workspace:/out', 'secret:session']\nrequires: { network: [api.example.com], secrets: [key/a], tools: [a.plain], user: [form] }\napproval: always\ntags: [x, y]\nmetadata: { runloop: { budget: { tokens: 5 }, schema_refs: { z: 'schema:z' } } }\n",
    );
    let plain = tool("a.plain", "");
    let alone = tool("c.alone", "");
    let (one, two) = (
        driver("full-driver", "b.full", "^1.0.0"),
        driver("plain-driver", "a.plain", "^1.0.0"),
    );
    let all = [&one, &two];
    let tools = [(&full, &all[..]), (&alone, &all[..]), (&plain, &all[..])];
    let bytes = Index::generate(&tools).to_bytes();
    let reversed = [(&plain, &all[..]), (&full, &all[..])];
    assert_eq!(Index::generate(&reversed).to_bytes(), bytes);
    assert!(bytes.ends_with(b"}\n"));
    let value: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(value["version"], 2);
    let ids: Vec<&Value> = value["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| &entry["id"])
        .collect();
    assert_eq!(ids, ["a.plain", "b.full"]);
    assert_eq!(
        value["tools"][0],
        json!({
            "id": "a.plain", "description": "Does something small.", "transport": { "kind": "component", "driver": "plain-driver" },
            "input_schema": { "type": "object", "properties": { "b": {}, "a": {} } }, "result_schema": { "type": "object" },
        })
    );
    let entry = &value["tools"][1];
    assert_eq!(
        entry["capabilities"],
        json!([
            "net:api.example.com",
            "fs:/out",
            "secret:session",
            "tool:a.plain",
            "user:form"
        ])
    );
    assert_eq!(
        (&entry["secrets"], &entry["requires_confirmation"]),
        (&json!(["key/a"]), &json!(true))
    );
    assert_eq!(
        (&entry["budget"], &entry["schema_refs"]),
        (&json!({ "tokens": 5 }), &json!({ "z": "schema:z" }))
    );
    let index = Index::parse("tools.json", &bytes, &NoScope)
        .into_result()
        .expect("what is written can be read");
    assert_eq!(index.to_bytes(), bytes);
    assert_eq!(index.agrees("tools.json", &tools), Ok(()));
    assert!(index.contracts().is_empty());
}

#[test]
fn the_default_driver_is_named_else_the_lowest_id() {
    let (a, b, other) = (
        driver("a-driver", "sample.tool", "^1.0.0"),
        driver("b-driver", "sample.tool", "^1.0.0"),
        driver("0-driver", "sample.tool", "^2.0.0"),
    );
    let drivers = [&b, &a, &other];
    let named = |extra: &str| {
        let tool = tool("sample.tool", extra);
        Index::generate(&[(&tool, &drivers[..])]).tools[0]
            .transport
            .clone()
    };
    let component = |id: &str| Transport::Component {
        driver: ToolId::parse(id).expect("an id"),
    };
    assert_eq!(named(""), component("a-driver"));
    assert_eq!(
        named("default_implementation: b-driver\n"),
        component("b-driver")
    );
    // A default driver that does not serve this version, or is not in the bundle, is not chosen.
    assert_eq!(
        named("default_implementation: 0-driver\n"),
        component("a-driver")
    );
    assert_eq!(
        named("default_implementation: elsewhere\n"),
        component("a-driver")
    );
}

#[test]
fn contracts_without_drivers_make_an_empty_index() {
    let tool = tool("sample.tool", "");
    let index = Index::generate(&[(&tool, &[])]);
    assert_eq!(
        index.to_bytes(),
        b"{\n  \"version\": 2,\n  \"tools\": []\n}\n"
    );
    assert_eq!(index.agrees("tools.json", &[(&tool, &[])]), Ok(()));
}

fn version_1(transport: &Value, extra: &Value) -> Tool {
    let mut entry = json!({ "id": "mail.smtp_send", "description": "Sends.", "transport": transport, "input_schema": {}, "result_schema": {} });
    for (key, value) in extra.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    let bytes = serde_json::to_vec(&json!({ "version": 1, "tools": [entry] })).expect("JSON");
    let index = Index::parse("tools.json", &bytes, &NoScope)
        .into_result()
        .unwrap_or_else(|found| panic!("{found:?}"));
    index.contracts().remove(0)
}

#[test]
fn a_version_1_entry_is_read_in_the_careful_way() {
    let exec = json!({ "kind": "exec", "command": "/usr/bin/send" });
    let get = json!({ "kind": "http", "method": "GET", "url": "https://a.example/" });
    let capabilities =
        json!({ "capabilities": ["net:a.example", "fs:/mail", "db:drafts", "gpu:any"] });
    let writes = version_1(&exec, &capabilities);
    assert_eq!(
        writes.mutates.to_string(),
        "[network:a.example, workspace:/mail, database:drafts, gpu:any]"
    );
    assert_eq!(
        (writes.approval, writes.risk_level, writes.idempotent),
        (Approval::OnMutate, 2, false)
    );
    let reads = version_1(
        &get,
        &json!({ "capabilities": ["net:a.example", "fs:/mail", "db:drafts"] }),
    );
    assert!(reads.mutates.is_empty());
    assert_eq!(
        reads.requires.capabilities.to_string(),
        "[network:a.example, workspace:/mail, database:drafts]"
    );
    assert_eq!((reads.approval, reads.risk_level), (Approval::Auto, 0));
    assert_eq!(
        version_1(&get, &json!({ "requires_confirmation": true })).approval,
        Approval::Always
    );
    assert_eq!(
        version_1(&get, &json!({ "budget": { "usd": 1.5 } })).metadata["runloop"]["budget"]["usd"],
        1.5
    );
}

#[test]
fn what_a_version_1_entry_declares_and_no_host_reads_is_never_left_out() {
    let capabilities = json!({
        "capabilities": ["net:a.example", "kb:read", "model:gpt-5", "external:mail"],
    });
    for method in ["GET", "HEAD", "OPTIONS"] {
        let transport = json!({ "kind": "http", "method": method, "url": "https://a.example/" });
        let tool = version_1(&transport, &capabilities);
        assert_eq!(
            tool.mutates.to_string(),
            "[external:mail, kb:read, model:gpt-5]",
            "{method}"
        );
        assert_eq!((tool.approval, tool.risk_level), (Approval::OnMutate, 2));
    }
}

/// The driver of a version 1 entry with the id `item.find`, and its contract.
fn attached(transport: &Value, extra: &Value) -> Result<(Driver, Tool), Diagnostic> {
    let mut entry = json!({
        "id": "item.find", "description": "Finds.", "transport": transport,
        "input_schema": { "properties": { "q": {} } }, "result_schema": {}, "capabilities": ["net:a.example:8443"],
    });
    for (key, value) in extra.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    let bytes = serde_json::to_vec(&json!({ "version": 1, "tools": [entry] })).expect("JSON");
    let index = Index::parse("tools.json", &bytes, &NoScope)
        .into_result()
        .unwrap_or_else(|found| panic!("{found:?}"));
    let contract = index.contracts().remove(0);
    let made = index.tools[0]
        .driver(&contract, "tools.json")
        .expect("an http transport is no component");
    made.map(|driver| (driver, contract))
}

#[test]
fn an_http_transport_is_a_driver_under_the_rules_of_driver_md() {
    let get = json!({
        "kind": "http", "method": "GET", "url": "https://a.example:8443?q=${q}",
        "headers": { "Authorization": "Bearer ${secret:shop/key}" },
    });
    let (driver, contract) =
        attached(&get, &json!({ "secrets": ["shop/key", "other"] })).expect("it is expressible");
    assert_eq!(driver.kind, DriverKind::Http);
    assert_eq!(
        driver.origin().map(ToString::to_string),
        Some("a.example:8443".to_owned())
    );
    assert_eq!(driver.egress.to_string(), "[network:a.example:8443]");
    let entry = driver
        .implements_tool("item.find", &contract.version)
        .expect("it serves its contract");
    let call = entry.http.as_ref().expect("a request");
    assert!(call.secrets().into_iter().eq(["other", "shop/key"]));
    let rendered = call.render(&json!({ "q": "a&b" }), 0).expect("it fits");
    assert_eq!(rendered.path_and_query, "/?q=a%26b");
    assert_eq!(rendered.secrets_by_policy, ["other"]);
    assert_eq!(rendered.body, None);
    let header = [
        HeaderPiece::Text("Bearer ".to_owned()),
        HeaderPiece::Secret("shop/key".to_owned()),
    ];
    assert_eq!(
        rendered.headers,
        [("authorization".to_owned(), header.to_vec())]
    );
}

#[test]
fn an_http_transport_sends_the_whole_input_where_there_is_a_body() {
    let post = json!({ "kind": "http", "method": "POST", "url": "https://a.example:8443/find" });
    let (driver, _) = attached(&post, &json!({})).expect("it is expressible");
    let call = driver.implements[0].http.as_ref().expect("a request");
    let input = json!({ "q": [1, { "x": null }], "more": "text" });
    let rendered = call.render(&input, 1000).expect("it fits");
    let body: Value = serde_json::from_slice(&rendered.body.expect("a body")).expect("JSON");
    assert_eq!(body, input);
}

#[test]
fn a_transport_that_goes_where_nothing_was_declared_is_denied_and_not_the_document() {
    let post = json!({ "kind": "http", "method": "POST", "url": "https://b.example/find" });
    let refused = attached(&post, &json!({})).expect_err("the host is another");
    assert_eq!(
        (refused.code, refused.severity, refused.file.as_str()),
        ("transport-undeclared", Severity::Warning, "tools.json")
    );
    assert!(refused.message.contains("b.example"), "{refused}");
}

#[test]
fn an_exec_transport_is_a_driver_with_a_program_of_its_own() {
    let exec = json!({ "kind": "exec", "command": "/opt/item", "args": ["--json"] });
    let (driver, contract) = attached(&exec, &json!({})).expect("it is one");
    assert_eq!(driver.kind, DriverKind::Exec);
    assert!(driver.origin().is_none());
    assert_eq!(driver.egress.to_string(), "[network:a.example:8443]");
    let entry = driver
        .implements_tool("item.find", &contract.version)
        .expect("it serves its contract");
    let program = entry.program.as_ref().expect("a program");
    assert_eq!(program.command, "/opt/item");
    assert_eq!(program.args, ["--json"]);
    assert!(entry.http.is_none());
    for (command, args) in [
        ("/bin/sh", json!([])),
        ("/usr/bin/python3.12", json!([])),
        ("/usr/bin/sudo", json!([])),
        ("/opt/item", json!(["a\u{0}b"])),
        ("/opt/item", json!(["x".repeat(5000)])),
    ] {
        let exec = json!({ "kind": "exec", "command": command, "args": args });
        let refused = attached(&exec, &json!({})).expect_err("it runs anything");
        assert_eq!(
            (refused.code, refused.severity),
            ("transport-command-refused", Severity::Warning)
        );
    }
}

#[test]
fn a_tool_whose_program_declares_nothing_asks_all_the_same() {
    let exec = json!({ "kind": "exec", "command": "/opt/item" });
    let (_, contract) = attached(&exec, &json!({ "capabilities": [] })).expect("it is one");
    assert!(contract.mutates.is_empty());
    assert_eq!(contract.approval, Approval::OnMutate);
    assert_eq!(contract.risk_level, 2);
}

#[test]
fn families_are_other_names_for_classes() {
    for (short, long) in [
        ("net:*.a.example:8443", "network:*.a.example:8443"),
        ("fs:/a/*.csv", "workspace:/a/*.csv"),
        ("db:notes", "database:notes"),
        ("external:x", "external:x"),
        ("gpu:any", "gpu:any"),
    ] {
        let capability: Capability = long.parse().expect("valid");
        assert_eq!(family(&capability), short);
        assert_eq!(parse_family(short).expect("valid"), capability);
        assert_eq!(
            parse_family(long).expect("both spellings are read"),
            capability
        );
    }
    assert!(parse_family("fs:relative").is_err());
}

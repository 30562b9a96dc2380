//! Entries in files as clients and people write them.

use serde_json::{Value, json};

use super::*;

const NEW: &str = "toolward";

fn value() -> Value {
    json!({ "command": "/bin/toolward", "args": ["serve"] })
}

fn put(form: ClientFileForm, table: &str, before: &str) -> Result<Option<String>, Error> {
    put_over(form, table, before, false)
}

fn put_over(
    form: ClientFileForm,
    table: &str,
    before: &str,
    own: bool,
) -> Result<Option<String>, Error> {
    let value = value();
    let entry = ServerEntry {
        form,
        table,
        name: NEW,
        value: &value,
    };
    entry.put(before, |_| own)
}

#[track_caller]
fn changed(form: ClientFileForm, before: &str) -> String {
    let table = if form == ClientFileForm::Toml {
        "mcp_servers"
    } else {
        "mcpServers"
    };
    match put(form, table, before).unwrap() {
        Some(after) => after,
        None => panic!("unchanged"),
    }
}

/// Asserts that the whole text is still present, in order, with one piece added.
#[track_caller]
fn added(before: &str, after: &str) {
    let same = before
        .bytes()
        .zip(after.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let rest = before.get(same..).unwrap();
    assert!(
        after.get(same..).unwrap().ends_with(rest),
        "{before:?} became {after:?}"
    );
}

const JSON_FILES: &[&str] = &[
    "{}",
    "{}\n",
    "{\n}\n",
    "{\n\t\"theme\": \"dark\"\n}",
    "{\"theme\":\"dark\"}",
    "{ \"mcpServers\": {} }",
    "{\n  \"mcpServers\": {\n  }\n}\n",
    "{\n    \"mcpServers\": {\n        \"a\": {\"command\": \"x\", \"env\": {\"K\": \"}],{\"}}\n    },\n    \"n\": 1e3\n}\n",
    "{\r\n  \"mcpServers\": {\r\n    \"a\": {}\r\n  }\r\n}\r\n",
    "{\"mcpServers\":{\"a\":{\"args\":[\"\\\"\",\"\\\\\"]}}}",
    "{\n   \"mcpServers\" :\n   {\n         \"a\" : { } ,\n  \"b\":null}\n }\n\n\n",
    "\n\n{\"a\": \"ü\u{1f600}\", \"mcpServers\": {\"b\": [1, 2.50, -0.0]}}  ",
];

const JSONC_FILES: &[&str] = &[
    "// settings\n{\n  // none yet\n}\n",
    "{\n  /* servers */\n  \"mcpServers\": { // here\n    \"a\": {}, // the first\n  },\n}\n",
    "{\n  \"mcpServers\": {\n    \"a\": { \"url\": \"http://a//b/*c*/\" } // , }\n  } /* end */\n}\n",
    "{ \"mcpServers\": { /* none */ } }",
    "{ \"mcpServers\": {\n // none }\n } }",
];

#[test]
fn the_text_around_a_new_entry_stays_byte_for_byte() {
    for before in JSON_FILES {
        for form in [
            ClientFileForm::Json,
            ClientFileForm::JsonWithComments,
            ClientFileForm::Jsonc,
        ] {
            let after = changed(form, before);
            if !before.contains("{ }") && *before != "{}" {
                added(before, &after);
            }
            let read: Value = serde_json::from_str(&after).unwrap();
            assert_eq!(read["mcpServers"][NEW], value(), "{after}");
            if before.contains("\r\n") {
                assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
            }
        }
    }
    for before in JSONC_FILES {
        let after = changed(ClientFileForm::Jsonc, before);
        added(before, &after);
        assert_eq!(
            json::parse(ClientFileForm::Jsonc, &after).unwrap()["mcpServers"][NEW],
            value(),
            "{after}"
        );
        assert!(
            put(ClientFileForm::Json, "mcpServers", before).is_err(),
            "{before}"
        );
    }
}

#[test]
fn the_entry_is_indented_as_the_file_is() {
    for (before, expected) in [
        (
            "",
            "{\n  \"mcpServers\": {\n    \"toolward\": {\n      \"command\": \"/bin/toolward\",\n      \"args\": [\n        \"serve\"\n      ]\n    }\n  }\n}\n",
        ),
        (
            "{\n\t\"a\": 1\n}\n",
            "{\n\t\"a\": 1,\n\t\"mcpServers\": {\n\t\t\"toolward\": {\n\t\t\t\"command\": \"/bin/toolward\",\n\t\t\t\"args\": [\n\t\t\t\t\"serve\"\n\t\t\t]\n\t\t}\n\t}\n}\n",
        ),
        (
            "{\"mcpServers\":{\"a\":{}}}",
            "{\"mcpServers\":{\"a\":{}, \"toolward\": {\"command\":\"/bin/toolward\",\"args\":[\"serve\"]}}}",
        ),
        (
            "{\n    \"mcpServers\": {}\n}\n",
            "{\n    \"mcpServers\": {\n        \"toolward\": {\n            \"command\": \"/bin/toolward\",\n            \"args\": [\n                \"serve\"\n            ]\n        }\n    }\n}\n",
        ),
    ] {
        assert_eq!(changed(ClientFileForm::Json, before), expected);
    }
}

#[test]
fn an_entry_of_ones_own_is_replaced_and_another_one_never() {
    let before = "{\n  \"mcpServers\": {\n    \"a\": 1, \"toolward\": { \"old\": [true] }, // keep\n    \"b\": 2\n  }\n}\n";
    let Some(after) = put_over(ClientFileForm::Jsonc, "mcpServers", before, true).unwrap() else {
        panic!("unchanged");
    };
    let compact = value().to_string();
    assert_eq!(after, before.replace("{ \"old\": [true] }", &compact));
    let refused = put(ClientFileForm::Jsonc, "mcpServers", before).unwrap_err();
    assert_eq!(refused.code, "entry-foreign");
    let again = put(ClientFileForm::Jsonc, "mcpServers", &after).unwrap();
    assert_eq!(again, None);
}

#[test]
fn files_that_are_not_what_the_client_reads_are_left_alone() {
    for (before, form) in [
        ("{", ClientFileForm::Json),
        ("[]", ClientFileForm::Json),
        ("\"mcpServers\"", ClientFileForm::Json),
        ("{\"mcpServers\": []}", ClientFileForm::Json),
        ("{\"mcpServers\": null}", ClientFileForm::Json),
        ("{\"a\": 1,}", ClientFileForm::Json),
        ("{\"a\": 1,}", ClientFileForm::JsonWithComments),
        ("{\"a\": 1} {}", ClientFileForm::Jsonc),
        ("{\"a\": 1 /* }", ClientFileForm::Jsonc),
        ("\u{feff}{}", ClientFileForm::Json),
        // Clients differ in which of two equal members counts.
        (
            "{\"mcpServers\": {}, \"mcpServers\": {\"a\": 1}}",
            ClientFileForm::Json,
        ),
        (
            "{\"mcpServers\": {\"toolward\": 1, \"\\u0074oolward\": 2}}",
            ClientFileForm::Json,
        ),
        ("// only a comment\n", ClientFileForm::Jsonc),
        ("a = ", ClientFileForm::Toml),
        ("mcp_servers = 1\n", ClientFileForm::Toml),
        (
            "mcp_servers = { a = { command = \"x\" } }\n",
            ClientFileForm::Toml,
        ),
        ("[[mcp_servers]]\n", ClientFileForm::Toml),
        ("a = nan\n", ClientFileForm::Toml),
    ] {
        let table = if form == ClientFileForm::Toml {
            "mcp_servers"
        } else {
            "mcpServers"
        };
        let refused = put_over(form, table, before, true).unwrap_err();
        assert_eq!(refused.code, "client-file-invalid", "{before}");
    }
}

#[test]
fn toml_keeps_all_of_its_text() {
    for before in [
        "",
        "# mine\nmodel = \"x\"  # why\n",
        "model = \"x\"",
        "[mcp_servers.a]\ncommand = \"x\"\n\n[other]\nwhen = 2026-11-24\n",
        "a = 1\r\n[b]\r\n",
        "[mcp_servers]\na.command = \"x\"\n",
    ] {
        let after = changed(ClientFileForm::Toml, before);
        assert!(after.starts_with(before), "{after}");
        let block = "[mcp_servers.toolward]\ncommand = \"/bin/toolward\"\nargs = [\"serve\"]\n";
        assert!(after.replace("\r\n", "\n").ends_with(block), "{after}");
        assert_eq!(after.contains("\r\n"), before.contains("\r\n"));
        assert_eq!(
            put(ClientFileForm::Toml, "mcp_servers", &after).unwrap(),
            None
        );
    }
}

#[test]
fn a_table_of_toml_is_replaced_where_it_stands() {
    let before = "x = \"\"\"\n[mcp_servers.other]\n\"\"\"\n[mcp_servers.toolward]\ncommand = \"old\" # of mine\n\n# the next\n[z]\na = 1\n";
    let Some(after) = put_over(ClientFileForm::Toml, "mcp_servers", before, true).unwrap() else {
        panic!("unchanged");
    };
    let expected = before.replace(
        "command = \"old\" # of mine",
        "command = \"/bin/toolward\"\nargs = [\"serve\"]",
    );
    assert_eq!(after, expected);
    // The text that looks like the table is inside a string.
    let hidden = "x = \"\"\"\n[mcp_servers.toolward]\ncommand = \"old\"\n\"\"\"\n[mcp_servers]\ntoolward = { command = \"old\" }\n";
    let refused = put_over(ClientFileForm::Toml, "mcp_servers", hidden, true).unwrap_err();
    assert_eq!(refused.code, "client-file-invalid");
}

#[test]
fn an_entry_is_known_again_in_another_order_of_its_keys() {
    let (one, other) = (
        json!({"a": 1, "b": {"c": 1, "d": 2}}),
        json!({"b": {"d": 2, "c": 1}, "a": 1}),
    );
    assert_eq!(digest(&one), digest(&other));
    assert_ne!(digest(&one), digest(&json!({"a": 1})));
}

//! The bundles that `import runloop` makes from a tools.json of version 1 and its policy.caps, and
//! what `pack` does with such a tools.json.

use serde_json::{Value, json};
use toolward_adapters::import::{self, ImportError, Imported, NewBundle, RunloopFiles};
use toolward_adapters::scaffold::{self, Attachment};
use toolward_author::{PackOptions, pack};
use toolward_bundle::content::Content;

use crate::{acme, check_path};

fn entry() -> Value {
    json!({
        "id": "mail.smtp_send", "description": "Sends a draft.",
        "transport": { "kind": "http", "method": "POST", "url": "https://api.mail.example/send" },
        "input_schema": { "$ref": "schema:request" }, "result_schema": { "type": "object" },
        "schema_refs": { "request": "mail.send.v1" },
        "capabilities": ["net:api.mail.example"], "secrets": ["runloop/mail/key"],
        "requires_confirmation": true, "budget": { "tokens": 10 },
    })
}

fn with(changes: &[(&str, Value)]) -> Value {
    let mut entry = entry();
    for (key, value) in changes {
        entry[*key] = value.clone();
    }
    entry
}

fn files(entries: &[Value]) -> RunloopFiles {
    let document = json!({ "version": 1, "tools": entries });
    RunloopFiles {
        tools_json: document.to_string().into_bytes(),
        schemas: [(
            "mail.send.v1.json".to_owned(),
            br#"{"type": "object"}"#.to_vec(),
        )]
        .into(),
        policy_caps: Some("[capabilities]\nnet = [\"api.mail.example\"]\n".to_owned()),
    }
}

fn import(files: &RunloopFiles) -> Result<Imported, ImportError> {
    let bundle = NewBundle {
        id: "acme.mail".to_owned(),
        ..acme()
    };
    import::runloop(files, &bundle)
}

#[test]
fn a_version_1_document_becomes_a_bundle_that_is_packed_as_it_is() {
    let given = files(&[entry()]);
    let imported = import(&given).unwrap();
    assert_eq!(imported.tools, ["mail.smtp_send"]);
    assert_eq!(imported.remarks, []);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("bundle");
    import::create(&place, &imported).unwrap();
    let report = check_path(&place);
    let codes: Vec<_> = report.diagnostics.iter().map(|one| one.code).collect();
    assert_eq!((codes, report.documents), (vec!["budget-not-counted"], 1));

    let packed = pack(&place, &PackOptions::default()).unwrap();
    assert_eq!(*packed.files["tools.json"], *given.tools_json);
    assert_eq!(packed.manifest.artifacts.tools.version, 1);
    let content = Content::from_dev(&place).unwrap();
    let tool = &content.tool("mail.smtp_send").unwrap().tool;
    assert_eq!(tool.approval.to_string(), "always");
    assert_eq!(tool.metadata["runloop"]["budget"], json!({ "tokens": 10 }));
    assert!(
        content
            .drivers_for(tool)
            .next()
            .unwrap()
            .driver
            .is_attachment
    );
}

#[test]
fn the_policy_gives_what_is_declared_and_what_policy_caps_covers() {
    let other = with(&[
        ("id", json!("mail.other")),
        (
            "capabilities",
            json!(["net:api.mail.example", "net:evil.example"]),
        ),
    ]);
    let policy = import(&files(&[entry(), other])).unwrap().policy;
    assert!(
        policy.contains("mutates = [\"network:api.mail.example\"]"),
        "{policy}"
    );
    assert!(!policy.contains("\"network:evil.example\""), "{policy}");
    assert!(
        policy.contains("# mail.other needs network:evil.example, which policy.caps does not give"),
        "{policy}"
    );
    assert!(
        policy.contains("env = \"TOOLWARD_CHOOSE\" # choose"),
        "{policy}"
    );
    assert!(
        policy.contains(
            "origin = \"https://host.invalid\" # choose; the driver reaches api.mail.example"
        ),
        "{policy}"
    );
    // It is a valid policy, but grants nothing yet.
    let read: toml::Table = policy.parse().unwrap();
    assert_eq!(read["grant"].as_array().unwrap().len(), 2);
    let without = RunloopFiles {
        policy_caps: None,
        ..files(&[entry()])
    };
    assert!(
        import(&without)
            .unwrap()
            .policy
            .starts_with("# There was no policy.caps")
    );
    for caps in [
        "capabilities = []",
        "[capabilities]\nnet = 1",
        "{",
        "[capabilities]\nnet = [\"a\nb\"]",
    ] {
        let broken = RunloopFiles {
            policy_caps: Some(caps.to_owned()),
            ..files(&[entry()])
        };
        assert_eq!(
            import(&broken).unwrap_err().code(),
            "runloop-caps-invalid",
            "{caps}"
        );
    }
}

#[test]
fn an_attachment_that_is_denied_is_said() {
    let program = with(&[
        ("id", json!("mail.local")),
        (
            "transport",
            json!({ "kind": "exec", "command": "/usr/bin/env" }),
        ),
    ]);
    let imported = import(&files(&[entry(), program])).unwrap();
    let [remark] = &imported.remarks[..] else {
        panic!("{:?}", imported.remarks);
    };
    assert_eq!(
        (remark.name.as_str(), remark.code),
        ("mail.local", "transport-command-refused")
    );
    assert!(
        imported
            .policy
            .contains("# mail.local gets nothing: its transport is denied"),
        "{}",
        imported.policy
    );
}

#[test]
fn what_a_host_would_refuse_is_refused_with_its_place() {
    for (changes, code) in [
        (("id", json!("Mail.Send")), "id-invalid"),
        (("id", json!("mail/send")), "id-invalid"),
        (("id", json!("../mail")), "id-invalid"),
        (
            ("input_schema", json!({ "$ref": "schema:nowhere" })),
            "schema-ref",
        ),
        (("description", json!("a\u{202e}b")), ""),
        (("unknown", json!(1)), "unknown-field"),
    ] {
        let found = import(&files(&[with(std::slice::from_ref(&changes))]));
        match (found, code) {
            // Prose is cleaned.
            (Ok(imported), "") => {
                let (_, bytes) = imported
                    .files
                    .iter()
                    .find(|(name, _)| name == "tools.json")
                    .unwrap();
                let text = std::str::from_utf8(bytes).unwrap();
                assert!(text.contains("a\\\\u{202e}b"), "{text}");
            }
            (Err(error), code) => {
                assert_eq!(error.code(), "import-definition-invalid", "{changes:?}");
                assert_eq!(error.diagnostics()[0].code, code, "{changes:?}");
            }
            (Ok(_), code) => panic!("{changes:?}: expected {code}"),
        }
    }
    let hidden = with(&[("budget", json!({ "a\u{200b}": 1 }))]);
    assert_eq!(
        import(&files(&[hidden])).unwrap_err().code(),
        "runloop-text-hidden"
    );
    for text in [
        "",
        "{",
        "[]",
        "{\"version\": 1}",
        "{\"version\": 2, \"tools\": []}",
        "{\"version\": 9}",
    ] {
        let broken = RunloopFiles {
            tools_json: text.as_bytes().to_vec(),
            ..files(&[])
        };
        assert!(import(&broken).is_err(), "{text}");
    }
    let many: Vec<Value> = (0..10_000)
        .map(|n| with(&[("id", json!(format!("a.b{n}")))]))
        .collect();
    assert!(import(&files(&many)).is_err());
}

#[test]
fn a_new_document_passes_check_and_pack() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("new");
    let entry = Attachment {
        id: "acme.parcel".to_owned(),
        description: "Says where a parcel is.".to_owned(),
        method: "GET".to_owned(),
        url: "https://parcels.example/v1/${number}?lang=${input.lang}".to_owned(),
        secret: Some("acme/key".to_owned()),
    };
    let bundle = NewBundle {
        id: "acme.parcel".to_owned(),
        ..acme()
    };
    scaffold::create(&place, &bundle, std::slice::from_ref(&entry)).unwrap();
    assert_eq!(check_path(&place).diagnostics, []);
    pack(&place, &PackOptions::default()).unwrap();
    let content = Content::from_dev(&place).unwrap();
    let tool = &content.tool("acme.parcel").unwrap().tool;
    assert_eq!(tool.inputs.value()["required"], json!(["lang", "number"]));
    assert!(content.drivers_for(tool).next().is_some());

    for (url, method, id, secret) in [
        ("http://parcels.example/", "GET", "a.b", None),
        ("https://*/", "GET", "a.b", None),
        ("https://parcels.example/${secret:k}", "GET", "a.b", None),
        ("https://parcels.example/", "SEND", "a.b", None),
        ("https://parcels.example/", "GET", "A.b", None),
        ("https://parcels.example/", "GET", "a.b", Some("a b}")),
        ("https://parcels.example/\r\nx", "GET", "a.b", None),
    ] {
        let wrong = Attachment {
            id: id.to_owned(),
            method: method.to_owned(),
            url: url.to_owned(),
            secret: secret.map(str::to_owned),
            ..entry.clone()
        };
        let gone = folder.path().join("wrong");
        let error = scaffold::create(&gone, &bundle, &[wrong]).unwrap_err();
        assert_eq!(error.code(), "scaffold-entry-invalid", "{url} {method}");
        assert!(!gone.exists());
    }
}

#[test]
fn a_denied_transport_gets_nothing_in_the_policy() {
    let denied = with(&[
        ("id", json!("mail.shell")),
        (
            "transport",
            json!({ "kind": "exec", "command": "/bin/sh", "args": ["-c", "id"] }),
        ),
    ]);
    let policy = import(&files(&[entry(), denied])).unwrap().policy;
    assert!(policy.contains("mail.shell gets nothing"), "{policy}");
    assert!(!policy.contains("has to allow by name"), "{policy}");
    assert!(!policy.contains("tool = \"mail.shell\""), "{policy}");
    assert!(policy.contains("tool = \"mail.smtp_send\""), "{policy}");
}

#[test]
fn an_entry_is_refused_alone_before_the_others_are_asked_for() {
    let good = Attachment {
        id: "mail.find".to_owned(),
        description: "Finds.".to_owned(),
        method: "GET".to_owned(),
        url: "https://api.example/find?q=${q}".to_owned(),
        secret: None,
    };
    assert!(scaffold::check_entry(&good).is_ok());
    for (id, url) in [
        ("Mail Find", good.url.as_str()),
        ("mail.find", "http://api.example/find"),
    ] {
        let (id, url) = (id.to_owned(), url.to_owned());
        let bad = Attachment {
            id,
            url,
            ..good.clone()
        };
        assert!(scaffold::check_entry(&bad).is_err(), "{bad:?}");
    }
}

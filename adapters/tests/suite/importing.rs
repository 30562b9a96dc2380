//! The bundles that `import aml` makes from definitions, including hostile ones. The output is read
//! again as a host reads it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolward_adapters::import::{self, AmlFile, AmlOptions, ImportError, Imported, NewBundle};
use toolward_contract::NoScope;
use toolward_contract::driver::{Driver, DriverKind};
use toolward_contract::tool::Tool;

use crate::{acme, check_path};

/// The fields of a valid definition.
fn definition() -> Value {
    json!({
        "spec_version": "1.2", "tool_id": "find_parcel", "version": "1.2.0", "status": "active",
        "meta": { "name": "Find a parcel", "description": "Says where a parcel is.", "owner": "logistics" },
        "type": "retrieval",
        "interface": {
            "input": { "type": "object", "properties": { "number": { "type": "string" } }, "required": ["number"] },
            "output": { "type": "object" },
        },
        "transport": {
            "type": "rest-api", "base_url": "https://parcels.example/v1", "endpoint": "GET /parcels/{number}",
            "credentials": { "scheme": "none" },
        },
        "use_guidance": { "use_when": ["asked"], "avoid_when": ["not asked"] },
    })
}

/// Returns the definition with these values at these pointers. A null removes a field.
fn with(changes: &[(&str, Value)]) -> Value {
    let mut definition = definition();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = definition.pointer_mut(parent).unwrap();
        let members = parent.as_object_mut().unwrap();
        match value {
            Value::Null => members.remove(key),
            value => members.insert(key.to_owned(), value.clone()),
        };
    }
    definition
}

fn options() -> AmlOptions {
    AmlOptions {
        bundle: acme(),
        ..AmlOptions::default()
    }
}

/// Returns a definition as a file. JSON is also YAML, and its escapes stay valid.
fn file(definition: &Value) -> AmlFile {
    AmlFile {
        name: "a.tool.md".to_owned(),
        text: format!("---\n{definition}\n---\n"),
    }
}

fn import_with(definition: &Value, options: &AmlOptions) -> Result<Imported, ImportError> {
    import::aml(&[file(definition)], options)
}

fn import(definition: &Value) -> Imported {
    import_with(definition, &options()).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the code with which a definition is refused.
fn refused(definition: &Value) -> &'static str {
    match import_with(definition, &options()) {
        Ok(imported) => panic!("{:?}", imported.tools),
        Err(error) => error.code(),
    }
}

fn texts(imported: &Imported) -> BTreeMap<&str, &str> {
    let files = imported.files.iter();
    files
        .map(|(name, bytes)| (name.as_str(), std::str::from_utf8(bytes).unwrap()))
        .collect()
}

fn tool(imported: &Imported) -> Tool {
    let text = texts(imported)["tools/acme.find-parcel/TOOL.md"];
    let read = Tool::parse("TOOL.md", text, &NoScope);
    assert!(read.diagnostics.is_empty(), "{:?}", read.diagnostics);
    read.value.unwrap()
}

fn driver(imported: &Imported) -> Option<Driver> {
    let text = *texts(imported).get("drivers/acme.find-parcel.driver/DRIVER.md")?;
    let read = Driver::parse("DRIVER.md", text);
    assert!(read.diagnostics.is_empty(), "{:?}", read.diagnostics);
    read.value
}

/// Returns `metadata.http` of the written driver.
fn request(imported: &Imported) -> Value {
    driver(imported).unwrap().implements[0].metadata["http"].clone()
}

fn codes(imported: &Imported) -> Vec<&'static str> {
    imported.remarks.iter().map(|one| one.code).collect()
}

#[test]
fn a_definition_becomes_a_contract_and_a_driver() {
    let imported = import(&definition());
    assert_eq!(imported.tools, ["acme.find-parcel"]);
    assert_eq!(codes(&imported), [""; 0]);
    let tool = tool(&imported);
    assert_eq!(tool.aliases, ["acme.find_parcel"]);
    assert_eq!(tool.version.to_string(), "1.2.0");
    assert_eq!(
        tool.description,
        "Says where a parcel is.\nUse when: asked\nDon't use when: not asked"
    );
    assert!(tool.idempotent && tool.mutates.is_empty() && tool.risk_level == 0);
    // Three attempts, and pauses of 500 ms and 1 s.
    assert_eq!(tool.timeout.as_millis(), 16_500);
    assert_eq!(tool.retry.unwrap().max_attempts, 3);
    assert_eq!(
        tool.requires.capabilities.to_string(),
        "[network:parcels.example]"
    );
    assert_eq!(tool.metadata["aml"]["owner"], "logistics");
    assert_eq!(
        request(&imported),
        json!({ "endpoint": "/parcels/${input.number}", "method": "GET", "timeout_ms": 5000 })
    );
    assert!(
        imported
            .policy
            .contains("requires = [\"network:parcels.example\"]")
    );

    // In a directory it is a bundle without findings.
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("bundle");
    import::create(&place, &imported).unwrap();
    assert_eq!(check_path(&place).diagnostics, []);
}

#[test]
fn an_action_asks_first_and_is_sent_once() {
    let imported = import(&with(&[
        ("/type", json!("action")),
        ("/transport/endpoint", json!("POST /parcels")),
        ("/use_guidance/side_effects", json!(["Sends it back."])),
    ]));
    let tool = tool(&imported);
    assert_eq!(tool.mutates.to_string(), "[network:parcels.example]");
    assert_eq!(
        (
            tool.approval.to_string().as_str(),
            tool.risk_level,
            tool.idempotent
        ),
        ("on-mutate", 2, false)
    );
    assert_eq!(tool.retry, None);
    assert!(tool.description.ends_with("Side effects: Sends it back."));
    assert_eq!(codes(&imported), ["aml-one-attempt"]);
    // An action by GET is still an action.
    let imported = import(&with(&[("/type", json!("action"))]));
    assert!(!self::tool(&imported).mutates.is_empty());
}

#[test]
fn statuses_have_their_meaning_and_say_whether_to_try_again() {
    let imported = import(&with(&[
        (
            "/error_codes",
            json!({
                "404": { "meaning": "None", "agent_action": "Ask again" },
                "503": { "meaning": "x".repeat(600) },
                "E1": { "meaning": "?" },
                "200": {},
            }),
        ),
        (
            "/transport/retry_policy",
            json!({ "max_attempts": 4, "on_status": [429, 503, 302] }),
        ),
    ]));
    let errors = request(&imported)["errors"].clone();
    assert_eq!(
        errors["404"],
        json!({ "code": "not_found", "message": "None", "hint": "Ask again" })
    );
    assert_eq!(errors["503"]["code"], "aml:503");
    assert!(errors["503"]["message"].as_str().unwrap().len() <= 500);
    assert_eq!(errors.as_object().unwrap().len(), 2);
    // Exactly the statuses that the definition lists.
    assert_eq!(request(&imported)["retry_statuses"], json!([429, 503]));
    assert_eq!(codes(&imported), ["aml-status-ignored"; 3]);
    assert_eq!(tool(&imported).retry.unwrap().max_attempts, 4);
    // An empty list disables retries.
    let imported = import(&with(&[(
        "/transport/retry_policy",
        json!({ "on_status": [] }),
    )]));
    assert_eq!(tool(&imported).retry, None);
    assert_eq!(request(&imported)["retry_statuses"], json!([]));
}

#[test]
fn the_time_of_a_request_is_not_that_of_all_attempts() {
    for (behaviour, attempts, all) in [
        ("retrieval", json!(4), 4 * 2000 + 500 + 1000 + 2000),
        ("retrieval", json!(1), 2000),
        ("action", json!(4), 2000),
    ] {
        let imported = import(&with(&[
            ("/type", json!(behaviour)),
            ("/transport/timeout_ms", json!(2000)),
            (
                "/transport/retry_policy",
                json!({ "max_attempts": attempts }),
            ),
        ]));
        assert_eq!(request(&imported)["timeout_ms"], 2000);
        assert_eq!(tool(&imported).timeout.as_millis(), all, "{behaviour}");
    }
    // A contract has at most one day.
    let imported = import(&with(&[("/transport/timeout_ms", json!(86_400_000))]));
    assert_eq!(tool(&imported).timeout.as_millis(), 86_400_000);
}

#[test]
fn a_credential_is_a_secret_in_a_header() {
    for (credentials, header, slug, noted) in [
        (
            json!({ "scheme": "bearer-token", "source": "env", "name": "PARCELS" }),
            json!({ "Authorization": "Bearer ${secrets.PARCELS}" }),
            "PARCELS",
            false,
        ),
        (
            json!({ "scheme": "api-key", "source": "env", "name": "K" }),
            json!({ "X-API-Key": "${secrets.K}" }),
            "K",
            true,
        ),
        (
            json!({ "scheme": "api-key", "source": "env", "name": "K", "header": "X-Parcels" }),
            json!({ "X-Parcels": "${secrets.K}" }),
            "K",
            false,
        ),
        (
            json!({ "scheme": "service-account", "source": "aws_secrets_manager", "secret_id": "prod/x" }),
            json!({ "Authorization": "Bearer ${secrets.prod/x}" }),
            "prod/x",
            true,
        ),
        // A name that is not a valid slug here is not changed to one.
        (
            json!({ "scheme": "bearer-token", "source": "env", "name": "a}${input.number" }),
            json!({ "Authorization": "Bearer ${secrets.acme.find-parcel}" }),
            "acme.find-parcel",
            false,
        ),
        (
            json!({ "scheme": "bearer-token", "source": "env", "name": "*" }),
            json!({ "Authorization": "Bearer ${secrets.acme.find-parcel}" }),
            "acme.find-parcel",
            false,
        ),
    ] {
        let imported = import(&with(&[("/transport/credentials", credentials)]));
        assert_eq!(request(&imported)["headers"], header);
        assert_eq!(
            tool(&imported).requires.secrets().collect::<Vec<_>>(),
            [slug]
        );
        assert_eq!(codes(&imported).contains(&"aml-header-assumed"), noted);
        assert!(
            imported.policy.contains(&format!("slug = \"{slug}\"")),
            "{}",
            imported.policy
        );
        assert!(imported.policy.contains("methods = [\"GET\"]"));
    }
}

#[test]
fn what_this_host_can_not_call_is_a_contract_only() {
    let secret = json!({ "scheme": "none" });
    for (kind, code) in [
        ("lambda", "aml-lambda-unsupported"),
        ("mcp", "aml-mcp-unsupported"),
        ("message-queue", "aml-message-queue-unsupported"),
        ("database", "aml-database-unsupported"),
        ("grpc", "aml-grpc-unsupported"),
    ] {
        let transport = json!({ "type": kind, "credentials": secret });
        let imported = import(&with(&[("/transport", transport)]));
        assert_eq!(codes(&imported), [code]);
        assert!(driver(&imported).is_none());
        assert!(tool(&imported).requires.is_empty());
        assert_eq!(imported.policy, "");
    }
    for (credentials, code) in [
        (json!({ "scheme": "iam-role" }), "aml-iam-role-unsupported"),
        (
            json!({ "scheme": "oauth2", "provider": "p", "function_id": "f" }),
            "aml-oauth2-unsupported",
        ),
    ] {
        let imported = import(&with(&[("/transport/credentials", credentials)]));
        assert_eq!(codes(&imported), [code]);
        assert!(driver(&imported).is_none());
    }
    let imported = import(&with(&[
        ("/type", json!("function")),
        ("/transport", Value::Null),
    ]));
    assert_eq!(codes(&imported), ["aml-function-without-driver"]);
    let imported = import(&with(&[("/type", json!("human"))]));
    assert_eq!(
        tool(&imported).requires.capabilities.to_string(),
        "[user:form]"
    );
    assert_eq!(tool(&imported).timeout.as_secs(), 600);
}

#[test]
fn a_person_is_asked_for_what_can_be_a_form() {
    let place = json!({ "type": "object", "properties": { "place": { "type": "string" } } });
    let secret = json!({ "scheme": "bearer-token", "source": "env", "name": "TOKEN" });
    let imported = import(&with(&[
        ("/type", json!("human")),
        ("/interface/output", place),
        ("/transport/credentials", secret),
    ]));
    assert_eq!(codes(&imported), ["aml-human-asked-here"]);
    assert_eq!(driver(&imported).unwrap().kind, DriverKind::Form);
    assert!(
        imported.policy.contains("requires = [\"user:form\"]"),
        "{}",
        imported.policy
    );
    // No request is made for any transport, and none is granted.
    assert!(!imported.policy.contains("network:"), "{}", imported.policy);
    assert!(
        !imported.policy.contains("[[secret]]"),
        "{}",
        imported.policy
    );

    for output in [
        json!({ "type": "object", "properties": { "all": { "type": "array" } } }),
        json!({ "type": "object", "properties": { "password": { "type": "string" } } }),
    ] {
        let imported = import(&with(&[
            ("/type", json!("human")),
            ("/interface/output", output),
        ]));
        assert_eq!(codes(&imported), ["aml-human-without-driver"]);
        assert!(driver(&imported).is_none());
        assert_eq!(imported.policy, "");
    }
}

#[test]
fn what_is_not_in_use_is_left_out() {
    let draft = with(&[("/status", json!("draft"))]);
    assert_eq!(refused(&draft), "aml-draft");
    let allowing = AmlOptions {
        allow_draft: true,
        ..options()
    };
    let imported = import_with(&draft, &allowing).unwrap();
    assert!(tool(&imported).description.starts_with("A draft.\n"));
    let disabled = with(&[("/status", json!("disabled"))]);
    assert_eq!(refused(&disabled), "aml-disabled");
    assert!(import_with(&disabled, &allowing).is_err());
    let deprecated = import(&with(&[("/status", json!("deprecated"))]));
    assert!(tool(&deprecated).description.starts_with("Deprecated.\n"));
    assert_eq!(tool(&deprecated).metadata["aml"]["status"], "deprecated");

    // Among other definitions it is left out, and the others are not.
    let two = [
        file(&disabled),
        file(&with(&[("/tool_id", json!("other"))])),
    ];
    let imported = import::aml(&two, &options()).unwrap();
    assert_eq!(imported.tools, ["acme.other"]);
    assert_eq!(imported.left_out[0].code, "aml-disabled");
}

#[test]
fn another_version_of_aml_has_to_be_named() {
    let other = with(&[("/spec_version", json!("1.3"))]);
    assert_eq!(refused(&other), "aml-spec-version-refused");
    let approving = AmlOptions {
        spec_version: Some("1.3".to_owned()),
        ..options()
    };
    assert!(import_with(&other, &approving).is_ok());
    assert!(import_with(&definition(), &approving).is_err());
}

#[test]
fn a_definition_that_breaks_a_rule_stops_the_import() {
    let broken = with(&[("/interface/output", Value::Null)]);
    let files = [file(&definition()), file(&broken)];
    let error = import::aml(&files, &options()).unwrap_err();
    assert_eq!(error.code(), "import-definition-invalid");
    assert_eq!(error.diagnostics()[0].code, "aml-field-missing");
}

#[test]
fn ids_that_fall_together_or_are_none_are_left_out() {
    let files =
        ["a_b", "a-b", "-ab", "ab_", "a__b"].map(|id| file(&with(&[("/tool_id", json!(id))])));
    let imported = import::aml(&files, &options()).unwrap();
    assert_eq!(imported.tools, ["acme.a-b", "acme.a--b"]);
    let left: Vec<_> = imported.left_out.iter().map(|left| left.code).collect();
    assert_eq!(
        left,
        [
            "import-name-taken",
            "import-name-unusable",
            "import-name-unusable"
        ]
    );
    for prefix in ["", "..", "a/b", "A", "a\nb", "$(id)", "a b"] {
        let options = AmlOptions {
            bundle: NewBundle {
                id: prefix.to_owned(),
                ..acme()
            },
            ..options()
        };
        let error = import_with(&definition(), &options).unwrap_err();
        assert!(
            matches!(error, ImportError::Name(..)),
            "{prefix:?}: {error}"
        );
    }
    // The driver's id must also fit.
    let long = AmlOptions {
        bundle: NewBundle {
            id: "a".repeat(70),
            ..acme()
        },
        ..options()
    };
    assert_eq!(
        import_with(&definition(), &long).unwrap_err().code(),
        "import-name-unusable"
    );
}

#[test]
fn a_request_without_a_place_is_said_to_lack_it() {
    let definition = with(&[("/transport/base_url", json!(""))]);
    let refused = import_with(&definition, &options()).unwrap_err();
    assert!(
        refused.to_string().contains("`base_url` is missing"),
        "{refused}"
    );
}

#[test]
fn a_request_that_could_go_elsewhere_is_refused() {
    for (base, code) in [
        ("http://parcels.example/v1", "aml-url-insecure"),
        ("HTTP://parcels.example", "aml-url-insecure"),
        ("", "aml-request-unusable"),
        ("ftp://parcels.example", "aml-request-unusable"),
        ("https://*.example", "aml-request-unusable"),
        ("https://{host}.example", "aml-request-unusable"),
        ("https://u:p@parcels.example", "aml-request-unusable"),
        ("https://parcels.example/../x", "import-invalid"),
        ("https://parcels.example/${secrets.X}", "import-invalid"),
        ("https://parcels.example/v1?x=1", "import-invalid"),
        ("https://parcels.example\r\nx: y/", "aml-request-unusable"),
    ] {
        let definition = with(&[("/transport/base_url", json!(base))]);
        assert_eq!(refused(&definition), code, "{base:?}");
    }
    for endpoint in [
        "GET /${secrets.OTHER}",
        "GET /{number}/../{number}",
        "GET /%2e%2e/{number}",
        "GET //evil.example/{number}",
        "GET https://evil.example/{number}",
        "GET /{number} HTTP/1.1\r\nx: y",
        "GET /{unknown}",
        "TRACE /{number}",
        "GET /{number}#{number}",
    ] {
        let changes = [
            ("/transport/endpoint", json!(endpoint)),
            ("/interface/input/additionalProperties", json!(false)),
        ];
        let code = refused(&with(&changes));
        assert!(
            ["aml-request-unusable", "import-invalid"].contains(&code),
            "{endpoint:?}: {code}"
        );
    }
    for header in [
        "Host",
        "X-A\r\nX-B",
        "Content-Length",
        "Proxy-Authorization",
        "",
        " ",
    ] {
        let credentials = json!({ "scheme": "api-key", "source": "env", "name": "K", "header": format!("{header}:") });
        let definition = with(&[("/transport/credentials", credentials)]);
        assert_eq!(refused(&definition), "import-invalid", "{header:?}");
    }
}

#[test]
fn inputs_without_a_place_go_into_the_query() {
    let input = json!({ "type": "object", "properties": { "number": {}, "lang": {}, "page": {} } });
    let imported = import(&with(&[
        ("/interface/input", input),
        (
            "/transport/endpoint",
            json!("GET /parcels/{number}?lang={lang}&v=2"),
        ),
    ]));
    assert_eq!(
        request(&imported)["query_template"],
        json!({ "lang": "${input.lang}", "v": "2", "page": "${input.page}" })
    );
    assert_eq!(codes(&imported), ["aml-inputs-in-query"]);
    for name in ["a b", "a}", "${secrets.X}", "", "ü"] {
        let input = json!({ "type": "object", "properties": { "number": {}, (name): {} } });
        let definition = with(&[("/interface/input", input)]);
        assert_eq!(refused(&definition), "aml-request-unusable", "{name:?}");
    }
}

#[test]
fn foreign_text_stays_text() {
    let hostile = "x\r\n---\nid: evil\n*a &b !!c \"'`$(id)\u{202e}\u{200b}\u{1b}[31m\u{7}\u{85}\u{2028}\u{e0041}";
    let imported = import(&with(&[
        ("/meta/name", json!(hostile)),
        ("/meta/description", json!(hostile)),
        ("/meta/owner", json!(hostile)),
        ("/meta/last_updated", json!(hostile)),
        ("/meta/tags", json!([hostile])),
        ("/use_guidance/use_when", json!([hostile])),
        ("/use_guidance/side_effects", json!(hostile)),
        (
            "/error_codes",
            json!({ "404": { "meaning": hostile, "agent_action": hostile }, (hostile): {} }),
        ),
        (
            "/interface/input/properties/number/description",
            json!(hostile),
        ),
    ]));
    assert_eq!(imported.tools, ["acme.find-parcel"]);
    let tool = tool(&imported);
    assert_eq!(tool.id.as_str(), "acme.find-parcel");
    assert_eq!(tool.aliases, ["acme.find_parcel"]);
    assert!(
        tool.name.starts_with("x\\r\\n---\\nid: evil"),
        "{}",
        tool.name
    );
    let hidden = |c: char| c != '\n' && toolward_bundle::text::is_hidden(c);
    for (name, text) in texts(&imported) {
        assert!(!text.contains(hidden), "{name}: {text:?}");
        assert!(!name.contains("..") && !name.starts_with('/'), "{name}");
        let fences = text.lines().filter(|line| *line == "---").count();
        assert!(name == "bundle.toml" || fences == 2, "{name}: {text}");
    }
    for text in imported
        .remarks
        .iter()
        .map(|one| &one.message)
        .chain([&imported.policy])
    {
        assert!(!text.contains(hidden), "{text:?}");
    }
}

#[test]
fn what_nobody_sees_is_let_into_no_schema() {
    for schema in [
        json!({ "type": "object", "properties": { "a\u{202e}b": {} } }),
        json!({ "type": "object", "enum": ["a\u{200b}"] }),
        json!({ "type": "object", "const": { "k": ["\u{e0041}"] } }),
        json!({ "type": "object", "default": "\u{1b}" }),
    ] {
        let definition = with(&[("/interface/output", schema.clone())]);
        assert_eq!(refused(&definition), "aml-text-hidden", "{schema}");
    }
}

#[test]
fn what_is_too_large_is_refused_in_words() {
    let many: serde_json::Map<String, Value> =
        (0..10_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let input = json!({ "type": "object", "properties": many });
    let error = import_with(&with(&[("/interface/input", input)]), &options()).unwrap_err();
    assert_eq!(error.code(), "import-definition-invalid");
    assert!(!error.diagnostics().is_empty());
    let error = import_with(
        &with(&[("/meta/owner", json!("x".repeat(2_000_000)))]),
        &options(),
    );
    assert_eq!(error.unwrap_err().code(), "import-definition-invalid");
    // It fits the limits of a definition, but not those of a contract.
    let many: Vec<Value> = (0..1900).map(|n| json!(format!("w{n}"))).collect();
    let imported = import(&with(&[("/use_guidance/use_when", json!(many))]));
    assert_eq!(codes(&imported), ["aml-description-cut"]);
    for (field, value) in [
        ("/transport/timeout_ms", json!(0)),
        ("/transport/timeout_ms", json!("soon")),
        ("/transport/timeout_ms", json!(1e300)),
        ("/transport/retry_policy", json!({ "max_attempts": 1000 })),
        ("/transport/retry_policy", json!({ "max_attempts": "many" })),
    ] {
        assert_eq!(
            refused(&with(&[(field, value.clone())])),
            "import-invalid",
            "{value}"
        );
    }
}

#[test]
fn the_whole_transport_is_kept_in_the_metadata() {
    let transport = json!({
        "type": "lambda", "provider": "aws", "function_id": "arn:aws:lambda:eu-west-1:1:function:find",
        "invocation_type": "RequestResponse", "credentials": { "scheme": "iam-role" },
    });
    let imported = import(&with(&[("/transport", transport.clone())]));
    assert_eq!(tool(&imported).metadata["aml"]["transport"], transport);
}

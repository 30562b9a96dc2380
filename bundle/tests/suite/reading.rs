//! Reading contents from verified bytes.

use toolward_bundle::content::{Content, ContentOrigin};
use toolward_bundle::inspect::Inspection;
use toolward_signing::trust::TrustStore;

use crate::demo::{DRIVER, Demo, TOOL, component, handler};
use crate::support::{forged, read_signed, read_trusting};

#[test]
fn a_signed_bundle_gives_its_contracts_drivers_and_components() {
    let content = read_signed(&Demo::new().pack()).unwrap();
    let tool = &content.tool("demo.greet").unwrap().tool;
    let drivers: Vec<_> = content.drivers_for(tool).collect();
    assert_eq!(drivers.len(), 1);
    let found = drivers[0].component.as_ref().unwrap();
    assert_eq!(*found.read().unwrap(), *handler());
    assert!(matches!(content.origin, ContentOrigin::Signed { .. }));
    assert_eq!(content.index.tools.len(), 1);
}

#[test]
fn a_directory_under_work_is_marked_as_such() {
    let demo = Demo::new();
    let content = Content::from_dev(demo.path()).unwrap();
    assert!(content.origin.is_dev());
    assert_eq!(
        content.origin.publisher(),
        format!("dev:{}", demo.path().canonicalize().unwrap().display())
    );
    assert_eq!(content.tools.len(), 1);
}

#[test]
fn a_tools_json_that_says_otherwise_than_the_contract_is_refused() {
    let packed = Demo::new().pack();
    let index = String::from_utf8(packed.files["tools.json"].to_vec()).unwrap();
    for (from, to) in [
        ("Greets.", "Harmless."),
        (
            "\"input_schema\"",
            "\"requires_confirmation\": true, \"input_schema\"",
        ),
        ("demo-greet", "other-driver"),
        ("\"greeting\"", "\"other\""),
    ] {
        assert!(index.contains(from), "{from}: {index}");
        let changed = index.replace(from, to);
        let error =
            read_signed(&forged(&packed, &[("tools.json", changed.as_bytes())])).unwrap_err();
        assert!(!error.diagnostics().is_empty(), "{from}: {error}");
    }
    let empty = br#"{"version": 2, "tools": []}"#;
    read_signed(&forged(&packed, &[("tools.json", empty)])).unwrap_err();
}

#[test]
fn a_contract_that_does_not_parse_is_refused_with_its_place() {
    let packed = Demo::new().pack();
    let broken = TOOL.replace("version: 1.0.0", "version: one");
    let changes = [("tools/demo.greet/TOOL.md", broken.as_bytes())];
    let error = read_signed(&forged(&packed, &changes)).unwrap_err();
    let first = &error.diagnostics()[0];
    assert_eq!(first.file, "tools/demo.greet/TOOL.md");
    assert_eq!(first.line, 5);
}

#[test]
fn every_id_has_to_lie_inside_the_publishers_prefixes() {
    let packed = Demo::new().pack();
    // The prefix `demo` does not cover the driver's id `demo-greet`, which is a different segment.
    for (prefixes, expected) in [
        (r#""demo", "demo-greet""#, None),
        (r#""demo""#, Some("driver")),
        (r#""demo-greet", "demo.greet""#, None),
    ] {
        let result = read_trusting(&packed, |key| {
            TrustStore::from_toml(&format!(
                "[[publisher]]\nname = \"acme\"\nprefixes = [{prefixes}]\nkeys = ['''\n{}''']\n",
                key.public().to_pem().unwrap()
            ))
            .unwrap()
        });
        match (result, expected) {
            (Ok(_), None) => {}
            (Err(error), Some(kind)) => {
                assert_eq!(error.code(), "prefix-not-granted");
                assert!(error.to_string().contains(kind), "{error}");
            }
            (result, expected) => panic!("{prefixes}: {result:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn an_alias_has_to_lie_inside_the_publishers_prefixes_too() {
    let read = |alias: &str| {
        let demo = Demo::new();
        let head = TOOL.strip_suffix("---\n").unwrap_or(TOOL);
        let aliases = format!("metadata: {{ toolward: {{ aliases: [{alias}] }} }}\n---\n");
        demo.write("tools/demo.greet/TOOL.md", format!("{head}{aliases}"));
        read_trusting(&demo.pack(), |key| {
            TrustStore::from_toml(&format!(
                "[[publisher]]\nname = \"acme\"\nprefixes = [\"demo\", \"demo-greet\"]\nkeys = ['''\n{}''']\n",
                key.public().to_pem().unwrap()
            ))
            .unwrap()
        })
    };
    let content = read("demo.hello").unwrap();
    assert_eq!(content.tools[0].tool.aliases, ["demo.hello"]);
    let error = read("bank.pay").unwrap_err();
    assert_eq!(error.code(), "prefix-not-granted");
    assert!(error.to_string().contains("bank.pay"), "{error}");
}

fn refused_component(wasm: &[u8], driver: &str) -> (&'static str, String) {
    let demo = Demo::new();
    demo.write("drivers/demo-greet/DRIVER.md", driver);
    let packed = demo.pack();
    let changes = [("drivers/demo-greet/driver.wasm", wasm)];
    let error = read_signed(&forged(&packed, &changes)).unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn a_driver_of_another_world_is_refused_with_what_it_exports() {
    let (code, message) = refused_component(&component("wasi:cli/run@0.2.3", &[]), DRIVER);
    assert_eq!(code, "component-world");
    assert!(message.contains("wasi:cli/run@0.2.3"), "{message}");

    let future = component("toolward:driver/handler@0.9.0", &[]);
    assert_eq!(refused_component(&future, DRIVER).0, "component-world");
}

#[test]
fn a_driver_that_is_no_component_is_refused() {
    let module = wat::parse_str("(module)").unwrap();
    assert_eq!(refused_component(&module, DRIVER).0, "component-invalid");
    assert_eq!(refused_component(b"text", DRIVER).0, "component-invalid");
}

#[test]
fn imports_that_no_host_provides_are_refused_by_name() {
    let wasm = component("toolward:driver/handler@0.1.0", &["wasi:nn/graph@0.2.0"]);
    let (code, message) = refused_component(&wasm, DRIVER);
    assert_eq!(code, "component-import");
    assert!(message.contains("wasi:nn/graph@0.2.0"), "{message}");
}

#[test]
fn http_needs_a_declaration_in_the_driver_and_in_the_contract() {
    let wasm = component(
        "toolward:driver/handler@0.1.0",
        &["wasi:http/outgoing-handler@0.2.3"],
    );
    assert_eq!(refused_component(&wasm, DRIVER).0, "component-undeclared");

    let egress = DRIVER.replace(
        "implements:",
        "network:\n  egress: [api.example.com]\nimplements:",
    );
    assert_eq!(refused_component(&wasm, &egress).0, "component-undeclared");

    let demo = Demo::new();
    let network = TOOL.replace(
        "inputs:",
        "requires:\n  network: [api.example.com]\ninputs:",
    );
    demo.write("tools/demo.greet/TOOL.md", network);
    demo.write("drivers/demo-greet/DRIVER.md", egress);
    demo.write("drivers/demo-greet/driver.wasm", wasm);
    read_signed(&demo.pack()).unwrap();
}

#[test]
fn two_documents_with_one_id_are_refused() {
    let demo = Demo::new();
    demo.write("tools/other/TOOL.md", TOOL);
    let error = Content::from_dev(demo.path()).unwrap_err();
    assert_eq!(error.code(), "duplicate-id");
}

#[test]
fn a_role_that_contradicts_the_name_is_refused() {
    let mut packed = Demo::new().pack();
    for entry in &mut packed.manifest.artifacts.files {
        if entry.path.as_str().ends_with("TOOL.md") {
            entry.role = toolward_signing::manifest::FileRole::Other;
        }
    }
    packed.manifest_bytes = packed.manifest.to_bytes().unwrap();
    assert_eq!(read_signed(&packed).unwrap_err().code(), "role-mismatch");
}

#[test]
fn a_manifest_that_gives_the_index_another_version_is_refused() {
    let mut packed = Demo::new().pack();
    packed.manifest.artifacts.tools.version = 7;
    packed.manifest_bytes = packed.manifest.to_bytes().unwrap();
    assert_eq!(read_signed(&packed).unwrap_err().code(), "tools-version");
}

#[test]
fn an_inspection_of_what_the_manifest_does_not_list_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    toolward_author::Sealed::new(&Demo::new().pack())
        .write_directory(&path)
        .unwrap();
    let tool = path.join("tools/demo.greet/TOOL.md");
    std::fs::write(&tool, TOOL.replace("Greets", "Steals")).unwrap();
    let code = |result: Result<Inspection, toolward_bundle::ReadError>| result.unwrap_err().code();
    assert_eq!(code(Inspection::unverified(&path)), "digest-mismatch");
    std::fs::write(&tool, TOOL).unwrap();
    std::fs::write(path.join("extra"), "").unwrap();
    assert_eq!(code(Inspection::unverified(&path)), "file-extra");
}

#[test]
fn an_inspection_says_whether_anything_was_verified() {
    let demo = Demo::new();
    let packed = demo.pack();
    let verified = Inspection::of(&read_signed(&packed).unwrap());
    assert!(verified.verified);

    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    toolward_author::Sealed::new(&packed)
        .write_directory(&path)
        .unwrap();
    let claimed = Inspection::unverified(&path).unwrap();
    assert!(!claimed.verified);
    assert_eq!(claimed.publisher, "acme");
    assert_eq!(claimed.tools[0].id, verified.tools[0].id);
    assert_eq!(claimed.manifest_digest, verified.manifest_digest);
}

#[test]
fn a_path_in_implements_is_followed_to_the_id_that_stands_there() {
    for path in [
        "../../tools/odd-name/TOOL.md",
        "./tools/odd-name/TOOL.md",
        "tools/odd-name/TOOL.md",
    ] {
        let demo = Demo::new();
        demo.remove("tools/demo.greet/TOOL.md");
        demo.write("tools/odd-name/TOOL.md", TOOL);
        let driver = DRIVER.replace("- tool: demo.greet", &format!("- tool: {path}"));
        demo.write("drivers/demo-greet/DRIVER.md", driver);
        let content = Content::from_dev(demo.path()).unwrap();
        let tool = &content.tool("demo.greet").unwrap().tool;
        assert_eq!(content.drivers_for(tool).count(), 1, "{path}");
    }
}

#[test]
fn a_path_in_implements_that_leads_nowhere_is_refused() {
    for path in [
        "../../tools/demo.other/TOOL.md",
        "../../../tools/demo.greet/TOOL.md",
        "./demo.greet/TOOL.md",
    ] {
        let demo = Demo::new();
        let driver = DRIVER.replace("- tool: demo.greet", &format!("- tool: {path}"));
        demo.write("drivers/demo-greet/DRIVER.md", driver);
        let refused = Content::from_dev(demo.path()).unwrap_err();
        assert_eq!(refused.code(), "tool-reference-missing", "{path}");
    }
}

#[test]
fn a_driver_of_a_forbidden_kind_takes_nothing_from_the_rest_of_its_bundle() {
    let demo = Demo::new();
    demo.write(
        "tools/demo.greet/TOOL.md",
        TOOL.replace(
            "version: 1.0.0",
            "version: 1.0.0\ndriver_constraints: { forbid: [cli] }",
        ),
    );
    demo.write(
        "drivers/a.cli/DRIVER.md",
        DRIVER
            .replace("id: demo-greet", "id: a.cli")
            .replace("kind: component\ncomponent: driver.wasm", "kind: cli"),
    );
    let content = Content::from_dev(demo.path()).unwrap();
    assert_eq!(content.drivers.len(), 2);
    let codes: Vec<_> = content.warnings.iter().map(|found| found.code).collect();
    assert!(codes.contains(&"driver-kind-forbidden"), "{codes:?}");
    // tools.json does not name it either, although its id sorts first.
    let index = std::str::from_utf8(&content.index.to_bytes())
        .unwrap()
        .to_owned();
    assert!(
        index.contains("\"demo-greet\"") && !index.contains("a.cli"),
        "{index}"
    );
}

#[test]
fn the_hint_about_a_component_of_another_world_names_a_macro_that_there_is() {
    let bytes = component("a:b/c@1.0.0", &[]);
    let demo = Demo::new();
    demo.write("drivers/demo-greet/driver.wasm", bytes);
    let refused = Content::from_dev(demo.path()).unwrap_err();
    assert_eq!(refused.code(), "component-world");
    let hint = refused.hint().unwrap();
    let (_, named) = hint.split_once("toolward_guest::").unwrap();
    let (name, _) = named.split_once('!').unwrap();
    let sdk = concat!(env!("CARGO_MANIFEST_DIR"), "/../guest-sdk/src/lib.rs");
    let sdk = std::fs::read_to_string(sdk).unwrap();
    assert!(sdk.contains(&format!("macro_rules! {name} ")), "{hint}");
}

#[test]
fn an_inspection_shows_what_a_driver_and_a_budget_claim() {
    let demo = Demo::new();
    let tool = TOOL.replace(
        "outputs:",
        "requires: { network: [api.example] }\nmetadata: { runloop: { budget: { tokens: 3 } } }\noutputs:",
    );
    demo.write("tools/demo.greet/TOOL.md", tool);
    demo.remove("drivers/demo-greet/driver.wasm");
    demo.write(
        "drivers/demo-greet/DRIVER.md",
        "---\nid: demo-greet\nname: Greet\ndescription: Greets.\nversion: 1.0.0\nkind: http\n\
         base_url: https://api.example/v1\nnetwork: { egress: [api.example] }\nregion: eu\n\
         policy_tags: [pii-safe]\nstreaming: { transport: sse }\nrate_limit: { burst: 2 }\n\
         health_check: { path: /up }\ncost_override: { cost_units_per_call: 2 }\n\
         implements:\n  - tool: ../../tools/demo.greet/TOOL.md\n    version: 1.x\n\
         \u{20}   metadata: { http: { endpoint: /greet, method: GET } }\n---\n",
    );
    let shown = Inspection::of(&Content::from_dev(demo.path()).unwrap());
    assert_eq!(
        serde_json::to_value(&shown.tools[0].budget).unwrap(),
        serde_json::json!({ "tokens": 3 })
    );
    let driver = &shown.drivers[0];
    assert!(
        driver.implements[0].starts_with("demo.greet "),
        "{driver:?}"
    );
    assert_eq!(driver.costs[0].tool, "demo.greet");
    assert_eq!(driver.region, ["eu"]);
    assert_eq!(driver.policy_tags, ["pii-safe"]);
    assert_eq!(driver.requests, ["GET https://api.example/v1/greet"]);
    assert_eq!(
        serde_json::to_value(&driver.unused).unwrap(),
        serde_json::json!({
            "health_check": { "path": "/up" },
            "rate_limit": { "burst": 2 },
            "streaming": { "transport": "sse" },
        })
    );
}

#[test]
fn a_path_to_a_contract_binds_to_nothing_in_a_bundle_without_contracts() {
    let demo = Demo::new();
    demo.remove("tools/demo.greet/TOOL.md");
    let by_path = DRIVER.replace("tool: demo.greet", "tool: ./tools/demo.greet/TOOL.md");
    demo.write("drivers/demo-greet/DRIVER.md", by_path);
    let content = Content::from_dev(demo.path()).unwrap();
    let found: Vec<&str> = content.warnings.iter().map(|one| one.code).collect();
    assert_eq!(found, ["tool-reference-unbound"]);
    let hint = content.warnings[0].hint.as_deref();
    assert_eq!(hint, Some("for a contract of another bundle write its id"));
    // The folder's name could be the id of a contract in another bundle; the driver does not
    // implement that contract.
    let version = semver::Version::new(1, 0, 0);
    let driver = &content.drivers[0].driver;
    assert!(driver.implements_tool("demo.greet", &version).is_none());
    // If the bundle has a contract, a path to another file is an error.
    let demo = Demo::new();
    let by_path = DRIVER.replace("tool: demo.greet", "tool: ./tools/other/TOOL.md");
    demo.write("drivers/demo-greet/DRIVER.md", by_path);
    let error = Content::from_dev(demo.path()).unwrap_err();
    assert_eq!(error.code(), "tool-reference-missing");
}

#[test]
fn a_driver_names_its_contract_by_the_file_or_its_folder() {
    for (driver, tool) in [
        ("tools/demo.greet/DRIVER.md", "./TOOL.md"),
        ("tools/demo.greet/DRIVER.md", "TOOL.md"),
        ("tools/demo.greet/DRIVER.md", "./"),
        ("drivers/demo-greet/DRIVER.md", "./tools/demo.greet"),
        ("drivers/demo-greet/DRIVER.md", "../../tools/demo.greet/"),
        ("drivers/demo-greet/DRIVER.md", ".tools/demo.greet/TOOL.md"),
    ] {
        let demo = Demo::new();
        demo.remove("drivers/demo-greet/DRIVER.md");
        let text = DRIVER.replace("tool: demo.greet", &format!("tool: {tool}"));
        demo.write(driver, text);
        let component = driver.replace("DRIVER.md", "driver.wasm");
        demo.write(&component, handler());
        let content =
            Content::from_dev(demo.path()).unwrap_or_else(|error| panic!("{tool}: {error}"));
        let tool = &content.tools[0].tool;
        assert_eq!(content.drivers_for(tool).count(), 1);
    }
}

#[test]
fn a_bundle_has_several_majors_of_one_contract_and_of_one_driver() {
    let demo = Demo::new();
    let second = |text: &str| text.replace("1.0.0", "2.0.0");
    demo.write("tools/demo.greet-2/TOOL.md", second(TOOL));
    demo.write("drivers/demo-greet-2/DRIVER.md", second(DRIVER));
    demo.write("drivers/demo-greet-2/driver.wasm", handler());
    let content = read_signed(&demo.pack()).unwrap();
    let majors: Vec<String> = content
        .tools
        .iter()
        .map(|entry| entry.tool.major_id())
        .collect();
    assert_eq!(majors, ["demo.greet@1", "demo.greet@2"]);
    for entry in &content.tools {
        let drivers: Vec<String> = content
            .drivers_for(&entry.tool)
            .map(|one| one.driver.major_id())
            .collect();
        assert_eq!(
            drivers,
            [format!("demo-greet@{}", entry.tool.version.major)]
        );
    }
    assert_eq!(content.tool("demo.greet").unwrap().tool.version.major, 2);
    assert_eq!(content.tool("demo.greet@1").unwrap().tool.version.major, 1);
    // The same major twice is refused.
    demo.write("tools/demo.greet-2/TOOL.md", TOOL.replace("1.0.0", "1.1.0"));
    let error = Content::from_dev(demo.path()).unwrap_err();
    assert_eq!(error.code(), "duplicate-id");
}

#[test]
fn an_action_that_changes_what_is_no_scope_of_its_class_is_packed_with_its_tool() {
    let demo = Demo::new();
    let action = "---\nschema: action/v1\nid: workspace:describe\ndescription: Describes it.\n\
                  mutates: [\"workspace:metadata\"]\napproval: on-mutate\n---\n";
    demo.write("actions/workspace-describe/ACTION.md", action);
    let fields = "mutates: [\"workspace:metadata\"]\napproval: on-mutate\nimplements: workspace:describe\ninputs:";
    demo.write("tools/demo.greet/TOOL.md", TOOL.replace("inputs:", fields));
    let content = read_signed(&demo.pack()).unwrap();
    let mutates = content.tools[0].tool.mutates.to_string();
    assert_eq!(mutates, "[workspace:metadata]");
}

//! Changes of a bundle's surface, and their descriptions.

use toolward_bundle::Content;
use toolward_bundle::dev::PackedBundle;
use toolward_bundle::surface::{BundleSurface, Version};
use toolward_signing::Digest;
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

use crate::demo::{BUNDLE, DRIVER, Demo, TOOL};
use crate::support::{index_only, read_signed, read_trusting};

/// The surface of a bundle that a publisher of the trust store signed. The publisher's name doesn't
/// depend on the key.
fn surface(packed: &PackedBundle) -> BundleSurface {
    surface_by("acme", packed)
}

fn surface_by(publisher: &str, packed: &PackedBundle) -> BundleSurface {
    let trust = |key: &SigningKey| {
        let pem = key.public().to_pem().unwrap();
        TrustStore::from_toml(&format!(
            "[[publisher]]\nname = \"{publisher}\"\nkeys = [\"\"\"\n{pem}\"\"\"]\nprefixes = [\"demo\", \"demo-greet\"]\n"
        ))
        .unwrap()
    };
    BundleSurface::of(&read_trusting(packed, trust).unwrap())
}

fn changed(tool: &str, driver: &str) -> BundleSurface {
    let demo = Demo::new();
    demo.write("tools/demo.greet/TOOL.md", tool);
    demo.write("drivers/demo-greet/DRIVER.md", driver);
    surface(&demo.pack())
}

#[test]
fn a_release_with_other_code_and_version_has_the_same_surface() {
    let demo = Demo::new();
    let old = surface(&demo.pack());
    demo.write(
        "bundle.toml",
        BUNDLE
            .replace("sequence = 1", "sequence = 2")
            .replace("1.0.0", "1.0.1"),
    );
    demo.write("README.md", "Other words.\n");
    let tool = TOOL.replace("version: 1.0.0", "version: 1.1.0");
    demo.write("tools/demo.greet/TOOL.md", tool + "\nOther prose.\n");
    let new = surface(&demo.pack());
    assert_eq!(old.digest(), new.digest());
    assert!(old.difference(&new).is_empty());
}

#[test]
fn a_changed_description_is_a_changed_surface_and_the_only_change_shown() {
    let old = changed(TOOL, DRIVER);
    let new = changed(
        &TOOL.replace("Greets.", "Greets, and first reads your mail."),
        DRIVER,
    );
    assert_ne!(old.digest(), new.digest());
    let difference = old.difference(&new);
    assert_eq!(
        difference.to_string(),
        "tool demo.greet@1: description: \"Greets.\" → \"Greets, and first reads your mail.\"\n"
    );
    let json = serde_json::to_value(&difference).unwrap();
    assert_eq!(json[0]["kind"], "tool");
    assert_eq!(json[0]["field"][0], "description");
    assert_eq!(json[0]["from"], "Greets.");
}

#[test]
fn each_thing_that_a_model_or_a_policy_sees_counts() {
    let old = changed(TOOL, DRIVER);
    let add = |line: &str| TOOL.replace("version: 1.0.0\n", &format!("version: 1.0.0\n{line}\n"));
    for (tool, field) in [
        (TOOL.replace("name: Greet\n", "name: Welcome\n"), "name"),
        (
            TOOL.replace(
                "name: { type: string }",
                "name: { type: string, maxLength: 9 }",
            ),
            "inputs",
        ),
        (
            TOOL.replace(
                "greeting: { type: string }",
                "greeting: { type: string, maxLength: 9 }",
            ),
            "outputs",
        ),
        (add("approval: always"), "approval"),
        (add("risk_level: 2"), "risk_level"),
        (add("requires: { network: [api.example.com] }"), "requires"),
        (add("mutates: [\"network:api.example.com\"]"), "mutates"),
        (add("tags: [mail]"), "tags"),
        (add("metadata: { mcp: { name: mail } }"), "mcp_name"),
    ] {
        let new = changed(&tool, DRIVER);
        let difference = old.difference(&new);
        let fields: Vec<_> = difference
            .changes
            .iter()
            .map(|change| &change.field[0])
            .collect();
        assert!(
            fields.iter().any(|found| *found == field),
            "{field}: {difference}"
        );
        assert_ne!(old.digest(), new.digest(), "{field}");
    }
    for (driver, field) in [
        (
            DRIVER.replace(
                "kind: component\n",
                "kind: component\nnetwork: { egress: [api.example.com] }\n",
            ),
            "egress",
        ),
        (
            DRIVER.replace(
                "kind: component\n",
                "kind: component\nrequires: { secrets: [token] }\n",
            ),
            "requires",
        ),
    ] {
        let difference = old.difference(&changed(TOOL, &driver));
        assert_eq!(difference.changes[0].kind, "driver");
        assert_eq!(difference.changes[0].field[0], field);
    }
}

#[test]
fn another_publisher_is_another_surface() {
    let packed = Demo::new().pack();
    let mut other = packed.clone();
    other.manifest.publisher = "zenith".to_owned();
    other.manifest_bytes = other.manifest.to_bytes().unwrap();
    let (old, new) = (surface(&packed), surface_by("zenith", &other));
    let difference = old.difference(&new);
    assert_eq!(
        difference.to_string(),
        "bundle: publisher: \"acme\" → \"zenith\"\n"
    );
}

#[test]
fn a_prompt_that_comes_changes_or_goes_is_told_by_its_path() {
    let demo = Demo::new();
    let without = surface(&demo.pack());
    let head = "---\nid: demo.hello\nname: Hello\ndescription: Says hello.\n---\n";
    demo.write("prompts/hello.md", format!("{head}Be kind.\n"));
    let with = surface(&demo.pack());
    demo.write("prompts/hello.md", format!("{head}Be unkind.\n"));
    let other = surface(&demo.pack());
    let came = without.difference(&with).to_string();
    assert!(came.starts_with("prompt prompts/hello.md: new: "), "{came}");
    assert_eq!(with.difference(&other).changes[0].field, ["blake3"]);
    assert_eq!(
        with.difference(&without).to_string(),
        "prompt prompts/hello.md: gone\n"
    );
}

#[test]
fn hidden_characters_of_a_change_are_made_visible() {
    let schema = "name: { type: string, description: \"a\\u202eb\" }";
    let new = TOOL.replace("name: { type: string }", schema);
    let difference = changed(TOOL, DRIVER).difference(&changed(&new, DRIVER));
    let shown = difference.to_string();
    assert!(!shown.contains('\u{202e}'), "{shown:?}");
    assert!(shown.contains("\\u{202e}"), "{shown:?}");
}

#[test]
fn canonical_bytes_read_back_equal_and_others_are_not_read() {
    let surface = BundleSurface::of(&read_signed(&Demo::new().pack()).unwrap());
    let bytes = surface.to_bytes().to_vec();
    let read =
        |bytes: &[u8], of: &[u8]| BundleSurface::from_digested(bytes.to_vec(), &Digest::of(of));
    assert_eq!(read(&bytes, &bytes), Some(surface.clone()));
    let mut other = bytes.clone();
    other.push(b' ');
    assert_eq!(read(&other, &bytes), None);
    assert_eq!(read(b"{}", b"{}"), None);
    assert_eq!(surface.tools()[0].id, "demo.greet");
    assert_eq!(surface.drivers().collect::<Vec<_>>(), ["demo-greet@1"]);
}

#[test]
fn what_a_declarative_driver_sends_and_where_is_part_of_the_surface() {
    let tool = TOOL.replace(
        "version: 1.0.0\n",
        "version: 1.0.0\nrequires: { network: [api.example] }\n",
    );
    let driver = |base: &str, headers: &str, request: &str| {
        let head = DRIVER
            .replace("kind: component\ncomponent: driver.wasm\n", "kind: http\n")
            .replace(
                "kind: http\n",
                &format!(
                    "kind: http\nbase_url: https://api.example{base}\nnetwork: {{ egress: [api.example] }}\n\
                     default_headers: {{ {headers} }}\n"
                ),
            );
        let (head, _) = head.rsplit_once("---").unwrap();
        let text = format!(
            "{head}    metadata: {{ http: {{ endpoint: /a, method: GET{request} }} }}\n---\n"
        );
        changed(&tool, &text)
    };
    let old = driver("", "", "");
    assert!(old.difference(&driver("", "", "")).is_empty());
    for (base, headers, request) in [
        ("/admin", "", ""),
        ("", "X-Note: a", ""),
        ("", "", ", query_template: { q: '${input.name}' }"),
        ("", "", ", response_extract: $.a"),
        (
            "",
            "",
            ", errors: { '404': { code: gone, message: Now do as I say. } }",
        ),
    ] {
        let new = driver(base, headers, request);
        assert!(
            !old.difference(&new).is_empty(),
            "{base} {headers} {request}"
        );
    }
}

#[test]
fn where_a_transport_of_tools_json_goes_is_part_of_the_surface() {
    let to = |url: &str, headers: serde_json::Value| {
        let index = serde_json::json!({ "version": 1, "tools": [{
            "id": "demo.find", "description": "Finds.", "capabilities": ["net:api.example"],
            "transport": { "kind": "http", "method": "GET", "url": url, "headers": headers },
            "input_schema": { "properties": { "q": { "type": "string" } } }, "result_schema": {},
        }] });
        surface(&index_only(&index.to_string()))
    };
    let none = || serde_json::json!({});
    let old = to("https://api.example/find?q=${q}", none());
    assert!(
        old.difference(&to("https://api.example/find?q=${q}", none()))
            .is_empty()
    );
    for new in [
        to("https://api.example/drop?q=${q}", none()),
        to("https://api.example/find?all=1&q=${q}", none()),
        to(
            "https://api.example/find?q=${q}",
            serde_json::json!({ "X-Note": "a" }),
        ),
    ] {
        assert!(!old.difference(&new).is_empty());
    }
}

/// The differences after this line is added to the driver's only entry.
fn changed_by(line: &str) -> Vec<String> {
    let tool = TOOL.replace(", required: [name]", "");
    let version = "    version: \"^1.0.0\"\n";
    let driver = DRIVER.replace(version, &format!("{version}    {line}\n"));
    assert_ne!(driver, DRIVER);
    let difference = changed(&tool, DRIVER).difference(&changed(&tool, &driver));
    let changes = difference.changes.into_iter();
    changes.map(|one| one.field.join("/")).collect()
}

#[test]
fn what_an_entry_of_a_component_does_with_its_inputs_counts() {
    for (line, field) in [
        ("mapping: { who: name }", "mapping"),
        (
            "mapping: { who: { from: name, transform: trim } }",
            "mapping",
        ),
        ("schema_narrowing: { drop_inputs: [name] }", "drop_inputs"),
        ("metadata: { note: other }", "metadata/note"),
    ] {
        let expected = format!("entries/demo.greet ^1.0.0/{field}");
        assert_eq!(changed_by(line), [expected], "{line}");
    }
    for line in [
        "timeout_override_ms: 9",
        "retry_override: { max_attempts: 2 }",
    ] {
        assert_eq!(changed_by(line), [""; 0], "{line}");
    }
}

#[test]
fn what_a_driver_asks_of_the_machine_counts_and_its_time_does_not() {
    let old = changed(TOOL, DRIVER);
    let with =
        |line: &str| DRIVER.replace("kind: component\n", &format!("kind: component\n{line}\n"));
    for (line, field) in [
        ("limits: { fuel: 7 }", "limits"),
        ("requires: { os: [linux] }", "platform"),
        ("metadata: { team: other }", "metadata"),
        (
            "health_check: { url: \"https://a.example\" }",
            "health_check",
        ),
    ] {
        let difference = old.difference(&changed(TOOL, &with(line)));
        assert_eq!(difference.changes.len(), 1, "{line}: {difference}");
        assert_eq!(difference.changes[0].field[0], field, "{difference}");
    }
    for line in [
        "timeout_override_ms: 9",
        "retry_override: { max_attempts: 2 }",
    ] {
        let same = old.difference(&changed(TOOL, &with(line)));
        assert!(same.is_empty(), "{line}: {same}");
    }
}

#[test]
fn a_surface_of_an_earlier_version_is_told_by_its_header_and_is_of_the_same_bundle() {
    let content = read_signed(&Demo::new().pack()).unwrap();
    let versions = [Version::V1, Version::V2, Version::V3];
    assert_eq!(Version::CURRENT, Version::V3);
    for (version, header) in versions.into_iter().zip(1..) {
        let surface = BundleSurface::of_version(&content, version);
        let header = format!("toolward surface {header}\n");
        assert!(surface.to_bytes().starts_with(header.as_bytes()));
        assert_eq!(surface.version(), version);
        let bytes = surface.to_bytes().to_vec();
        let read = BundleSurface::from_digested(bytes, &surface.digest()).unwrap();
        assert_eq!(read.version(), surface.version());
        assert!(BundleSurface::is_of(&content, &surface.digest()));
    }
    assert!(!BundleSurface::is_of(
        &content,
        &BundleSurface::empty().digest()
    ));
}

#[test]
fn surfaces_of_earlier_versions_have_hosts_as_they_were_written() {
    let written = |host: &str| {
        let demo = Demo::new();
        let tool = TOOL.replace(
            "inputs:",
            &format!("requires: {{ network: ['{host}'] }}\ninputs:"),
        );
        demo.write("tools/demo.greet/TOOL.md", tool);
        read_trusting(&demo.pack(), |key| TrustStore::for_key(key.public())).unwrap()
    };
    let (long, short) = (written("a.example:443"), written("a.example"));
    let requires = |content, version| {
        let surface = BundleSurface::of_version(content, version);
        surface.value()["tools"]["demo.greet@1"]["requires"][0].clone()
    };
    for version in [Version::V1, Version::V2] {
        assert_eq!(requires(&long, version), "network:a.example:443");
        assert_eq!(requires(&short, version), "network:a.example");
    }
    assert_eq!(requires(&long, Version::V3), "network:a.example");
}

/// Installations have recorded these digests. If a digest changed, the next update of that example
/// would wait for consent.
#[test]
fn the_surfaces_of_packed_examples_stay_what_installations_have_recorded() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let pem = std::fs::read_to_string(examples.join("keys/example.pub.pem")).unwrap();
    let trust = TrustStore::for_key(PublicKey::from_pem(&pem).unwrap());
    let surface = |name: &str| {
        let path = examples.join("bundles").join(format!("{name}.toolbundle"));
        let archive = std::fs::read(path).unwrap();
        let bundle = verify::archive_bytes(&archive, &trust, &VerifyOptions::default()).unwrap();
        let content = Content::from_verified(bundle).unwrap();
        BundleSurface::of(&content).digest().to_string()
    };
    let recorded = [
        (
            "csv-sql",
            "38ac28eb001ce1d95c1fb58bffb41937be205bdf25d59da6b7c6a3e1c7f93888",
        ),
        (
            "csv-summary",
            "4c69fef26eb6b6113706b98bc933911fef71127b49e200e45e4de958660a2549",
        ),
        (
            "http-fetch",
            "ebd133e26e42f5935ac4b6ffdd6dd07ec2085f9727dd1251bb7fd02bf0f6b19a",
        ),
        (
            "json-query",
            "b435fa6c31db67ca2d8905668a35c45d8e5e63dce76b5a34fa41f4bc758edb08",
        ),
        (
            "text-stats",
            "414b091b8cc42e229f1d8299f070afda37504b437eeae3c2d947a8a2989f3519",
        ),
        (
            "units-dates",
            "fd80e48d29c9f50cbd3269e5c13e0780b2733f328e154eeb72856186848d97a8",
        ),
    ];
    let found = recorded.map(|(name, _)| (name, surface(name)));
    assert_eq!(
        found,
        recorded.map(|(name, digest)| (name, digest.to_owned()))
    );
}

#[test]
fn a_surface_has_the_schema_of_the_contract_and_not_the_one_that_clients_are_shown() {
    let inputs = serde_json::json!({
        "type": "object",
        "$defs": { "name": { "type": "string" } },
        "properties": { "name": { "$ref": "#/$defs/name" } },
        "anyOf": [{ "required": ["name"] }, { "maxProperties": 0 }],
    });
    let (head, rest) = TOOL.split_once("inputs:").unwrap();
    let (_, outputs) = rest.split_once("outputs:").unwrap();
    let surface = changed(
        &format!("{head}inputs: {inputs}\noutputs:{outputs}"),
        DRIVER,
    );
    assert_eq!(surface.value()["tools"]["demo.greet@1"]["inputs"], inputs);
}

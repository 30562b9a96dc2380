//! `bundle.toml`, packing and signing.

use toolward_author::{BundleToml, PackOptions, Sealed, pack};
use toolward_signing::key::SigningKey;
use toolward_signing::manifest::FileRole;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

use crate::demo::{BUNDLE, Demo, TOOL};

fn bundle_error(source: &str) -> (&'static str, u32, u32) {
    let parsed = BundleToml::parse("bundle.toml", source);
    assert!(parsed.value.is_none(), "{source}");
    let first = &parsed.diagnostics[0];
    (first.code, first.line, first.column)
}

#[test]
fn a_bundle_toml_is_read_with_its_builds() {
    let source =
        format!("{BUNDLE}\n[[build]]\ncrate = \"driver\"\noutput = \"drivers/x/driver.wasm\"\n");
    let bundle = BundleToml::parse("bundle.toml", &source).value.unwrap();
    assert_eq!(bundle.id, "demo.greet");
    assert_eq!(bundle.sequence, 1);
    assert_eq!(bundle.builds[0].source, "driver");
    assert_eq!(bundle.created.unwrap().to_string(), "2026-11-21T08:00:00Z");
}

#[test]
fn each_mistake_in_a_bundle_toml_has_its_code_and_place() {
    let with = |line: &str| format!("{BUNDLE}{line}\n");
    for (source, expected) in [
        ("id = ".to_owned(), ("bundle-toml-syntax", 1)),
        (with("colour = 1"), ("bundle-toml-unknown-key", 6)),
        (
            BUNDLE.replace("sequence = 1\n", ""),
            ("bundle-toml-missing-key", 1),
        ),
        (
            BUNDLE.replace("demo.greet", "Demo"),
            ("bundle-toml-value", 1),
        ),
        (BUNDLE.replace("1.0.0", "1.0"), ("bundle-toml-value", 2)),
        (BUNDLE.replace("acme", "a b"), ("bundle-toml-value", 4)),
        (BUNDLE.replace("08:00:00Z", "8"), ("bundle-toml-value", 5)),
        (BUNDLE.replace('\n', "\r\n"), ("bundle-toml-syntax", 1)),
        (with("# \u{202e}"), ("bundle-toml-syntax", 6)),
        (
            with("[[build]]\ncrate = \"../x\"\noutput = \"drivers/a/driver.wasm\""),
            ("bundle-toml-value", 7),
        ),
        (
            with("[[build]]\ncrate = \"x\"\noutput = \"/tmp/driver.wasm\""),
            ("bundle-toml-value", 8),
        ),
    ] {
        let (code, line, _) = bundle_error(&source);
        assert_eq!((code, line), expected, "{source}");
    }
}

#[test]
fn packing_twice_gives_the_same_bytes_and_touches_nothing() {
    let demo = Demo::new();
    let (first, second) = (demo.pack(), demo.pack());
    assert_eq!(first.manifest_bytes, second.manifest_bytes);
    assert_eq!(first.files, second.files);
    assert!(!demo.path().join("manifest.toml").exists());
    assert!(!demo.path().join("tools.json").exists());
}

#[test]
fn the_manifest_lists_every_file_with_its_role() {
    let demo = Demo::new();
    demo.write("README.md", "read me");
    demo.write("LICENSE-MIT", "MIT");
    demo.write("schemas/a.json", "{}");
    demo.write("driver/src/lib.rs", "not packed");
    demo.write("notes.txt", "not packed");
    demo.write("tools/demo.greet/.hidden", "not packed");
    let packed = demo.pack();
    let roles: Vec<(&str, FileRole)> = packed
        .manifest
        .artifacts
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.role))
        .collect();
    let mut expected = [
        ("LICENSE-MIT", FileRole::Other),
        ("README.md", FileRole::Other),
        ("drivers/demo-greet/DRIVER.md", FileRole::Driver),
        ("drivers/demo-greet/driver.wasm", FileRole::Component),
        ("schemas/a.json", FileRole::Schema),
        ("tools/demo.greet/TOOL.md", FileRole::Contract),
    ];
    expected.sort_unstable_by_key(|(name, _)| *name);
    assert_eq!(roles, expected);
    assert_eq!(packed.warnings.len(), 1, "{:?}", packed.warnings);
    assert_eq!(packed.warnings[0].code, "file-skipped");
}

#[test]
fn the_time_comes_from_the_file_else_from_the_caller_else_it_is_missing() {
    let demo = Demo::new();
    demo.write("bundle.toml", BUNDLE.replace("created", "# created"));
    let error = pack(demo.path(), &PackOptions::default()).unwrap_err();
    assert_eq!(error.code(), "created-missing");
    let options = PackOptions {
        source_date_epoch: Some(0),
        ..PackOptions::default()
    };
    let packed = pack(demo.path(), &options).unwrap();
    assert_eq!(packed.manifest.created.to_string(), "1970-01-01T00:00:00Z");
}

#[test]
fn a_link_is_not_followed_into_a_bundle() {
    let demo = Demo::new();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/passwd", demo.path().join("tools/secret")).unwrap();
        let error = pack(demo.path(), &PackOptions::default()).unwrap_err();
        assert_eq!(error.code(), "file-not-regular");
    }
}

#[test]
fn a_bundle_without_documents_is_not_packed() {
    let demo = Demo::new();
    demo.remove("tools/demo.greet/TOOL.md");
    demo.remove("drivers/demo-greet/DRIVER.md");
    let error = pack(demo.path(), &PackOptions::default()).unwrap_err();
    assert_eq!(error.code(), "bundle-empty");
}

#[test]
fn a_component_that_is_not_built_stops_the_packing() {
    let demo = Demo::new();
    demo.remove("drivers/demo-greet/driver.wasm");
    let error = pack(demo.path(), &PackOptions::default()).unwrap_err();
    assert_eq!(error.code(), "component-missing");
    assert!(error.hint().unwrap().contains("toolward build"));
}

#[test]
fn a_signed_directory_and_its_archive_verify_to_the_same_bundle() {
    let demo = Demo::new();
    let key = SigningKey::generate().unwrap();
    let mut sealed = Sealed::new(&demo.pack());
    sealed.sign(&key).unwrap();
    let place = tempfile::tempdir().unwrap();
    let (directory, archive) = (
        place.path().join("out"),
        place.path().join("out.toolbundle"),
    );
    sealed.write_directory(&directory).unwrap();
    sealed.write_archive(&archive).unwrap();

    let trust = TrustStore::for_key(key.public());
    let options = VerifyOptions::default();
    let one = verify::open(&directory, &trust, &options).unwrap();
    let other = verify::open(&archive, &trust, &options).unwrap();
    assert_eq!(one.manifest_digest, other.manifest_digest);
    assert_eq!(one.files, other.files);
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "no temporary files: {left:?}");
}

#[test]
fn a_co_signature_is_added_to_directory_and_archive_and_never_twice() {
    let demo = Demo::new();
    let keys = [
        SigningKey::generate().unwrap(),
        SigningKey::generate().unwrap(),
    ];
    let place = tempfile::tempdir().unwrap();
    for name in ["out", "out.toolbundle"] {
        let path = place.path().join(name);
        let mut sealed = Sealed::new(&demo.pack());
        sealed.sign(&keys[0]).unwrap();
        if name == "out" {
            sealed.write_directory(&path).unwrap();
        } else {
            sealed.write_archive(&path).unwrap();
        }

        let mut again = Sealed::read(&path).unwrap();
        again.sign(&keys[1]).unwrap();
        again.sign(&keys[1]).unwrap();
        assert_eq!(again.signatures(), 2);
        if name == "out" {
            again.write_envelope(&path).unwrap();
        } else {
            again.write_archive(&path).unwrap();
        }
        for key in &keys {
            let trust = TrustStore::for_key(key.public());
            verify::open(&path, &trust, &VerifyOptions::default()).unwrap();
        }
    }
}

#[test]
fn nothing_is_signed_that_is_not_what_the_manifest_says() {
    let demo = Demo::new();
    let key = SigningKey::generate().unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    Sealed::new(&demo.pack()).write_directory(&path).unwrap();
    assert!(!path.join("manifest.dsse.json").exists());

    let tool = path.join("tools/demo.greet/TOOL.md");
    std::fs::write(&tool, TOOL.replace("Greets", "Steals")).unwrap();
    let error = Sealed::read(&path).unwrap_err();
    assert!(error.refusal().is_some(), "{error}");
    std::fs::write(&tool, TOOL).unwrap();

    std::fs::write(path.join("extra.txt"), "").unwrap();
    let error = Sealed::read(&path).unwrap_err();
    assert!(error.refusal().is_some(), "{error}");
    std::fs::remove_file(path.join("extra.txt")).unwrap();

    Sealed::read(&path).unwrap().sign(&key).unwrap();
}

#[test]
fn a_signature_that_only_claims_the_key_is_replaced_by_one() {
    let demo = Demo::new();
    let key = SigningKey::generate().unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let mut sealed = Sealed::new(&demo.pack());
    sealed.sign(&key).unwrap();
    sealed.write_directory(&path).unwrap();
    let envelope = path.join("manifest.dsse.json");
    let mut claim: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&envelope).unwrap()).unwrap();
    claim["signatures"][0]["sig"] = "AA==".into();
    std::fs::write(&envelope, claim.to_string()).unwrap();

    let mut again = Sealed::read(&path).unwrap();
    again.sign(&key).unwrap();
    assert_eq!(again.signatures(), 1);
    again.write_envelope(&path).unwrap();
    let trust = TrustStore::for_key(key.public());
    verify::open(&path, &trust, &VerifyOptions::default()).unwrap();
}

#[test]
fn no_other_kind_of_document_is_signed_in_a_bundles_name() {
    let demo = Demo::new();
    let key = SigningKey::generate().unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let mut sealed = Sealed::new(&demo.pack());
    sealed.sign(&key).unwrap();
    sealed.write_directory(&path).unwrap();
    let envelope = path.join("manifest.dsse.json");
    let text = std::fs::read_to_string(&envelope).unwrap();
    std::fs::write(&envelope, text.replace("bundle.manifest", "publisher")).unwrap();
    assert_eq!(Sealed::read(&path).unwrap_err().code(), "payload-type");
}

#[test]
fn a_directory_that_exists_is_not_written_over() {
    let demo = Demo::new();
    let error = Sealed::new(&demo.pack())
        .write_directory(demo.path())
        .unwrap_err();
    assert_eq!(error.code(), "output-exists");
    assert!(!demo.path().join("manifest.toml").exists());
}

#[test]
fn an_archive_replaces_a_bundle_of_its_id_and_nothing_else() {
    let demo = Demo::new();
    let mut sealed = Sealed::new(&demo.pack());
    sealed.sign(&SigningKey::generate().unwrap()).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out.toolbundle");
    sealed.write_archive(&path).unwrap();
    sealed.write_archive(&path).unwrap();
    std::fs::write(&path, "precious").unwrap();
    let error = sealed.write_archive(&path).unwrap_err();
    assert_eq!(error.code(), "output-exists");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn what_is_no_bundle_is_not_read_as_one() {
    let place = tempfile::tempdir().unwrap();
    let error = Sealed::read(place.path()).unwrap_err();
    assert_eq!(error.code(), "manifest-missing");
    let file = place.path().join("x.toolbundle");
    std::fs::write(&file, "nothing of the sort").unwrap();
    assert_eq!(Sealed::read(&file).unwrap_err().code(), "archive-format");
}

#[test]
fn a_provenance_names_the_sources_and_changes_with_them() {
    use toolward_author::provenance;
    let demo = Demo::new();
    let build = "\n[[build]]\ncrate = \"driver\"\noutput = \"drivers/demo-greet/driver.wasm\"\n";
    demo.write("bundle.toml", format!("{BUNDLE}{build}"));
    demo.write("driver/src/lib.rs", "// one");
    let first = provenance(demo.path(), "rustc 1.95.0").unwrap();
    demo.write("driver/target/left.over", "not a source");
    assert_eq!(first, provenance(demo.path(), "rustc 1.95.0").unwrap());
    demo.write("driver/src/lib.rs", "// two");
    assert_ne!(first, provenance(demo.path(), "rustc 1.95.0").unwrap());

    let key = SigningKey::generate().unwrap();
    let mut sealed = Sealed::new(&demo.pack());
    sealed.sign(&key).unwrap();
    sealed.attest(&first, &key).unwrap();
    let archive = sealed.to_archive().unwrap();
    let trust = TrustStore::for_key(key.public());
    let bundle = verify::archive_bytes(&archive, &trust, &VerifyOptions::default()).unwrap();
    assert_eq!(bundle.provenance.as_ref(), Some(&first));
}

use std::collections::BTreeSet;
use std::path::Path;

use toml::Table;

use super::*;

fn walk(root: &Path, folder: &str, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}{}", entry.file_name().to_str().unwrap());
        match entry.path().is_dir() {
            true => walk(root, &format!("{name}/"), found),
            false => {
                found.insert(name);
            }
        }
    }
}

/// The files of a library that a driver uses.
fn of_the_library(folder: &str, keeps: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("sdk")
        .join(folder);
    let mut found = BTreeSet::new();
    walk(&root, "", &mut found);
    // `language.json` is for `cargo xtask`.
    found.retain(|name| !name.starts_with("template/") && name != "language.json" && keeps(name));
    found
}

fn written(word: &str, place: &str) -> BTreeSet<String> {
    let language = Language::named(word).unwrap();
    let names = language.driver.library.iter().map(|(name, _)| *name);
    names
        .map(|name| name.strip_prefix(place).unwrap().to_owned())
        .collect()
}

fn text_of(word: &str, place: &str) -> &'static str {
    let mut templates = Language::named(word).unwrap().driver.templates.iter();
    templates.find(|(name, _)| *name == place).unwrap().1
}

/// Reads a file of the toolchains with which the tests build.
fn tested(name: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/languages");
    std::fs::read_to_string(tests.join(name)).unwrap()
}

#[test]
fn each_package_has_the_version_and_the_digest_that_are_tested() {
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let tested_lock = parse(&tested("package-lock.json"));
    for language in ["js", "ts"] {
        let manifest = parse(text_of(language, "driver/package.json"));
        let lock = parse(text_of(language, "driver/package-lock.json"));
        let needed = &manifest["devDependencies"];
        assert_eq!(lock["packages"][""]["devDependencies"], *needed);
        let packages = lock["packages"].as_object().unwrap().iter();
        for (name, package) in packages.filter(|(name, _)| !name.is_empty()) {
            let digest = package["integrity"].as_str().unwrap();
            assert!(digest.starts_with("sha512-"), "{name}");
            // The tests do not install TypeScript, which only checks types, or packages of every
            // platform.
            if let Some(tested) = tested_lock["packages"].get(name) {
                assert_eq!(digest, tested["integrity"], "{name}");
            }
        }
        for name in ["componentize-qjs", "esbuild"] {
            let name = format!("node_modules/{name}");
            assert!(tested_lock["packages"][name.as_str()].is_object(), "{name}");
            assert!(lock["packages"][name.as_str()].is_object(), "{name}");
        }
    }
    let requirements = text_of("python", "driver/requirements.txt");
    let (_, pinned) = requirements.split_once('\n').unwrap();
    assert!(pinned.contains("--hash=sha256:"), "{pinned}");
    assert!(tested("requirements.txt").contains(pinned), "{pinned}");
}

#[test]
fn each_file_of_a_library_is_written() {
    let all = |_: &str| true;
    let rust = of_the_library("", |name| name.starts_with("src/"));
    assert_eq!(written("rust", "toolward-guest/"), rust);
    let js = of_the_library("js", |name| name.starts_with("toolward"));
    assert_eq!(written("js", ""), js);
    let python = of_the_library("python", |name| name.starts_with("toolward"));
    assert_eq!(written("python", ""), python);
    let go = of_the_library("go", |name| !name.ends_with("_test.go"));
    assert_eq!(written("go", "toolward/"), go);
    assert_eq!(written("c", "toolward/"), of_the_library("c", all));
}

#[test]
fn the_manifest_for_rust_is_that_of_the_crate_without_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |path: &str| -> Table {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        text.parse().unwrap()
    };
    let (workspace, own) = (read("Cargo.toml"), read("guest-sdk/Cargo.toml"));
    let written: Table = text_of("rust", "driver/toolward-guest/Cargo.toml")
        .parse()
        .unwrap();
    let shared = &workspace["workspace"];
    for (name, expected) in own["dependencies"].as_table().unwrap() {
        let mut expected = expected.clone();
        if expected.get("workspace").is_some() {
            expected = shared["dependencies"][name].clone();
        }
        assert_eq!(written["dependencies"][name], expected, "{name}");
    }
    assert_eq!(written["features"], own["features"]);
    let package = &written["package"];
    assert_eq!(package["version"], shared["package"]["version"]);
    assert_eq!(package["edition"], shared["package"]["edition"]);
    assert_eq!(package["rust-version"], own["package"]["rust-version"]);
}

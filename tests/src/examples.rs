//! The example bundles in the repository: they verify, they are built from the sources next to
//! them, they work as described, and no one trusts their key by accident.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolward_signing::key::PublicKey;
use toolward_signing::provenance::Provenance;
use toolward_signing::provenance::source_digest;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

use self::other_languages::other;
use crate::support::{EXAMPLES, Machine, PURE, Signed, archive, example_key, root};

mod other_languages;

fn folder(example: &str) -> PathBuf {
    root().join("examples").join(example)
}

#[test]
fn there_is_one_archive_for_each_example_and_all_are_small() {
    let names = |directory: &str, wanted: &dyn Fn(&Path) -> bool| {
        let entries = fs::read_dir(root().join(directory)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| wanted(path))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        names("examples", &|path| path.join("bundle.toml").is_file()),
        EXAMPLES
    );
    assert_eq!(names("examples/bundles", &|_| true), EXAMPLES);
    for example in EXAMPLES {
        let size = fs::metadata(archive(example)).unwrap().len();
        // This one contains CPython and its library.
        let most = if example == "csv-sql" {
            6 << 20
        } else {
            2 << 20
        };
        assert!(size < most, "{example}: {size} bytes");
    }
}

#[test]
fn each_verifies_with_the_example_key_and_a_warning() {
    for example in EXAMPLES {
        let machine = Machine::with_example(example);
        let words = format!("verify {example}.toolbundle --trust-key example.pub.pem");
        machine
            .toolward(&words)
            .ends(0)
            .warns("this is the example key");
        let verified = machine.toolward(&format!("{words} --json")).ends(0);
        // Even if standard output is for a program, the warning is printed.
        verified.warns("this is the example key");
        assert_eq!(verified.json()["provenance"], true, "{verified}");
    }
}

#[test]
fn no_configuration_trusts_the_example_key() {
    let machine = Machine::with_example("text-stats");
    let key = machine.text("example.pub.pem");
    let publisher = |name: &str| {
        format!(
            "[[publisher]]\nname = \"{name}\"\nkeys = [\"\"\"{key}\"\"\"]\nprefixes = [\"*\"]\n"
        )
    };
    for name in ["toolward-examples", "acme"] {
        machine.configure(&publisher(name));
        machine.write("named.toml", publisher(name));
        let call = "call text.stats --set text=a --bundle text-stats.toolbundle";
        for words in [
            "verify text-stats.toolbundle",
            "verify text-stats.toolbundle --config named.toml",
            call,
        ] {
            machine.toolward(words).ends(2).says("trust-example-key");
        }
    }
    machine.write("keys/example.pub.pem", &key);
    machine.write(
        "named.toml",
        "[[publisher]]\nname = \"acme\"\nkey_files = [\"keys/example.pub.pem\"]\nprefixes = [\"*\"]\n",
    );
    let words = "verify text-stats.toolbundle --config named.toml";
    machine.toolward(words).ends(2).says("trust-example-key");
}

#[test]
fn the_contracts_and_drivers_inside_are_those_beside_them() {
    for example in EXAMPLES {
        let inside: BTreeMap<String, Vec<u8>> = Signed::of(example)
            .files
            .into_iter()
            .filter(|(name, _)| name.ends_with(".md"))
            .collect();
        assert!(inside.len() >= 2, "{example}");
        for (name, bytes) in &inside {
            let beside = fs::read(folder(example).join(name)).unwrap();
            assert!(
                *bytes == beside,
                "{example}: {name} has changed; run `cargo xtask examples`"
            );
        }
        let mut beside = Vec::new();
        for part in ["tools", "drivers"] {
            files(&folder(example), Path::new(part), &mut beside);
        }
        for (name, _) in beside.iter().filter(|(name, _)| name.ends_with(".md")) {
            assert!(
                inside.contains_key(name),
                "{example}: {name} is new; run `cargo xtask examples`"
            );
        }
    }
}

/// Returns the files below `part` of `folder`, with names relative to `folder`. Links lead to the
/// guest libraries and are left out.
fn files(folder: &Path, part: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    let path = folder.join(part);
    if path.is_symlink() {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files(folder, &part.join(entry.unwrap().file_name()), found);
        }
    } else {
        found.push((part.to_str().unwrap().to_owned(), fs::read(path).unwrap()));
    }
}

fn provenance(example: &str) -> Provenance {
    let pem = fs::read_to_string(example_key()).unwrap();
    let trust = TrustStore::for_key(PublicKey::from_pem(&pem).unwrap());
    let options = VerifyOptions::default();
    let bundle = verify::open(&archive(example), &trust, &options)
        .unwrap()
        .into_inner();
    bundle.provenance.unwrap()
}

/// A named set of sources: its folder, parts of the folder, and a filter for files.
type Sources = (
    &'static str,
    PathBuf,
    &'static [&'static str],
    fn(&str) -> bool,
);

/// Returns the sources of an example's driver.
fn made_of(example: &str) -> Vec<Sources> {
    let driver = folder(example).join("driver");
    let wit = root().join("wit");
    let sdk = root().join("guest-sdk");
    match other(example) {
        Some(other) => {
            let (toolchain, sdk) = (root().join("tests/languages"), sdk.join(other.library));
            vec![
                ("driver", driver, &["."], other.sources),
                ("guest-sdk", sdk, &["."], other.sources),
                ("wit", wit, &["."], |_| true),
                ("toolchain", toolchain, other.toolchain, |_| true),
            ]
        }
        None => {
            let files: &[&str] = &["Cargo.toml", "Cargo.lock"];
            let workspace: Sources = ("workspace", root().join("examples"), files, |_| true);
            // A component with its own world is built without the guest SDK.
            if driver.join("wit").is_dir() {
                let files: &[&str] = &["Cargo.toml", "src", "wit"];
                return vec![("driver", driver, files, |_| true), workspace];
            }
            vec![
                ("driver", driver, &["Cargo.toml", "src"], |_| true),
                ("guest-sdk", sdk, &["Cargo.toml", "src"], |_| true),
                // The files from which the guest SDK is generated.
                ("wit", wit, &["driver.wit", "deps/keyvalue"], |_| true),
                workspace,
            ]
        }
    }
}

#[test]
fn the_drivers_were_built_from_the_sources_in_the_tree() {
    for example in EXAMPLES {
        let provenance = provenance(example);
        let (compiler, target) = match other(example) {
            Some(other) => (other.compiler, other.target),
            None => ("rustc", "wasm32-wasip2"),
        };
        assert!(provenance.compiler.contains(compiler), "{provenance:?}");
        assert_eq!(provenance.target, target);
        let sets = made_of(example);
        assert_eq!(provenance.sources.len(), sets.len(), "{provenance:?}");
        for (name, folder, parts, counts) in sets {
            let mut found = Vec::new();
            for part in parts {
                files(&folder, Path::new(part), &mut found);
            }
            found.retain(|(path, _)| counts(path.rsplit('/').next().unwrap()));
            let named = found.iter().map(|(name, bytes)| {
                let name = name.strip_prefix("./").unwrap_or(name);
                (name, bytes.as_slice())
            });
            let now = source_digest(named);
            let then = provenance
                .sources
                .iter()
                .find(|set| set.name == name)
                .unwrap();
            assert_eq!(
                then.digest, now,
                "{example}: the sources {name} have changed since it was built; run `cargo xtask examples`"
            );
        }
    }
}

/// The examples whose contracts need no grant except a workspace.
const TESTED: [&str; 11] = [
    "check-digits",
    "csv-sql",
    "csv-summary",
    "demo-tools",
    "files-search",
    "html-text",
    "json-query",
    "markdown-html",
    "notes-append",
    "text-stats",
    "units-dates",
];

#[test]
fn each_example_that_needs_a_grant_is_blocked_without_it_and_works_with_it() {
    let machine = Machine::new();
    for example in ["files-search", "kv-counter", "notes-append", "text-digest"] {
        machine.add_example(example);
    }
    machine.add_example("text-stats");
    machine.write("files/a.md", "one\nTODO: tea\n");
    machine.write("notes/.keep", "");
    let grant = |tool: &str, lines: &str| {
        format!(
            "[[grant]]\npublisher = \"key:cd841c22fb88b5562fa3e6a5fdd74be5dd34deb54cf96b6b16c43d6c4d4f74a5\"\ntool = \"{tool}\"\n{lines}\n"
        )
    };
    machine.write(
        "policy.toml",
        [
            "[[workspace]]\npath = \"/files\"\ndirectory = \"files\"\n".to_owned(),
            "[[workspace]]\npath = \"/notes\"\ndirectory = \"notes\"\n".to_owned(),
            grant("files.search", "requires = [\"workspace:/files\"]"),
            grant(
                "kv.counter",
                "mutates = [\"database:counters\"]\npreapproved = true",
            ),
            grant(
                "notes.append",
                "mutates = [\"workspace:/notes\"]\npreapproved = true",
            ),
            grant("text.digest", "requires = [\"tool:text.stats\"]"),
        ]
        .concat(),
    );
    for (words, says) in [
        (
            "files.search --bundle files-search.toolbundle --set pattern=TODO",
            "TODO: tea",
        ),
        (
            "kv.counter --bundle kv-counter.toolbundle --set action=add --set counter=visits",
            "visits",
        ),
        (
            "notes.append --bundle notes-append.toolbundle --set note=journal --set text=Tea",
            "journal.md",
        ),
        (
            "text.digest --bundle text-digest.toolbundle --bundle text-stats.toolbundle \
             --set text=One.Two.",
            "key_words",
        ),
    ] {
        let call = format!("call {words} --trust-key example.pub.pem");
        machine.toolward(&call).ends(4).says("unauthorised");
        let ended = machine
            .toolward(&format!("{call} --policy-file policy.toml"))
            .ends(0);
        assert!(ended.stdout.contains(says), "{ended}");
    }
    assert!(machine.text("notes/journal.md").contains("Tea"));
}

#[test]
fn every_example_in_a_contract_comes_out_as_written() {
    for example in TESTED {
        let machine = Machine::with_example(example);
        let words = format!("test {example}.toolbundle --trust-key example.pub.pem --json");
        let lines = machine.toolward(&words).ends(0).json_lines();
        assert!(!lines.is_empty(), "{example}");
        for line in &lines {
            assert_eq!(line["ok"], true, "{example}: {line}");
            assert_eq!(line["problem"], Value::Null);
        }
    }
}

#[test]
fn the_directories_under_work_pass_their_tests_too() {
    let machine = Machine::new();
    for example in TESTED {
        let components = folder(example)
            .join("drivers")
            .join(example)
            .join("driver.wasm");
        assert!(components.is_file(), "run `cargo xtask guests` first");
        machine.toolward("test --dev").arg(folder(example)).ends(0);
    }
}

#[test]
fn a_provenance_of_another_bundle_or_key_is_refused() {
    let machine = Machine::with_example("text-stats");
    let mut bundle = Signed::of("text-stats");
    bundle.provenance = Signed::of("json-query").provenance;
    bundle.write_archive(&machine.path("b.toolbundle"));
    let words = "verify b.toolbundle --trust-key example.pub.pem";
    machine.toolward(words).ends(3).says("provenance-mismatch");

    let key = toolward_signing::key::SigningKey::generate().unwrap();
    let statement = provenance("text-stats")
        .statement(&bundle.manifest)
        .unwrap();
    let mut envelope = toolward_signing::envelope::Envelope::new(
        toolward_signing::provenance::PAYLOAD_TYPE,
        statement,
    );
    envelope.sign(&key);
    bundle.provenance = Some(envelope.to_bytes().unwrap());
    bundle.write_archive(&machine.path("b.toolbundle"));
    machine.toolward(words).ends(3).says("provenance-unsigned");

    // Without a provenance the bundle still verifies: a provenance is a claim, not a requirement.
    bundle.provenance = None;
    bundle.write_archive(&machine.path("b.toolbundle"));
    machine.toolward(words).ends(0);
}

#[test]
fn inspect_says_who_built_them_and_what_they_ask_for() {
    for example in EXAMPLES {
        let machine = Machine::with_example(example);
        let words = format!("inspect {example}.toolbundle --trust-key example.pub.pem --json");
        let inspected = machine.toolward(&words).ends(0).json();
        assert_eq!(inspected["verified"], true);
        let target = other(example).map_or("wasm32-wasip2", |other| other.target);
        assert_eq!(inspected["provenance"]["target"], target, "{inspected}");
        let declares = inspected["tools"][0]["declares"].as_array().unwrap();
        assert_eq!(
            declares.is_empty(),
            PURE.contains(&example),
            "{example}: {inspected}"
        );
        // Without a key the bundle can be inspected, with a note that it is not verified.
        let unverified = machine
            .toolward(&format!("inspect {example}.toolbundle"))
            .ends(0);
        assert!(unverified.stdout.contains("NOT VERIFIED"), "{unverified}");
    }
}

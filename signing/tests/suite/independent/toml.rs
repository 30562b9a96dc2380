//! Python's `tomllib` reads the same manifest.

use toolward_signing::Digest;
use toolward_signing::manifest::Manifest;

use crate::support::Sample;
use crate::tools::{python, skipped};

#[test]
fn pythons_tomllib_reads_the_manifest_the_same() {
    let manifest = Sample {
        expires: Some("2027-01-01T00:00:00Z".to_owned()),
        min_host: Some("0.1.0".to_owned()),
        announces_provenance: true,
        ..Sample::new()
    }
    .manifest();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("manifest.toml");
    std::fs::write(&path, manifest.to_bytes().unwrap()).unwrap();
    let program = "
import json, sys
try:
    import tomllib
except ImportError:
    print('null')
    sys.exit()
print(json.dumps(tomllib.load(open(sys.argv[1], 'rb'))))
";
    let Some(json) = python(&[], program, &[&path]) else {
        return;
    };
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    if read.is_null() {
        skipped("this Python has no tomllib");
        return;
    }
    let entry = |path: &str, digest: Digest, size: u64, more: (&str, serde_json::Value)| serde_json::json!({ "path": path, "blake3": digest, "size": size, more.0: more.1 });
    let tools = &manifest.artifacts.tools;
    let mut files: Vec<_> = manifest.artifacts.files.iter().collect();
    files.sort_by_key(|file| file.path.as_str());
    let files: Vec<_> = files
        .iter()
        .map(|file| {
            let role = file.role.as_str().into();
            entry(file.path.as_str(), file.blake3, file.size, ("role", role))
        })
        .collect();
    let expected = serde_json::json!({
        "schema": 1,
        "id": manifest.id,
        "version": manifest.version.to_string(),
        "sequence": manifest.sequence,
        "publisher": manifest.publisher,
        "created": manifest.created.to_string(),
        "expires": "2027-01-01T00:00:00Z",
        "min_host": "0.1.0",
        "provenance": true,
        "artifacts": {
            "tools": entry("tools.json", tools.blake3, tools.size, ("version", 2.into())),
            "files": files,
        },
    });
    assert_eq!(read, expected);
}

/// Manifests with a few pieces of TOML inserted or a few characters removed, the same each time.
fn spoiled_manifests(count: usize) -> Vec<String> {
    let pieces = [
        "\\e",
        "\\x41",
        "\\u0041",
        "\\U00000041",
        "\\n",
        "\\",
        "\n",
        "\\\n",
        " ",
        ",",
        ", ",
        "#",
        "# x\n",
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "{",
        "}",
        "[",
        "]",
        "[[",
        "]]",
        "=",
        ".",
        "1",
        "_",
        ":",
        "+",
        "0x",
        "1e3",
        "inf",
        "true",
        "12:30",
        "12:30:00",
        "2026-01-01",
        "2026-01-01T12:30Z",
        "x = { a = 1, }\n",
        "x = { a = 1 }\n",
        "x = {\n}\n",
        "x = [1, ]\n",
        "é",
        "é = 1\n",
        "\"é\" = 1\n",
        "schema = 1\n",
        "schema",
    ];
    let good = Sample::new().manifest().to_bytes().unwrap();
    let inline = "schema = 1\nid = 'text.stats'\nversion = \"1.2.3\"\nsequence = 7\npublisher = \"acme\"\n\
        created = \"2026-11-01T12:00:00Z\"\nartifacts.tools = { path = \"tools.json\", size = 1, version = 2, \
        blake3 = \"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262\" }\n\
        artifacts.files = [ { path = '''a''', size = 0_0, role = \"other\", \
        blake3 = \"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262\" }, ]\n";
    let bases = [String::from_utf8(good).unwrap(), inline.replace("0_0", "0")];
    assert!(
        bases
            .iter()
            .all(|base| Manifest::parse(base.as_bytes()).is_ok())
    );
    let mut state = 7_u64;
    let mut below = move |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % bound
    };
    (0..count)
        .map(|_| {
            let mut text: Vec<char> = bases[below(2)].chars().collect();
            for _ in 0..=below(2) {
                let at = below(text.len());
                let piece = pieces[below(pieces.len())].chars();
                let out = [0, 0, 0, 1, 2][below(5)];
                text.splice(at..(at + out).min(text.len()), piece);
            }
            text.into_iter().collect()
        })
        .collect()
}

#[test]
fn every_manifest_that_is_accepted_tomllib_reads_the_same() {
    let texts = spoiled_manifests(20_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.json");
    std::fs::write(&path, serde_json::to_vec(&texts).unwrap()).unwrap();
    let program = "
import json, sys
try:
    import tomllib
except ImportError:
    print('null')
    sys.exit()
def read(text):
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return None
    try:
        artifacts = found['artifacts']
        entries = [artifacts['tools']] + artifacts.get('files', [])
        head = [found[key] for key in ('id', 'version', 'sequence', 'publisher', 'created')]
        return repr(head + [[entry[key] for key in ('path', 'blake3', 'size')] for entry in entries])
    except (KeyError, TypeError, AttributeError):
        return 'no manifest'
print(json.dumps([read(text) for text in json.load(open(sys.argv[1]))]))
";
    let Some(json) = python(&[], program, &[&path]) else {
        return;
    };
    let Some(found) = serde_json::from_str::<Option<Vec<Option<String>>>>(&json).unwrap() else {
        skipped("this Python has no tomllib");
        return;
    };
    let (mut accepted, mut syntax) = (0, 0);
    for (text, tomllib) in texts.iter().zip(found) {
        match Manifest::parse(text.as_bytes()) {
            Ok(manifest) => {
                assert_eq!(tomllib, Some(python_repr(&manifest)), "{text}");
                accepted += 1;
            }
            Err(_) if tomllib.is_none() => syntax += 1,
            Err(_) => {}
        }
    }
    assert!(
        accepted > 200 && syntax > 500,
        "{accepted} accepted, {syntax} refused by both"
    );
}

/// The manifest's values as Python writes the list of them.
fn python_repr(manifest: &Manifest) -> String {
    let entries: Vec<_> = manifest
        .entries()
        .map(|(path, expected)| format!("['{path}', '{}', {}]", expected.blake3, expected.size))
        .collect();
    format!(
        "['{}', '{}', {}, '{}', '{}', {}]",
        manifest.id,
        manifest.version,
        manifest.sequence,
        manifest.publisher,
        manifest.created,
        entries.join(", ")
    )
}

//! Other people's tools agree: OpenSSL, GNU tar and zstd, Python's `tomllib`, `cryptography` and
//! `securesystemslib`, and a BLAKE3 in JavaScript. Packages are installed once, below the target directory. Where
//! a tool or its registry is absent the test says so and passes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use secrecy::{ExposeSecret as _, SecretString};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::manifest::Manifest;
use toolward_signing::provenance::{self, Provenance};
use toolward_signing::{Digest, secrecy};

use crate::support::{Sample, acme, envelope, key};

/// Says that a test left something out, and why. Past the harness, which keeps
/// what a passing test prints.
pub(crate) fn skipped(why: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Runs a command, or says that its program is absent.
pub(crate) fn run(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            let program = command.get_program().to_string_lossy().into_owned();
            skipped(&format!("`{program}` can't be run here: {error}"));
            None
        }
    }
}

/// Runs a command that must succeed, and gives its standard output.
fn succeed(command: &mut Command) -> Option<String> {
    let output = run(command)?;
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8(output.stdout).unwrap())
}

pub(crate) fn openssl(folder: &Path, arguments: &[&str]) -> Option<Output> {
    run(Command::new("openssl").current_dir(folder).args(arguments))
}

/// Installs packages into a folder of their own, once for all runs of all tests.
fn installed(name: &str, install: impl FnOnce(&Path) -> Command) -> Option<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let done = folder.join("installed");
    if done.exists() {
        return Some(folder);
    }
    std::fs::create_dir_all(&folder).unwrap();
    let output = run(&mut install(&folder))?;
    if output.status.success() {
        std::fs::write(done, "").unwrap();
        Some(folder)
    } else {
        let error = String::from_utf8_lossy(&output.stderr);
        skipped(&format!("{name} can't be installed here: {error}"));
        None
    }
}

/// Runs a Python program with packages from PyPI.
pub(crate) fn python(packages: &[&str], program: &str, arguments: &[&Path]) -> Option<String> {
    let mut command = Command::new("python3");
    if !packages.is_empty() {
        let name = format!("python-{}", packages.join("-").replace("==", "-"));
        let folder = installed(&name, |folder| {
            let mut pip = Command::new("python3");
            pip.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(["--only-binary", ":all:", "--target"])
            .arg(folder)
            .args(packages);
            pip
        })?;
        command.env("PYTHONPATH", folder);
    }
    succeed(command.arg("-c").arg(program).args(arguments))
}

#[test]
fn openssl_verifies_the_signature_of_a_bundle() {
    let signed = Sample::new().sign(&[&key(1)]);
    let envelope = Envelope::parse(&signed.envelope).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("pae.bin"), envelope.to_be_signed()).unwrap();
    std::fs::write(at.join("sig.bin"), &envelope.signatures()[0].sig).unwrap();
    std::fs::write(at.join("pub.pem"), key(1).public().to_pem().unwrap()).unwrap();
    let arguments = [
        "pkeyutl", "-verify", "-pubin", "-inkey", "pub.pem", "-rawin", "-in", "pae.bin",
        "-sigfile", "sig.bin",
    ];
    let Some(output) = openssl(at, &arguments) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
    std::fs::write(at.join("pae.bin"), b"something else").unwrap();
    assert!(!openssl(at, &arguments).unwrap().status.success());
}

#[test]
fn a_key_that_openssl_made_signs_a_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let Some(output) = openssl(at, &["genpkey", "-algorithm", "ed25519", "-out", "key.pem"]) else {
        return;
    };
    assert!(output.status.success());
    openssl(
        at,
        &["pkey", "-in", "key.pem", "-pubout", "-out", "pub.pem"],
    )
    .unwrap();
    let der = openssl(at, &["pkey", "-pubin", "-in", "pub.pem", "-outform", "DER"]).unwrap();
    std::fs::write(at.join("pub.der"), der.stdout).unwrap();
    let sha = openssl(at, &["dgst", "-sha256", "-r", "pub.der"]).unwrap();

    let pem = std::fs::read_to_string(at.join("key.pem")).unwrap();
    let signing = SigningKey::from_pem(&pem, None).unwrap();
    let public = std::fs::read_to_string(at.join("pub.pem")).unwrap();
    assert_eq!(public, signing.public().to_pem().unwrap());
    let keyid = signing.public().key_id().to_string();
    assert!(String::from_utf8(sha.stdout).unwrap().starts_with(&keyid));

    let text = crate::support::publisher(
        "acme",
        &[PublicKey::from_pem(&public).unwrap()],
        1,
        &["text"],
    );
    let trust = toolward_signing::trust::TrustStore::from_toml(&text).unwrap();
    Sample::new().sign(&[&signing]).verify(&trust).unwrap();
}

#[test]
fn openssl_reads_the_keys_plain_and_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let secret = SecretString::from("correct horse");
    let plain = key(1).to_pem().unwrap();
    let encrypted = key(1).to_encrypted_pem(&secret).unwrap();
    std::fs::write(at.join("plain.pem"), plain.expose_secret()).unwrap();
    std::fs::write(at.join("encrypted.pem"), encrypted.expose_secret()).unwrap();
    for arguments in [
        &["pkey", "-in", "plain.pem", "-pubout"][..],
        &[
            "pkey",
            "-in",
            "encrypted.pem",
            "-passin",
            "pass:correct horse",
            "-pubout",
        ],
    ] {
        let Some(output) = openssl(at, arguments) else {
            return;
        };
        assert!(output.status.success(), "{output:?}");
        let public = String::from_utf8(output.stdout).unwrap();
        assert_eq!(public, key(1).public().to_pem().unwrap());
    }
    let wrong = [
        "pkey",
        "-in",
        "encrypted.pem",
        "-passin",
        "pass:wrong",
        "-pubout",
    ];
    assert!(!openssl(at, &wrong).unwrap().status.success());
}

#[test]
fn a_key_that_openssl_encrypted_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(
        at.join("plain.pem"),
        key(1).to_pem().unwrap().expose_secret(),
    )
    .unwrap();
    for derivation in [
        &["-scrypt"][..],
        &["-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA256"],
    ] {
        let mut arguments = vec![
            "pkcs8",
            "-topk8",
            "-in",
            "plain.pem",
            "-passout",
            "pass:secret",
        ];
        arguments.extend(derivation);
        let Some(output) = openssl(at, &arguments) else {
            return;
        };
        assert!(output.status.success(), "{output:?}");
        let pem = String::from_utf8(output.stdout).unwrap();
        let read = SigningKey::from_pem(&pem, Some(&SecretString::from("secret"))).unwrap();
        assert_eq!(read.public(), key(1).public());
    }
}

#[test]
fn gnu_tar_lists_and_extracts_an_archive() {
    let sample = Sample::new();
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("x.toolbundle");
    std::fs::write(&archive, sample.sign(&[&key(1)]).archive()).unwrap();
    let Some(version) = succeed(Command::new("tar").arg("--version")) else {
        return;
    };
    if !version.contains("GNU tar") || run(Command::new("zstd").arg("--version")).is_none() {
        skipped(&format!("needs GNU tar and zstd, found {version}"));
        return;
    }
    let tar = |arguments: &[&str]| {
        let mut command = Command::new("tar");
        command
            .current_dir(folder.path())
            .args(["--zstd", "-f"])
            .arg(&archive);
        let output = command.args(arguments).output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = tar(&["--list"]);
    let mut names: Vec<_> = listed.lines().collect();
    assert_eq!(&names[..2], ["manifest.dsse.json", "manifest.toml"]);
    names.drain(..2);
    assert_eq!(names, sample.files.keys().collect::<Vec<_>>());
    let verbose = tar(&["--list", "--verbose", "--numeric-owner", "--utc"]);
    for line in verbose.lines() {
        assert!(line.starts_with("-rw-r--r-- 0/0"), "{line}");
        assert!(line.contains("1970-01-01 00:00"), "{line}");
    }
    tar(&["--extract"]);
    for (path, bytes) in &sample.files {
        assert_eq!(&std::fs::read(folder.path().join(path)).unwrap(), bytes);
    }
}

#[test]
fn gnu_tar_reads_the_longest_path() {
    let mut sample = Sample::new();
    let path = format!("{}/{}", "d".repeat(54), "f".repeat(100));
    sample.files.insert(path.clone(), b"x".to_vec());
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("x.toolbundle");
    std::fs::write(&archive, sample.sign(&[&key(1)]).archive()).unwrap();
    let mut command = Command::new("tar");
    command.args(["--zstd", "--list", "-f"]).arg(&archive);
    if run(Command::new("zstd").arg("--version")).is_none() {
        return;
    }
    if let Some(listed) = succeed(&mut command) {
        assert!(listed.lines().any(|line| line == path));
    }
}

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
    let tools = &manifest.tools;
    let mut files: Vec<_> = manifest.files.iter().collect();
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

/// Manifests with a few pieces of TOML put in, or a few characters taken out, the same each time.
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

#[test]
fn pythons_cryptography_verifies_the_envelope() {
    let signed = Sample::new().sign(&[&key(1)]);
    let folder = tempfile::tempdir().unwrap();
    let (envelope, public) = (folder.path().join("e.json"), folder.path().join("pub.pem"));
    std::fs::write(&envelope, &signed.envelope).unwrap();
    std::fs::write(&public, key(1).public().to_pem().unwrap()).unwrap();
    let program = "
import base64, json, sys
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_pem_public_key
envelope = json.load(open(sys.argv[1]))
key = load_pem_public_key(open(sys.argv[2], 'rb').read())
payload = base64.b64decode(envelope['payload'], validate=True)
kind = envelope['payloadType'].encode()
pae = b'DSSEv1 %d %s %d %s' % (len(kind), kind, len(payload), payload)
signature = base64.b64decode(envelope['signatures'][0]['sig'], validate=True)
key.verify(signature, pae)
try:
    key.verify(signature, pae + b'x')
except InvalidSignature:
    sys.stdout.write(payload.decode())
";
    if let Some(payload) = python(&["cryptography==50.0.2"], program, &[&envelope, &public]) {
        assert_eq!(payload.as_bytes(), signed.manifest);
    }
}

#[test]
fn securesystemslib_verifies_bundle_and_provenance_envelopes() {
    let mut signed = Sample::new().sign(&[&key(1), &key(2)]);
    let claim = Provenance::new(Vec::new(), "rustc".to_owned(), "wasm32-wasip2".to_owned());
    let statement = claim.statement(&signed.manifest).unwrap();
    let provenance = envelope(provenance::PAYLOAD_TYPE, &statement, &[&key(1)]);
    signed.provenance = Some(provenance.clone());
    signed.verify(&acme()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let paths =
        ["bundle.json", "provenance.json", "1.pem", "2.pem"].map(|name| folder.path().join(name));
    let contents = [
        signed.envelope,
        provenance,
        key(1).public().to_pem().unwrap().into_bytes(),
        key(2).public().to_pem().unwrap().into_bytes(),
    ];
    for (path, content) in paths.iter().zip(contents) {
        std::fs::write(path, content).unwrap();
    }
    let program = "
import hashlib, json, sys
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey
bundle, provenance = (Envelope.from_dict(json.load(open(path))) for path in sys.argv[1:3])
keys = []
for path in sys.argv[3:5]:
    public = load_pem_public_key(open(path, 'rb').read())
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    keys.append(SSlibKey.from_crypto(public, keyid=hashlib.sha256(der).hexdigest()))
print(len(bundle.verify(keys, 2)))
print(len(provenance.verify(keys, 1)))
bundle.payload += b'x'
try:
    bundle.verify(keys, 1)
except VerificationError:
    print('refused')
";
    let packages = ["securesystemslib[crypto]==1.6.0", "cryptography==50.0.2"];
    let paths: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
    if let Some(output) = python(&packages, program, &paths) {
        assert_eq!(
            output.split_whitespace().collect::<Vec<_>>(),
            ["2", "1", "refused"]
        );
    }
}

#[test]
fn noble_hashes_gives_the_same_digests() {
    let Some(folder) = installed("node-noble-hashes-1.8.0", |folder| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(folder)
            .arg("@noble/hashes@1.8.0");
        npm
    }) else {
        return;
    };
    // Around the sizes at which BLAKE3 changes its ways: blocks of 64, chunks of 1024, trees of chunks.
    let sizes = [
        0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 2049, 5000, 131_072, 131_073, 400_000,
    ];
    let program = "
const { blake3 } = require('@noble/hashes/blake3');
const { bytesToHex } = require('@noble/hashes/utils');
for (const size of process.argv.slice(1)) {
    const bytes = Uint8Array.from({ length: +size }, (_, i) => i % 251);
    console.log(bytesToHex(blake3(bytes)));
}
";
    let mut node = Command::new("node");
    node.current_dir(&folder).args(["-e", program]);
    node.args(sizes.map(|size| size.to_string()));
    let Some(output) = succeed(&mut node) else {
        return;
    };
    let ours: Vec<_> = sizes
        .iter()
        .map(|size| {
            let bytes: Vec<u8> = (0..*size).map(|i| u8::try_from(i % 251).unwrap()).collect();
            Digest::of(&bytes).to_string()
        })
        .collect();
    assert_eq!(output.lines().collect::<Vec<_>>(), ours);
}

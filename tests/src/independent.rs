//! The project's signatures and archives, read by independent tools. The signing crate's own tests
//! do so for its formats; these tests do so for the command's output.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::support::outside::{have, openssl_key, output, python};
use crate::support::{EXAMPLES, Machine, archive, example_key};

const PAYLOAD_TYPE: &str = "application/vnd.toolward.bundle.manifest.v1+toml";

/// The bytes that a DSSE signature covers, written as in the specification.
fn pae(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "DSSEv1 {} {PAYLOAD_TYPE} {} ",
        PAYLOAD_TYPE.len(),
        payload.len()
    )
    .into_bytes();
    bytes.extend(payload);
    bytes
}

/// Extracts an archive with GNU tar and zstd.
fn extract(archive: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    output(
        Command::new("tar")
            .arg("--zstd")
            .arg("-xf")
            .arg(archive)
            .arg("-C")
            .arg(to),
    );
}

fn have_tar() -> bool {
    have("tar", &["--version"]) && have("zstd", &["--version"])
}

fn base64(directory: &Path, text: &str) -> Vec<u8> {
    std::fs::write(directory.join("encoded"), text).unwrap();
    let mut openssl = Command::new("openssl");
    output(
        openssl
            .current_dir(directory)
            .args(["base64", "-d", "-A", "-in", "encoded"]),
    )
}

/// Whether OpenSSL accepts the signature over these bytes.
fn openssl_verifies(directory: &Path, key: &str, bytes: &[u8], signature: &[u8]) -> bool {
    std::fs::write(directory.join("signed"), bytes).unwrap();
    std::fs::write(directory.join("signature"), signature).unwrap();
    let ended = Command::new("openssl")
        .current_dir(directory)
        .args(["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", key])
        .args(["-in", "signed", "-sigfile", "signature"])
        .output()
        .unwrap();
    ended.status.success()
}

#[test]
fn openssl_verifies_what_the_command_signed_with_a_key_of_openssls() {
    if !have("openssl", &["version"]) || !have_tar() {
        return;
    }
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    openssl_key(&machine.work(), "acme");
    machine
        .toolward("pack b -o b.toolbundle --key acme.pem")
        .ends(0);
    extract(&machine.path("b.toolbundle"), &machine.path("out"));

    let envelope: serde_json::Value =
        serde_json::from_slice(&machine.read("out/manifest.dsse.json")).unwrap();
    assert_eq!(envelope["payloadType"], PAYLOAD_TYPE);
    let payload = base64(&machine.work(), envelope["payload"].as_str().unwrap());
    assert_eq!(payload, machine.read("out/manifest.toml"));
    let signatures = envelope["signatures"].as_array().unwrap();
    assert_eq!(signatures.len(), 1);
    let signature = base64(&machine.work(), signatures[0]["sig"].as_str().unwrap());
    assert!(openssl_verifies(
        &machine.work(),
        "acme.pub.pem",
        &pae(&payload),
        &signature
    ));
    // The bare payload is not accepted, nor is a changed one.
    assert!(!openssl_verifies(
        &machine.work(),
        "acme.pub.pem",
        &payload,
        &signature
    ));
    let mut changed = payload;
    changed[0] ^= 1;
    assert!(!openssl_verifies(
        &machine.work(),
        "acme.pub.pem",
        &pae(&changed),
        &signature
    ));
}

#[test]
fn a_signature_that_openssl_made_is_taken() {
    if !have("openssl", &["version"]) {
        return;
    }
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    openssl_key(&machine.work(), "acme");
    machine.toolward("pack b -o packed").ends(0);
    let manifest = machine.read("packed/manifest.toml");
    machine.write("signed", pae(&manifest));
    let openssl = || {
        let mut openssl = Command::new("openssl");
        openssl.current_dir(machine.work());
        openssl
    };
    output(
        openssl()
            .args(["pkeyutl", "-sign", "-rawin", "-inkey", "acme.pem"])
            .args(["-in", "signed", "-out", "signature"]),
    );
    let encoded = |name: &str| {
        let text = output(openssl().args(["base64", "-A", "-in", name]));
        String::from_utf8(text).unwrap().trim().to_owned()
    };
    let envelope = serde_json::json!({
        "payloadType": PAYLOAD_TYPE,
        "payload": encoded("packed/manifest.toml"),
        "signatures": [{ "sig": encoded("signature") }],
    });
    machine.write("packed/manifest.dsse.json", envelope.to_string());
    machine
        .toolward("verify packed --trust-key acme.pub.pem")
        .ends(0);
}

/// A reader of a bundle's directory, written from the page on the format alone. It checks the
/// signature, the manifest, and every listed file.
const READER: &str = r#"
import base64, hashlib, json, os, sys, tomllib
from blake3 import blake3
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

folder, key_file = sys.argv[1:]
def read(*names):
    with open(os.path.join(folder, *names), "rb") as file:
        return file.read()

envelope = json.loads(read("manifest.dsse.json"))
with open(key_file, "rb") as file:
    key = load_pem_public_key(file.read())
payload = base64.b64decode(envelope["payload"], validate=True)
kind = envelope["payloadType"].encode()
pae = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
[signature] = envelope["signatures"]
assert signature["keyid"] == hashlib.sha256(der).hexdigest()
key.verify(base64.b64decode(signature["sig"], validate=True), pae)
assert payload == read("manifest.toml")

manifest = tomllib.loads(payload.decode())
assert manifest["schema"] == 1
listed = {"manifest.toml", "manifest.dsse.json", "provenance.dsse.json"}
for entry in [manifest["artifacts"]["tools"], *manifest["artifacts"]["files"]]:
    content = read(*entry["path"].split("/"))
    assert len(content) == entry["size"], entry
    assert blake3(content).hexdigest() == entry["blake3"], entry
    listed.add(entry["path"])
for root, _, names in os.walk(folder):
    for name in names:
        path = os.path.relpath(os.path.join(root, name), folder)
        assert path in listed, path
print(manifest["id"], len(listed), blake3(payload).hexdigest())
"#;

#[test]
fn python_verifies_every_example_from_the_formats_description_alone() {
    let (Some(_), Some(mut python)) = (
        python("cryptography", "cryptography"),
        python("blake3", "blake3==1.0.11"),
    ) else {
        return;
    };
    if !have_tar() || !have("python3", &["-c", "import tomllib"]) {
        return;
    }
    let machine = Machine::new();
    machine.write("reader.py", READER);
    python.arg(machine.path("reader.py"));
    for example in EXAMPLES {
        extract(&archive(example), &machine.path(example));
        machine.add_example(example);
        let words = format!("verify {example}.toolbundle --trust-key example.pub.pem --json");
        let verified = machine.toolward(&words).ends(0).json();
        let mut command = Command::new(python.get_program());
        command.args(python.get_args());
        command.envs(
            python
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let read = output(command.arg(machine.path(example)).arg(example_key()));
        let mut expected = String::new();
        write!(
            expected,
            "{} {} {}",
            verified["id"].as_str().unwrap(),
            verified["files"].as_u64().unwrap() + 3,
            verified["manifest_digest"].as_str().unwrap()
        )
        .unwrap();
        assert_eq!(
            String::from_utf8(read).unwrap().trim(),
            expected,
            "{example}"
        );
    }
}

#[test]
fn gnu_tar_lists_an_example_in_the_order_of_the_format() {
    if !have_tar() {
        return;
    }
    for example in EXAMPLES {
        let listed = output(
            Command::new("tar")
                .arg("--zstd")
                .arg("-tf")
                .arg(archive(example)),
        );
        let listed = String::from_utf8(listed).unwrap();
        let names: Vec<&str> = listed.lines().collect();
        let first = [
            "manifest.dsse.json",
            "manifest.toml",
            "provenance.dsse.json",
        ];
        assert_eq!(&names[..3], first, "{example}");
        assert!(names[3..].is_sorted(), "{names:?}");
    }
}

//! Independent tools agree: OpenSSL, GNU tar and zstd, Python's `tomllib`, `cryptography` and
//! `securesystemslib`, and a BLAKE3 in JavaScript. Packages are installed once, below the target
//! directory. If a tool or its registry is missing, the test reports that and passes.

mod documents;
mod toml;

use std::path::PathBuf;
use std::process::Command;

use secrecy::{ExposeSecret as _, SecretString};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::provenance::{self, Provenance};
use toolward_signing::{Digest, secrecy};

use crate::support::{Sample, acme, envelope, key};
use crate::tools::{installed, openssl, python, run, skipped, succeed};

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
    // Sizes around BLAKE3's boundaries: blocks of 64 bytes, chunks of 1024, trees of chunks.
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

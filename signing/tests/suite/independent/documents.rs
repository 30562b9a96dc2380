//! Independent tools read and verify publisher documents, revocation lists and channel indexes:
//! OpenSSL, Python's `tomllib`, `cryptography` and `securesystemslib`, and Node.

use std::path::Path;
use std::process::Command;

use toolward_signing::Digest;
use toolward_signing::envelope::Envelope;

use crate::support::{by, key};
use crate::tools::{openssl, python, run, skipped};
use crate::{channels, documents};

/// One document of each kind, signed by keys 1 and 2.
fn all() -> [Vec<u8>; 3] {
    [
        documents::full().to_envelope(),
        documents::list().to_envelope(),
        channels::index(1).to_envelope(),
    ]
    .map(|envelope| by(envelope, &[1, 2]))
}

fn write_keys(folder: &Path) {
    for number in [1, 2] {
        let pem = key(number).public().to_pem().unwrap();
        std::fs::write(folder.join(format!("{number}.pem")), pem).unwrap();
    }
}

#[test]
fn openssl_verifies_all_kinds_of_documents() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_keys(at);
    let arguments = [
        "pkeyutl", "-verify", "-pubin", "-inkey", "1.pem", "-rawin", "-in", "pae.bin", "-sigfile",
        "sig.bin",
    ];
    let id = key(1).public().key_id().to_string();
    for bytes in all() {
        let envelope = Envelope::parse(&bytes).unwrap();
        let signature = envelope
            .signatures()
            .iter()
            .find(|signature| signature.keyid.as_ref() == Some(&id))
            .unwrap();
        std::fs::write(at.join("pae.bin"), envelope.to_be_signed()).unwrap();
        std::fs::write(at.join("sig.bin"), &signature.sig).unwrap();
        let Some(output) = openssl(at, &arguments) else {
            return;
        };
        assert!(output.status.success(), "{output:?}");
        // The signature is not over the payload alone, without its type.
        std::fs::write(at.join("pae.bin"), envelope.payload()).unwrap();
        assert!(!openssl(at, &arguments).unwrap().status.success());
    }
}

#[test]
fn pythons_cryptography_verifies_all_kinds_of_documents_and_tomllib_reads_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_keys(at);
    let program = "
import base64, hashlib, json, sys
from pathlib import Path
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
try:
    import tomllib
except ImportError:
    tomllib = None
folder = Path(sys.argv[1])
keys = {}
for number in '12':
    key = load_pem_public_key((folder / (number + '.pem')).read_bytes())
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    keys[hashlib.sha256(der).hexdigest()] = key
read = []
for number in '012':
    envelope = json.loads((folder / (number + '.json')).read_bytes())
    payload = base64.b64decode(envelope['payload'], validate=True)
    kind = envelope['payloadType'].encode()
    pae = b'DSSEv1 %d %s %d %s' % (len(kind), kind, len(payload), payload)
    assert len(envelope['signatures']) == 2
    for signature in envelope['signatures']:
        sig = base64.b64decode(signature['sig'], validate=True)
        keys[signature['keyid']].verify(sig, pae)
        try:
            keys[signature['keyid']].verify(sig, pae + b'x')
            sys.exit('a signature over something else verifies')
        except InvalidSignature:
            pass
    read.append(tomllib.loads(payload.decode()) if tomllib else None)
print(json.dumps(read))
";
    for (number, bytes) in all().iter().enumerate() {
        std::fs::write(at.join(format!("{number}.json")), bytes).unwrap();
    }
    let Some(json) = python(&["cryptography==50.0.2"], program, &[at]) else {
        return;
    };
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    if read[0].is_null() {
        skipped("this Python has no tomllib");
        return;
    }
    let document = documents::full();
    let [publisher, list, index] = [0, 1, 2].map(|number| &read[number]);
    assert_eq!(publisher["name"], "acme");
    assert_eq!(publisher["version"], 3);
    assert_eq!(publisher["threshold"], 2);
    assert_eq!(publisher["expires"], "2027-11-01T12:00:00Z");
    for (number, key) in document.keys.iter().enumerate() {
        let pem = publisher["keys"][number]["pem"].as_str().unwrap();
        assert_eq!(pem, key.to_pem().unwrap());
    }
    for (number, revoked) in document.revoked_keys.iter().enumerate() {
        let read = &publisher["revoked_keys"][number];
        assert_eq!(read["key_id"], revoked.key_id.to_string());
        assert_eq!(read["reason"], revoked.reason);
    }
    assert_eq!(publisher["resets"][0]["sequence"], 0);
    assert_eq!(list["bundles"][0]["reason"], "it loses data");
    assert_eq!(index["bundles"][0]["name"], "Text \"statistics\"");
    assert_eq!(index["bundles"][0]["tools"][0]["id"], "text.stats:count");
    assert_eq!(index["bundles"][0]["tags"][1], "count");
}

#[test]
fn securesystemslib_counts_the_threshold_of_a_publisher_document() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_keys(at);
    let [publisher, _, _] = all();
    std::fs::write(at.join("both.json"), publisher).unwrap();
    let one = by(documents::full().to_envelope(), &[1]);
    std::fs::write(at.join("one.json"), one).unwrap();
    let program = "
import hashlib, json, sys
from pathlib import Path
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey
folder = Path(sys.argv[1])
keys = []
for number in '12':
    public = load_pem_public_key((folder / (number + '.pem')).read_bytes())
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    keys.append(SSlibKey.from_crypto(public, keyid=hashlib.sha256(der).hexdigest()))
for name in ['both.json', 'one.json']:
    envelope = Envelope.from_dict(json.loads((folder / name).read_bytes()))
    try:
        print(len(envelope.verify(keys, 2)))
    except VerificationError:
        print('refused')
";
    let packages = ["securesystemslib[crypto]==1.6.0", "cryptography==50.0.2"];
    if let Some(output) = python(&packages, program, &[at]) {
        let lines: Vec<_> = output.split_whitespace().collect();
        assert_eq!(lines, ["2", "refused"]);
    }
}

#[test]
fn nodes_crypto_verifies_a_channel_index() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_keys(at);
    let [_, _, index] = all();
    std::fs::write(at.join("index.json"), index).unwrap();
    let program = "
const { readFileSync } = require('node:fs');
const { createHash, createPublicKey, verify } = require('node:crypto');
const envelope = JSON.parse(readFileSync('index.json'));
const payload = Buffer.from(envelope.payload, 'base64');
const kind = Buffer.from(envelope.payloadType);
const head = `DSSEv1 ${kind.length} ${kind} ${payload.length} `;
const pae = Buffer.concat([Buffer.from(head), payload]);
for (const number of [1, 2]) {
  const key = createPublicKey(readFileSync(`${number}.pem`));
  const der = key.export({ type: 'spki', format: 'der' });
  const id = createHash('sha256').update(der).digest('hex');
  const found = envelope.signatures.find((signature) => signature.keyid === id);
  const sig = Buffer.from(found.sig, 'base64');
  console.log(verify(null, pae, key, sig), verify(null, payload, key, sig));
}
";
    let mut node = Command::new("node");
    let Some(output) = run(node.current_dir(at).args(["-e", program])) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "true false\ntrue false\n");
}

#[test]
fn a_fingerprint_is_what_its_description_says() {
    let document = documents::full();
    let mut ids: Vec<_> = document
        .keys
        .iter()
        .map(|key| key.key_id().to_string())
        .collect();
    ids.sort();
    let lines = format!("toolward fingerprint v1\nacme\n2\n{}\n", ids.join("\n"));
    assert_eq!(
        document.fingerprint().digest(),
        Digest::of(lines.as_bytes())
    );
}

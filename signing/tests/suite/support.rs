//! A small bundle, built in code, and ways to spoil it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use toolward_signing::archive::{self, Contents};
use toolward_signing::envelope::Envelope;
use toolward_signing::id::Prefix;
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::manifest::{
    Artifacts, ENVELOPE_FILE, FILE, FileEntry, FileRole, MANIFEST_TYPE, Manifest, ToolsEntry,
};
use toolward_signing::path::BundlePath;
use toolward_signing::publisher::{
    PublisherDocument, RevokedKey, Terms, VerifiedPublisher, first_use,
};
use toolward_signing::revocation::Revocations;
use toolward_signing::timestamp::Timestamp;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, Bundle, Mode, Verified, VerifyOptions};
use toolward_signing::{Digest, Refusal, provenance};

pub(crate) const CREATED: &str = "2026-11-01T12:00:00Z";

/// Key number `number`, the same each time.
pub(crate) fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

/// A bundle before it is signed.
pub(crate) struct Sample {
    pub(crate) id: String,
    pub(crate) publisher: String,
    pub(crate) expires: Option<String>,
    pub(crate) min_host: Option<String>,
    pub(crate) announces_provenance: bool,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Sample {
    pub(crate) fn new() -> Self {
        let mut wasm = b"\0asm\x0d\0\x01\0".to_vec();
        wasm.extend((0..20_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()));
        let files = [
            ("tools.json", br#"{"version":2,"tools":[]}"#.to_vec()),
            (
                "tools/text.stats/TOOL.md",
                b"---\nid: text.stats\n---\nCounts.\n".to_vec(),
            ),
            (
                "drivers/text-stats/DRIVER.md",
                b"---\nid: text-stats\n---\n".to_vec(),
            ),
            ("drivers/text-stats/driver.wasm", wasm),
            ("README.md", Vec::new()),
        ];
        Self {
            id: "text.stats".to_owned(),
            publisher: "acme".to_owned(),
            expires: None,
            min_host: None,
            announces_provenance: false,
            files: files.map(|(path, bytes)| (path.to_owned(), bytes)).into(),
        }
    }

    pub(crate) fn manifest(&self) -> Manifest {
        let tools = &self.files["tools.json"];
        Manifest {
            id: self.id.clone(),
            version: "1.2.3".parse().unwrap(),
            sequence: 7,
            publisher: self.publisher.clone(),
            created: Timestamp::parse(CREATED).unwrap(),
            expires: self.expires.as_deref().map(|text| text.parse().unwrap()),
            min_host: self.min_host.as_deref().map(|text| text.parse().unwrap()),
            provenance: self.announces_provenance,
            artifacts: Artifacts {
                tools: ToolsEntry {
                    path: BundlePath::parse("tools.json").unwrap(),
                    blake3: Digest::of(tools),
                    size: tools.len() as u64,
                    version: 2,
                },
                files: self
                    .files
                    .iter()
                    .filter(|(path, _)| *path != "tools.json")
                    .map(|(path, bytes)| FileEntry {
                        path: BundlePath::parse(path).unwrap(),
                        blake3: Digest::of(bytes),
                        size: bytes.len() as u64,
                        role: role(path),
                    })
                    .collect(),
            },
        }
    }

    pub(crate) fn sign(&self, keys: &[&SigningKey]) -> Signed {
        let manifest = self.manifest().to_bytes().unwrap();
        Signed {
            envelope: envelope(MANIFEST_TYPE, &manifest, keys),
            manifest,
            provenance: None,
            files: self.files.clone(),
        }
    }
}

fn role(path: &str) -> FileRole {
    match path.rsplit('/').next() {
        Some("TOOL.md") => FileRole::Contract,
        Some("DRIVER.md") => FileRole::Driver,
        Some("driver.wasm") => FileRole::Component,
        _ => FileRole::Other,
    }
}

pub(crate) fn envelope(payload_type: &str, payload: &[u8], keys: &[&SigningKey]) -> Vec<u8> {
    let mut envelope = Envelope::new(payload_type, payload.to_vec());
    for key in keys {
        envelope.sign(key);
    }
    envelope.to_bytes().unwrap()
}

/// A signed bundle, whose parts a test may change.
#[derive(Clone)]
pub(crate) struct Signed {
    pub(crate) envelope: Vec<u8>,
    pub(crate) manifest: Vec<u8>,
    pub(crate) provenance: Option<Vec<u8>>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Signed {
    pub(crate) fn archive(&self) -> Vec<u8> {
        archive::to_bytes(&Contents {
            envelope: &self.envelope,
            manifest: &self.manifest,
            provenance: self.provenance.as_deref(),
            files: self
                .files
                .iter()
                .map(|(path, bytes)| (BundlePath::parse(path).unwrap(), bytes.as_slice()))
                .collect(),
        })
        .unwrap()
    }

    pub(crate) fn write_to(&self, directory: &Path) {
        let documents = [
            (ENVELOPE_FILE, Some(&self.envelope)),
            (FILE, Some(&self.manifest)),
            (provenance::FILE, self.provenance.as_ref()),
        ];
        for (name, bytes) in documents {
            if let Some(bytes) = bytes {
                std::fs::write(directory.join(name), bytes).unwrap();
            }
        }
        for (path, bytes) in &self.files {
            let path = directory.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    }

    pub(crate) fn directory(&self) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        self.write_to(directory.path());
        directory
    }

    /// Verifies the bundle in both forms, which must agree.
    pub(crate) fn verify(&self, trust: &TrustStore) -> Result<Verified<Bundle>, Refusal> {
        let directory = self.directory();
        let as_directory = verify::open(directory.path(), trust, &options());
        let as_archive = verify::archive_bytes(&self.archive(), trust, &options());
        match (&as_directory, &as_archive) {
            (Ok(a), Ok(b)) => assert_same(a, b),
            (Err(a), Err(b)) => assert_eq!(a.code(), b.code(), "{a:?} {b:?}"),
            _ => panic!("directory: {as_directory:?}, archive: {as_archive:?}"),
        }
        as_directory
    }
}

pub(crate) fn assert_same(one: &Bundle, other: &Bundle) {
    assert!(same(one, other), "{one:?} differs from {other:?}");
}

/// Whether two bundles have the same bytes and signers.
pub(crate) fn same(one: &Bundle, other: &Bundle) -> bool {
    one.manifest_bytes == other.manifest_bytes
        && one.manifest_digest == other.manifest_digest
        && one.files == other.files
        && one.signers == other.signers
        && one.publisher == other.publisher
        && one.provenance == other.provenance
}

/// A day after the sample was created.
pub(crate) fn now() -> SystemTime {
    let created = Timestamp::parse(CREATED).unwrap().unix();
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(created).unwrap() + 86_400)
}

pub(crate) fn options() -> VerifyOptions<'static> {
    VerifyOptions {
        now: Some(now()),
        ..VerifyOptions::default()
    }
}

/// One `[[publisher]]` table.
pub(crate) fn publisher(
    name: &str,
    keys: &[PublicKey],
    threshold: usize,
    prefixes: &[&str],
) -> String {
    let keys: Vec<_> = keys.iter().map(|key| key.to_pem().unwrap()).collect();
    format!(
        "[[publisher]]\nname = {name:?}\nkeys = {keys:?}\nthreshold = {threshold}\nprefixes = {prefixes:?}\n"
    )
}

/// A trust store in which `acme` has key 1 and may publish `text`.
pub(crate) fn acme() -> TrustStore {
    TrustStore::from_toml(&publisher("acme", &[key(1).public()], 1, &["text"])).unwrap()
}

/// The tar archive inside a bundle archive.
pub(crate) fn tar_of(archive: &[u8]) -> Vec<u8> {
    zstd::stream::decode_all(archive).unwrap()
}

pub(crate) fn compress(tar: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(tar, 3).unwrap()
}

pub(crate) fn code(result: Result<Verified<Bundle>, Refusal>) -> &'static str {
    match result {
        Ok(bundle) => panic!("verified: {bundle:?}"),
        Err(refusal) => {
            assert!(refusal.hint().is_some());
            refusal.code()
        }
    }
}

/// A publisher document of `acme`, made when the sample was.
pub(crate) fn document(version: u64, threshold: usize, keys: &[u8]) -> PublisherDocument {
    PublisherDocument {
        name: "acme".to_owned(),
        version,
        created: Timestamp::parse(CREATED).unwrap(),
        expires: None,
        threshold,
        keys: keys.iter().map(|number| key(*number).public()).collect(),
        revoked_keys: Vec::new(),
        resets: Vec::new(),
    }
}

/// The document with these keys revoked, and without them.
pub(crate) fn revoking(mut document: PublisherDocument, keys: &[u8]) -> PublisherDocument {
    for number in keys {
        let public = key(*number).public();
        document.keys.retain(|key| *key != public);
        document.revoked_keys.push(revoked_key(*number));
    }
    document
}

pub(crate) fn revoked_key(number: u8) -> RevokedKey {
    RevokedKey {
        key_id: key(number).public().key_id(),
        since: None,
        reason: "a laptop was stolen".to_owned(),
    }
}

/// Signs an envelope with the keys of these numbers.
pub(crate) fn by(envelope: Result<Envelope, Refusal>, keys: &[u8]) -> Vec<u8> {
    let mut envelope = envelope.unwrap();
    for number in keys {
        envelope.sign(&key(*number));
    }
    envelope.to_bytes().unwrap()
}

/// The terms for most documents: nothing is revoked.
pub(crate) fn terms() -> Terms<'static> {
    static NOTHING: LazyLock<Revocations> = LazyLock::new(Revocations::none);
    Terms {
        now: now(),
        mode: Mode::Enforce,
        revocations: &NOTHING,
    }
}

/// A document that was accepted on first use.
pub(crate) fn accepted(document: &PublisherDocument, signers: &[u8]) -> VerifiedPublisher {
    first_use(&by(document.to_envelope(), signers), &terms()).unwrap()
}

/// A store that trusts `acme` by a document, for ids below `text`.
pub(crate) fn store_of(document: &VerifiedPublisher) -> TrustStore {
    let mut store = TrustStore::empty();
    store
        .add_document(document, vec![Prefix::parse("text").unwrap()])
        .unwrap();
    store
}

/// Verifies an archive of the sample that was signed by these keys.
pub(crate) fn verify_signed(
    keys: &[u8],
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    let keys: Vec<_> = keys.iter().map(|number| key(*number)).collect();
    let signed = Sample::new().sign(&keys.iter().collect::<Vec<_>>());
    verify::archive_bytes(&signed.archive(), trust, options)
}

/// The manifest's digest of the sample.
pub(crate) fn sample_digest() -> Digest {
    Digest::of(&Sample::new().manifest().to_bytes().unwrap())
}

//! Small signed bundles, and a store in a temporary directory.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolward_author::{PackOptions, Sealed, pack};
use toolward_bundle::libraries::NoLibraries;
use toolward_signing::key::SigningKey;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, Bundle, Verified, VerifyOptions};
use toolward_signing::{Digest, Refusal};
use toolward_store::{InstallOptions, InstallOutcome, InstalledBundle, Store};

/// The publisher's key, the same each time.
pub(crate) fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

pub(crate) fn trust_for(publisher: &str) -> TrustStore {
    let pem = key().public().to_pem().unwrap();
    TrustStore::from_toml(&format!(
        "[[publisher]]\nname = \"{publisher}\"\nkeys = [\"\"\"\n{pem}\"\"\"]\nprefixes = [\"demo\"]\n"
    ))
    .unwrap()
}

pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

/// A bundle with one contract.
#[derive(Clone)]
pub(crate) struct Release {
    pub(crate) id: String,
    pub(crate) publisher: String,
    pub(crate) sequence: u64,
    pub(crate) tool: String,
    pub(crate) description: String,
    pub(crate) payload: Vec<u8>,
}

impl Release {
    pub(crate) fn new(sequence: u64) -> Self {
        Self {
            id: "demo.greet".to_owned(),
            publisher: "acme".to_owned(),
            sequence,
            tool: "demo.greet".to_owned(),
            description: "Greets.".to_owned(),
            payload: format!("release {sequence}\n").into_bytes(),
        }
    }

    pub(crate) fn named(id: &str, sequence: u64) -> Self {
        Self {
            id: id.to_owned(),
            tool: id.to_owned(),
            ..Self::new(sequence)
        }
    }

    pub(crate) fn described(sequence: u64, description: &str) -> Self {
        Self {
            description: description.to_owned(),
            ..Self::new(sequence)
        }
    }

    pub(crate) fn archive(&self) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        let (id, publisher, sequence) = (&self.id, &self.publisher, self.sequence);
        let manifest = format!(
            "id = \"{id}\"\nversion = \"1.{sequence}.0\"\nsequence = {sequence}\npublisher = \"{publisher}\"\n\
             created = \"2026-11-21T08:00:00Z\"\n"
        );
        let (tool, description) = (&self.tool, &self.description);
        let contract = format!(
            "---\nid: {tool}\nname: Greet\ndescription: {description}\nversion: 1.0.0\n\
             inputs: {{ type: object, properties: {{ name: {{ type: string }} }} }}\n\
             outputs: {{ type: object }}\ntags: [greeting]\n---\n"
        );
        write("bundle.toml", manifest.as_bytes());
        write(&format!("tools/{tool}/TOOL.md"), contract.as_bytes());
        write("icons/payload.bin", &self.payload);
        let packed = pack(directory.path(), &PackOptions::default()).unwrap();
        let mut sealed = Sealed::new(&packed);
        sealed.sign(&key()).unwrap();
        sealed.to_archive().unwrap()
    }

    pub(crate) fn bundle(&self) -> Verified<Bundle> {
        verified(&self.archive(), &self.publisher)
    }
}

pub(crate) fn verified(archive: &[u8], publisher: &str) -> Verified<Bundle> {
    let options = VerifyOptions {
        now: Some(now()),
        ..VerifyOptions::default()
    };
    verify::archive_bytes(archive, &trust_for(publisher), &options).unwrap()
}

/// Verifies as an operator who trusts `acme`.
pub(crate) fn verifier() -> impl Fn(&mut File) -> Result<Verified<Bundle>, Refusal> + Sync {
    verifier_for("acme")
}

pub(crate) fn verifier_for(
    publisher: &str,
) -> impl Fn(&mut File) -> Result<Verified<Bundle>, Refusal> + Sync {
    let trust = trust_for(publisher);
    move |file| {
        let options = VerifyOptions {
            now: Some(now()),
            ..VerifyOptions::default()
        };
        verify::archive_file(file, &trust, &options)
    }
}

pub(crate) fn options() -> InstallOptions {
    InstallOptions {
        source: "a test".to_owned(),
        now: now(),
        allow_rollback: None,
        accept: None,
    }
}

/// A temporary directory for a store, deleted when this is dropped.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.path().join("state/trust.db")
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.store(), &self.state()).unwrap()
    }

    pub(crate) fn object(&self, digest: &Digest) -> PathBuf {
        self.store().join(format!("objects/{digest}.toolbundle"))
    }

    /// The names of all files in the directories of objects.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names = Vec::new();
        for folder in ["objects", "tmp"] {
            for entry in std::fs::read_dir(self.store().join(folder)).unwrap() {
                names.push(format!("{folder}/{}", entry.unwrap().file_name().display()));
            }
        }
        names.sort();
        names
    }
}

pub(crate) fn install(store: &Store, release: &Release) -> InstalledBundle {
    match store
        .install(&release.bundle(), &options(), &NoLibraries)
        .unwrap()
    {
        InstallOutcome::Installed { installed, .. } => installed,
        other => panic!("expected an installation, found {other:?}"),
    }
}

pub(crate) fn refused(store: &Store, release: &Release) -> &'static str {
    let before = store.list().unwrap();
    let code = store
        .install(&release.bundle(), &options(), &NoLibraries)
        .unwrap_err()
        .code();
    assert_eq!(store.list().unwrap(), before);
    code
}

//! Bundles to modify: an example is taken apart, changed, and signed again with a key of the test,
//! or changed after it was signed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use toolward_signing::archive::{self, Contents};
use toolward_signing::digest::Digest;
use toolward_signing::envelope::Envelope;
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::manifest::{self, FileEntry, FileRole, MANIFEST_TYPE, Manifest};
use toolward_signing::path::BundlePath;
use toolward_signing::provenance;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

/// The name of the machine index.
pub(crate) const TOOLS_JSON: &str = "tools.json";

/// A bundle before it is signed.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) manifest: Manifest,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Draft {
    /// Takes the files of an example's archive.
    pub(crate) fn of(example: &str) -> Self {
        let signed = Signed::of(example);
        Self {
            manifest: Manifest::parse(&signed.manifest).unwrap(),
            files: signed.files,
        }
    }

    /// Replaces a file's text by the result of `change`, which must differ.
    pub(crate) fn change(mut self, name: &str, change: impl Fn(&str) -> String) -> Self {
        let file = self
            .files
            .get_mut(name)
            .unwrap_or_else(|| panic!("no {name}"));
        let before = String::from_utf8(file.clone()).unwrap();
        let after = change(&before);
        assert_ne!(before, after, "{name} is as it was");
        *file = after.into_bytes();
        self
    }

    /// Replaces or adds a file.
    pub(crate) fn put(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(name.to_owned(), bytes.into());
        self
    }

    /// Lists the current files in the manifest, and signs the manifest.
    pub(crate) fn sign(&self, key: &SigningKey) -> Signed {
        let mut manifest = self.manifest.clone();
        let tools = &self.files[TOOLS_JSON];
        manifest.artifacts.tools.blake3 = Digest::of(tools);
        manifest.artifacts.tools.size = tools.len() as u64;
        let listed = self.files.iter().filter(|(name, _)| *name != TOOLS_JSON);
        manifest.artifacts.files = listed
            .map(|(name, bytes)| FileEntry {
                path: BundlePath::parse(name).unwrap(),
                blake3: Digest::of(bytes),
                size: bytes.len() as u64,
                role: role(name),
            })
            .collect();
        let manifest = manifest.to_bytes().unwrap();
        let mut envelope = Envelope::new(MANIFEST_TYPE, manifest.clone());
        envelope.sign(key);
        Signed {
            envelope: envelope.to_bytes().unwrap(),
            manifest,
            provenance: None,
            files: self.files.clone(),
        }
    }
}

fn role(name: &str) -> FileRole {
    match name.rsplit('/').next().unwrap() {
        "TOOL.md" => FileRole::Contract,
        "DRIVER.md" => FileRole::Driver,
        "ACTION.md" => FileRole::Action,
        file if file.ends_with(".wasm") => FileRole::Component,
        _ => FileRole::Other,
    }
}

/// A signed bundle in parts. A test may change each part.
#[derive(Clone)]
pub(crate) struct Signed {
    pub(crate) envelope: Vec<u8>,
    pub(crate) manifest: Vec<u8>,
    pub(crate) provenance: Option<Vec<u8>>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Signed {
    /// An example's archive, signed by the example key.
    pub(crate) fn of(example: &str) -> Self {
        let pem = fs::read_to_string(super::example_key()).unwrap();
        let trust = TrustStore::for_key(PublicKey::from_pem(&pem).unwrap());
        let options = VerifyOptions::default();
        let bundle = verify::open(&super::archive(example), &trust, &options)
            .unwrap_or_else(|refusal| panic!("{example}: {refusal}"))
            .into_inner();
        let files = bundle.files.iter();
        Self {
            envelope: bundle.envelope_bytes.to_vec(),
            manifest: bundle.manifest_bytes.to_vec(),
            provenance: bundle.provenance_bytes.as_ref().map(|bytes| bytes.to_vec()),
            files: files
                .map(|(path, bytes)| (path.as_str().to_owned(), bytes.to_vec()))
                .collect(),
        }
    }

    /// Writes the archive, even if its parts disagree.
    pub(crate) fn write_archive(&self, path: &Path) {
        let files = self.files.iter();
        let contents = Contents {
            envelope: &self.envelope,
            manifest: &self.manifest,
            provenance: self.provenance.as_deref(),
            files: files
                .map(|(name, bytes)| (BundlePath::parse(name).unwrap(), bytes.as_slice()))
                .collect(),
        };
        fs::write(path, archive::to_bytes(&contents).unwrap()).unwrap();
    }

    /// Writes the bundle as a directory, which must not exist yet.
    pub(crate) fn write_directory(&self, path: &Path) {
        fs::create_dir(path).unwrap();
        for (name, bytes) in self.parts() {
            let path = path.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    /// Returns every file of the bundle, including unlisted ones.
    pub(crate) fn parts(&self) -> BTreeMap<&str, &[u8]> {
        let listed = self
            .files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        let unlisted = [
            (manifest::ENVELOPE_FILE, Some(&self.envelope)),
            (manifest::FILE, Some(&self.manifest)),
            (provenance::FILE, self.provenance.as_ref()),
        ];
        let unlisted = unlisted
            .into_iter()
            .filter_map(|(name, bytes)| Some((name, bytes?.as_slice())));
        listed.chain(unlisted).collect()
    }
}

/// Makes a new key, and writes its public half as `NAME.pub.pem` to a directory.
pub(crate) fn new_key(directory: &Path, name: &str) -> SigningKey {
    let key = SigningKey::generate().unwrap();
    let pem = key.public().to_pem().unwrap();
    fs::write(directory.join(format!("{name}.pub.pem")), pem).unwrap();
    key
}

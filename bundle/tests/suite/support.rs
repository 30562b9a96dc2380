//! A small bundle in a temporary directory, and the ways to change it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolward_bundle::author::{PackOptions, Packed, Sealed, pack};
use toolward_bundle::content::{Content, ContentError};
use toolward_signing::key::SigningKey;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

pub(crate) const TOOL: &str = "---
id: demo.greet
name: Greet
description: Greets.
version: 1.0.0
inputs: { type: object, properties: { name: { type: string } }, required: [name] }
outputs: { type: object, properties: { greeting: { type: string } }, required: [greeting] }
---
";

pub(crate) const DRIVER: &str = "---
id: demo-greet
name: Greet driver
description: Greets.
version: 1.0.0
kind: component
component: driver.wasm
implements:
  - tool: demo.greet
    version: \"^1.0.0\"
---
";

pub(crate) const BUNDLE: &str = "id = \"demo.greet\"
version = \"1.0.0\"
sequence = 1
publisher = \"acme\"
created = \"2026-11-21T08:00:00Z\"
";

/// A component that exports the handler and imports `imports`.
pub(crate) fn component(export: &str, imports: &[&str]) -> Vec<u8> {
    let imports: String = imports
        .iter()
        .map(|name| format!("(import \"{name}\" (instance))"))
        .collect();
    wat::parse_str(format!(
        "(component {imports} (instance $i) (export \"{export}\" (instance $i)))"
    ))
    .unwrap()
}

pub(crate) fn handler() -> Vec<u8> {
    component("toolward:driver/handler@0.1.0", &[])
}

/// The authoring directory of a bundle.
pub(crate) struct Demo {
    pub(crate) directory: tempfile::TempDir,
}

impl Demo {
    pub(crate) fn new() -> Self {
        let demo = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        demo.write("bundle.toml", BUNDLE);
        demo.write("tools/demo.greet/TOOL.md", TOOL);
        demo.write("drivers/demo-greet/DRIVER.md", DRIVER);
        demo.write("drivers/demo-greet/driver.wasm", handler());
        demo
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        path
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.path().join(name)).unwrap();
    }

    pub(crate) fn pack(&self) -> Packed {
        pack(self.path(), &PackOptions::default()).unwrap()
    }
}

/// Signs, archives, verifies and reads a packed bundle.
pub(crate) fn read_signed(packed: &Packed) -> Result<Content, ContentError> {
    read_trusting(packed, |key| TrustStore::for_key(key.public()))
}

pub(crate) fn read_trusting(
    packed: &Packed,
    trust: impl Fn(&SigningKey) -> TrustStore,
) -> Result<Content, ContentError> {
    let key = SigningKey::generate().unwrap();
    let mut sealed = Sealed::new(packed);
    sealed.sign(&key).unwrap();
    let archive = sealed.to_archive().unwrap();
    let bundle = verify::archive_bytes(&archive, &trust(&key), &VerifyOptions::default()).unwrap();
    Content::from_verified(bundle)
}

/// A packed bundle with other files than `pack` would let in, its manifest in
/// order: what a hostile publisher signs.
pub(crate) fn forged(packed: &Packed, changes: &[(&str, &[u8])]) -> Packed {
    use toolward_signing::digest::Digest;
    let mut forged = packed.clone();
    for (name, bytes) in changes {
        forged.files.insert((*name).to_owned(), (*bytes).into());
    }
    let digests: BTreeMap<String, (Digest, u64)> = forged
        .files
        .iter()
        .map(|(name, bytes)| (name.clone(), (Digest::of(bytes), bytes.len() as u64)))
        .collect();
    let (digest, size) = digests["tools.json"];
    forged.manifest.tools.blake3 = digest;
    forged.manifest.tools.size = size;
    for entry in &mut forged.manifest.files {
        (entry.blake3, entry.size) = digests[entry.path.as_str()];
    }
    forged.manifest_bytes = forged.manifest.to_bytes().unwrap();
    forged
}

/// A packed bundle of one `tools.json` and nothing else.
pub(crate) fn index_only(tools_json: &str) -> Packed {
    let mut packed = Demo::new().pack();
    packed.files.clear();
    packed.manifest.files.clear();
    packed.manifest.tools.version = 1;
    forged(&packed, &[("tools.json", tools_json.as_bytes())])
}

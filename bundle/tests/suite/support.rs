//! Packed bundles, signed by their publisher or forged, and reading them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use toolward_author::Sealed;
use toolward_bundle::component::Surface;
use toolward_bundle::dev::PackedBundle;
use toolward_bundle::{Content, ContentError};
use toolward_signing::archive::to_stored_bytes;
use toolward_signing::digest::Digest;
use toolward_signing::key::SigningKey;
use toolward_signing::manifest::FileDigest;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, ReopenFn, VerifyOptions};

use crate::demo::Demo;

/// Signs, archives, verifies and reads a packed bundle.
pub(crate) fn read_signed(packed: &PackedBundle) -> Result<Content, ContentError> {
    read_trusting(packed, |key| TrustStore::for_key(key.public()))
}

pub(crate) fn read_trusting(
    packed: &PackedBundle,
    trust: impl Fn(&SigningKey) -> TrustStore,
) -> Result<Content, ContentError> {
    let key = SigningKey::generate().unwrap();
    let mut sealed = Sealed::new(packed);
    sealed.sign(&key).unwrap();
    let archive = sealed.to_archive().unwrap();
    let bundle = verify::archive_bytes(&archive, &trust(&key), &VerifyOptions::default()).unwrap();
    Content::from_verified(bundle)
}

/// Signs, stores, verifies and reads a packed bundle whose components are known by these facts.
pub(crate) fn read_stored(
    packed: &PackedBundle,
    facts: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Result<Content, ContentError> {
    let (key, options) = (SigningKey::generate().unwrap(), VerifyOptions::default());
    let mut sealed = Sealed::new(packed);
    sealed.sign(&key).unwrap();
    let archive = sealed.to_archive().unwrap();
    let trust = TrustStore::for_key(key.public());
    let bundle = verify::archive_bytes(&archive, &trust, &options).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    let stored = to_stored_bytes(&bundle.contents().unwrap());
    file.write_all(&stored).unwrap();
    let known = |found: &FileDigest| {
        let mut files = bundle.files.values();
        let bytes = files.find(|bytes| Digest::of(bytes) == found.blake3)?;
        let facts = facts(bytes).filter(|facts| Surface::is_known(facts, found.size));
        facts.map(Arc::from)
    };
    let again = file.try_clone().unwrap();
    let reopen: Arc<ReopenFn> = Arc::new(move || again.try_clone());
    let verified = verify::stored_file(&mut file, &trust, &options, &known, &reopen);
    Content::from_verified(verified.unwrap())
}

/// A packed bundle with files that `pack` would refuse and a matching manifest, as a hostile
/// publisher could sign it.
pub(crate) fn forged(packed: &PackedBundle, changes: &[(&str, &[u8])]) -> PackedBundle {
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
    forged.manifest.artifacts.tools.blake3 = digest;
    forged.manifest.artifacts.tools.size = size;
    for entry in &mut forged.manifest.artifacts.files {
        (entry.blake3, entry.size) = digests[entry.path.as_str()];
    }
    forged.manifest_bytes = forged.manifest.to_bytes().unwrap();
    forged
}

/// A packed bundle of one `tools.json` and nothing else.
pub(crate) fn index_only(tools_json: &str) -> PackedBundle {
    let mut packed = Demo::new().pack();
    packed.files.clear();
    packed.manifest.artifacts.files.clear();
    packed.manifest.artifacts.tools.version = 1;
    forged(&packed, &[("tools.json", tools_json.as_bytes())])
}

//! `manifest.toml`, schema 1: which files a bundle consists of, by size and digest.
//! [`crate::verify`] checks its signatures.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use semver::Version;
use serde::{Deserialize, Deserializer, Serialize};

use crate::digest::Digest;
use crate::document::{Format, name, number, optional_version, version};
use crate::error::{ErrorKind, Refusal, impl_serde_text, refuse};
use crate::path::{self, BundlePath};
use crate::text::{bytes, quoted};
use crate::timestamp::Timestamp;

/// The payload type under which a manifest is signed.
pub const MANIFEST_TYPE: &str = "application/vnd.toolward.bundle.manifest.v1+toml";
/// How large a manifest may be, in bytes: the whole manifest is in memory before a signature is
/// verified.
pub const MAX_BYTES: usize = 256 * 1024;
/// The manifest's name in a bundle.
pub const FILE: &str = "manifest.toml";
/// The envelope's name in a bundle.
pub const ENVELOPE_FILE: &str = "manifest.dsse.json";
/// The provenance's name in a bundle. No manifest lists it.
pub const PROVENANCE_FILE: &str = "provenance.dsse.json";
/// The machine index's name in a bundle: the only `path` that `[artifacts.tools]` may have.
pub const TOOLS_FILE: &str = "tools.json";

toolward_support::words! {
    /// What a file is for.
    #[derive(PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    FileRole, as_str {
        /// A contract: `TOOL.md`.
        Contract = "contract",
        /// A driver's declaration: `DRIVER.md`.
        Driver = "driver",
        /// A driver's WebAssembly component.
        Component = "component",
        /// An abstract action: `ACTION.md`.
        Action = "action",
        /// A prompt.
        Prompt = "prompt",
        /// A resource.
        Resource = "resource",
        /// A JSON Schema that contracts refer to.
        Schema = "schema",
        /// An icon.
        Icon = "icon",
        /// Anything else: a README, a licence.
        Other = "other",
    }
}

impl fmt::Display for FileRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FileRole {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::ALL
            .iter()
            .find(|role| role.as_str() == text)
            .copied()
            .ok_or_else(|| {
                Refusal::new(ErrorKind::ManifestField)
                    .expected(
                        "contract, driver, component, action, prompt, resource, schema, icon or other",
                    )
                    .found(quoted(text))
            })
    }
}

impl_serde_text!(FileRole);

/// The listed files, `[artifacts]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifacts {
    /// `tools.json`.
    pub tools: ToolsEntry,
    /// All other files, except the manifest, its envelope and the provenance.
    #[serde(default)]
    pub files: Vec<FileEntry>,
}

/// The entry of `tools.json`, the machine index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsEntry {
    /// The file's path.
    #[serde(deserialize_with = "tools_path")]
    pub path: BundlePath,
    /// The digest of its bytes.
    pub blake3: Digest,
    /// Its size in bytes.
    #[serde(deserialize_with = "number::<0, _>")]
    pub size: u64,
    /// The version of its format, equal to the document's own `version`.
    #[serde(deserialize_with = "number::<0, _>")]
    pub version: u64,
}

/// The entry of any other file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// The file's path.
    #[serde(deserialize_with = "listed_path")]
    pub path: BundlePath,
    /// The digest of its bytes.
    pub blake3: Digest,
    /// Its size in bytes.
    #[serde(deserialize_with = "number::<0, _>")]
    pub size: u64,
    /// What the file is for.
    pub role: FileRole,
}

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The bundle's id (see [`crate::id::check`]).
    #[serde(deserialize_with = "name")]
    pub id: String,
    /// The bundle's version.
    #[serde(deserialize_with = "version")]
    pub version: Version,
    /// Rises with every release of this id, so that an older release is noticed. At most 2^63 − 1,
    /// TOML's limit.
    #[serde(deserialize_with = "number::<0, _>")]
    pub sequence: u64,
    /// The publisher's name. The operator's trust store must know it.
    #[serde(deserialize_with = "name")]
    pub publisher: String,
    /// When the bundle was made.
    pub created: Timestamp,
    /// When the bundle stops being valid.
    pub expires: Option<Timestamp>,
    /// The oldest host that can run the bundle.
    #[serde(default, deserialize_with = "optional_version")]
    pub min_host: Option<Version>,
    /// Whether `provenance.dsse.json` belongs to the bundle. If so, the bundle is refused without
    /// the file: no one can remove it unnoticed.
    #[serde(default, deserialize_with = "only_true")]
    pub provenance: bool,
    /// The listed files.
    pub artifacts: Artifacts,
}

/// Digest and size of a file, as the manifest lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// The digest of its bytes.
    pub blake3: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// How much is read at once before it is hashed: small enough to stay in the cache.
const CHUNK_BYTES: usize = 128 * 1024;

impl FileDigest {
    /// Fills a buffer of this size piece by piece, and compares the digest.
    pub(crate) fn read(
        self,
        mut fill: impl FnMut(&mut [u8]) -> Result<(), Refusal>,
    ) -> Result<Arc<[u8]>, Refusal> {
        let size = usize::try_from(self.size)
            .map_err(|_| Refusal::new(ErrorKind::TooLarge).found(bytes(self.size)))?;
        let mut content: Arc<[u8]> = std::iter::repeat_n(0, size).collect();
        let mut hasher = blake3::Hasher::new();
        // The buffer is not shared yet, so `get_mut` returns it.
        for piece in Arc::get_mut(&mut content)
            .unwrap_or_default()
            .chunks_mut(CHUNK_BYTES)
        {
            fill(piece)?;
            hasher.update(piece);
        }
        let found = Digest::finish(&hasher);
        if found == self.blake3 {
            Ok(content)
        } else {
            Err(Refusal::new(ErrorKind::DigestMismatch)
                .expected(self.blake3.to_string())
                .found(found.to_string()))
        }
    }
}

impl Manifest {
    /// Digest and size of the file at `path`.
    #[must_use]
    pub fn entry(&self, path: &str) -> Option<FileDigest> {
        self.entries()
            .find(|(listed, _)| listed.as_str() == path)
            .map(|(_, expected)| expected)
    }

    /// All listed files, `tools.json` first.
    pub fn entries(&self) -> impl Iterator<Item = (&BundlePath, FileDigest)> {
        let Artifacts { tools, files } = &self.artifacts;
        let tools = (&tools.path, tools.blake3, tools.size);
        let files = files
            .iter()
            .map(|file| (&file.path, file.blake3, file.size));
        let all = std::iter::once(tools).chain(files);
        all.map(|(path, blake3, size)| (path, FileDigest { blake3, size }))
    }

    /// All listed files, sorted by the bytes of their paths.
    #[must_use]
    pub fn sorted(&self) -> BTreeMap<&BundlePath, FileDigest> {
        self.entries().collect()
    }

    /// The size of all listed files together, in bytes, at most [`u64::MAX`].
    #[must_use]
    pub fn total_size(&self) -> u64 {
        let sizes = self.entries().map(|(_, expected)| expected.size);
        sizes.fold(0, u64::saturating_add)
    }
}

const FORMAT: Format = Format {
    name: FILE,
    max_bytes: MAX_BYTES,
    text: ErrorKind::ManifestText,
    syntax: ErrorKind::ManifestSyntax,
    schema: ErrorKind::ManifestSchema,
    field: ErrorKind::ManifestField,
};

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ErrorKind::ManifestText`], [`ErrorKind::ManifestSyntax`], [`ErrorKind::ManifestSchema`],
    /// [`ErrorKind::ManifestField`], or the error of an invalid value, such as
    /// [`ErrorKind::PathInvalid`]. The place is `manifest.toml:LINE:COLUMN` if that is known.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let manifest: Self = FORMAT.read(bytes, &[])?;
        path::check_set(manifest.entries().map(|(path, _)| path))
            .map_err(|refusal| refusal.at(FILE))?;
        if let Some(expires) = manifest.expires
            && expires <= manifest.created
        {
            return Err(Refusal::new(ErrorKind::ManifestField)
                .at(format!("{FILE}: expires"))
                .expected(format!("a time after `created`, {}", manifest.created))
                .found(expires.to_string()));
        }
        Ok(manifest)
    }

    /// Writes the manifest with files sorted by path, the same bytes each time. The bytes are read
    /// back as a check.
    ///
    /// # Errors
    /// The errors of [`Manifest::parse`], and [`ErrorKind::ManifestField`] if the manifest does not
    /// read back equal.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        let mut sorted = self.clone();
        sorted.artifacts.files.sort_by(|a, b| a.path.cmp(&b.path));
        FORMAT.write(&sorted, Self::parse)
    }
}

/// Reads a key that may only be `true`, so that a missing key is the only spelling of false.
fn only_true<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    match bool::deserialize(from)? {
        true => Ok(true),
        false => Err(refuse(
            Refusal::new(ErrorKind::ManifestField)
                .expected("`provenance = true`, or no such key")
                .found("false"),
        )),
    }
}

/// Reads the path of the index, which must be `tools.json`. Hosts read the index by that name, and
/// a reader that follows the manifest must find the same file.
fn tools_path<'de, D: Deserializer<'de>>(from: D) -> Result<BundlePath, D::Error> {
    let text = String::deserialize(from)?;
    if text == TOOLS_FILE {
        return BundlePath::parse(&text).map_err(refuse);
    }
    Err(refuse(
        Refusal::new(ErrorKind::ManifestField)
            .expected(TOOLS_FILE)
            .found(quoted(&text)),
    ))
}

/// Whether this is the name, in any case, of a document that no manifest lists.
pub(crate) fn is_document(name: &str) -> bool {
    let documents = [FILE, ENVELOPE_FILE, PROVENANCE_FILE];
    documents.iter().any(|one| one.eq_ignore_ascii_case(name))
}

/// A path that a manifest may list. The manifest, its envelope and the provenance are not listed.
fn listed_path<'de, D: Deserializer<'de>>(from: D) -> Result<BundlePath, D::Error> {
    let text = String::deserialize(from)?;
    if is_document(&text) {
        return Err(refuse(
            Refusal::new(ErrorKind::PathInvalid)
                .expected("no entry for the manifest, its envelope or the provenance")
                .found(quoted(&text)),
        ));
    }
    BundlePath::parse(&text).map_err(refuse)
}

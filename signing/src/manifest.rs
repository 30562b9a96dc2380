//! `manifest.toml`, schema 1: which files a bundle consists of, by size and digest. [`crate::verify`] checks its
//! signatures.

mod toml;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use semver::Version;

use crate::digest::Digest;
use crate::error::{ErrorKind, Refusal};
use crate::path::BundlePath;
use crate::timestamp::Timestamp;

/// The payload type under which a manifest is signed.
pub const MANIFEST_TYPE: &str = "application/vnd.toolward.bundle.manifest.v1+toml";
/// The schema that this crate reads and writes.
pub const SCHEMA: u64 = 1;
/// How large a manifest may be, in bytes: all of it is in memory before any key is trusted.
pub const MAX_BYTES: usize = 256 * 1024;
/// The manifest's name in a bundle.
pub const FILE: &str = "manifest.toml";
/// The envelope's name in a bundle.
pub const ENVELOPE_FILE: &str = "manifest.dsse.json";
/// The provenance's name in a bundle: no manifest lists it either.
pub const PROVENANCE_FILE: &str = "provenance.dsse.json";
/// The machine index's name in a bundle: the only `path` that `[artifacts.tools]` may have.
pub const TOOLS_FILE: &str = "tools.json";

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FileRole {
    /// A contract: `TOOL.md`.
    Contract,
    /// A driver's declaration: `DRIVER.md`.
    Driver,
    /// A driver's WebAssembly component.
    Component,
    /// An abstract action: `ACTION.md`.
    Action,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A JSON Schema that contracts refer to.
    Schema,
    /// An icon.
    Icon,
    /// Anything else: a README, a licence.
    Other,
}

impl FileRole {
    /// All roles.
    pub const ALL: &[Self] = &[
        Self::Contract,
        Self::Driver,
        Self::Component,
        Self::Action,
        Self::Prompt,
        Self::Resource,
        Self::Schema,
        Self::Icon,
        Self::Other,
    ];

    /// The role as the manifest writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Driver => "driver",
            Self::Component => "component",
            Self::Action => "action",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Schema => "schema",
            Self::Icon => "icon",
            Self::Other => "other",
        }
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
                    .found(crate::text::quoted(text))
            })
    }
}

/// The entry of `tools.json`, the machine index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolsEntry {
    /// The file's path.
    pub path: BundlePath,
    /// The digest of its bytes.
    pub blake3: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// The version of its format, equal to the document's own `version`.
    pub version: u64,
}

/// The entry of any other file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// The file's path.
    pub path: BundlePath,
    /// The digest of its bytes.
    pub blake3: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// What the file is for.
    pub role: FileRole,
}

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The bundle's id (see [`crate::id::check`]).
    pub id: String,
    /// The bundle's version.
    pub version: Version,
    /// Rises with every release of this id, so that going back is noticed. At most 2^63 − 1, as TOML has it.
    pub sequence: u64,
    /// The publisher's name. The operator's trust store must know it.
    pub publisher: String,
    /// When the bundle was made.
    pub created: Timestamp,
    /// When the bundle stops being valid.
    pub expires: Option<Timestamp>,
    /// The oldest host that can run the bundle.
    pub min_host: Option<Version>,
    /// Whether `provenance.dsse.json` belongs to the bundle: without the file the bundle is refused, so that nothing on
    /// the way can remove it unnoticed.
    pub provenance: bool,
    /// `tools.json`.
    pub tools: ToolsEntry,
    /// All other files, but the manifest, its envelope and the provenance.
    pub files: Vec<FileEntry>,
}

/// Digest and size of a file, as the manifest lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// The digest of its bytes.
    pub blake3: Digest,
    /// Its size in bytes.
    pub size: u64,
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
        let tools = FileDigest {
            blake3: self.tools.blake3,
            size: self.tools.size,
        };
        std::iter::once((&self.tools.path, tools)).chain(self.files.iter().map(|file| {
            let expected = FileDigest {
                blake3: file.blake3,
                size: file.size,
            };
            (&file.path, expected)
        }))
    }

    /// All listed files, sorted by the bytes of their paths.
    #[must_use]
    pub fn sorted(&self) -> BTreeMap<&BundlePath, FileDigest> {
        self.entries().collect()
    }

    /// The size of all listed files together, in bytes; [`u64::MAX`] if it is beyond that.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.entries().fold(0, |sum: u64, (_, expected)| {
            sum.saturating_add(expected.size)
        })
    }
}

//! `manifest.toml`, schema 1: which files a bundle consists of, by size and digest. Whether anybody
//! signed it is [`crate::verify`]'s business.

mod parse;
mod write;

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
/// How large a manifest may be, in bytes: everything in it is held in memory before anybody is trusted.
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
    /// Where it is.
    pub path: BundlePath,
    /// Its digest.
    pub blake3: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// The version of its format, equal to the document's own `version`.
    pub version: u64,
}

/// The entry of any other file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Where it is.
    pub path: BundlePath,
    /// Its digest.
    pub blake3: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// What it is for.
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
    /// The name that the publisher gives itself. It has to be a name that the operator's trust store knows.
    pub publisher: String,
    /// When the bundle was made.
    pub created: Timestamp,
    /// When the bundle stops being valid.
    pub expires: Option<Timestamp>,
    /// The oldest host that can run the bundle.
    pub min_host: Option<Version>,
    /// Whether `provenance.dsse.json` belongs to the bundle: without the file it is refused, so that nobody on
    /// the way takes it out unnoticed.
    pub provenance: bool,
    /// `tools.json`.
    pub tools: ToolsEntry,
    /// All other files, but the manifest, its envelope and the provenance.
    pub files: Vec<FileEntry>,
}

/// What the manifest says of one file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The digest.
    pub blake3: Digest,
    /// The size in bytes.
    pub size: u64,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ErrorKind::ManifestText`], [`ErrorKind::ManifestSyntax`], [`ErrorKind::ManifestSchema`],
    /// [`ErrorKind::ManifestField`], or the reason of the value that is wrong, such as
    /// [`ErrorKind::PathInvalid`]; at `manifest.toml:LINE:COLUMN` where that is known.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        parse::manifest(bytes)
    }

    /// Writes the manifest: files sorted by path, the same bytes each time. The bytes have been read back.
    ///
    /// # Errors
    /// Those of [`Manifest::parse`], for a manifest that can't be written so that it reads back equal.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        write::manifest(self)
    }

    /// What the manifest says of the file at `path`.
    #[must_use]
    pub fn entry(&self, path: &str) -> Option<Expected> {
        self.entries()
            .find(|(listed, _)| listed.as_str() == path)
            .map(|(_, expected)| expected)
    }

    /// All listed files, `tools.json` first.
    pub fn entries(&self) -> impl Iterator<Item = (&BundlePath, Expected)> {
        let tools = Expected {
            blake3: self.tools.blake3,
            size: self.tools.size,
        };
        std::iter::once((&self.tools.path, tools)).chain(self.files.iter().map(|file| {
            let expected = Expected {
                blake3: file.blake3,
                size: file.size,
            };
            (&file.path, expected)
        }))
    }

    /// All listed files, sorted by the bytes of their paths.
    #[must_use]
    pub fn sorted(&self) -> BTreeMap<&BundlePath, Expected> {
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

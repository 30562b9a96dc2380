//! `manifest.toml`, schema 1: which files a bundle consists of, by size and digest. [`crate::verify`] checks its
//! signatures.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use semver::Version;
use serde::Deserialize;
use toml::Spanned;

use crate::digest::Digest;
use crate::document::{DocumentText, Format, each, write_time};
use crate::error::{ErrorKind, Refusal};
use crate::path::{self, BundlePath};
use crate::text::quoted;
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
                    .found(quoted(text))
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

const FORMAT: Format = Format {
    name: FILE,
    max_bytes: MAX_BYTES,
    text: ErrorKind::ManifestText,
    syntax: ErrorKind::ManifestSyntax,
    schema: ErrorKind::ManifestSchema,
    field: ErrorKind::ManifestField,
};

/// The manifest as TOML has it, with the place of each value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    schema: Spanned<u64>,
    id: Spanned<String>,
    version: Spanned<String>,
    sequence: Spanned<u64>,
    publisher: Spanned<String>,
    created: Spanned<String>,
    expires: Option<Spanned<String>>,
    min_host: Option<Spanned<String>>,
    provenance: Option<Spanned<bool>>,
    artifacts: RawArtifacts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawArtifacts {
    tools: RawTools,
    #[serde(default)]
    files: Vec<RawFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTools {
    path: Spanned<String>,
    blake3: Spanned<String>,
    size: Spanned<u64>,
    version: Spanned<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    path: Spanned<String>,
    blake3: Spanned<String>,
    size: Spanned<u64>,
    role: Spanned<String>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ErrorKind::ManifestText`], [`ErrorKind::ManifestSyntax`], [`ErrorKind::ManifestSchema`],
    /// [`ErrorKind::ManifestField`], or the reason of the value that is wrong, such as
    /// [`ErrorKind::PathInvalid`]; at `manifest.toml:LINE:COLUMN` if that is known.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let (source, raw) = DocumentText::read::<Raw>(FORMAT, bytes)?;
        source.value(&raw.schema, |schema| match *schema {
            SCHEMA => Ok(()),
            other => Err(source.other_schema(other)),
        })?;
        let tools = &raw.artifacts.tools;
        let min_host = raw.min_host.as_ref();
        let manifest = Self {
            id: source.name(&raw.id)?,
            version: source.version(&raw.version)?,
            sequence: source.number(&raw.sequence, 0)?,
            publisher: source.name(&raw.publisher)?,
            created: source.parsed(&raw.created)?,
            expires: source.optional(raw.expires.as_ref(), |text| text.parse())?,
            min_host: min_host.map(|text| source.version(text)).transpose()?,
            provenance: source
                .optional(raw.provenance.as_ref(), only_true)?
                .is_some(),
            tools: ToolsEntry {
                path: source.value(&tools.path, |text| tools_path(text))?,
                blake3: source.parsed(&tools.blake3)?,
                size: source.number(&tools.size, 0)?,
                version: source.number(&tools.version, 0)?,
            },
            files: each(&raw.artifacts.files, |file| {
                Ok(FileEntry {
                    path: source.value(&file.path, |text| listed_path(text))?,
                    blake3: source.parsed(&file.blake3)?,
                    size: source.number(&file.size, 0)?,
                    role: source.parsed(&file.role)?,
                })
            })?,
        };
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

    /// Writes the manifest: files sorted by path, the same bytes each time. The bytes have been read back.
    ///
    /// # Errors
    /// Those of [`Manifest::parse`], for a manifest that can't be written so that it reads back equal.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        let mut sorted = self.clone();
        sorted.files.sort_by(|a, b| a.path.cmp(&b.path));
        let write = |text: &mut String| sorted.write(text);
        FORMAT.write(&sorted, write, Self::parse)
    }

    /// Strings need no escapes: every value that reading accepts is plain ASCII, and others do not read back.
    fn write(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "schema = {SCHEMA}")?;
        writeln!(text, "id = \"{}\"", self.id)?;
        writeln!(text, "version = \"{}\"", self.version)?;
        writeln!(text, "sequence = {}", self.sequence)?;
        writeln!(text, "publisher = \"{}\"", self.publisher)?;
        writeln!(text, "created = \"{}\"", self.created)?;
        write_time(text, "expires", self.expires)?;
        if let Some(min_host) = &self.min_host {
            writeln!(text, "min_host = \"{min_host}\"")?;
        }
        if self.provenance {
            writeln!(text, "provenance = true")?;
        }
        writeln!(text, "\n[artifacts.tools]")?;
        writeln!(text, "path = \"{}\"", self.tools.path)?;
        writeln!(text, "blake3 = \"{}\"", self.tools.blake3)?;
        writeln!(text, "size = {}", self.tools.size)?;
        writeln!(text, "version = {}", self.tools.version)?;
        for file in &self.files {
            writeln!(text, "\n[[artifacts.files]]")?;
            writeln!(text, "path = \"{}\"", file.path)?;
            writeln!(text, "blake3 = \"{}\"", file.blake3)?;
            writeln!(text, "size = {}", file.size)?;
            writeln!(text, "role = \"{}\"", file.role)?;
        }
        Ok(())
    }
}

/// A key that is written only if it is true: there is one way to write each manifest.
fn only_true(value: &bool) -> Result<(), Refusal> {
    match value {
        true => Ok(()),
        false => Err(Refusal::new(ErrorKind::ManifestField)
            .expected("`provenance = true`, or no such key")
            .found("false")),
    }
}

/// Hosts read the index by its name; a reader that follows the manifest must find the same file.
fn tools_path(text: &str) -> Result<BundlePath, Refusal> {
    if text == TOOLS_FILE {
        return BundlePath::parse(text);
    }
    Err(Refusal::new(ErrorKind::ManifestField)
        .expected(TOOLS_FILE)
        .found(quoted(text)))
}

/// Whether a name, in any case, is that of a document which no manifest lists.
pub(crate) fn is_document(name: &str) -> bool {
    let documents = [FILE, ENVELOPE_FILE, PROVENANCE_FILE];
    documents.iter().any(|one| one.eq_ignore_ascii_case(name))
}

/// A path that a manifest may list. The manifest, its envelope and the provenance are not listed.
fn listed_path(text: &str) -> Result<BundlePath, Refusal> {
    let path = BundlePath::parse(text)?;
    if is_document(text) {
        return Err(Refusal::new(ErrorKind::PathInvalid)
            .expected("no entry for the manifest, its envelope or the provenance")
            .found(quoted(text)));
    }
    Ok(path)
}

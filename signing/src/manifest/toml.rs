//! The TOML of a manifest. It has one layout, so that packing twice gives the same bytes.

use std::fmt::Write as _;

use serde::Deserialize;
use toml::Spanned;

use super::{ENVELOPE_FILE, FILE, MAX_BYTES, PROVENANCE_FILE, SCHEMA, TOOLS_FILE};
use super::{FileEntry, Manifest, ToolsEntry};
use crate::document::{DocumentText, Format};
use crate::error::{ErrorKind, Refusal};
use crate::path::{self, BundlePath};
use crate::text::quoted;

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
            files: raw
                .artifacts
                .files
                .iter()
                .map(|file| {
                    Ok(FileEntry {
                        path: source.value(&file.path, |text| listed_path(text))?,
                        blake3: source.parsed(&file.blake3)?,
                        size: source.number(&file.size, 0)?,
                        role: source.parsed(&file.role)?,
                    })
                })
                .collect::<Result<_, Refusal>>()?,
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
    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "schema = {SCHEMA}")?;
        writeln!(text, "id = \"{}\"", self.id)?;
        writeln!(text, "version = \"{}\"", self.version)?;
        writeln!(text, "sequence = {}", self.sequence)?;
        writeln!(text, "publisher = \"{}\"", self.publisher)?;
        writeln!(text, "created = \"{}\"", self.created)?;
        if let Some(expires) = self.expires {
            writeln!(text, "expires = \"{expires}\"")?;
        }
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

/// A path that a manifest may list. The manifest, its envelope and the provenance are not listed.
fn listed_path(text: &str) -> Result<BundlePath, Refusal> {
    let path = BundlePath::parse(text)?;
    let reserved = [FILE, ENVELOPE_FILE, PROVENANCE_FILE];
    if reserved
        .iter()
        .any(|reserved| reserved.eq_ignore_ascii_case(text))
    {
        return Err(Refusal::new(ErrorKind::PathInvalid)
            .expected("no entry for the manifest, its envelope or the provenance")
            .found(quoted(text)));
    }
    Ok(path)
}

//! Reading: the manifest as TOML, then every value into its own type.

use serde::Deserialize;
use toml::Spanned;

use super::{FILE, FileEntry, MAX_BYTES, Manifest, SCHEMA, TOOLS_FILE, ToolsEntry};
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

/// The manifest as TOML has it; each value remembers where it stands.
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

pub(super) fn manifest(bytes: &[u8]) -> Result<Manifest, Refusal> {
    let (source, raw) = DocumentText::read::<Raw>(FORMAT, bytes)?;
    source.value(&raw.schema, |schema| match *schema {
        SCHEMA => Ok(()),
        other => Err(source.other_schema(other)),
    })?;
    let expires = raw.expires.as_ref();
    let min_host = raw.min_host.as_ref();
    let files = raw.artifacts.files.iter();
    let manifest = Manifest {
        id: source.name(&raw.id)?,
        version: source.version(&raw.version)?,
        sequence: source.value(&raw.sequence, number)?,
        publisher: source.name(&raw.publisher)?,
        created: source.parsed(&raw.created)?,
        expires: source.optional(expires, |text| text.parse())?,
        min_host: min_host.map(|text| source.version(text)).transpose()?,
        provenance: source
            .optional(raw.provenance.as_ref(), only_true)?
            .is_some(),
        tools: tools(&source, &raw.artifacts.tools)?,
        files: files
            .map(|raw| file(&source, raw))
            .collect::<Result<_, _>>()?,
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

fn tools(source: &DocumentText<'_>, raw: &RawTools) -> Result<ToolsEntry, Refusal> {
    Ok(ToolsEntry {
        path: source.value(&raw.path, |text| tools_path(text))?,
        blake3: source.parsed(&raw.blake3)?,
        size: source.value(&raw.size, number)?,
        version: source.value(&raw.version, number)?,
    })
}

fn file(source: &DocumentText<'_>, raw: &RawFile) -> Result<FileEntry, Refusal> {
    Ok(FileEntry {
        path: source.value(&raw.path, |text| listed_path(text))?,
        blake3: source.parsed(&raw.blake3)?,
        size: source.value(&raw.size, number)?,
        role: source.parsed(&raw.role)?,
    })
}

/// TOML promises 64-bit signed integers; what the `toml` crate reads beyond them, other readers may not.
fn number(number: &u64) -> Result<u64, Refusal> {
    if i64::try_from(*number).is_ok() {
        Ok(*number)
    } else {
        Err(Refusal::new(ErrorKind::ManifestField)
            .expected("an integer of at most 2^63 - 1")
            .found(number.to_string()))
    }
}

/// A key that is written only where it says yes: there is one way to write each manifest.
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

/// A path that a manifest may list: the three documents around it are not among them.
fn listed_path(text: &str) -> Result<BundlePath, Refusal> {
    let path = BundlePath::parse(text)?;
    let reserved = [FILE, super::ENVELOPE_FILE, super::PROVENANCE_FILE];
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

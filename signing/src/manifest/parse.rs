//! Reading: text rules first, then TOML, then every value into its own type.

use semver::Version;
use serde::Deserialize;
use toml::Spanned;

use super::{FILE, FileEntry, MAX_BYTES, Manifest, SCHEMA, TOOLS_FILE, ToolsEntry};
use crate::digest::Digest;
use crate::error::{ErrorKind, Refusal};
use crate::path::{self, BundlePath};
use crate::text::{quoted, visible};
use crate::timestamp::Timestamp;
use crate::{id, toml10};

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

/// Only the schema, so that a manifest of a later schema is told apart from a broken one.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<toml::Value>,
}

pub(super) fn manifest(bytes: &[u8]) -> Result<Manifest, Refusal> {
    let text = crate::text::plain(bytes, MAX_BYTES, ErrorKind::ManifestText, FILE)?;
    if let Some(newer) = toml10::first_newer(text) {
        return Err(Refusal::new(ErrorKind::ManifestSyntax)
            .at(place(bytes, newer.offset))
            .expected("TOML 1.0")
            .found(format!("{}, which came with TOML 1.1", newer.what)));
    }
    let raw: Raw = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    Reader { bytes }.manifest(raw)
}

fn place(bytes: &[u8], offset: usize) -> String {
    crate::text::place(FILE, bytes, offset)
}

fn syntax(text: &str, error: &toml::de::Error) -> Refusal {
    // Valid TOML means that a field is wrong, not the syntax.
    let value = toml::from_str::<SchemaOnly>(text);
    let refusal = match &value {
        Err(_) => Refusal::new(ErrorKind::ManifestSyntax).expected("TOML 1.0"),
        Ok(SchemaOnly {
            schema: Some(schema),
        }) if schema
            .as_integer()
            .is_some_and(|schema| schema != SCHEMA as i64) =>
        {
            return Refusal::new(ErrorKind::ManifestSchema)
                .at(FILE)
                .expected("schema 1")
                .found(visible(&format!("schema {schema}")));
        }
        Ok(_) => Refusal::new(ErrorKind::ManifestField),
    };
    let offset = error.span().map_or(0, |span| span.start);
    refusal
        .at(place(text.as_bytes(), offset))
        .found(visible(error.message()))
}

/// Turns raw values into checked ones and says where a wrong one stands.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn manifest(&self, raw: Raw) -> Result<Manifest, Refusal> {
        self.value(&raw.schema, |schema| match *schema {
            SCHEMA => Ok(()),
            other => Err(Refusal::new(ErrorKind::ManifestSchema)
                .expected("schema 1")
                .found(format!("schema {other}"))),
        })?;
        let manifest = Manifest {
            id: self.value(&raw.id, |text| name(text))?,
            version: self.value(&raw.version, |text| version(text))?,
            sequence: self.value(&raw.sequence, number)?,
            publisher: self.value(&raw.publisher, |text| name(text))?,
            created: self.value(&raw.created, |text| Timestamp::parse(text))?,
            expires: raw
                .expires
                .map(|value| self.value(&value, |text| Timestamp::parse(text)))
                .transpose()?,
            min_host: raw
                .min_host
                .map(|value| self.value(&value, |text| version(text)))
                .transpose()?,
            provenance: raw
                .provenance
                .map(|value| self.value(&value, only_true))
                .transpose()?
                .is_some(),
            tools: self.tools(&raw.artifacts.tools)?,
            files: raw
                .artifacts
                .files
                .iter()
                .map(|file| self.file(file))
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

    fn tools(&self, raw: &RawTools) -> Result<ToolsEntry, Refusal> {
        Ok(ToolsEntry {
            path: self.value(&raw.path, |text| tools_path(text))?,
            blake3: self.value(&raw.blake3, |text| text.parse::<Digest>())?,
            size: self.value(&raw.size, number)?,
            version: self.value(&raw.version, number)?,
        })
    }

    fn file(&self, raw: &RawFile) -> Result<FileEntry, Refusal> {
        Ok(FileEntry {
            path: self.value(&raw.path, |text| listed_path(text))?,
            blake3: self.value(&raw.blake3, |text| text.parse::<Digest>())?,
            size: self.value(&raw.size, number)?,
            role: self.value(&raw.role, |text| text.parse())?,
        })
    }

    fn value<T, U>(
        &self,
        value: &Spanned<T>,
        read: impl FnOnce(&T) -> Result<U, Refusal>,
    ) -> Result<U, Refusal> {
        read(value.get_ref()).map_err(|refusal| refusal.at(place(self.bytes, value.span().start)))
    }
}

fn name(text: &str) -> Result<String, Refusal> {
    id::check(text)?;
    Ok(text.to_owned())
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

fn version(text: &str) -> Result<Version, Refusal> {
    Version::parse(text).map_err(|error| {
        Refusal::new(ErrorKind::ManifestField)
            .expected("a semantic version such as 1.2.3")
            .found(format!("{} ({error})", quoted(text)))
    })
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

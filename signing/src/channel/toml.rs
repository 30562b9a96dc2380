//! The TOML of a channel's index. It has one layout, so that writing twice gives the same bytes.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde::Deserialize;
use toml::Spanned;

use super::{
    ChannelIndex, KIND, ListedRelease, ListedTool, MAX_BUNDLES, MAX_DESCRIPTION, MAX_TAGS,
    MAX_TITLE, MAX_TOOLS, MAX_VALIDITY,
};
use crate::document::{DocumentText, SCHEMA, string, write_string};
use crate::envelope::Envelope;
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Refusal;

/// The index as TOML has it, with the place of each value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    schema: Spanned<u64>,
    name: Spanned<String>,
    version: Spanned<u64>,
    created: Spanned<String>,
    expires: Spanned<String>,
    #[serde(default)]
    bundles: Vec<RawBundle>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBundle {
    id: Spanned<String>,
    version: Spanned<String>,
    sequence: Spanned<u64>,
    digest: Spanned<String>,
    publisher: Spanned<String>,
    name: Option<Spanned<String>>,
    description: Option<Spanned<String>>,
    #[serde(default)]
    tags: Vec<Spanned<String>>,
    #[serde(default)]
    tools: Vec<RawTool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTool {
    id: Spanned<String>,
    title: Option<Spanned<String>>,
    description: Spanned<String>,
    #[serde(default)]
    tags: Vec<Spanned<String>>,
}

impl ChannelIndex {
    /// Reads an index. Signatures are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::DocumentInvalid`], [`ErrorKind::DocumentSchema`], or the reason of the value that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let (source, raw) = DocumentText::read::<Raw>(KIND.format(), bytes)?;
        source.schema(&raw.schema)?;
        source.at_most(raw.bundles.len(), MAX_BUNDLES, "bundles")?;
        let index = Self {
            name: source.name(&raw.name)?,
            version: source.number(&raw.version, 1)?,
            created: source.parsed(&raw.created)?,
            expires: source.parsed(&raw.expires)?,
            bundles: raw
                .bundles
                .iter()
                .map(|bundle| bundle.read(&source))
                .collect::<Result<_, _>>()?,
        };
        source.check_times(index.created, Some(index.expires))?;
        let seconds = index.expires.unix().saturating_sub(index.created.unix());
        if u64::try_from(seconds).is_ok_and(|seconds| seconds > MAX_VALIDITY.as_secs()) {
            return Err(source
                .invalid()
                .expected("`expires` at most 90 days after `created`")
                .found(index.expires.to_string()));
        }
        let mut seen = HashSet::new();
        match index.bundles.iter().find(|bundle| !seen.insert(&bundle.id)) {
            Some(bundle) => Err(source
                .invalid()
                .expected("each id once")
                .found(format!("{} twice", bundle.id))),
            None => Ok(index),
        }
    }

    /// Writes the index, bundles sorted by id: the same bytes each time. The bytes have been read back.
    ///
    /// # Errors
    /// Those of [`ChannelIndex::parse`], for an index that breaks a rule.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        let mut sorted = self.clone();
        sorted.bundles.sort_by(|a, b| a.id.cmp(&b.id));
        let write = |text: &mut String| sorted.write(text);
        KIND.format().write(&sorted, write, Self::parse)
    }

    /// The index in an envelope without signatures, see [`Envelope::sign`].
    ///
    /// # Errors
    /// Those of [`ChannelIndex::to_bytes`].
    pub fn to_envelope(&self) -> Result<Envelope, Refusal> {
        Ok(Envelope::new(KIND.payload_type, self.to_bytes()?))
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "schema = {SCHEMA}")?;
        write_string(text, "name", &*self.name)?;
        writeln!(text, "version = {}", self.version)?;
        writeln!(text, "created = \"{}\"", self.created)?;
        writeln!(text, "expires = \"{}\"", self.expires)?;
        for bundle in &self.bundles {
            writeln!(text, "\n[[bundles]]")?;
            write_string(text, "id", &*bundle.id)?;
            writeln!(text, "version = \"{}\"", bundle.version)?;
            writeln!(text, "sequence = {}", bundle.sequence)?;
            writeln!(text, "digest = \"{}\"", bundle.digest)?;
            write_string(text, "publisher", &*bundle.publisher)?;
            write_string(text, "name", bundle.name.as_deref())?;
            write_string(text, "description", bundle.description.as_deref())?;
            write_tags(text, &bundle.tags)?;
            for tool in &bundle.tools {
                writeln!(text, "\n[[bundles.tools]]")?;
                write_string(text, "id", &*tool.id)?;
                write_string(text, "title", tool.title.as_deref())?;
                write_string(text, "description", &*tool.description)?;
                write_tags(text, &tool.tags)?;
            }
        }
        Ok(())
    }
}

impl RawBundle {
    fn read(&self, source: &DocumentText<'_>) -> Result<ListedRelease, Refusal> {
        source.at_most(self.tools.len(), MAX_TOOLS, "tools")?;
        Ok(ListedRelease {
            id: source.name(&self.id)?,
            version: source.version(&self.version)?,
            sequence: source.number(&self.sequence, 0)?,
            digest: source.parsed(&self.digest)?,
            publisher: source.name(&self.publisher)?,
            name: free_text(source, self.name.as_ref(), MAX_TITLE)?,
            description: free_text(source, self.description.as_ref(), MAX_DESCRIPTION)?,
            tags: read_tags(source, &self.tags)?,
            tools: self
                .tools
                .iter()
                .map(|tool| {
                    Ok(ListedTool {
                        // Contracts have another grammar for ids; an index is only searched for them.
                        id: source.free_text(&tool.id, MAX_TITLE)?,
                        title: free_text(source, tool.title.as_ref(), MAX_TITLE)?,
                        description: source.free_text(&tool.description, MAX_DESCRIPTION)?,
                        tags: read_tags(source, &tool.tags)?,
                    })
                })
                .collect::<Result<_, Refusal>>()?,
        })
    }
}

fn free_text(
    source: &DocumentText<'_>,
    text: Option<&Spanned<String>>,
    max: usize,
) -> Result<Option<String>, Refusal> {
    text.map(|text| source.free_text(text, max)).transpose()
}

fn read_tags(source: &DocumentText<'_>, tags: &[Spanned<String>]) -> Result<Vec<String>, Refusal> {
    source.at_most(tags.len(), MAX_TAGS, "tags")?;
    tags.iter()
        .map(|tag| source.free_text(tag, MAX_TITLE))
        .collect()
}

fn write_tags(text: &mut String, tags: &[String]) -> std::fmt::Result {
    if tags.is_empty() {
        return Ok(());
    }
    let tags: Vec<_> = tags.iter().map(|tag| string(tag)).collect();
    writeln!(text, "tags = [{}]", tags.join(", "))
}

//! Reading a channel's index.

use std::collections::HashSet;

use serde::Deserialize;
use toml::Spanned;

use super::{
    ChannelIndex, KIND, Listed, ListedTool, MAX_BUNDLES, MAX_DESCRIPTION, MAX_TAGS, MAX_TITLE,
    MAX_TOOLS, MAX_VALIDITY,
};
use crate::document::{DocumentText, free_text, number, number_or_zero};
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Refusal;

/// The index as TOML has it; each value remembers where it stands.
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
        index(bytes)
    }
}

fn index(bytes: &[u8]) -> Result<ChannelIndex, Refusal> {
    let (source, raw) = DocumentText::read::<Raw>(KIND.format(), bytes)?;
    source.schema(&raw.schema)?;
    at_most(&source, "bundles", raw.bundles.len(), MAX_BUNDLES)?;
    let index = ChannelIndex {
        name: source.name(&raw.name)?,
        version: source.value(&raw.version, number)?,
        created: source.parsed(&raw.created)?,
        expires: source.parsed(&raw.expires)?,
        bundles: raw
            .bundles
            .iter()
            .map(|bundle| listed(&source, bundle))
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
    for bundle in &index.bundles {
        if !seen.insert(&bundle.id) {
            return Err(source
                .invalid()
                .expected("each id once")
                .found(format!("{} twice", bundle.id)));
        }
    }
    Ok(index)
}

fn listed(source: &DocumentText<'_>, raw: &RawBundle) -> Result<Listed, Refusal> {
    at_most(source, "tools", raw.tools.len(), MAX_TOOLS)?;
    Ok(Listed {
        id: source.name(&raw.id)?,
        version: source.version(&raw.version)?,
        sequence: source.value(&raw.sequence, number_or_zero)?,
        digest: source.parsed(&raw.digest)?,
        publisher: source.name(&raw.publisher)?,
        name: source.optional(raw.name.as_ref(), |text| free_text(text, MAX_TITLE))?,
        description: source.optional(raw.description.as_ref(), |text| {
            free_text(text, MAX_DESCRIPTION)
        })?,
        tags: tags(source, &raw.tags)?,
        tools: raw
            .tools
            .iter()
            .map(|tool| {
                Ok(ListedTool {
                    // Contracts have a grammar of their own for ids: here one is only looked for.
                    id: source.value(&tool.id, |text| free_text(text, MAX_TITLE))?,
                    title: source
                        .optional(tool.title.as_ref(), |text| free_text(text, MAX_TITLE))?,
                    description: source
                        .value(&tool.description, |text| free_text(text, MAX_DESCRIPTION))?,
                    tags: tags(source, &tool.tags)?,
                })
            })
            .collect::<Result<_, Refusal>>()?,
    })
}

fn tags(source: &DocumentText<'_>, raw: &[Spanned<String>]) -> Result<Vec<String>, Refusal> {
    at_most(source, "tags", raw.len(), MAX_TAGS)?;
    raw.iter()
        .map(|tag| source.value(tag, |text| free_text(text, MAX_TITLE)))
        .collect()
}

fn at_most(source: &DocumentText<'_>, what: &str, found: usize, max: usize) -> Result<(), Refusal> {
    if found <= max {
        return Ok(());
    }
    Err(source
        .invalid()
        .expected(format!("at most {max} {what}"))
        .found(found.to_string()))
}

//! Writing a channel's index: one layout, so that writing twice gives the same bytes.

use std::fmt::Write as _;

use super::{ChannelIndex, KIND, Listed, PAYLOAD_TYPE};
use crate::document::{SCHEMA, string};
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};

impl ChannelIndex {
    /// Writes the index, bundles sorted by id: the same bytes each time. The bytes have been read back.
    ///
    /// # Errors
    /// Those of [`ChannelIndex::parse`], for an index that breaks a rule.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        index(self)
    }

    /// The index in an envelope that waits for signatures, see [`Envelope::sign`].
    ///
    /// # Errors
    /// Those of [`ChannelIndex::to_bytes`].
    pub fn to_envelope(&self) -> Result<Envelope, Refusal> {
        Ok(Envelope::new(PAYLOAD_TYPE, self.to_bytes()?))
    }
}

fn index(index: &ChannelIndex) -> Result<Vec<u8>, Refusal> {
    let mut sorted = index.clone();
    sorted.bundles.sort_by(|a, b| a.id.cmp(&b.id));
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = tables(&mut text, &sorted);
    let bytes = text.into_bytes();
    // Reading it back applies every rule of the format to what was built in memory.
    if ChannelIndex::parse(&bytes)? == sorted {
        Ok(bytes)
    } else {
        Err(Refusal::new(ErrorKind::DocumentInvalid)
            .at(KIND.name)
            .expected("values that read back as they were written"))
    }
}

fn tables(text: &mut String, index: &ChannelIndex) -> std::fmt::Result {
    writeln!(text, "schema = {SCHEMA}")?;
    writeln!(text, "name = {}", string(&index.name))?;
    writeln!(text, "version = {}", index.version)?;
    writeln!(text, "created = \"{}\"", index.created)?;
    writeln!(text, "expires = \"{}\"", index.expires)?;
    index
        .bundles
        .iter()
        .try_for_each(|bundle| self::bundle(text, bundle))
}

fn bundle(text: &mut String, bundle: &Listed) -> std::fmt::Result {
    writeln!(text, "\n[[bundles]]")?;
    writeln!(text, "id = {}", string(&bundle.id))?;
    writeln!(text, "version = \"{}\"", bundle.version)?;
    writeln!(text, "sequence = {}", bundle.sequence)?;
    writeln!(text, "digest = \"{}\"", bundle.digest)?;
    writeln!(text, "publisher = {}", string(&bundle.publisher))?;
    optional(text, "name", bundle.name.as_deref())?;
    optional(text, "description", bundle.description.as_deref())?;
    tags(text, &bundle.tags)?;
    for tool in &bundle.tools {
        writeln!(text, "\n[[bundles.tools]]")?;
        writeln!(text, "id = {}", string(&tool.id))?;
        optional(text, "title", tool.title.as_deref())?;
        writeln!(text, "description = {}", string(&tool.description))?;
        tags(text, &tool.tags)?;
    }
    Ok(())
}

fn optional(text: &mut String, key: &str, value: Option<&str>) -> std::fmt::Result {
    match value {
        Some(value) => writeln!(text, "{key} = {}", string(value)),
        None => Ok(()),
    }
}

fn tags(text: &mut String, tags: &[String]) -> std::fmt::Result {
    if tags.is_empty() {
        return Ok(());
    }
    let tags: Vec<_> = tags.iter().map(|tag| string(tag)).collect();
    writeln!(text, "tags = [{}]", tags.join(", "))
}

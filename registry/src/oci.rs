//! Manifests and indexes of the OCI image specification, with the fields that are used here. They are written in the
//! order of the fields, which matters for the digest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::media;

/// The `schemaVersion` of a manifest or an index.
pub(crate) const SCHEMA_VERSION: u8 = 2;

/// A blob, or a manifest of an index.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) urls: Option<Vec<String>>,
    /// Preserved for the clients that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<Box<serde_json::value::RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
}

/// An image manifest.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageManifest {
    pub(crate) schema_version: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Descriptor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

/// An image index.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageIndex {
    pub(crate) schema_version: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    pub(crate) manifests: Vec<Descriptor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

impl ImageIndex {
    /// Reads an index. `None` for anything else, including an image manifest. For a document with the members of both,
    /// the media type decides.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let index: Self = serde_json::from_slice(bytes).ok()?;
        is_index(index.schema_version, index.media_type.as_deref()).then_some(index)
    }
}

/// The readable entries of an index. Anyone who may write to a repository can add to its indexes: a wrong entry does
/// not hide the others. `None` for what [`ImageIndex::parse`] refuses.
pub(crate) fn readable_entries(bytes: &[u8]) -> Option<Vec<Descriptor>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Index<'a> {
        schema_version: u8,
        media_type: Option<String>,
        #[serde(borrow)]
        manifests: Vec<&'a serde_json::value::RawValue>,
    }
    let index: Index<'_> = serde_json::from_slice(bytes).ok()?;
    if !is_index(index.schema_version, index.media_type.as_deref()) {
        return None;
    }
    let entries = index.manifests.iter();
    Some(
        entries
            .filter_map(|entry| serde_json::from_str(entry.get()).ok())
            .collect(),
    )
}

fn is_index(schema_version: u8, media_type: Option<&str>) -> bool {
    schema_version == SCHEMA_VERSION && media_type.unwrap_or(media::INDEX) == media::INDEX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_written_again_as_it_was() {
        let manifest = concat!(
            r#"{"schemaVersion":2,"mediaType":"m","config":{"mediaType":"c","digest":"d","size":2},"#,
            r#""layers":[{"mediaType":"l","digest":"e","size":3,"urls":["u"],"annotations":{"a":"b"},"#,
            r#""artifactType":"t"}],"subject":{"mediaType":"s","digest":"f","size":4},"#,
            r#""artifactType":"x","annotations":{"k":"v"}}"#
        );
        let read: ImageManifest = serde_json::from_str(manifest).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), manifest);
        let index = concat!(
            r#"{"schemaVersion":2,"mediaType":"i","manifests":[{"mediaType":"m","digest":"d","size":1,"#,
            r#""platform":{"os":"plan9","architecture":"any"},"annotations":{"a":"b"},"artifactType":"t"},"#,
            r#"{"mediaType":"m","digest":"e","size":2}],"artifactType":"x","annotations":{}}"#
        );
        let read: ImageIndex = serde_json::from_str(index).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), index);
    }

    #[test]
    fn a_manifest_without_a_size_or_with_one_that_is_no_number_is_none() {
        for size in [
            "",
            r#","size":"2""#,
            r#","size":1e3"#,
            r#","size":9223372036854775808"#,
        ] {
            let text = format!(
                r#"{{"schemaVersion":2,"config":{{"mediaType":"c","digest":"d"{size}}},"layers":[]}}"#
            );
            assert!(
                serde_json::from_str::<ImageManifest>(&text).is_err(),
                "{size}"
            );
        }
    }
}

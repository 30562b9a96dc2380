//! Stable media types, annotations and tags of artifacts in a registry, which are documented for
//! other clients. Also the manifests and indexes of the OCI image specification, with the fields
//! that this crate uses. Manifests and indexes are serialized in the order of the fields, since the
//! digest depends on that order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolward_support::words;

use crate::failure::{Failure, FailureReason};
use crate::reference::Reference;

/// `artifactType` of a bundle.
pub const BUNDLE: &str = "application/vnd.toolward.bundle.v1";
/// Media type of a bundle's content: its archive without the envelope.
pub const CONTENT: &str = "application/vnd.toolward.bundle.content.v1.tar+zstd";
/// Media type of a DSSE envelope.
pub const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
/// Media type of an OCI manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an OCI index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of the empty config, which is `{}`.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// The empty config.
pub const EMPTY_BYTES: &[u8] = b"{}";

/// Annotation: the bundle's id.
pub const TITLE: &str = "org.opencontainers.image.title";
/// Annotation: the bundle's version.
pub const VERSION: &str = "org.opencontainers.image.version";
/// Annotation: the time at which the bundle was created, according to its manifest.
pub const CREATED: &str = "org.opencontainers.image.created";
/// Annotation: a sentence about the bundle.
pub const DESCRIPTION: &str = "org.opencontainers.image.description";
/// Annotation: the address of the sources.
pub const SOURCE: &str = "org.opencontainers.image.source";
/// Annotation: an SPDX expression.
pub const LICENSES: &str = "org.opencontainers.image.licenses";
/// Annotation: the bundle's id.
pub const BUNDLE_ID: &str = "vnd.toolward.bundle.id";
/// Annotation: the bundle's sequence.
pub const BUNDLE_SEQUENCE: &str = "vnd.toolward.bundle.sequence";
/// Annotation: the bundle's publisher.
pub const BUNDLE_PUBLISHER: &str = "vnd.toolward.bundle.publisher";
/// Annotation: the BLAKE3 digest of `manifest.toml`, which identifies the bundle.
pub const BUNDLE_DIGEST: &str = "vnd.toolward.bundle.digest";

words! {
    /// A signed document that travels alone, or is attached to a bundle, with its `artifactType`.
    #[derive(Hash)]
    DocumentArtifact, artifact_type {
        /// Further signatures over a bundle's manifest.
        Signatures = "application/vnd.toolward.bundle.signatures.v1",
        /// A publisher document: name, keys, threshold.
        Publisher = "application/vnd.toolward.publisher.v1",
        /// A publisher's revocation list.
        Revocations = "application/vnd.toolward.revocations.v1",
        /// A signed channel index.
        Channel = "application/vnd.toolward.channel.v1",
    }
}

impl DocumentArtifact {
    /// The payload type of its envelope.
    pub fn payload_type(self) -> &'static str {
        match self {
            Self::Signatures => toolward_signing::MANIFEST_TYPE,
            Self::Publisher => toolward_signing::publisher::PAYLOAD_TYPE,
            Self::Revocations => toolward_signing::revocation::PAYLOAD_TYPE,
            Self::Channel => toolward_signing::channel::PAYLOAD_TYPE,
        }
    }

    /// How large its envelope may be, in bytes.
    pub fn max_bytes(self) -> u64 {
        match self {
            Self::Channel => toolward_signing::channel::MAX_ENVELOPE_BYTES as u64,
            _ => toolward_signing::envelope::MAX_BYTES as u64,
        }
    }

    /// The last segment of the repository for documents of this kind, by convention; `None` for
    /// documents that are only attached.
    pub fn repository(self) -> Option<&'static str> {
        match self {
            Self::Signatures => None,
            Self::Publisher => Some("toolward-publisher"),
            Self::Revocations => Some("toolward-revocations"),
            Self::Channel => Some("toolward-channel"),
        }
    }

    /// The conventional reference of a document of this kind: `BASE/toolward-publisher:NAME`, or
    /// `…:NAME__VERSION` with a version. Names have no underscore, so the two forms can't be
    /// confused.
    ///
    /// # Errors
    /// [`FailureReason::ReferenceInvalid`] if the name gives no valid tag, or the kind has no repository.
    pub fn reference(
        self,
        base: &Reference,
        name: &str,
        version: Option<u64>,
    ) -> Result<Reference, Failure> {
        let refuse = |expected: &'static str| {
            Failure::new(FailureReason::ReferenceInvalid)
                .at(base.to_string())
                .expected(expected)
        };
        let Some(segment) = self.repository() else {
            return Err(refuse("a kind of document that has a place of its own"));
        };
        if name.contains('_') {
            return Err(refuse("a name without an underscore"));
        }
        let repository = format!("oci://{}/{}/{segment}", base.registry(), base.repository());
        let tag = match version {
            Some(version) => format!("{name}__{version}"),
            None => name.to_owned(),
        };
        repository.parse::<Reference>()?.with_tag(&tag)
    }
}

/// The `schemaVersion` of a manifest or an index.
pub(crate) const SCHEMA_VERSION: u8 = 2;

/// The descriptor of a blob, or of a manifest in an index.
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
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
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
    /// Reads an index. Returns `None` for anything else, including an image manifest. If a document
    /// has the members of both, the media type decides.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let index: Self = serde_json::from_slice(bytes).ok()?;
        is_index(index.schema_version, index.media_type.as_deref()).then_some(index)
    }
}

/// The readable entries of an index. Anyone who may write to a repository can add to its indexes,
/// so an invalid entry must not hide the others. `None` for a document that [`ImageIndex::parse`]
/// refuses.
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
    schema_version == SCHEMA_VERSION && media_type.unwrap_or(INDEX) == INDEX
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

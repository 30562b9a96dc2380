//! Media types, annotations and tags of artifacts in a registry. They are stable, and documented for other clients.

use crate::failure::Failure;
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
/// Annotation: when the bundle was created, by its manifest.
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

/// A signed document that travels alone, or is attached to a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DocumentArtifact {
    /// Further signatures over a bundle's manifest.
    Signatures,
    /// A publisher document: name, keys, threshold.
    Publisher,
    /// A publisher's revocation list.
    Revocations,
    /// A signed channel index.
    Channel,
}

impl DocumentArtifact {
    /// All kinds.
    pub const ALL: &[Self] = &[
        Self::Signatures,
        Self::Publisher,
        Self::Revocations,
        Self::Channel,
    ];

    /// The `artifactType`.
    #[must_use]
    pub fn artifact_type(self) -> &'static str {
        match self {
            Self::Signatures => "application/vnd.toolward.bundle.signatures.v1",
            Self::Publisher => "application/vnd.toolward.publisher.v1",
            Self::Revocations => "application/vnd.toolward.revocations.v1",
            Self::Channel => "application/vnd.toolward.channel.v1",
        }
    }

    /// The payload type of its envelope.
    #[must_use]
    pub fn payload_type(self) -> &'static str {
        match self {
            Self::Signatures => toolward_signing::MANIFEST_TYPE,
            Self::Publisher => toolward_signing::publisher::PAYLOAD_TYPE,
            Self::Revocations => toolward_signing::revocation::PAYLOAD_TYPE,
            Self::Channel => toolward_signing::channel::PAYLOAD_TYPE,
        }
    }

    /// How large its envelope may be, in bytes.
    #[must_use]
    pub fn max_bytes(self) -> u64 {
        match self {
            Self::Channel => toolward_signing::channel::MAX_ENVELOPE_BYTES as u64,
            _ => toolward_signing::envelope::MAX_BYTES as u64,
        }
    }

    /// The last segment of the repository for documents of this kind, by convention; `None` for documents that are only
    /// attached.
    #[must_use]
    pub fn repository(self) -> Option<&'static str> {
        match self {
            Self::Signatures => None,
            Self::Publisher => Some("toolward-publisher"),
            Self::Revocations => Some("toolward-revocations"),
            Self::Channel => Some("toolward-channel"),
        }
    }

    /// The reference of a document of this kind by convention: `BASE/toolward-publisher:NAME`, and, with a version,
    /// `…:NAME__VERSION`. Names have no underscore, so that the two can't be confused.
    ///
    /// # Errors
    /// [`crate::FailureReason::ReferenceInvalid`] if the name makes no tag, or the kind has no repository.
    pub fn reference(
        self,
        base: &Reference,
        name: &str,
        version: Option<u64>,
    ) -> Result<Reference, Failure> {
        let refuse = |expected: &'static str| {
            Failure::new(crate::FailureReason::ReferenceInvalid)
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

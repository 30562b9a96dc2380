//! A bundle in a registry: an OCI manifest with an empty config and two layers, the envelope and
//! the content. The same bundle and details always give the same manifest. A manifest of any other
//! form is refused.

use std::collections::BTreeMap;

use bytes::Bytes;
use toolward_signing::Digest;
use toolward_signing::archive::{Contents, content_bytes};
use toolward_signing::envelope::{self, Envelope};
use toolward_signing::manifest::{MANIFEST_TYPE, Manifest};

use crate::digest::BlobDigest;
use crate::failure::{Failure, FailureReason, bytes, quoted, refused};
use crate::media::{self, Descriptor, ImageManifest};

/// How long an annotation that the caller gives may be, in bytes.
const MAX_ANNOTATION: usize = 1024;

/// Digest and size of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The blob's digest.
    pub digest: BlobDigest,
    /// The blob's size in bytes.
    pub size: u64,
}

impl Blob {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            digest: BlobDigest::of(bytes),
            size: bytes.len() as u64,
        }
    }
}

/// Unsigned descriptions of a bundle. Registries show them; no decision depends on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// A sentence about the bundle.
    pub description: Option<String>,
    /// The address of the sources.
    pub source: Option<String>,
    /// The licences, as an SPDX expression.
    pub licenses: Option<String>,
}

/// A bundle ready to be pushed: its blobs and its OCI manifest. The same bundle and details give
/// the same bytes.
#[derive(Clone, Debug)]
pub struct OutgoingBundle {
    pub(crate) envelope: Bytes,
    pub(crate) content: Bytes,
    pub(crate) manifest: Bytes,
}

impl OutgoingBundle {
    /// Prepares a bundle. Compression takes about a second for a few MB.
    ///
    /// # Errors
    /// [`FailureReason::NotPublishable`] if the envelope does not sign the manifest in `contents`,
    /// or if one of `details` has more than 1024 bytes or more than one line;
    /// [`Cause::Signing`](crate::Cause) if `contents` is not a bundle.
    pub fn new(contents: &Contents<'_>, details: &Details) -> Result<Self, Failure> {
        let refuse = || Failure::new(FailureReason::NotPublishable);
        let envelope = Envelope::parse(contents.envelope).map_err(refused)?;
        if envelope.payload_type() != MANIFEST_TYPE {
            return Err(refuse()
                .expected(format!("an envelope of type {MANIFEST_TYPE}"))
                .found(quoted(envelope.payload_type())));
        }
        if envelope.payload() != contents.manifest {
            return Err(refuse().expected("an envelope over this manifest"));
        }
        let manifest = Manifest::parse(contents.manifest).map_err(refused)?;
        let annotations = annotations(&manifest, contents.manifest, details)?;
        let content = content_bytes(contents).map_err(refused)?;
        let layers = vec![
            layer(media::ENVELOPE, contents.envelope, "manifest.dsse.json"),
            layer(media::CONTENT, &content, "content.tar.zst"),
        ];
        Ok(Self {
            manifest: manifest_of(media::BUNDLE, layers, None, annotations)?,
            envelope: contents.envelope.to_vec().into(),
            content: content.into(),
        })
    }

    /// The OCI manifest's bytes.
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// The OCI manifest's digest, by which it can be pulled.
    pub fn digest(&self) -> BlobDigest {
        BlobDigest::of(&self.manifest)
    }
}

/// A bundle in a registry, as its OCI manifest describes it. Everything except the digests is a
/// claim.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The OCI manifest's digest.
    pub digest: BlobDigest,
    /// The envelope.
    pub envelope: Blob,
    /// The archive without the envelope.
    pub content: Blob,
}

impl Artifact {
    /// Reads an OCI manifest, whose digest was checked to be `digest`. `max` limits the size of the
    /// content.
    pub(crate) fn parse(digest: BlobDigest, bytes: &[u8], max: u64) -> Result<Self, Failure> {
        let manifest = parse_manifest(bytes, media::BUNDLE)?;
        let [envelope, content] = manifest.layers.as_slice() else {
            return Err(invalid()
                .expected("two layers")
                .found(manifest.layers.len().to_string()));
        };
        Ok(Self {
            digest,
            envelope: blob(envelope, media::ENVELOPE, envelope::MAX_BYTES as u64)?,
            content: blob(content, media::CONTENT, max)?,
        })
    }
}

fn annotations(
    manifest: &Manifest,
    manifest_bytes: &[u8],
    details: &Details,
) -> Result<BTreeMap<String, String>, Failure> {
    let signed = [
        (media::TITLE, manifest.id.clone()),
        (media::VERSION, manifest.version.to_string()),
        (media::CREATED, manifest.created.to_string()),
        (media::BUNDLE_ID, manifest.id.clone()),
        (media::BUNDLE_SEQUENCE, manifest.sequence.to_string()),
        (media::BUNDLE_PUBLISHER, manifest.publisher.clone()),
        (media::BUNDLE_DIGEST, Digest::of(manifest_bytes).to_string()),
    ];
    let details = [
        (media::DESCRIPTION, &details.description),
        (media::SOURCE, &details.source),
        (media::LICENSES, &details.licenses),
    ];
    let mut annotations: BTreeMap<String, String> = signed
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    for (key, value) in details {
        let Some(value) = value else { continue };
        if value.len() > MAX_ANNOTATION || value.chars().any(char::is_control) {
            return Err(Failure::new(FailureReason::NotPublishable)
                .at(key)
                .expected("at most 1024 bytes in one line"));
        }
        annotations.insert(key.to_owned(), value.clone());
    }
    Ok(annotations)
}

/// A layer with a title.
pub(crate) fn layer(media_type: &str, bytes: &[u8], title: &str) -> Descriptor {
    Descriptor {
        annotations: Some([(media::TITLE.to_owned(), title.to_owned())].into()),
        ..descriptor(media_type, bytes)
    }
}

/// A descriptor of these bytes.
pub(crate) fn descriptor(media_type: &str, bytes: &[u8]) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest: BlobDigest::of(bytes).to_string(),
        size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        ..Descriptor::default()
    }
}

/// The bytes of an OCI manifest with the empty config.
pub(crate) fn manifest_of(
    artifact_type: &str,
    layers: Vec<Descriptor>,
    subject: Option<Descriptor>,
    annotations: BTreeMap<String, String>,
) -> Result<Bytes, Failure> {
    let manifest = ImageManifest {
        schema_version: media::SCHEMA_VERSION,
        media_type: Some(media::MANIFEST.to_owned()),
        config: descriptor(media::EMPTY, media::EMPTY_BYTES),
        layers,
        subject,
        artifact_type: Some(artifact_type.to_owned()),
        annotations: (!annotations.is_empty()).then_some(annotations),
    };
    serde_json::to_vec(&manifest)
        .map(Bytes::from)
        .map_err(|error| invalid().caused_by(error))
}

/// The only image manifest of this `artifactType` in an index. If no entry has this type, entries
/// without a type count instead.
pub(crate) fn only_entry(
    entries: &[Descriptor],
    artifact_type: &str,
) -> Result<BlobDigest, Failure> {
    let of_type = |wanted: Option<&str>| {
        let entries = entries.iter().filter(|entry| {
            entry.media_type == media::MANIFEST && entry.artifact_type.as_deref() == wanted
        });
        entries.collect::<Vec<_>>()
    };
    let mut entries = of_type(Some(artifact_type));
    if entries.is_empty() {
        entries = of_type(None);
    }
    match entries.as_slice() {
        [entry] => entry.digest.parse(),
        entries => Err(Failure::new(FailureReason::ArtifactUnsupported)
            .expected(format!("one {artifact_type}"))
            .found(format!(
                "an index with {} entries that could be it",
                entries.len()
            ))
            .hinted("name the manifest by its digest: oci://REGISTRY/REPOSITORY@sha256:HEX")),
    }
}

/// Reads an OCI manifest of this crate's form, with this `artifactType`.
pub(crate) fn parse_manifest(bytes: &[u8], artifact_type: &str) -> Result<ImageManifest, Failure> {
    let manifest: ImageManifest = serde_json::from_slice(bytes).map_err(|error| {
        // An index is unsupported rather than invalid.
        let other = serde_json::from_slice::<serde_json::Value>(bytes)
            .is_ok_and(|value| value.get("manifests").is_some());
        if other {
            Failure::new(FailureReason::ArtifactUnsupported)
                .expected(artifact_type.to_owned())
                .found("an index")
        } else {
            invalid().found(format!("a mistake at {}:{}", error.line(), error.column()))
        }
    })?;
    if manifest.artifact_type.as_deref() != Some(artifact_type) {
        let found = manifest.artifact_type.as_deref();
        let found = found.unwrap_or(&manifest.config.media_type);
        return Err(Failure::new(FailureReason::ArtifactUnsupported)
            .expected(artifact_type.to_owned())
            .found(quoted(found)));
    }
    let form = manifest.schema_version == media::SCHEMA_VERSION
        && manifest.media_type.as_deref() == Some(media::MANIFEST)
        && manifest.config.media_type == media::EMPTY
        && manifest.config.digest == BlobDigest::of(media::EMPTY_BYTES).to_string();
    if form {
        return Ok(manifest);
    }
    Err(invalid().expected("an OCI image manifest, schema 2, with the empty config"))
}

/// Reads a layer's descriptor.
pub(crate) fn blob(descriptor: &Descriptor, media_type: &str, max: u64) -> Result<Blob, Failure> {
    if descriptor.media_type != media_type {
        return Err(invalid()
            .expected(format!("a layer of type {media_type}"))
            .found(quoted(&descriptor.media_type)));
    }
    if descriptor.urls.iter().flatten().next().is_some() {
        return Err(invalid().expected("layers that are in this registry"));
    }
    let size = u64::try_from(descriptor.size).map_err(|_| {
        invalid()
            .expected("a size")
            .found(descriptor.size.to_string())
    })?;
    if size > max {
        return Err(Failure::new(FailureReason::BlobTooLarge)
            .at(media_type.to_owned())
            .expected(format!("at most {}", bytes(max)))
            .found(bytes(size)));
    }
    Ok(Blob {
        digest: descriptor.digest.parse()?,
        size,
    })
}

fn invalid() -> Failure {
    Failure::new(FailureReason::ManifestInvalid)
}

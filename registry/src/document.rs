//! Fetches signed documents from files, `https` and registries, with a limit on their size, and
//! pushes them to registries. Signatures are not verified here.

use std::path::Path;

use bytes::Bytes;
use reqwest::{Method, Response};
use serde::Deserialize;
use toolward_support::files::{self, Problem};
use url::Url;

use crate::address::{Source, check_scheme, shown};
use crate::artifact::{blob, layer, manifest_of, parse_manifest};
use crate::client::RegistryClient;
use crate::digest::BlobDigest;
use crate::failure::{Failure, FailureReason, bytes, io_failed, quoted};
use crate::media::{self, Descriptor, DocumentArtifact};
use crate::reference::Reference;
use crate::response::read;
use crate::transport::{Operation, RegistryRequest};

/// The part of an envelope that is checked before a push.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EnvelopeHead {
    payload_type: String,
}

/// Checks before a push that these bytes can be a document of this kind.
pub(crate) fn check_document(kind: DocumentArtifact, envelope: &[u8]) -> Result<(), Failure> {
    let refuse = || Failure::new(FailureReason::AttachmentInvalid);
    if envelope.len() as u64 > kind.max_bytes() {
        return Err(refuse()
            .expected(format!("at most {}", bytes(kind.max_bytes())))
            .found(bytes(envelope.len() as u64)));
    }
    let head: EnvelopeHead =
        serde_json::from_slice(envelope).map_err(|_| refuse().expected("a DSSE envelope"))?;
    if head.payload_type == kind.payload_type() {
        return Ok(());
    }
    Err(refuse()
        .expected(format!("an envelope of type {}", kind.payload_type()))
        .found(quoted(&head.payload_type)))
}

/// The OCI manifest of a document, whose only layer is the envelope.
pub(crate) fn document_manifest(
    kind: DocumentArtifact,
    envelope: &[u8],
    subject: Option<Descriptor>,
) -> Result<Bytes, Failure> {
    let layers = vec![layer(media::ENVELOPE, envelope, "envelope.dsse.json")];
    manifest_of(kind.artifact_type(), layers, subject, Default::default())
}

impl RegistryClient {
    /// Pushes a document, and returns the digest of its OCI manifest. By convention it goes to
    /// [`DocumentArtifact::reference`].
    ///
    /// # Errors
    /// [`FailureReason::AttachmentInvalid`] if `envelope` is not of this kind;
    /// [`FailureReason::ReferenceIncomplete`] if the reference has neither tag nor digest;
    /// [`FailureReason::NotPublishable`] if the reference has another digest than the document; the
    /// errors of the transfer.
    pub async fn push_document(
        &self,
        kind: DocumentArtifact,
        envelope: &[u8],
        reference: &Reference,
    ) -> Result<BlobDigest, Failure> {
        check_document(kind, envelope)?;
        reference.version()?;
        let operation = self.operation();
        let manifest = document_manifest(kind, envelope, None)?;
        let digest = BlobDigest::of(&manifest);
        if reference.digest().is_some_and(|wanted| wanted != digest) {
            return Err(Failure::new(FailureReason::NotPublishable)
                .at(reference.to_string())
                .found(digest.to_string()));
        }
        let envelope = Bytes::copy_from_slice(envelope);
        operation.upload_small(reference, &envelope).await?;
        operation
            .put_manifest(reference, media::MANIFEST, manifest)
            .await?;
        Ok(digest)
    }

    /// Fetches a document of a kind from any source, and returns its envelope, whose signatures the
    /// caller verifies. The size is limited by `max` and by the limit of the kind, in bytes.
    ///
    /// # Errors
    /// [`FailureReason::ResponseTooLarge`], [`FailureReason::BlobTooLarge`]; the errors of the transfer.
    pub async fn fetch_document(
        &self,
        source: &Source,
        kind: DocumentArtifact,
        max: u64,
    ) -> Result<Vec<u8>, Failure> {
        let max = max.min(kind.max_bytes());
        let operation = self.operation();
        match source {
            Source::Registry(reference) => operation.document(reference, kind, max).await,
            Source::Web(url) => {
                let work = async { read(operation.open(url).await?, max).await };
                let bytes = operation.deadline.within(&shown(url), work).await?;
                Ok(bytes.to_vec())
            }
            Source::Path(path) => read_file(path, max),
        }
    }
}

impl Operation {
    pub(crate) async fn document(
        &self,
        reference: &Reference,
        kind: DocumentArtifact,
        max: u64,
    ) -> Result<Vec<u8>, Failure> {
        let (_, bytes) = self
            .artifact_manifest(reference, kind.artifact_type())
            .await?;
        let place = |failure: Failure| failure.at(reference.to_string());
        let manifest = parse_manifest(&bytes, kind.artifact_type()).map_err(place)?;
        let [layer] = manifest.layers.as_slice() else {
            return Err(place(
                Failure::new(FailureReason::ManifestInvalid)
                    .expected("one layer")
                    .found(manifest.layers.len().to_string()),
            ));
        };
        let blob = blob(layer, media::ENVELOPE, max).map_err(place)?;
        self.small(reference, &blob, None).await
    }

    /// Requests a web address, without credentials.
    pub(crate) async fn open(&self, url: &Url) -> Result<Response, Failure> {
        check_scheme(url, self.transport.plain)?;
        let mut ask = RegistryRequest::new(Method::GET, url.clone(), None);
        ask.follow = true;
        self.expect_ok(&ask).await
    }
}

/// Reads a regular file of at most `max` bytes.
fn read_file(path: &Path, max: u64) -> Result<Vec<u8>, Failure> {
    let file = files::open_regular(path).and_then(|file| files::read(file, path, max));
    file.map_err(|error| match error.problem {
        Problem::Io { source, .. } => io_failed(path.display().to_string(), source),
        Problem::TooLarge { .. } => Failure::new(FailureReason::ResponseTooLarge)
            .at(path.display().to_string())
            .expected(format!("at most {max} bytes")),
        _ => Failure::new(FailureReason::SourceInvalid)
            .at(path.display().to_string())
            .expected("a file"),
    })
}

//! Signed documents from anywhere: files, `https`, registries. Bounded, and not verified.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::address::{check_scheme, shown};
use crate::artifact::{blob, descriptor, manifest_of, parse_manifest};
use crate::client::Client;
use crate::digest::BlobDigest;
use crate::failure::{Failure, Reason, io_failed};
use crate::media::{self, DocumentArtifact};
use crate::oci::Descriptor;
use crate::reference::Reference;
use crate::response::{read, unexpected};
use crate::retry::Deadline;
use crate::source::Source;
use crate::text::{bytes, quoted};
use crate::transport::Ask;

/// A document: an envelope that is not verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Document {
    /// The envelope's bytes.
    pub bytes: Vec<u8>,
    /// The digest of the OCI manifest, if it came from a registry.
    pub digest: Option<BlobDigest>,
}

/// What is looked at of an envelope before it is sent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    payload_type: String,
}

/// Whether these bytes can be a document of this kind: for the sender, who made a mistake if not.
pub(crate) fn check_document(kind: DocumentArtifact, envelope: &[u8]) -> Result<(), Failure> {
    let refuse = || Failure::new(Reason::AttachmentInvalid);
    if envelope.len() as u64 > kind.max_bytes() {
        return Err(refuse()
            .expected(format!("at most {}", bytes(kind.max_bytes())))
            .found(bytes(envelope.len() as u64)));
    }
    let head: Head =
        serde_json::from_slice(envelope).map_err(|_| refuse().expected("a DSSE envelope"))?;
    if head.payload_type == kind.payload_type() {
        return Ok(());
    }
    Err(refuse()
        .expected(format!("an envelope of type {}", kind.payload_type()))
        .found(quoted(&head.payload_type)))
}

/// The only layer of a document.
pub(crate) fn envelope_layer(envelope: &[u8]) -> Descriptor {
    Descriptor {
        annotations: Some([(media::TITLE.to_owned(), "envelope.dsse.json".to_owned())].into()),
        ..descriptor(media::ENVELOPE, envelope)
    }
}

impl Client {
    /// Pushes a document, and gives the digest of its OCI manifest. By convention it goes to
    /// [`DocumentArtifact::reference`].
    ///
    /// # Errors
    /// [`Reason::AttachmentInvalid`] if it is not an envelope of this kind; the reason for which it failed.
    pub async fn push_document(
        &self,
        kind: DocumentArtifact,
        envelope: &[u8],
        reference: &Reference,
    ) -> Result<BlobDigest, Failure> {
        check_document(kind, envelope)?;
        reference.version()?;
        let deadline = self.transport.deadline();
        let layers = vec![envelope_layer(envelope)];
        let manifest = manifest_of(kind.artifact_type(), layers, None, Default::default())?;
        let digest = BlobDigest::of(&manifest);
        if reference.digest().is_some_and(|wanted| wanted != digest) {
            return Err(Failure::new(Reason::NotPublishable)
                .at(reference.to_string())
                .found(digest.to_string()));
        }
        self.upload_all(reference, envelope, deadline).await?;
        self.put_manifest(reference, media::MANIFEST, manifest, deadline)
            .await?;
        Ok(digest)
    }

    /// Fetches a document of a kind from wherever it is, at most `max` bytes, and never more than its kind
    /// may have. To be verified by the caller.
    ///
    /// # Errors
    /// [`Reason::ResponseTooLarge`], [`Reason::BlobTooLarge`]; the reason for which it failed.
    pub async fn fetch_document(
        &self,
        source: &Source,
        kind: DocumentArtifact,
        max: u64,
    ) -> Result<Document, Failure> {
        let max = max.min(kind.max_bytes());
        let deadline = self.transport.deadline();
        match source {
            Source::Registry(reference) => self.document(reference, kind, max, deadline).await,
            Source::Web(url) => {
                let work = async {
                    let response = self.open(url, deadline).await?;
                    read(response, max).await
                };
                let bytes = deadline.within(&shown(url), work).await?.to_vec();
                Ok(Document {
                    bytes,
                    digest: None,
                })
            }
            Source::Path(path) => read_file(path, max).map(|bytes| Document {
                bytes,
                digest: None,
            }),
        }
    }

    pub(crate) async fn document(
        &self,
        reference: &Reference,
        kind: DocumentArtifact,
        max: u64,
        deadline: Deadline,
    ) -> Result<Document, Failure> {
        let (digest, bytes) = self
            .artifact_manifest(reference, kind.artifact_type(), deadline)
            .await?;
        let place = |failure: Failure| failure.at(reference.to_string());
        let manifest = parse_manifest(&bytes, kind.artifact_type()).map_err(place)?;
        let [layer] = manifest.layers.as_slice() else {
            return Err(place(
                Failure::new(Reason::ManifestInvalid)
                    .expected("one layer")
                    .found(manifest.layers.len().to_string()),
            ));
        };
        let blob = blob(layer, media::ENVELOPE, max).map_err(place)?;
        Ok(Document {
            bytes: self.small(reference, &blob, None, deadline).await?,
            digest: Some(digest),
        })
    }

    /// Asks for a web address, without credentials.
    pub(crate) async fn open(&self, url: &Url, deadline: Deadline) -> Result<Response, Failure> {
        check_scheme(url, self.transport.plain)?;
        let mut ask = Ask::new(Method::GET, url.clone(), None);
        ask.follow = true;
        let response = self.transport.send(&ask, deadline).await?;
        match response.status() {
            StatusCode::OK => Ok(response),
            _ => Err(unexpected(response).await),
        }
    }
}

/// Reads a regular file of at most `max` bytes.
fn read_file(path: &Path, max: u64) -> Result<Vec<u8>, Failure> {
    let place = || path.display().to_string();
    let io = |error: std::io::Error| io_failed(place(), error);
    // Before opening: a pipe would be waited for.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(Failure::new(Reason::SourceInvalid)
            .at(place())
            .expected("a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .map_err(io)?
        .take(max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if bytes.len() as u64 > max {
        return Err(Failure::new(Reason::ResponseTooLarge)
            .at(place())
            .expected(format!("at most {max} bytes")));
    }
    Ok(bytes)
}

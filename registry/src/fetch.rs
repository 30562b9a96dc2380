//! Documents and bundles from anywhere: files, `https`, registries. Bounded, and for a bundle the envelope
//! first.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use oci_client::manifest::OciDescriptor;
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use toolward_signing::Refusal;
use toolward_signing::archive::first_envelope;
use url::Url;

use crate::address::{check_scheme, shown};
use crate::artifact::{blob, descriptor, manifest_of, parse_manifest};
use crate::client::Client;
use crate::digest::BlobDigest;
use crate::failure::{Failure, Reason};
use crate::landing::Landing;
use crate::media::{self, DocumentKind};
use crate::progress::{ProgressFn, Step, Teller};
use crate::reference::Reference;
use crate::response::{broken, read, unexpected};
use crate::retry::Deadline;
use crate::source::Source;
use crate::text::{bytes, quoted};
use crate::transport::Ask;

/// In how many bytes of an archive its envelope must be: what it can take uncompressed, and as much again.
const MAX_BEGINNING: u64 = 2 * toolward_signing::envelope::MAX_BYTES as u64;

/// A document: an envelope that nobody verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Document {
    /// The envelope's bytes.
    pub bytes: Vec<u8>,
    /// The digest of the OCI manifest, if it came from a registry.
    pub digest: Option<BlobDigest>,
}

/// A `.toolbundle` that came by `https`, all of it still to be verified.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fetched<T> {
    /// What the caller made of the envelope.
    pub accepted: T,
    /// The archive, at its beginning. It has no name: when it is closed, it is gone.
    pub archive: File,
    /// Its size in bytes.
    pub size: u64,
}

/// What is looked at of an envelope before it is sent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    payload_type: String,
}

/// Whether these bytes can be a document of this kind: for the sender, who made a mistake if not.
pub(crate) fn check_document(kind: DocumentKind, envelope: &[u8]) -> Result<(), Failure> {
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
pub(crate) fn envelope_layer(envelope: &[u8]) -> OciDescriptor {
    OciDescriptor {
        annotations: Some([(media::TITLE.to_owned(), "envelope.dsse.json".to_owned())].into()),
        ..descriptor(media::ENVELOPE, envelope)
    }
}

impl Client {
    /// Pushes a document, and gives the digest of its OCI manifest. By convention it goes to
    /// [`DocumentKind::reference`].
    ///
    /// # Errors
    /// [`Reason::AttachmentInvalid`] if it is no envelope of this kind; the reason for which it failed.
    pub async fn push_document(
        &self,
        kind: DocumentKind,
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
        kind: DocumentKind,
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
        kind: DocumentKind,
        max: u64,
        deadline: Deadline,
    ) -> Result<Document, Failure> {
        let (digest, bytes) = self.manifest(reference, deadline).await?;
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

    /// Fetches a `.toolbundle`. `verify` is given its first entry, the envelope, as soon as that has come;
    /// if it refuses, nothing more is downloaded. The file has no name in `downloads`.
    ///
    /// # Errors
    /// The refusal of `verify`; [`Reason::BlobTooLarge`] above 512 MiB; the reason for which it failed.
    pub async fn fetch_bundle<T>(
        &self,
        url: &Url,
        downloads: &Path,
        progress: Option<&ProgressFn>,
        verify: impl FnOnce(&[u8]) -> Result<T, Refusal> + Send,
    ) -> Result<Fetched<T>, Failure> {
        let deadline = self.transport.deadline();
        let landing = Landing::fresh(downloads)?;
        let place = shown(url);
        let work = async {
            let response = self.open(url, deadline).await?;
            let teller = Teller {
                whom: progress,
                step: Step::Content,
            };
            self.receive(response, landing, teller, verify).await
        };
        deadline.within(&place, work).await
    }

    async fn receive<T>(
        &self,
        mut response: Response,
        mut landing: Landing,
        teller: Teller<'_>,
        verify: impl FnOnce(&[u8]) -> Result<T, Refusal> + Send,
    ) -> Result<Fetched<T>, Failure> {
        let place = shown(response.url());
        let io = |error: std::io::Error| Failure::io("a download", &error);
        let max = self.transport.limits.content;
        let too_large = || {
            Failure::new(Reason::BlobTooLarge)
                .at(place.clone())
                .expected(format!("at most {}", bytes(max)))
        };
        let total = response.content_length();
        if let Some(length) = total
            && length > max
        {
            return Err(too_large().found(bytes(length)));
        }
        let mut beginning = Vec::new();
        let mut verify = Some(verify);
        let mut accepted = None;
        let result = loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break Ok(()),
                Err(error) => break Err(broken(&error).at(place.clone())),
            };
            if landing.length.saturating_add(chunk.len() as u64) > max {
                break Err(too_large());
            }
            if let Err(error) = landing.append(&chunk) {
                break Err(io(error));
            }
            if verify.is_some() {
                let before = beginning.len() as u64;
                beginning.extend_from_slice(&chunk);
                // Not for each packet: reading it anew each time would be work that grows squared.
                let worth = before.max(1).ilog2() < (beginning.len() as u64).ilog2()
                    || total == Some(landing.length);
                match worth.then(|| first_envelope(&beginning)).transpose() {
                    Ok(Some(Some(envelope))) => {
                        beginning = Vec::new();
                        match verify.take().map(|verify| verify(&envelope)).transpose() {
                            Ok(value) => accepted = value,
                            Err(refusal) => break Err(refusal.into()),
                        }
                    }
                    Ok(_) if beginning.len() as u64 > MAX_BEGINNING => {
                        break Err(Failure::new(Reason::ResponseInvalid)
                            .at(place.clone())
                            .expected("an archive that begins with its envelope"));
                    }
                    Ok(_) => {}
                    Err(refusal) => break Err(refusal.into()),
                }
            }
            teller.tell(landing.length, total);
        };
        if let (Ok(()), Some(verify)) = (&result, verify.take()) {
            // It ended before there was enough of it to be worth a look.
            accepted = match first_envelope(&beginning) {
                Ok(Some(envelope)) => match verify(&envelope) {
                    Ok(value) => Some(value),
                    Err(refusal) => {
                        landing.discard();
                        return Err(refusal.into());
                    }
                },
                Ok(None) => None,
                Err(refusal) => {
                    landing.discard();
                    return Err(refusal.into());
                }
            };
        }
        let (Ok(()), Some(accepted)) = (&result, accepted) else {
            landing.discard();
            return Err(result.err().unwrap_or_else(|| {
                Failure::new(Reason::BlobTruncated)
                    .at(place)
                    .expected("an archive with its envelope")
            }));
        };
        let size = landing.length;
        let archive = landing
            .into_file()
            .map_err(io)?
            .ok_or_else(|| Failure::new(Reason::Io))?;
        Ok(Fetched {
            accepted,
            archive,
            size,
        })
    }

    /// Asks for a web address, without credentials.
    async fn open(&self, url: &Url, deadline: Deadline) -> Result<Response, Failure> {
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
    let io = |error: std::io::Error| Failure::io(place(), &error);
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

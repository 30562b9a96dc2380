//! Pulls a bundle. From a registry, the tag is resolved once, and everything else is requested by
//! digest. By `https`, the envelope is the first entry of the archive. The caller sees the envelope
//! before the rest is downloaded.

use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom, Write};
use std::path::Path;

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::ACCEPT;
use toolward_signing::Refusal;
use toolward_signing::archive::{Effort, attach, first_envelope};
use url::Url;

use crate::address::{below, shown};
use crate::artifact::{Artifact, Blob, only_entry};
use crate::attach::CosignedEnvelope;
use crate::client::RegistryClient;
use crate::digest::BlobDigest;
use crate::download::{BlobSink, ProgressFn, Reporter, Step};
use crate::failure::{Failure, FailureReason, bytes, io_failed, refused};
use crate::media::{self, readable_entries};
use crate::reference::Reference;
use crate::response::{broken, read};
use crate::transport::{AccessScope, Operation, RegistryRequest};

/// A pulled bundle. Its blobs have the digests in the OCI manifest; the caller verifies
/// [`archive`](Self::archive).
#[derive(Debug)]
pub struct PulledBundle<T> {
    /// The result of the caller's `verify`.
    pub accepted: T,
    /// The OCI manifest.
    pub artifact: Artifact,
    /// The envelope that the caller accepted, with the co-signatures that were added.
    pub envelope: Vec<u8>,
    /// The failure to look up some or all co-signatures. The envelope was accepted without them.
    pub missing_signatures: Option<Failure>,
    content: File,
}

impl<T> PulledBundle<T> {
    /// Writes the `.toolbundle`, and returns the writer. With [`Effort::Exact`], the archive has
    /// the same bytes as the pushed one, if the same version of zstd made it and no signature was
    /// added. [`Effort::Fast`] is many times faster, for an archive that is verified and deleted.
    ///
    /// # Errors
    /// [`Cause::Signing`](crate::Cause) if the content is not an archive; [`FailureReason::Io`].
    pub fn archive<W: Write>(&self, effort: Effort, out: W) -> Result<W, Failure> {
        let io = |error: std::io::Error| io_failed("the download", error);
        let mut content = self.content.try_clone().map_err(io)?;
        content.seek(SeekFrom::Start(0)).map_err(io)?;
        let size = self.artifact.content.size;
        attach(&self.envelope, BufReader::new(content), size, effort, out).map_err(refused)
    }
}

impl RegistryClient {
    /// Pulls a bundle. `verify` gets the envelope first, with the attached co-signatures; the
    /// content is downloaded only if `verify` accepts. The folder `downloads` is for incomplete
    /// downloads, which a later pull of the same blob resumes. It should belong to the user.
    ///
    /// # Errors
    /// The refusal of `verify`; the errors of the transfer.
    pub async fn pull<T>(
        &self,
        reference: &Reference,
        downloads: &Path,
        progress: Option<&ProgressFn>,
        verify: impl FnOnce(&[u8]) -> Result<T, Refusal>,
    ) -> Result<PulledBundle<T>, Failure> {
        let operation = self.operation();
        let (artifact, envelope) = operation.envelope(reference, progress).await?;
        let accepted = verify(&envelope.bytes).map_err(|refusal| envelope.refused(refusal))?;
        let (folder, blob) = (downloads.to_owned(), artifact.content);
        // Opening the file blocks: it reads and hashes the bytes of an earlier attempt.
        let sink = tokio::task::spawn_blocking(move || BlobSink::file(&folder, &blob))
            .await
            .map_err(|error| Failure::new(FailureReason::Io).caused_by(error))??;
        let reporter = Reporter(progress, Step::Content);
        let sink = operation
            .download(reference, &artifact.content, sink, reporter)
            .await?;
        let io = |error: std::io::Error| io_failed(downloads.display().to_string(), error);
        let content = sink.into_file().map_err(io)?;
        Ok(PulledBundle {
            accepted,
            artifact,
            envelope: envelope.bytes,
            missing_signatures: envelope.missing,
            content,
        })
    }

    /// Returns the current target of a reference, without downloading a blob.
    ///
    /// # Errors
    /// The errors of the transfer.
    pub async fn resolve(&self, reference: &Reference) -> Result<Artifact, Failure> {
        self.operation().artifact(reference).await
    }
}

impl Operation {
    /// A bundle's envelope, with its co-signatures.
    pub(crate) async fn envelope(
        &self,
        reference: &Reference,
        progress: Option<&ProgressFn>,
    ) -> Result<(Artifact, CosignedEnvelope), Failure> {
        let artifact = self.artifact(reference).await?;
        let bytes = self.small(reference, &artifact.envelope, progress).await?;
        let envelope = self.with_signatures(reference, &artifact, bytes).await?;
        Ok((artifact, envelope))
    }

    /// The target of a reference.
    pub(crate) async fn artifact(&self, reference: &Reference) -> Result<Artifact, Failure> {
        let (digest, manifest) = self.artifact_manifest(reference, media::BUNDLE).await?;
        Artifact::parse(digest, &manifest, self.transport.limits.content)
            .map_err(|failure| failure.at(reference.to_string()))
    }

    /// An address in a repository, such as `manifests/1.0.0`.
    pub(crate) fn url(&self, reference: &Reference, path: &str) -> Result<Url, Failure> {
        let path = format!("v2/{}/{path}", reference.repository());
        below(reference, self.transport.plain, &path)
    }

    /// The manifest of an artifact of this type. If the target of the reference is an index, this
    /// is its only entry of the type. Anything that is not an index is returned unchecked.
    pub(crate) async fn artifact_manifest(
        &self,
        reference: &Reference,
        artifact_type: &str,
    ) -> Result<(BlobDigest, Bytes), Failure> {
        let (digest, bytes) = self.manifest(reference).await?;
        let Some(entries) = readable_entries(&bytes) else {
            return Ok((digest, bytes));
        };
        let entry = only_entry(&entries, artifact_type);
        let entry = entry.map_err(|failure| failure.at(reference.to_string()))?;
        self.manifest(&reference.with_digest(entry)).await
    }

    /// A manifest's exact bytes and their digest. If the reference has a digest, the two must be
    /// equal.
    pub(crate) async fn manifest(
        &self,
        reference: &Reference,
    ) -> Result<(BlobDigest, Bytes), Failure> {
        let url = self.url(reference, &format!("manifests/{}", reference.version()?))?;
        let place = shown(&url);
        let ask = RegistryRequest::get(url, AccessScope::pull(reference))
            .header(ACCEPT, &format!("{}, {}", media::MANIFEST, media::INDEX))?;
        let work = async {
            let response = self.expect_ok(&ask).await?;
            read(response, self.transport.limits.manifest).await
        };
        let bytes = self.deadline.within(&place, work).await?;
        let found = BlobDigest::of(&bytes);
        match reference.digest() {
            Some(wanted) if wanted != found => Err(Failure::new(FailureReason::ManifestDiffers)
                .at(place)
                .expected(wanted.to_string())
                .found(found.to_string())),
            _ => Ok((found, bytes)),
        }
    }

    /// Downloads a blob to memory.
    pub(crate) async fn small(
        &self,
        reference: &Reference,
        blob: &Blob,
        progress: Option<&ProgressFn>,
    ) -> Result<Vec<u8>, Failure> {
        let reporter = Reporter(progress, Step::Envelope);
        let sink = self
            .download(reference, blob, BlobSink::default(), reporter)
            .await?;
        Ok(sink.memory)
    }
}

/// How many bytes of the archive may come before the end of the envelope: twice the maximum size of
/// an uncompressed envelope.
const MAX_FIRST_BYTES: usize = 2 * toolward_signing::envelope::MAX_BYTES;

impl RegistryClient {
    /// Fetches a `.toolbundle`, and returns the file, at its first byte and not verified. `verify`
    /// gets the first entry, the envelope, as soon as it has arrived, and the download stops if
    /// `verify` refuses. The file in `downloads` has no name, so it disappears when it is closed. A
    /// broken download fails and is not resumed, since the file on the server may have changed.
    ///
    /// # Errors
    /// The refusal of `verify`; [`FailureReason::BlobTooLarge`] above the client's limit for an
    /// archive; the errors of the transfer.
    pub async fn fetch_bundle(
        &self,
        url: &Url,
        downloads: &Path,
        progress: Option<&ProgressFn>,
        verify: impl FnOnce(&[u8]) -> Result<(), Refusal>,
    ) -> Result<File, Failure> {
        let operation = self.operation();
        let mut sink = BlobSink::fresh(downloads)?;
        let reporter = Reporter(progress, Step::Content);
        let work = async {
            let response = operation.open(url).await?;
            operation
                .receive(response, &mut sink, reporter, verify)
                .await
        };
        operation.deadline.within(&shown(url), work).await?;
        let io = |error: std::io::Error| io_failed(downloads.display().to_string(), error);
        sink.into_file().map_err(io)
    }
}

impl Operation {
    async fn receive(
        &self,
        mut response: Response,
        sink: &mut BlobSink,
        reporter: Reporter<'_>,
        verify: impl FnOnce(&[u8]) -> Result<(), Refusal>,
    ) -> Result<(), Failure> {
        let place = shown(response.url());
        let max = self.transport.limits.content;
        let too_large = || {
            Failure::new(FailureReason::BlobTooLarge)
                .at(place.clone())
                .expected(format!("at most {}", bytes(max)))
        };
        let total = response.content_length();
        if let Some(length) = total
            && length > max
        {
            return Err(too_large().found(bytes(length)));
        }
        let mut first = FirstBytes::default();
        let mut verify = Some(verify);
        loop {
            let chunk = response
                .chunk()
                .await
                .map_err(|error| broken(&error).at(place.clone()))?;
            if let Some(chunk) = &chunk {
                if sink.length.saturating_add(chunk.len() as u64) > max {
                    return Err(too_large());
                }
                sink.append(chunk)
                    .map_err(|error| io_failed("a download", error))?;
                reporter.report(sink.length, total);
            }
            if verify.is_some()
                && let Some(envelope) = first
                    .envelope(chunk.as_deref())
                    .map_err(|failure| failure.at(place.clone()))?
                && let Some(verify) = verify.take()
            {
                verify(&envelope).map_err(refused)?;
            }
            if chunk.is_none() {
                return match verify {
                    None => Ok(()),
                    Some(_) => Err(Failure::new(FailureReason::BlobTruncated)
                        .at(place)
                        .expected("an archive with its envelope")),
                };
            }
        }
    }
}

/// The first bytes of an archive, up to the end of its envelope.
#[derive(Default)]
struct FirstBytes {
    bytes: Vec<u8>,
    /// How many bytes must have arrived before the next attempt to read the envelope. An attempt
    /// for each packet would take quadratic time.
    next_attempt: usize,
}

impl FirstBytes {
    /// Adds the next chunk, and returns the envelope once it is complete. `None` is the end of the
    /// archive.
    fn envelope(&mut self, chunk: Option<&[u8]>) -> Result<Option<Vec<u8>>, Failure> {
        self.bytes.extend_from_slice(chunk.unwrap_or_default());
        if chunk.is_some() && self.bytes.len() < self.next_attempt {
            return Ok(None);
        }
        self.next_attempt = self.bytes.len().saturating_mul(2);
        match first_envelope(&self.bytes).map_err(refused)? {
            Some(envelope) => {
                self.bytes = Vec::new();
                Ok(Some(envelope))
            }
            None if self.bytes.len() > MAX_FIRST_BYTES => {
                Err(Failure::new(FailureReason::ResponseInvalid)
                    .expected("an archive that begins with its envelope"))
            }
            None => Ok(None),
        }
    }
}

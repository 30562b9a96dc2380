//! Pulling a bundle: the tag is asked for once, everything after by digest; the caller sees the envelope
//! before the content is downloaded.

use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom, Write};
use std::path::Path;

use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::ACCEPT;
use toolward_signing::Refusal;
use toolward_signing::archive::{Effort, attach};
use url::Url;

use crate::address::{base, below, shown};
use crate::artifact::{Artifact, Blob, only_entry};
use crate::blob_sink::BlobSink;
use crate::client::Client;
use crate::cosign::CosignedEnvelope;
use crate::digest::BlobDigest;
use crate::failure::{Failure, Reason, io_failed, refused};
use crate::media;
use crate::oci::readable_entries;
use crate::progress::{ProgressFn, Step, Teller};
use crate::reference::Reference;
use crate::response::{read, unexpected};
use crate::retry::Deadline;
use crate::transport::{Ask, Scope};

/// What a pull depends on besides the reference.
#[derive(Clone, Copy)]
pub struct PullOptions<'a> {
    /// A folder for what is half downloaded: a later pull of the same blob resumes it. It should be
    /// the user's own.
    pub downloads: &'a Path,
    /// Whether co-signatures that are attached to the bundle are added to the envelope. The caller sees the
    /// merged one.
    pub signatures: bool,
    /// Whom to tell how far it is.
    pub progress: Option<&'a ProgressFn>,
}

impl<'a> PullOptions<'a> {
    /// With co-signatures, without progress.
    #[must_use]
    pub fn new(downloads: &'a Path) -> Self {
        Self {
            downloads,
            signatures: true,
            progress: None,
        }
    }

    /// Tells somebody how far it is.
    #[must_use]
    pub fn progress(mut self, progress: &'a ProgressFn) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl std::fmt::Debug for PullOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PullOptions")
            .field("downloads", &self.downloads)
            .field("signatures", &self.signatures)
            .finish_non_exhaustive()
    }
}

/// A bundle that was pulled. Its blobs are those that the OCI manifest names; whether it is a good bundle is
/// told by verifying [`archive`](Self::archive).
#[derive(Debug)]
#[non_exhaustive]
pub struct Pulled<T> {
    /// What the caller made of the envelope.
    pub accepted: T,
    /// The OCI manifest.
    pub artifact: Artifact,
    /// The envelope that the caller accepted, with the co-signatures that were asked for.
    pub envelope: Vec<u8>,
    /// Why co-signatures could not be looked up; the envelope was accepted without them.
    pub missing_signatures: Option<Failure>,
    content: File,
}

impl<T> Pulled<T> {
    /// Puts the `.toolbundle` together, and gives the writer back. With [`Effort::Exact`] it has the bytes of
    /// the one that was pushed (if it was made by the same version of zstd, and no signature was added);
    /// with [`Effort::Fast`] it is made many times faster, to be verified and thrown away.
    ///
    /// # Errors
    /// [`Cause::Signing`](crate::Cause) if the content is not an archive; [`Reason::Io`].
    pub fn archive<W: Write>(&self, effort: Effort, out: W) -> Result<W, Failure> {
        let io = |error: std::io::Error| io_failed("the download", error);
        let mut content = self.content.try_clone().map_err(io)?;
        content.seek(SeekFrom::Start(0)).map_err(io)?;
        let size = self.artifact.content.size;
        attach(&self.envelope, BufReader::new(content), size, effort, out).map_err(refused)
    }

    /// The reference that fixes what was pulled.
    #[must_use]
    pub fn reference(&self, pulled: &Reference) -> Reference {
        pulled.with_digest(self.artifact.digest)
    }
}

impl Client {
    /// Pulls a bundle. `verify` is given the envelope before anything of the content is downloaded; if it
    /// refuses, nothing is.
    ///
    /// # Errors
    /// The refusal of `verify`; the reason for which it failed.
    pub async fn pull<T>(
        &self,
        reference: &Reference,
        options: &PullOptions<'_>,
        verify: impl FnOnce(&[u8]) -> Result<T, Refusal>,
    ) -> Result<Pulled<T>, Failure> {
        let deadline = self.transport.deadline();
        let artifact = self.artifact(reference, deadline).await?;
        let envelope = self
            .small(reference, &artifact.envelope, options.progress, deadline)
            .await?;
        let envelope = match options.signatures {
            true => {
                self.with_signatures(reference, &artifact, envelope, deadline)
                    .await?
            }
            false => CosignedEnvelope::alone(envelope),
        };
        let accepted = verify(&envelope.bytes).map_err(|refusal| envelope.refused(refusal))?;
        let (folder, blob) = (options.downloads.to_owned(), artifact.content);
        // It reads and hashes what an earlier try left.
        let sink = tokio::task::spawn_blocking(move || BlobSink::file(&folder, &blob))
            .await
            .map_err(|error| Failure::new(Reason::Io).caused_by(error))??;
        let teller = Teller {
            whom: options.progress,
            step: Step::Content,
        };
        let sink = self
            .download(reference, &artifact.content, sink, teller, deadline)
            .await?;
        let io = |error: std::io::Error| io_failed(options.downloads.display().to_string(), error);
        let content = sink
            .into_file()
            .map_err(io)?
            .ok_or_else(|| Failure::new(Reason::Io))?;
        Ok(Pulled {
            accepted,
            artifact,
            envelope: envelope.bytes,
            missing_signatures: envelope.missing,
            content,
        })
    }

    /// What a reference stands for now, without downloading a blob.
    ///
    /// # Errors
    /// The reason for which it failed.
    pub async fn resolve(&self, reference: &Reference) -> Result<Artifact, Failure> {
        self.artifact(reference, self.transport.deadline()).await
    }

    /// What a reference stands for.
    pub(crate) async fn artifact(
        &self,
        reference: &Reference,
        deadline: Deadline,
    ) -> Result<Artifact, Failure> {
        let (digest, manifest) = self
            .artifact_manifest(reference, media::BUNDLE, deadline)
            .await?;
        Artifact::parse(digest, manifest, self.transport.limits.content)
            .map_err(|failure| failure.at(reference.to_string()))
    }

    pub(crate) fn base(&self, reference: &Reference) -> Result<Url, Failure> {
        base(reference, self.transport.plain)
    }

    /// The manifest of an artifact of this type: what the reference leads to, or the one entry of the type in an
    /// index there. Anything that is not an index comes unchecked.
    pub(crate) async fn artifact_manifest(
        &self,
        reference: &Reference,
        artifact_type: &str,
        deadline: Deadline,
    ) -> Result<(BlobDigest, Bytes), Failure> {
        let (digest, bytes) = self.manifest(reference, deadline).await?;
        let Some(entries) = readable_entries(&bytes) else {
            return Ok((digest, bytes));
        };
        let entry = only_entry(&entries, artifact_type);
        let entry = entry.map_err(|failure| failure.at(reference.to_string()))?;
        self.manifest(&reference.with_digest(entry), deadline).await
    }

    /// A manifest's exact bytes, and their digest: the one that was asked for, if one was.
    pub(crate) async fn manifest(
        &self,
        reference: &Reference,
        deadline: Deadline,
    ) -> Result<(BlobDigest, Bytes), Failure> {
        let path = format!(
            "v2/{}/manifests/{}",
            reference.repository(),
            reference.version()?
        );
        let url = below(&self.base(reference)?, &path)?;
        let place = shown(&url);
        let ask = Ask::get(url, Scope::pull(reference))
            .header(ACCEPT, &format!("{}, {}", media::MANIFEST, media::INDEX))?;
        let work = async {
            let response = self.transport.send(&ask, deadline).await?;
            if response.status() != StatusCode::OK {
                return Err(unexpected(response).await);
            }
            read(response, self.transport.limits.manifest).await
        };
        let bytes = deadline.within(&place, work).await?;
        let found = BlobDigest::of(&bytes);
        match reference.digest() {
            Some(wanted) if wanted != found => Err(Failure::new(Reason::ManifestDiffers)
                .at(place)
                .expected(wanted.to_string())
                .found(found.to_string())),
            _ => Ok((found, bytes)),
        }
    }

    /// A blob that is held in memory.
    pub(crate) async fn small(
        &self,
        reference: &Reference,
        blob: &Blob,
        progress: Option<&ProgressFn>,
        deadline: Deadline,
    ) -> Result<Vec<u8>, Failure> {
        let teller = Teller {
            whom: progress,
            step: Step::Envelope,
        };
        let sink = self
            .download(reference, blob, BlobSink::memory(), teller, deadline)
            .await?;
        Ok(sink.into_bytes())
    }
}

//! Pushes a bundle: first the blobs that the registry lacks, then the exact bytes of the manifest
//! that names them. A large blob goes up in chunks, and can be resumed after a failed chunk.

use bytes::Bytes;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, RANGE};
use reqwest::{Method, Response, StatusCode};
use url::Url;

use crate::address::{origin, shown};
use crate::artifact::{Blob, OutgoingBundle};
use crate::client::RegistryClient;
use crate::digest::BlobDigest;
use crate::download::{ProgressFn, Reporter, Step};
use crate::failure::{Cause, Failure, FailureReason, bytes, quoted};
use crate::media;
use crate::reference::Reference;
use crate::response::location;
use crate::transport::{AccessScope, Operation, RegistryRequest};

/// How many bytes of a blob one request has.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;

/// The header with the registry's digest of the stored blob or manifest.
const STORED: HeaderName = HeaderName::from_static("docker-content-digest");
/// The header that a registry with a referrers API sends in response to a manifest with a subject.
const SUBJECT: HeaderName = HeaderName::from_static("oci-subject");

impl RegistryClient {
    /// Pushes a bundle, and returns the digest of its OCI manifest. An existing tag is moved.
    ///
    /// # Errors
    /// [`FailureReason::ReferenceIncomplete`] if the reference has neither tag nor digest;
    /// [`FailureReason::NotPublishable`] if the reference has another digest than the bundle; the
    /// errors of the transfer.
    pub async fn push(
        &self,
        bundle: &OutgoingBundle,
        reference: &Reference,
        progress: Option<&ProgressFn>,
    ) -> Result<BlobDigest, Failure> {
        // A reference without a version is refused.
        reference.version()?;
        let digest = bundle.digest();
        if let Some(wanted) = reference.digest()
            && wanted != digest
        {
            return Err(Failure::new(FailureReason::NotPublishable)
                .at(reference.to_string())
                .expected(wanted.to_string())
                .found(digest.to_string()));
        }
        let operation = self.operation();
        let reporter = Reporter(progress, Step::Upload);
        operation.upload_small(reference, &bundle.envelope).await?;
        operation
            .upload(reference, &bundle.content, reporter)
            .await?;
        let manifest = bundle.manifest.clone();
        operation
            .put_manifest(reference, media::MANIFEST, manifest)
            .await?;
        Ok(digest)
    }
}

impl Operation {
    /// Uploads the empty config and an envelope.
    pub(crate) async fn upload_small(
        &self,
        reference: &Reference,
        envelope: &Bytes,
    ) -> Result<(), Failure> {
        let empty = Bytes::from_static(media::EMPTY_BYTES);
        let silent = Reporter(None, Step::Upload);
        self.upload(reference, &empty, silent).await?;
        self.upload(reference, envelope, silent).await
    }

    /// Uploads a blob unless the registry has it.
    pub(crate) async fn upload(
        &self,
        reference: &Reference,
        content: &Bytes,
        reporter: Reporter<'_>,
    ) -> Result<(), Failure> {
        let blob = Blob::of(content);
        let place = reference.to_string();
        let total = Some(blob.size);
        reporter.report(0, total);
        let work = async {
            if self.has(reference, &blob).await? {
                return Ok(());
            }
            let mut tries = self.tries();
            loop {
                let Err(failure) = self.session(reference, &blob, content, reporter).await else {
                    return Ok(());
                };
                // After a lost or broken session, the upload starts over.
                let lost = matches!(
                    failure.kind(),
                    Cause::Registry(
                        FailureReason::NotFound
                            | FailureReason::Unreachable
                            | FailureReason::Failed
                            | FailureReason::Busy
                    )
                );
                if !lost {
                    return Err(failure);
                }
                tries.again(failure, None).await?;
            }
        };
        self.deadline.within(&place, work).await?;
        reporter.report(blob.size, total);
        Ok(())
    }

    async fn has(&self, reference: &Reference, blob: &Blob) -> Result<bool, Failure> {
        let url = self.url(reference, &format!("blobs/{}", blob.digest))?;
        let mut ask = RegistryRequest::new(Method::HEAD, url, Some(AccessScope::push(reference)));
        // Some registries redirect to their storage, whose answer then counts.
        ask.follow = true;
        let response = match self.send(&ask).await {
            Err(failure) if failure.kind() == FailureReason::RedirectRefused.into() => {
                return Ok(false);
            }
            sent => sent?,
        };
        // This check only saves an upload. Without a clear answer, the blob is uploaded.
        Ok(response.status() == StatusCode::OK)
    }

    /// Performs one complete upload.
    async fn session(
        &self,
        reference: &Reference,
        blob: &Blob,
        content: &Bytes,
        reporter: Reporter<'_>,
    ) -> Result<(), Failure> {
        let url = self.url(reference, "blobs/uploads/")?;
        let access = AccessScope::push(reference);
        let mut ask = RegistryRequest::new(Method::POST, url, Some(access.clone()));
        ask.body = Some(Bytes::new());
        let is_accepted = |status| status == StatusCode::ACCEPTED;
        let response = self.expect(&ask, is_accepted).await?;
        let mut at = upload_location(&ask.url, &response)?;
        let mut done = 0;
        let mut last = content.clone();
        if content.len() > CHUNK_BYTES {
            while let Some(piece) = piece(content, done) {
                let length = piece.len();
                match self.send_piece(&at, &access, done, piece).await {
                    Ok(next) => {
                        at = next;
                        done = done.saturating_add(length);
                    }
                    Err(failure) => {
                        // Ask how much the registry received.
                        let (next, got) = self.upload_state(&at, &access).await?;
                        if got <= done || got > content.len() {
                            return Err(failure);
                        }
                        at = next;
                        done = got;
                    }
                }
                reporter.report(done as u64, Some(blob.size));
            }
            last = Bytes::new();
        }
        at.query_pairs_mut()
            .append_pair("digest", &blob.digest.to_string());
        let mut ask = RegistryRequest::new(Method::PUT, at, Some(access))
            .header(CONTENT_TYPE, "application/octet-stream")?;
        ask.headers.insert(CONTENT_LENGTH, last.len().into());
        ask.body = Some(last);
        ask.repeat = false;
        let response = self.expect(&ask, |status| status.is_success()).await?;
        check_stored(response.headers(), blob.digest, &ask.url)
    }

    async fn send_piece(
        &self,
        at: &Url,
        access: &AccessScope,
        from: usize,
        piece: Bytes,
    ) -> Result<Url, Failure> {
        let end = from.saturating_add(piece.len()).saturating_sub(1);
        let mut ask = RegistryRequest::new(Method::PATCH, at.clone(), Some(access.clone()))
            .header(CONTENT_TYPE, "application/octet-stream")?
            .header(CONTENT_RANGE, &format!("{from}-{end}"))?;
        ask.body = Some(piece);
        ask.repeat = false;
        let response = self.expect(&ask, |status| status.is_success()).await?;
        match received(response.headers()) {
            Some(got) if got != end.saturating_add(1) => {
                Err(Failure::new(FailureReason::ResponseInvalid)
                    .at(shown(at))
                    .expected(format!("{} received", bytes(end.saturating_add(1) as u64)))
                    .found(bytes(got as u64)))
            }
            _ => upload_location(at, &response),
        }
    }

    /// The address at which an upload continues, and how many bytes the registry has.
    async fn upload_state(&self, at: &Url, access: &AccessScope) -> Result<(Url, usize), Failure> {
        let ask = RegistryRequest::get(at.clone(), access.clone());
        let is_empty = |status| status == StatusCode::NO_CONTENT;
        let response = self.expect(&ask, is_empty).await?;
        let got = received(response.headers()).unwrap_or(0);
        let next = upload_location(at, &response).unwrap_or_else(|_| at.clone());
        Ok((next, got))
    }

    /// Stores a manifest's exact bytes under the reference's tag, or under the manifest's digest if
    /// the reference has no tag. Returns whether the registry indexed the manifest's subject.
    pub(crate) async fn put_manifest(
        &self,
        reference: &Reference,
        media_type: &str,
        manifest: Bytes,
    ) -> Result<bool, Failure> {
        let digest = BlobDigest::of(&manifest);
        let version = match reference.tag() {
            Some(tag) => tag.to_owned(),
            None => digest.to_string(),
        };
        let url = self.url(reference, &format!("manifests/{version}"))?;
        let place = shown(&url);
        let mut ask = RegistryRequest::new(Method::PUT, url, Some(AccessScope::push(reference)))
            .header(CONTENT_TYPE, media_type)?;
        ask.body = Some(manifest);
        let work = async {
            let response = self.expect(&ask, |status| status.is_success()).await?;
            check_stored(response.headers(), digest, &ask.url)?;
            Ok(response.headers().contains_key(SUBJECT))
        };
        self.deadline.within(&place, work).await
    }
}

/// The next chunk of a blob, after `done` uploaded bytes.
fn piece(content: &Bytes, done: usize) -> Option<Bytes> {
    let end = done.saturating_add(CHUNK_BYTES).min(content.len());
    (done < end).then(|| content.slice(done..end))
}

/// The address at which an upload continues. It must be at the registry itself, since it receives
/// the bytes and the credentials.
fn upload_location(from: &Url, response: &Response) -> Result<Url, Failure> {
    let to = location(from, response, "`Location`, where the upload continues")?;
    if origin(&to) == origin(from) {
        return Ok(to);
    }
    Err(Failure::new(FailureReason::RedirectRefused)
        .at(shown(from))
        .expected(format!("an upload to {}", origin(from)))
        .found(shown(&to))
        .hinted("uploads go to the registry's own origin only, and no setting allows another"))
}

/// How many bytes a registry has, by its header `Range: 0-LAST`. `0-0` means zero bytes, not one,
/// since even the first chunk is longer than one byte.
fn received(headers: &HeaderMap) -> Option<usize> {
    let range = headers.get(RANGE)?.to_str().ok()?;
    let last: usize = range
        .strip_prefix("bytes=")
        .unwrap_or(range)
        .strip_prefix("0-")?
        .parse()
        .ok()?;
    match last {
        0 => Some(0),
        last => last.checked_add(1),
    }
}

fn check_stored(headers: &HeaderMap, digest: BlobDigest, url: &Url) -> Result<(), Failure> {
    match headers.get(STORED).map(|value| value.to_str()) {
        Some(Ok(stored)) if stored != digest.to_string() => {
            Err(Failure::new(FailureReason::ResponseInvalid)
                .at(shown(url))
                .expected(digest.to_string())
                .found(quoted(stored)))
        }
        _ => Ok(()),
    }
}

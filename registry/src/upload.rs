//! Uploading: blobs in chunks, resumed where the registry has them, and manifests with their exact bytes.

use bytes::Bytes;
use reqwest::header::{
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, RANGE,
};
use reqwest::{Method, Response, StatusCode};
use url::Url;

use crate::address::{below, origin, shown};
use crate::artifact::Blob;
use crate::client::Client;
use crate::digest::BlobDigest;
use crate::failure::{Cause, Failure, Reason};
use crate::progress::Teller;
use crate::reference::Reference;
use crate::response::unexpected;
use crate::retry::Deadline;
use crate::text::{bytes, quoted};
use crate::transport::{Ask, Scope};

/// Bytes of a blob in one request.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;

/// The digest that a registry says it has stored.
const STORED: HeaderName = HeaderName::from_static("docker-content-digest");
/// Sent by a registry with a referrers API in response to a manifest with a subject.
const SUBJECT: HeaderName = HeaderName::from_static("oci-subject");

impl Client {
    /// Uploads a blob unless the registry has it.
    pub(crate) async fn upload(
        &self,
        reference: &Reference,
        content: &Bytes,
        teller: Teller<'_>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let blob = Blob::of(content);
        let place = reference.to_string();
        let total = Some(blob.size);
        teller.tell(0, total);
        let work = async {
            if self.has(reference, &blob, deadline).await? {
                return Ok(());
            }
            let mut tries = self.transport.tries(deadline);
            loop {
                let Err(failure) = self
                    .session(reference, &blob, content, teller, deadline)
                    .await
                else {
                    return Ok(());
                };
                // A session that the registry lost, or that broke, starts over.
                let lost = matches!(
                    failure.kind(),
                    Cause::Registry(
                        Reason::NotFound | Reason::Unreachable | Reason::Failed | Reason::Busy
                    )
                );
                if !lost {
                    return Err(failure);
                }
                tries.again(failure, None).await?;
            }
        };
        deadline.within(&place, work).await?;
        teller.tell(blob.size, total);
        Ok(())
    }

    async fn has(
        &self,
        reference: &Reference,
        blob: &Blob,
        deadline: Deadline,
    ) -> Result<bool, Failure> {
        let path = format!("v2/{}/blobs/{}", reference.repository(), blob.digest);
        let url = below(&self.base(reference)?, &path)?;
        let mut ask = Ask::new(Method::HEAD, url, Some(Scope::push(reference)));
        // Some registries redirect to the storage; its answer counts.
        ask.follow = true;
        let response = match self.transport.send(&ask, deadline).await {
            Err(failure) if failure.kind() == Reason::RedirectRefused.into() => return Ok(false),
            sent => sent?,
        };
        // Looking saves an upload. Without a clear answer there is one, and its answer counts.
        Ok(response.status() == StatusCode::OK)
    }

    /// One upload, from its beginning to its end.
    async fn session(
        &self,
        reference: &Reference,
        blob: &Blob,
        content: &Bytes,
        teller: Teller<'_>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let path = format!("v2/{}/blobs/uploads/", reference.repository());
        let url = below(&self.base(reference)?, &path)?;
        let access = Scope::push(reference);
        let ask = Ask::new(Method::POST, url, Some(access.clone()));
        let ask = Ask {
            body: Some(Bytes::new()),
            ..ask
        };
        let response = self.transport.send(&ask, deadline).await?;
        if response.status() != StatusCode::ACCEPTED {
            return Err(unexpected(response).await);
        }
        let mut at = location(&ask.url, &response)?;
        let mut done = 0;
        let mut last = content.clone();
        if content.len() > CHUNK_BYTES {
            while let Some(piece) = piece(content, done) {
                let length = piece.len();
                match self.send_piece(&at, &access, done, piece, deadline).await {
                    Ok(next) => {
                        at = next;
                        done = done.saturating_add(length);
                    }
                    Err(failure) => {
                        // How much did the registry receive?
                        let (next, got) = self.stand(&at, &access, deadline).await?;
                        if got <= done || got > content.len() {
                            return Err(failure);
                        }
                        at = next;
                        done = got;
                    }
                }
                teller.tell(done as u64, Some(blob.size));
            }
            last = Bytes::new();
        }
        at.query_pairs_mut()
            .append_pair("digest", &blob.digest.to_string());
        let mut ask = Ask::new(Method::PUT, at, Some(access))
            .header(CONTENT_TYPE, "application/octet-stream")?;
        ask.headers.insert(CONTENT_LENGTH, last.len().into());
        ask.body = Some(last);
        ask.repeat = false;
        let response = self.transport.send(&ask, deadline).await?;
        if !response.status().is_success() {
            return Err(unexpected(response).await);
        }
        check_stored(response.headers(), blob.digest, &ask.url)
    }

    async fn send_piece(
        &self,
        at: &Url,
        access: &Scope,
        from: usize,
        piece: Bytes,
        deadline: Deadline,
    ) -> Result<Url, Failure> {
        let end = from.saturating_add(piece.len()).saturating_sub(1);
        let mut ask = Ask::new(Method::PATCH, at.clone(), Some(access.clone()))
            .header(CONTENT_TYPE, "application/octet-stream")?
            .header(CONTENT_RANGE, &format!("{from}-{end}"))?;
        ask.body = Some(piece);
        ask.repeat = false;
        let response = self.transport.send(&ask, deadline).await?;
        if !response.status().is_success() {
            return Err(unexpected(response).await);
        }
        match received(response.headers()) {
            Some(got) if got != end.saturating_add(1) => Err(Failure::new(Reason::ResponseInvalid)
                .at(shown(at))
                .expected(format!("{} received", bytes(end.saturating_add(1) as u64)))
                .found(bytes(got as u64))),
            _ => location(at, &response),
        }
    }

    /// Where an upload continues, and how many bytes the registry has.
    async fn stand(
        &self,
        at: &Url,
        access: &Scope,
        deadline: Deadline,
    ) -> Result<(Url, usize), Failure> {
        let ask = Ask::get(at.clone(), access.clone());
        let response = self.transport.send(&ask, deadline).await?;
        if response.status() != StatusCode::NO_CONTENT {
            return Err(unexpected(response).await);
        }
        let got = received(response.headers()).unwrap_or(0);
        let next = location(at, &response).unwrap_or_else(|_| at.clone());
        Ok((next, got))
    }

    /// Stores a manifest's exact bytes under the reference's tag, or its digest. Returns whether the registry
    /// indexed its subject.
    pub(crate) async fn put_manifest(
        &self,
        reference: &Reference,
        media_type: &str,
        manifest: Bytes,
        deadline: Deadline,
    ) -> Result<bool, Failure> {
        let digest = BlobDigest::of(&manifest);
        let version = match reference.tag() {
            Some(tag) => tag.to_owned(),
            None => digest.to_string(),
        };
        let path = format!("v2/{}/manifests/{version}", reference.repository());
        let url = below(&self.base(reference)?, &path)?;
        let place = shown(&url);
        let mut ask = Ask::new(Method::PUT, url, Some(Scope::push(reference)))
            .header(CONTENT_TYPE, media_type)?;
        ask.body = Some(manifest);
        let work = async {
            let response = self.transport.send(&ask, deadline).await?;
            if !response.status().is_success() {
                return Err(unexpected(response).await);
            }
            check_stored(response.headers(), digest, &ask.url)?;
            Ok(response.headers().contains_key(SUBJECT))
        };
        deadline.within(&place, work).await
    }
}

/// The next chunk of a blob of which `done` bytes are uploaded.
fn piece(content: &Bytes, done: usize) -> Option<Bytes> {
    let end = done.saturating_add(CHUNK_BYTES).min(content.len());
    (done < end).then(|| content.slice(done..end))
}

/// Where an upload continues: at the registry itself, as it receives the bytes and the credentials.
fn location(from: &Url, response: &Response) -> Result<Url, Failure> {
    let to = response
        .headers()
        .get(LOCATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|location| from.join(location).ok())
        .ok_or_else(|| {
            Failure::new(Reason::ResponseInvalid)
                .at(shown(from))
                .expected("`Location`, where the upload continues")
        })?;
    if origin(&to) == origin(from) {
        return Ok(to);
    }
    Err(Failure::new(Reason::RedirectRefused)
        .at(shown(from))
        .expected(format!("an upload to {}", origin(from)))
        .found(shown(&to))
        .hinted("uploads go to the registry's own origin only, and no setting allows another"))
}

/// How many bytes a registry says it has: `Range: 0-LAST`. Zero bytes and one byte look the same, and no
/// chunk is one byte.
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
            Err(Failure::new(Reason::ResponseInvalid)
                .at(shown(url))
                .expected(digest.to_string())
                .found(quoted(stored)))
        }
        _ => Ok(()),
    }
}

//! Bundles by `https`: the first entry of the archive is the envelope, which the caller sees before the rest is
//! downloaded.

use std::fs::File;
use std::path::Path;

use reqwest::Response;
use toolward_signing::Refusal;
use toolward_signing::archive::first_envelope;
use url::Url;

use crate::address::shown;
use crate::client::RegistryClient;
use crate::download::BlobSink;
use crate::failure::{Failure, FailureReason, bytes, io_failed, refused};
use crate::response::broken;
use crate::transfer::{ProgressFn, Reporter, Step};
use crate::transport::Operation;

/// The envelope must be within this many bytes of the archive: twice what it can take uncompressed.
const MAX_FIRST_BYTES: usize = 2 * toolward_signing::envelope::MAX_BYTES;

/// A `.toolbundle` fetched by `https`, not verified.
#[derive(Debug)]
#[non_exhaustive]
pub struct FetchedBundle<T> {
    /// The result of the caller's `verify`.
    pub accepted: T,
    /// The archive, at its first byte. The file is unnamed: it disappears when it is closed.
    pub archive: File,
    /// The archive's size in bytes.
    pub size: u64,
}

impl RegistryClient {
    /// Fetches a `.toolbundle`. `verify` gets its first entry, the envelope, as soon as it has arrived; if it
    /// refuses, the download stops. The file has no name in `downloads`. A broken download starts over: the
    /// file on the server may have changed.
    ///
    /// # Errors
    /// The refusal of `verify`; [`FailureReason::BlobTooLarge`] above 512 MiB; the reason for which it failed.
    pub async fn fetch_bundle<T>(
        &self,
        url: &Url,
        downloads: &Path,
        progress: Option<&ProgressFn>,
        verify: impl FnOnce(&[u8]) -> Result<T, Refusal>,
    ) -> Result<FetchedBundle<T>, Failure> {
        let operation = self.operation();
        let mut sink = BlobSink::fresh(downloads)?;
        let reporter = Reporter {
            callback: progress,
            step: Step::Content,
        };
        let work = async {
            let response = operation.open(url).await?;
            operation
                .receive(response, &mut sink, reporter, verify)
                .await
        };
        let accepted = match operation.deadline.within(&shown(url), work).await {
            Ok(accepted) => accepted,
            Err(failure) => {
                sink.discard();
                return Err(failure);
            }
        };
        let size = sink.length;
        let io = |error: std::io::Error| io_failed(downloads.display().to_string(), error);
        Ok(FetchedBundle {
            accepted,
            archive: sink.into_file().map_err(io)?,
            size,
        })
    }
}

impl Operation {
    async fn receive<T>(
        &self,
        mut response: Response,
        sink: &mut BlobSink,
        reporter: Reporter<'_>,
        verify: impl FnOnce(&[u8]) -> Result<T, Refusal>,
    ) -> Result<T, Failure> {
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
        let mut accepted = None;
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
                accepted = Some(verify(&envelope).map_err(refused)?);
            }
            if chunk.is_none() {
                return accepted.ok_or_else(|| {
                    Failure::new(FailureReason::BlobTruncated)
                        .at(place)
                        .expected("an archive with its envelope")
                });
            }
        }
    }
}

/// The first bytes of an archive, up to the end of its envelope.
#[derive(Default)]
struct FirstBytes {
    bytes: Vec<u8>,
    /// How many bytes must have arrived before the next attempt to read the envelope: an attempt for each packet would
    /// take quadratic time.
    next_attempt: usize,
}

impl FirstBytes {
    /// Adds the next chunk, or the end, and returns the envelope once it is complete.
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

//! Downloads a blob to memory or to a file, and checks its size and digest. A broken download
//! resumes, and a later attempt resumes an incomplete file. Also defines the progress of transfers.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, RANGE};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::address::shown;
use crate::artifact::Blob;
use crate::digest::BlobDigest;
use crate::failure::{Failure, FailureReason, bytes, io_failed, quoted};
use crate::reference::Reference;
use crate::response::{broken, unexpected};
use crate::transport::{AccessScope, Operation, RegistryRequest};

/// The current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Downloading the envelope.
    Envelope,
    /// Downloading the content, which may resume an earlier attempt.
    Content,
    /// Uploading a blob.
    Upload,
}

/// Progress of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferProgress {
    /// The current step.
    pub step: Step,
    /// Bytes transferred.
    pub done: u64,
    /// Bytes in total, if known.
    pub total: Option<u64>,
}

/// A callback that receives the progress.
pub type ProgressFn = dyn Fn(TransferProgress) + Send + Sync;

/// Reports progress to a callback, if there is one.
#[derive(Clone, Copy)]
pub(crate) struct Reporter<'a>(pub(crate) Option<&'a ProgressFn>, pub(crate) Step);

impl Reporter<'_> {
    pub(crate) fn report(&self, done: u64, total: Option<u64>) {
        if let Some(callback) = self.0 {
            callback(TransferProgress {
                step: self.1,
                done,
                total,
            });
        }
    }
}

/// How a request for a blob ended.
enum TransferEnd {
    /// The blob has its full size.
    Complete,
    /// The connection broke, or the server refused the range; another request may help.
    Broken(Failure),
    /// The registry broke the protocol, so the download is not retried.
    Hostile(Failure),
}

impl Operation {
    /// Downloads `blob` to `sink`, and returns the complete sink. `sink` may already have the first
    /// bytes.
    pub(crate) async fn download(
        &self,
        reference: &Reference,
        blob: &Blob,
        mut sink: BlobSink,
        reporter: Reporter<'_>,
    ) -> Result<BlobSink, Failure> {
        let url = self.url(reference, &format!("blobs/{}", blob.digest))?;
        let place = shown(&url);
        let io = |error: std::io::Error| io_failed("a download", error);
        let retries = self.transport.limits.retries;
        let mut tries = self.tries();
        loop {
            let before = sink.length;
            let work = self.request_rest(&url, reference, blob, &mut sink, reporter);
            match self.deadline.within(&place, work).await? {
                TransferEnd::Complete => {}
                TransferEnd::Broken(failure) => {
                    if sink.length > before {
                        tries.refill(retries);
                    }
                    tries.again(failure, None).await?;
                    continue;
                }
                TransferEnd::Hostile(failure) => {
                    sink.discard();
                    return Err(failure);
                }
            }
            let found = BlobDigest::from(sink.hasher.clone());
            if found == blob.digest {
                return Ok(sink);
            }
            if sink.resumed {
                // The part from an earlier attempt may be wrong: restart from the first byte.
                sink.restart().map_err(io)?;
                continue;
            }
            sink.discard();
            return Err(Failure::new(FailureReason::BlobDiffers)
                .at(place)
                .expected(blob.digest.to_string())
                .found(found.to_string()));
        }
    }

    /// Sends one request for the missing bytes.
    async fn request_rest(
        &self,
        url: &Url,
        reference: &Reference,
        blob: &Blob,
        sink: &mut BlobSink,
        reporter: Reporter<'_>,
    ) -> Result<TransferEnd, Failure> {
        reporter.report(sink.length, Some(blob.size));
        if sink.length == blob.size {
            return Ok(TransferEnd::Complete);
        }
        let mut ask = RegistryRequest::get(url.clone(), AccessScope::pull(reference));
        ask.follow = true;
        if sink.length > 0 {
            ask = ask.header(RANGE, &format!("bytes={}-", sink.length))?;
        }
        let mut response = self.send(&ask).await?;
        let place = shown(response.url());
        let io = |error: std::io::Error| io_failed("a download", error);
        match response.status() {
            StatusCode::PARTIAL_CONTENT if sink.length > 0 => {
                let range = response
                    .headers()
                    .get(CONTENT_RANGE)
                    .and_then(|value| value.to_str().ok());
                let last = blob.size.saturating_sub(1);
                let wanted = format!("bytes {}-{last}/{}", sink.length, blob.size);
                if range != Some(wanted.as_str()) {
                    return Ok(TransferEnd::Hostile(
                        Failure::new(FailureReason::ResponseInvalid)
                            .at(place)
                            .expected(format!("`Content-Range: {wanted}`"))
                            .found(range.map_or("none".to_owned(), quoted)),
                    ));
                }
            }
            StatusCode::OK => sink.restart().map_err(io)?,
            // The server's blob ends before the requested range, so the bytes so far are not from
            // this blob.
            StatusCode::RANGE_NOT_SATISFIABLE if sink.length > 0 => {
                sink.restart().map_err(io)?;
                let failure = unexpected(response).await;
                return Ok(TransferEnd::Broken(failure));
            }
            _ => return Err(unexpected(response).await),
        }
        let missing = blob.size.saturating_sub(sink.length);
        if let Some(length) = response.content_length()
            && length != missing
        {
            return Ok(wrong_size(place, missing, length));
        }
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    let length = sink.length.saturating_add(chunk.len() as u64);
                    if length > blob.size {
                        return Ok(wrong_size(place, blob.size, length));
                    }
                    sink.append(&chunk).map_err(io)?;
                    reporter.report(sink.length, Some(blob.size));
                }
                Ok(None) if sink.length == blob.size => return Ok(TransferEnd::Complete),
                // The response ended regularly, so this is not a broken connection.
                Ok(None) => return Ok(wrong_size(place, blob.size, sink.length)),
                Err(error) => return Ok(TransferEnd::Broken(broken(&error).at(place))),
            }
        }
    }
}

fn wrong_size(place: String, expected: u64, found: u64) -> TransferEnd {
    let (reason, found) = match found > expected {
        true => (FailureReason::BlobEndless, "more".to_owned()),
        false => (FailureReason::BlobTruncated, bytes(found)),
    };
    let failure = Failure::new(reason).at(place).expected(bytes(expected));
    TransferEnd::Hostile(failure.found(found))
}

/// The downloaded bytes of a blob, in a file or in memory, and their hash.
#[derive(Default)]
pub(crate) struct BlobSink {
    pub(crate) memory: Vec<u8>,
    file: Option<PartialFile>,
    pub(crate) length: u64,
    hasher: Sha256,
    /// Whether some bytes are from an earlier attempt.
    resumed: bool,
}

/// A file that is named after the expected digest, or an unnamed file, which disappears when it is
/// closed.
struct PartialFile {
    folder: Dir,
    name: Option<String>,
    file: File,
}

impl BlobSink {
    /// Opens or creates the file for a blob in `folder`, and hashes its bytes. If another process
    /// has locked the file, an unnamed file is used.
    pub(crate) fn file(folder: &Path, blob: &Blob) -> Result<Self, Failure> {
        let io = |error: std::io::Error| io_failed(folder.display().to_string(), error);
        let name = format!("{}.partial", blob.digest.hex());
        let directory = Dir::open_ambient_dir(folder, ambient_authority()).map_err(io)?;
        let file = open(&directory, &name, OpenOptions::new().create(true)).map_err(io)?;
        if file.try_lock().is_err() {
            return Self::fresh(folder);
        }
        let mut reader = file.try_clone().map_err(io)?;
        let mut sink = Self::of(directory, Some(name), file);
        if reader.metadata().map_err(io)?.len() > blob.size {
            sink.restart().map_err(io)?;
            return Ok(sink);
        }
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = reader.read(&mut buffer).map_err(io)?;
            if count == 0 {
                break;
            }
            sink.hasher.update(buffer.get(..count).unwrap_or_default());
            sink.length = sink.length.saturating_add(count as u64);
        }
        sink.resumed = sink.length > 0;
        Ok(sink)
    }

    /// An unnamed file, which no later attempt resumes.
    pub(crate) fn fresh(folder: &Path) -> Result<Self, Failure> {
        let io = |error: std::io::Error| io_failed(folder.display().to_string(), error);
        let folder = Dir::open_ambient_dir(folder, ambient_authority()).map_err(io)?;
        let file = unnamed(&folder).map_err(io)?;
        Ok(Self::of(folder, None, file))
    }

    fn of(folder: Dir, name: Option<String>, file: File) -> Self {
        Self {
            file: Some(PartialFile { folder, name, file }),
            ..Self::default()
        }
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match &mut self.file {
            Some(partial) => partial.file.write_all(bytes)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.hasher.update(bytes);
        self.length = self.length.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Removes all bytes.
    pub(crate) fn restart(&mut self) -> std::io::Result<()> {
        self.memory.clear();
        if let Some(partial) = &mut self.file {
            partial.file.set_len(0)?;
            partial.file.seek(SeekFrom::Start(0))?;
        }
        self.length = 0;
        self.hasher = Sha256::default();
        self.resumed = false;
        Ok(())
    }

    /// Removes the file, whose bytes must not be reused.
    pub(crate) fn discard(self) {
        if let Some(partial) = self.file {
            partial.remove();
        }
    }

    /// Removes the file's name and returns the file at its first byte. It disappears when the last
    /// handle is closed.
    pub(crate) fn into_file(self) -> std::io::Result<File> {
        let mut partial = self.file.ok_or(std::io::ErrorKind::Unsupported)?;
        partial.file.seek(SeekFrom::Start(0))?;
        partial.remove();
        Ok(partial.file)
    }
}

impl PartialFile {
    fn remove(&self) {
        if let Some(name) = &self.name {
            // If the removal fails, the next attempt finds and hashes the file.
            let _ = self.folder.remove_file(name);
        }
    }
}

/// An unnamed file, which no later attempt can find.
fn unnamed(folder: &Dir) -> std::io::Result<File> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(std::io::Error::other)?;
    let name = format!("{:032x}.download", u128::from_be_bytes(random));
    let file = open(folder, &name, OpenOptions::new().create_new(true))?;
    folder.remove_file(&name)?;
    Ok(file)
}

fn open(folder: &Dir, name: &str, options: &mut OpenOptions) -> std::io::Result<File> {
    options.read(true).write(true).follow(FollowSymlinks::No);
    // Only the owner may read the file, since a bundle may be private.
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(options, 0o600);
    folder
        .open_with(name, options)
        .map(cap_std::fs::File::into_std)
}

//! Downloading a blob: never more than its size, never another one, and on from where it broke off.

use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, RANGE};
use url::Url;

use crate::address::{below, shown};
use crate::artifact::Blob;
use crate::blob_sink::BlobSink;
use crate::client::Client;
use crate::failure::{Failure, Reason, io_failed};
use crate::progress::Teller;
use crate::reference::Reference;
use crate::response::{broken, unexpected};
use crate::retry::Deadline;
use crate::text::bytes;
use crate::transport::{Ask, Scope};

/// How a transfer that was not whole ended.
enum Ended {
    /// All that was announced is there.
    Whole,
    /// The connection broke; going on may help.
    Broken(Failure),
    /// The registry is not to be asked again.
    Hostile(Failure),
}

impl Client {
    /// Downloads `blob` to `sink`, which may have some of it already, and gives it back with all of it.
    pub(crate) async fn download(
        &self,
        reference: &Reference,
        blob: &Blob,
        mut sink: BlobSink,
        teller: Teller<'_>,
        deadline: Deadline,
    ) -> Result<BlobSink, Failure> {
        let url = below(
            &self.base(reference)?,
            &format!("v2/{}/blobs/{}", reference.repository(), blob.digest),
        )?;
        let place = shown(&url);
        let io = |error: std::io::Error| io_failed("a download", error);
        let retries = self.transport.limits.retries;
        let mut tries = self.transport.tries(deadline);
        loop {
            let before = sink.length;
            let work = self.some(&url, reference, blob, &mut sink, teller, deadline);
            match deadline.within(&place, work).await? {
                Ended::Whole => {}
                Ended::Broken(failure) => {
                    if sink.length > before {
                        tries.refill(retries);
                    }
                    tries.again(failure, None).await?;
                    continue;
                }
                Ended::Hostile(failure) => {
                    sink.discard();
                    return Err(failure);
                }
            }
            let found = sink.hasher.clone().finish();
            if found == blob.digest {
                return Ok(sink);
            }
            if sink.resumed {
                // The part from an earlier try may be to blame: once more, from the beginning.
                sink.restart().map_err(io)?;
                continue;
            }
            sink.discard();
            return Err(Failure::new(Reason::BlobDiffers)
                .at(place)
                .expected(blob.digest.to_string())
                .found(found.to_string()));
        }
    }

    /// One request for what is missing.
    async fn some(
        &self,
        url: &Url,
        reference: &Reference,
        blob: &Blob,
        sink: &mut BlobSink,
        teller: Teller<'_>,
        deadline: Deadline,
    ) -> Result<Ended, Failure> {
        teller.tell(sink.length, Some(blob.size));
        if sink.length == blob.size {
            return Ok(Ended::Whole);
        }
        let mut ask = Ask::get(url.clone(), Scope::pull(reference));
        ask.follow = true;
        if sink.length > 0 {
            ask = ask.header(RANGE, &format!("bytes={}-", sink.length))?;
        }
        let mut response = self.transport.send(&ask, deadline).await?;
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
                    return Ok(Ended::Hostile(
                        Failure::new(Reason::ResponseInvalid)
                            .at(place)
                            .expected(format!("`Content-Range: {wanted}`"))
                            .found(range.map_or("none".to_owned(), crate::text::quoted)),
                    ));
                }
            }
            StatusCode::OK => sink.restart().map_err(io)?,
            // It does not have what would come next: what is there is not its beginning.
            StatusCode::RANGE_NOT_SATISFIABLE if sink.length > 0 => {
                sink.restart().map_err(io)?;
                let failure = unexpected(response).await;
                return Ok(Ended::Broken(failure));
            }
            _ => return Err(unexpected(response).await),
        }
        let missing = blob.size.saturating_sub(sink.length);
        if let Some(length) = response.content_length()
            && length != missing
        {
            return Ok(Ended::Hostile(wrong_size(place, missing, length)));
        }
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    let length = sink.length.saturating_add(chunk.len() as u64);
                    if length > blob.size {
                        return Ok(Ended::Hostile(wrong_size(place, blob.size, length)));
                    }
                    sink.append(&chunk).map_err(io)?;
                    teller.tell(sink.length, Some(blob.size));
                }
                Ok(None) if sink.length == blob.size => return Ok(Ended::Whole),
                // An end that was meant, not a connection that broke.
                Ok(None) => {
                    return Ok(Ended::Hostile(wrong_size(place, blob.size, sink.length)));
                }
                Err(error) => return Ok(Ended::Broken(broken(&error).at(place))),
            }
        }
    }
}

fn wrong_size(place: String, expected: u64, found: u64) -> Failure {
    let reason = if found > expected {
        Reason::BlobEndless
    } else {
        Reason::BlobTruncated
    };
    let found = match reason {
        Reason::BlobEndless => "more".to_owned(),
        _ => bytes(found),
    };
    Failure::new(reason)
        .at(place)
        .expected(bytes(expected))
        .found(found)
}

//! The body of a message. It is read within limits of time and size, and parsed just enough to
//! classify the message: requests need a permit, and answers and notifications must get through
//! without one.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::future::{BoxFuture, FutureExt as _};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio_util::sync::CancellationToken;
use toolward_host::{Cancellation, SharedCancellation, UnreadResult};

use super::HttpLimits;
use super::concurrency::{HeldMemory, RequestPermit};
use super::responses::HttpRejection;
use crate::client::UnreadResults;
use crate::messages::{LARGE, MessageSize, SMALL};
use crate::methods::{self, Kind};

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default)]
    id: Option<IgnoredAny>,
}

/// Bytes of memory per byte of a body, since a buffer that grows may be copied to a larger one.
const GROWTH_FACTOR: usize = 3;

/// Reads a body into memory that is held for it.
pub(super) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    limits: &HttpLimits,
    held: &mut HeldMemory,
) -> Result<Bytes, HttpRejection> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    // Checked before a byte is read, and before the client is asked to continue.
    if announced.is_some_and(|length| usize::try_from(length).map_or(true, |l| l > limits.body)) {
        return Err(HttpRejection::TooLarge(limits.body));
    }
    let collected = async {
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| HttpRejection::Broken)?.into_data() else {
                continue;
            };
            if bytes.len().saturating_add(data.len()) > limits.body {
                return Err(HttpRejection::TooLarge(limits.body));
            }
            held.grow(data.len().saturating_mul(GROWTH_FACTOR))?;
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    };
    let collected = tokio::time::timeout(limits.body_within, collected).await;
    collected.unwrap_or(Err(HttpRejection::TooSlow))
}

/// What kind of message a body is, and how large it may be.
pub(super) fn kind(body: &[u8]) -> Result<(Kind, MessageSize), HttpRejection> {
    let is_json = || serde_json::from_slice::<IgnoredAny>(body).is_ok();
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        _ if !is_json() => return Err(HttpRejection::NotJson),
        Some(b'[') => return Ok((Kind::Batch, LARGE)),
        _ => return Err(HttpRejection::NoMessage("another JSON value")),
    }
    let message: Message<'_> = match serde_json::from_slice(body) {
        Ok(message) => message,
        Err(error) if error.is_data() && is_json() => {
            return Err(HttpRejection::NoMessage(
                "a `method` that is no text, or a member twice",
            ));
        }
        Err(_) => return Err(HttpRejection::NotJson),
    };
    let Some(method) = message.id.and(message.method) else {
        return Ok((Kind::Other, SMALL));
    };
    let (kind, size, ..) = methods::named(method.as_bytes());
    Ok((kind, size))
}

/// The most bytes of an answer that are handed to the connection at once. Bytes count as sent once
/// they are handed over, so at most this many unsent bytes are not counted.
const CHUNK_BYTES: usize = 32 * 1024;

/// Held by a request, then by its answer. If the guard is dropped while a call of the stateless era
/// runs, the client has disconnected or the server has ended.
#[derive(Debug)]
pub(super) struct ClientGuard {
    pub(super) cancellation: SharedCancellation,
    /// Cancelled when the server ends.
    pub(super) end: CancellationToken,
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        if !self.end.is_cancelled() {
            self.cancellation.set(Cancellation::Disconnected);
        }
    }
}

/// The body of an answer. It holds permits until it was sent or its reader has gone, and
/// can be ended early.
pub(super) struct PermitBody<B> {
    /// Records that the client has disconnected. Dropped before the body, so that the reason is set
    /// when the drop of the body cancels the call.
    pub(super) client: Option<ClientGuard>,
    body: B,
    /// The rest of a frame that is handed on in pieces.
    rest: Bytes,
    /// Completes when the body must end early.
    pub(super) ended: Option<BoxFuture<'static, ()>>,
    over: bool,
    unread: Option<UnreadResults>,
    /// Counts the current frame until it is handed on.
    counted: Option<UnreadResult>,
    _permits: Vec<Arc<RequestPermit>>,
}

impl<B> PermitBody<B> {
    /// Holds the permits. With `unread`, also counts the data that the client has not read.
    pub(super) fn new(
        body: B,
        permits: Vec<Arc<RequestPermit>>,
        unread: Option<UnreadResults>,
    ) -> Self {
        Self {
            client: None,
            body,
            rest: Bytes::new(),
            ended: None,
            over: false,
            unread,
            counted: None,
            _permits: permits,
        }
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for PermitBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if !self.over
            && let Some(ended) = &mut self.ended
            && ended.poll_unpin(context).is_ready()
        {
            self.over = true;
        }
        if self.over {
            return Poll::Ready(None);
        }
        if self.rest.is_empty() {
            self.counted = None;
            let frame = match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => return other,
            };
            match frame.into_data() {
                Ok(bytes) => {
                    let unread = self.unread.as_ref();
                    self.counted = unread.and_then(|unread| unread.hold(bytes.len()));
                    self.rest = bytes;
                }
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
        if let Some(unread) = &self.unread {
            unread.progress.advance();
        }
        let length = self.rest.len().min(CHUNK_BYTES);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.over || (self.rest.is_empty() && self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        // Asked once, before any data is handed on.
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_what_must_get_through() {
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
                Kind::Request,
            ),
            (
                r#"{"id":"a","method":"subscriptions/listen"}"#,
                Kind::Listen,
            ),
            (
                r#"{"method":"notifications/cancelled","params":{"id":1}}"#,
                Kind::Other,
            ),
            (r#"{"id":1,"result":{"method":"x"}}"#, Kind::Other),
            (r#"{"id":1,"m\u0065thod":"tools/call"}"#, Kind::Call),
            (r#"{"id":1,"method":"initialize"}"#, Kind::Initialize),
        ] {
            let found = kind(text.as_bytes()).map(|(kind, _)| kind);
            assert_eq!(found, Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let deep = format!("{{\"a\":{}", "[".repeat(100_000));
        for text in ["", "{", "{\"method\":1", "nonsense", deep.as_str()] {
            assert_eq!(
                kind(text.as_bytes()),
                Err(HttpRejection::NotJson),
                "{text:.20}"
            );
        }
        assert_eq!(kind(b"{\"method\":\"\xff\"}"), Err(HttpRejection::NotJson));
        assert_eq!(kind(b" [{}]"), Ok((Kind::Batch, LARGE)));
        for text in [
            "1",
            "\"a\"",
            "{\"method\":1}",
            "{\"method\":\"a\",\"method\":\"b\"}",
        ] {
            assert!(
                matches!(kind(text.as_bytes()), Err(HttpRejection::NoMessage(_))),
                "{text}"
            );
        }
    }
}

//! A session's stream to a client: when it ends or is dropped, the session knows.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::{BoxFuture, FutureExt};
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::mpsc::{Receiver, channel};
use tokio_util::sync::CancellationToken;

use super::session::Session;
use crate::request_ids;

/// A stream of messages to a client.
pub(super) struct WatchedStream {
    session: Arc<Session>,
    /// The call that it is of; `None` for a stream on which the client listens.
    number: Option<u64>,
    messages: Receiver<ServerSseMessage>,
    closing: Option<std::sync::Mutex<BoxFuture<'static, ()>>>,
}

impl WatchedStream {
    /// The answer to a request that is refused, and nothing else.
    pub(super) fn refused(session: &Arc<Session>, request: RequestId, error: ErrorData) -> Self {
        let id = Some(request).filter(|id| !request_ids::is_too_long(id));
        let answer = ServerSseMessage::from_message(JsonRpcMessage::error(error, id));
        let (sender, messages) = channel(1);
        // There is room for one.
        let _ = sender.try_send(answer);
        session.open(None);
        Self {
            session: Arc::clone(session),
            number: None,
            messages,
            closing: None,
        }
    }

    /// The stream of a call that has begun, or whose client came back.
    pub(super) fn of_call(
        session: &Arc<Session>,
        number: u64,
        messages: Receiver<ServerSseMessage>,
    ) -> Self {
        session.open(Some(number));
        Self {
            session: Arc::clone(session),
            number: Some(number),
            messages,
            closing: None,
        }
    }

    /// A stream on which the client listens, until it or the server closes.
    pub(super) fn listening(
        session: &Arc<Session>,
        messages: Receiver<ServerSseMessage>,
        closing: CancellationToken,
    ) -> Self {
        session.open(None);
        Self {
            session: Arc::clone(session),
            number: None,
            messages,
            closing: Some(std::sync::Mutex::new(closing.cancelled_owned().boxed())),
        }
    }

    fn closing(&mut self, context: &mut Context<'_>) -> bool {
        let Some(closing) = &mut self.closing else {
            return false;
        };
        let closing = closing
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if closing.poll_unpin(context).is_pending() {
            return false;
        }
        self.messages.close();
        self.closing = None;
        true
    }
}

impl Stream for WatchedStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let _ = self.closing(context);
        let polled = self.messages.poll_recv(context);
        if let (Poll::Ready(Some(message)), Some(number)) = (&polled, self.number)
            && let Some(answered) = answers(message)
            && self.session.ends(number, answered)
        {
            self.session.delivered(number);
        }
        polled
    }
}

/// The request that a message answers.
fn answers(message: &ServerSseMessage) -> Option<&RequestId> {
    match message.message.as_deref()? {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

impl Drop for WatchedStream {
    fn drop(&mut self) {
        self.session.close(self.number);
    }
}

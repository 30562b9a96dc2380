//! One session: who it belongs to, the calls that run in it, its streams, and when it was used.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::Stream;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    ErrorData, JsonRpcMessage, RequestId,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionHandle;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::mpsc::{Receiver, channel};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use toolward_host::{Cancellation, SharedCancellation};
use toolward_support::helper::lock;

use crate::open_requests::{CancelledIds, is_too_long};
use crate::revision::Revision;

/// How long ending a session waits for its worker.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A session of one principal.
#[derive(Debug)]
pub(in crate::http) struct HttpSession {
    pub(super) id: SessionId,
    pub(super) owner: Arc<str>,
    handle: LocalSessionHandle,
    resume_within: Duration,
    /// Ends the streams on which the client listens.
    closing: CancellationToken,
    /// The negotiated revision, once the session was opened.
    pub(in crate::http) revision: OnceLock<Revision>,
    used: Mutex<Used>,
}

#[derive(Debug)]
struct Used {
    last: Instant,
    /// Open streams, including the streams of calls.
    streams: usize,
    /// Calls that run, by the number of their request.
    calls: HashMap<u64, Call>,
    /// Cancelled calls, which may still be answered.
    cancelled: CancelledIds,
}

#[derive(Debug)]
struct Call {
    request: RequestId,
    /// Why it is cancelled.
    cancellation: SharedCancellation,
    /// Streams on which its client waits.
    watchers: usize,
    /// Changes whenever a client starts to wait, so that an earlier timeout has no effect.
    turn: u64,
}

/// Returns a random session id. It can't be guessed, although an id alone gives no access.
pub(super) fn random_id() -> io::Result<String> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)))
}

impl HttpSession {
    pub(super) fn new(
        id: SessionId,
        owner: Arc<str>,
        handle: LocalSessionHandle,
        resume_within: Duration,
        closing: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            owner,
            handle,
            resume_within,
            closing,
            revision: OnceLock::new(),
            used: Mutex::new(Used {
                last: Instant::now(),
                streams: 0,
                calls: HashMap::new(),
                cancelled: CancelledIds::default(),
            }),
        })
    }

    /// Returns the handle of the session's worker. This counts as a use of the session.
    pub(super) fn handle(&self) -> &LocalSessionHandle {
        self.used().last = Instant::now();
        &self.handle
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        lock(&self.used)
    }

    /// How long it has been idle; `None` while a call runs or a client listens.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        let used = self.used();
        (used.streams == 0 && used.calls.is_empty()).then(|| used.last.elapsed())
    }

    /// Starts a call whose client waits for it. Fails if the call's id is too long or already used,
    /// since the id decides to which call an answer belongs.
    pub(super) fn begin(
        &self,
        number: u64,
        request: RequestId,
        cancellation: SharedCancellation,
    ) -> Result<(), ErrorData> {
        let mut used = self.used();
        let is_open = used.calls.values().any(|call| call.request == request);
        used.cancelled.check_new(&request, is_open)?;
        let call = Call {
            request,
            cancellation,
            watchers: 0,
            turn: 0,
        };
        used.calls.insert(number, call);
        Ok(())
    }

    /// Notes that a stream is open, for a call or for none.
    pub(super) fn open(&self, number: Option<u64>) {
        let mut used = self.used();
        used.streams = used.streams.saturating_add(1);
        if let Some(call) = number.and_then(|number| used.calls.get_mut(&number)) {
            call.watchers = call.watchers.saturating_add(1);
            call.turn = call.turn.wrapping_add(1);
        }
    }

    /// Notes that a stream is closed. If it was a call's last stream, the call is cancelled unless
    /// its client comes back in time.
    pub(super) fn close(self: &Arc<Self>, number: Option<u64>) {
        let mut used = self.used();
        used.streams = used.streams.saturating_sub(1);
        used.last = Instant::now();
        let Some(number) = number else { return };
        let Some(call) = used.calls.get_mut(&number) else {
            // The result was delivered. The messages that were stored for a client that comes back
            // are dropped, since the session scans them at each message.
            drop(used);
            let session = Arc::clone(self);
            tokio::spawn(async move {
                let _ = session.handle.close_request_wise_channel(number).await;
            });
            return;
        };
        call.watchers = call.watchers.saturating_sub(1);
        if call.watchers == 0 {
            let turn = call.turn;
            let session = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(session.resume_within).await;
                session.abandon(number, turn).await;
            });
        }
    }

    /// Notes that a message was delivered. The call that it answers has ended.
    fn delivered(&self, number: u64, answered: &RequestId) {
        let calls = &mut self.used().calls;
        let call = calls.get(&number);
        if call.is_some_and(|call| call.request == *answered) {
            calls.remove(&number);
        }
    }

    /// Notes that a client has cancelled a call.
    pub(super) fn forget(&self, request: &RequestId) {
        let mut used = self.used();
        let used = &mut *used;
        for (_, call) in (used.calls).extract_if(|_, call| call.request == *request) {
            call.cancellation.set(Cancellation::Caller);
            used.cancelled.add(call.request);
        }
    }

    /// Cancels a call whose client did not come back.
    async fn abandon(&self, number: u64, turn: u64) {
        let call = {
            let mut used = self.used();
            let is_left = |at: &u64, call: &mut Call| {
                *at == number && call.watchers == 0 && call.turn == turn
            };
            let call = used.calls.extract_if(is_left).next().map(|(_, call)| call);
            if let Some(call) = &call {
                used.cancelled.add(call.request.clone());
            }
            call
        };
        if let Some(call) = call {
            tracing::debug!(session = %self.id, "a call is cancelled: its client has gone");
            self.disconnect(call).await;
            let _ = self.handle.close_request_wise_channel(number).await;
        }
    }

    async fn disconnect(&self, call: Call) {
        call.cancellation.set(Cancellation::Disconnected);
        let cancelled = CancelledNotification::new(CancelledNotificationParam::new(
            Some(call.request),
            Some("the client has gone".to_owned()),
        ));
        let message = ClientJsonRpcMessage::notification(
            ClientNotification::CancelledNotification(cancelled),
        );
        let _ = self.handle.push_message(message, None).await;
    }

    /// Ends the session and all its calls.
    pub(super) fn end(self: Arc<Self>) {
        let calls: Vec<Call> = self.used().calls.drain().map(|(_, call)| call).collect();
        tokio::spawn(async move {
            let _ = tokio::time::timeout(END_TIMEOUT, async {
                for call in calls {
                    self.disconnect(call).await;
                }
                let _ = self.handle.close().await;
            })
            .await;
        });
    }
}

/// A stream of messages to a client.
pub(super) struct WatchedStream {
    session: Arc<HttpSession>,
    /// The call to which it belongs; `None` for a stream on which the client listens.
    number: Option<u64>,
    messages: Receiver<ServerSseMessage>,
    /// Ends a stream on which the client listens.
    closing: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl WatchedStream {
    /// The stream of a call, or a stream on which the client listens until the client or the server
    /// closes it.
    pub(super) fn new(
        session: &Arc<HttpSession>,
        number: Option<u64>,
        messages: Receiver<ServerSseMessage>,
    ) -> Self {
        session.open(number);
        let closing = || Box::pin(session.closing.clone().cancelled_owned());
        Self {
            session: Arc::clone(session),
            number,
            messages,
            closing: number.is_none().then(closing),
        }
    }

    /// A stream with only the answer to a refused request.
    pub(super) fn refused(
        session: &Arc<HttpSession>,
        request: RequestId,
        error: ErrorData,
    ) -> Self {
        let id = Some(request).filter(|id| !is_too_long(id));
        let answer = ServerSseMessage::from_message(JsonRpcMessage::error(error, id));
        let (sender, messages) = channel(1);
        // There is room for one message.
        let _ = sender.try_send(answer);
        Self::new(session, None, messages)
    }
}

impl Stream for WatchedStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(closing) = &mut self.closing
            && closing.as_mut().poll(context).is_ready()
        {
            self.messages.close();
            self.closing = None;
        }
        let polled = self.messages.poll_recv(context);
        if let (Poll::Ready(Some(message)), Some(number)) = (&polled, self.number)
            && let Some(answered) = answers(message)
        {
            self.session.delivered(number, answered);
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

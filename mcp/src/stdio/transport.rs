//! The transport on standard input and output. It bounds each message before parsing, and bounds
//! the open requests. Answers and notifications do not count as open requests.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::BytesMut;
use rmcp::model::{ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, ServerResult};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{JsonRpcMessageCodec, JsonRpcMessageCodecError};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::Decoder as _;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use toolward_host::{Cancellation, SharedCancellation};

use super::answers::{Answers, Incoming, Outgoing};
use super::batches::Batches;
use super::lines::{self, InputLine, Lines};
use super::read_ahead::{CallThreads, ReadAhead};
use super::writer::LineWriter;
use crate::call::OthersOpen;
use crate::messages::{self, Flaw, LARGE, MAX_BATCH_MESSAGES, MAX_MESSAGE_BYTES};
use crate::methods::{self, Kind};
use crate::open_requests::{OpenRequests, invalid, is_too_long, too_many};
use crate::revision::Revision;
use crate::strict::{self, Malformed};

/// Lines of messages, in and out.
pub(super) struct StdioTransport<R, W> {
    messages: Messages<R, W>,
    /// Completes when nothing more is to be read. One future serves all messages, since starting to
    /// wait takes a lock.
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Cancelled when the whole server ends, not only this connection.
    server_shutdown: CancellationToken,
}

struct Messages<R, W> {
    lines: Lines<R>,
    codec: JsonRpcMessageCodec<Incoming>,
    answers: Answers<W>,
    open: OpenRequests,
    read_ahead: ReadAhead,
    /// Whether the negotiated revision has lists of messages.
    has_batches: bool,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Send + Unpin + 'static> StdioTransport<R, W> {
    /// Nothing more is read once `end` is cancelled. `server_shutdown` is cancelled when the whole
    /// server ends.
    pub(super) fn new(
        input: R,
        writer: LineWriter<W>,
        threads: CallThreads,
        end: CancellationToken,
        server_shutdown: CancellationToken,
    ) -> Self {
        Self {
            messages: Messages {
                lines: Lines::new(input, MAX_MESSAGE_BYTES),
                codec: JsonRpcMessageCodec::new(),
                answers: Answers {
                    writer,
                    batches: Batches::default(),
                },
                open: OpenRequests::default(),
                read_ahead: ReadAhead::of(threads),
                has_batches: false,
            },
            stopped: Box::pin(end.cancelled_owned()),
            server_shutdown,
        }
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Send + Unpin + 'static> Messages<R, W> {
    /// Handles a line: a message, or a list of messages.
    fn line(&mut self, line: InputLine) -> Option<Incoming> {
        match line {
            InputLine::Whole(line) if self.has_batches && messages::is_list(&line) => {
                if let Err(error) = self.list(&line) {
                    self.answers.refuse(None, error);
                }
                None
            }
            line => self.message(line),
        }
    }

    /// Starts to read a list of messages.
    fn list(&mut self, line: &[u8]) -> Result<(), ErrorData> {
        let scan = messages::scan(line);
        scan.cost(LARGE)
            .map_err(|flaw| invalid(flaw.to_string(), flaw.code()))?;
        let items = messages::items(line).ok_or_else(not_json)?;
        if items.is_empty() || items.len() > MAX_BATCH_MESSAGES {
            let message = format!("expected a list of 1 to {MAX_BATCH_MESSAGES} messages");
            return Err(invalid(message, "no-message"));
        }
        let items = items.into_iter().map(BytesMut::from);
        self.answers.batches.read(items);
        Ok(())
    }

    /// The next message of the list that is being read.
    fn next_of_list(&mut self) -> Option<Incoming> {
        while let Some(line) = self.answers.batches.next() {
            let message = self.message(InputLine::Whole(line));
            let answers = &mut self.answers;
            if let Some(JsonRpcMessage::Request(request)) = &message {
                answers.batches.opened(&request.id);
            }
            answers.writer.queue(answers.batches.end_of_list());
            if message.is_some() {
                return message;
            }
        }
        None
    }

    /// Parses the message of a line. If the message is rejected, answers it here and returns
    /// `None`.
    fn message(&mut self, line: InputLine) -> Option<Incoming> {
        let (mut line, is_whole) = match line {
            InputLine::Whole(line) => (line, true),
            InputLine::TooLong(start) => (start, false),
        };
        let scan = messages::scan(&line);
        let (kind, size, ..) = methods::named(scan.method());
        let cost = match is_whole {
            true => scan.cost(size),
            false => Err(Flaw::Bytes(MAX_MESSAGE_BYTES)),
        };
        let cost = match cost {
            Ok(cost) => cost,
            Err(flaw) => return self.answers.refuse_flawed(flaw, &scan, is_whole),
        };
        let id = scan.request_id();
        let call = match kind {
            Kind::Call => lines::read_call(&line),
            _ => None,
        };
        let mut malformed = None;
        let decoded = match call {
            Some(call) => Ok(Some(call)),
            None => {
                malformed = strict::check(&line).err();
                if id.is_some() {
                    match methods::mended(&line) {
                        Ok(None) => {}
                        Ok(Some(mended)) => line = mended.as_slice().into(),
                        Err(error) => {
                            self.answers.refuse(id, error);
                            return None;
                        }
                    }
                }
                // Without an end of line, the decoder would wait for more, and keep its position
                // for the next line.
                if !line.ends_with(b"\n") {
                    line.extend_from_slice(b"\n");
                }
                self.codec.decode(&mut line)
            }
        };
        match decoded {
            Ok(Some(message)) => match malformed {
                None => self.admitted(message, cost),
                Some(malformed) => self.malformed(message, malformed, cost),
            },
            Ok(None) => None,
            Err(JsonRpcMessageCodecError::Serde(error)) if error.is_data() || error.is_io() => {
                let message = "expected a message of JSON-RPC 2.0, with each member once";
                self.answers.refuse(id, invalid(message, "no-message"));
                None
            }
            Err(error) => {
                tracing::debug!(%error, "a line is not JSON");
                self.answers.refuse(id, not_json());
                None
            }
        }
    }

    /// Handles a message that breaks the strict rules: a call ends with an error result, an
    /// answer fails its question, and the rest is rejected.
    fn malformed(
        &mut self,
        mut message: Incoming,
        malformed: Malformed,
        cost: usize,
    ) -> Option<Incoming> {
        match &mut message {
            JsonRpcMessage::Request(request) => {
                if malformed.is_about_arguments()
                    && let ClientRequest::CallToolRequest(call) = &mut request.request
                {
                    call.extensions.insert(malformed);
                    return self.admitted(message, cost);
                }
                self.answers
                    .refuse(Some(request.id.clone()), malformed.of_message());
            }
            JsonRpcMessage::Response(response) => {
                let id = Some(response.id.clone());
                return Some(Incoming::error(malformed.of_message(), id));
            }
            // An error of any content fails its request.
            JsonRpcMessage::Error(_) => return Some(message),
            JsonRpcMessage::Notification(_) => {
                tracing::debug!(
                    code = malformed.code(),
                    "a malformed notification was ignored"
                );
            }
        }
        None
    }

    /// The message, if there is room for it.
    fn admitted(&mut self, mut message: Incoming, cost: usize) -> Option<Incoming> {
        match &mut message {
            JsonRpcMessage::Request(request) => {
                let is_call = matches!(request.request, ClientRequest::CallToolRequest(_));
                // If the client cancels or disconnects, the transport sets this reason. If no
                // reason is set, the call is cancelled because the server ends.
                let cancellation =
                    is_call.then(|| SharedCancellation::unless_set(Cancellation::Shutdown));
                let opened = match self.answers.batches.has_room() {
                    true => self.open.begin(&request.id, cost, cancellation.clone()),
                    false => Err(too_many()),
                };
                if let Err(error) = opened {
                    let id = Some(&request.id).filter(|id| !is_too_long(id));
                    self.answers.refuse(id.cloned(), error);
                    return None;
                }
                if let (ClientRequest::CallToolRequest(call), Some(cancellation)) =
                    (&mut request.request, cancellation)
                {
                    call.extensions.insert(cancellation);
                    if self.open.calls() > 1 {
                        call.extensions.insert(OthersOpen);
                    }
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.cancelled(id);
                    let answers = &mut self.answers;
                    answers.writer.queue(answers.batches.cancelled(id));
                }
            }
            _ => {}
        }
        Some(message)
    }

    /// The next message; `None` at the end.
    async fn next(&mut self) -> Option<Incoming> {
        loop {
            if let Some(message) = self.next_of_list() {
                return Some(message);
            }
            self.answers.writer.below_backpressure().await;
            self.read_ahead.ready(self.open.calls()).await;
            match self.lines.next().await {
                Ok(Some(line)) => {
                    if let Some(message) = self.line(line) {
                        return Some(message);
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::error!(%error, "the client's messages can't be read");
                    return None;
                }
            }
        }
    }
}

fn not_json() -> ErrorData {
    let data = json!({ "code": "not-json" });
    ErrorData::parse_error("expected JSON", Some(data))
}

impl<R, W> Transport<RoleServer> for StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: Outgoing,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(opening) = &response.result {
                    self.messages.has_batches =
                        Revision::named(&opening.protocol_version).has_batches();
                }
                Some(response.id.clone())
            }
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        if let Some(id) = &answered {
            self.messages.open.answered(id);
        }
        let (open, read_ahead) = (&self.messages.open, &self.messages.read_ahead);
        let may_wait = read_ahead.calls_run_elsewhere() && open.many_came_together();
        let written = (self.messages.answers).send(&item, answered.as_ref(), may_wait);
        async move {
            match written? {
                Some(written) => written.done().await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        let Self {
            messages,
            stopped,
            server_shutdown,
        } = self;
        let received = {
            let mut next = pin!(messages.next());
            let mut is_first = true;
            poll_fn(|context| {
                let is_first = std::mem::take(&mut is_first);
                if is_first && stopped.as_mut().poll(context).is_ready() {
                    return Poll::Ready(None);
                }
                // If both have completed since the first poll, the message is still read.
                match next.as_mut().poll(context) {
                    Poll::Ready(message) => Poll::Ready(Some(message)),
                    Poll::Pending if is_first => Poll::Pending,
                    Poll::Pending => stopped.as_mut().poll(context).map(|()| None),
                }
            })
            .await
        };
        if let Some(message) = received {
            if message.is_none() {
                messages.open.disconnected();
            }
            return message;
        }
        if !server_shutdown.is_cancelled() {
            messages.open.disconnected();
        }
        // The rest of a list is not read either, so the answers to the list's first messages don't
        // wait for the rest.
        let answers = &mut messages.answers;
        answers.writer.queue(answers.batches.stop_reading());
        // `None` ends the connection, but running calls can still send reports. So this call never
        // returns; rmcp calls the function again after each answer.
        match messages.open.is_empty() {
            true => None,
            false => std::future::pending().await,
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // Calls that have not ended don't hold back the other answers of their list.
        let answers = &mut self.messages.answers;
        answers.writer.queue(answers.batches.end());
        answers.writer.end().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

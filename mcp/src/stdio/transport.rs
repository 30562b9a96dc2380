//! The transport on standard input and output. It bounds a message before it is parsed,
//! and the requests that are open. Answers and notifications always get through.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::BytesMut;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerResult,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{JsonRpcMessageCodec, JsonRpcMessageCodecError};
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::Decoder as _;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use toolward_host::{Cancellation, SharedCancellation};
use toolward_support::json;

use super::batches::{Batches, Collected};
use super::lines::{self, InputLine, Lines};
use super::read_ahead::{CallThreads, ReadAhead};
use super::writer::LineWriter;
use crate::call::OthersOpen;
use crate::client::UnreadResults;
use crate::messages::{self, Flaw, LARGE, MAX_BATCH_MESSAGES, MAX_MESSAGE_BYTES, Scan};
use crate::methods::{self, Kind};
use crate::open_requests::{OpenRequests, invalid, is_too_long, too_many};
use crate::revision::Revision;
use crate::strict::{self, Malformed};

/// While so many bytes wait to be read by the client, errors without an id are dropped.
/// A client can't tell which of its lines such an error answers, so a flood of bad
/// lines must neither fill the queue nor keep good messages from being read.
const MAX_QUEUED_FOR_UNADDRESSED: usize = 64 << 10;
/// Room for a line that is being made: most answers fit without growing it.
const LINE_CAPACITY_BYTES: usize = 2 << 10;

type Incoming = RxJsonRpcMessage<RoleServer>;
type Outgoing = TxJsonRpcMessage<RoleServer>;

/// Lines of messages, in and out.
pub(super) struct StdioTransport<R, W> {
    messages: Messages<R, W>,
    /// Ends when nothing more is read. Waits across all messages: to start waiting takes a lock.
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Cancelled when the server ends, and not only this connection.
    server_shutdown: CancellationToken,
}

struct Messages<R, W> {
    lines: Lines<R>,
    codec: JsonRpcMessageCodec<Incoming>,
    writer: LineWriter<W>,
    open: OpenRequests,
    read_ahead: ReadAhead,
    batches: Batches,
    /// Whether the negotiated revision has lists of messages.
    has_batches: bool,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Send + Unpin + 'static> StdioTransport<R, W> {
    pub(super) fn new(
        input: R,
        output: W,
        threads: CallThreads,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            messages: Messages {
                lines: Lines::new(input, MAX_MESSAGE_BYTES),
                codec: JsonRpcMessageCodec::new(),
                writer: LineWriter::to(output),
                open: OpenRequests::default(),
                read_ahead: ReadAhead::of(threads),
                batches: Batches::default(),
                has_batches: false,
            },
            server_shutdown: shutdown.clone(),
            stopped: Box::pin(shutdown.cancelled_owned()),
        }
    }

    /// Counts what the client has not read. Too much of it ends this connection; `server_shutdown` ends the server.
    pub(super) fn counting(
        mut self,
        unread: Option<UnreadResults>,
        server_shutdown: CancellationToken,
    ) -> Self {
        self.messages.writer = self.messages.writer.counting(unread);
        self.server_shutdown = server_shutdown;
        self
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Send + Unpin + 'static> Messages<R, W> {
    /// Handles a line: a message, or the start of a list of them.
    fn line(&mut self, line: InputLine) -> Option<Incoming> {
        match line {
            InputLine::Whole(line) if self.has_batches && messages::is_list(&line) => {
                if let Err(error) = self.list(&line) {
                    self.refuse(None, error);
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
        let items = messages::items(line).ok_or_else(|| {
            let data = json!({ "code": "not-json" });
            ErrorData::parse_error("expected JSON", Some(data))
        })?;
        if items.is_empty() || items.len() > MAX_BATCH_MESSAGES {
            let message = format!("expected a list of 1 to {MAX_BATCH_MESSAGES} messages");
            return Err(invalid(message, "no-message"));
        }
        self.batches.read(items.into_iter().map(BytesMut::from));
        Ok(())
    }

    /// The next message of the list that is being read.
    fn next_of_list(&mut self) -> Option<Incoming> {
        while let Some(line) = self.batches.next() {
            let message = self.message(InputLine::Whole(line));
            if let Some(JsonRpcMessage::Request(request)) = &message {
                self.batches.opened(&request.id);
            }
            if let Some(line) = self.batches.end_of_list() {
                // Queued; not waited for.
                let _ = self.writer.write(line);
            }
            if message.is_some() {
                return message;
            }
        }
        None
    }

    /// Parses the message of a line. Answers it here and returns `None` if it is
    /// rejected.
    fn message(&mut self, line: InputLine) -> Option<Incoming> {
        let (mut line, found) = match line {
            InputLine::Whole(line) => {
                let scan = messages::scan(&line);
                let (kind, size, ..) = methods::named(scan.method());
                let found = scan.cost(size).map_err(|flaw| flawed(flaw, &scan));
                let found = found.map(|cost| (cost, asked(&scan), kind));
                (line, found)
            }
            InputLine::TooLong(start) => {
                let scan = messages::scan(&start);
                let flaw = Flaw::Bytes(MAX_MESSAGE_BYTES);
                let error = invalid(flaw.to_string(), flaw.code());
                let outcome = match scan.id() {
                    Some(id) if scan.is_seen_to_answer() => Flawed::failed(id, error),
                    _ => Flawed::Answered(asked(&scan), error),
                };
                (BytesMut::new(), Err(outcome))
            }
        };
        let (cost, id, kind) = match found {
            Ok(found) => found,
            Err(Flawed::Passed(message)) => return Some(*message),
            Err(Flawed::Ignored) => return None,
            Err(Flawed::Answered(id, error)) => {
                self.refuse(id, error);
                return None;
            }
        };
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
                            self.refuse(id, error);
                            return None;
                        }
                    }
                }
                // Without an end of line the decoder waits for more, and keeps its place in this line for the next.
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
                self.refuse(id, invalid(message, "no-message"));
                None
            }
            Err(error) => {
                tracing::debug!(%error, "a line is not JSON");
                let data = json!({ "code": "not-json" });
                self.refuse(id, ErrorData::parse_error("expected JSON", Some(data)));
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
                self.refuse(Some(request.id.clone()), malformed.of_message());
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
                // A client that cancels or disconnects is seen here: what else cancels a call is the server's end.
                let cancellation =
                    is_call.then(|| SharedCancellation::unless_set(Cancellation::Shutdown));
                let opened = match self.batches.has_room() {
                    true => self.open.begin(&request.id, cost, cancellation.clone()),
                    false => Err(too_many()),
                };
                if let Err(error) = opened {
                    let id = Some(&request.id).filter(|id| !is_too_long(id));
                    self.refuse(id.cloned(), error);
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
                    if let Some(line) = self.batches.cancelled(id) {
                        // Queued; not waited for.
                        let _ = self.writer.write(line);
                    }
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
            self.writer.below_backpressure().await;
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

    fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) {
        tracing::debug!(?id, %error, "a message was refused");
        if id.is_none() && self.writer.queued_bytes() >= MAX_QUEUED_FOR_UNADDRESSED {
            return;
        }
        if let Ok(line) = refusal(id.as_ref(), &error)
            && let Collected::Alone(line) = self.batches.refused(line)
        {
            // Queued; not waited for.
            let _ = self.writer.write(line);
        }
    }

    /// Takes an answer, to a request of a list or not.
    fn collected(&mut self, id: &RequestId, mut answer: Vec<u8>) -> io::Result<Collected> {
        if self.batches.contains(id) {
            let kept = self.batches.kept_bytes_with(answer.len());
            // The line of the list is written in any case: what is kept of it has to have room from the start.
            if !kept.is_some_and(|bytes| self.writer.has_room(bytes)) {
                answer = refusal(Some(id), &dropped())?;
            }
        }
        Ok(self.batches.answered(id, answer))
    }
}

fn dropped() -> ErrorData {
    ErrorData::internal_error(
        "the answer was dropped: too many others wait to be read",
        None,
    )
}

fn refusal(id: Option<&RequestId>, error: &ErrorData) -> io::Result<Vec<u8>> {
    line(&Refusal {
        jsonrpc: "2.0",
        id,
        error,
    })
}

/// An error that answers a message. JSON-RPC 2.0 section 5 wants a null `id` where the
/// request's can't be told; the library's own type would leave the member out.
#[derive(Serialize)]
struct Refusal<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RequestId>,
    error: &'a ErrorData,
}

/// What a message that is not parsed leads to.
enum Flawed {
    /// The question that it answers has failed.
    Passed(Box<Incoming>),
    /// It was a notification.
    Ignored,
    /// It is answered, by its id if that is known.
    Answered(Option<RequestId>, ErrorData),
}

impl Flawed {
    fn failed(id: RequestId, error: ErrorData) -> Self {
        Self::Passed(Box::new(Incoming::error(error, Some(id))))
    }
}

fn flawed(flaw: Flaw, scan: &Scan<'_>) -> Flawed {
    let error = invalid(flaw.to_string(), flaw.code());
    match scan.id() {
        Some(id) if scan.is_answer() => Flawed::failed(id, error),
        None if !scan.is_answer() && !scan.has_id() => Flawed::Ignored,
        id => Flawed::Answered(id, error),
    }
}

/// The id of what is certainly a request. An answer's id is one of the server's.
fn asked(scan: &Scan<'_>) -> Option<RequestId> {
    match scan.is_answer() {
        true => None,
        false => scan.id(),
    }
}

fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = json::write(Vec::with_capacity(LINE_CAPACITY_BYTES), message)?;
    line.push(b'\n');
    Ok(line)
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
        // Text takes less than the values that it was made of.
        let line = line(&item).and_then(|line| match &answered {
            Some(id) => self.messages.collected(id, line),
            None => Ok(Collected::Alone(line)),
        });
        let written = line.map(|line| match line {
            Collected::Kept => Ok(None),
            Collected::Line(line) => Ok(Some(self.messages.writer.write(line))),
            Collected::Alone(line) if self.messages.writer.has_room(line.len()) => {
                Ok(Some(self.messages.writer.write(line)))
            }
            Collected::Alone(_) => {
                if let Some(id) = answered
                    && let Ok(line) = refusal(Some(&id), &dropped())
                {
                    // Queued; not waited for.
                    let _ = self.messages.writer.write(line);
                }
                Err(io::ErrorKind::QuotaExceeded)
            }
        });
        async move {
            match written?? {
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
                // A message that has arrived is read before the end.
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
        // The rest of a list is not read either: the answers to its start wait for nothing else.
        if let Some(line) = messages.batches.stop_reading() {
            // Queued; not waited for.
            let _ = messages.writer.write(line);
        }
        // What calls report still goes out. This is asked again after each answer.
        match messages.open.is_empty() {
            true => None,
            false => std::future::pending().await,
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // Calls that did not end hold up no answer to others of their list.
        for line in self.messages.batches.end() {
            // Queued; not waited for.
            let _ = self.messages.writer.write(line);
        }
        self.messages.writer.end().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Sends answers to the client. If messages came in a list, an answer waits for the other answers
//! of the list. A message that is not handed on to the protocol library is answered with an error.

use std::io;

use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use serde::Serialize;
use tokio::io::AsyncWrite;
use toolward_support::json;

use super::batches::{Batches, Collected};
use super::writer::{LineWriter, Written};
use crate::messages::{Flaw, Scan};
use crate::open_requests::invalid;

/// While this many bytes wait to be read by the client, errors without an id are dropped. Otherwise
/// a flood of bad lines could fill the queue and keep good messages from being read. Little is
/// lost, since a client can't tell which of its lines such an error answers.
pub(super) const MAX_QUEUED_FOR_UNADDRESSED: usize = 64 << 10;
/// The initial capacity of a line. It is enough for most answers.
const LINE_CAPACITY_BYTES: usize = 2 << 10;

pub(super) type Incoming = RxJsonRpcMessage<RoleServer>;
pub(super) type Outgoing = TxJsonRpcMessage<RoleServer>;

/// The answers to one client.
pub(super) struct Answers<W> {
    pub(super) writer: LineWriter<W>,
    pub(super) batches: Batches,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Answers<W> {
    /// Sends a message, which may answer a request. Returns `None` if the answer waits for the
    /// other answers of its list. If it `may_wait`, it may be written with later ones.
    pub(super) fn send(
        &mut self,
        message: &Outgoing,
        answered: Option<&RequestId>,
        may_wait: bool,
    ) -> io::Result<Option<Written>> {
        // The message is written as text even if it waits, since text takes less memory than
        // values.
        let line = line(message)?;
        let collected = match answered {
            Some(id) => self.collected(id, line)?,
            None => Collected::Alone(line),
        };
        match collected {
            Collected::Kept => Ok(None),
            Collected::Line(line) => Ok(Some(self.writer.write(line, false))),
            Collected::Alone(line) if self.writer.has_room(line.len()) => {
                Ok(Some(self.writer.write(line, may_wait)))
            }
            Collected::Alone(_) => {
                let refusal = answered.and_then(|id| refusal(Some(id), &dropped()).ok());
                self.writer.queue(refusal);
                Err(io::ErrorKind::QuotaExceeded.into())
            }
        }
    }

    /// Takes the answer to a request, which may be part of a list.
    fn collected(&mut self, id: &RequestId, mut answer: Vec<u8>) -> io::Result<Collected> {
        if self.batches.contains(id) {
            let kept = self.batches.kept_bytes_with(answer.len());
            // The line of a list is written even if the queue is full, so an answer is stored only
            // if the queue has room for it and all stored answers. Otherwise an error takes its
            // place.
            if !kept.is_some_and(|bytes| self.writer.has_room(bytes)) {
                answer = refusal(Some(id), &dropped())?;
            }
        }
        Ok(self.batches.answered(id, answer))
    }

    /// Answers a message that is not parsed. If the message is an answer of the client, returns an
    /// error that is handed on in its place, so that the server's question fails.
    pub(super) fn refuse_flawed(
        &mut self,
        flaw: Flaw,
        scan: &Scan<'_>,
        is_whole: bool,
    ) -> Option<Incoming> {
        let error = invalid(flaw.to_string(), flaw.code());
        let is_answer = match is_whole {
            true => scan.is_answer(),
            false => scan.is_seen_to_answer(),
        };
        match scan.id() {
            Some(id) if is_answer => return Some(Incoming::error(error, Some(id))),
            // A notification gets no answer.
            None if is_whole && !is_answer && !scan.has_id() => {}
            _ => self.refuse(scan.request_id(), error),
        }
        None
    }

    /// Answers a message that is not handed on.
    pub(super) fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) {
        tracing::debug!(?id, %error, "a message was refused");
        if id.is_none() && self.writer.queued_bytes() >= MAX_QUEUED_FOR_UNADDRESSED {
            return;
        }
        if let Ok(line) = refusal(id.as_ref(), &error)
            && let Collected::Alone(line) = self.batches.refused(line)
        {
            self.writer.queue([line]);
        }
    }
}

fn dropped() -> ErrorData {
    let message = "the answer was dropped: too many others wait to be read";
    ErrorData::internal_error(message, None)
}

/// An error that answers a message. If the request's id is unknown, JSON-RPC 2.0 section 5 requires
/// a null `id`; the library's own type would leave the member out.
#[derive(Serialize)]
struct Refusal<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RequestId>,
    error: &'a ErrorData,
}

fn refusal(id: Option<&RequestId>, error: &ErrorData) -> io::Result<Vec<u8>> {
    line(&Refusal {
        jsonrpc: "2.0",
        id,
        error,
    })
}

fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = json::write(Vec::with_capacity(LINE_CAPACITY_BYTES), message)?;
    line.push(b'\n');
    Ok(line)
}

//! Bodies: sent in pieces, slowly or not to the end; read so, or not at all.

use std::thread::sleep;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use wasip2::http::types::{Fields, IncomingBody, IncomingResponse, OutgoingBody, http_error_code};
use wasip2::io::streams::{OutputStream, StreamError};

use crate::http::{Bytes, Refused, code};

/// Most bytes of a body that a result shows where the input says nothing.
const SHOWN: usize = 64 * 1024;

#[derive(Clone, Default, Deserialize)]
pub(crate) struct Sending {
    body: Option<Bytes>,
    /// So many bytes where there is no `body`.
    #[serde(default)]
    body_bytes: u64,
    /// Bytes of one write, at most 4096.
    body_chunk: Option<usize>,
    #[serde(default)]
    body_pause_ms: u64,
    #[serde(default)]
    trailers: Vec<(String, Bytes)>,
    /// Drops the body instead of finishing it.
    #[serde(default)]
    unfinished: bool,
}

#[derive(Clone, Default, Deserialize)]
pub(crate) struct Reading {
    /// `all` (the default), `head` (the body is left), `hold` (the response is kept
    /// unread for the rest of the call).
    #[serde(default)]
    read: String,
    read_chunk: Option<u64>,
    #[serde(default)]
    read_pause_ms: u64,
    /// Bytes of the body to show.
    show: Option<usize>,
}

fn failed(step: &str, error: &StreamError) -> Refused {
    let err = match error {
        StreamError::Closed => "closed".to_owned(),
        StreamError::LastOperationFailed(error) => {
            http_error_code(error).map_or_else(|| error.to_debug_string(), code)
        }
    };
    (step.to_owned(), err)
}

pub(crate) fn send(sending: &Sending, body: OutgoingBody) -> Result<(), Refused> {
    let stream = body
        .write()
        .map_err(|()| ("body".to_owned(), "refused".to_owned()))?;
    let sent = match &sending.body {
        Some(bytes) => pieces(sending, &stream, &bytes.bytes()),
        None => repeated(sending, &stream),
    };
    drop(stream);
    sent?;
    if sending.unfinished {
        return Ok(());
    }
    let trailers = if sending.trailers.is_empty() {
        None
    } else {
        let pairs: Vec<_> = sending
            .trailers
            .iter()
            .map(|(name, value)| (name.clone(), value.bytes()))
            .collect();
        let fields = Fields::from_list(&pairs)
            .map_err(|error| ("trailers".to_owned(), format!("{error:?}")))?;
        Some(fields)
    };
    OutgoingBody::finish(body, trailers).map_err(|error| ("finish".to_owned(), code(error)))
}

fn pieces(sending: &Sending, stream: &OutputStream, bytes: &[u8]) -> Result<(), Refused> {
    for piece in bytes.chunks(chunk(sending)) {
        write(sending, stream, piece)?;
    }
    Ok(())
}

/// `body_bytes` bytes, never in memory at once.
fn repeated(sending: &Sending, stream: &OutputStream) -> Result<(), Refused> {
    let piece = vec![b'x'; chunk(sending)];
    let mut left = sending.body_bytes;
    while left > 0 {
        let now = left.min(piece.len() as u64);
        write(sending, stream, &piece[..now as usize])?;
        left -= now;
    }
    Ok(())
}

fn chunk(sending: &Sending) -> usize {
    sending.body_chunk.unwrap_or(4096).clamp(1, 4096)
}

fn write(sending: &Sending, stream: &OutputStream, piece: &[u8]) -> Result<(), Refused> {
    stream
        .blocking_write_and_flush(piece)
        .map_err(|error| failed("body", &error))?;
    if sending.body_pause_ms > 0 {
        sleep(Duration::from_millis(sending.body_pause_ms));
    }
    Ok(())
}

pub(crate) fn read(reading: &Reading, response: IncomingResponse) -> Result<Value, Refused> {
    let pairs = |fields: &Fields| {
        let entries = fields.entries();
        let entries = entries
            .iter()
            .map(|(name, value)| json!([name, String::from_utf8_lossy(value)]));
        entries.collect::<Vec<_>>()
    };
    let mut value = json!({
        "status": response.status(),
        "headers": pairs(&response.headers()),
    });
    match reading.read.as_str() {
        "head" => return Ok(value),
        "hold" => {
            std::mem::forget(response);
            return Ok(value);
        }
        _ => {}
    }
    let none = |()| ("response body".to_owned(), "refused".to_owned());
    let body = response.consume().map_err(none)?;
    let stream = body.stream().map_err(none)?;
    let mut shown = Vec::new();
    let mut bytes = 0;
    let end = loop {
        match stream.blocking_read(reading.read_chunk.unwrap_or(64 * 1024)) {
            Ok(chunk) => {
                bytes += chunk.len();
                let room = reading.show.unwrap_or(SHOWN).saturating_sub(shown.len());
                shown.extend(chunk.into_iter().take(room));
            }
            Err(StreamError::Closed) => break "closed".to_owned(),
            Err(error) => break failed("", &error).1,
        }
        if reading.read_pause_ms > 0 {
            sleep(Duration::from_millis(reading.read_pause_ms));
        }
    };
    drop(stream);
    value["body"] = json!(String::from_utf8_lossy(&shown));
    value["bytes"] = json!(bytes);
    value["end"] = json!(end);
    if end == "closed" {
        let trailers = IncomingBody::finish(body);
        trailers.subscribe().block();
        value["trailers"] = match trailers.get() {
            Some(Ok(Ok(Some(fields)))) => json!(pairs(&fields)),
            Some(Ok(Ok(None))) => json!([]),
            Some(Ok(Err(error))) => json!(code(error)),
            _ => json!(null),
        };
    }
    Ok(value)
}

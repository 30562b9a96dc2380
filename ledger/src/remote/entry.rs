//! Entries in frames. The recorder checks each entry again, with the types of record fields. The
//! recording process, which sends the entries, may state only some events, and may not set the
//! fields that the writer fills in.

use std::borrow::Cow;
use std::io;

use crate::payload::PayloadKind;
use crate::record::{Code, Event, MAX_RECORD_BYTES, NOT_DISPATCHED, RecordError, Wire};
use crate::recorder::{Entry, Given, NO_SESSION, content_mut};

/// The most bytes of one payload.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;
/// The most bytes of a principal's name.
pub const MAX_NAME_BYTES: usize = 1024;
/// The most bytes of an event and its time. They suffice for each event whose line is not
/// shortened.
const MAX_EVENT_BYTES: usize = 2 * MAX_RECORD_BYTES;

/// The most bytes of an entry.
pub(super) const MAX_ENTRY_BYTES: usize =
    MAX_EVENT_BYTES + 4 * (MAX_PAYLOAD_BYTES + 8) + 2 * MAX_NAME_BYTES + 512;

const MATTERS: u8 = 1;
const PRINCIPAL: u8 = 2;
const GIVEN: u8 = 4;

/// The payloads that an entry may have, by the byte that stands for each.
fn payloads() -> impl Iterator<Item = (u8, PayloadKind)> {
    (1..).zip(PayloadKind::ALL.iter().copied())
}

/// Adds an entry to a frame.
///
/// A payload that is too long is left out. The event has its size in any case.
pub(super) fn write(to: &mut Vec<u8>, entry: &Entry) -> Result<(), RecordError> {
    let principal = entry.principal.as_deref();
    let given = entry.given.as_ref();
    if principal.is_some_and(|name| name.len() > MAX_NAME_BYTES) {
        return Err(RecordError::Long);
    }
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    to.push(
        flag(entry.matters, MATTERS)
            | flag(principal.is_some(), PRINCIPAL)
            | flag(given.is_some(), GIVEN),
    );
    write_event(to, entry)?;
    if let Some(principal) = principal {
        counted(to, principal.as_bytes());
    }
    if let Some(given) = given {
        write_given(to, given)?;
    }
    for (byte, kind) in payloads() {
        let found = entry.payloads.iter().find(|(found, _)| *found == kind);
        if let Some((_, bytes)) = found.filter(|(_, bytes)| bytes.len() <= MAX_PAYLOAD_BYTES) {
            to.push(byte);
            counted(to, bytes);
        }
    }
    Ok(())
}

/// Adds the time and the event. If the event is too long, the ends of its lists are left out, as the
/// recorder does to shorten the line. The recorder would leave out at least as much.
fn write_event(to: &mut Vec<u8>, entry: &Entry) -> Result<(), RecordError> {
    let start = to.len();
    let mut event = Cow::Borrowed(&entry.event);
    loop {
        entry.at.put(to);
        event.put(to);
        if to.len() - start <= MAX_EVENT_BYTES {
            return Ok(());
        }
        to.truncate(start);
        if !event.to_mut().shorten() {
            return Err(RecordError::Long);
        }
    }
}

/// Reads an entry that takes up the rest of a frame.
pub(super) fn read(body: &mut FrameBody<'_>) -> Result<Entry, FrameError> {
    let [flags] = body.value()?;
    if flags & !(MATTERS | PRINCIPAL | GIVEN) != 0 {
        return Err(FrameError::Bad("unknown flags"));
    }
    let mut part = FrameBody(body.0.get(..MAX_EVENT_BYTES).unwrap_or(body.0));
    let length = part.0.len();
    let (at, event) = (part.value()?, part.value()?);
    body.bytes(length - part.0.len())?;
    let mut entry = Entry::new(stated(event)?).at(at);
    if flags & PRINCIPAL != 0 {
        entry = entry.principal(body.text(MAX_NAME_BYTES)?);
    }
    if flags & GIVEN != 0 {
        entry = entry.given(read_given(body)?);
    }
    if flags & MATTERS != 0 {
        entry = entry.matters();
    }
    let mut last = 0;
    while !body.0.is_empty() {
        let [byte] = body.value()?;
        let kind = payloads().find(|(known, _)| *known == byte);
        let (_, kind) = kind.ok_or(FrameError::Bad("an unknown kind of payload"))?;
        if byte <= last {
            return Err(FrameError::Bad("payloads out of order"));
        }
        last = byte;
        let bytes = body.counted(MAX_PAYLOAD_BYTES)?;
        let stated = content_mut(&mut entry.event, kind).and_then(|content| content.as_ref());
        if stated.map(|content| content.size.get()) != Some(bytes.len() as u64) {
            return Err(FrameError::Bad("a payload that the record does not have"));
        }
        entry = entry.payload(kind, bytes.to_vec());
    }
    Ok(entry)
}

pub(super) fn write_given(to: &mut Vec<u8>, given: &Given) -> Result<(), RecordError> {
    if given.principal.len() > MAX_NAME_BYTES {
        return Err(RecordError::Long);
    }
    counted(to, given.principal.as_bytes());
    given.tool.put(to);
    given.id.put(to);
    given.input.put(to);
    Ok(())
}

pub(super) fn read_given(body: &mut FrameBody<'_>) -> Result<Given, FrameError> {
    Ok(Given {
        principal: body.text(MAX_NAME_BYTES)?.into(),
        tool: body.value()?,
        id: body.value()?,
        input: body.value()?,
    })
}

/// Checks that the recording process may state the event. Only the recorder may state the other
/// events, and may set the person, the commitments, and whether a row is late.
fn stated(mut event: Event) -> Result<Event, FrameError> {
    match &event {
        Event::Opened(_)
        | Event::Started(_)
        | Event::Ended(_)
        | Event::Refused(_)
        | Event::Replayed(_)
        | Event::RefusedMore(_)
        | Event::Trust(_)
        | Event::Approval(_)
        | Event::Gap(_) => {}
        // Only for a call of this session that did not run.
        Event::Abandoned(body)
            if body.of == NO_SESSION
                && body.why.as_ref().map(Code::as_str) == Some(NOT_DISPATCHED) => {}
        Event::Abandoned(_) | Event::Erased(_) | Event::Pruned(_) | Event::Closed(_) => {
            return Err(FrameError::Bad("a record of the recorder's own"));
        }
    }
    let late = event.outcome().is_some_and(|outcome| outcome.late);
    let committed = PayloadKind::ALL.iter().any(|kind| {
        let content = content_mut(&mut event, *kind).and_then(|content| content.as_ref());
        content.is_some_and(|content| content.commitment.is_some())
    });
    match event.person().is_some() || late || committed {
        true => Err(FrameError::Bad("it says what the recorder fills in")),
        false => Ok(event),
    }
}

/// The unread rest of a body.
pub(super) struct FrameBody<'a>(pub(super) &'a [u8]);

impl<'a> FrameBody<'a> {
    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], FrameError> {
        let taken = self.0.split_off(..length);
        taken.ok_or(FrameError::Bad("it ends too early"))
    }

    pub(super) fn value<T: Wire>(&mut self) -> Result<T, FrameError> {
        T::take(&mut self.0).ok_or(FrameError::Bad("a value of another form"))
    }

    /// Reads a length of at most `most`, and then as many bytes.
    fn counted(&mut self, most: usize) -> Result<&'a [u8], FrameError> {
        let length = usize::try_from(u32::from_le_bytes(self.value()?)).unwrap_or(usize::MAX);
        match length <= most {
            true => self.bytes(length),
            false => Err(FrameError::Bad("a part is too long")),
        }
    }

    fn text(&mut self, most: usize) -> Result<&'a str, FrameError> {
        std::str::from_utf8(self.counted(most)?).map_err(|_| FrameError::Bad("not UTF-8"))
    }

    /// Checks that nothing follows.
    pub(super) fn end(&self) -> Result<(), FrameError> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(FrameError::Bad("more follows than belongs to it")),
        }
    }
}

/// Adds the length of the bytes, and then the bytes.
fn counted(to: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(bytes);
}

/// Why a frame was not read or was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other side is gone, or the socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are not a frame, or are a frame that is not accepted here.
    #[error("a frame can't be taken: {0}")]
    Bad(&'static str),
}

#[cfg(test)]
mod tests;

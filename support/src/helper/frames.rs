//! Frames between this process and a helper: kind, length and body. A length is checked before a
//! buffer of that size is allocated.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes one frame. The owner of a buffered writer flushes it, once for all frames that are sent
/// together.
///
/// # Errors
/// The errors of the writer, or an error if the length of the body does not fit into 32 bits.
pub fn frame(to: &mut impl Write, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    let [a, b, c, d] = length(parts)?.to_le_bytes();
    to.write_all(&[kind, a, b, c, d])?;
    for part in parts {
        to.write_all(part)?;
    }
    Ok(())
}

/// The length of a body for its frame.
fn length(parts: &[&[u8]]) -> io::Result<u32> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    u32::try_from(length).map_err(io::Error::other)
}

/// Writes a message: a value, and bytes that belong to it. [`receive`] reads it.
///
/// # Errors
/// The errors of the writer. If a length does not fit into 32 bits, nothing is written.
pub fn send(to: &mut impl Write, value: &impl Serialize, bytes: &[&[u8]]) -> io::Result<()> {
    let value = serde_json::to_vec(value)?;
    length(bytes)?;
    frame(to, VALUE, &[&value])?;
    frame(to, BYTES, bytes)
}

/// Reads the next message; `None` at the end. The value has at most `most` bytes; `most_bytes`
/// returns how many further bytes may belong to it.
///
/// # Errors
/// The errors of the reader, or an error for a message that is too long, cut off, or of another
/// type.
pub fn receive<T: DeserializeOwned>(
    from: &mut impl Read,
    most: usize,
    most_bytes: impl FnOnce(&T) -> usize,
) -> io::Result<Option<(T, Vec<u8>)>> {
    let Some(value) = body(from, VALUE, most)? else {
        return Ok(None);
    };
    let value = serde_json::from_slice(&value)?;
    let bytes = body(from, BYTES, most_bytes(&value))?;
    let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(Some((value, bytes)))
}

const VALUE: u8 = 1;
const BYTES: u8 = 2;

fn body(from: &mut impl Read, kind: u8, most: usize) -> io::Result<Option<Vec<u8>>> {
    match head(from)? {
        None => Ok(None),
        Some((found, length)) if found == kind => Body::of(from, length, most)?.rest().map(Some),
        Some(_) => Err(io::Error::other("an unknown message")),
    }
}

/// Reads the kind and length of the next frame; `None` at the end.
///
/// # Errors
/// The errors of the reader, or an error if the stream ends within the frame's head.
pub fn head(from: &mut impl Read) -> io::Result<Option<(u8, usize)>> {
    let mut kind = [0];
    loop {
        match from.read(&mut kind) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    let [kind] = kind;
    Ok(Some((kind, length)))
}

/// Whether a buffer starts with a complete frame, so that reading the frame does not wait. A
/// message of [`send`] has two frames: this function does not check whether both are complete.
pub fn is_whole(mut buffer: &[u8]) -> bool {
    let head = head(&mut buffer);
    matches!(head, Ok(Some((_, length))) if length <= buffer.len())
}

/// The unread rest of a body.
#[derive(Debug)]
pub struct Body<'a, R>(io::Take<&'a mut R>);

impl<'a, R: Read> Body<'a, R> {
    /// A body of this length.
    ///
    /// # Errors
    /// If it is longer than `most`.
    pub fn of(from: &'a mut R, length: usize, most: usize) -> io::Result<Self> {
        if length > most {
            return Err(io::Error::other("a body that is too long"));
        }
        Ok(Self(from.take(length as u64)))
    }

    /// Reads the next `N` bytes.
    ///
    /// # Errors
    /// If fewer bytes are left.
    pub fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the next number: 64 bits, little-endian.
    ///
    /// # Errors
    /// If fewer than eight bytes are left.
    pub fn number(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    /// Reads all remaining bytes.
    ///
    /// # Errors
    /// If the stream ends too early.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        let length = self.0.limit();
        let mut bytes = Vec::with_capacity(usize::try_from(length).map_err(io::Error::other)?);
        self.0.read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }

    /// Reads all remaining bytes as text, and replaces invalid UTF-8.
    ///
    /// # Errors
    /// As [`Body::rest`].
    pub fn text(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.rest()?).into_owned())
    }
}

/// Frames that a separate thread writes, so that no other thread waits for a helper that does not
/// read. The queue has no limit: its senders limit the number of frames.
#[derive(Clone, Debug)]
pub struct Outgoing(Sender<Vec<u8>>);

impl Outgoing {
    /// Starts the thread, which ends when the last clone of the returned value is dropped or the
    /// connection ends.
    ///
    /// # Errors
    /// If the socket can't be duplicated, or no thread can be started.
    pub fn start(name: &str, socket: &UnixStream) -> io::Result<Self> {
        let mut socket = socket.try_clone()?;
        let (sender, frames) = channel::<Vec<u8>>();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                for frame in frames {
                    if socket.write_all(&frame).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self(sender))
    }

    /// Queues a message to be written. If the connection has ended, the reader reports why.
    ///
    /// # Errors
    /// As [`send`].
    pub fn send(&self, message: &impl Serialize, bytes: &[&[u8]]) -> io::Result<()> {
        let mut frames = Vec::new();
        send(&mut frames, message, bytes)?;
        let _ = self.0.send(frames);
        Ok(())
    }
}

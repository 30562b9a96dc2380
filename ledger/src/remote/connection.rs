//! The recorder's half: takes frames from a process that may be taken over by a guest, checks each, and has the
//! writer write them.

use std::collections::HashSet;
use std::io::{BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use toolward_support::helper::frames::is_whole;

use super::BUFFER_BYTES;
use super::allowance::Allowance;
use super::frame::{Answer, Outcome, Request, said};
use super::frame_error::FrameError;
use super::start::Start;
use crate::entry::{Entry, Repeated};
use crate::error::Error;
use crate::pending::Pending;
use crate::record::Code;
use crate::recorder::{Durability, Recorder as _};
use crate::writer::queue::Gather;
use crate::writer::{Options, Writer};

/// Requests whose answers are awaited at once. Beyond it, nothing more is read.
const IN_FLIGHT: usize = 4096;
/// Principals that a session may name.
const MAX_PRINCIPALS: usize = 65_536;
/// The code of a connection that ended because of a frame that can't be taken.
const FRAME_INVALID: &str = "frame-invalid";
/// The code of a connection that ended without the recording process having said so.
const HOST_GONE: &str = "host-gone";

/// A connection to a recording process that has begun.
pub struct Connection {
    from: BufReader<Counted>,
    to: UnixStream,
    start: Start,
}

/// What is answered, in the order of the requests.
enum Answering {
    Row(u64, Pending<()>),
    Question(u64, Pending<Option<Repeated>>),
}

impl Connection {
    /// Waits for the start; `None` if the recording process ends before it.
    ///
    /// # Errors
    /// [`FrameError`] if something else comes first.
    pub fn accept(socket: UnixStream) -> Result<Option<Self>, FrameError> {
        let counted = Counted {
            socket: socket.try_clone()?,
            bytes: 0,
        };
        let mut from = BufReader::with_capacity(BUFFER_BYTES, counted);
        match Request::read(&mut from)? {
            None => Ok(None),
            Some(Request::Start(start)) => Ok(Some(Self {
                from,
                to: socket,
                start: *start,
            })),
            Some(_) => Err(FrameError::Bad("it does not begin with a start")),
        }
    }

    /// Where the ledger is, and what else may be opened.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.start.options
    }

    /// Says that the recorder can't work.
    pub fn refuse(mut self, problem: impl Into<String>) {
        // Whoever would read it may be gone.
        let _ = Answer::Unusable(problem.into()).write(&mut self.to);
    }

    /// Opens the ledger, and records until the connection ends: in good order, because the recording process is
    /// gone, or because of a frame that can't be taken. Then the session is closed, with a row that says why.
    ///
    /// # Errors
    /// If the ledger can't be opened, or not all of it could be written.
    pub fn serve(self) -> Result<(), Error> {
        let Self {
            from,
            mut to,
            start,
        } = self;
        // Without the thread that answers, nothing could be recorded: the ledger stays as it is.
        let (sender, receiver) = sync_channel(IN_FLIGHT);
        let answering = to.try_clone().and_then(|answers| {
            let thread = std::thread::Builder::new().name("answer".to_owned());
            thread.spawn(move || answer(&receiver, answers))
        });
        let opened = answering
            .map_err(|error| Error::io("the recorder's socket", error))
            .and_then(|answering| {
                let writer =
                    Writer::open_gathering(start.options, start.opened, Gather::UntilTold)?;
                Ok((answering, writer))
            });
        let (answering, writer) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let _ = Answer::Unusable(said(&error)).write(&mut to);
                return Err(error);
            }
        };
        let _ = Answer::Ready.write(&mut to);
        let why = take(from, &writer, &sender);
        if let Err(FrameError::Bad(_)) = why {
            // It might never read the answers, which would keep the session open.
            let _ = to.shutdown(Shutdown::Both);
        }
        // Ends the thread that answers, once it has answered.
        drop(sender);
        let _ = answering.join();
        let (closed, written) = match &why {
            Ok(()) => writer.end(None),
            Err(why) => {
                let code = code(why);
                match why {
                    FrameError::Bad(_) => {
                        tracing::error!(code, problem = %why, "the session was ended")
                    }
                    // It was killed: its row says so.
                    FrameError::Io(_) => {
                        tracing::info!(code, problem = %why, "the session was ended")
                    }
                }
                writer.end(Code::parse(code).ok())
            }
        };
        let outcome = Outcome::of(closed.clone());
        let _ = Answer::Closed { outcome, written }.write(&mut to);
        closed
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("directory", &self.start.options.directory)
            .finish_non_exhaustive()
    }
}

fn code(why: &FrameError) -> &'static str {
    match why {
        FrameError::Io(_) => HOST_GONE,
        FrameError::Bad(_) => FRAME_INVALID,
    }
}

/// Takes requests until the session ends.
fn take(
    mut from: BufReader<Counted>,
    writer: &Writer,
    answering: &SyncSender<Answering>,
) -> Result<(), FrameError> {
    let mut allowance = Allowance::new(Instant::now());
    let mut principals = Principals::default();
    let gone = || FrameError::Io(std::io::ErrorKind::UnexpectedEof.into());
    let mut read = from.get_ref().bytes;
    loop {
        if !is_whole(from.buffer()) {
            // The next read may wait.
            writer.take_gathered();
        }
        let request = Request::read(&mut from)?.ok_or_else(gone)?;
        let before = std::mem::replace(&mut read, from.get_ref().bytes);
        let bytes = usize::try_from(read.saturating_sub(before)).unwrap_or(usize::MAX);
        let wait = allowance.take(Instant::now(), bytes);
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        let awaited = match request {
            Request::Start(_) => return Err(FrameError::Bad("a second start")),
            Request::End => return Ok(()),
            Request::Append { id, entry } => {
                principals.take(&entry)?;
                // What waits for room would take memory here.
                let _ = writer.room().wait();
                Answering::Row(id, writer.append(*entry, Durability::Disk))
            }
            Request::Queue(entry) => {
                principals.take(&entry)?;
                let _ = writer.room().wait();
                drop(writer.append(*entry, Durability::Queued).wait());
                continue;
            }
            Request::Flush { id } => Answering::Row(id, writer.flush()),
            Request::Given { id, given } => Answering::Question(id, writer.given(given)),
        };
        // The thread that answers ends with the socket.
        answering.send(awaited).map_err(|_| gone())?;
    }
}

/// Answers each request once its answer is there. One that waits for another attempt holds up those behind it,
/// which would fail like it.
fn answer(answering: &Receiver<Answering>, mut to: UnixStream) {
    while let Ok(awaited) = answering.recv() {
        let (id, outcome) = match awaited {
            Answering::Row(id, pending) => (id, Outcome::of(pending.wait())),
            Answering::Question(id, pending) => (
                id,
                match pending.wait() {
                    Ok(Some(Repeated { same_input })) => Outcome::Given { same_input },
                    found => Outcome::of(found.map(drop)),
                },
            ),
        };
        if (Answer::To { id, outcome }).write(&mut to).is_err() {
            return;
        }
    }
}

/// The principals that a session has named. Their names are kept until they are erased, so that a process that was
/// taken over could fill the disk with them.
#[derive(Default)]
struct Principals(HashSet<[u8; 32]>);

impl Principals {
    fn take(&mut self, entry: &Entry) -> Result<(), FrameError> {
        let Some(name) = &entry.principal else {
            return Ok(());
        };
        let name: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        if self.0.len() >= MAX_PRINCIPALS && !self.0.contains(&name) {
            return Err(FrameError::Bad("too many principals"));
        }
        self.0.insert(name);
        Ok(())
    }
}

/// Counts what is read. Reads without control messages, so that no descriptor comes in.
struct Counted {
    socket: UnixStream,
    bytes: u64,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.socket.read(into)?;
        self.bytes = self.bytes.saturating_add(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Closed, Event};

    #[test]
    fn a_session_names_so_many_principals_and_no_more() {
        let entry = |name: String| Entry::new(Event::Closed(Closed { why: None })).principal(name);
        let mut principals = Principals::default();
        for number in 0..MAX_PRINCIPALS {
            principals.take(&entry(number.to_string())).unwrap();
        }
        principals.take(&entry("7".to_owned())).unwrap();
        principals.take(&entry("another".to_owned())).unwrap_err();
    }
}

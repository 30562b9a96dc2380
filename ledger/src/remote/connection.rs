//! The half in the recorder: reads frames from a process that a guest may have taken over, checks
//! each, and passes them to the writer.

use std::collections::HashSet;
use std::io::BufReader;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::BUFFER_BYTES;
use super::Start;
use super::entry::FrameError;
use super::frame::{AnswerFrame, RequestFrame, with_code};
use crate::error::Error;
use crate::record::Code;
use crate::recorder::{Durability, Entry, Pending, Recorder as _};
use crate::writer::queue::Gather;
use crate::writer::{LedgerOptions, Writer};

/// When rows that are not awaited are written. A call that meets a transaction waits for the
/// processor, so transactions are few.
const GATHER: Gather = Gather::new(25, 256);
/// The most requests whose answers are awaited at once. Beyond this, nothing more is read.
const IN_FLIGHT: usize = 4096;
/// The most principals that a session may name.
const MAX_PRINCIPALS: usize = 65_536;
/// The code of a connection that ended because of an invalid frame.
const FRAME_INVALID: &str = "frame-invalid";
/// The code of a connection that the recording process ended without notice.
const HOST_GONE: &str = "host-gone";

/// A connection to a recording process, which has sent its [`Start`].
pub struct RecorderConnection {
    /// Reads without control messages, so that no file descriptor is received.
    from: BufReader<UnixStream>,
    to: UnixStream,
    start: Start,
}

/// A request's number, and its pending answer.
type Answering = (u64, Pending);

impl RecorderConnection {
    /// Waits for the start; `None` if the recording process ends before it.
    ///
    /// # Errors
    /// [`FrameError`] if the socket fails, or if anything but a valid start comes first.
    pub fn accept(socket: UnixStream) -> Result<Option<Self>, FrameError> {
        let mut from = BufReader::with_capacity(BUFFER_BYTES, socket.try_clone()?);
        match RequestFrame::read(&mut from)? {
            None => Ok(None),
            Some(RequestFrame::Start(start)) => Ok(Some(Self {
                from,
                to: socket,
                start: *start,
            })),
            Some(_) => Err(FrameError::Bad("it does not begin with a start")),
        }
    }

    /// The options, which name the paths that may be opened.
    pub fn options(&self) -> &LedgerOptions {
        &self.start.options
    }

    /// Reports that the recorder can't work.
    pub fn refuse(mut self, problem: impl Into<String>) {
        // The recording process may be gone.
        let _ = AnswerFrame::Unusable(problem.into()).write(&mut self.to);
    }

    /// Opens the ledger, and records until the connection ends: in good order, because the
    /// recording process is gone, or because of an invalid frame. Then closes the session, with a
    /// row that states the reason.
    ///
    /// # Errors
    /// If the ledger can't be opened, or not all rows could be written.
    pub fn serve(self) -> Result<(), Error> {
        let Self {
            from,
            mut to,
            start,
        } = self;
        // The answering thread is started first. If it can't be started, the ledger stays
        // unchanged.
        let (sender, receiver) = sync_channel(IN_FLIGHT);
        let answering = to.try_clone().and_then(|answers| {
            let thread = std::thread::Builder::new().name("answer".to_owned());
            thread.spawn(move || answer(&receiver, answers))
        });
        let opened = answering
            .map_err(|error| Error::io("the recorder's socket", error))
            .and_then(|answering| {
                let writer = Writer::open_gathering(start.options, start.opened, GATHER)?;
                Ok((answering, writer))
            });
        let (answering, writer) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let _ = AnswerFrame::Unusable(with_code(&error)).write(&mut to);
                return Err(error);
            }
        };
        let _ = AnswerFrame::Ready.write(&mut to);
        toolward_support::program_pages::release();
        let why = take(from, &writer, &sender);
        if let Err(FrameError::Bad(_)) = why {
            // The recording process might never read the answers, which would keep the session
            // open.
            let _ = to.shutdown(Shutdown::Both);
        }
        // Ends the answering thread once it has sent all answers.
        drop(sender);
        let _ = answering.join();
        let code = match &why {
            Ok(()) => None,
            Err(problem @ FrameError::Bad(_)) => {
                tracing::error!(code = FRAME_INVALID, %problem, "the session was ended");
                Some(FRAME_INVALID)
            }
            // The recording process is gone; the `closed` row states it.
            Err(problem @ FrameError::Io(_)) => {
                tracing::info!(code = HOST_GONE, %problem, "the session was ended");
                Some(HOST_GONE)
            }
        };
        let (closed, written) = writer.end(code.and_then(|code| Code::parse(code).ok()));
        let outcome = closed.clone();
        let _ = AnswerFrame::Closed { outcome, written }.write(&mut to);
        closed
    }
}

impl std::fmt::Debug for RecorderConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecorderConnection")
            .field("directory", &self.start.options.directory)
            .finish_non_exhaustive()
    }
}

/// Takes requests until the session ends.
fn take(
    mut from: BufReader<UnixStream>,
    writer: &Writer,
    answering: &SyncSender<Answering>,
) -> Result<(), FrameError> {
    let mut allowance = Allowance::new(Instant::now());
    let mut principals = Principals::default();
    let gone = || FrameError::Io(std::io::ErrorKind::UnexpectedEof.into());
    loop {
        let (request, bytes) = RequestFrame::read_sized(&mut from)?.ok_or_else(gone)?;
        let wait = allowance.take(Instant::now(), size(&request, bytes));
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        let awaited = match request {
            RequestFrame::Start(_) => return Err(FrameError::Bad("a second start")),
            RequestFrame::End => return Ok(()),
            RequestFrame::Append { id, entry } => {
                principals.take(&entry)?;
                // Entries that wait for room would take memory here.
                let _ = writer.room().wait();
                (id, writer.append(*entry, Durability::Disk))
            }
            RequestFrame::Queue(entry) => {
                principals.take(&entry)?;
                let _ = writer.room().wait();
                drop(writer.append(*entry, Durability::Queued).wait());
                continue;
            }
            RequestFrame::Flush { id } => (id, writer.flush()),
            RequestFrame::Given { id, given } => (id, writer.given(given)),
        };
        // The answering thread ends with the socket.
        answering.send(awaited).map_err(|_| gone())?;
    }
}

/// The bytes that a request of this many bytes counts as: for an entry, at least about the bytes of
/// its line and its payloads. A line is up to three times as long as the event in the frame, and has
/// names of fields for each item of its lists.
fn size(request: &RequestFrame, bytes: usize) -> usize {
    let (RequestFrame::Append { entry, .. } | RequestFrame::Queue(entry)) = request else {
        return bytes;
    };
    let payloads: usize = entry.payloads.iter().map(|(_, bytes)| bytes.len()).sum();
    3 * bytes - 2 * payloads + 128 * entry.payloads.len() + entry.list_weight()
}

/// Answers the requests in their order. A request that waits for another attempt to write it delays
/// the later answers; the later requests would fail for the same reason.
fn answer(answering: &Receiver<Answering>, mut to: UnixStream) {
    while let Ok((id, pending)) = answering.recv() {
        let outcome = pending.wait();
        if (AnswerFrame::To { id, outcome }).write(&mut to).is_err() {
            return;
        }
    }
}

/// The principals that a session has named. Their number is limited, since names are kept until
/// they are erased and a compromised process could fill the disk with them.
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

/// The allowed bytes per second in the long run, which is enough for some 16,000 calls per second
/// that change something.
const BYTES_PER_SECOND: u64 = 16 * 1024 * 1024;
/// The allowed bytes at once.
const BURST_BYTES: u64 = 64 * 1024 * 1024;
/// The least bytes that a frame counts as: about the space that a row takes on the disk in addition
/// to its record.
const LEAST_BYTES: u64 = 256;

/// Limits the rate at which a connection sends.
struct Allowance {
    start: Instant,
    /// The amount that it has sent, in billionths of a byte. After a pause, it is raised to the
    /// amount that it could have sent at the rate, so that at most one burst is saved up.
    sent: u128,
}

impl Allowance {
    fn new(now: Instant) -> Self {
        Self {
            start: now,
            sent: 0,
        }
    }

    /// Counts a frame of `bytes` bytes. Returns how long to wait before the next frame.
    fn take(&mut self, now: Instant, bytes: usize) -> Duration {
        let billionths = |bytes: u64| u128::from(bytes) * 1_000_000_000;
        let rate = u128::from(BYTES_PER_SECOND);
        let since = now.saturating_duration_since(self.start).as_nanos();
        let earned = since.saturating_mul(rate);
        let frame = billionths((bytes as u64).max(LEAST_BYTES));
        self.sent = self.sent.max(earned).saturating_add(frame);
        let owed = self.sent.saturating_sub(earned + billionths(BURST_BYTES));
        Duration::from_nanos(u64::try_from(owed / rate).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Closed, Event, Number, RefusedMore};
    use crate::recorder::NO_SESSION;

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

    #[test]
    fn a_burst_is_free_and_all_beyond_it_is_delayed_to_the_rate() {
        let mut now = Instant::now();
        let mut allowance = Allowance::new(now);
        let each = 64 * 1024;
        for _ in 0..BURST_BYTES / each as u64 {
            assert_eq!(allowance.take(now, each), Duration::ZERO);
        }
        let begun = now;
        let mut bytes = 0;
        while bytes < 10 * BYTES_PER_SECOND {
            now += allowance.take(now, each);
            bytes += each as u64;
        }
        let took = (now - begun).as_secs_f64();
        assert!((9.9..10.1).contains(&took), "{took} s");
        // After a pause, only one burst is allowed again.
        now += Duration::from_secs(3600);
        for _ in 0..BURST_BYTES / each as u64 {
            assert_eq!(allowance.take(now, each), Duration::ZERO);
        }
        assert!(allowance.take(now, each) > Duration::ZERO);
    }

    #[test]
    fn an_entry_costs_what_its_line_and_its_payloads_take() {
        for count in [0, 1, 10, 300] {
            let code = |number: u64| (Code::parse(&number.to_string()).unwrap(), 0.into());
            let entry = Entry::new(Event::RefusedMore(RefusedMore {
                codes: (0..count).map(code).collect(),
                cut: Number::default(),
                person: None,
                since: Number::default(),
            }));
            let line = entry.event.encode(entry.at, NO_SESSION).len();
            let request = RequestFrame::Queue(Box::new(entry));
            let mut frame = Vec::new();
            request.write(&mut frame).unwrap();
            let least = usize::try_from(LEAST_BYTES).unwrap();
            assert!(size(&request, frame.len()).max(least) >= line, "{count}");
        }
    }

    #[test]
    fn empty_frames_cost_what_a_row_costs() {
        let now = Instant::now();
        let mut allowance = Allowance::new(now);
        for _ in 0..BURST_BYTES / LEAST_BYTES {
            assert_eq!(allowance.take(now, 0), Duration::ZERO);
        }
        assert!(allowance.take(now, 0) > Duration::ZERO);
    }
}

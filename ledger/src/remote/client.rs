//! The half in the recording process: a queue, a thread that sends its rows, and a thread that
//! reads the answers.

use std::io::{BufReader, BufWriter, ErrorKind, Read, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::entry::FrameError;
use super::frame::{AnswerFrame, RequestFrame};
use super::shared::{Answering, ConnectionState, LOST};
use super::{BUFFER_BYTES, Start};
use crate::error::Error;
use crate::payload::{Keep, PayloadKind, PayloadLimits};
use crate::record::{Code, Event, Gap, Number};
use crate::recorder::{AnswerSender, Durability, Entry, Given, Pending, Recorder, channel, now};
use crate::writer::queue::{Gather, Queue, QueuedRow};
use crate::writer::{QUEUE_BYTES, WrittenRows};

/// When rows that are not awaited are sent. They are few, so that a call waits only for a short time
/// if the recorder reads them on its processor.
const GATHER: Gather = Gather::new(12, 16);
/// How often to check whether the recorder answers in time.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// The problem that is reported if the recorder ends without being asked.
const ENDED: &str = "it has ended";

/// A [`Recorder`] whose ledger belongs to another process, at the other end of a socket.
///
/// The longest wait for an answer is 5 seconds. While an answer is overdue, starts of calls fail at
/// once, and ends of calls are sent later, once the recorder answers. If the recorder writes a
/// start after its caller gave up, an `abandoned` row revokes the start. A recorder that has not
/// answered for 30 seconds has failed.
///
/// Its threads start with the first request, or with [`Remote::ended`] or [`Remote::close`]. A
/// process can confine itself before, while it has only one thread.
pub struct Remote {
    queue: Arc<Queue>,
    shared: Arc<ConnectionState>,
    socket: UnixStream,
    running: OnceLock<()>,
    keep: Keep,
    limits: PayloadLimits,
}

/// The state of a recorder, as seen by the recording process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecorderCounts {
    /// Rows that were sent to the recorder.
    pub sent: u64,
    /// Rows that were given up or could not be sent.
    pub lost: u64,
    /// Bytes of rows that wait to be sent.
    pub queued_bytes: u64,
    /// Whether the connection is open.
    pub up: bool,
}

impl Remote {
    /// Starts the recorder at the other end, without waiting for it. Entries that are appended in
    /// the meantime are sent. If they can't be recorded in the end, their answers are errors.
    ///
    /// # Errors
    /// If the socket can't be set up, or the start does not fit a frame. If the socket can't be
    /// written because the recorder has died, the first request fails.
    pub fn start(socket: UnixStream, start: Start) -> Result<Self, Error> {
        let (keep, limits) = (start.options.keep, start.options.payloads);
        // The timeout is set here, before this process confines itself.
        (socket.set_read_timeout(Some(LOOK_INTERVAL)))
            .map_err(|error| Error::io("the recorder's socket", error))?;
        match RequestFrame::Start(Box::new(start)).write(&mut &socket) {
            // A recorder that has already died is reported with the first row.
            Err(Error::Io(_)) | Ok(()) => {}
            Err(error) => return Err(error),
        }
        Ok(Self {
            queue: Queue::new(QUEUE_BYTES, GATHER),
            shared: Arc::default(),
            socket,
            running: OnceLock::new(),
            keep,
            limits,
        })
    }

    /// An answer that comes when the connection ends. It is an error if the end was not caused by
    /// [`Remote::close`].
    pub fn ended(&self) -> Pending {
        self.run();
        self.shared.ended()
    }

    /// Why nothing can be recorded any more; `None` while recording works.
    pub fn problem(&self) -> Option<Error> {
        self.shared.problem()
    }

    /// The current state of the recorder.
    pub fn counts(&self) -> RecorderCounts {
        let (sent, lost) = self.shared.rows();
        RecorderCounts {
            sent,
            lost,
            queued_bytes: self.queue.bytes() as u64,
            up: self.problem().is_none(),
        }
    }

    /// Sends all appended entries, ends the session, and waits until the ledger is closed.
    ///
    /// # Errors
    /// Why not all entries were written, or that the recorder took longer than `longest`.
    pub fn close(&self, longest: Duration) -> Result<(), Error> {
        self.run();
        self.queue.close(None);
        let until = Instant::now().checked_add(longest);
        let ended = self.shared.ended().wait_until(until).unwrap_or_else(|| {
            let late = "it did not end in time";
            Err(Error::Recorder(late.into()))
        });
        let _ = self.socket.shutdown(Shutdown::Both);
        ended
    }

    /// The rows of the latest calls, as the recorder reports them when it has closed the ledger.
    pub fn written(&self) -> Option<WrittenRows> {
        self.shared.written()
    }

    /// Asks the queue. If the connection has ended, the answer is the reason, which [`end`] sets
    /// before it closes the queue.
    fn ask(&self, ask: impl FnOnce(&Arc<Queue>) -> Pending) -> Pending {
        self.run();
        let shared = self.shared.clone();
        ask(&self.queue).closed_because(move || shared.problem())
    }

    /// Starts the threads, once.
    fn run(&self) {
        self.running.get_or_init(|| {
            if let Err(error) = self.begin() {
                let error = Error::io("the threads of the recorder's socket", error);
                end(&self.queue, &self.shared, Err(error));
            }
        });
    }

    fn begin(&self) -> std::io::Result<()> {
        let (to, from) = (self.socket.try_clone()?, self.socket.try_clone()?);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(work).map(drop)
        };
        let (queue, shared) = (self.queue.clone(), self.shared.clone());
        spawn(
            "recorder-read",
            Box::new(move || {
                let how = read(&queue, &shared, &from);
                // Ends the other thread, which may be blocked in a write.
                let _ = from.shutdown(Shutdown::Both);
                end(&queue, &shared, how);
            }),
        )?;
        let (queue, shared) = (self.queue.clone(), self.shared.clone());
        spawn(
            "recorder-send",
            Box::new(move || {
                let mut sender = Sender {
                    shared: &shared,
                    to: BufWriter::with_capacity(BUFFER_BYTES, &to),
                    broken: false,
                    asked: Instant::now(),
                };
                sender.run(&queue);
            }),
        )
    }
}

/// Answers all waiting callers with how the connection ended, and closes the queue.
fn end(queue: &Queue, shared: &ConnectionState, how: Result<(), Error>) {
    shared.end(how);
    queue.close(None);
    // Dropping the unsent rows answers their callers with an error.
    let unsent = queue.take(Instant::now());
    shared.lose(unsent.given_up.saturating_add(unsent.rows.len() as u64));
}

/// Takes the recorder's answers until the connection ends.
fn read(queue: &Arc<Queue>, shared: &ConnectionState, socket: &UnixStream) -> Result<(), Error> {
    let mut from = BufReader::new(Watched {
        queue,
        shared,
        socket,
        looked: Instant::now(),
        is_lost: false,
    });
    let failed = |what: String| Err(Error::Recorder(what.into()));
    loop {
        match AnswerFrame::read(&mut from) {
            Ok(Some(AnswerFrame::Ready)) => {}
            Ok(Some(AnswerFrame::To { id, outcome })) => {
                if let Some(undo) = shared.answer(id, outcome) {
                    queue.put(*undo);
                }
            }
            Ok(Some(AnswerFrame::Closed { outcome, written })) => {
                shared.wrote(written);
                outcome?;
                return match queue.is_closing() {
                    true => Ok(()),
                    false => failed(ENDED.to_owned()),
                };
            }
            Ok(Some(AnswerFrame::Unusable(problem))) => return failed(problem),
            Err(FrameError::Io(_)) if from.get_ref().is_lost => {
                return failed(format!("it has not answered for {} s", LOST.as_secs()));
            }
            Ok(None) | Err(FrameError::Io(_)) => return failed(ENDED.to_owned()),
            Err(error) => return failed(error.to_string()),
        }
    }
}

/// The socket for reading. It also checks regularly, while nothing can be read, whether callers
/// have waited too long; they get an error.
struct Watched<'a> {
    queue: &'a Queue,
    shared: &'a ConnectionState,
    socket: &'a UnixStream,
    looked: Instant,
    is_lost: bool,
}

impl Watched<'_> {
    fn look(&mut self) -> std::io::Result<()> {
        let now = Instant::now();
        if now.saturating_duration_since(self.looked) < LOOK_INTERVAL {
            return Ok(());
        }
        self.looked = now;
        let answering = self.shared.look(now);
        self.queue.set_silent(answering != Answering::InTime);
        self.is_lost = answering == Answering::Never;
        match self.is_lost {
            true => Err(ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        loop {
            self.look()?;
            match self.socket.read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

impl Recorder for Remote {
    fn append(&self, entry: Entry, durability: Durability) -> Pending {
        self.ask(|queue| queue.append(entry, durability))
    }

    fn flush(&self) -> Pending {
        self.ask(|queue| queue.flush())
    }

    fn given(&self, given: Given) -> Pending {
        self.ask(|queue| queue.given(given))
    }

    fn keeps(&self, kind: PayloadKind, matters: bool) -> usize {
        match self.keep.keeps(kind, matters) {
            true => self.limits.each.min(super::MAX_PAYLOAD_BYTES),
            false => 0,
        }
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("problem", &self.problem())
            .finish_non_exhaustive()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Ends the threads. Unsent rows are lost; call `close` first to have them written.
        self.queue.close(None);
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// How long the sending thread sleeps while it has nothing to send. It is woken earlier if needed.
const IDLE: Duration = Duration::from_secs(3600);

/// How often the recorder is asked whether rows are on the disk, while only rows without waiting
/// callers are sent. Without this question, a hanging recorder would not be noticed.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// An entry to be sent, with the number of its answer if a caller waits.
type Registered = (Option<u64>, Box<Entry>);

/// The thread that sends.
struct Sender<'a> {
    shared: &'a ConnectionState,
    to: BufWriter<&'a UnixStream>,
    /// Whether writing failed. Waiting callers get the reason from the reading thread.
    broken: bool,
    /// When the recorder was last asked for an answer.
    asked: Instant,
}

impl Sender<'_> {
    /// Sends the contents of the queue until it is closed.
    fn run(&mut self, queue: &Queue) {
        loop {
            let batch = queue.take(Instant::now() + IDLE);
            self.shared.sends(true);
            if batch.given_up > 0 {
                self.missing(batch.given_up);
            }
            let mut written = 0_u64;
            // All rows are registered before any is sent, since the recorder may stop reading at
            // any row.
            let rows = batch.rows.into_iter().map(|row| self.register(row));
            for row in rows.collect::<Vec<_>>() {
                match row.is_some_and(|row| self.append(row)) {
                    true => written = written.saturating_add(1),
                    false => self.shared.lose(1),
                }
            }
            for (given, reply) in batch.questions {
                self.ask(reply, |id| RequestFrame::Given { id, given });
            }
            for reply in batch.flushes {
                self.flush(reply);
            }
            if written > 0 && self.asked.elapsed() >= PROBE_INTERVAL {
                self.flush(channel().0);
            }
            if batch.closing {
                self.queue(&RequestFrame::End);
            }
            if !self.broken && self.to.flush().is_err() {
                self.breaks();
            }
            self.shared.sends(false);
            match self.broken {
                true => self.shared.lose(written),
                false => self.shared.sent(written),
            }
            if batch.closing {
                return;
            }
        }
    }

    /// Sends the number of rows that were given up while the queue was full.
    fn missing(&mut self, count: u64) {
        self.shared.lose(count);
        if let Ok(why) = Code::parse(Error::Full.code()) {
            let (missing, since) = (Number::from(count), now());
            let gap = Event::Gap(Gap {
                missing,
                since,
                why,
            });
            self.queue(&RequestFrame::Queue(Box::new(Entry::new(gap))));
        }
    }

    /// Registers the caller that waits for a row; its waiting time starts now. `None` once the
    /// connection has ended.
    fn register(&mut self, row: QueuedRow) -> Option<Registered> {
        let entry = Box::new(row.entry);
        let Some(reply) = row.reply else {
            return Some((None, entry));
        };
        self.asked = Instant::now();
        let undo = entry.not_dispatched().map(Box::new);
        let id = self.shared.register(reply, undo)?;
        Some((Some(id), entry))
    }

    /// Returns whether the row was written; also true if the connection broke.
    fn append(&mut self, (id, entry): Registered) -> bool {
        match id {
            Some(id) if self.shared.withdraw_late(id) => false,
            Some(id) => self.request(id, &RequestFrame::Append { id, entry }),
            None => self.queue(&RequestFrame::Queue(entry)),
        }
    }

    fn flush(&mut self, reply: AnswerSender) {
        self.ask(reply, |id| RequestFrame::Flush { id });
    }

    fn ask(&mut self, waiting: AnswerSender, request: impl FnOnce(u64) -> RequestFrame) {
        self.asked = Instant::now();
        if let Some(id) = self.shared.register(waiting, None) {
            self.request(id, &request(id));
        }
    }

    /// Returns whether the request was written; also true if the connection broke.
    fn request(&mut self, id: u64, request: &RequestFrame) -> bool {
        let written = self.write(request);
        let is_written = written.is_ok();
        if let Err(error) = written {
            self.shared.withdraw(id, error);
        }
        is_written
    }

    /// Returns whether the request was written; also true if the connection broke.
    fn queue(&mut self, request: &RequestFrame) -> bool {
        let written = self.write(request);
        if let Err(error) = &written {
            tracing::warn!(code = error.code(), %error, "a row can't be recorded");
        }
        written.is_ok()
    }

    /// Writes a request. An error means that the request is invalid; the connection stays open.
    fn write(&mut self, request: &RequestFrame) -> Result<(), Error> {
        if self.broken {
            return Ok(());
        }
        match request.write(&mut self.to) {
            Err(error @ Error::Record(_)) => Err(error),
            Err(_) => {
                self.breaks();
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn breaks(&mut self) {
        self.broken = true;
        let _ = self.to.get_ref().shutdown(Shutdown::Both);
    }
}

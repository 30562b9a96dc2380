//! The thread that sends what is in the recording process's queue.

use std::io::{BufWriter, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::BUFFER_BYTES;
use super::frame::RequestFrame;
use super::shared::{ConnectionState, Waiter};
use crate::entry::{Entry, MissingRows, now};
use crate::error::Error;
use crate::record::Event;
use crate::recorder::{AnswerSender, channel};
use crate::writer::queue::{Queue, QueuedRow};

/// How long the sending thread sleeps while there is nothing to send. It is woken before.
const IDLE: Duration = Duration::from_secs(3600);

/// While rows are sent that are not awaited, the recorder is asked this often whether they are on the disk: a recorder
/// that hangs would not be noticed else.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// A row that is about to be sent.
enum Registered {
    /// Its answer has this number.
    Awaited(u64, Box<Entry>),
    Queued(Box<Entry>),
    /// The connection has ended.
    Refused,
}

/// The thread that sends.
pub(super) struct Sender<'a> {
    shared: &'a ConnectionState,
    to: BufWriter<&'a UnixStream>,
    /// Whether writing failed. Who waits hears why from the thread that reads.
    broken: bool,
    /// When the recorder was asked something last.
    asked: Instant,
}

impl<'a> Sender<'a> {
    pub(super) fn new(shared: &'a ConnectionState, to: &'a UnixStream) -> Self {
        Self {
            shared,
            to: BufWriter::with_capacity(BUFFER_BYTES, to),
            broken: false,
            asked: Instant::now(),
        }
    }

    /// Sends what is in the queue until it is closed.
    pub(super) fn run(&mut self, queue: &Queue) {
        loop {
            let batch = queue.take(Instant::now() + IDLE);
            self.shared.sends(true);
            if batch.given_up > 0 {
                self.missing(batch.given_up);
            }
            let mut written = 0_u64;
            // Before any is sent: the recorder may stop reading at each of them.
            let rows = batch.rows.into_iter().map(|row| self.register(row));
            for row in rows.collect::<Vec<_>>() {
                match self.append(row) {
                    true => written = written.saturating_add(1),
                    false => self.shared.lose(1),
                }
            }
            for (given, reply) in batch.questions {
                self.ask(Waiter::Question(reply), |id| RequestFrame::Given {
                    id,
                    given,
                });
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

    /// Rows whose callers waited no more while the queue was full.
    fn missing(&mut self, count: u64) {
        self.shared.lose(count);
        let missing = MissingRows {
            count,
            since: now(),
            why: Error::Full.code(),
        };
        if let Some(gap) = missing.gap() {
            self.queue(&RequestFrame::Queue(Box::new(Entry::new(Event::Gap(gap)))));
        }
    }

    /// Who waits for a row waits from now on.
    fn register(&mut self, row: QueuedRow) -> Registered {
        let entry = Box::new(row.entry);
        let Some(reply) = row.reply else {
            return Registered::Queued(entry);
        };
        self.asked = Instant::now();
        let undo = entry.not_dispatched().map(Box::new);
        match self.shared.register(Waiter::Row(reply), undo) {
            Some(id) => Registered::Awaited(id, entry),
            None => Registered::Refused,
        }
    }

    /// Returns whether it was written, unless the connection broke.
    fn append(&mut self, row: Registered) -> bool {
        match row {
            Registered::Awaited(id, _) if self.shared.withdraw_late(id) => false,
            Registered::Awaited(id, entry) => self.request(id, &RequestFrame::Append { id, entry }),
            Registered::Queued(entry) => self.queue(&RequestFrame::Queue(entry)),
            Registered::Refused => false,
        }
    }

    fn flush(&mut self, reply: AnswerSender<()>) {
        self.ask(Waiter::Row(reply), |id| RequestFrame::Flush { id });
    }

    fn ask(&mut self, waiting: Waiter, request: impl FnOnce(u64) -> RequestFrame) {
        self.asked = Instant::now();
        if let Some(id) = self.shared.register(waiting, None) {
            self.request(id, &request(id));
        }
    }

    /// Returns whether it was written, unless the connection broke.
    fn request(&mut self, id: u64, request: &RequestFrame) -> bool {
        let written = self.write(request);
        let is_written = written.is_ok();
        if let Err(error) = written {
            self.shared.withdraw(id, error);
        }
        is_written
    }

    /// Returns whether it was written, unless the connection broke.
    fn queue(&mut self, request: &RequestFrame) -> bool {
        let written = self.write(request);
        if let Err(error) = &written {
            tracing::warn!(code = error.code(), %error, "a row can't be recorded");
        }
        written.is_ok()
    }

    /// An error is the request's own: the connection holds.
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

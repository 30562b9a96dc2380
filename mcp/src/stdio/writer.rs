//! Writes lines to the client in order: directly if the client reads them, otherwise through a
//! bounded queue and one task. Answers to many calls may wait in the queue for a moment, so that
//! one system call writes several of them, and wakes the client once.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use tokio::io::AsyncWrite;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use toolward_host::{ReadProgress, UnreadResult};
use toolward_support::helper::lock;

use crate::client::UnreadResults;

/// While this many bytes are queued, no more messages are read. So a client that does not read
/// answers fills its own pipe and not the server's memory.
const BACKPRESSURE_BYTES: usize = 16 << 20;
/// A line may be queued if the queue has few bytes, or if the queue with the line stays within this
/// size. Errors and the lines of lists are queued in any case.
const MAX_QUEUED_BYTES: usize = 256 << 20;
/// Memory of a queued line besides its bytes.
const LINE_OVERHEAD_BYTES: usize = 256;
/// Lines are joined while they take less than this together. A joined line is smaller than a result
/// that is counted while the client has not read it.
const JOINED_BYTES: usize = 16 << 10;
/// After this time, lines that wait for others are written as soon as a line is sent or a message
/// is read.
const LONGEST_WAIT: Duration = Duration::from_micros(500);
/// How long the rest of the queue may take when the connection ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes lines, one after the other.
#[derive(Debug)]
pub(super) struct LineWriter<W> {
    /// `None` when it has ended.
    queue: Option<Arc<Mutex<Queue<W>>>>,
    waiting: Arc<QueuedBytes>,
    task: JoinHandle<()>,
    unread: Option<UnreadResults>,
}

/// The output, and the lines that wait for it.
#[derive(Debug)]
struct Queue<W> {
    output: W,
    waiting: Arc<QueuedBytes>,
    lines: VecDeque<QueuedLines>,
    /// Whether the client takes nothing. Then only the task writes, which the output wakes.
    blocked: bool,
    /// Whether no more lines are taken.
    closed: bool,
}

/// A line, or small lines that are written together.
#[derive(Debug)]
struct QueuedLines {
    text: Vec<u8>,
    /// Bytes of `text` that are written already.
    from: usize,
    /// What the lines add to the bytes of the queue.
    cost: usize,
    since: Instant,
    written: Vec<oneshot::Sender<()>>,
    _counted: Option<UnreadResult>,
}

#[derive(Debug, Default)]
struct QueuedBytes {
    bytes: AtomicUsize,
    fewer: Notify,
    /// Wakes the task.
    more: Notify,
    /// How far the client has read.
    progress: ReadProgress,
}

impl QueuedBytes {
    fn ended(&self, cost: usize) {
        let before = self.bytes.fetch_sub(cost, Ordering::Release);
        if before >= BACKPRESSURE_BYTES && before.saturating_sub(cost) < BACKPRESSURE_BYTES {
            self.fewer.notify_one();
        }
    }
}

/// Whether a line has been written, or was joined with others.
pub(super) enum Written {
    Now,
    Later(oneshot::Receiver<()>),
    Never,
}

impl Written {
    pub(super) async fn done(self) -> io::Result<()> {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        match self {
            Self::Now => Ok(()),
            Self::Later(written) => written.await.map_err(|_| closed()),
            Self::Never => Err(closed()),
        }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> LineWriter<W> {
    /// Writes to `output` from now on.
    pub(super) fn to(output: W) -> Self {
        let waiting = Arc::<QueuedBytes>::default();
        let queue = Arc::new(Mutex::new(Queue {
            output,
            waiting: waiting.clone(),
            lines: VecDeque::new(),
            blocked: false,
            closed: false,
        }));
        Self {
            task: tokio::spawn(write(queue.clone(), waiting.clone())),
            queue: Some(queue),
            waiting,
            unread: None,
        }
    }

    /// Counts the results that the client has not read.
    pub(super) fn counting(mut self, unread: Option<UnreadResults>) -> Self {
        self.unread = unread.map(|unread| UnreadResults {
            progress: self.waiting.progress.clone(),
            ..unread
        });
        self
    }

    /// Bytes that wait to be taken by the client.
    pub(super) fn queued_bytes(&self) -> usize {
        self.waiting.bytes.load(Ordering::Relaxed)
    }

    /// Whether a line of this length may wait with the others.
    pub(super) fn has_room(&self, length: usize) -> bool {
        let bytes = self.queued_bytes();
        bytes < JOINED_BYTES || bytes.saturating_add(length) <= MAX_QUEUED_BYTES
    }

    /// Writes a line when its turn comes: now, if the client reads it and the lines before it.
    /// Writing now saves waking the task, which takes longer than writing the line.
    ///
    /// A small line that `may_wait` is joined with the next ones. It waits until the tasks that
    /// were ready before it have been polled, and never for a timer or the end of a call. If these
    /// polls take longer than [`LONGEST_WAIT`], the next line or message after that ends the wait.
    /// So a line waits about half a millisecond and one poll. A poll is short unless it runs a
    /// guest, so a line may wait only while guests run on other threads.
    pub(super) fn write(&self, mut line: Vec<u8>, may_wait: bool) -> Written {
        let queue = self.queue.as_deref().map(lock);
        let Some(mut queue) = queue.filter(|queue| !queue.closed) else {
            return Written::Never;
        };
        let cost = line.len().saturating_add(LINE_OVERHEAD_BYTES);
        let joins = may_wait && self.queued_bytes().saturating_add(cost) < JOINED_BYTES;
        let mut from = 0;
        if (!joins || queue.is_late())
            && let Poll::Ready(written) = queue.poll_now(&line, &mut from)
        {
            return written.map_or(Written::Never, |()| Written::Now);
        }
        // A line that is joined counts as written, since waking its sender again would cost more
        // than it saves: if it can't be written, the connection ends.
        let (written, receiver) = match joins && !queue.blocked {
            true => (None, None),
            false => {
                let (written, receiver) = oneshot::channel();
                (Some(written), Some(receiver))
            }
        };
        self.waiting.bytes.fetch_add(cost, Ordering::Relaxed);
        // While the client takes nothing, a part of the first lines may be written already.
        let blocked = queue.blocked;
        let fixed = usize::from(blocked);
        let last = queue.lines.iter_mut().skip(fixed).next_back();
        if let Some(last) = last.filter(|last| last.cost.saturating_add(cost) < JOINED_BYTES) {
            if blocked {
                last.text.reserve_exact(line.len());
            }
            last.text.append(&mut line);
            last.cost = last.cost.saturating_add(cost);
            last.written.extend(written);
        } else {
            // The limits of the queue would not count spare capacity.
            line.shrink_to_fit();
            let unread = self.unread.as_ref();
            queue.lines.push_back(QueuedLines {
                _counted: unread.and_then(|unread| unread.hold(line.len())),
                text: line,
                from,
                cost,
                since: Instant::now(),
                written: written.into_iter().collect(),
            });
        }
        self.waiting.more.notify_one();
        receiver.map_or(Written::Now, Written::Later)
    }

    /// Writes lines without waiting for them.
    pub(super) fn queue(&self, lines: impl IntoIterator<Item = Vec<u8>>) {
        let lines = lines.into_iter();
        lines.for_each(|line| drop(self.write(line, false)));
    }

    /// Waits until the queue is short enough to read further requests, and writes lines that have
    /// waited too long to be joined.
    pub(super) async fn below_backpressure(&self) {
        let queue = self.queue.as_deref().map(lock);
        if let Some(mut queue) = queue.filter(|queue| queue.is_late()) {
            // An error closes the queue.
            let _ = queue.poll(&mut Context::from_waker(Waker::noop()));
        }
        while self.waiting.bytes.load(Ordering::Relaxed) >= BACKPRESSURE_BYTES {
            self.waiting.fewer.notified().await;
        }
    }

    /// Writes the rest of the queue, and ends.
    pub(super) async fn end(&mut self) {
        if let Some(queue) = self.queue.take() {
            lock(&queue).closed = true;
            self.waiting.more.notify_one();
        }
        let flushed = tokio::time::timeout(FLUSH_TIMEOUT, &mut self.task).await;
        if flushed.is_err() {
            self.task.abort();
        }
    }
}

impl<W> Drop for LineWriter<W> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn write<W: AsyncWrite + Unpin>(queue: Arc<Mutex<Queue<W>>>, waiting: Arc<QueuedBytes>) {
    loop {
        // An error closes the queue.
        let _ = std::future::poll_fn(|context| lock(&queue).poll(context)).await;
        if lock(&queue).closed {
            return;
        }
        waiting.more.notified().await;
    }
}

impl<W: AsyncWrite + Unpin> Queue<W> {
    /// Whether the first line has waited long enough and the client may take it.
    fn is_late(&self) -> bool {
        let late = |first: &QueuedLines| first.since.elapsed() >= LONGEST_WAIT;
        !self.blocked && self.lines.front().is_some_and(late)
    }

    /// Writes all lines and a further one, unless the task must write them.
    fn poll_now(&mut self, line: &[u8], from: &mut usize) -> Poll<io::Result<()>> {
        if self.blocked {
            return Poll::Pending;
        }
        let mut context = Context::from_waker(Waker::noop());
        ready!(self.poll(&mut context))?;
        let polled = poll_line(&mut self.output, &mut context, line, from);
        self.blocked = polled.is_pending();
        polled
    }

    /// Writes all lines, as far as the client takes them. An error ends the queue.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(first) = self.lines.front_mut() {
            let before = first.from;
            let polled = poll_line(&mut self.output, context, &first.text, &mut first.from);
            if first.from > before {
                self.waiting.progress.advance();
            }
            self.blocked = polled.is_pending();
            let written = ready!(polled);
            let ended = if written.is_ok() { 1 } else { self.lines.len() };
            for lines in self.lines.drain(..ended) {
                self.waiting.ended(lines.cost);
                for sender in lines.written.into_iter().filter(|_| written.is_ok()) {
                    // The receiver may be gone.
                    let _ = sender.send(());
                }
            }
            self.closed |= written.is_err();
            written.inspect_err(
                |error| tracing::debug!(%error, "nothing more can be written to the client"),
            )?;
        }
        Poll::Ready(Ok(()))
    }
}

/// Writes the rest of a line, as far as the reader takes it.
fn poll_line<W: AsyncWrite + Unpin>(
    output: &mut W,
    context: &mut Context<'_>,
    line: &[u8],
    from: &mut usize,
) -> Poll<io::Result<()>> {
    let mut output = Pin::new(output);
    while let Some(rest) = line.get(*from..).filter(|rest| !rest.is_empty()) {
        match output.as_mut().poll_write(context, rest) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(count)) => *from = from.saturating_add(count),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
    }
    output.poll_flush(context)
}

#[cfg(test)]
mod tests;

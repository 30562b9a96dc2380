//! Writes lines to the client in order: directly if the client reads them, otherwise through a
//! bounded queue and one task.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::noop_waker_ref;
use tokio::io::AsyncWrite;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use toolward_host::{ReadProgress, UnreadResult};
use toolward_support::helper::lock;

use crate::client::UnreadResults;

/// While this many bytes are queued, no more messages are read. So a client that does not read
/// answers fills its own pipe and not the server's memory.
const BACKPRESSURE_BYTES: usize = 16 << 20;
/// A line may be queued if the queue is empty, or if the queue with the line stays within this
/// size. Errors and the lines of lists are queued in any case.
const MAX_QUEUED_BYTES: usize = 256 << 20;
/// Memory of a queued line besides its bytes.
const LINE_OVERHEAD_BYTES: usize = 256;
/// Lines that are taken from the queue at once.
const BATCH_LINES: usize = 64;
/// How long the rest of the queue may take when the connection ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes lines, one after the other.
#[derive(Debug)]
pub(super) struct LineWriter<W> {
    /// `None` when it has ended.
    open: Option<Open<W>>,
    waiting: Arc<QueuedBytes>,
    task: JoinHandle<()>,
    unread: Option<UnreadResults>,
}

#[derive(Debug)]
struct Open<W> {
    output: Arc<Mutex<W>>,
    queue: mpsc::UnboundedSender<QueuedLine>,
}

#[derive(Debug)]
struct QueuedLine {
    /// Without spare capacity, which the limits of the queue would not count.
    line: Box<[u8]>,
    /// Bytes of `line` that are written already.
    from: usize,
    written: oneshot::Sender<()>,
    _counted: Option<UnreadResult>,
}

#[derive(Debug, Default)]
struct QueuedBytes {
    bytes: AtomicUsize,
    fewer: Notify,
    /// How far the client has read.
    progress: ReadProgress,
}

impl QueuedBytes {
    fn ended(&self, line: &[u8]) {
        let cost = line.len().saturating_add(LINE_OVERHEAD_BYTES);
        let before = self.bytes.fetch_sub(cost, Ordering::Release);
        if before >= BACKPRESSURE_BYTES && before.saturating_sub(cost) < BACKPRESSURE_BYTES {
            self.fewer.notify_one();
        }
    }
}

/// Whether a line has been written.
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
        let (queue, lines) = mpsc::unbounded_channel();
        let output = Arc::new(Mutex::new(output));
        let waiting = Arc::<QueuedBytes>::default();
        let task = tokio::spawn(write(output.clone(), lines, waiting.clone()));
        Self {
            open: Some(Open { output, queue }),
            waiting,
            task,
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
        bytes == 0 || bytes.saturating_add(length) <= MAX_QUEUED_BYTES
    }

    /// Writes a line when its turn comes: now, if no other line waits and the client reads it.
    /// Writing now saves waking the task, which takes longer than writing the line.
    pub(super) fn write(&self, line: Vec<u8>) -> Written {
        let Some(Open { output, queue }) = &self.open else {
            return Written::Never;
        };
        let mut from = 0;
        // If nothing is queued, the task does not write at the same time.
        if self.waiting.bytes.load(Ordering::Acquire) == 0 {
            let mut context = Context::from_waker(noop_waker_ref());
            match poll_line(output, &mut context, &line, &mut from) {
                Poll::Ready(Ok(())) => return Written::Now,
                Poll::Ready(Err(_)) => return Written::Never,
                Poll::Pending => {}
            }
        }
        let (written, receiver) = oneshot::channel();
        let cost = line.len().saturating_add(LINE_OVERHEAD_BYTES);
        self.waiting.bytes.fetch_add(cost, Ordering::Relaxed);
        let unread = self.unread.as_ref();
        let queued = QueuedLine {
            _counted: unread.and_then(|unread| unread.hold(line.len())),
            line: line.into_boxed_slice(),
            from,
            written,
        };
        match queue.send(queued) {
            Ok(()) => Written::Later(receiver),
            Err(error) => {
                self.waiting.ended(&error.0.line);
                Written::Never
            }
        }
    }

    /// Writes lines without waiting for them.
    pub(super) fn queue(&self, lines: impl IntoIterator<Item = Vec<u8>>) {
        lines.into_iter().for_each(|line| drop(self.write(line)));
    }

    /// Waits until the queue is short enough to read further requests.
    pub(super) async fn below_backpressure(&self) {
        while self.waiting.bytes.load(Ordering::Relaxed) >= BACKPRESSURE_BYTES {
            self.waiting.fewer.notified().await;
        }
    }

    /// Writes the rest of the queue, and ends.
    pub(super) async fn end(&mut self) {
        self.open = None;
        if tokio::time::timeout(FLUSH_TIMEOUT, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
        }
    }
}

impl<W> Drop for LineWriter<W> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn write<W: AsyncWrite + Unpin>(
    output: Arc<Mutex<W>>,
    mut queue: mpsc::UnboundedReceiver<QueuedLine>,
    waiting: Arc<QueuedBytes>,
) {
    let mut lines = Vec::with_capacity(BATCH_LINES);
    let mut written = Ok(());
    while queue.recv_many(&mut lines, BATCH_LINES).await > 0 {
        for mut queued in lines.drain(..) {
            if written.is_ok() {
                let (line, from) = (&queued.line, &mut queued.from);
                written = std::future::poll_fn(|context| {
                    let before = *from;
                    let polled = poll_line(&output, context, line, from);
                    if *from > before {
                        waiting.progress.advance();
                    }
                    polled
                })
                .await;
                if let Err(error) = &written {
                    tracing::debug!(%error, "nothing more can be written to the client");
                    // Sending from now on fails at once.
                    queue.close();
                }
            }
            waiting.ended(&queued.line);
            if written.is_ok() {
                // The receiver may be gone.
                let _ = queued.written.send(());
            }
        }
    }
}

/// Writes the rest of a line, as far as the reader takes it.
fn poll_line<W: AsyncWrite + Unpin>(
    output: &Mutex<W>,
    context: &mut Context<'_>,
    line: &[u8],
    from: &mut usize,
) -> Poll<io::Result<()>> {
    let mut output = lock(output);
    let mut output = Pin::new(&mut *output);
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
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn lines_are_written_in_order_and_the_last_one_before_the_end() {
        let (output, mut input) = tokio::io::duplex(16);
        let mut writer = LineWriter::to(output);
        let first = writer.write(b"one\n".to_vec());
        let all = tokio::spawn(async move {
            let mut text = String::new();
            input.read_to_string(&mut text).await.map(|_| text)
        });
        for number in 0..100 {
            let _ = writer.write(format!("{number}\n").into_bytes());
        }
        first.done().await.unwrap();
        writer.end().await;
        let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(all.await.unwrap().unwrap(), "one\n".to_owned() + &expected);
        assert!(writer.write(b"late".to_vec()).done().await.is_err());
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_gets_no_more_than_there_is_room_for() {
        let (output, mut input) = tokio::io::duplex(4 << 10);
        let writer = LineWriter::to(output);
        let _large = writer.write(vec![b'x'; BACKPRESSURE_BYTES]);
        let waits = tokio::time::timeout(Duration::from_millis(100), writer.below_backpressure());
        assert!(waits.await.is_err());
        assert!(writer.has_room(1 << 20) && !writer.has_room(MAX_QUEUED_BYTES));
        let reading = tokio::spawn(async move {
            let mut bytes = vec![0; BACKPRESSURE_BYTES];
            input.read_exact(&mut bytes).await.map(|_| input)
        });
        tokio::time::timeout(Duration::from_secs(20), writer.below_backpressure())
            .await
            .unwrap();
        let input = reading.await.unwrap().unwrap();
        // A single message is written, however large.
        while !writer.has_room(MAX_QUEUED_BYTES) {
            tokio::task::yield_now().await;
        }
        drop(input);
        assert!(writer.write(b"more".to_vec()).done().await.is_err());
        tokio::time::timeout(Duration::from_secs(20), writer.below_backpressure())
            .await
            .unwrap();
    }
}

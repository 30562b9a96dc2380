//! Standard error. A process that serves writes to it from a separate thread, so that nothing waits
//! for a reader that does not read.
//!
//! `tracing-appender` can't replace this: it limits lines instead of bytes, does not report what it
//! drops, and prints at the end even if the reader has not read by then.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use toolward_operator::RUNTIME_THREAD;

use crate::failure::{Failure, Result};

/// How many bytes may wait for the reader.
const MAX_BACKLOG_BYTES: usize = 256 * 1024;
/// How long the process waits for the reader at its end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Set as soon as a thread writes the queue.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();

/// Writes lines.
pub(crate) fn write(text: String) {
    match QUEUE.get() {
        Some(queue) => queue.add(text),
        None => at_once(&mut std::io::stderr(), &text),
    }
}

/// Makes writing non-blocking from now on. Call it after the process is confined, since a thread
/// that exists before that would not be confined. If the thread can't be started, returns the
/// error, and lines are still written directly.
pub(crate) fn detach() -> Result {
    let queue = Arc::<Queue>::default();
    std::thread::Builder::new()
        .name("stderr".to_owned())
        .spawn({
            let queue = queue.clone();
            move || queue.run(&mut std::io::stderr())
        })
        .map_err(Failure::runtime)?;
    let _ = QUEUE.set(queue);
    // Reporting a panic must not block the thread that panicked either.
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        if name == RUNTIME_THREAD {
            return;
        }
        let place = panic.location();
        let place = place.map_or_else(String::new, |place| format!(" at {place}"));
        let what = panic.payload_as_str().unwrap_or("it does not say why");
        let shown = toolward_bundle::text::visible_line(what, 4000);
        write(format!("thread `{name}` panicked{place}: {shown}\n"));
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            write(format!("{trace}\n"));
        }
        // The process ends with this thread, and no other thread waits for the report.
        if name == "main" {
            finish();
        }
    }));
    Ok(())
}

/// Waits, for a limited time, until the reader has read everything.
pub(crate) fn finish() {
    if let Some(queue) = QUEUE.get() {
        queue.finish(FLUSH_TIMEOUT);
    }
}

fn at_once(out: &mut impl Write, text: &str) {
    // A failure can't be reported any more.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The texts that wait to be written.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    texts: VecDeque<String>,
    bytes: usize,
    /// How many texts were dropped for lack of room.
    dropped: u64,
    /// Whether a text is being written.
    writing: bool,
}

impl Queue {
    fn add(&self, text: String) {
        let mut waiting = self.lock();
        let bytes = waiting.bytes.saturating_add(text.len());
        if bytes > MAX_BACKLOG_BYTES {
            waiting.dropped = waiting.dropped.saturating_add(1);
            return;
        }
        waiting.bytes = bytes;
        waiting.texts.push_back(text);
        drop(waiting);
        self.changed.notify_all();
    }

    /// Writes each text that arrives, forever.
    fn run(&self, out: &mut impl Write) {
        loop {
            let text = self.next();
            at_once(out, &text);
            self.lock().writing = false;
            self.changed.notify_all();
        }
    }

    /// Returns the next text. After the queued texts it reports how many were dropped.
    fn next(&self) -> String {
        let mut waiting = self.lock();
        while waiting.texts.is_empty() && waiting.dropped == 0 {
            let changed = self.changed.wait(waiting);
            waiting = changed.unwrap_or_else(PoisonError::into_inner);
        }
        waiting.writing = true;
        if let Some(text) = waiting.texts.pop_front() {
            waiting.bytes = waiting.bytes.saturating_sub(text.len());
            return text;
        }
        let dropped = std::mem::take(&mut waiting.dropped);
        format!("warning: {dropped} messages were left out, since nobody read in time\n")
    }

    fn finish(&self, patience: Duration) {
        let busy =
            |waiting: &mut Waiting| waiting.writing || waiting.dropped > 0 || waiting.bytes > 0;
        let waiting = self.lock();
        drop(self.changed.wait_timeout_while(waiting, patience, busy));
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A reader that reads nothing until it is released.
    struct Stuck(Receiver<()>, Sender<String>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            let text = String::from_utf8_lossy(bytes).into_owned();
            let _ = self.1.send(text);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_reader_that_does_not_read_and_what_it_misses_is_counted() {
        let queue = Arc::new(Queue::default());
        let (let_it, allowed) = channel();
        let (read, reading) = channel();
        std::thread::spawn({
            let queue = queue.clone();
            move || queue.run(&mut Stuck(allowed, read))
        });
        let line = |number: usize| format!("{number:>1023}\n");
        let room = MAX_BACKLOG_BYTES / 1024;
        // One line is being written before the others arrive, and takes no room from them.
        queue.add(line(0));
        while !queue.lock().writing {
            std::thread::yield_now();
        }
        for number in 1..room + 101 {
            queue.add(line(number));
        }
        queue.finish(Duration::from_millis(50));
        drop(let_it);
        let mut lines: Vec<String> = Vec::new();
        loop {
            let text = reading.recv_timeout(Duration::from_secs(20)).unwrap();
            lines.push(text);
            if lines.last().unwrap().starts_with("warning") {
                break;
            }
        }
        let dropped = lines.pop().unwrap();
        assert_eq!(lines.len(), room + 1);
        assert!(dropped.contains(" 100 messages "), "{dropped}");
        for (number, text) in lines.iter().enumerate() {
            assert_eq!(*text, line(number));
        }
        queue.finish(Duration::from_secs(20));
        queue.add("after".to_owned());
        let after = reading.recv_timeout(Duration::from_secs(20));
        assert_eq!(after.unwrap(), "after");
    }
}

//! Reads lines of bounded length from a stream.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes of one read, at most.
const READ_CHUNK_BYTES: u64 = 64 << 10;

/// Room for what is read, at least.
const MIN_BUFFER_BYTES: usize = 4 << 10;

/// A line with its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(BytesMut),
    /// The beginning of a line that is too long. The rest is skipped.
    TooLong(BytesMut),
}

/// Reads lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    longest: usize,
    /// What was read and not yet handed on.
    buffer: BytesMut,
    /// The number of its bytes that are known to contain no line end.
    scanned: usize,
    /// Whether the rest of a line that is too long is being skipped.
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `longest` bytes.
    pub(super) fn new(input: R, longest: usize) -> Self {
        Self {
            input,
            longest,
            buffer: BytesMut::new(),
            scanned: 0,
            skipping: false,
        }
    }

    /// The next line that is not empty; `None` at the end. Text without a line end is
    /// not a line. Cancel safe.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let new = self.buffer.get(self.scanned..).unwrap_or_default();
            if let Some(at) = new.iter().position(|byte| *byte == b'\n') {
                let end = self.scanned.saturating_add(at).saturating_add(1);
                let line = self.buffer.split_to(end);
                self.scanned = 0;
                if std::mem::take(&mut self.skipping) || line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(match line.len() > self.longest {
                    true => Line::TooLong(line),
                    false => Line::Whole(line),
                }));
            }
            if self.skipping {
                self.buffer.clear();
            } else if self.buffer.len() > self.longest {
                self.skipping = true;
                self.scanned = 0;
                return Ok(Some(Line::TooLong(self.buffer.split())));
            }
            self.scanned = self.buffer.len();
            self.buffer.reserve(MIN_BUFFER_BYTES);
            let mut some = (&mut self.input).take(READ_CHUNK_BYTES);
            if some.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &str, longest: usize) -> Vec<(bool, String)> {
        let mut lines = Lines::new(text.as_bytes(), longest);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            let (whole, bytes) = match line {
                Line::Whole(bytes) => (true, bytes),
                Line::TooLong(bytes) => (false, bytes),
            };
            all.push((whole, String::from_utf8(bytes.to_vec()).unwrap()));
        }
        all
    }

    #[tokio::test]
    async fn each_line_is_read_and_what_has_no_end_is_none() {
        let read = all("a\n\n  \r\nbc\r\nd", 10).await;
        assert_eq!(read, [(true, "a\n".into()), (true, "bc\r\n".into())]);
    }

    #[tokio::test]
    async fn what_is_too_long_is_told_once_and_the_next_line_is_read() {
        let long = "x".repeat(300 << 10);
        let read = all(&format!("{long}\nok\n{long}{long}\nok\n"), 200 << 10).await;
        let whole: Vec<bool> = read.iter().map(|(whole, _)| *whole).collect();
        assert_eq!(whole, [false, true, false, true]);
        assert_eq!(read[3].1, "ok\n");
        // What is kept of it is bounded, too.
        assert!(read[2].1.len() < 300 << 10, "{}", read[2].1.len());
    }
}

//! Standard output and error of a guest: kept in memory up to a limit, and never written to the
//! host's own streams.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use toolward_policy::LimitName;
use toolward_support::helper::lock;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use crate::exceeded::Exceeded;
use crate::held::Shared;

/// One captured stream; clones share the same bytes.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    capacity: u64,
    bytes: Arc<Mutex<Vec<u8>>>,
    held: Shared,
}

/// The most bytes that one write accepts, which bounds the bytes that the host copies at a time.
const CHUNK: usize = 64 << 10;

impl Capture {
    pub(crate) fn new(capacity: u64, held: Shared) -> Self {
        Self {
            capacity,
            bytes: Arc::default(),
            held,
        }
    }

    /// Takes the captured output as text. Invalid UTF-8 is replaced.
    pub(crate) fn take(&self) -> String {
        let bytes = std::mem::take(&mut *lock(&self.bytes));
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }

    fn append(&self, new: &[u8]) -> Result<(), Exceeded> {
        // Counts the bytes twice, since the buffer doubles as it grows.
        self.held.keep((new.len() as u64).saturating_mul(2));
        let mut bytes = lock(&self.bytes);
        let room = usize::try_from(self.capacity)
            .unwrap_or(usize::MAX)
            .saturating_sub(bytes.len());
        let used = bytes.len().saturating_add(new.len()) as u64;
        // Keeps the bytes that fit, since they often show what went wrong.
        bytes.extend_from_slice(new.get(..room).unwrap_or(new));
        match used > self.capacity {
            true => Err(Exceeded::new(LimitName::Stdio, used, self.capacity)),
            false => Ok(()),
        }
    }
}

impl IsTerminal for Capture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Capture {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        // Only WASI 0.3 uses this, and the host links 0.2.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Capture {
    async fn ready(&mut self) {}
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Capture {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.append(&bytes)
            .map_err(|exceeded| StreamError::Trap(exceeded.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_the_cap_are_refused_and_those_before_it_kept() {
        let capture = Capture::new(4, Shared::default());
        capture.append(b"abc").expect("fits");
        let exceeded = capture.append(b"def").expect_err("does not fit");
        assert_eq!((exceeded.used, exceeded.allowed), (6, 4));
        assert_eq!(capture.take(), "abcd");
    }

    #[test]
    fn exactly_the_cap_is_allowed() {
        let capture = Capture::new(4, Shared::default());
        capture.append(b"abcd").expect("fits");
        assert_eq!(capture.take(), "abcd");
    }
}

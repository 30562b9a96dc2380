//! Reading and writing a file as a stream. At most one operation of a stream runs at a time.
//! Nothing is buffered beyond the bytes of that operation.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi::runtime::AbortOnDropJoinHandle;

use super::counters::Slot;
use super::file::{OpenFile, Position};
use super::{CHUNK, FILE_STREAM, Fail, run_blocking, start_blocking};

/// The number of bytes that are read if the guest waits for data without having requested any.
const AHEAD: usize = 4096;

/// Reads a file from a position on.
pub(super) struct Reader {
    file: Arc<OpenFile>,
    position: u64,
    state: Reading,
    _slot: Slot,
}

enum Reading {
    Idle,
    UnderWay(AbortOnDropJoinHandle<Result<Vec<u8>, Fail>>),
    Read(Bytes),
    Failed(Fail),
    Ended,
}

impl Reader {
    pub(super) fn new(file: Arc<OpenFile>, position: u64) -> Result<Self, Fail> {
        file.readable()?;
        let slot = file.shared.open(FILE_STREAM)?;
        Ok(Self {
            file,
            position,
            state: Reading::Idle,
            _slot: slot,
        })
    }

    fn work(&self, size: usize) -> impl FnOnce() -> Result<Vec<u8>, Fail> + Send + 'static {
        let (file, position) = (self.file.clone(), self.position);
        move || file.read_at(size, position)
    }

    fn start(&mut self, size: usize) {
        let task = start_blocking(self.file.shared.threads(), self.work(size));
        self.state = Reading::UnderWay(task);
    }

    fn take_in(&mut self, result: Result<Vec<u8>, Fail>) {
        self.state = match result {
            Ok(bytes) if bytes.is_empty() => Reading::Ended,
            Ok(bytes) => Reading::Read(bytes.into()),
            Err(fail) => Reading::Failed(fail),
        };
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {
        if matches!(self.state, Reading::Idle) {
            self.start(AHEAD);
        }
        if let Reading::UnderWay(task) = &mut self.state {
            let result = task.await;
            self.take_in(result);
        }
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match &mut self.state {
            Reading::Idle => {
                if size > 0 {
                    self.start(size);
                }
                Ok(Bytes::new())
            }
            Reading::UnderWay(_) => Ok(Bytes::new()),
            Reading::Read(bytes) => {
                let part = bytes.split_to(bytes.len().min(size));
                self.position = self.position.saturating_add(part.len() as u64);
                if bytes.is_empty() {
                    self.state = Reading::Idle;
                }
                Ok(part)
            }
            Reading::Failed(fail) => {
                let error = failed(*fail);
                self.state = Reading::Ended;
                Err(error)
            }
            Reading::Ended => Err(StreamError::Closed),
        }
    }

    /// If no operation is running, reads the requested bytes in one step.
    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        if matches!(self.state, Reading::Idle) && size > 0 {
            let work = self.work(size);
            let result = run_blocking(self.file.shared.threads(), work).await;
            self.take_in(result);
        } else {
            self.ready().await;
        }
        self.read(size)
    }
}

/// Writes a file from a position on, or at its end.
pub(super) struct Writer {
    file: Arc<OpenFile>,
    position: Position,
    state: Writing,
    _slot: Slot,
}

enum Writing {
    Idle,
    UnderWay {
        task: AbortOnDropJoinHandle<Result<(), Fail>>,
        length: u64,
    },
    Failed(Fail),
    Ended,
}

impl Writer {
    pub(super) fn new(file: Arc<OpenFile>, position: Position) -> Result<Self, Fail> {
        file.writable()?;
        let slot = file.shared.open(FILE_STREAM)?;
        Ok(Self {
            file,
            position,
            state: Writing::Idle,
            _slot: slot,
        })
    }

    fn work(&self, bytes: Bytes) -> impl FnOnce() -> Result<(), Fail> + Send + 'static {
        let (file, position) = (self.file.clone(), self.position);
        move || {
            file.write_to(position, &bytes).inspect_err(|fail| {
                if let Fail::Exceeded(exceeded) = fail {
                    // Only the first exceeded limit is kept.
                    let _ = file.shared.exceeded.set(*exceeded);
                }
            })
        }
    }

    fn take_in(&mut self, result: Result<(), Fail>, length: u64) {
        self.state = match result {
            Ok(()) => Writing::Idle,
            Err(fail) => Writing::Failed(fail),
        };
        if let Position::At(offset) = &mut self.position {
            *offset = offset.saturating_add(length);
        }
    }

    /// Whether a write may start. Returns the error of the last write once.
    fn idle(&mut self) -> StreamResult<bool> {
        match self.state {
            Writing::Idle => Ok(true),
            Writing::UnderWay { .. } => Ok(false),
            Writing::Failed(fail) => {
                self.state = Writing::Ended;
                Err(failed(fail))
            }
            Writing::Ended => Err(StreamError::Closed),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {
        if let Writing::UnderWay { task, length } = &mut self.state {
            let length = *length;
            let result = task.await;
            self.take_in(result, length);
        }
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if !self.idle()? || bytes.len() > CHUNK {
            return Err(StreamError::trap(
                "a write of more than `check-write` allowed",
            ));
        }
        let length = bytes.len() as u64;
        let task = start_blocking(self.file.shared.threads(), self.work(bytes));
        self.state = Writing::UnderWay { task, length };
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.idle().map(|_| ())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(if self.idle()? { CHUNK } else { 0 })
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.ready().await;
        self.idle()?;
        let length = bytes.len() as u64;
        let result = run_blocking(self.file.shared.threads(), self.work(bytes)).await;
        self.take_in(result, length);
        self.idle().map(|_| ())
    }

    /// Accepted data is written even if the guest drops the stream.
    async fn cancel(&mut self) {
        self.ready().await;
    }
}

/// The stream's error for a failure. The guest reads its code through `filesystem-error-code`.
fn failed(fail: Fail) -> StreamError {
    let code: ErrorCode = match fail {
        Fail::Exceeded(exceeded) => return StreamError::Trap(exceeded.into()),
        Fail::Code(code) | Fail::Refused(code) => code,
    };
    StreamError::LastOperationFailed(code.into())
}

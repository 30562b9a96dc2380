//! One client on standard input and output.

mod lines;
mod transport;
mod writer;

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::service::QuitReason;
use rmcp::{ServerHandler, ServiceExt as _};
use rustix::fs::{FileType, Mode, OFlags};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use transport::StdioTransport;

/// Why serving on standard input and output failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdioError {
    /// A stream can't be used.
    #[error("standard input and output can't be used: {0}")]
    Stream(#[from] std::io::Error),
    /// The client sent no valid opening.
    #[error("the client began with no request that opens a connection: {0}")]
    Opening(String),
    /// The task that served the connection failed.
    #[error("the connection failed: {0}")]
    Failed(String),
}

impl StdioError {
    /// The stable code of this error, as the book lists it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Stream(_) => "stdio-unusable",
            Self::Opening(_) => "stdio-opening",
            Self::Failed(_) => "stdio-failed",
        }
    }
}

/// The process's standard input and output, taken for the protocol: whatever
/// else is printed afterwards goes to standard error.
#[derive(Debug)]
pub struct Streams {
    input: OwnedFd,
    output: OwnedFd,
}

impl Streams {
    /// Takes them. To be called before the process confines itself.
    ///
    /// # Errors
    ///
    /// When a stream is closed, or can't be duplicated.
    pub fn take() -> std::io::Result<Self> {
        let input = own(std::io::stdin().as_fd(), OFlags::RDONLY)?;
        let output = own(std::io::stdout().as_fd(), OFlags::WRONLY)?;
        rustix::stdio::dup2_stdout(std::io::stderr())?;
        Ok(Self { input, output })
    }

    /// Two ends of pipes, or anything else that can be read and written: for a
    /// program whose client is not at its standard streams. What comes from a pipe
    /// or goes into one should not block.
    #[must_use]
    pub fn of(input: OwnedFd, output: OwnedFd) -> Self {
        Self { input, output }
    }
}

/// A descriptor of our own for a stream: for a pipe one that doesn't block, and
/// leaves those who share the pipe as they are.
fn own(stream: std::os::fd::BorrowedFd<'_>, direction: OFlags) -> std::io::Result<OwnedFd> {
    use std::os::fd::AsRawFd as _;
    if is_pipe(stream) {
        let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let flags = direction | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(opened) = rustix::fs::open(path, flags, Mode::empty()) {
            return Ok(opened);
        }
    }
    stream.try_clone_to_owned()
}

fn is_pipe(stream: std::os::fd::BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(stream).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_fifo())
}

fn is_nonblocking(stream: &OwnedFd) -> bool {
    is_pipe(stream.as_fd())
        && rustix::fs::fcntl_getfl(stream).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK))
}

/// Serves the client at `streams` with this handler, made by
/// [`Service::connection`](crate::Service::connection), until it closes its end, or
/// until `shutdown`. Calls that run when it closes have some seconds to end.
///
/// # Errors
///
/// [`StdioError`].
pub async fn serve<H: ServerHandler>(
    handler: H,
    streams: Streams,
    shutdown: CancellationToken,
) -> Result<(), StdioError> {
    let input = match is_nonblocking(&streams.input) {
        true => Input::Pipe(pipe::Receiver::from_owned_fd(streams.input)?),
        false => Input::Other(tokio::fs::File::from_std(File::from(streams.input))),
    };
    let output = match is_nonblocking(&streams.output) {
        true => Output::Pipe(pipe::Sender::from_owned_fd(streams.output)?),
        false => Output::Other(tokio::fs::File::from_std(File::from(streams.output))),
    };
    let transport = StdioTransport::new(input, output);
    let running = match handler.serve_with_ct(transport, shutdown).await {
        Ok(running) => running,
        // It went away, or we did, before anything was asked.
        Err(
            rmcp::service::ServerInitializeError::ConnectionClosed(_)
            | rmcp::service::ServerInitializeError::Cancelled,
        ) => return Ok(()),
        Err(error) => return Err(StdioError::Opening(error.to_string())),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(StdioError::Failed(error.to_string())),
        Ok(_) => Ok(()),
    }
}

enum Input {
    Pipe(pipe::Receiver),
    Other(tokio::fs::File),
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(context, buffer),
            Self::Other(file) => Pin::new(file).poll_read(context, buffer),
        }
    }
}

enum Output {
    Pipe(pipe::Sender),
    Other(tokio::fs::File),
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_write(context, bytes),
            Self::Other(file) => Pin::new(file).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_flush(context),
            Self::Other(file) => Pin::new(file).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_shutdown(context),
            Self::Other(file) => Pin::new(file).poll_shutdown(context),
        }
    }
}

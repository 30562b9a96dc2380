//! One client on standard input and output.

mod answers;
mod batches;
mod lines;
mod read_ahead;
mod transport;
mod writer;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::{ServerHandler, ServiceExt as _};
use rustix::fs::{FileType, Mode, OFlags};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use toolward_host::{ReadProgress, SharedState};
use toolward_support::report::codes;

use crate::client::UnreadResults;
use read_ahead::CallThreads;
use transport::StdioTransport;
use writer::LineWriter;

const START: &str = "start it from an MCP client: `toolward mcp config` prints the lines for one";

codes! {
    /// Why serving on standard input and output failed.
    ///
    /// ```no_run
    /// use toolward_mcp::Service;
    /// use toolward_mcp::stdio::{self, StdioError, Streams};
    ///
    /// async fn serve(service: &Service) -> Result<(), StdioError> {
    ///     let streams = Streams::take()?;
    ///     match stdio::serve(service.connection(None), streams, Default::default()).await {
    ///         Err(StdioError::Opening(problem)) => {
    ///             eprintln!("not a client of MCP: {problem}");
    ///             Ok(())
    ///         }
    ///         ended => ended,
    ///     }
    /// }
    /// ```
    #[derive(Debug)]
    pub enum StdioError: Error {
        Stream(source: std::io::Error) = "stdio-unusable", "standard input or output can't be used",
            ("standard input and output can't be used: {source}") => START;
        Opening(problem: String) = "stdio-opening", "the client's first message does not open a connection",
            ("the client began with no request that opens a connection: {problem}") => START;
        Failed(problem: String) = "stdio-failed", "the connection to the client failed",
            ("the connection failed: {problem}") => START;
    }
}

impl From<std::io::Error> for StdioError {
    fn from(error: std::io::Error) -> Self {
        Self::Stream(error)
    }
}

/// The process's standard input and output, reserved for the protocol. Anything that is printed
/// afterwards goes to standard error.
#[derive(Debug)]
pub struct Streams {
    input: OwnedFd,
    output: OwnedFd,
}

impl Streams {
    /// Takes the standard streams. Call this function before the process confines itself.
    ///
    /// # Errors
    ///
    /// If a stream is closed or can't be duplicated.
    pub fn take() -> std::io::Result<Self> {
        let input = own(std::io::stdin().as_fd(), OFlags::RDONLY)?;
        let output = own(std::io::stdout().as_fd(), OFlags::WRONLY)?;
        rustix::stdio::dup2_stdout(std::io::stderr())?;
        Ok(Self { input, output })
    }

    /// Streams for a client at other descriptors, for example pipes. The descriptors should be
    /// non-blocking.
    #[must_use]
    pub fn of(input: OwnedFd, output: OwnedFd) -> Self {
        Self { input, output }
    }
}

/// Opens a separate descriptor for a stream, without changing the descriptors of other processes.
/// For a pipe the new descriptor is non-blocking. For a terminal it blocks, even if another process
/// has made the terminal non-blocking. Any other stream is only duplicated.
fn own(stream: std::os::fd::BorrowedFd<'_>, direction: OFlags) -> std::io::Result<OwnedFd> {
    use std::os::fd::AsRawFd as _;
    let kind = rustix::fs::fstat(stream).map(|stat| FileType::from_raw_mode(stat.st_mode));
    let blocking = match kind {
        Ok(FileType::Fifo) => OFlags::NONBLOCK,
        Ok(FileType::CharacterDevice) => OFlags::NOCTTY,
        _ => return stream.try_clone_to_owned(),
    };
    let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
    let opened = rustix::fs::open(path, direction | blocking | OFlags::CLOEXEC, Mode::empty());
    opened.or_else(|_| stream.try_clone_to_owned())
}

/// A handler that can be served on standard input and output, such as a
/// [`Connection`](crate::Connection).
pub trait Handler: ServerHandler {
    /// The runtime that was given to
    /// [`Connection::long_calls_on`](crate::Connection::long_calls_on), if any. Messages are read
    /// ahead while its threads have time for calls. A handler that wraps a connection returns the
    /// connection's runtime.
    fn long_calls_runtime(&self) -> Option<&Handle>;

    /// Returns the state of the hosts that run the calls, and a principal. Results count in the
    /// memory of all calls, for that principal, until the client has read them. Default: they don't
    /// count.
    fn results_count_in(&self) -> Option<(SharedState, Arc<str>)> {
        None
    }
}

/// How long calls may continue after a shutdown is requested.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// Serves the client at `streams` with a handler that
/// [`Service::connection`](crate::Service::connection) made, until the client closes its end or
/// `shutdown` is cancelled. When the client closes, running calls have five seconds to end. At
/// `shutdown` nothing more is read, and running calls have two seconds. Calls that still run after
/// that are cancelled and answered as cancelled.
///
/// # Errors
///
/// [`StdioError`].
pub async fn serve<H: Handler>(
    handler: H,
    streams: Streams,
    shutdown: CancellationToken,
) -> Result<(), StdioError> {
    let input = input(streams.input)?;
    let output = output(streams.output)?;
    let threads = match handler.long_calls_runtime() {
        Some(runtime) => CallThreads::of(runtime),
        None => CallThreads::of_connection(),
    };
    // A client that does not read its results is disconnected as at a shutdown.
    let end = shutdown.child_token();
    let counted = handler.results_count_in();
    let unread = counted.map(|(state, principal)| UnreadResults {
        state,
        principal,
        end: end.clone(),
        progress: ReadProgress::default(),
    });
    let writer = LineWriter::to(output).counting(unread);
    let transport = StdioTransport::new(input, writer, threads, end.clone(), shutdown);
    let calls = CancellationToken::new();
    // `into_dyn` boxes the future of each request. The task that runs it is moved, and overwritten
    // at its end, so the task should be small.
    let serving = (handler.into_dyn()).serve_with_ct(transport, calls.clone());
    let running = match serving.await {
        Ok(running) => running,
        // The client disconnected, or the server was shut down, before the first
        // request.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        // Only the source is reported, since the error itself names types of this program.
        Err(ServerInitializeError::TransportError { error, .. }) => {
            return Err(StdioError::Stream(std::io::Error::other(error.error)));
        }
        Err(error) => return Err(StdioError::Opening(error.to_string())),
    };
    let cancelling = async {
        end.cancelled().await;
        tokio::time::sleep(LAST_CALLS).await;
        calls.cancel();
    };
    let mut waiting = pin!(running.waiting());
    let ended = tokio::select! {
        ended = &mut waiting => ended,
        () = cancelling => waiting.await,
    };
    match ended {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(StdioError::Failed(error.to_string())),
        Ok(_) => Ok(()),
    }
}

/// Returns the kind of a stream that does not block; `None` for a stream that blocks.
fn waited_for(stream: &OwnedFd) -> Option<FileType> {
    let flags = rustix::fs::fcntl_getfl(stream).ok()?;
    let stat = rustix::fs::fstat(stream).ok()?;
    flags
        .contains(OFlags::NONBLOCK)
        .then(|| FileType::from_raw_mode(stat.st_mode))
}

/// Returns the stream that the client writes.
fn input(stream: OwnedFd) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    Ok(match waited_for(&stream) {
        Some(FileType::Fifo) => Box::new(pipe::Receiver::from_owned_fd(stream)?),
        // Any socket family works: only bytes are read and written.
        Some(FileType::Socket) => Box::new(UnixStream::from_std(stream.into())?),
        _ => Box::new(tokio::fs::File::from_std(stream.into())),
    })
}

/// Returns the stream that the client reads.
fn output(stream: OwnedFd) -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    Ok(match waited_for(&stream) {
        Some(FileType::Fifo) => Box::new(pipe::Sender::from_owned_fd(stream)?),
        // Any socket family works: only bytes are read and written.
        Some(FileType::Socket) => Box::new(UnixStream::from_std(stream.into())?),
        _ => Box::new(tokio::fs::File::from_std(stream.into())),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// More than a socket holds.
    const MANY: usize = 4 << 20;

    #[tokio::test]
    async fn a_socket_that_does_not_block_is_waited_for() {
        let (mut client, server) = std::os::unix::net::UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let mut from_client = input(server.try_clone().unwrap().into()).unwrap();
        let mut to_client = output(server.into()).unwrap();
        let writing = std::thread::spawn(move || {
            client.write_all(&vec![b'a'; MANY]).unwrap();
            let mut answer = vec![0; MANY];
            client.read_exact(&mut answer).unwrap();
            answer
        });
        let mut request = vec![0; MANY];
        from_client.read_exact(&mut request).await.unwrap();
        assert!(request.iter().all(|byte| *byte == b'a'));
        to_client.write_all(&vec![b'b'; MANY]).await.unwrap();
        assert!(writing.join().unwrap().iter().all(|byte| *byte == b'b'));
        assert_eq!(from_client.read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn what_can_not_be_waited_for_is_read_all_the_same() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a line\n").unwrap();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(file.path(), flags, rustix::fs::Mode::empty());
        let mut text = String::new();
        let mut input = input(opened.unwrap()).unwrap();
        input.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "a line\n");
    }
}

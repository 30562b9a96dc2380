//! What is read from and written to, by what the streams are.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::{FileType, OFlags};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// What the client writes.
pub(super) enum Input {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    Other(tokio::fs::File),
}

/// What the client reads.
pub(super) enum Output {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Other(tokio::fs::File),
}

/// The kind of a stream that does not block and can be waited for; `None` for another.
fn waited_for(stream: &OwnedFd) -> Option<FileType> {
    let flags = rustix::fs::fcntl_getfl(stream).ok()?;
    let stat = rustix::fs::fstat(stream).ok()?;
    flags
        .contains(OFlags::NONBLOCK)
        .then(|| FileType::from_raw_mode(stat.st_mode))
}

/// A socket of any family: only its bytes are read and written.
fn socket(stream: OwnedFd) -> io::Result<UnixStream> {
    UnixStream::from_std(StdUnixStream::from(stream))
}

fn other(stream: OwnedFd) -> tokio::fs::File {
    tokio::fs::File::from_std(File::from(stream))
}

impl Input {
    pub(super) fn of(stream: OwnedFd) -> io::Result<Self> {
        Ok(match waited_for(&stream) {
            Some(FileType::Fifo) => Self::Pipe(pipe::Receiver::from_owned_fd(stream)?),
            Some(FileType::Socket) => Self::Socket(socket(stream)?),
            _ => Self::Other(other(stream)),
        })
    }
}

impl Output {
    pub(super) fn of(stream: OwnedFd) -> io::Result<Self> {
        Ok(match waited_for(&stream) {
            Some(FileType::Fifo) => Self::Pipe(pipe::Sender::from_owned_fd(stream)?),
            Some(FileType::Socket) => Self::Socket(socket(stream)?),
            _ => Self::Other(other(stream)),
        })
    }
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(context, buffer),
            Self::Socket(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Other(file) => Pin::new(file).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_write(context, bytes),
            Self::Socket(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Other(file) => Pin::new(file).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_flush(context),
            Self::Socket(socket) => Pin::new(socket).poll_flush(context),
            Self::Other(file) => Pin::new(file).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_shutdown(context),
            Self::Socket(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Other(file) => Pin::new(file).poll_shutdown(context),
        }
    }
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
        let (mut client, server) = StdUnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let mut input = Input::of(server.try_clone().unwrap().into()).unwrap();
        let mut output = Output::of(server.into()).unwrap();
        let writing = std::thread::spawn(move || {
            client.write_all(&vec![b'a'; MANY]).unwrap();
            let mut answer = vec![0; MANY];
            client.read_exact(&mut answer).unwrap();
            answer
        });
        let mut request = vec![0; MANY];
        input.read_exact(&mut request).await.unwrap();
        assert!(request.iter().all(|byte| *byte == b'a'));
        output.write_all(&vec![b'b'; MANY]).await.unwrap();
        assert!(writing.join().unwrap().iter().all(|byte| *byte == b'b'));
        assert_eq!(input.read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn what_can_not_be_waited_for_is_read_all_the_same() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a line\n").unwrap();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(file.path(), flags, rustix::fs::Mode::empty());
        let mut text = String::new();
        let mut input = Input::of(opened.unwrap()).unwrap();
        input.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "a line\n");
    }
}

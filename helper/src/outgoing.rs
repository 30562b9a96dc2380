//! Frames to a helper. A helper that hangs reads nothing, and what writes to its socket then waits for as long.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};

/// Frames that a thread writes, so that nothing else waits until the helper reads them. How many there may be is for
/// those who send to bound.
#[derive(Clone, Debug)]
pub struct Outgoing(Sender<Vec<u8>>);

impl Outgoing {
    /// Starts the thread, which ends with the last clone of this or with the connection.
    ///
    /// # Errors
    /// If the socket can't be duplicated, or no thread can be started.
    pub fn start(name: &str, socket: &UnixStream) -> io::Result<Self> {
        let mut socket = socket.try_clone()?;
        let (sender, frames) = channel::<Vec<u8>>();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                for frame in frames {
                    if socket.write_all(&frame).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self(sender))
    }

    /// Has a frame written. Where the connection has ended, whoever reads from it says why.
    pub fn send(&self, frame: Vec<u8>) {
        let _ = self.0.send(frame);
    }
}

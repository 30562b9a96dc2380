//! A recorder in a process of its own: it alone has the ledger's files and key, and the process whose calls it
//! records has a socket. That process runs guests and may be taken over by one, so nothing that it says is trusted:
//! it can add rows, and lie in them, and neither read nor change any.
//!
//! * [`Remote`] is the recording process's half: a [`Recorder`](crate::Recorder).
//! * [`Connection`] is the recorder's half: it takes frames, checks each, and has a [`Writer`](crate::Writer) write.
//! * [`Request`] and [`Answer`] are the frames.
//!
//! The recorder takes entries, the wish that all be on the disk, and one question: whether an id was given before.
//! No byte of a payload comes back. What it can't take ends the connection, with a `closed` row that says so.

mod allowance;
mod body;
mod client;
mod connection;
mod entry;
mod frame;
mod frame_error;
mod shared;
mod start;

pub use client::{RecorderCounts, Remote};
pub use connection::Connection;
pub use entry::{MAX_NAME_BYTES, MAX_PAYLOAD_BYTES};
pub use frame::{Answer, Outcome, Request};
pub use frame_error::FrameError;
pub use start::Start;

/// Size of the buffers for writing to the socket, and for reading from it.
const BUFFER_BYTES: usize = 64 * 1024;

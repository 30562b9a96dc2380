//! A recorder in a separate process. Only the recorder has the ledger's files and key. The process
//! whose calls are recorded, called the recording process, has only a socket. It runs guests, and a
//! guest may take it over, so the recorder does not trust it: the recording process can add rows,
//! even false rows, but can neither read nor change rows.
//!
//! * [`Remote`] is the half in the recording process: a [`Recorder`](crate::Recorder).
//! * [`RecorderConnection`] is the half in the recorder: it reads frames, checks each, and passes
//!   them to a [`Writer`](crate::Writer).
//! * [`RequestFrame`] and [`AnswerFrame`] are the frames.
//!
//! The recorder accepts entries, requests to flush, and one question: whether an id was given
//! before. It never returns a byte of a payload. An invalid frame ends the connection, with a
//! `closed` row.

mod client;
mod connection;
mod entry;
mod frame;
mod shared;

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::record::{Event, Opened, Record};
use crate::recorder::{NO_SESSION, now};
use crate::writer::LedgerOptions;

pub use client::{RecorderCounts, Remote};
pub use connection::RecorderConnection;
pub use entry::{FrameError, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES};
pub use frame::{AnswerFrame, RequestFrame};

/// Size of the buffers for writing to the socket, and for reading from it.
const BUFFER_BYTES: usize = 64 * 1024;

/// The version of the frames; both sides usually have the same build.
const PROTOCOL: u32 = 3;

/// The start of a session: the ledger's options and the session's first row.
#[derive(Clone, Debug)]
pub struct Start {
    /// Where and how the ledger is written.
    pub options: LedgerOptions,
    /// The session's first row.
    pub opened: Opened,
}

/// The form of a [`Start`] in a frame.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    protocol: u32,
    options: LedgerOptions,
    /// The paths of the options, separate because they may be invalid UTF-8.
    directory: OsString,
    checkpoints: Option<OsString>,
    /// The line of the session's first row.
    opened: String,
}

impl Start {
    /// The frame's body. Relative paths are made absolute, since the recorder has another working
    /// directory.
    fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let options = &self.options;
        let fail = |error| Error::io("the ledger's path", error);
        let absolute = |path| std::path::absolute(path).map_err(fail);
        let checkpoints = options.checkpoints.as_ref().map(absolute).transpose()?;
        let opened = Event::Opened(self.opened.clone()).encode(now(), NO_SESSION);
        let frame = Frame {
            protocol: PROTOCOL,
            options: options.clone(),
            directory: absolute(&options.directory)?.into_os_string(),
            checkpoints: checkpoints.map(Into::into),
            opened: String::from_utf8_lossy(&opened).into_owned(),
        };
        serde_json::to_vec(&frame).map_err(|error| Error::io("the ledger's start", error))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, FrameError> {
        let bad = || FrameError::Bad("not a start of this version");
        let frame: Frame = serde_json::from_slice(bytes).map_err(|_| bad())?;
        let opened = Record::parse(frame.opened.as_bytes()).map(|record| record.event);
        let (PROTOCOL, Ok(Event::Opened(opened))) = (frame.protocol, opened) else {
            return Err(bad());
        };
        let options = LedgerOptions {
            directory: frame.directory.into(),
            checkpoints: frame.checkpoints.map(Into::into),
            ..frame.options
        };
        Ok(Self { options, opened })
    }
}

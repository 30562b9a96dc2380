//! The frames: kind, length, body. A length is checked before anything of that size is made.

use std::io::{self, Read, Write};

use toolward_support::helper::frames::{Body as Incoming, frame, head};

use super::Start;
use super::entry::{self, FrameBody, FrameError, MAX_ENTRY_BYTES, counted};
use crate::error::Error;
use crate::record::Invocation;
use crate::recorder::{Entry, Given};
use crate::writer::{MAX_ROWS, WrittenRows};

/// The most bytes of a start.
const MAX_START_BYTES: usize = 64 * 1024;
/// The most bytes of what the recorder reports of a failure.
const MAX_TEXT_BYTES: usize = 1024;
/// The most bytes of small frames.
const MAX_SMALL_BYTES: usize = 2 * 1024;
/// The most bytes of a frame that ends a connection: with two texts, and rows of 24 bytes.
const MAX_CLOSED_BYTES: usize = 4 * 1024;

/// Room for the body of a request: most entries fit without growing it. See the room for a line of a record.
const BODY_CAPACITY_BYTES: usize = 1000;

const START: u8 = 1;
const APPEND: u8 = 2;
const QUEUE: u8 = 3;
const FLUSH: u8 = 4;
const GIVEN: u8 = 5;
const END: u8 = 6;
const READY: u8 = 11;
const UNUSABLE: u8 = 12;
const ANSWER: u8 = 13;
const CLOSED: u8 = 14;

/// From the recording process to the recorder.
#[derive(Clone, Debug)]
pub enum RequestFrame {
    /// The first frame.
    Start(Box<Start>),
    /// An entry, answered once it is on the disk.
    Append {
        /// What the answer names.
        id: u64,
        /// What is recorded.
        entry: Box<Entry>,
    },
    /// An entry that is not awaited.
    Queue(Box<Entry>),
    /// Answered once all that came before is on the disk.
    Flush {
        /// What the answer names.
        id: u64,
    },
    /// Whether an id was given before.
    Given {
        /// What the answer names.
        id: u64,
        /// The id, who gave it and for what.
        given: Given,
    },
    /// The session ends in good order.
    End,
}

/// From the recorder to the recording process.
#[derive(Clone, Debug)]
pub enum AnswerFrame {
    /// The ledger is open.
    Ready,
    /// It can't be opened, or the recorder can't work.
    Unusable(String),
    /// To the request of this id.
    To {
        /// The request's.
        id: u64,
        /// How it ended: done, or what the recording process needs to know of the error. To a question, that the id is
        /// new, or [`Error::Given`].
        outcome: Result<(), Error>,
    },
    /// All is written, and the ledger closed.
    Closed {
        /// How that ended.
        outcome: Result<(), Error>,
        /// The rows of the session's latest calls.
        written: WrittenRows,
    },
}

impl RequestFrame {
    /// Reads one; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`FrameError`]
    pub fn read(from: &mut impl Read) -> Result<Option<Self>, FrameError> {
        let read = Self::read_sized(from)?;
        Ok(read.map(|(request, _)| request))
    }

    /// With how many bytes its body has.
    pub(super) fn read_sized(from: &mut impl Read) -> Result<Option<(Self, usize)>, FrameError> {
        let Some((kind, length)) = head(from)? else {
            return Ok(None);
        };
        let most = match kind {
            START => MAX_START_BYTES,
            APPEND | QUEUE => MAX_ENTRY_BYTES,
            FLUSH | GIVEN => MAX_SMALL_BYTES,
            END => 0,
            _ => return Err(FrameError::Bad("an unknown kind")),
        };
        let bytes = bytes(from, length, most)?;
        let mut body = FrameBody::new(&bytes);
        let request = match kind {
            START => Self::Start(Box::new(Start::from_bytes(body.bytes(length)?)?)),
            APPEND => Self::Append {
                id: body.number()?,
                entry: Box::new(entry::read(&mut body)?),
            },
            QUEUE => Self::Queue(Box::new(entry::read(&mut body)?)),
            FLUSH => Self::Flush { id: body.number()? },
            GIVEN => Self::Given {
                id: body.number()?,
                given: entry::read_given(&mut body)?,
            },
            _ => Self::End,
        };
        body.end()?;
        Ok(Some((request, length)))
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`Error::Record`] if it does not fit a frame, otherwise the writer's error.
    pub fn write(&self, to: &mut impl Write) -> Result<(), Error> {
        let mut body = Vec::with_capacity(BODY_CAPACITY_BYTES);
        let kind = match self {
            Self::Start(start) => {
                body = start.to_bytes()?;
                START
            }
            Self::Append { id, entry } => {
                body.extend_from_slice(&id.to_le_bytes());
                entry::write(&mut body, entry)?;
                APPEND
            }
            Self::Queue(entry) => {
                entry::write(&mut body, entry)?;
                QUEUE
            }
            Self::Flush { id } => {
                body.extend_from_slice(&id.to_le_bytes());
                FLUSH
            }
            Self::Given { id, given } => {
                body.extend_from_slice(&id.to_le_bytes());
                entry::write_given(&mut body, given)?;
                GIVEN
            }
            Self::End => END,
        };
        frame(to, kind, &[&body]).map_err(|error| Error::io("the recorder's socket", error))
    }
}

impl AnswerFrame {
    /// Reads one; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`FrameError`]
    pub fn read(from: &mut impl Read) -> Result<Option<Self>, FrameError> {
        let Some((kind, length)) = head(from)? else {
            return Ok(None);
        };
        let most = match kind {
            CLOSED => MAX_CLOSED_BYTES,
            _ => MAX_SMALL_BYTES,
        };
        let bytes = bytes(from, length, most)?;
        let mut body = FrameBody::new(&bytes);
        let answer = match kind {
            READY => Self::Ready,
            UNUSABLE => Self::Unusable(body.text(MAX_TEXT_BYTES)?.to_owned()),
            ANSWER => Self::To {
                id: body.number()?,
                outcome: read_outcome(&mut body)?,
            },
            CLOSED => Self::Closed {
                outcome: read_outcome(&mut body)?,
                written: read_written(&mut body)?,
            },
            _ => return Err(FrameError::Bad("an unknown kind")),
        };
        body.end()?;
        Ok(Some(answer))
    }

    /// Writes it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut body = Vec::new();
        let kind = match self {
            Self::Ready => READY,
            Self::Unusable(problem) => {
                counted(&mut body, shortened(problem).as_bytes());
                UNUSABLE
            }
            Self::To { id, outcome } => {
                body.extend_from_slice(&id.to_le_bytes());
                write_outcome(&mut body, outcome);
                ANSWER
            }
            Self::Closed { outcome, written } => {
                write_outcome(&mut body, outcome);
                counted(&mut body, shortened(&written.origin).as_bytes());
                for (invocation, seq) in written.rows.iter().take(MAX_ROWS) {
                    body.extend_from_slice(invocation.0.as_bytes());
                    body.extend_from_slice(&seq.to_le_bytes());
                }
                CLOSED
            }
        };
        frame(to, kind, &[&body])
    }
}

fn read_outcome(body: &mut FrameBody<'_>) -> Result<Result<(), Error>, FrameError> {
    Ok(Err(match body.byte()? {
        0 => return Ok(Ok(())),
        1 => Error::Busy,
        2 => Error::Full,
        3 => Error::ReadOnly,
        4 => Error::Late,
        5 => Error::Given { same_input: true },
        6 => Error::Given { same_input: false },
        7 => Error::Recorder(body.text(MAX_TEXT_BYTES)?.into()),
        _ => return Err(FrameError::Bad("an unknown outcome")),
    }))
}

fn write_outcome(to: &mut Vec<u8>, outcome: &Result<(), Error>) {
    let (byte, problem) = match outcome {
        Ok(()) => (0, None),
        Err(Error::Busy) => (1, None),
        Err(Error::Full) => (2, None),
        Err(Error::ReadOnly) => (3, None),
        Err(Error::Late) => (4, None),
        Err(Error::Given { same_input: true }) => (5, None),
        Err(Error::Given { same_input: false }) => (6, None),
        Err(Error::Recorder(problem)) => (7, Some(problem.to_string())),
        Err(error) => (7, Some(with_code(error))),
    };
    to.push(byte);
    if let Some(problem) = problem {
        counted(to, shortened(&problem).as_bytes());
    }
}

/// The origin, and as many rows as follow.
fn read_written(body: &mut FrameBody<'_>) -> Result<WrittenRows, FrameError> {
    let mut written = WrittenRows {
        origin: body.text(MAX_TEXT_BYTES)?.to_owned(),
        ..WrittenRows::default()
    };
    while !body.is_empty() {
        if written.rows.len() >= MAX_ROWS {
            return Err(FrameError::Bad("too many rows"));
        }
        let invocation = Invocation::from_bytes(body.array()?);
        written.rows.push_back((invocation, body.number()?));
    }
    Ok(written)
}

/// An error, with its code.
pub(super) fn with_code(error: &Error) -> String {
    format!("{error} ({})", error.code())
}

fn shortened(text: &str) -> &str {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    text.get(..end).unwrap_or_default()
}

fn bytes(from: &mut impl Read, length: usize, most: usize) -> Result<Vec<u8>, FrameError> {
    if length > most {
        return Err(FrameError::Bad("it is too long"));
    }
    Ok(Incoming::of(from, length, most)?.rest()?)
}

//! The frames: kind, length, body. A length is checked before memory of that size is allocated.

use std::io::{self, Read, Write};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolward_support::helper::frames::{Body as Incoming, frame, head};

use super::Start;
use super::entry::{self, FrameBody, FrameError, MAX_ENTRY_BYTES};
use crate::error::Error;
use crate::recorder::{Entry, Given};
use crate::writer::{MAX_ROWS, WrittenRows};

/// The most bytes of a start.
const MAX_START_BYTES: usize = 64 * 1024;
/// The most bytes of the recorder's text about a failure.
const MAX_TEXT_BYTES: usize = 1024;
/// The most bytes of a request to flush, and of the question whether an id was given.
const MAX_SMALL_BYTES: usize = 2 * 1024;
/// The most bytes of an answer. They suffice for a text in which all bytes are escaped, and the
/// rows.
const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// The initial capacity of a request's body, which suffices for most entries. It is below 1 KiB,
/// since from 1 KiB on glibc's `malloc` first consolidates its free chunks, which takes time.
const BODY_CAPACITY_BYTES: usize = 1000;

const START: u8 = 1;
const APPEND: u8 = 2;
const QUEUE: u8 = 3;
const FLUSH: u8 = 4;
const GIVEN: u8 = 5;
const END: u8 = 6;
const ANSWER: u8 = 13;

/// A frame from the recording process, whose calls are recorded, to the recorder.
#[derive(Clone, Debug)]
pub enum RequestFrame {
    /// The first frame.
    Start(Box<Start>),
    /// An entry, answered once it is on the disk.
    Append {
        /// The number that the answer repeats.
        id: u64,
        /// The entry to record.
        entry: Box<Entry>,
    },
    /// An entry that is not awaited.
    Queue(Box<Entry>),
    /// A request that is answered once all earlier entries are on the disk.
    Flush {
        /// The number that the answer repeats.
        id: u64,
    },
    /// The question whether an id was given before.
    Given {
        /// The number that the answer repeats.
        id: u64,
        /// The id, with its principal, tool and input.
        given: Given,
    },
    /// The session ends in good order.
    End,
}

/// A frame from the recorder to the recording process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AnswerFrame {
    /// The ledger is open.
    Ready,
    /// The ledger can't be opened, or the recorder can't work.
    Unusable(#[serde(serialize_with = "shortened")] String),
    /// The answer to a request.
    To {
        /// The number of the request.
        id: u64,
        /// The result: success, or the part of the error that the recording process needs. For
        /// [`RequestFrame::Given`], success means that the id is new, and [`Error::Given`] that it
        /// is not.
        #[serde(with = "sent_outcome")]
        outcome: Result<(), Error>,
    },
    /// The session has ended, and the ledger is closed.
    Closed {
        /// Success if all rows were written, otherwise why not.
        #[serde(with = "sent_outcome")]
        outcome: Result<(), Error>,
        /// The rows of the session's latest calls.
        written: WrittenRows,
    },
}

impl RequestFrame {
    /// Reads a frame; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`FrameError`]
    pub fn read(from: &mut impl Read) -> Result<Option<Self>, FrameError> {
        let read = Self::read_sized(from)?;
        Ok(read.map(|(request, _)| request))
    }

    /// Reads a frame, with the size of its body in bytes.
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
        let mut body = FrameBody(&bytes);
        let request = match kind {
            START => Self::Start(Box::new(Start::from_bytes(body.bytes(length)?)?)),
            APPEND => Self::Append {
                id: body.value()?,
                entry: Box::new(entry::read(&mut body)?),
            },
            QUEUE => Self::Queue(Box::new(entry::read(&mut body)?)),
            FLUSH => Self::Flush { id: body.value()? },
            GIVEN => Self::Given {
                id: body.value()?,
                given: entry::read_given(&mut body)?,
            },
            _ => Self::End,
        };
        body.end()?;
        Ok(Some((request, length)))
    }

    /// Writes the frame.
    ///
    /// # Errors
    /// [`Error::Record`] if a part is too long for a frame; errors of the operating system and of
    /// `to`.
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
    /// Reads a frame; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`FrameError`]
    pub fn read(from: &mut impl Read) -> Result<Option<Self>, FrameError> {
        let Some((kind, length)) = head(from)? else {
            return Ok(None);
        };
        let bytes = bytes(from, length, MAX_ANSWER_BYTES)?;
        let answer: Option<Self> = serde_json::from_slice(&bytes).ok();
        // Only one spelling of an answer is valid.
        let written = |answer: &Self| serde_json::to_vec(answer).is_ok_and(|own| own == bytes);
        match answer.filter(|answer| kind == ANSWER && written(answer)) {
            None => Err(FrameError::Bad("not an answer")),
            Some(Self::Closed { written, .. }) if written.rows.len() > MAX_ROWS => {
                Err(FrameError::Bad("too many rows"))
            }
            answer => Ok(answer),
        }
    }

    /// Writes the frame.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        // A single write, so that the reader wakes up once.
        let mut bytes = Vec::new();
        frame(&mut bytes, ANSWER, &[&serde_json::to_vec(self)?])?;
        to.write_all(&bytes)
    }
}

/// The result of a request, with the details that the recording process needs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum SentOutcome {
    Done,
    Busy,
    Full,
    ReadOnly,
    Late,
    Given {
        same_input: bool,
    },
    /// Any other error.
    Recorder(#[serde(serialize_with = "shortened")] String),
}

mod sent_outcome {
    use super::{Deserialize, Deserializer, Error, SentOutcome, Serialize, Serializer, with_code};

    pub(super) fn serialize<S: Serializer>(
        outcome: &Result<(), Error>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let sent = match outcome {
            Ok(()) => SentOutcome::Done,
            Err(Error::Busy) => SentOutcome::Busy,
            Err(Error::Full) => SentOutcome::Full,
            Err(Error::ReadOnly) => SentOutcome::ReadOnly,
            Err(Error::Late) => SentOutcome::Late,
            Err(Error::Given { same_input }) => SentOutcome::Given {
                same_input: *same_input,
            },
            Err(Error::Recorder(problem)) => SentOutcome::Recorder(problem.to_string()),
            Err(error) => SentOutcome::Recorder(with_code(error)),
        };
        sent.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Result<(), Error>, D::Error> {
        Ok(Err(match SentOutcome::deserialize(deserializer)? {
            SentOutcome::Done => return Ok(Ok(())),
            SentOutcome::Busy => Error::Busy,
            SentOutcome::Full => Error::Full,
            SentOutcome::ReadOnly => Error::ReadOnly,
            SentOutcome::Late => Error::Late,
            SentOutcome::Given { same_input } => Error::Given { same_input },
            SentOutcome::Recorder(problem) => Error::Recorder(problem.into()),
        }))
    }
}

/// An error, with its code.
pub(super) fn with_code(error: &Error) -> String {
    format!("{error} ({})", error.code())
}

fn shortened<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    serializer.serialize_str(text.get(..end).unwrap_or_default())
}

fn bytes(from: &mut impl Read, length: usize, most: usize) -> Result<Vec<u8>, FrameError> {
    if length > most {
        return Err(FrameError::Bad("it is too long"));
    }
    Ok(Incoming::of(from, length, most)?.rest()?)
}

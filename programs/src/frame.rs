//! The protocol of host and broker. Once it has started, the broker takes the number of a line and an input from
//! the host, and no paths, arguments or variables.

use std::ffi::OsString;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::file::ExecProblem;
use crate::line::Line;
use toolward_support::helper::frames::{Body, frame, head};

/// The version of the protocol; both sides are usually of one build.
pub(crate) const PROTOCOL: u32 = 2;

/// The most bytes of a [`Start`], which has all lines of a policy.
const START_BYTES: usize = 64 << 20;

/// The most bytes of an [`Ending`].
const ENDING_BYTES: usize = 64 << 10;

/// Bytes that are kept of a program's standard error: the last ones.
pub(crate) const STDERR_BYTES: usize = 64 << 10;

/// The first frame of the host, sent before it handles anything hostile; the only one that names anything.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    pub(crate) protocol: u32,
    /// The program that becomes the program of a line, and its arguments.
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// The largest input, in bytes.
    pub(crate) input_bytes: usize,
    pub(crate) lines: Vec<Line>,
}

/// From the host to the broker.
#[derive(Debug)]
pub(crate) enum Request {
    Start(Box<Start>),
    Run {
        id: u64,
        line: u32,
        /// `None`: the kernel only loads the program, which then ends before its first instruction.
        input: Option<Vec<u8>>,
    },
    /// A run that was taken starts.
    Go {
        id: u64,
    },
    Cancel {
        id: u64,
    },
}

/// How a run ended, for the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// It took longer than its line allows.
    Late,
    /// It wrote more than its line allows.
    TooMuch,
    Cancelled,
    /// As many programs run as the broker runs at once.
    Busy,
    /// The broker did not take it in time. It was not started, and is not.
    Silent,
    /// It was not started.
    Refused(ExecProblem),
}

/// From the broker to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The broker has a run, and starts it once the host still wants it.
    Taken(u64),
    Ended(u64, Run),
}

/// A run that ended, and what the program wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) ending: Ending,
    pub(crate) stdout: Vec<u8>,
    /// The end of it, where it was long.
    pub(crate) stderr: Vec<u8>,
}

impl Run {
    /// Whether bytes may be missing before those of standard error.
    pub(crate) fn is_stderr_cut(&self) -> bool {
        self.stderr.len() >= STDERR_BYTES
    }
}

impl From<Ending> for Run {
    fn from(ending: Ending) -> Self {
        Self {
            ending,
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }
}

const START: u8 = 1;
const RUN: u8 = 2;
const CANCEL: u8 = 3;
const TRIAL: u8 = 4;
const GO: u8 = 5;
const ENDED: u8 = 11;
const TAKEN: u8 = 12;

pub(crate) fn start(to: &mut impl Write, start: &Start) -> io::Result<()> {
    frame(to, START, &[&serde_json::to_vec(start)?])
}

pub(crate) fn run(to: &mut impl Write, id: u64, line: u32, input: Option<&[u8]>) -> io::Result<()> {
    let (kind, input) = match input {
        Some(input) => (RUN, input),
        None => (TRIAL, &[][..]),
    };
    frame(to, kind, &[&id.to_le_bytes(), &line.to_le_bytes(), input])
}

pub(crate) fn go(to: &mut impl Write, id: u64) -> io::Result<()> {
    frame(to, GO, &[&id.to_le_bytes()])
}

pub(crate) fn taken(to: &mut impl Write, id: u64) -> io::Result<()> {
    frame(to, TAKEN, &[&id.to_le_bytes()])
}

pub(crate) fn cancel(to: &mut impl Write, id: u64) -> io::Result<()> {
    frame(to, CANCEL, &[&id.to_le_bytes()])
}

impl Request {
    /// The next request; `None` at the end. No input is larger than `input_bytes`.
    pub(crate) fn read(from: &mut impl Read, input_bytes: usize) -> io::Result<Option<Self>> {
        let Some((kind, length)) = head(from)? else {
            return Ok(None);
        };
        let most = match kind {
            START => START_BYTES,
            RUN => input_bytes.saturating_add(8 + 4),
            TRIAL => 8 + 4,
            _ => 8,
        };
        let mut body = Body::of(from, length, most)?;
        Ok(Some(match kind {
            START => Self::Start(serde_json::from_slice(&body.rest()?)?),
            RUN => Self::Run {
                id: body.number()?,
                line: u32::from_le_bytes(body.take()?),
                input: Some(body.rest()?),
            },
            TRIAL => Self::Run {
                id: body.number()?,
                line: u32::from_le_bytes(body.take()?),
                input: None,
            },
            GO => Self::Go { id: body.number()? },
            CANCEL => Self::Cancel { id: body.number()? },
            _ => return Err(io::Error::other("an unknown request")),
        }))
    }
}

impl Run {
    pub(crate) fn write(&self, to: &mut impl Write, id: u64) -> io::Result<()> {
        let ending = serde_json::to_vec(&self.ending)?;
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
        let parts: [&[u8]; 6] = [
            &id.to_le_bytes(),
            &length(&ending)?.to_le_bytes(),
            &length(&self.stdout)?.to_le_bytes(),
            &ending,
            &self.stdout,
            &self.stderr,
        ];
        frame(to, ENDED, &parts)
    }
}

impl Answer {
    /// The next answer; `None` at the end. No output is larger than `output_bytes`.
    pub(crate) fn read(from: &mut impl Read, output_bytes: usize) -> io::Result<Option<Self>> {
        let Some((kind, length)) = head(from)? else {
            return Ok(None);
        };
        match kind {
            TAKEN => return Ok(Some(Self::Taken(Body::of(from, length, 8)?.number()?))),
            ENDED => {}
            _ => return Err(io::Error::other("an unknown answer")),
        }
        let most = output_bytes
            .saturating_add(STDERR_BYTES)
            .saturating_add(ENDING_BYTES);
        let mut body = Body::of(from, length, most)?;
        let id = body.number()?;
        let of_ending = u32::from_le_bytes(body.take()?);
        let of_stdout = u32::from_le_bytes(body.take()?);
        let mut rest = body.rest()?;
        let short = || io::Error::other("an answer that is too short");
        let mut split = |length: u32| {
            let length = usize::try_from(length).map_err(io::Error::other)?;
            let after = (length <= rest.len()).then(|| rest.split_off(length));
            Ok::<_, io::Error>(std::mem::replace(&mut rest, after.ok_or_else(short)?))
        };
        let ending = serde_json::from_slice(&split(of_ending)?)?;
        let stdout = split(of_stdout)?;
        let run = Run {
            ending,
            stdout,
            stderr: rest,
        };
        Ok(Some(Self::Ended(id, run)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_cut_off_is_refused_before_it_is_held() {
        let mut bytes = Vec::new();
        run(&mut bytes, 7, 3, Some(b"{}")).unwrap();
        let read = Request::read(&mut bytes.as_slice(), 2).unwrap();
        assert!(
            matches!(read, Some(Request::Run { id: 7, line: 3, input: Some(input) }) if input == b"{}")
        );
        assert!(Request::read(&mut bytes.as_slice(), 1).is_err());
        for end in 1..bytes.len() {
            let mut cut = bytes.get(..end).unwrap();
            assert!(Request::read(&mut cut, 2).is_err(), "{end}");
        }
        let huge = [RUN, 0xff, 0xff, 0xff, 0xff];
        assert!(Request::read(&mut huge.as_slice(), 1 << 20).is_err());
        let unknown = [9, 0, 0, 0, 0];
        assert!(Request::read(&mut unknown.as_slice(), 2).is_err());
    }

    #[test]
    fn what_a_program_wrote_comes_back_whole_and_no_more_than_was_allowed() {
        let run = Run {
            ending: Ending::Exited(3),
            stdout: b"out".to_vec(),
            stderr: b"err".to_vec(),
        };
        let mut bytes = Vec::new();
        run.write(&mut bytes, 9).unwrap();
        let read = Answer::read(&mut bytes.as_slice(), 3).unwrap();
        assert_eq!(read, Some(Answer::Ended(9, run.clone())));
        // A length that is not that of what follows.
        let at = 5 + 8;
        for place in [at, at + 4] {
            let mut forged = bytes.clone();
            forged[place + 3] = 0xff;
            assert!(Answer::read(&mut forged.as_slice(), 3).is_err());
        }
        let large = Run {
            stdout: vec![0; ENDING_BYTES + STDERR_BYTES + 1],
            ..run
        };
        let mut bytes = Vec::new();
        large.write(&mut bytes, 9).unwrap();
        assert!(Answer::read(&mut bytes.as_slice(), 0).is_err());
    }
}

//! The protocol of host and broker. Once it has started, the broker takes the number of a line and an input from
//! the host, and no paths, arguments or variables.

use std::ffi::OsString;
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::file::ExecProblem;
use crate::line::Line;
use toolward_support::helper::frames::{receive, send};

/// The version of the protocol; both sides are usually of one build.
pub(crate) const PROTOCOL: u32 = 3;

/// The most bytes of a [`Start`], which has all lines of a policy.
const START_BYTES: usize = 64 << 20;

/// The most bytes of a message without a [`Start`], an input or an output.
const SMALL: usize = 64 << 10;

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
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Request {
    Start(Box<Start>),
    /// Runs the program of a line on the bytes of the message.
    Run {
        id: u64,
        line: usize,
        /// The kernel only loads the program, which then ends before its first instruction.
        is_trial: bool,
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
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The broker has a run, and starts it once the host still wants it.
    Taken { id: u64 },
    /// A run ended. The bytes of the message are what the program wrote, `stdout` bytes of it to standard output.
    Ended {
        id: u64,
        ending: Ending,
        stdout: usize,
    },
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

impl Request {
    /// The next request, which is a [`Start`] if it `is_first`; `None` at the end. No input is larger than
    /// `input_bytes`.
    pub(crate) fn read(
        from: &mut impl Read,
        is_first: bool,
        input_bytes: usize,
    ) -> io::Result<Option<(Self, Vec<u8>)>> {
        let most = if is_first { START_BYTES } else { SMALL };
        receive(from, most, |request| match request {
            Self::Run {
                is_trial: false, ..
            } => input_bytes,
            _ => 0,
        })
    }
}

impl Answer {
    /// The next answer; `None` at the end. No output is larger than `output_bytes`.
    pub(crate) fn read(
        from: &mut impl Read,
        output_bytes: usize,
    ) -> io::Result<Option<(Self, Vec<u8>)>> {
        receive(from, SMALL, |answer| match answer {
            Self::Taken { .. } => 0,
            Self::Ended { .. } => output_bytes.saturating_add(STDERR_BYTES),
        })
    }
}

impl Run {
    /// Sends it to the host.
    pub(crate) fn write(&self, to: &mut impl Write, id: u64) -> io::Result<()> {
        let answer = Answer::Ended {
            id,
            ending: self.ending.clone(),
            stdout: self.stdout.len(),
        };
        send(to, &answer, &[&self.stdout, &self.stderr])
    }

    /// A run of what an answer has.
    pub(crate) fn of(ending: Ending, stdout: usize, mut bytes: Vec<u8>) -> io::Result<Self> {
        if stdout > bytes.len() {
            return Err(io::Error::other("an answer that is too short"));
        }
        let stderr = bytes.split_off(stdout);
        Ok(Self {
            ending,
            stdout: bytes,
            stderr,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_cut_off_is_refused_before_it_is_held() {
        let run = |is_trial| Request::Run {
            id: 7,
            line: 3,
            is_trial,
        };
        let mut bytes = Vec::new();
        send(&mut bytes, &run(false), &[b"{}"]).unwrap();
        let read = |bytes: &[u8], most| Request::read(&mut &*bytes, false, most);
        assert!(matches!(
            read(&bytes, 2).unwrap(),
            Some((Request::Run { id: 7, line: 3, is_trial: false }, input)) if input == b"{}"
        ));
        assert!(read(&bytes, 1).is_err());
        for end in 1..bytes.len() {
            assert!(read(bytes.get(..end).unwrap(), 2).is_err(), "{end}");
        }
        let mut trial = Vec::new();
        send(&mut trial, &run(true), &[b"{}"]).unwrap();
        assert!(read(&trial, 2).is_err());
        let huge = [1, 0xff, 0xff, 0xff, 0xff];
        assert!(read(&huge, 1 << 20).is_err());
        let unknown = [9, 0, 0, 0, 0];
        assert!(read(&unknown, 2).is_err());
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
        match Answer::read(&mut bytes.as_slice(), 3).unwrap() {
            Some((
                Answer::Ended {
                    id: 9,
                    ending,
                    stdout,
                },
                bytes,
            )) => {
                assert_eq!(Run::of(ending.clone(), stdout, bytes.clone()).unwrap(), run);
                // A length that is not that of what follows.
                assert!(Run::of(ending, 7, bytes).is_err());
            }
            other => panic!("{other:?}"),
        }
        let large = Run {
            stdout: vec![0; STDERR_BYTES + 1],
            ..run
        };
        let mut bytes = Vec::new();
        large.write(&mut bytes, 9).unwrap();
        assert!(Answer::read(&mut bytes.as_slice(), 0).is_err());
    }
}
